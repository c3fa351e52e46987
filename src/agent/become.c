/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From the agent's credentials to a payload's: no capability in any set, none obtainable, no
 * supplementary groups. no_new_privs, seccomp and Landlock are not set here: they were put on before
 * the agent itself was executed, so nothing in a box ever ran without them.
 */
#include "agent/agent.h"

#include <grp.h>
#include <linux/capability.h>
#include <linux/securebits.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

static int drop_bounding_set(void)
{
	for (unsigned long cap = 0; cap <= 63; cap++) {
		int has = prctl(PR_CAPBSET_READ, cap, 0, 0, 0);

		if (has < 0)
			return errno == EINVAL && cap > CAP_SETFCAP ? 0 : -errno; /* the last one */
		if (has && prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) < 0)
			return -errno;
	}
	return 0;
}

static int drop_capabilities(void)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct none[2] = { 0 };

	return syscall(SYS_capset, &head, none) < 0 ? -errno : 0;
}

int agent_become(uint32_t uid, uint32_t gid)
{
	int r;

	/* Only one id is mapped: we are that user already and have had no capability since exec. */
	if (getuid() != 0)
		return getuid() == uid && getgid() == gid ? 0 : -EPERM;

	if (prctl(PR_SET_SECUREBITS,
		  SECBIT_NOROOT | SECBIT_NOROOT_LOCKED | SECBIT_NO_SETUID_FIXUP_LOCKED |
			  SECBIT_KEEP_CAPS_LOCKED | SECBIT_NO_CAP_AMBIENT_RAISE |
			  SECBIT_NO_CAP_AMBIENT_RAISE_LOCKED,
		  0, 0, 0) < 0)
		return -errno;
	r = drop_bounding_set();
	if (r < 0)
		return r;
	if (setgroups(0, NULL) < 0 || setresgid(gid, gid, gid) < 0 || setresuid(uid, uid, uid) < 0)
		return -errno;
	return drop_capabilities();
}
