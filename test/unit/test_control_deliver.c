/* SPDX-License-Identifier: Apache-2.0 */
/* Webhooks whose names nobody resolves: the test is the resolver, which answers when the test lets it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "server/control/control_priv.h"

#include <netdb.h>
#include <poll.h>

#define HOOKS 4 /* of a key: all that can be sent at once would be theirs */
#define EVENTS 100

static struct server server;
/* Atomic, all of them. */
static int asked_a, asked_b, answered; /* the resolver, for hosts of the keys a and b */
static int dropped;
static bool let_go;

/* --- the rest of the server ------------------------------------------------------------------------- */

void server_log(struct server *s, const char *level, const char *event, json_t *fields)
{
	(void)s;
	(void)level;
	if (strcmp(event, "webhook_dropped") == 0)
		(void)__atomic_add_fetch(&dropped, 1, __ATOMIC_SEQ_CST);
	json_decref(fields);
}

void store_webhook_done(struct store_webhook *w)
{
	free(w->url);
	json_decref(w->types);
}

int store_webhook_get(struct store *s, const char *key_id, const char *id,
		      struct store_webhook *ret)
{
	(void)s;
	(void)key_id;
	(void)id;
	(void)ret;
	return -ENOENT;
}

int store_webhook_list(struct store *s, const char *key_id, struct store_webhook **ret,
		       size_t *ret_n)
{
	(void)s;
	*ret = calloc(HOOKS, sizeof(**ret));
	*ret_n = HOOKS;
	for (size_t i = 0; *ret && i < HOOKS; i++) {
		struct store_webhook *w = &(*ret)[i];

		(void)snprintf(w->id, sizeof(w->id), "%s%zu", key_id, i);
		(void)snprintf(w->key_id, sizeof(w->key_id), "%s", key_id);
		w->enabled = true;
		w->types = json_array();
		assert_true(asprintf(&w->url, "http://%s%zu.test/", key_id, i) > 0);
	}
	return *ret ? 0 : -ENOMEM;
}

/* In the place of libc's, for libcurl too. */
int getaddrinfo(const char *name, const char *service, const struct addrinfo *hints,
		struct addrinfo **ret)
{
	(void)service;
	(void)hints;
	(void)ret;
	(void)__atomic_add_fetch(name[0] == 'a' ? &asked_a : &asked_b, 1, __ATOMIC_SEQ_CST);
	for (int i = 0; i < 1000 && !__atomic_load_n(&let_go, __ATOMIC_SEQ_CST); i++)
		(void)poll(NULL, 0, 20);
	(void)__atomic_add_fetch(&answered, 1, __ATOMIC_SEQ_CST);
	return EAI_AGAIN;
}

/* --- the test's own --------------------------------------------------------------------------------- */

static bool becomes(const int *count, int value, int ms)
{
	while (ms > 0 && __atomic_load_n(count, __ATOMIC_SEQ_CST) != value) {
		(void)poll(NULL, 0, 20);
		ms -= 20;
	}
	return __atomic_load_n(count, __ATOMIC_SEQ_CST) == value;
}

/* One key's share of what is sent at once is a half, and of what waits a quarter. */
static void test_share(void **state)
{
	(void)state;
	for (int i = 0; i < EVENTS; i++)
		webhook_deliver(&server, "a", "x", json_object());
	assert_true(becomes(&dropped, HOOKS * EVENTS - 256, 2000));
	assert_true(becomes(&asked_a, 8, 2000));
	webhook_deliver(&server, "b", "x", json_object());
	assert_true(becomes(&asked_b, HOOKS, 2000));
	assert_int_equal(asked_a, 8);
	assert_int_equal(dropped, HOOKS * EVENTS - 256);
}

/* Who waits for a name cannot be interrupted, so nobody waits for him. */
static void test_stop(void **state)
{
	(void)state;
	assert_int_equal(answered, 0);
	deliver_stop();
	assert_int_equal(__atomic_load_n(&answered, __ATOMIC_SEQ_CST), 0);
	__atomic_store_n(&let_go, true, __ATOMIC_SEQ_CST);
	assert_true(becomes(&answered, asked_a + asked_b, 10000));
}

static int start(void **state)
{
	(void)state;
	return deliver_start(&server);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_share),
		cmocka_unit_test(test_stop),
	};

	return cmocka_run_group_tests_name("control-deliver", tests, start, NULL);
}
