/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What makes a box a box beside its file system: ids, clocks, names, and at the end the seal. The
 * order of the steps is setup/steps.def's; the reasons for it are at the steps.
 */
#include "box/setup/setup_priv.h"

#include "box/breakable.h"
#include "box/ids.h"
#include "box/net.h"
#include "box/seal.h"
#include "sys/netns.h"
#include "sys/proc.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <linux/close_range.h>
#include <poll.h>
#include <sched.h>
#include <sys/prctl.h>
#include <time.h>

#define BOX_HOSTNAME "glovebox"

int setup_do_net(struct setup_state *s)
{
	if (s->setup->own_net)
		return unshare(CLONE_NEWNET) < 0 ? -errno : netns_lo_up();
	return s->setup->net_fd < 0 ? 0 : net_enter(s->setup->net_fd);
}

int setup_do_cgroup(struct setup_state *s)
{
	for (size_t i = 0; i < s->n_join; i++)
		if (write(s->join_fd[i], "0", 1) != 1)
			return -errno;
	return 0;
}

int setup_do_become(struct setup_state *s)
{
	uid_t id = s->setup->single_id ? PAYLOAD_USER : 0;
	struct pollfd hangup = { .fd = s->sock };

	if (!s->setup->single_id && syscall(SYS_setgroups, 0, NULL) < 0)
		return -errno;
	if (setresgid(id, id, id) < 0 || setresuid(id, id, id) < 0)
		return -errno;
	/* Should our parent die now, so do we; later the end of the control socket does it. */
	if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0)
		return -errno;
	/* NS-08: it may have died before that. */
	return poll(&hangup, 1, 0) > 0 && (hangup.revents & POLLHUP) ? -ECANCELED : 0;
}

/* The box's clocks start at zero: how long the host is up is not its business (PR-11). */
int setup_do_time(struct setup_state *s)
{
	char text[96];
	struct timespec mono, boot;
	_cleanup_(fd_closep) int fd = -EBADF;
	int n;

	if (!control_on("time") || unshare(CLONE_NEWTIME) < 0)
		return 0; /* a kernel without: the report says so */
	(void)clock_gettime(CLOCK_MONOTONIC, &mono);
	(void)clock_gettime(CLOCK_BOOTTIME, &boot);
	n = snprintf(text, sizeof(text), "monotonic -%lld 0\nboottime -%lld 0\n",
		     (long long)mono.tv_sec, (long long)boot.tv_sec);
	fd = open("/proc/self/timens_offsets", O_WRONLY | O_CLOEXEC);
	if (fd < 0 || write(fd, text, (size_t)n) != n)
		return -errno;
	s->report.features |= SETUP_HAS_TIME_NS;
	return 0;
}

int setup_do_hostname(struct setup_state *s)
{
	(void)s;
	if (!control_on("uts"))
		return 0;
	if (sethostname(BOX_HOSTNAME, strlen(BOX_HOSTNAME)) < 0 || setdomainname("", 0) < 0)
		return -errno;
	return 0;
}

int setup_do_cgroup_ns(struct setup_state *s)
{
	/* Only now: a namespace made by clone would have the parent's cgroup as its root. */
	if (control_on("cgroup-ns") && unshare(CLONE_NEWCGROUP) == 0)
		s->report.features |= SETUP_HAS_CGROUP_NS;
	return 0;
}

/*
 * A second lock behind the filter (FS-07): even root of this box cannot make a namespace. Late,
 * because a detached mount counts as one, and so does the network namespace that a helper is
 * making; through a descriptor from before /proc/sys became read-only.
 */
int setup_do_namespaces(struct setup_state *s)
{
	static const char *const files[] = {
		"max_user_namespaces",   "max_mnt_namespaces",  "max_net_namespaces",
		"max_pid_namespaces",    "max_ipc_namespaces",  "max_uts_namespaces",
		"max_cgroup_namespaces", "max_time_namespaces",
	};

	if (!control_on("max-namespaces"))
		return 0;
	for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
		_cleanup_(fd_closep) int fd =
			openat(s->sys_user_fd, files[i], O_WRONLY | O_CLOEXEC);

		if (fd < 0 && errno == ENOENT)
			continue;
		if (fd < 0 || write(fd, "0", 1) != 1)
			return -errno;
	}
	return 0;
}

int setup_do_core_scheduling(struct setup_state *s)
{
	seal_core_scheduling(&s->report.features);
	return 0;
}

int setup_do_keyring(struct setup_state *s)
{
	return seal_keyring(&s->report.features);
}

/* The agent finds its control socket at 3, its view of /proc at 4, and /dev/null below; everything
 * else closes itself. */
int setup_do_stdio(struct setup_state *s)
{
	_cleanup_(fd_closep) int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);

	/* Out of the way of the numbers that are given out below and in the last step. */
	s->agent_fd = fcntl(s->agent_fd, F_DUPFD_CLOEXEC, 10);
	s->control_fd = fcntl(s->setup->control_fd, F_DUPFD_CLOEXEC, 10);
	s->sock = fcntl(s->sock, F_DUPFD_CLOEXEC, 10);
	s->scratch_fd = fcntl(s->scratch_fd, F_DUPFD_CLOEXEC, 10);
	if (s->pids_fd >= 0)
		s->pids_fd = fcntl(s->pids_fd, F_DUPFD_CLOEXEC, 10);
	if (null_fd < 0 || s->agent_fd < 0 || s->control_fd < 0 || s->sock < 0 || s->scratch_fd < 0)
		return -errno;
	for (int fd = 0; fd < 3; fd++)
		if (dup2(null_fd, fd) < 0)
			return -errno;
	if (!control_on("close-fds"))
		return 0;
	return syscall(SYS_close_range, 3, ~0U, CLOSE_RANGE_CLOEXEC) < 0 ? -errno : 0;
}

/* Where only one id is mapped nobody can be root. */
static bool has_root(const struct setup_state *s)
{
	return s->setup->root && !s->setup->single_id;
}

int setup_do_landlock(struct setup_state *s)
{
	const struct seal_files files = {
		.root = has_root(s),
		.entered = s->setup->entered,
		.pids_fd = s->pids_fd >= 0 ? &s->pids_fd : NULL,
	};
	int r = seal_no_new_privs(&s->report.features);

	return r < 0 ? r : seal_landlock(&files, &s->report.landlock_abi, &s->report.features);
}

/* What the agent keeps, and why: to start commands as the user (SETUID, SETGID), to empty their
 * bounding set (SETPCAP), to end them (KILL). */
static bool agent_keeps(unsigned long cap)
{
	return cap == CAP_SETUID || cap == CAP_SETGID || cap == CAP_SETPCAP || cap == CAP_KILL;
}

/*
 * What the box's root has, where there is one: enough to install packages and keep files of several
 * users in order. Never SYS_ADMIN, NET_ADMIN, NET_RAW, SYS_PTRACE, MKNOD, SYS_CHROOT or SETFCAP:
 * though they are worth something in this user namespace only, they open the kernel's mount, packet
 * and filter code.
 */
static bool root_keeps(unsigned long cap)
{
	return cap == CAP_CHOWN || cap == CAP_DAC_OVERRIDE || cap == CAP_FOWNER ||
	       cap == CAP_FSETID || cap == CAP_SETUID || cap == CAP_SETGID || cap == CAP_KILL ||
	       cap == CAP_NET_BIND_SERVICE;
}

int setup_do_caps(struct setup_state *s)
{
	if (!control_on("caps"))
		return 0;
	for (unsigned long cap = 0; cap <= 63; cap++) {
		if (agent_keeps(cap) && !s->setup->single_id)
			continue;
		/* the agent hands them on to commands of uid 0 and to nobody else */
		if (has_root(s) && root_keeps(cap))
			continue;
		if (prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) < 0)
			return errno == EINVAL && cap > CAP_SETFCAP ? 0 : -errno; /* the last one */
	}
	return 0;
}

int setup_do_seccomp(struct setup_state *s)
{
	return seal_filter(&s->report.features);
}
