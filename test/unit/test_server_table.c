/* SPDX-License-Identifier: Apache-2.0 */
/* Which sandbox has a token, or made a signature: without one that is held up by somebody who looks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <unistd.h>

#include "base/parse.h"
#include "server/server.h"
#include "server/sandbox/sandbox.h"

#define MANY 3000
#define HANG_S 20 /* what waits for itself would wait for ever */

static struct server server;
static struct sandbox *added[MANY];

/* --- sandboxes without anything in them ---------------------------------------------------------------------- */

struct sandbox *sandbox_new(struct server *s, struct store_sandbox *info,
			    const struct warden_limits *limits)
{
	struct sandbox *b = calloc(1, sizeof(*b));

	(void)limits;
	assert_non_null(b);
	b->refs = 1;
	b->server = s;
	b->info = *info;
	return b;
}

void sandbox_ref(struct sandbox *b)
{
	b->refs++;
}

void sandbox_put(struct sandbox *b)
{
	if (!b || --b->refs > 0)
		return;
	free(b->info.envd_token);
	free(b);
}

static struct sandbox *add(unsigned i, bool secured)
{
	struct store_sandbox info = { 0 };
	struct warden_limits limits = { 0 };
	struct sandbox *b = NULL;
	char token[32];

	(void)snprintf(info.id, sizeof(info.id), "i%u", i);
	(void)snprintf(info.key_id, sizeof(info.key_id), "key");
	(void)snprintf(token, sizeof(token), "token%u", i);
	info.envd_token = secured ? strdup(token) : NULL;
	assert_int_equal(sandbox_add(&server, &info, &limits, 0, &b), 0);
	return b;
}

static int begin(void **state)
{
	(void)state;
	(void)alarm(HANG_S);
	assert_int_equal(table_new(MANY, &server.table), 0);
	for (unsigned i = 0; i < MANY; i++)
		added[i] = add(i, i % 3 != 0);
	return 0;
}

static int end(void **state)
{
	(void)state;
	for (unsigned i = 0; i < MANY; i++)
		sandbox_put(added[i]);
	table_free(server.table);
	(void)alarm(0);
	return 0;
}

/* --- the search ---------------------------------------------------------------------------------------------- */

struct search {
	const char *wanted;
	unsigned tried[MANY];
	unsigned n_tried;
	bool remove; /* each that is tried, as if it ended right then */
};

static bool matches(const char *token, void *arg)
{
	struct search *s = arg;
	uint64_t i;

	assert_int_equal(parse_u64(token + strlen("token"), &i), 0);
	assert_true(i < MANY);
	s->tried[i]++;
	s->n_tried++;
	if (s->remove)
		sandbox_remove(added[i]);
	return strcmp(token, s->wanted) == 0;
}

static void test_each_once(void **state)
{
	struct search s = { .wanted = "nobody's" };
	struct sandbox *b;

	(void)state;
	assert_null(sandbox_by_signature(&server, matches, &s));
	for (unsigned i = 0; i < MANY; i++)
		assert_int_equal(s.tried[i], i % 3 != 0);
	for (unsigned i = 0; i < MANY; i += 500) {
		char wanted[32];

		(void)snprintf(wanted, sizeof(wanted), "token%u", i);
		s.wanted = wanted;
		b = sandbox_by_signature(&server, matches, &s);
		assert_ptr_equal(b, i % 3 != 0 ? added[i] : NULL);
		sandbox_put(b);
	}
}

/* What a token is tried on may take its time: meanwhile others come and go. */
static void test_nobody_waits(void **state)
{
	struct search s = { .wanted = "nobody's", .remove = true };

	(void)state;
	assert_null(sandbox_by_signature(&server, matches, &s));
	/* All the same none was left out. */
	assert_int_equal(s.n_tried, MANY - MANY / 3);
	assert_int_equal(sandbox_count(&server, NULL), MANY / 3);
}

static void test_token(void **state)
{
	struct sandbox *b = sandbox_by_token(&server, "token1000");

	(void)state;
	assert_ptr_equal(b, added[1000]);
	sandbox_put(b);
	assert_null(sandbox_by_token(&server, "token999")); /* it has none */
	assert_null(sandbox_by_token(&server, "token100000"));
	assert_null(sandbox_by_token(&server, ""));
	sandbox_remove(added[1000]);
	assert_null(sandbox_by_token(&server, "token1000"));
	b = sandbox_by_token(&server, "token1001");
	assert_ptr_equal(b, added[1001]);
	sandbox_put(b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_each_once, begin, end),
		cmocka_unit_test_setup_teardown(test_nobody_waits, begin, end),
		cmocka_unit_test_setup_teardown(test_token, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
