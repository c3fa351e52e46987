/* SPDX-License-Identifier: Apache-2.0 */
/* Egress' conversations: the test is warden and server, and what egress knows of boxes is left out. */
#include "egress/door/door.h"
#include "egress/start.h"

#include "sys/sock.h"

#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define WAIT_MS 60000

static struct net box = { .id = "i1" };

/* --- the rest of egress --------------------------------------------------------------------------------------- */

struct net *net_find(struct egress *g, const char *id)
{
	(void)g;
	return strcmp(id, box.id) == 0 ? &box : NULL;
}

int net_open(struct egress *g, const struct egress_open *o, const int *fds)
{
	(void)g;
	(void)o;
	(void)fds;
	return -EOPNOTSUPP;
}

void net_close(struct egress *g, const char *id)
{
	(void)g;
	(void)id;
}

void apply_begin(struct net *n, const struct egress_policy *p)
{
	(void)n;
	(void)p;
}

void apply_use(struct net *n, const struct egress_use *u)
{
	(void)n;
	(void)u;
}

void apply_rule(struct net *n, const struct egress_rule *r)
{
	(void)n;
	(void)r;
}

void apply_header(struct net *n, const struct egress_header *h)
{
	(void)n;
	(void)h;
}

int apply_commit(struct egress *g, struct net *n, uint32_t *ret_cut)
{
	(void)g;
	(void)n;
	*ret_cut = 3;
	return 0;
}

int apply_operator(struct egress *g, int fd, struct fail *fail)
{
	(void)g;
	(void)fd;
	(void)fail;
	return 0;
}

int __real_egress_send(int sock, enum egress_type type, struct egress_frame *f, const int *fds,
		       size_t n_fds);
int __wrap_egress_send(int sock, enum egress_type type, struct egress_frame *f, const int *fds,
		       size_t n_fds);

static int fail_answer; /* errno value: the next answer meets this; atomic */

int __wrap_egress_send(int sock, enum egress_type type, struct egress_frame *f, const int *fds,
		       size_t n_fds)
{
	int err = type == EGRESS_APPLIED ? __atomic_exchange_n(&fail_answer, 0, __ATOMIC_SEQ_CST) :
					   0;

	return err ? -err : __real_egress_send(sock, type, f, fds, n_fds);
}

/* --- both ends ------------------------------------------------------------------------------------------------ */

static struct egress egress;
static int warden, server;
static pthread_t thread;

static void *talk(void *arg)
{
	(void)arg;
	while (!egress.is_over)
		assert_int_equal(loop_turn(&egress.loop), 0);
	return (void *)(intptr_t)egress.status;
}

static int start(void **state)
{
	struct egress_frame f = { 0 };
	int to_warden[2], to_server[2];

	(void)state;
	egress = (struct egress){ 0 };
	assert_int_equal(sock_pair(to_warden), 0);
	assert_int_equal(sock_pair(to_server), 0);
	warden = to_warden[0];
	server = to_server[0];
	assert_int_equal(loop_open(&egress.loop, 1), 0);
	assert_int_equal(talk_open(&egress, to_warden[1]), 0);
	assert_int_equal(egress_send(warden, EGRESS_SERVER, &f, &to_server[1], 1), 0);
	fd_close(to_server[1]);
	return pthread_create(&thread, NULL, talk, NULL);
}

/* It ends when the warden does. */
static int stop(void **state)
{
	void *status;

	(void)state;
	fd_close(warden);
	assert_int_equal(pthread_join(thread, &status), 0);
	assert_ptr_equal(status, NULL);
	fd_close(server);
	loop_close(&egress.loop);
	return 0;
}

static void say(enum egress_type type, const char *id)
{
	struct egress_frame f = { 0 };

	(void)snprintf(f.as_COMMIT.id, sizeof(f.as_COMMIT.id), "%s", id);
	assert_int_equal(egress_send(server, type, &f, NULL, 0), 0);
}

static void expect_answer(const char *id, int err)
{
	struct pollfd p = { .fd = server, .events = POLLIN };
	struct egress_frame f;

	assert_int_equal(poll(&p, 1, WAIT_MS), 1);
	assert_int_equal(egress_recv(server, &f, EGRESS_FROM_EGRESS, NULL, NULL), 1);
	assert_int_equal(f.head.type, EGRESS_APPLIED);
	assert_string_equal(f.as_APPLIED.id, id);
	assert_int_equal(f.as_APPLIED.err, err);
}

/* The kernel has no memory for an answer: it comes later, and what follows is heard. */
static void test_no_memory(void **state)
{
	static const int errors[] = { ENOBUFS, ENOMEM, EAGAIN };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(errors); i++) {
		__atomic_store_n(&fail_answer, errors[i], __ATOMIC_SEQ_CST);
		say(EGRESS_COMMIT, "i1");
		say(EGRESS_COMMIT, "nobody");
		expect_answer("i1", 0);
		expect_answer("nobody", ENOENT);
	}
}

/* What was used before counts; what egress itself has counted is not forgotten. */
static void test_used(void **state)
{
	struct egress_frame f = { .as_POLICY = { .id = "i1",
						 .limits = { .used_up = 100, .used_down = 5 } } };

	(void)state;
	box.bytes_up = 0;
	box.bytes_down = 50;
	assert_int_equal(egress_send(server, EGRESS_POLICY, &f, NULL, 0), 0);
	say(EGRESS_COMMIT, "i1");
	expect_answer("i1", 0);
	assert_int_equal(box.bytes_up, 100);
	assert_int_equal(box.bytes_down, 50);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_no_memory, start, stop),
		cmocka_unit_test_setup_teardown(test_used, start, stop),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
