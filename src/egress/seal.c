/* SPDX-License-Identifier: Apache-2.0 */
#include "egress/core.h"

#include "sys/landlock.h"

#include <assert.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>

#include "egress_filter_data.h"

static_assert(ARRAY_SIZE(egress_filter_code) <= BPF_MAXINSNS, "longer than the kernel takes");

/* Sanitizers make calls that the room has no place for. Such a build is for tests only. */
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define CAN_SEAL false
#else
#define CAN_SEAL true
#endif

/* No path at all. On a kernel without it, the filter is left, which has no call that opens a file. */
static int restrict_files(struct fail *fail)
{
	int abi, r = landlock_restrict(NULL, 0, &abi);

	if (r == -EOPNOTSUPP) {
		talk_log("this kernel has no Landlock; the filter of system calls stands alone");
		return 0;
	}
	return r < 0 ? fail_set(fail, -r, "landlock", "cannot give up the files: %s",
				strerror(-r)) :
		       0;
}

static int install_filter(void)
{
	/* The kernel only reads the program; the interface is older than const. */
	const struct sock_fprog prog = {
		.len = ARRAY_SIZE(egress_filter_code),
		.filter = (struct sock_filter *)(uintptr_t)egress_filter_code,
	};

	return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0UL, &prog) < 0 ? -errno : 0;
}

int seal(struct fail *fail)
{
	const struct rlimit none = { 0 };
	int r;

	tzset(); /* libraries that print a time would look for the zone's file */
	if (!CAN_SEAL)
		return 0;
	/* Secrets are in this memory. */
	if (setrlimit(RLIMIT_CORE, &none) < 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return fail_set(fail, errno, "seal", "cannot give up privileges: %s",
				strerror(errno));
	r = restrict_files(fail);
	if (r < 0)
		return r;
	if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
		return fail_set(fail, errno, "seal", "cannot hide the memory: %s", strerror(errno));
	r = install_filter();
	return r < 0 ? fail_set(fail, -r, "seccomp", "cannot filter system calls: %s",
				strerror(-r)) :
		       0;
}

bool seal_has_filter(void)
{
	return CAN_SEAL;
}
