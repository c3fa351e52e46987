/* SPDX-License-Identifier: Apache-2.0 */
/* AP-06: snapshots of one key while others want some too. The test is the warden, which is done when the test says so. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "server/changes/changes.h"

#include <poll.h>

#define SANDBOXES 4

static struct server server;
/* Atomic, all of them. */
static int asked_a, asked_b, waiting;
static bool let_go;

/* --- the rest of the server ------------------------------------------------------------------------- */

int link_ask(struct link *l, enum warden_type type, struct warden_frame *request,
	     unsigned timeout_ms, struct warden_reply *ret, int *ret_fd)
{
	(void)l;
	(void)timeout_ms;
	(void)ret_fd;
	assert_int_equal(type, WARDEN_SNAPSHOT);
	(void)__atomic_add_fetch(request->as_SNAPSHOT.id[0] == 'a' ? &asked_a : &asked_b, 1,
				 __ATOMIC_SEQ_CST);
	while (!__atomic_load_n(&let_go, __ATOMIC_SEQ_CST))
		(void)poll(NULL, 0, 10);
	*ret = (struct warden_reply){ 0 };
	return 0;
}

/* In the place of libc's, where our sources call it (the linker's --wrap). */
int __real_pthread_cond_clockwait(pthread_cond_t *c, pthread_mutex_t *m, clockid_t clock,
				  const struct timespec *until);
int __wrap_pthread_cond_clockwait(pthread_cond_t *c, pthread_mutex_t *m, clockid_t clock,
				  const struct timespec *until);

int __wrap_pthread_cond_clockwait(pthread_cond_t *c, pthread_mutex_t *m, clockid_t clock,
				  const struct timespec *until)
{
	(void)__atomic_add_fetch(&waiting, 1, __ATOMIC_SEQ_CST);
	return __real_pthread_cond_clockwait(c, m, clock, until);
}

void server_log(struct server *s, const char *level, const char *event, json_t *fields)
{
	(void)s;
	(void)level;
	(void)event;
	json_decref(fields);
}

int store_layer_users(struct store *s, const char *layer, size_t *ret_n)
{
	(void)s;
	(void)layer;
	*ret_n = 1;
	return 0;
}

int orphans_spare(const char layer[static WARDEN_ID_SIZE])
{
	(void)layer;
	return 0;
}

int sandbox_save(struct sandbox *b)
{
	(void)b;
	return 0;
}

void problem_fill(struct problem *p, unsigned status, const char *code, const char *fmt, ...)
{
	(void)code;
	(void)fmt;
	p->status = status;
}

void problem_fill_warden(struct problem *p, const struct warden_reply *reply, const char *what)
{
	(void)reply;
	(void)what;
	p->status = 500;
}

void problem_fill_internal(struct problem *p, int r, const char *what)
{
	(void)r;
	(void)what;
	p->status = 500;
}

/* --- the test's own --------------------------------------------------------------------------------- */

static bool becomes(const int *count, int value)
{
	for (int ms = 10000; ms > 0 && __atomic_load_n(count, __ATOMIC_SEQ_CST) != value; ms -= 10)
		(void)poll(NULL, 0, 10);
	return __atomic_load_n(count, __ATOMIC_SEQ_CST) == value;
}

static void *keep(void *arg)
{
	char layer[WARDEN_ID_SIZE];
	struct problem p = { 0 };

	return change_snapshot(arg, layer, &p) < 0 ? arg : NULL;
}

static void begin(struct sandbox *b, const char *id, pthread_t *ret)
{
	*b = (struct sandbox){ .server = &server };
	assert_int_equal(pthread_mutex_init(&b->lock, NULL), 0);
	(void)snprintf(b->info.id, sizeof(b->info.id), "%s", id);
	(void)snprintf(b->info.key_id, sizeof(b->info.key_id), "key_%c", id[0]);
	assert_int_equal(pthread_create(ret, NULL, keep, b), 0);
}

static void end(struct sandbox *b, pthread_t thread)
{
	void *failed;

	assert_int_equal(pthread_join(thread, &failed), 0);
	assert_null(failed);
	json_decref(b->info.config);
	(void)pthread_mutex_destroy(&b->lock);
}

/* Half of what the warden makes at once is the most that a key has; the rest of his wait. */
static void test_share(void **state)
{
	struct sandbox of_a[SANDBOXES], of_b;
	pthread_t threads[SANDBOXES], thread;

	(void)state;
	for (size_t i = 0; i < SANDBOXES; i++)
		begin(&of_a[i], (const char *[]){ "a0", "a1", "a2", "a3" }[i], &threads[i]);
	assert_true(becomes(&waiting, 2));
	assert_true(becomes(&asked_a, 2));
	begin(&of_b, "b0", &thread);
	assert_true(becomes(&asked_b, 1));
	assert_int_equal(__atomic_load_n(&asked_a, __ATOMIC_SEQ_CST), 2);
	__atomic_store_n(&let_go, true, __ATOMIC_SEQ_CST);
	for (size_t i = 0; i < SANDBOXES; i++)
		end(&of_a[i], threads[i]);
	end(&of_b, thread);
	assert_int_equal(asked_a, SANDBOXES);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_share) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
