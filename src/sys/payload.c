/* SPDX-License-Identifier: Apache-2.0 */
#include "sys/payload.h"

#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/securebits.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#define BIT(cap) (UINT64_C(1) << (cap))

const unsigned long payload_locked_bits =
	SECBIT_NOROOT | SECBIT_NOROOT_LOCKED | SECBIT_NO_SETUID_FIXUP_LOCKED |
	SECBIT_KEEP_CAPS_LOCKED | SECBIT_NO_CAP_AMBIENT_RAISE | SECBIT_NO_CAP_AMBIENT_RAISE_LOCKED;

int payload_set_oom_score(int score)
{
	_cleanup_(fd_closep) int fd = -EBADF;
	char text[16];
	int n = snprintf(text, sizeof(text), "%d", score), r;

	/* While it cannot be dumped, a process's files in /proc belong to the host's root. Nothing
	 * foreign has run in this process yet, and it is closed again at once. */
	if (prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) < 0)
		return -errno;
	fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
	r = fd >= 0 && write(fd, text, (size_t)n) == n ? 0 : -errno;
	return prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0 ? -errno : r;
}

static int payload_limit(int what, uint64_t value)
{
	struct rlimit now;

	if (getrlimit(what, &now) < 0)
		return -errno;
	/* Nobody here may raise a hard limit; a lower one that is already there is as good. At the
	 * soft limit of CPU time comes SIGXCPU, which tells what happened; at the hard one
	 * SIGKILL. */
	now.rlim_max = MIN(now.rlim_max, what == RLIMIT_CPU ? value + 1 : value);
	now.rlim_cur = MIN(now.rlim_max, value);
	return setrlimit(what, &now) < 0 ? -errno : 0;
}

int payload_set_limits(const struct payload_limits *l)
{
	const struct {
		int what;
		uint64_t value;
		bool on;
	} limits[] = {
		/* 1, not 0: a core of one byte is the kernel's word for "no piped handler
		 * either". */
		{ RLIMIT_CORE, 1, true },
		{ RLIMIT_NOFILE, l->nofile_max, true },
		{ RLIMIT_FSIZE, l->fsize_max, true },
		{ RLIMIT_MEMLOCK, 64 << 10, true },
		{ RLIMIT_MSGQUEUE, 0, true },
		{ RLIMIT_SIGPENDING, 1024, true },
		{ RLIMIT_RTPRIO, 0, true },
		{ RLIMIT_NICE, 0, true },
		{ RLIMIT_STACK, 8 << 20, true },
		/* Not RLIMIT_AS: runtimes reserve far more address space than they use. */
		{ RLIMIT_DATA, l->data_max, l->data_max != 0 },
		{ RLIMIT_NPROC, l->nproc_max, l->nproc_max != 0 },
		{ RLIMIT_CPU, l->cpu_max_s, l->cpu_max_s != 0 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(limits); i++) {
		int r = limits[i].on ? payload_limit(limits[i].what, limits[i].value) : 0;

		if (r < 0)
			return r;
	}
	return 0;
}

int payload_bounding_set(uint64_t *ret)
{
	uint64_t set = 0;

	for (unsigned long cap = 0; cap <= 63; cap++) {
		int has = prctl(PR_CAPBSET_READ, cap, 0, 0, 0);

		if (has < 0 && (errno != EINVAL || cap <= CAP_SETFCAP))
			return -errno;
		if (has < 0)
			break; /* the last one */
		if (has)
			set |= BIT(cap);
	}
	*ret = set;
	return 0;
}

static int payload_drop_bounding_set(uint64_t set, uint64_t keep)
{
	for (unsigned long cap = 0; cap <= 63; cap++)
		if ((set & ~keep & BIT(cap)) && prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) < 0)
			return -errno;
	return 0;
}

static int keep_capabilities(uint64_t keep)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	const struct __user_cap_data_struct caps[2] = {
		{ .permitted = (uint32_t)keep, .effective = (uint32_t)keep },
		{ .permitted = (uint32_t)(keep >> 32), .effective = (uint32_t)(keep >> 32) },
	};

	return syscall(SYS_capset, &head, caps) < 0 ? -errno : 0;
}

int payload_become(const struct payload_user *user, uint64_t bounding)
{
	int r;

	if (prctl(PR_SET_SECUREBITS, user->securebits, 0, 0, 0) < 0)
		return -errno;
	r = payload_drop_bounding_set(bounding, user->keep);
	if (r < 0)
		return r;
	if (setgroups(user->n_groups, user->groups) < 0 ||
	    setresgid(user->gid, user->gid, user->gid) < 0 ||
	    setresuid(user->uid, user->uid, user->uid) < 0)
		return -errno;
	return keep_capabilities(user->keep);
}
