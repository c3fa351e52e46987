/* SPDX-License-Identifier: Apache-2.0 */
/* How many connections come in through a box's door, when descriptors are few. What a door calls is here. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "egress/core.h"

#define KEPT 256 /* that connections do not get, and the door itself */
#define FITTING 20
#define CALLERS 60

static struct egress g;
static size_t n_accepted;

/* --- instead of the other files -------------------------------------------------------------------------------- */

void conn_accepted(struct egress *e, struct net *n, enum egress_door door, int fd)
{
	(void)door;
	fd_close(fd);
	n->n_conns++;
	e->n_conns++;
	n_accepted++;
}

uint64_t report(struct egress *e, struct net *n, struct egress_event *event)
{
	(void)n;
	assert_int_equal(event->reason, POLICY_BUSY);
	loop_stop(e, 0);
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

void talk_log(const char *fmt, ...)
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

/* Each may come to hold six: two sockets, and a pipe each way that nobody empties. */
static void test_descriptors(void **state)
{
	struct egress_open o = { .id = "box", .n_doors = 1, .door = { EGRESS_DOOR_PROXY } };
	int caller[CALLERS], door;
	struct sockaddr_un where;
	struct rlimit before;
	socklen_t len;

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	assert_int_equal(setrlimit(RLIMIT_NOFILE,
				   &(struct rlimit){ KEPT + 1 + 6 * FITTING, before.rlim_max }),
			 0);
	assert_int_equal(loop_open(&g), 0);
	assert_int_equal(nets_open(&g), 0);
	g.conns_max = CALLERS;
	door = listening(&where, &len);
	assert_int_equal(net_open(&g, &o, &door), 0);
	net_find(&g, "box")->has_policy = true;
	for (size_t i = 0; i < CALLERS; i++) {
		caller[i] = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
		assert_int_equal(connect(caller[i], (struct sockaddr *)&where, len), 0);
	}
	(void)loop_run(&g);
	assert_int_equal(n_accepted, FITTING);
	net_close(&g, "box");
	for (size_t i = 0; i < CALLERS; i++)
		fd_close(caller[i]);
	free(g.nets);
	loop_close(&g);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_descriptors) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
