/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The zygote's only loop. It waits for two things: an order of the warden, and the end of a
 * context, which it tells the context's agent. It reads nothing from anybody else and never gives
 * an answer but when something went wrong.
 */
#include "zygote/zygote.h"

#include "wire/wire.h"
#include "zygote/zygote_priv.h"

#include <linux/capability.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define CONTEXTS_MAX 16384
#define REAP_MAX 64 /* before the warden is listened to again */

/* Exported to the interpreter; everything else is hidden. */
#define PUBLIC __attribute__((visibility("default")))

static struct {
	pid_t pid;
	int status_fd;
} contexts[CONTEXTS_MAX];
static size_t n_contexts;

static void zygote_say(int sock, const struct zygote_said *said)
{
	/* The warden reads; if it does not, it is better not to wait for it. */
	(void)send(sock, said, sizeof(*said), MSG_DONTWAIT | MSG_NOSIGNAL);
}

void zygote_fail(const struct walk *w, enum zygote_step step, int err)
{
	const struct zygote_said said = {
		.what = ZYGOTE_FAILED,
		.err = -err,
		.step = step,
	};

	zygote_say(w->sock, &said);
}

static struct wire_exit exit_of(const siginfo_t *info)
{
	if (info->si_code == CLD_EXITED)
		return (struct wire_exit){ .code = info->si_status };
	return (struct wire_exit){
		.code = -1,
		.signal = info->si_status,
		.core = info->si_code == CLD_DUMPED,
	};
}

static void context_ended(const siginfo_t *info)
{
	const struct wire_exit end = exit_of(info);

	for (size_t i = 0; i < n_contexts; i++) {
		if (contexts[i].pid != info->si_pid)
			continue;
		(void)!write(contexts[i].status_fd, &end, sizeof(end)); /* into an empty pipe */
		(void)close(contexts[i].status_fd);
		contexts[i] = contexts[--n_contexts];
		return;
	}
}

/* At once: a box whose processes are not waited for does not end. But however many end, nobody's
 * order waits for them all. True: there may be more, of which no signal tells. */
static bool reap_contexts(int signal_fd)
{
	struct signalfd_siginfo ignored;

	while (read(signal_fd, &ignored, sizeof(ignored)) > 0)
		;
	for (int i = 0; i < REAP_MAX; i++) {
		siginfo_t info = { 0 };

		if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG) < 0 || info.si_pid == 0)
			return false;
		context_ended(&info);
	}
	return true;
}

static size_t fds_expected(const struct zygote_enter *q)
{
	return walk_own_fds(q) + (size_t)__builtin_popcount(q->namespaces) +
	       !!(q->flags & ZYGOTE_ENTER_BORN) + q->n_join;
}

static bool order_ok(const struct walk *w, ssize_t n)
{
	const uint32_t needed = 1u << ZYGOTE_NS_USER | 1u << ZYGOTE_NS_PID | 1u << ZYGOTE_NS_MNT;

	return n == (ssize_t)sizeof(w->request) && w->request.n_join <= ZYGOTE_JOIN_MAX &&
	       w->request.namespaces < 1u << _ZYGOTE_NS_MAX &&
	       (w->request.namespaces & needed) == needed && w->n_fds == fds_expected(&w->request);
}

/* true: this is the context. */
static bool obey(struct walk *w)
{
	if (n_contexts == CONTEXTS_MAX)
		zygote_fail(w, ZYGOTE_STEP_FULL, -EAGAIN);
	else if (zygote_walk(w))
		return true;
	if (w->child) {
		contexts[n_contexts].pid = w->child;
		contexts[n_contexts++].status_fd = take_fd(&w->fd[ZYGOTE_FD_STATUS]);
	}
	return false;
}

/* 1: this is a context; 0: go on; -EPIPE: the warden has hung up. */
static int take_order(struct walk *w)
{
	bool context = false;
	ssize_t n;

	w->child = 0;
	w->n_fds = ARRAY_SIZE(w->fd);
	n = sock_recv(w->sock, &w->request, sizeof(w->request), w->fd, &w->n_fds);
	if (n == -EMFILE) {
		zygote_fail(w, ZYGOTE_STEP_REQUEST, -EMFILE); /* the next one may find a place */
		return 0;
	}
	if (n <= 0)
		return n == 0 ? -EPIPE : (int)n;
	if (order_ok(w, n))
		context = obey(w);
	else
		zygote_fail(w, ZYGOTE_STEP_REQUEST, -EPROTO);
	if (context)
		return 1;
	for (size_t i = 0; i < w->n_fds; i++)
		fd_closep(&w->fd[i]);
	return 0;
}

static uint64_t all_capabilities(void)
{
	uint64_t all = 0;

	for (unsigned long cap = 0; cap <= 63 && prctl(PR_CAPBSET_READ, cap, 0, 0, 0) >= 0; cap++)
		all |= UINT64_C(1) << cap;
	return all;
}

/* What the kernel knows of this thread by the C library's word. */
static int find_thread(struct walk *w)
{
	w->all_caps = all_capabilities();
	if (prctl(PR_GET_TID_ADDRESS, &w->tid, 0, 0, 0) < 0 ||
	    syscall(SYS_get_robust_list, 0, &w->robust, &w->robust_size) < 0)
		return -errno;
	return w->tid && *w->tid == (int)syscall(SYS_gettid) ? 0 : -ENOTSUP;
}

/* A process with threads can neither enter a user namespace nor fork all of itself. Of contexts
 * that stop and go on, which each of them can do all the time, we do not want to hear. */
static int serve_prepare(int *ret_signal_fd)
{
	const struct sigaction ends_only = { .sa_handler = SIG_DFL, .sa_flags = SA_NOCLDSTOP };
	sigset_t all;

	if (unshare(CLONE_THREAD) < 0)
		return errno == EINVAL ? -EBUSY : -errno;
	sigfillset(&all);
	if (sigprocmask(SIG_SETMASK, &all, NULL) < 0 || sigaction(SIGCHLD, &ends_only, NULL) < 0)
		return -errno;
	if (prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) < 0 || prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
		return -errno;
	sigemptyset(&all);
	sigaddset(&all, SIGCHLD);
	*ret_signal_fd = signalfd(-1, &all, SFD_CLOEXEC | SFD_NONBLOCK);
	return *ret_signal_fd < 0 ? -errno : 0;
}

/* 0: this is a context; 1: nobody will say anything any more. */
static int serve_orders(struct walk *w, int signal_fd)
{
	struct pollfd polled[] = {
		{ .fd = signal_fd, .events = POLLIN },
		{ .fd = w->sock, .events = POLLIN },
	};

	bool more = false;

	while (polled[1].fd >= 0 || n_contexts > 0) {
		int r;

		if (poll(polled, ARRAY_SIZE(polled), more ? 0 : -1) < 0 && errno != EINTR)
			return -errno;
		if (polled[0].revents || more)
			more = reap_contexts(signal_fd);
		r = polled[1].revents ? take_order(w) : 0;
		if (r == 1)
			return 0;
		if (r == -EPIPE)
			polled[1].fd = -1; /* nobody new; those who are here are seen out */
		else if (r < 0)
			return r;
	}
	return 1;
}

PUBLIC int zygote_serve(int sock)
{
	static struct walk w;
	const struct zygote_said ready = { .what = ZYGOTE_READY };
	int signal_fd = -EBADF, r = serve_prepare(&signal_fd);

	if (r < 0)
		return r;
	w.sock = sock;
	r = find_thread(&w);
	if (r == 0) {
		zygote_say(sock, &ready);
		r = serve_orders(&w, signal_fd);
	}
	if (r != 0) /* in a context it is closed already */
		fd_close(signal_fd);
	return r;
}
