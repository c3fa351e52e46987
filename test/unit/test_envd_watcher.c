/* SPDX-License-Identifier: Apache-2.0 */
/* How many watchers that are asked there may be: of a sandbox, of a key, of all. No agent is watched here. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "server/envd/envd.h"
#include "server/http/exchange.h"

#define SANDBOXES 65

static struct sandbox sandboxes[2][SANDBOXES]; /* of two keys */
static int result;
static struct rpc_error error;
static json_t *message; /* what is asked, */
static json_t *answer;  /* and answered */

/* --- the rest of the server ------------------------------------------------------------------------- */

int rpc_unary(struct request *r, rpc_call call)
{
	json_decref(answer);
	answer = NULL;
	error = (struct rpc_error){ 0 };
	result = call(r, message, &answer, &error);
	return 0;
}

struct talk *talk_new(struct request *r)
{
	struct talk *t = malloc(sizeof(*t)); /* nobody says anything: its frame is never touched */

	assert_non_null(t);
	t->op.sock = -EBADF;
	t->op.sandbox = r->sandbox;
	return t;
}

void talk_free(struct talk *t)
{
	free(t);
}

void talk_freep(struct talk **t)
{
	talk_free(*t);
}

int talk_no_wait(struct talk *t)
{
	(void)t;
	return 0;
}

int envd_watch_open(struct talk *t, const json_t *asked, struct rpc_error *e)
{
	(void)t;
	(void)asked;
	(void)e;
	return 0;
}

int envd_watch_next(struct envd_watch *w, json_t **ret)
{
	(void)w;
	(void)ret;
	return -EAGAIN;
}

/* --- the tests ---------------------------------------------------------------------------------------- */

static int setup(void **state)
{
	(void)state;
	for (unsigned k = 0; k < ARRAY_SIZE(sandboxes); k++)
		for (unsigned i = 0; i < SANDBOXES; i++)
			(void)snprintf(sandboxes[k][i].info.key_id,
				       sizeof(sandboxes[k][i].info.key_id), "key%u", k);
	message = json_object();
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	envd_watchers_stop();
	json_decref(message);
	json_decref(answer);
	answer = NULL;
	return 0;
}

static int create(struct sandbox *b)
{
	struct request r = { .sandbox = b };

	assert_int_equal(envd_watcher_create(&r), 0);
	return result;
}

static unsigned create_all(struct sandbox *b, unsigned max)
{
	unsigned n = 0;

	while (n < max && create(b) == 0)
		n++;
	return n;
}

static void test_sandbox(void **state)
{
	(void)state;
	assert_int_equal(create_all(&sandboxes[0][0], 1000), 64);
	assert_int_equal(error.code, RPC_RESOURCE_EXHAUSTED);
	assert_non_null(strstr(error.message, "64 in one sandbox"));
	assert_int_equal(create(&sandboxes[0][1]), 0);
}

static void test_key(void **state)
{
	unsigned n = 0;

	(void)state;
	for (unsigned i = 0; i < SANDBOXES; i++)
		n += create_all(&sandboxes[0][i], 64);
	assert_int_equal(n, 2048);
	assert_int_equal(error.code, RPC_RESOURCE_EXHAUSTED);
	assert_non_null(strstr(error.message, "API key"));
	for (unsigned i = 0; i < SANDBOXES - 1; i++)
		n += create_all(&sandboxes[1][i], 32);
	assert_int_equal(n, 4096);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_sandbox, setup, teardown),
		cmocka_unit_test_setup_teardown(test_key, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
