/* SPDX-License-Identifier: Apache-2.0 */
/* The conversation with the warden, who is played by this test on the other end of a socket pair. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "server/sandbox/link.h"
#include "sys/sock.h"

#define ASKERS 16

static struct {
	int boxes, ended, paused;
	_Atomic int lost;
} told;

static void on_box(void *arg, const struct warden_box *box, int control_fd)
{
	(void)arg;
	assert_string_equal(box->id, "ibox");
	assert_true(control_fd >= 0);
	fd_close(control_fd);
	told.boxes++;
}

static void on_ended(void *arg, const struct warden_ended *ended)
{
	(void)arg;
	assert_int_equal(ended->reason, WARDEN_ENDED_TIMEOUT);
	told.ended++;
}

static void on_paused(void *arg, const char *id)
{
	(void)arg;
	(void)id;
	told.paused++;
}

static void on_lost(void *arg)
{
	(void)arg;
	told.lost++;
}

static const struct link_events events = {
	.box = on_box, .ended = on_ended, .paused = on_paused, .lost = on_lost
};

static int pair[2];

static void send_reply(uint64_t request, int32_t err, int fd)
{
	struct warden_frame f = { .head.request = request, .as_REPLY.err = err };

	assert_int_equal(warden_send(pair[1], WARDEN_REPLY, &f, fd), 0);
}

static void receive(struct warden_frame *f, enum warden_type type)
{
	int fd = -EBADF;

	assert_int_equal(warden_recv(pair[1], f, WARDEN_TO_WARDEN, &fd), 1);
	assert_int_equal(f->head.type, type);
	assert_true(fd < 0);
}

/* The warden's part of HELLO, sent before it is asked: the socket keeps it. */
static struct link *open_link(void)
{
	struct warden_frame f = { .as_BOX = { .id = "ibox", .state = 1 } };
	struct warden_frame e = { .as_ENDED = { .id = "iold", .reason = WARDEN_ENDED_TIMEOUT } };
	int fd = eventfd(0, EFD_CLOEXEC);
	struct link *l = NULL;

	memset(&told, 0, sizeof(told));
	assert_int_equal(sock_pair(pair), 0);
	assert_int_equal(warden_send(pair[1], WARDEN_BOX, &f, fd), 0);
	assert_int_equal(warden_send(pair[1], WARDEN_ENDED, &e, -EBADF), 0);
	send_reply(1, 0, -EBADF);
	fd_close(fd);
	assert_int_equal(link_open(pair[0], &events, NULL, &l), 0);
	receive(&f, WARDEN_HELLO);
	assert_int_equal(f.as_HELLO.version, WARDEN_VERSION);
	assert_int_equal(told.boxes, 1);
	assert_int_equal(told.ended, 1);
	assert_int_equal(link_start(l), 0);
	return l;
}

static void close_link(struct link *l)
{
	link_close(l);
	fd_close(pair[0]);
	fd_close(pair[1]);
}

struct asker {
	struct link *link;
	pthread_t thread;
	int number, r, err, fd;
};

static void *ask(void *arg)
{
	struct asker *a = arg;
	struct warden_frame f = { 0 };
	struct warden_reply reply = { 0 };

	(void)snprintf(f.as_KILL.id, sizeof(f.as_KILL.id), "i%d", a->number);
	a->fd = -EBADF;
	a->r = link_ask(a->link, WARDEN_KILL, &f, 10000, &reply, &a->fd);
	a->err = reply.err;
	return NULL;
}

/* Answered in another order than asked: each gets his own. */
static void test_many(void **state)
{
	struct link *l = open_link();
	struct asker askers[ASKERS];
	struct warden_frame f[ASKERS];
	int fd = eventfd(0, EFD_CLOEXEC);

	(void)state;
	for (int i = 0; i < ASKERS; i++) {
		askers[i] = (struct asker){ .link = l, .number = i };
		assert_int_equal(pthread_create(&askers[i].thread, NULL, ask, &askers[i]), 0);
	}
	for (int i = 0; i < ASKERS; i++)
		receive(&f[i], WARDEN_KILL);
	for (int i = ASKERS - 1; i >= 0; i--)
		send_reply(f[i].head.request, f[i].as_KILL.id[1] == '3' ? ENOENT : EBUSY,
			   f[i].as_KILL.id[1] == '3' ? fd : -EBADF);
	for (int i = 0; i < ASKERS; i++) {
		pthread_join(askers[i].thread, NULL);
		assert_int_equal(askers[i].r, 0);
		assert_int_equal(askers[i].err, i == 3 ? ENOENT : EBUSY);
		assert_true((askers[i].fd >= 0) == (i == 3));
		fd_close(askers[i].fd);
	}
	fd_close(fd);
	close_link(l);
}

/* A reply that comes too late finds nobody; its descriptor is closed, and the next one is answered as usual. */
static void test_late(void **state)
{
	struct link *l = open_link();
	struct warden_frame f = { .as_KILL.id = "ilate" };
	struct warden_reply reply;
	struct asker a = { .link = l };
	int ends[2], fd = -EBADF;
	uint64_t late;
	char c;

	(void)state;
	assert_int_equal(link_ask(l, WARDEN_KILL, &f, 20, &reply, &fd), -ETIMEDOUT);
	assert_true(fd < 0);
	receive(&f, WARDEN_KILL);
	late = f.head.request;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
	send_reply(late, 0, ends[1]);
	fd_close(ends[1]);
	assert_int_equal(read(ends[0], &c, 1), 0); /* the last copy is gone */
	fd_close(ends[0]);
	assert_int_equal(pthread_create(&a.thread, NULL, ask, &a), 0);
	receive(&f, WARDEN_KILL);
	assert_true(f.head.request != late);
	send_reply(f.head.request, 0, -EBADF);
	pthread_join(a.thread, NULL);
	assert_int_equal(a.r, 0);
	close_link(l);
}

/* No number is free for a reply's descriptor: it comes without, and the conversation goes on. */
static void test_no_number_free(void **state)
{
	struct link *l = open_link();
	struct asker a = { .link = l };
	struct rlimit full, before;
	struct warden_frame f;
	int highest;

	(void)state;
	assert_int_equal(pthread_create(&a.thread, NULL, ask, &a), 0);
	receive(&f, WARDEN_KILL);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	full = before;
	highest = dup(pair[1]);
	full.rlim_cur = (rlim_t)highest + 1;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &full), 0);
	send_reply(f.head.request, EBUSY, pair[1]);
	pthread_join(a.thread, NULL);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	fd_close(highest);
	assert_int_equal(a.r, 0);
	assert_int_equal(a.err, EBUSY);
	assert_true(a.fd < 0);
	assert_int_equal(pthread_create(&a.thread, NULL, ask, &a), 0);
	receive(&f, WARDEN_KILL);
	send_reply(f.head.request, 0, pair[1]);
	pthread_join(a.thread, NULL);
	assert_int_equal(a.r, 0);
	assert_true(a.fd >= 0);
	fd_close(a.fd);
	assert_int_equal(told.lost, 0);
	close_link(l);
}

/* Everybody who waits hears of the warden's death at once, and everybody who asks later too. */
static void test_lost(void **state)
{
	struct link *l = open_link();
	struct asker a = { .link = l };
	struct warden_frame f;

	(void)state;
	assert_int_equal(pthread_create(&a.thread, NULL, ask, &a), 0);
	receive(&f, WARDEN_KILL);
	(void)shutdown(pair[1], SHUT_RDWR);
	pthread_join(a.thread, NULL);
	assert_int_equal(a.r, -ENOTCONN);
	(void)ask(&a);
	assert_true(a.r < 0);
	for (int i = 0; i < 6000 && told.lost == 0; i++)
		(void)poll(NULL, 0, 10);
	assert_int_equal(told.lost, 1);
	close_link(l);
}

/* One who does not speak the protocol is as good as gone. */
static void test_nonsense(void **state)
{
	struct link *l = open_link();

	(void)state;
	assert_int_equal(send(pair[1], "nonsense", 8, 0), 8);
	for (int i = 0; i < 6000 && told.lost == 0; i++)
		(void)poll(NULL, 0, 10);
	assert_int_equal(told.lost, 1);
	close_link(l);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_many),           cmocka_unit_test(test_late),
		cmocka_unit_test(test_no_number_free), cmocka_unit_test(test_lost),
		cmocka_unit_test(test_nonsense),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
