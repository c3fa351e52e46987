/* SPDX-License-Identifier: Apache-2.0 */
#include "sys/seal.h"

#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define CAN_SEAL false
#else
#define CAN_SEAL true
#endif

static int seal_install_filter(const struct sock_filter *filter, size_t len)
{
	/* The kernel only reads the program; the interface is older than const. */
	const struct sock_fprog prog = {
		.len = (unsigned short)len,
		.filter = (struct sock_filter *)(uintptr_t)filter,
	};

	if (len > BPF_MAXINSNS)
		return -E2BIG;
	return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0UL, &prog) < 0 ? -errno : 0;
}

int seal_room(const struct seal *s, int *ret_abi, struct fail *fail)
{
	const struct rlimit none = { 0 };
	int abi = 0, r;

	*ret_abi = 0;
	if (!CAN_SEAL)
		return 0;
	/* AP-17: keys, tokens and secrets are in this memory. */
	if (setrlimit(RLIMIT_CORE, &none) < 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return fail_set(fail, errno, "seal", "cannot give up privileges: %s",
				strerror(errno));
	r = landlock_restrict(s->paths, s->n_paths, &abi);
	if (r < 0 && r != -EOPNOTSUPP)
		return fail_set(fail, -r, "landlock", "cannot give up the files: %s", strerror(-r));
	if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
		return fail_set(fail, errno, "seal", "cannot hide the memory: %s", strerror(errno));
	r = seal_install_filter(s->filter, s->filter_len);
	if (r < 0)
		return fail_set(fail, -r, "seccomp", "cannot filter system calls: %s",
				strerror(-r));
	*ret_abi = abi;
	return 0;
}

bool seal_has_filter(void)
{
	return CAN_SEAL;
}
