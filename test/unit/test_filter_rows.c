/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One test for each attack of the catalogue that the filter answers: SC (system calls), AB (ABI
 * tricks), DV (terminals). Blocked means refused by the program itself, before any pointer is
 * looked at.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <linux/audit.h>

#include "base/util.h"
#include "box/filter/filter.h"
#include "box/filter/syscall_nr.h"
#include "bpf_eval.h"

#ifdef __x86_64__
#define NATIVE_ARCH AUDIT_ARCH_X86_64
#else
#define NATIVE_ARCH AUDIT_ARCH_AARCH64
#endif
#define UPPER 0xffffffff00000000

static uint32_t verdict_on(uint32_t arch, long nr, uint64_t a0, uint64_t a1, uint64_t a2)
{
	const struct seccomp_data data = { .nr = (int)nr, .arch = arch, .args = { a0, a1, a2 } };
	struct bpf_run ret = { 0 };
	size_t len = 0;
	const struct sock_filter *code = box_filter_program(&len);

	assert_int_equal(bpf_eval(code, len, &data, NULL, &ret), 0);
	return ret.verdict;
}

static void allowed(long nr, uint64_t a0, uint64_t a1, uint64_t a2)
{
	assert_int_equal(verdict_on(NATIVE_ARCH, nr, a0, a1, a2), SECCOMP_RET_ALLOW);
}

static void refused(long nr, uint64_t a0, uint64_t a1, uint64_t a2, int err)
{
	assert_int_equal(verdict_on(NATIVE_ARCH, nr, a0, a1, a2),
			 SECCOMP_RET_ERRNO | (uint32_t)err);
}

/* Whatever the arguments. */
static void never(const long *nrs, size_t n, int err)
{
	static const uint64_t some[] = { 0, 1, 2, 0x5412, 1 << 28, UINT32_MAX, UINT64_MAX };

	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < ARRAY_SIZE(some); k++)
			refused(nrs[i], some[k], some[k], some[k], err);
}

static void always(const long *nrs, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		allowed(nrs[i], 0, 0, 0);
		allowed(nrs[i], UINT64_MAX, UINT64_MAX, UINT64_MAX);
	}
}

#define NEVER(err, ...) never(LIST(__VA_ARGS__), err)
#define ALWAYS(...) always(LIST(__VA_ARGS__))
#define LIST(...)                                                                                  \
	(const long[]){ __VA_ARGS__ }, sizeof((const long[]){ __VA_ARGS__ }) / sizeof(long)
#define ROW(id) static void id(void **state __attribute__((unused)))

ROW(sc_01)
{
	NEVER(ENOSYS, __NR_io_uring_setup, __NR_io_uring_enter, __NR_io_uring_register);
	NEVER(ENOSYS, __NR_io_setup, __NR_io_submit, __NR_io_getevents, __NR_io_pgetevents);
}

ROW(sc_02)
{
	NEVER(EPERM, __NR_bpf);
}

ROW(sc_03)
{
	NEVER(ENOSYS, __NR_userfaultfd);
}

ROW(sc_04)
{
	NEVER(EPERM, __NR_perf_event_open);
}

ROW(sc_05)
{
	NEVER(ENOSYS, __NR_add_key, __NR_request_key, __NR_keyctl);
}

ROW(sc_06)
{
	NEVER(EPERM, __NR_ptrace, __NR_process_vm_readv, __NR_process_vm_writev, __NR_kcmp,
	      __NR_pidfd_getfd, __NR_process_madvise);
}

ROW(sc_07)
{
	NEVER(EPERM, __NR_mount, __NR_umount2, __NR_pivot_root, __NR_chroot);
	NEVER(ENOSYS, __NR_statmount, __NR_listmount, __NR_listns);
	NEVER(ENOSYS, __NR_fsopen, __NR_fsconfig, __NR_fsmount, __NR_fspick, __NR_open_tree,
	      __NR_open_tree_attr, __NR_move_mount, __NR_mount_setattr);
}

ROW(sc_08)
{
	/* NS, CGROUP, UTS, IPC, USER, PID, NET; TIME for unshare. */
	static const uint64_t fresh[] = { 0x00020000, 0x02000000, 0x04000000, 0x08000000,
					  0x10000000, 0x20000000, 0x40000000, 0x80 };

	for (size_t i = 0; i < ARRAY_SIZE(fresh); i++) {
		refused(__NR_clone, fresh[i], 0, 0, EPERM);
		refused(__NR_clone, fresh[i] | 0x003d0f00, 0, 0, EPERM);
		refused(__NR_unshare, fresh[i], 0, 0, EPERM);
		refused(__NR_unshare, fresh[i] | 0x400, 0, 0, EPERM);
	}
	/* PARENT: a child for somebody outside to wait for. */
	refused(__NR_clone, 0x8000 | 0x11, 0, 0, EPERM);
	refused(__NR_clone, 0x8000 | 0x4111, 0, 0, EPERM);
	NEVER(EPERM, __NR_setns);
	NEVER(ENOSYS, __NR_clone3);
	allowed(__NR_clone, 0x003d0f00, 0, 0);      /* pthread_create */
	allowed(__NR_clone, 0x01200011, 0, 0);      /* fork */
	allowed(__NR_clone, 0x4111, 0, 0);          /* vfork, posix_spawn */
	allowed(__NR_unshare, 0x200 | 0x400, 0, 0); /* FS, FILES */
}

ROW(sc_09)
{
	NEVER(EPERM, __NR_kexec_load, __NR_kexec_file_load, __NR_reboot);
}

ROW(sc_10)
{
	NEVER(EPERM, __NR_init_module, __NR_finit_module, __NR_delete_module);
	/* Modules by name: a protocol on TCP, a cipher for TCP signatures. */
	refused(__NR_setsockopt, 3, 6, 31, EPERM);
	refused(__NR_setsockopt, 3, 6, 38, EPERM);
}

ROW(sc_11)
{
	NEVER(EPERM, __NR_fanotify_init, __NR_fanotify_mark, __NR_name_to_handle_at,
	      __NR_open_by_handle_at);
}

ROW(sc_12)
{
#ifdef __x86_64__
	NEVER(EPERM, __NR_modify_ldt, __NR_iopl, __NR_ioperm);
#else
	skip();
#endif
}

ROW(sc_13)
{
	refused(__NR_personality, 0x0040000, 0, 0, EPERM); /* ADDR_NO_RANDOMIZE */
	refused(__NR_personality, 0x0400000, 0, 0, EPERM); /* READ_IMPLIES_EXEC */
	refused(__NR_personality, 0x0040008, 0, 0, EPERM);
	allowed(__NR_personality, 0, 0, 0);
	allowed(__NR_personality, 0x8, 0, 0);
	allowed(__NR_personality, 0x20000, 0, 0);
	allowed(__NR_personality, 0x20008, 0, 0);
	allowed(__NR_personality, UINT32_MAX, 0, 0);
}

ROW(sc_14)
{
	NEVER(EPERM, __NR_quotactl, __NR_quotactl_fd, __NR_swapon, __NR_swapoff, __NR_acct,
	      __NR_syslog, __NR_nfsservctl, __NR_lookup_dcookie);
#ifdef __x86_64__
	NEVER(EPERM, __NR_uselib, __NR_sysfs, __NR_ustat);
#endif
}

ROW(sc_15)
{
	NEVER(EPERM, __NR_settimeofday, __NR_clock_settime, __NR_adjtimex, __NR_clock_adjtime);
}

ROW(sc_16)
{
	NEVER(EPERM, __NR_sethostname, __NR_setdomainname, __NR_vhangup);
}

ROW(sc_17)
{
	NEVER(EPERM, __NR_mbind, __NR_move_pages, __NR_migrate_pages, __NR_set_mempolicy,
	      __NR_get_mempolicy, __NR_set_mempolicy_home_node);
}

ROW(sc_18)
{
	for (uint64_t family = 0; family < 64; family++) {
		bool ours = family == 1 || family == 2 || family == 10 || family == 16;

		if (ours)
			allowed(__NR_socket, family, 1, 0);
		else
			refused(__NR_socket, family, 1, 0, EAFNOSUPPORT);
		if (family == 1)
			allowed(__NR_socketpair, family, 1, 0);
		else
			refused(__NR_socketpair, family, 1, 0, EAFNOSUPPORT);
	}
}

ROW(sc_19)
{
	allowed(__NR_socket, 16, 3, 0);
	allowed(__NR_socket, 16, 0x80002, 0);
	/* SOCK_DIAG, XFRM, AUDIT, NETFILTER, UEVENT, GENERIC, CRYPTO among them. */
	for (uint64_t protocol = 1; protocol < 64; protocol++)
		refused(__NR_socket, 16, 3, protocol, EPROTONOSUPPORT);
}

ROW(sc_20)
{
	static const uint64_t families[] = { 2, 10 };
	/* DCCP, L2TP, SCTP, UDPLITE, RAW, MPTCP */
	static const uint64_t protocols[] = { 33, 115, 132, 136, 255, 262 };

	for (size_t f = 0; f < ARRAY_SIZE(families); f++) {
		for (size_t i = 0; i < ARRAY_SIZE(protocols); i++) {
			refused(__NR_socket, families[f], 1, protocols[i], EPROTONOSUPPORT);
			refused(__NR_socket, families[f], 0x80802, protocols[i], EPROTONOSUPPORT);
		}
		refused(__NR_socket, families[f], 3, 6, EPERM);                /* RAW */
		refused(__NR_socket, families[f], 0x80003, 255, EPERM);        /* RAW, flags */
		refused(__NR_socket, families[f], 5, 0, EPROTONOSUPPORT);      /* SEQPACKET */
		refused(__NR_socket, families[f], 6, 0, EPROTONOSUPPORT);      /* DCCP */
		refused(__NR_socket, families[f], 10, 0x300, EPROTONOSUPPORT); /* PACKET */
		allowed(__NR_socket, families[f], 0x80801, 6);
		allowed(__NR_socket, families[f], 0x80802, 17);
	}
}

ROW(sc_21)
{
	NEVER(EINVAL, __NR_splice, __NR_vmsplice, __NR_tee);
	ALWAYS(__NR_sendfile, __NR_copy_file_range);
}

ROW(sc_22)
{
	refused(__NR_setsockopt, 3, 6, 31, EPERM);    /* TCP_ULP */
	refused(__NR_setsockopt, 3, 17, 100, EPERM);  /* UDP_ENCAP */
	refused(__NR_setsockopt, 3, 136, 100, EPERM); /* UDP_ENCAP by way of UDP-Lite */
	refused(__NR_setsockopt, 3, 1, 50, EPERM);    /* SO_ATTACH_BPF */
	refused(__NR_setsockopt, 3, 1, 52, EPERM);    /* SO_ATTACH_REUSEPORT_EBPF */
	refused(__NR_setsockopt, 3, 0, 64, EPERM);    /* IPT_SO_SET_REPLACE */
	refused(__NR_setsockopt, 3, 0, 0x480, EPERM); /* IPVS */
	refused(__NR_setsockopt, 3, 41, 64, EPERM);   /* IP6T_SO_SET_REPLACE */
	allowed(__NR_setsockopt, 3, 1, 2);            /* SO_REUSEADDR */
	allowed(__NR_setsockopt, 3, 6, 1);            /* TCP_NODELAY */
	allowed(__NR_setsockopt, 3, 17, 103);         /* UDP_SEGMENT: QUIC */
	allowed(__NR_setsockopt, 3, 41, 66);          /* IPV6_RECVTCLASS: QUIC */
}

ROW(sc_23)
{
	static const uint64_t policies[] = { 1, 2, 6 }; /* FIFO, RR, DEADLINE */

	for (size_t i = 0; i < ARRAY_SIZE(policies); i++) {
		refused(__NR_sched_setscheduler, 0, policies[i], 0, EPERM);
		refused(__NR_sched_setscheduler, 0, policies[i] | 0x40000000, 0, EPERM);
	}
	allowed(__NR_sched_setscheduler, 0, 0, 0);
	allowed(__NR_sched_setscheduler, 0, 3, 0);
	for (uint64_t level = 0; level < 8; level++)
		refused(__NR_ioprio_set, 1, 0, 1 << 13 | level, EPERM);
	allowed(__NR_ioprio_set, 1, 0, 2 << 13 | 4);
	allowed(__NR_ioprio_set, 1, 0, 3 << 13);
}

ROW(sc_24)
{
	NEVER(ENOSYS, __NR_memfd_secret);
	/* Locked and huge pages are the business of RLIMIT_MEMLOCK and the hugetlb controller. */
	ALWAYS(__NR_mlock, __NR_mlockall, __NR_mmap);
}

ROW(sc_25)
{
	refused(__NR_seccomp, 1, 8, 0, EPERM); /* NEW_LISTENER */
	refused(__NR_seccomp, 1, 8 | 16, 0, EPERM);
	refused(__NR_seccomp, 0, 0, 0, EPERM); /* strict */
	refused(__NR_prctl, 59, 1, 0, EPERM);  /* SYSCALL_USER_DISPATCH */
	refused(__NR_prctl, 35, 1, 0, EPERM);  /* SET_MM */
	refused(__NR_prctl, 62, 1, 0, EPERM);  /* SCHED_CORE */
	refused(__NR_prctl, 22, 1, 0, EPERM);  /* SET_SECCOMP, strict */
	allowed(__NR_seccomp, 1, 0, 0);
	allowed(__NR_seccomp, 1, 1, 0);
	allowed(__NR_prctl, 22, 2, 0);
}

ROW(sc_26)
{
	for (long nr = 470; nr < 1024; nr++)
		NEVER(ENOSYS, nr);
	NEVER(ENOSYS, -1L);
}

ROW(sc_27)
{
	ALWAYS(__NR_futex, __NR_futex_waitv, __NR_rseq, __NR_membarrier, __NR_set_robust_list,
	       __NR_getcpu, __NR_epoll_create1, __NR_epoll_pwait2, __NR_inotify_init1,
	       __NR_signalfd4, __NR_timerfd_create, __NR_eventfd2, __NR_pidfd_open,
	       __NR_pidfd_send_signal, __NR_waitid, __NR_landlock_create_ruleset,
	       __NR_landlock_add_rule, __NR_landlock_restrict_self, __NR_pkey_alloc,
	       __NR_pkey_mprotect, __NR_mprotect, __NR_sched_setaffinity, __NR_close_range,
	       __NR_semop, __NR_msgget, __NR_fchmodat2);
	allowed(__NR_memfd_create, 0, 3, 0); /* CLOEXEC, ALLOW_SEALING */
	allowed(__NR_shmget, 0, 4096, 01600);
#ifdef __x86_64__
	ALWAYS(__NR_arch_prctl, __NR_uretprobe, __NR_uprobe, __NR_vfork);
#endif
	allowed(__NR_prctl, 15, 0, 0);         /* SET_NAME */
	allowed(__NR_prctl, 1, 9, 0);          /* SET_PDEATHSIG */
	allowed(__NR_prctl, 38, 1, 0);         /* SET_NO_NEW_PRIVS */
	allowed(__NR_prctl, 23, 21, 0);        /* CAPBSET_READ */
	allowed(__NR_prctl, 0x53564d41, 0, 0); /* SET_VMA */
}

/* What the agent, the box's pid 1, needs under the same filter. */
ROW(agent)
{
	ALWAYS(__NR_setresuid, __NR_setresgid, __NR_setgroups, __NR_capset, __NR_prlimit64,
	       __NR_setrlimit, __NR_execve, __NR_execveat, __NR_openat2, __NR_close_range,
	       __NR_pipe2, __NR_ppoll, __NR_epoll_ctl, __NR_epoll_pwait, __NR_signalfd4,
	       __NR_recvmsg, __NR_sendmsg, __NR_waitid, __NR_wait4, __NR_kill, __NR_getsockopt,
	       __NR_accept4, __NR_bind, __NR_listen, __NR_setsid);
	allowed(__NR_socketpair, 1, 0x80005, 0);
	allowed(__NR_prctl, 24, 7, 0);     /* CAPBSET_DROP */
	allowed(__NR_prctl, 4, 0, 0);      /* SET_DUMPABLE */
	allowed(__NR_prctl, 28, 0x2f, 0);  /* SET_SECUREBITS */
	allowed(__NR_prctl, 47, 4, 0);     /* CAP_AMBIENT_CLEAR_ALL */
	allowed(__NR_ioctl, 0, 0x540e, 0); /* TIOCSCTTY */
	allowed(__NR_ioctl, 0, 0x5414, 0); /* TIOCSWINSZ */
}

ROW(ab_01)
{
	for (long nr = 0; nr < 1024; nr++)
		assert_int_equal(verdict_on(AUDIT_ARCH_I386, nr, 0, 0, 0),
				 SECCOMP_RET_KILL_PROCESS);
}

ROW(ab_02)
{
#ifdef __x86_64__
	for (long nr = 0; nr < 1024; nr++)
		assert_int_equal(verdict_on(NATIVE_ARCH, nr | 0x40000000, 0, 0, 0),
				 SECCOMP_RET_KILL_PROCESS);
#else
	skip();
#endif
}

ROW(ab_04)
{
	/* socketcall(SYS_SOCKET, pointer) is number 102 there, getuid here. */
	assert_int_equal(verdict_on(AUDIT_ARCH_I386, 102, 1, 0, 0), SECCOMP_RET_KILL_PROCESS);
}

ROW(ab_06)
{
	refused(__NR_socket, UPPER | 38, 1, 0, EAFNOSUPPORT);
	refused(__NR_socket, UPPER | 2, UPPER | 3, 0, EPERM);
	allowed(__NR_socket, UPPER | 2, UPPER | 1, UPPER | 6);
	refused(__NR_clone, UPPER | 0x10000000, 0, 0, EPERM);
	refused(__NR_unshare, UPPER | 0x10000000, 0, 0, EPERM);
	allowed(__NR_clone, UPPER | 0x01200011, 0, 0);
	refused(__NR_prctl, UPPER | 35, 0, 0, EPERM);
	refused(__NR_prctl, UPPER | 22, UPPER | 1, 0, EPERM);
	refused(__NR_personality, UPPER | 0x40000, 0, 0, EPERM);
	refused(__NR_seccomp, UPPER | 1, UPPER | 8, 0, EPERM);
	refused(__NR_setsockopt, 3, UPPER | 6, UPPER | 31, EPERM);
	refused(__NR_mknodat, 0, 0, UPPER | 0020644, EPERM);
	/* mode_t has 16 bits in the kernel: what is above does not hide the type. */
	refused(__NR_mknodat, 0, 0, 0xffff0000 | 0060644, EPERM);
	allowed(__NR_mknodat, 0, 0, UPPER | 0010644);
}

ROW(ab_10)
{
	size_t len = 0;
	const struct sock_filter *code = box_filter_program(&len);

	/* Agreement with the table is test_filter.c; here: no jump leaves the program, and its last
	 * instruction is a verdict. */
	assert_true(len > 0 && len <= BPF_MAXINSNS);
	assert_int_equal(code[len - 1].code, BPF_RET | BPF_K);
	for (size_t i = 0; i < len; i++) {
		if (BPF_CLASS(code[i].code) != BPF_JMP)
			continue;
		if (bpf_is_conditional(&code[i]))
			assert_true(i + 1 + MAX(code[i].jt, code[i].jf) < len);
		else
			assert_true(i + 1 + (uint64_t)code[i].k < len);
	}
}

ROW(dv_01)
{
	refused(__NR_ioctl, 0, 0x5412, 0, EPERM); /* TIOCSTI */
	allowed(__NR_ioctl, 0, 0x5413, 0);        /* TIOCGWINSZ, its neighbour */
}

ROW(dv_02)
{
	refused(__NR_ioctl, 0, 0x541c, 0, EPERM); /* TIOCLINUX */
	refused(__NR_ioctl, 0, 0x541d, 0, EPERM); /* TIOCCONS */
}

ROW(dv_03)
{
	refused(__NR_ioctl, 0, 0x5423, 0, EPERM); /* TIOCSETD */
	allowed(__NR_ioctl, 0, 0x5424, 0);        /* TIOCGETD */
}

ROW(dv_04)
{
	static const uint64_t upper[] = { 1ULL << 32, 1ULL << 63, UPPER };

	for (size_t i = 0; i < ARRAY_SIZE(upper); i++) {
		refused(__NR_ioctl, 0, upper[i] | 0x5412, 0, EPERM);
		refused(__NR_ioctl, 0, upper[i] | 0x541c, 0, EPERM);
		refused(__NR_ioctl, 0, upper[i] | 0x541d, 0, EPERM);
		refused(__NR_ioctl, 0, upper[i] | 0x5423, 0, EPERM);
		allowed(__NR_ioctl, 0, upper[i] | 0x5401, 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		{ .name = "SC-01 io_uring and aio", .test_func = sc_01 },
		{ .name = "SC-02 bpf", .test_func = sc_02 },
		{ .name = "SC-03 userfaultfd", .test_func = sc_03 },
		{ .name = "SC-04 perf_event_open", .test_func = sc_04 },
		{ .name = "SC-05 keyrings", .test_func = sc_05 },
		{ .name = "SC-06 looking into another process", .test_func = sc_06 },
		{ .name = "SC-07 mounts and roots", .test_func = sc_07 },
		{ .name = "SC-08 namespaces", .test_func = sc_08 },
		{ .name = "SC-09 kexec and reboot", .test_func = sc_09 },
		{ .name = "SC-10 modules", .test_func = sc_10 },
		{ .name = "SC-11 fanotify and file handles", .test_func = sc_11 },
		{ .name = "SC-12 segments and ports", .test_func = sc_12 },
		{ .name = "SC-13 personality", .test_func = sc_13 },
		{ .name = "SC-14 host administration", .test_func = sc_14 },
		{ .name = "SC-15 the clock", .test_func = sc_15 },
		{ .name = "SC-16 host name and hangup", .test_func = sc_16 },
		{ .name = "SC-17 NUMA", .test_func = sc_17 },
		{ .name = "SC-18 socket families", .test_func = sc_18 },
		{ .name = "SC-19 netlink protocols", .test_func = sc_19 },
		{ .name = "SC-20 inet protocols", .test_func = sc_20 },
		{ .name = "SC-21 splice, vmsplice, tee", .test_func = sc_21 },
		{ .name = "SC-22 socket options", .test_func = sc_22 },
		{ .name = "SC-23 real-time classes", .test_func = sc_23 },
		{ .name = "SC-24 secret and locked memory", .test_func = sc_24 },
		{ .name = "SC-25 seccomp and prctl", .test_func = sc_25 },
		{ .name = "SC-26 unknown numbers", .test_func = sc_26 },
		{ .name = "SC-27 what programs need", .test_func = sc_27 },
		{ .name = "what the agent needs", .test_func = agent },
		{ .name = "AB-01 i386 numbers", .test_func = ab_01 },
		{ .name = "AB-02 x32 numbers", .test_func = ab_02 },
		{ .name = "AB-04 i386 socketcall", .test_func = ab_04 },
		{ .name = "AB-06 upper halves", .test_func = ab_06 },
		{ .name = "AB-10 jumps stay inside", .test_func = ab_10 },
		{ .name = "DV-01 TIOCSTI", .test_func = dv_01 },
		{ .name = "DV-02 TIOCLINUX", .test_func = dv_02 },
		{ .name = "DV-03 TIOCSETD", .test_func = dv_03 },
		{ .name = "DV-04 ioctl with upper bits", .test_func = dv_04 },
	};

	return cmocka_run_group_tests_name("filter rows", tests, NULL, NULL);
}
