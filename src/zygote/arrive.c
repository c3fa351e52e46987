/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A context that has just been forked into its box: it has all capabilities over the box, none over
 * anything else, and has run nothing but this file. It makes itself an ordinary process of the box:
 * the same limits, the same seal, the same user as a command that the agent has started, by the
 * same code. What is told here in an order is in that order because each step needs what the next
 * one takes away.
 */
#include "zygote/zygote_priv.h"

#include "box/breakable.h"
#include "box/seal.h"

#include <fcntl.h>
#include <linux/rseq.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/rseq.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#define OWN_SOCK_FD 5 /* above those of kernels/PROTOCOL.md */
#define OUT_OF_THE_WAY 64

#ifndef CLONE_NEWTIME
#define CLONE_NEWTIME 0x00000080
#endif

/* First of all: from here on its memory and its time are the box's. */
static int enter_cgroups(struct walk *w)
{
	for (uint32_t i = 0; i < w->request.n_join && control_on("zygote-cgroups"); i++)
		if (write(walk_join_fd(w, i), "0", 1) != 1)
			return -errno;
	return 0;
}

static int enter_others(struct walk *w)
{
	if (walk_has(w, ZYGOTE_NS_CGROUP) &&
	    setns(walk_ns_fd(w, ZYGOTE_NS_CGROUP), CLONE_NEWCGROUP) < 0)
		return -errno;
	if (walk_has(w, ZYGOTE_NS_TIME) && setns(walk_ns_fd(w, ZYGOTE_NS_TIME), CLONE_NEWTIME) < 0)
		return -errno;
	return 0;
}

static int set_oom_score(struct walk *w)
{
	return payload_set_oom_score(w->request.oom_score_adj);
}

static int set_limits(struct walk *w)
{
	return payload_set_limits(&w->request.limits);
}

/* From the zygote and from all other contexts. As the user: keyrings are counted by user, and the
 * zygote's is one for all. */
static int set_apart(struct walk *w)
{
	uint32_t features = 0;

	(void)w;
	seal_core_scheduling(&features);
	return seal_keyring(&features);
}

/* 0 to 4 as an interpreter finds them, the warden's socket behind them until we are done, and
 * nothing else. A command has only its socket to the agent, from which the others come. */
static int take_descriptors(struct walk *w)
{
	int null_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	bool command = walk_is_command(w);
	const struct {
		int from, to, flags;
	} places[] = {
		{ null_fd, 0, 0 },
		{ command ? null_fd : w->fd[ZYGOTE_FD_OUT], 1, 0 },
		{ command ? null_fd : w->fd[ZYGOTE_FD_ERR], 2, 0 },
		{ w->fd[ZYGOTE_FD_REQUESTS], 3, O_CLOEXEC },
		{ command ? null_fd : w->fd[ZYGOTE_FD_EVENTS], 4, O_CLOEXEC },
		{ w->sock, OWN_SOCK_FD, O_CLOEXEC },
	};
	int moved[ARRAY_SIZE(places)];

	/* First out of the way of the numbers that are given out. */
	for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
		moved[i] = fcntl(places[i].from, F_DUPFD_CLOEXEC, OUT_OF_THE_WAY);
		if (moved[i] < 0)
			return -errno;
	}
	w->sock = moved[ARRAY_SIZE(places) - 1];
	for (size_t i = 0; i < ARRAY_SIZE(places); i++)
		if (dup3(moved[i], places[i].to, places[i].flags) < 0)
			return -errno;
	w->sock = OWN_SOCK_FD;
	if (!control_on("close-fds"))
		return 0;
	return syscall(SYS_close_range, OWN_SOCK_FD + 1, ~0U, 0) < 0 ? -errno : 0;
}

/*
 * What the C library has the kernel know of each thread, and what only its own fork() would have
 * seen to: the list of robust locks, and restartable sequences, which a process that shared memory
 * has none of to inherit. Where those cannot be had, the library must not believe the CPU number
 * that is there.
 */
static void renew_thread(const struct walk *w)
{
	struct rseq *area = (struct rseq *)((char *)__builtin_thread_pointer() + __rseq_offset);

	(void)syscall(SYS_set_robust_list, w->robust, w->robust_size);
	if (__rseq_size && syscall(SYS_rseq, area, sizeof(*area), 0, RSEQ_SIG) < 0 &&
	    errno != EBUSY)
		area->cpu_id = (uint32_t)RSEQ_CPU_ID_REGISTRATION_FAILED;
}

static int seal_files(struct walk *w)
{
	const struct seal_files files = {
		.root = w->request.flags & ZYGOTE_ENTER_ROOT,
		.entered = true,
	};
	uint32_t features = 0;
	int32_t abi = 0;
	int r = seal_no_new_privs(&features);

	return r < 0 ? r : seal_landlock(&files, &abi, &features);
}

static int become_user(struct walk *w)
{
	const struct payload_user user = {
		.uid = PAYLOAD_USER,
		.gid = PAYLOAD_USER,
		.securebits = payload_locked_bits,
	};

	/* Entering the user namespace has filled even the bounding set. */
	return payload_become(&user, w->all_caps);
}

static int go_home(struct walk *w)
{
	(void)w;
	return chdir(PAYLOAD_HOME) < 0 && chdir("/") < 0 ? -errno : 0;
}

static int seal_calls(struct walk *w)
{
	uint32_t features = 0;

	(void)w;
	return seal_filter(&features);
}

/* Which are blocked in the zygote; what they do is the interpreter's business. */
static void unblock_signals(void)
{
	sigset_t none;

	sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
}

int zygote_arrive(struct walk *w, enum zygote_step *ret_step)
{
	static int (*const steps[_ZYGOTE_STEP_MAX])(struct walk *) = {
		[ZYGOTE_STEP_CGROUPS] = enter_cgroups,   [ZYGOTE_STEP_OTHERS] = enter_others,
		[ZYGOTE_STEP_OOM_SCORE] = set_oom_score, [ZYGOTE_STEP_LIMITS] = set_limits,
		[ZYGOTE_STEP_STDIO] = take_descriptors,  [ZYGOTE_STEP_LANDLOCK] = seal_files,
		[ZYGOTE_STEP_BECOME] = become_user,      [ZYGOTE_STEP_APART] = set_apart,
		[ZYGOTE_STEP_DIRECTORY] = go_home,       [ZYGOTE_STEP_SECCOMP] = seal_calls,
	};

	(void)setsid();
	(void)umask(022);
	renew_thread(w);
	for (unsigned i = ZYGOTE_STEP_FORK + 1; i < _ZYGOTE_STEP_MAX; i++) {
		int r = steps[i](w);

		*ret_step = (enum zygote_step)i;
		if (r < 0)
			return r;
	}
	/* The socket first: it is the zygote's own, and a process that can be dumped can be looked
	 * into, written to and robbed of its descriptors by the others in the box. */
	(void)close(w->sock);
	/* Every program in a box can be dumped, which makes its files in /proc its own. */
	(void)prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
	unblock_signals();
	return 0;
}
