/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Order: first the sockets, then the rules that lead to them, then the routes without which nothing
 * but loopback is tried at all. So there is no moment in which a connection is let go somewhere
 * else, nor one in which it is led to a port that a program in the box could have taken.
 */
#include "box/doors.h"

#include "redirect_data.h"
#include "sys/netns.h"
#include "sys/proc.h"
#include "sys/sock.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/socket.h>

#define BACKLOG 1024
#define PLAIN_TCP "reno" /* every kernel has it, for everybody */

static const struct door_place {
	const char *address;
	uint16_t port;
	uint8_t kind;  /* enum egress_door */
	bool catching; /* only of use with the redirect */
} places[] = {
	{ "127.0.0.1", EGRESS_PROXY_PORT, EGRESS_DOOR_PROXY, false },
	{ "::1", EGRESS_PROXY_PORT, EGRESS_DOOR_PROXY, false },
	{ EGRESS_DNS_ADDRESS, 53, EGRESS_DOOR_DNS_UDP, false },
	{ EGRESS_DNS_ADDRESS, 53, EGRESS_DOOR_DNS_TCP, false },
	{ "127.0.0.1", EGRESS_CATCH_PORT, EGRESS_DOOR_CATCH, true },
	{ "::1", EGRESS_CATCH_PORT, EGRESS_DOOR_CATCH, true },
	{ "127.0.0.1", EGRESS_DNS_PORT, EGRESS_DOOR_DNS_UDP, true },
	{ "127.0.0.1", EGRESS_DNS_PORT, EGRESS_DOOR_DNS_TCP, true },
	{ "::1", EGRESS_DNS_PORT, EGRESS_DOOR_DNS_UDP, true },
	{ "::1", EGRESS_DNS_PORT, EGRESS_DOOR_DNS_TCP, true },
};

_Static_assert(ARRAY_SIZE(places) == EGRESS_DOORS_MAX, "there is a place for each");

/* What the helper says; the descriptors of the places that opened come with it, in their order. */
struct doors_answer {
	int32_t err; /* errno value */
	/* with err: which one could not be opened; ARRAY_SIZE(places): it was something else */
	uint32_t place;
	uint32_t opened;  /* one bit for each place */
	uint32_t catches; /* 0 or 1 */
};

void doors_close(struct doors *d)
{
	for (size_t i = 0; i < d->n; i++)
		fd_close(d->fd[i]);
	*d = (struct doors)DOORS_INIT;
}

static int doors_end_with(pid_t parent)
{
	if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0)
		return -errno;
	return getppid() == parent ? 0 : -ECANCELED;
}

int doors_enter(const struct box *b, const struct doors_helper *h)
{
	if (setns(b->pidfd, CLONE_NEWUSER | CLONE_NEWNET) < 0)
		return -errno;
	/* Which that has undone, if the box's user namespace is not of our user's making. */
	return doors_end_with(h->pid);
}

static socklen_t make_address(const struct door_place *p, struct sockaddr_storage *ret)
{
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)ret;
	struct sockaddr_in *in = (struct sockaddr_in *)ret;

	*ret = (struct sockaddr_storage){ 0 };
	if (inet_pton(AF_INET, p->address, &in->sin_addr) == 1) {
		in->sin_family = AF_INET;
		in->sin_port = htons(p->port);
		return sizeof(*in);
	}
	(void)inet_pton(AF_INET6, p->address, &in6->sin6_addr);
	in6->sin6_family = AF_INET6;
	in6->sin6_port = htons(p->port);
	return sizeof(*in6);
}

static int switch_on(int fd, int level, int option)
{
	const int one = 1;

	return setsockopt(fd, level, option, &one, sizeof(one)) < 0 ? -errno : 0;
}

static int set_options(int fd, const struct door_place *p, bool v6)
{
	bool tcp = p->kind != EGRESS_DOOR_DNS_UDP;
	int r = v6 ? switch_on(fd, IPPROTO_IPV6, IPV6_V6ONLY) : 0;

	/* A program that has just let go of the port leaves connections behind, for a minute. A
	 * port that somebody listens on is refused with it, too; for UDP it would be shared. */
	if (r == 0 && tcp)
		r = switch_on(fd, SOL_SOCKET, SO_REUSEADDR);
	/* Connections to any address may be handed to it. */
	if (r == 0 && tcp && p->catching)
		r = v6 ? switch_on(fd, IPPROTO_IPV6, IPV6_TRANSPARENT) :
			 switch_on(fd, IPPROTO_IP, IP_TRANSPARENT);
	return r;
}

static int open_place(const struct door_place *p)
{
	bool udp = p->kind == EGRESS_DOOR_DNS_UDP;
	struct sockaddr_storage at;
	socklen_t len = make_address(p, &at);
	_cleanup_(fd_closep) int fd = socket(
		at.ss_family, (udp ? SOCK_DGRAM : SOCK_STREAM) | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int r = fd < 0 ? -errno : set_options(fd, p, at.ss_family == AF_INET6);

	if (r < 0)
		return r;
	/* Nothing is ever congested on the way to the box. What senses that by pacing itself (BBR,
	 * where a machine has it as its default) halves the speed. */
	if (!udp)
		(void)setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, PLAIN_TCP, strlen(PLAIN_TCP));
	if (bind(fd, (const struct sockaddr *)&at, len) < 0 || (!udp && listen(fd, BACKLOG) < 0))
		return -errno;
	return take_fd(&fd);
}

/* A machine without IPv6 has no ::1, and nobody in the box could use it either. */
static bool door_is_missing(const struct door_place *p, int err)
{
	return strchr(p->address, ':') && (err == -EAFNOSUPPORT || err == -EADDRNOTAVAIL);
}

static int open_places(struct doors_answer *a, int fds[static EGRESS_DOORS_MAX], size_t *ret_n)
{
	size_t n = 0;

	for (uint32_t i = 0; i < ARRAY_SIZE(places); i++) {
		int fd = open_place(&places[i]);

		if (fd < 0 && door_is_missing(&places[i], fd))
			continue;
		a->place = i;
		if (fd < 0)
			return fd;
		a->opened |= 1u << i;
		fds[n++] = fd;
	}
	a->place = ARRAY_SIZE(places);
	*ret_n = n;
	return 0;
}

/* Without catching, its doors would never be knocked at. */
static size_t drop_catching(struct doors_answer *a, int *fds)
{
	size_t n = 0, kept = 0;

	for (uint32_t i = 0; i < ARRAY_SIZE(places); i++) {
		if (!(a->opened & 1u << i))
			continue;
		if (places[i].catching) {
			a->opened &= ~(1u << i);
			fd_close(fds[n]);
		} else {
			fds[kept++] = fds[n];
		}
		n++;
	}
	return kept;
}

static bool has_ipv6(const struct doors_answer *a)
{
	for (uint32_t i = 0; i < ARRAY_SIZE(places); i++)
		if ((a->opened & 1u << i) && strchr(places[i].address, ':'))
			return true;
	return false;
}

/* Is that the answer of a kernel without one of the parts that it takes, or of a container that
 * forbids it? */
static bool doors_cannot_catch(int err)
{
	return err == -ENOENT || err == -EOPNOTSUPP || err == -EPROTONOSUPPORT ||
	       err == -EAFNOSUPPORT || err == -EPERM;
}

/* In the helper: every connection of this network is led to the doors, although nothing meant them:
 * see tools/mkredirect.c. */
static int doors_catch(bool with_ipv6)
{
	int r = netns_rules(redirect_batch, sizeof(redirect_batch), REDIRECT_ACKS);

	if (r == 0)
		r = netns_route_all_to_lo(AF_INET);
	return r == 0 && with_ipv6 ? netns_route_all_to_lo(AF_INET6) : r;
}

static int make_doors(const struct box *b, const struct doors_helper *h, struct doors_answer *a,
		      int *fds, size_t *n)
{
	int r = doors_enter(b, h);

	a->place = ARRAY_SIZE(places);
	if (r == 0)
		r = open_places(a, fds, n);
	if (r < 0)
		return r;
	r = doors_catch(has_ipv6(a));
	a->catches = r == 0;
	if (!doors_cannot_catch(r))
		return r;
	*n = drop_catching(a, fds);
	return 0;
}

/* In the helper. */
static _noreturn_ void help_open(const struct box *b, const struct doors_helper *h)
{
	int fds[EGRESS_DOORS_MAX];
	struct doors_answer a = { 0 };
	struct iovec part = { .iov_base = &a, .iov_len = sizeof(a) };
	size_t n = 0;
	int r = make_doors(b, h, &a, fds, &n);

	a.err = -r;
	_exit(sock_send(h->sock, &part, 1, fds, r < 0 ? 0 : n) < 0);
}

/* A lock or a listening socket that lived on in a helper would keep the next service from
 * starting. */
static int close_others(int a, int b)
{
	unsigned low = (unsigned)MIN(a, b), high = (unsigned)MAX(a, b);

	if ((low > 3 && syscall(SYS_close_range, 3, low - 1, 0) < 0) ||
	    (high > low + 1 && syscall(SYS_close_range, low + 1, high - 1, 0) < 0) ||
	    syscall(SYS_close_range, high + 1, ~0U, 0) < 0)
		return -errno;
	return 0;
}

pid_t doors_fork(const struct box *b, struct doors_helper *h)
{
	pid_t parent = getpid(), pid;
	int pair[2], r = sock_pair(pair);

	if (r < 0)
		return r;
	pid = proc_clone(0, -EBADF, &h->pidfd);
	if (pid == 0) {
		if (doors_end_with(parent) < 0 || close_others(pair[1], b->pidfd) < 0)
			_exit(1);
		h->sock = pair[1];
		h->pid = parent;
		return 0;
	}
	fd_close(pair[1]);
	if (pid < 0) {
		fd_close(pair[0]);
		return pid;
	}
	h->sock = pair[0];
	h->pid = pid;
	return pid;
}

int doors_start(const struct box *b, struct doors_helper *ret, struct fail *fail)
{
	struct doors_helper h = DOORS_HELPER_INIT;
	pid_t pid = doors_fork(b, &h);

	if (pid == 0)
		help_open(b, &h);
	if (pid < 0)
		return fail_set(fail, -pid, "doors", "cannot start a process: %s", strerror(-pid));
	*ret = h;
	return 0;
}

void doors_done(struct doors_helper *h)
{
	if (h->pid > 0) {
		(void)proc_kill(h->pidfd, SIGKILL);
		while (waitid(P_PIDFD, (id_t)h->pidfd, &(siginfo_t){ 0 }, WEXITED) < 0 &&
		       errno == EINTR)
			;
	}
	h->pid = 0;
	fd_closep(&h->pidfd);
	fd_closep(&h->sock);
}

static int doors_explain(const struct doors_answer *a, struct fail *fail)
{
	if (a->err == EADDRINUSE && a->place < ARRAY_SIZE(places))
		return fail_set(fail, EADDRINUSE, "doors",
				"a program in the sandbox uses port %u at %s, which its network "
				"needs; end it and try again",
				places[a->place].port, places[a->place].address);
	if (a->err == ESRCH)
		return fail_set(fail, ESRCH, "doors", "the sandbox is gone");
	return fail_set(fail, a->err, "doors", "cannot open the sandbox's network: %s",
			strerror(a->err));
}

/* Gives each descriptor its kind. */
static int sort_doors(const struct doors_answer *a, const int *fds, size_t n_fds, struct doors *ret)
{
	struct doors d = DOORS_INIT;

	for (uint32_t i = 0; i < ARRAY_SIZE(places); i++) {
		if (!(a->opened & 1u << i))
			continue;
		if (d.n == n_fds)
			return -EPROTO;
		d.kind[d.n] = places[i].kind;
		d.fd[d.n] = fds[d.n];
		d.n++;
	}
	if (d.n != n_fds)
		return -EPROTO;
	d.catches = a->catches;
	*ret = d;
	return 0;
}

int doors_take(struct doors_helper *h, struct doors *ret, struct fail *fail)
{
	int fds[EGRESS_DOORS_MAX];
	size_t n_fds = ARRAY_SIZE(fds);
	struct doors_answer a = { 0 };
	ssize_t n = sock_recv(h->sock, &a, sizeof(a), fds, &n_fds);
	int r;

	if (n < 0)
		n_fds = 0;
	r = n != (ssize_t)sizeof(a) ? -EIO : a.err ? -a.err : sort_doors(&a, fds, n_fds, ret);
	if (r == 0)
		return 0;
	while (n_fds)
		fd_close(fds[--n_fds]);
	a.err = -r;
	return doors_explain(&a, fail);
}

int doors_open(const struct box *b, struct doors *ret, struct fail *fail)
{
	struct doors_helper h = DOORS_HELPER_INIT;
	int r = doors_start(b, &h, fail);

	if (r == 0)
		r = doors_take(&h, ret, fail);
	doors_done(&h);
	return r;
}

int doors_probe_catching(void)
{
	_cleanup_(fd_closep) int pidfd = -EBADF;
	siginfo_t info = { 0 };
	pid_t pid = proc_clone(CLONE_NEWUSER | CLONE_NEWNET, -EBADF, &pidfd);
	int r;

	if (pid < 0)
		return (int)pid;
	if (pid == 0) {
		r = netns_lo_up();
		if (r == 0)
			r = doors_catch(false);
		_exit(-r); /* an errno fits in an exit status */
	}
	while ((r = waitid(P_PIDFD, (id_t)pidfd, &info, WEXITED)) < 0 && errno == EINTR)
		;
	if (r < 0)
		return -errno;
	return info.si_code == CLD_EXITED ? -info.si_status : -ECHILD;
}

/* --- a socket in a box's network ------------------------------------------------------------- */

/*
 * A visit of our own process, which root can make: ten microseconds where a fork takes half a
 * millisecond and more, for every connection to a port of a box. Nothing but socket() is called
 * over there. A process that could not come back would go on working in a box's network, so it does
 * not go on.
 */
static int visit_socket(const struct box *b, int family)
{
	_cleanup_(fd_closep) int home_fd = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	int fd;

	if (home_fd < 0)
		return -errno;
	if (setns(b->pidfd, CLONE_NEWNET) < 0)
		return -errno;
	fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		fd = -errno;
	if (setns(home_fd, CLONE_NEWNET) < 0)
		abort();
	return fd;
}

static _noreturn_ void help_socket(const struct box *b, int family, const struct doors_helper *h)
{
	int r = doors_enter(b, h), fd = -EBADF;
	int32_t err;
	struct iovec part = { .iov_base = &err, .iov_len = sizeof(err) };

	if (r == 0) {
		fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
		r = fd < 0 ? -errno : 0;
	}
	err = -r;
	_exit(sock_send(h->sock, &part, 1, &fd, r < 0 ? 0 : 1) < 0);
}

static int fetch_socket(const struct box *b, int family)
{
	struct doors_helper h = DOORS_HELPER_INIT;
	_cleanup_(fd_closep) int fd = -EBADF;
	size_t n_fds = 1;
	int32_t err;
	pid_t pid;
	ssize_t n;

	pid = doors_fork(b, &h);
	if (pid == 0)
		help_socket(b, family, &h);
	if (pid < 0)
		return (int)pid;
	n = sock_recv(h.sock, &err, sizeof(err), &fd, &n_fds);
	doors_done(&h);
	if (n != (ssize_t)sizeof(err))
		return n < 0 ? (int)n : -EIO;
	if (n_fds != 1)
		return err > 0 ? -err : -EPROTO;
	return take_fd(&fd);
}

int doors_socket(const struct box *b, int family, int *ret_fd)
{
	int af = family == 6 ? AF_INET6 : AF_INET;
	int fd = visit_socket(b, af);

	/* Without root a process must give up its own user namespace for a box's, for good: that is
	 * for a helper. */
	if (fd == -EPERM)
		fd = fetch_socket(b, af);
	if (fd < 0)
		return fd;
	*ret_fd = fd;
	return 0;
}
