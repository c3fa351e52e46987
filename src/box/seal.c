/* SPDX-License-Identifier: Apache-2.0 */
#include "box/seal.h"

#include "box/breakable.h"
#include "box/filter/filter.h"
#include "sys/landlock.h"
#include "sys/payload.h"
#include "wire/isolation.h"

#include <linux/keyctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#ifndef PR_SCHED_CORE
#define PR_SCHED_CORE 62
#define PR_SCHED_CORE_CREATE 1
#endif

static const struct landlock_path user_paths[] = {
	{ "/", LANDLOCK_READ },          { PAYLOAD_HOME, LANDLOCK_CHANGE },
	{ "/tmp", LANDLOCK_CHANGE },     { "/var/tmp", LANDLOCK_CHANGE },
	{ "/dev/shm", LANDLOCK_CHANGE }, { "/dev", LANDLOCK_WRITE },
	{ "/dev/pts", LANDLOCK_IOCTL },  { "/dev/tty", LANDLOCK_IOCTL },
	{ "/proc", LANDLOCK_WRITE },
};

/* Where the box has a root, its file modes decide who changes what. Device nodes stay forbidden. */
static const struct landlock_path root_paths[] = {
	{ "/", LANDLOCK_READ | LANDLOCK_CHANGE },
	{ "/dev/pts", LANDLOCK_IOCTL },
	{ "/dev/tty", LANDLOCK_IOCTL },
};

int seal_no_new_privs(uint32_t *features)
{
	if (!control_on("no-new-privs"))
		return 0;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return -errno;
	*features |= SETUP_HAS_NO_NEW_PRIVS;
	return 0;
}

int seal_landlock(const struct seal_files *files, int32_t *ret_abi, uint32_t *features)
{
	struct landlock_path paths[ARRAY_SIZE(root_paths) + ARRAY_SIZE(user_paths) + 1];
	size_t n = files->root ? ARRAY_SIZE(root_paths) : ARRAY_SIZE(user_paths);
	int r;

	if (!control_on("landlock"))
		return 0;
	memcpy(paths, files->root ? root_paths : user_paths, n * sizeof(paths[0]));
	if (files->pids_fd)
		paths[n++] = (struct landlock_path){ .fd = files->pids_fd, .rules = LANDLOCK_READ };
	r = files->entered ? landlock_restrict_files(paths, n, ret_abi) :
			     landlock_restrict(paths, n, ret_abi);
	if (r == 0)
		*features |= SETUP_HAS_LANDLOCK;
	return r == -EOPNOTSUPP ? 0 : r; /* a kernel without: the report says so */
}

/* NS-07. A kernel without keyrings has nothing to inherit. */
int seal_keyring(uint32_t *features)
{
	if (!control_on("keyring"))
		return 0;
	if (syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, NULL) >= 0)
		*features |= SETUP_HAS_KEYRING;
	else if (errno != ENOSYS)
		return -errno;
	return 0;
}

/* CC-08: no other box may run on the sibling of a core that this one runs on. Only kernels built
 * for it know how; without, the report says so. */
void seal_core_scheduling(uint32_t *features)
{
	if (prctl(PR_SCHED_CORE, PR_SCHED_CORE_CREATE, 0, 1 /* the process */, 0) == 0)
		*features |= SETUP_HAS_CORE_SCHEDULING;
}

int seal_filter(uint32_t *features)
{
	int r;

	if (!control_on("seccomp"))
		return 0;
	r = box_filter_install();
	if (r == 0)
		*features |= SETUP_HAS_SECCOMP;
	return r;
}
