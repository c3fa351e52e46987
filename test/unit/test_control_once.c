/* SPDX-License-Identifier: Apache-2.0 */
/* Idempotency keys, and what is kept of a sandbox. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <sodium.h>

#include "server/control/control_priv.h"

#include <sys/syscall.h>
#include <unistd.h>

static long behind_s, boot_behind_s;

/* In the place of libc's: as the clocks that nobody can set were some seconds ago. */
int clock_gettime(clockid_t clock, struct timespec *ret)
{
	long r = syscall(SYS_clock_gettime, clock, ret);

	if (clock == CLOCK_MONOTONIC)
		ret->tv_sec -= behind_s;
	if (clock == CLOCK_BOOTTIME)
		ret->tv_sec -= boot_behind_s;
	return (int)r;
}

static json_t *body(int timeout)
{
	return json_pack("{s:s, s:i}", "templateID", "base", "timeout", timeout);
}

static void test_replay(void **state)
{
	json_t *request = body(1), *other = body(2), *reply = json_pack("{s:s}", "sandboxID", "i1"),
	       *again = NULL;

	(void)state;
	assert_int_equal(once_begin("key_a", "k", request, &again), 0);
	once_done("key_a", "k", reply);
	assert_int_equal(once_begin("key_a", "k", request, &again), 1);
	assert_true(json_equal(again, reply));
	json_decref(again);
	assert_int_equal(once_begin("key_a", "k", other, &again), -EBADMSG);
	/* Another client's key of the same text is another key. */
	assert_int_equal(once_begin("key_b", "k", other, &again), 0);
	once_done("key_b", "k", NULL);
	/* What failed may be tried again. */
	assert_int_equal(once_begin("key_b", "k", request, &again), 0);
	once_done("key_b", "k", NULL);
	json_decref(request);
	json_decref(other);
	json_decref(reply);
	once_stop();
}

/* Who waits for the first one gives up after a minute by that clock, of which all but a second is over. */
static void test_gives_up(void **state)
{
	json_t *request = body(1), *again;

	(void)state;
	assert_int_equal(once_begin("key_a", "k", request, &again), 0);
	behind_s = 59;
	(void)alarm(20);
	assert_int_equal(once_begin("key_a", "k", request, &again), -EBUSY);
	(void)alarm(0);
	behind_s = 0;
	once_done("key_a", "k", NULL);
	json_decref(request);
}

static void test_is_bounded(void **state)
{
	json_t *request = body(1), *reply = json_object(), *again;
	char text[32];

	(void)state;
	for (int i = 0; i <= ONCE_MAX; i++) {
		(void)snprintf(text, sizeof(text), "k%d", i);
		assert_int_equal(once_begin("key_a", text, request, &again), 0);
		once_done("key_a", text, reply);
	}
	assert_int_equal(once_begin("key_a", "one more", request, &again), 0);
	once_done("key_a", "one more", reply);
	/* The oldest went, the newest did not. */
	assert_int_equal(once_begin("key_a", "k0", request, &again), 0);
	once_done("key_a", "k0", NULL);
	assert_int_equal(once_begin("key_a", text, request, &again), 1);
	json_decref(again);
	json_decref(request);
	json_decref(reply);
	once_stop();
}

/* Who has looked at the clock before another and comes after him does not take him for old. */
static void test_late(void **state)
{
	json_t *request = body(1), *reply = json_object(), *again = NULL;

	(void)state;
	assert_int_equal(once_begin("key_b", "k", request, &again), 0);
	once_done("key_b", "k", reply);
	boot_behind_s = 1;
	assert_int_equal(once_begin("key_a", "k", request, &again), 0);
	once_done("key_a", "k", reply);
	boot_behind_s = 0;
	assert_int_equal(once_begin("key_b", "k", request, &again), 1);
	json_decref(again);
	boot_behind_s = -(ONCE_KEPT_MS / 1000);
	assert_int_equal(once_begin("key_b", "k", request, &again), 0);
	once_done("key_b", "k", NULL);
	boot_behind_s = 0;
	json_decref(request);
	json_decref(reply);
	once_stop();
}

/* AP-06: one who makes many pushes out his own. */
static void test_share(void **state)
{
	json_t *request = body(1), *reply = json_object(), *again = NULL;
	char text[32];

	(void)state;
	assert_int_equal(once_begin("key_b", "k", request, &again), 0);
	once_done("key_b", "k", reply);
	for (int i = 0; i < ONCE_MAX + 10; i++) {
		(void)snprintf(text, sizeof(text), "k%d", i);
		assert_int_equal(once_begin("key_a", text, request, &again), 0);
		once_done("key_a", text, reply);
	}
	assert_int_equal(once_begin("key_b", "k", request, &again), 1);
	json_decref(again);
	assert_int_equal(once_begin("key_a", text, request, &again), 1);
	json_decref(again);
	assert_int_equal(once_begin("key_a", "k0", request, &again), 0);
	once_done("key_a", "k0", NULL);
	json_decref(request);
	json_decref(reply);
	once_stop();
}

struct race {
	unsigned made; /* atomic */
	json_t *request;
};

static void *create(void *arg)
{
	struct race *race = arg;
	json_t *reply = NULL;

	if (once_begin("key_a", "race", race->request, &reply) == 0) {
		(void)__atomic_add_fetch(&race->made, 1, __ATOMIC_RELAXED);
		(void)usleep(20000);
		reply = json_pack("{s:s}", "sandboxID", "i1");
		once_done("key_a", "race", reply);
	}
	return reply;
}

/* Those that come while the first is still at it wait for its reply. */
static void test_race(void **state)
{
	struct race race = { .request = body(1) };
	pthread_t threads[8];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(threads); i++)
		assert_int_equal(pthread_create(&threads[i], NULL, create, &race), 0);
	for (size_t i = 0; i < ARRAY_SIZE(threads); i++) {
		void *reply;

		assert_int_equal(pthread_join(threads[i], &reply), 0);
		assert_string_equal(json_string_value(json_object_get(reply, "sandboxID")), "i1");
		json_decref(reply);
	}
	assert_int_equal(race.made, 1);
	json_decref(race.request);
	once_stop();
}

static void test_config(void **state)
{
	json_t *network = json_pack("{s:[s]}", "denyOut", "10.0.0.0/8"), *json, *again;
	struct sandbox_config a = {
		.template = WARDEN_TEMPLATE_CODE_INTERPRETER,
		.layer = { "l1", "l2" },
		.n_layers = 2,
		.pending = "l3",
		.limits = { 1, 2, 3, 4, 5 },
		.timeout_ms = 15000,
		.cold = true,
		.auto_pause = true,
		.auto_resume = true,
		.execution = "e",
		.network = network,
	}, b;

	(void)state;
	json = sandbox_config_json(&a);
	sandbox_config_read(json, &b);
	assert_int_equal(b.n_layers, 2);
	assert_string_equal(b.layer[1], "l2");
	assert_string_equal(b.pending, "l3");
	assert_false(b.auto_pause_memory);
	again = sandbox_config_json(&b);
	assert_true(json_equal(json, again));
	json_decref(again);
	json_decref(json);
	json_decref(network);
}

/* A record that is damaged, or of a version that knew less, gives the defaults. */
static void test_config_damaged(void **state)
{
	struct sandbox_config c;
	json_t *json = json_pack("{s:i, s:[s, i, s], s:s, s:i, s:{s:i}}", "template", 99, "layers",
				 "l1", 7, "this-name-is-longer-than-a-layer-can-be", "cold", "yes",
				 "timeoutMs", -1, "limits", "pids", -5);

	(void)state;
	sandbox_config_read(json, &c);
	assert_int_equal(c.template, WARDEN_TEMPLATE_BASE);
	assert_int_equal(c.n_layers, 1);
	assert_false(c.cold);
	assert_int_equal(c.timeout_ms, 0);
	assert_int_equal(c.limits.pids, 0);
	json_decref(json);
	sandbox_config_read(NULL, &c);
	assert_int_equal(c.n_layers, 0);
	assert_true(c.auto_pause_memory);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_replay),         cmocka_unit_test(test_is_bounded),
		cmocka_unit_test(test_race),           cmocka_unit_test(test_config),
		cmocka_unit_test(test_config_damaged), cmocka_unit_test(test_gives_up),
		cmocka_unit_test(test_late),           cmocka_unit_test(test_share),
	};

	if (sodium_init() < 0)
		return 1;
	return cmocka_run_group_tests_name("control plane", tests, NULL, NULL);
}
