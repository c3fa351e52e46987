/* SPDX-License-Identifier: Apache-2.0 */
/* How often somebody may ask. Time is an argument, so nothing here waits. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <arpa/inet.h>
#include <cmocka.h>

#include "server/http/rate.h"

#define SECOND UINT64_C(1000000)
#define START (1000 * SECOND)

static struct rate *new_rate(void)
{
	struct rate *t;

	assert_int_equal(rate_new(&t), 0);
	return t;
}

static unsigned take_many(struct rate *t, const char *name, unsigned n, uint64_t per_second,
			  uint64_t now)
{
	unsigned ok = 0, retry;

	for (unsigned i = 0; i < n; i++)
		ok += rate_take(t, name, per_second, now, &retry);
	return ok;
}

/* Who looks through all tokens costs as much however many there are. */
static void test_searches(void **state)
{
	(void)state;
	assert_int_equal(rate_of_searches(0), RATE_TOKENS_TRIED);
	for (size_t n = 1; n < RATE_TOKENS_TRIED; n = n * 3 + 1) {
		assert_true(rate_of_searches(n) * n <= RATE_TOKENS_TRIED);
		assert_true((rate_of_searches(n) + 1) * n > RATE_TOKENS_TRIED);
	}
	assert_int_equal(rate_of_searches(SIZE_MAX), 1);
}

static void test_burst(void **state)
{
	struct rate *t = new_rate();
	unsigned retry = 0;

	(void)state;
	assert_int_equal(take_many(t, "a", 1000, 5, START), 5 * RATE_WINDOW_S);
	assert_false(rate_take(t, "a", 5, START, &retry));
	assert_int_equal(retry, 1);
	/* A second brings five more, and no more. */
	assert_int_equal(take_many(t, "a", 100, 5, START + SECOND), 5);
	/* A long rest brings the whole burst, and no more. */
	assert_int_equal(take_many(t, "a", 1000, 5, START + 1000 * SECOND), 5 * RATE_WINDOW_S);
	rate_free(t);
}

/* AP-06: one who asks too often takes nothing from the others. */
static void test_apart(void **state)
{
	struct rate *t = new_rate();

	(void)state;
	assert_int_equal(take_many(t, "greedy", 10000, 1, START), RATE_WINDOW_S);
	assert_int_equal(take_many(t, "modest", 5, 1, START), 5);
	rate_free(t);
}

static void test_retry_is_honest(void **state)
{
	struct rate *t = new_rate();
	unsigned retry = 0;

	(void)state;
	(void)take_many(t, "a", 100, 1, START);
	assert_false(rate_take(t, "a", 1, START, &retry));
	assert_true(rate_take(t, "a", 1, START + retry * SECOND, &retry));
	rate_free(t);
}

/* More callers than there is room for: the memory stays, and whoever is busy is not forgotten first. */
static void test_many_callers(void **state)
{
	struct rate *t = new_rate();
	unsigned retry;

	(void)state;
	(void)take_many(t, "busy", 100, 1, START);
	for (unsigned i = 0; i < 20000; i++) {
		char name[RATE_NAME_SIZE];

		(void)snprintf(name, sizeof(name), "caller-%u", i);
		assert_true(rate_take(t, name, 1, START, &retry));
	}
	assert_false(rate_take(t, "busy", 1, START, &retry));
	rate_free(t);
}

static void test_penalty(void **state)
{
	struct rate *t = new_rate();

	(void)state;
	for (unsigned i = 0; i < PENALTY_FREE; i++)
		assert_int_equal(penalty_add(t, "a", START), 0);
	assert_int_equal(penalty_add(t, "a", START), 1);
	assert_int_equal(penalty_add(t, "a", START), 2);
	assert_int_equal(penalty_add(t, "b", START), 0);
	for (unsigned i = 0; i < 1000; i++)
		assert_true(penalty_add(t, "a", START) <= PENALTY_MAX_S);
	/* It passes. */
	assert_int_equal(penalty_add(t, "a", START + (PENALTY_FREE + PENALTY_MAX_S) * SECOND), 0);
	rate_free(t);
}

static void name_is(const struct sockaddr *sa, const char *want)
{
	char name[RATE_NAME_SIZE];

	rate_address_name(sa, name);
	assert_string_equal(name, want);
}

static void test_addresses(void **state)
{
	struct sockaddr_in v4 = { .sin_family = AF_INET };
	struct sockaddr_in6 v6 = { .sin6_family = AF_INET6 };

	(void)state;
	assert_int_equal(inet_pton(AF_INET, "10.1.2.3", &v4.sin_addr), 1);
	name_is((const struct sockaddr *)&v4, "10.1.2.3");
	/* One who has a network has all its addresses. */
	assert_int_equal(inet_pton(AF_INET6, "2001:db8:1:2:3:4:5:6", &v6.sin6_addr), 1);
	name_is((const struct sockaddr *)&v6, "2001:db8:1:2::");
	assert_int_equal(inet_pton(AF_INET6, "::ffff:10.1.2.3", &v6.sin6_addr), 1);
	name_is((const struct sockaddr *)&v6, "::ffff:10.1.2.3");
	name_is(NULL, "unknown");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_searches),     cmocka_unit_test(test_burst),
		cmocka_unit_test(test_apart),        cmocka_unit_test(test_retry_is_honest),
		cmocka_unit_test(test_many_callers), cmocka_unit_test(test_penalty),
		cmocka_unit_test(test_addresses),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
