/* SPDX-License-Identifier: Apache-2.0 */
/* How many connections come in through a box's door, when descriptors or connections are few. What a door calls is here. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "egress/door/door.h"
#include "egress/flow/conn.h"

#define KEPT 256 /* that connections do not get, and the door itself */
#define FITTING 20
#define CALLERS 60

#define BOXES 3

static struct egress g;

static struct box {
	char id[WARDEN_ID_SIZE];
	struct sockaddr_un where; /* its door */
	socklen_t len;            /* 0: it is not there yet */
	int caller[CALLERS];
} box[BOXES] = { { .id = "a" }, { .id = "b" }, { .id = "c" } };
static size_t n_boxes, turn;

static void call(struct box *b);

/* --- instead of the other files -------------------------------------------------------------------------------- */

void conn_accepted(struct egress *e, struct net *n, enum egress_door door, int fd)
{
	(void)door;
	fd_close(fd);
	n->n_conns++;
	e->n_conns++;
}

/* A box has to wait: it is the next one's turn. */
uint64_t report(struct egress *e, struct net *n, struct egress_event *event)
{
	(void)n;
	assert_int_equal(event->reason, POLICY_BUSY);
	if (++turn < n_boxes)
		call(&box[turn]);
	else
		e->is_over = true;
	return 0;
}

void conn_end_all(struct egress *e, struct net *n)
{
	(void)e;
	(void)n;
}

void dns_tcp_accepted(struct egress *e, struct net *n, int fd)
{
	(void)e;
	(void)n;
	fd_close(fd);
}

void dns_udp_ready(struct egress *e, struct net *n, int fd)
{
	(void)e;
	(void)n;
	(void)fd;
}

void dns_done(struct egress *e, struct net *n)
{
	(void)e;
	(void)n;
}

void resolve_disown(const struct net *n)
{
	(void)n;
}

void told_done(struct net *n)
{
	(void)n;
}

void apply_done(struct net *n)
{
	(void)n;
}

void say_log(const char *fmt, ...)
{
	(void)fmt;
}

/* ----------------------------------------------------------------------------------------------------------------- */

static int listening(struct sockaddr_un *ret, socklen_t *ret_len)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	*ret = (struct sockaddr_un){ .sun_family = AF_UNIX };
	*ret_len = sizeof(*ret);
	assert_int_equal(bind(fd, (struct sockaddr *)ret, sizeof(ret->sun_family)), 0);
	assert_int_equal(listen(fd, CALLERS), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)ret, ret_len), 0);
	return fd;
}

static void open_box(struct box *b)
{
	struct egress_open o = { .n_doors = 1, .door = { EGRESS_DOOR_PROXY } };
	int door = listening(&b->where, &b->len);

	memcpy(o.id, b->id, sizeof(o.id));
	assert_int_equal(net_open(&g, &o, &door), 0);
	net_find(&g, b->id)->has_policy = true;
}

/* More than may come in. */
static void call(struct box *b)
{
	if (b->len == 0)
		open_box(b);
	for (size_t i = 0; i < CALLERS; i++) {
		b->caller[i] = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
		assert_int_equal(connect(b->caller[i], (struct sockaddr *)&b->where, b->len), 0);
	}
}

/* All of them, one after the other. */
static void call_all(size_t n)
{
	n_boxes = n;
	turn = 0;
	call(&box[0]);
	for (g.is_over = false; !g.is_over;)
		assert_int_equal(loop_turn(&g.loop), 0);
}

static size_t n_conns(const struct box *b)
{
	return net_find(&g, b->id)->n_conns;
}

static int set_up(void **state)
{
	(void)state;
	g = (struct egress){ .conns_max = CALLERS };
	assert_int_equal(loop_open(&g.loop, 1), 0);
	return nets_open(&g);
}

static int tear_down(void **state)
{
	(void)state;
	for (size_t i = 0; i < n_boxes; i++) {
		net_close(&g, box[i].id);
		for (size_t j = 0; j < CALLERS; j++)
			fd_close(box[i].caller[j]);
		box[i].len = 0;
	}
	free(g.nets);
	loop_close(&g.loop);
	return 0;
}

/* Each may come to hold six: two sockets, and a pipe each way that nobody empties. */
static void test_descriptors(void **state)
{
	struct rlimit before;

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	assert_int_equal(setrlimit(RLIMIT_NOFILE,
				   &(struct rlimit){ KEPT + 1 + 6 * FITTING, before.rlim_max }),
			 0);
	free(g.nets);
	assert_int_equal(nets_open(&g), 0);
	call_all(1);
	assert_int_equal(n_conns(&box[0]), FITTING);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
}

/* Whatever two boxes take, the third has its share: a third of the half. */
static void test_shares(void **state)
{
	(void)state;
	g.conns_max = 48;
	for (size_t i = 0; i < BOXES; i++)
		open_box(&box[i]);
	call_all(3);
	assert_int_equal(n_conns(&box[0]), 32); /* all but the shares of the others */
	assert_int_equal(n_conns(&box[1]), 8);
	assert_int_equal(n_conns(&box[2]), 8);
}

/* One that comes when there is nothing left gets a few all the same. */
static void test_late(void **state)
{
	(void)state;
	g.conns_max = 48;
	call_all(2);
	assert_int_equal(n_conns(&box[0]), 48);
	assert_int_equal(n_conns(&box[1]), 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_descriptors, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_shares, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_late, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
