/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Doors of a network namespace: what is led to them, what is left alone, what nobody else can reach. A process in
 * namespaces of its own stands in the place of a box's agent.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>

#include "base/parse.h"
#include "box/doors.h"
#include "sys/netns.h"
#include "sys/proc.h"

static void write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd < 0 || write(fd, text, strlen(text)) < 0)
		_exit(1);
	(void)close(fd);
}

/* Its own ids, as everybody may have them; `lo` up, as in a box. */
static _noreturn_ void be_agent(int ready_fd, uid_t uid, gid_t gid)
{
	char text[64];

	if (uid != geteuid() && (seteuid(uid) < 0 || prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) < 0))
		_exit(1);
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	if (unshare(CLONE_NEWUSER | CLONE_NEWNET) < 0)
		_exit(1);
	write_file("/proc/self/setgroups", "deny");
	(void)snprintf(text, sizeof(text), "0 %u 1\n", uid);
	write_file("/proc/self/uid_map", text);
	(void)snprintf(text, sizeof(text), "0 %u 1\n", gid);
	write_file("/proc/self/gid_map", text);
	if (netns_lo_up() < 0 || write(ready_fd, "", 1) != 1)
		_exit(1);
	for (;;)
		(void)pause();
}

static struct box make_box_of(uid_t uid)
{
	struct box b = BOX_INIT;
	gid_t gid = getegid();
	char byte;
	int ready[2];

	assert_return_code(pipe2(ready, O_CLOEXEC), errno);
	b.pid = proc_clone(0, -EBADF, &b.pidfd);
	assert_true(b.pid >= 0);
	if (b.pid == 0)
		be_agent(ready[1], uid, gid);
	fd_close(ready[1]);
	if (read(ready[0], &byte, 1) != 1) {
		print_message("# no user namespaces here\n");
		skip();
	}
	fd_close(ready[0]);
	return b;
}

static struct box make_box(void)
{
	return make_box_of(geteuid());
}

static void end_box(struct box *b)
{
	(void)proc_kill(b->pidfd, SIGKILL);
	(void)waitid(P_PIDFD, (id_t)b->pidfd, &(siginfo_t){ 0 }, WEXITED);
	fd_closep(&b->pidfd);
}

static struct doors open_doors(const struct box *b)
{
	struct doors d = DOORS_INIT;
	struct fail fail = { 0 };

	if (doors_open(b, &d, &fail) < 0)
		fail_msg("%s", fail.msg);
	return d;
}

/* The nth door of that kind. */
static int door_of(const struct doors *d, enum egress_door kind, unsigned nth)
{
	for (size_t i = 0; i < d->n; i++)
		if (d->kind[i] == kind && nth-- == 0)
			return d->fd[i];
	return -EBADF;
}

static socklen_t address(const char *text, uint16_t port, struct sockaddr_storage *ret)
{
	struct sockaddr_in *in = (struct sockaddr_in *)ret;
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)ret;

	memset(ret, 0, sizeof(*ret));
	if (inet_pton(AF_INET, text, &in->sin_addr) == 1) {
		in->sin_family = AF_INET;
		in->sin_port = htons(port);
		return sizeof(*in);
	}
	assert_int_equal(inet_pton(AF_INET6, text, &in6->sin6_addr), 1);
	in6->sin6_family = AF_INET6;
	in6->sin6_port = htons(port);
	return sizeof(*in6);
}

static bool readable(int fd)
{
	return poll(&(struct pollfd){ .fd = fd, .events = POLLIN }, 1, 500) == 1;
}

/* Connects from inside: a descriptor, or -errno. */
static int connect_from(const struct box *b, const char *to, uint16_t port)
{
	struct sockaddr_storage at;
	socklen_t len = address(to, port, &at);
	int fd = -EBADF;

	assert_int_equal(doors_socket(b, at.ss_family == AF_INET6 ? 6 : 4, &fd), 0);
	if (connect(fd, (struct sockaddr *)&at, len) == 0)
		return fd;
	len = (socklen_t)errno;
	fd_close(fd);
	return -(int)len;
}

static void expect_caught(const struct box *b, int door, const char *to, uint16_t port)
{
	struct sockaddr_storage want, got = { 0 };
	socklen_t len = address(to, port, &want), got_len = sizeof(got);
	bool v6 = want.ss_family == AF_INET6;
	int fd = connect_from(b, to, port), accepted;

	assert_true(fd >= 0);
	assert_true(readable(door));
	accepted = accept4(door, NULL, NULL, SOCK_CLOEXEC);
	assert_true(accepted >= 0);
	assert_return_code(getsockname(accepted, (struct sockaddr *)&got, &got_len), errno);
	/* The port, then the address: behind them the kernel may leave what it likes. */
	assert_memory_equal((char *)&got + 2, (char *)&want + 2, v6 ? 2 : 6);
	if (v6)
		assert_memory_equal(&((struct sockaddr_in6 *)&got)->sin6_addr,
				    &((struct sockaddr_in6 *)&want)->sin6_addr, 16);
	assert_true(len <= got_len);
	/* Both ways. */
	assert_int_equal(write(fd, "to", 2), 2);
	assert_true(readable(accepted));
	assert_int_equal(write(accepted, "back", 4), 4);
	assert_true(readable(fd));
	fd_close(accepted);
	fd_close(fd);
}

static void test_catches(void **state)
{
	struct box b = make_box();
	struct doors d = open_doors(&b);

	(void)state;
	if (!d.catches) {
		print_message("# the kernel has no nf_tables\n");
		skip();
	}
	assert_int_equal(d.n, EGRESS_DOORS_MAX);
	expect_caught(&b, door_of(&d, EGRESS_DOOR_CATCH, 0), "192.0.2.1", 80);
	expect_caught(&b, door_of(&d, EGRESS_DOOR_CATCH, 0), "10.1.2.3", 22);
	expect_caught(&b, door_of(&d, EGRESS_DOOR_CATCH, 0), "169.254.169.254", 65535);
	expect_caught(&b, door_of(&d, EGRESS_DOOR_CATCH, 1), "2001:db8::1", 443);
	expect_caught(&b, door_of(&d, EGRESS_DOOR_CATCH, 1), "fd00::1", 443);
	expect_caught(&b, door_of(&d, EGRESS_DOOR_DNS_TCP, 1), "192.0.2.53", 53);
	expect_caught(&b, door_of(&d, EGRESS_DOOR_DNS_TCP, 2), "2001:db8::53", 53);
	doors_close(&d);
	end_box(&b);
}

/* A connection to a door's own port is that, and one to another port of loopback is nobody's business. */
static void test_loopback_is_left_alone(void **state)
{
	struct box b = make_box();
	struct doors d = open_doors(&b);
	static const struct {
		const char *address;
		uint16_t port;
		enum egress_door kind;
		unsigned nth;
	} doors[] = {
		{ "127.0.0.1", EGRESS_PROXY_PORT, EGRESS_DOOR_PROXY, 0 },
		{ "::1", EGRESS_PROXY_PORT, EGRESS_DOOR_PROXY, 1 },
		{ EGRESS_DNS_ADDRESS, 53, EGRESS_DOOR_DNS_TCP, 0 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(doors); i++) {
		int fd = connect_from(&b, doors[i].address, doors[i].port);

		assert_true(fd >= 0);
		assert_true(readable(door_of(&d, doors[i].kind, doors[i].nth)));
		fd_close(fd);
	}
	assert_int_equal(connect_from(&b, "127.0.0.1", 80), -ECONNREFUSED);
	assert_int_equal(connect_from(&b, "127.0.0.1", 53), -ECONNREFUSED);
	assert_int_equal(connect_from(&b, "127.255.255.254", 443), -ECONNREFUSED);
	assert_int_equal(connect_from(&b, "::1", 443), -ECONNREFUSED);
	doors_close(&d);
	end_box(&b);
}

/* Runs it in the box's namespaces; what it returns fits in an exit status. */
static int inside(const struct box *b, int (*what)(const void *), const void *arg)
{
	int status = 0;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		if (setns(b->pidfd, CLONE_NEWUSER | CLONE_NEWNET) < 0)
			_exit(255);
		_exit(what(arg));
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

struct question {
	const char *to;
	uint16_t port;
	int door; /* answers it; -EBADF: nobody does */
};

/* Sends a datagram and waits for the answer, which must come from whom it was sent to: 0 or errno. */
static int ask_udp(const void *arg)
{
	const struct question *q = arg;
	const struct timeval patience = { .tv_sec = 2 };
	struct sockaddr_storage at, from;
	socklen_t len = address(q->to, q->port, &at), from_len = sizeof(from);
	int fd = socket(at.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	char text[8];
	ssize_t n;

	(void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	if (connect(fd, (struct sockaddr *)&at, len) < 0 || send(fd, "who?", 4, 0) != 4)
		return errno;
	if (q->door >= 0) {
		if (!readable(q->door))
			return ETIMEDOUT;
		n = recvfrom(q->door, text, sizeof(text), 0, (struct sockaddr *)&from, &from_len);
		if (n != 4 || sendto(q->door, "me", 2, 0, (struct sockaddr *)&from, from_len) != 2)
			return EIO;
	}
	n = recv(fd, text, sizeof(text), 0);
	return n < 0 ? errno : n == 2 ? 0 : EIO;
}

static void test_datagrams(void **state)
{
	struct box b = make_box();
	struct doors d = open_doors(&b);
	const int door = door_of(&d, EGRESS_DOOR_DNS_UDP, 0);
	const int v4 = door_of(&d, EGRESS_DOOR_DNS_UDP, 1);
	const int v6 = door_of(&d, EGRESS_DOOR_DNS_UDP, 2);

	(void)state;
	assert_int_equal(inside(&b, ask_udp, &(struct question){ EGRESS_DNS_ADDRESS, 53, door }),
			 0);
	if (d.catches) {
		assert_int_equal(inside(&b, ask_udp, &(struct question){ "192.0.2.53", 53, v4 }),
				 0);
		assert_int_equal(inside(&b, ask_udp, &(struct question){ "2001:db8::53", 53, v6 }),
				 0);
		/* NW-19: anything else ends here, and says so at once. */
		assert_int_equal(inside(&b, ask_udp,
					&(struct question){ "192.0.2.1", 443, -EBADF }),
				 ECONNREFUSED);
		assert_int_equal(inside(&b, ask_udp,
					&(struct question){ "2001:db8::1", 443, -EBADF }),
				 ECONNREFUSED);
	}
	assert_int_equal(inside(&b, ask_udp, &(struct question){ "127.0.0.1", 53, -EBADF }),
			 ECONNREFUSED);
	doors_close(&d);
	end_box(&b);
}

static int listen_at(const struct box *b, const char *text, uint16_t port)
{
	struct sockaddr_storage at;
	socklen_t len = address(text, port, &at);
	int fd = -EBADF;

	assert_int_equal(doors_socket(b, 4, &fd), 0);
	assert_return_code(bind(fd, (struct sockaddr *)&at, len), errno);
	assert_return_code(listen(fd, 1), errno);
	return fd;
}

static void test_port_is_taken(void **state)
{
	struct box b = make_box();
	struct doors d = DOORS_INIT;
	struct fail fail = { 0 };
	int fd = listen_at(&b, "0.0.0.0", EGRESS_CATCH_PORT);

	(void)state;
	assert_int_equal(doors_open(&b, &d, &fail), -EADDRINUSE);
	assert_non_null(strstr(fail.msg, "3129"));
	/* Nothing is left of the attempt: neither a door nor a route. */
	assert_int_equal(connect_from(&b, "127.0.0.1", EGRESS_PROXY_PORT), -ECONNREFUSED);
	assert_int_equal(connect_from(&b, "192.0.2.1", 80), -ENETUNREACH);
	fd_close(fd);
	d = open_doors(&b);
	doors_close(&d);
	end_box(&b);
}

#define TRACKED_MAX 4096
#define FLOOD 6000

/* How much the kernel remembers of this network, in thousands rounded up; 255 when it does not say. */
static int tracked(const void *arg)
{
	_cleanup_(fd_closep) int fd =
		open("/proc/sys/net/netfilter/nf_conntrack_count", O_RDONLY | O_CLOEXEC);
	char text[32] = { 0 };
	uint64_t n;

	(void)arg;
	if (fd < 0 || read(fd, text, sizeof(text) - 1) <= 0)
		return 255;
	text[strcspn(text, "\n")] = '\0';
	if (parse_u64(text, &n) < 0)
		return 255;
	return (int)MIN((n + 999) / 1000, UINT64_C(254));
}

/* Asks thousands of foreign resolvers: 0 when some could not be asked any more. */
static int flood(const void *arg)
{
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), refused = 0;
	struct sockaddr_storage at;

	(void)arg;
	for (unsigned i = 0; i < FLOOD; i++) {
		socklen_t len = address("10.0.0.0", 53, &at);

		((struct sockaddr_in *)&at)->sin_addr.s_addr |= htonl(i + 1);
		refused += sendto(fd, "x", 1, 0, (struct sockaddr *)&at, len) < 0;
	}
	return refused < FLOOD - TRACKED_MAX;
}

/* NW-22: what nobody is charged for is little. */
static void test_kernel_remembers_little(void **state)
{
	struct box b = make_box();
	struct doors d = open_doors(&b);
	int fd;

	(void)state;
	if (!d.catches || inside(&b, tracked, NULL) == 255) {
		print_message("# nothing is caught here, or the kernel does not say\n");
		skip();
	}
	for (int i = 0; i < 50; i++) {
		fd = connect_from(&b, "192.0.2.1", (uint16_t)(i + 1000));
		assert_true(fd >= 0);
		fd_close(fd);
		fd = connect_from(&b, "127.0.0.1", EGRESS_PROXY_PORT);
		assert_true(fd >= 0);
		fd_close(fd);
	}
	assert_int_equal(inside(&b, tracked, NULL), 0);
	assert_int_equal(inside(&b, flood, NULL), 0);
	assert_in_range(inside(&b, tracked, NULL), 1, (TRACKED_MAX + 999) / 1000);
	doors_close(&d);
	end_box(&b);
}

/* NW-20 */
static void test_doors_are_of_one_box(void **state)
{
	struct box b = make_box(), other = make_box();
	struct doors d = open_doors(&b);

	(void)state;
	assert_int_equal(connect_from(&other, "127.0.0.1", EGRESS_PROXY_PORT), -ECONNREFUSED);
	assert_int_equal(connect_from(&other, "192.0.2.1", 80), -ENETUNREACH);
	assert_int_equal(connect_from(&other, "2001:db8::1", 80), -ENETUNREACH);
	doors_close(&d);
	end_box(&other);
	end_box(&b);
}

static void test_box_is_gone(void **state)
{
	struct box b = make_box();
	struct doors d = DOORS_INIT;
	struct fail fail = { 0 };
	int fd;

	(void)state;
	(void)proc_kill(b.pidfd, SIGKILL);
	(void)waitid(P_PIDFD, (id_t)b.pidfd, &(siginfo_t){ 0 }, WEXITED);
	assert_int_equal(doors_open(&b, &d, &fail), -ESRCH);
	assert_int_equal(doors_socket(&b, 4, &fd), -ESRCH);
	fd_closep(&b.pidfd);
}

/* Whatever is done over there, we stay here. */
static void test_we_stay_here(void **state)
{
	struct box b = make_box();
	char before[64] = { 0 }, after[64] = { 0 };
	int fd = -EBADF;

	(void)state;
	assert_true(readlink("/proc/thread-self/ns/net", before, sizeof(before) - 1) > 0);
	for (int i = 0; i < 100; i++) {
		assert_int_equal(doors_socket(&b, i % 2 ? 4 : 6, &fd), 0);
		fd_close(fd);
	}
	assert_true(readlink("/proc/thread-self/ns/net", after, sizeof(after) - 1) > 0);
	assert_string_equal(before, after);
	end_box(&b);
}

struct state_inside {
	int err;
	int end_signal; /* that it gets when its parent ends */
	int fds;
};

static _noreturn_ void look_inside(const struct box *b, const struct doors_helper *h)
{
	struct state_inside s = { .err = doors_enter(b, h) };

	(void)prctl(PR_GET_PDEATHSIG, &s.end_signal, 0, 0, 0);
	for (int fd = 3; fd < 1024; fd++)
		s.fds += fcntl(fd, F_GETFD) >= 0;
	_exit(write(h->sock, &s, sizeof(s)) != sizeof(s));
}

/* The helper ends with us even in a box that somebody else has made, and has nothing of ours but what it needs. */
static void test_helper_is_nobodys(void **state)
{
	struct doors_helper h = DOORS_HELPER_INIT;
	struct state_inside s = { .err = -1 };
	struct box b;

	(void)state;
	if (geteuid() != 0)
		skip(); /* only root may become others */
	b = make_box_of(12345);
	if (doors_fork(&b, &h) == 0)
		look_inside(&b, &h);
	assert_int_equal(read(h.sock, &s, sizeof(s)), sizeof(s));
	doors_done(&h);
	assert_int_equal(s.err, 0);
	assert_int_equal(s.end_signal, SIGKILL);
	assert_int_equal(s.fds, 2); /* the box's pidfd and the socket */
	end_box(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_catches),
		cmocka_unit_test(test_loopback_is_left_alone),
		cmocka_unit_test(test_datagrams),
		cmocka_unit_test(test_port_is_taken),
		cmocka_unit_test(test_kernel_remembers_little),
		cmocka_unit_test(test_doors_are_of_one_box),
		cmocka_unit_test(test_box_is_gone),
		cmocka_unit_test(test_we_stay_here),
		cmocka_unit_test(test_helper_is_nobodys),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
