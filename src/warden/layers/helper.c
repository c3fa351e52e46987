/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Processes that work on the files of boxes. They are forked from the warden and first give up what
 * they do not need: every other descriptor, every capability but the few for files, and all system
 * calls but those of file work. Whatever a box has put on its disk, it meets only this.
 */
#include "warden/layers/layers.h"

#include <fcntl.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/close_range.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <linux/securebits.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#define FDS_MAX 4
#define FIRST_FD 3
#define NOFILE_MAX 8192
#define CPU_MAX_S 600
#define NICE 5

#if defined(__x86_64__)
#define ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define ARCH AUDIT_ARCH_AARCH64
#endif

/* Reading and writing trees of files, memory for it, and the end. */
static const unsigned allowed[] = {
	SYS_read,       SYS_write,     SYS_pread64,  SYS_pwrite64,  SYS_lseek,        SYS_close,
	SYS_openat,     SYS_openat2,   SYS_fcntl,    SYS_fstat,     SYS_newfstatat,   SYS_statx,
	SYS_getdents64, SYS_mkdirat,   SYS_mknodat,  SYS_symlinkat, SYS_linkat,       SYS_unlinkat,
	SYS_readlinkat, SYS_ftruncate, SYS_fchmod,   SYS_utimensat, SYS_flistxattr,   SYS_fgetxattr,
	SYS_fsetxattr,  SYS_syncfs,    SYS_setfsuid, SYS_setfsgid,  SYS_brk,          SYS_mmap,
	SYS_munmap,     SYS_mremap,    SYS_mprotect, SYS_madvise,   SYS_rt_sigreturn, SYS_exit,
	SYS_exit_group, SYS_getppid,   SYS_fstatfs,  SYS_fsync,
};

#ifdef __SANITIZE_ADDRESS__
#define FILTERED false /* the sanitizers' own calls differ from one version to the next */
#else
#define FILTERED true
#endif

static int install_helper_filter(void)
{
	struct sock_filter code[ARRAY_SIZE(allowed) + 11];
	struct sock_fprog program = { .filter = code };
	size_t n = 0;

	code[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
						 offsetof(struct seccomp_data, arch));
	code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ARCH, 1, 0);
	code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
	code[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
						 offsetof(struct seccomp_data, nr));
	for (size_t i = 0; i < ARRAY_SIZE(allowed); i++)
		/* To the last instruction, over the others, the question below and the refusal. */
		code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, allowed[i],
							 (__u8)(ARRAY_SIZE(allowed) - i + 5), 0);
	/* A helper that acts as the owner of a file must say again that it ends with the warden. */
	code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_prctl, 0, 4);
	code[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
						 offsetof(struct seccomp_data, args[0]));
	code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, PR_SET_PDEATHSIG, 0, 2);
	code[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
						 offsetof(struct seccomp_data, args[1]));
	code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SIGKILL, 1, 0);
	code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
	code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	program.len = (unsigned short)n;
	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) < 0 ? -errno : 0;
}

/* What is needed to see and keep files of all owners as they are. */
static int keep_file_capabilities(void)
{
	const uint32_t files = 1u << CAP_DAC_OVERRIDE | 1u << CAP_DAC_READ_SEARCH |
			       1u << CAP_FOWNER | 1u << CAP_SETUID | 1u << CAP_SETGID;
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct sets[2] = { 0 };
	uint32_t kept;

	if (syscall(SYS_capget, &head, sets) < 0)
		return -errno;
	/* Acting as a file's owner must not cost the capabilities for files of the next one. */
	if (sets[0].effective && prctl(PR_SET_SECUREBITS, SECBIT_NO_SETUID_FIXUP, 0, 0, 0) < 0)
		return -errno;
	kept = sets[0].permitted & files;
	memset(sets, 0, sizeof(sets));
	sets[0].effective = sets[0].permitted = kept;
	return syscall(SYS_capset, &head, sets) < 0 ? -errno : 0;
}

/* Moves the descriptors to 3 and up and closes all others. */
static int keep_fds(const int *fds, size_t n)
{
	int moved[FDS_MAX];

	for (size_t i = 0; i < n; i++) {
		moved[i] = fcntl(fds[i], F_DUPFD_CLOEXEC, FIRST_FD + FDS_MAX);
		if (moved[i] < 0)
			return -errno;
	}
	for (size_t i = 0; i < n; i++)
		if (dup3(moved[i], FIRST_FD + (int)i, O_CLOEXEC) < 0)
			return -errno;
	return syscall(SYS_close_range, FIRST_FD + (unsigned)n, ~0U, 0) < 0 ? -errno : 0;
}

int helper_begin(const int *fds, size_t n_fds, pid_t parent)
{
	int r = keep_fds(fds, n_fds);

	(void)setrlimit(RLIMIT_NOFILE, &(struct rlimit){ NOFILE_MAX, NOFILE_MAX });
	(void)setrlimit(RLIMIT_CORE, &(struct rlimit){ 0 });
	(void)setrlimit(RLIMIT_CPU, &(struct rlimit){ CPU_MAX_S, CPU_MAX_S });
	(void)setpriority(PRIO_PROCESS, 0, NICE);
	if (r == 0)
		r = keep_file_capabilities();
	if (r == 0 && (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
		       prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0))
		r = -errno;
	if (r == 0 && getppid() != parent)
		r = -ECANCELED;
	if (r == 0 && FILTERED)
		r = install_helper_filter();
	return r < 0 ? r : FIRST_FD;
}
