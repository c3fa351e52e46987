/* SPDX-License-Identifier: Apache-2.0 */
#include "box/filter/filter_args.h"

#include <asm/ioctls.h>
#include <linux/ioprio.h>
#include <linux/netlink.h>
#include <linux/prctl.h>
#include <linux/sched.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "base/util.h"

/* Younger than the headers we build with. */
#ifndef PR_SET_VMA
#define PR_SET_VMA 0x53564d41
#endif
#ifndef PR_SET_MDWE
#define PR_SET_MDWE 65
#define PR_GET_MDWE 66
#endif
#ifndef PR_SET_MEMORY_MERGE
#define PR_SET_MEMORY_MERGE 67
#define PR_GET_MEMORY_MERGE 68
#endif
#ifndef PR_GET_SHADOW_STACK_STATUS
#define PR_GET_SHADOW_STACK_STATUS 74
#define PR_SET_SHADOW_STACK_STATUS 75
#define PR_LOCK_SHADOW_STACK_STATUS 76
#endif
#ifndef PR_GET_AUXV
#define PR_GET_AUXV 0x41555856
#endif

/* Not in the headers for programs, or only in ones that clash with libc's. */
#define LEVEL_NETLINK 270
#define UDP_OPT_ENCAP 100
#define TCP_OPT_AO_ADD_KEY 38
#define TCP_OPT_AO_DEL_KEY 39
#define TCP_OPT_AO_INFO 40
#define TCP_OPT_AO_REPAIR 42
#define NETFILTER_OPT_REPLACE 64 /* IPT_SO_SET_REPLACE, IP6T_SO_SET_REPLACE */
#define NETFILTER_OPT_COUNTERS 65
#define SOCK_TYPE_BITS 0xfu /* the rest of socket()'s type are flags */

/* clang-format takes these braces for blocks. */
/* clang-format off */
#define LIST(...) (const uint32_t[]){ __VA_ARGS__ }
#define LIST_LEN(...) (sizeof(LIST(__VA_ARGS__)) / sizeof(uint32_t))
#define MASKED_IN(n, m, ...) { ARG_IN, n, m, LIST(__VA_ARGS__), LIST_LEN(__VA_ARGS__) }
#define IN(n, ...) MASKED_IN(n, UINT32_MAX, __VA_ARGS__)
#define NOT_IN(n, ...) { ARG_NOT_IN, n, UINT32_MAX, LIST(__VA_ARGS__), LIST_LEN(__VA_ARGS__) }
#define ANY_BIT(n, m) { ARG_ANY_BIT, n, m, NULL, 0 }
#define AT_LEAST(n, v) { ARG_AT_LEAST, n, v, NULL, 0 }
#define OTHERWISE { ARG_DONE, 0, 0, NULL, 0 }
/* clang-format on */

#define RULE(call)                                                                                 \
	const struct arg_rule arg_rule_##call = { call##_clauses, ARRAY_SIZE(call##_clauses) }

/*
 * socket(family, type, protocol). SC-18, CC-05: a family is a kernel module that anybody can load;
 * four are enough. SC-19: netlink only for routes (getifaddrs). SC-20: TCP, UDP, ping; no raw
 * (NW-18), no SCTP, DCCP, MPTCP, UDP-Lite, L2TP. AF_INET with type SOCK_PACKET would be AF_PACKET.
 */
static const struct arg_clause socket_clauses[] = {
	{ { IN(0, AF_UNIX) }, VERDICT_ALLOW },
	{ { NOT_IN(0, AF_INET, AF_INET6, AF_NETLINK) }, VERDICT_ERRNO(EAFNOSUPPORT) },
	{ { IN(0, AF_NETLINK), IN(2, NETLINK_ROUTE) }, VERDICT_ALLOW },
	{ { IN(0, AF_NETLINK) }, VERDICT_ERRNO(EPROTONOSUPPORT) },
	{ { MASKED_IN(1, SOCK_TYPE_BITS, SOCK_RAW) }, VERDICT_ERRNO(EPERM) },
	{ { MASKED_IN(1, SOCK_TYPE_BITS, SOCK_STREAM), IN(2, 0, IPPROTO_TCP) }, VERDICT_ALLOW },
	{ { MASKED_IN(1, SOCK_TYPE_BITS, SOCK_DGRAM),
	    IN(2, 0, IPPROTO_UDP, IPPROTO_ICMP, IPPROTO_ICMPV6) },
	  VERDICT_ALLOW },
	{ { OTHERWISE }, VERDICT_ERRNO(EPROTONOSUPPORT) },
};
RULE(socket);

/* The kernel makes both sockets before it finds out that the family has no pairs. */
static const struct arg_clause socketpair_clauses[] = {
	{ { IN(0, AF_UNIX) }, VERDICT_ALLOW },
	{ { OTHERWISE }, VERDICT_ERRNO(EAFNOSUPPORT) },
};
RULE(socketpair);

/*
 * setsockopt(fd, level, option, ...). SC-22: options that attach programs or put another protocol
 * on top of a socket (TCP_ULP: espintcp, kTLS; UDP_ENCAP: ESP), IPsec policies, iptables, and the
 * TCP signatures, which load a cipher by name (SC-10). Levels are an allow-list: the kernel takes
 * UDP_ENCAP for a UDP socket at the UDP-Lite level too. IPv6 has ordinary options above 65, IPv4
 * has none above 63.
 */
static const struct arg_clause setsockopt_clauses[] = {
	{ { IN(1, SOL_SOCKET), IN(2, SO_ATTACH_BPF, SO_ATTACH_REUSEPORT_EBPF) },
	  VERDICT_ERRNO(EPERM) },
	{ { IN(1, SOL_SOCKET) }, VERDICT_ALLOW },
	{ { IN(1, IPPROTO_TCP),
	    IN(2, TCP_ULP, TCP_REPAIR, TCP_MD5SIG, TCP_MD5SIG_EXT, TCP_OPT_AO_ADD_KEY,
	       TCP_OPT_AO_DEL_KEY, TCP_OPT_AO_INFO, TCP_OPT_AO_REPAIR) },
	  VERDICT_ERRNO(EPERM) },
	{ { IN(1, IPPROTO_UDP), IN(2, UDP_OPT_ENCAP) }, VERDICT_ERRNO(EPERM) },
	{ { IN(1, IPPROTO_IP), AT_LEAST(2, NETFILTER_OPT_REPLACE) }, VERDICT_ERRNO(EPERM) },
	{ { IN(1, IPPROTO_IP), IN(2, IP_IPSEC_POLICY, IP_XFRM_POLICY) }, VERDICT_ERRNO(EPERM) },
	{ { IN(1, IPPROTO_IPV6), IN(2, NETFILTER_OPT_REPLACE, NETFILTER_OPT_COUNTERS,
				    IPV6_IPSEC_POLICY, IPV6_XFRM_POLICY) },
	  VERDICT_ERRNO(EPERM) },
	{ { IN(1, IPPROTO_IP, IPPROTO_TCP, IPPROTO_UDP, IPPROTO_IPV6, LEVEL_NETLINK) },
	  VERDICT_ALLOW },
	{ { OTHERWISE }, VERDICT_ERRNO(EPERM) },
};
RULE(setsockopt);

/* DV-01: types into a terminal. DV-02: pastes into the console. DV-03: loads a line discipline.
 * TIOCCONS takes the console's output. */
static const struct arg_clause ioctl_clauses[] = {
	{ { IN(1, TIOCSTI, TIOCLINUX, TIOCSETD, TIOCCONS) }, VERDICT_ERRNO(EPERM) },
	{ { OTHERWISE }, VERDICT_ALLOW },
};
RULE(ioctl);

/* SC-08, FS-07. CLONE_NEWTIME lies in clone's exit signal bits and means nothing there; no signal
 * is that large either, so refusing it costs nobody. CLONE_PARENT gives a child to one's own
 * parent, which for a context is the zygote: it would be the host's work to wait for them all, and
 * only what makes containers uses it. The flags come first on both our architectures. */
static const struct arg_clause clone_clauses[] = {
	{ { ANY_BIT(0, CLONE_NEWNS | CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC |
			       CLONE_NEWUTS | CLONE_NEWCGROUP | CLONE_NEWTIME | CLONE_PARENT) },
	  VERDICT_ERRNO(EPERM) },
	{ { OTHERWISE }, VERDICT_ALLOW },
};
RULE(clone);

/* An allow-list, so that the next kind of namespace is refused before we hear of it. */
static const struct arg_clause unshare_clauses[] = {
	{ { ANY_BIT(0, ~(uint32_t)(CLONE_FILES | CLONE_FS | CLONE_SYSVSEM | CLONE_VM |
				   CLONE_SIGHAND | CLONE_THREAD)) },
	  VERDICT_ERRNO(EPERM) },
	{ { OTHERWISE }, VERDICT_ALLOW },
};
RULE(unshare);

/* FS-10. Type 0 means a regular file. Also keeps payloads from making overlay whiteouts. */
#ifdef __x86_64__
static const struct arg_clause mknod_clauses[] = {
	{ { MASKED_IN(1, S_IFMT, 0, S_IFREG, S_IFIFO, S_IFSOCK) }, VERDICT_ALLOW },
	{ { OTHERWISE }, VERDICT_ERRNO(EPERM) },
};
RULE(mknod);
#endif

static const struct arg_clause mknodat_clauses[] = {
	{ { MASKED_IN(2, S_IFMT, 0, S_IFREG, S_IFIFO, S_IFSOCK) }, VERDICT_ALLOW },
	{ { OTHERWISE }, VERDICT_ERRNO(EPERM) },
};
RULE(mknodat);

/* SC-24: huge pages, as if there were none left. */
static const struct arg_clause mmap_clauses[] = {
	{ { ANY_BIT(3, MAP_HUGETLB) }, VERDICT_ERRNO(ENOMEM) },
	{ { OTHERWISE }, VERDICT_ALLOW },
};
RULE(mmap);

static const struct arg_clause memfd_create_clauses[] = {
	{ { ANY_BIT(1, MFD_HUGETLB) }, VERDICT_ERRNO(ENOMEM) },
	{ { OTHERWISE }, VERDICT_ALLOW },
};
RULE(memfd_create);

static const struct arg_clause shmget_clauses[] = {
	{ { ANY_BIT(2, SHM_HUGETLB) }, VERDICT_ERRNO(ENOMEM) },
	{ { OTHERWISE }, VERDICT_ALLOW },
};
RULE(shmget);

/* SC-13: Linux, 32-bit Linux, either with a 2.6 version number, and "what am I?". Not
 * ADDR_NO_RANDOMIZE or READ_IMPLIES_EXEC, which undo hardening across execve. */
static const struct arg_clause personality_clauses[] = {
	{ { IN(0, 0, 0x8, 0x20000, 0x20008, UINT32_MAX) }, VERDICT_ALLOW },
	{ { OTHERWISE }, VERDICT_ERRNO(EPERM) },
};
RULE(personality);

/* SC-23. SCHED_RESET_ON_FORK is a flag in the policy. */
static const struct arg_clause sched_setscheduler_clauses[] = {
	{ { MASKED_IN(1, ~(uint32_t)SCHED_RESET_ON_FORK, SCHED_FIFO, SCHED_RR, SCHED_DEADLINE) },
	  VERDICT_ERRNO(EPERM) },
	{ { OTHERWISE }, VERDICT_ALLOW },
};
RULE(sched_setscheduler);

static const struct arg_clause ioprio_set_clauses[] = {
	{ { MASKED_IN(2, 7u << IOPRIO_CLASS_SHIFT, IOPRIO_CLASS_RT << IOPRIO_CLASS_SHIFT) },
	  VERDICT_ERRNO(EPERM) },
	{ { OTHERWISE }, VERDICT_ALLOW },
};
RULE(ioprio_set);

/* SC-25: filters on top of ours only restrict further and stay allowed; a listener would let one
 * process answer another's calls. An unknown operation gets the kernel's answer. */
static const struct arg_clause seccomp_clauses[] = {
	{ { IN(0, SECCOMP_SET_MODE_FILTER), ANY_BIT(1, SECCOMP_FILTER_FLAG_NEW_LISTENER) },
	  VERDICT_ERRNO(EPERM) },
	{ { IN(0, SECCOMP_SET_MODE_FILTER, SECCOMP_GET_ACTION_AVAIL, SECCOMP_GET_NOTIF_SIZES) },
	  VERDICT_ALLOW },
	{ { IN(0, SECCOMP_SET_MODE_STRICT) }, VERDICT_ERRNO(EPERM) },
	{ { OTHERWISE }, VERDICT_ERRNO(EINVAL) },
};
RULE(seccomp);

/*
 * prctl(option, ...): what programs and the agent ask about themselves, commonest first. Refused
 * by name (SC-25): rewriting one's memory map, call redirection, core scheduling, strict seccomp,
 * and merging of equal pages, through which one box can feel another's memory. An option nobody
 * named gets EINVAL, as from an older kernel, so that programs which probe go on.
 */
static const struct arg_clause prctl_clauses[] = {
	{ { IN(0, PR_SET_NAME, PR_GET_NAME, PR_SET_VMA, PR_SET_PDEATHSIG, PR_GET_PDEATHSIG,
	       PR_GET_DUMPABLE, PR_SET_DUMPABLE, PR_SET_NO_NEW_PRIVS, PR_GET_NO_NEW_PRIVS,
	       PR_CAPBSET_READ, PR_CAPBSET_DROP, PR_CAP_AMBIENT, PR_GET_KEEPCAPS, PR_SET_KEEPCAPS,
	       PR_GET_SECUREBITS, PR_SET_SECUREBITS, PR_GET_SECCOMP, PR_GET_TIMERSLACK,
	       PR_SET_TIMERSLACK, PR_GET_TIMING, PR_SET_TIMING, PR_GET_TSC, PR_SET_CHILD_SUBREAPER,
	       PR_GET_CHILD_SUBREAPER, PR_SET_THP_DISABLE, PR_GET_THP_DISABLE,
	       PR_GET_SPECULATION_CTRL, PR_SET_SPECULATION_CTRL, PR_SET_MDWE, PR_GET_MDWE,
	       PR_GET_AUXV, PR_SET_PTRACER) },
	  VERDICT_ALLOW },
#ifdef __aarch64__
	{ { IN(0, PR_SVE_SET_VL, PR_SVE_GET_VL, PR_SME_SET_VL, PR_SME_GET_VL, PR_PAC_RESET_KEYS,
	       PR_PAC_SET_ENABLED_KEYS, PR_PAC_GET_ENABLED_KEYS, PR_SET_TAGGED_ADDR_CTRL,
	       PR_GET_TAGGED_ADDR_CTRL, PR_GET_SHADOW_STACK_STATUS, PR_SET_SHADOW_STACK_STATUS,
	       PR_LOCK_SHADOW_STACK_STATUS) },
	  VERDICT_ALLOW },
#endif
	{ { IN(0, PR_SET_SECCOMP), IN(1, SECCOMP_MODE_FILTER) }, VERDICT_ALLOW },
	{ { IN(0, PR_SET_SECCOMP, PR_SET_MM, PR_SET_SYSCALL_USER_DISPATCH, PR_SCHED_CORE,
	       PR_SET_TSC, PR_TASK_PERF_EVENTS_ENABLE, PR_TASK_PERF_EVENTS_DISABLE, PR_MCE_KILL,
	       PR_MCE_KILL_GET, PR_SET_IO_FLUSHER, PR_GET_IO_FLUSHER, PR_SET_MEMORY_MERGE,
	       PR_GET_MEMORY_MERGE, PR_GET_TID_ADDRESS) },
	  VERDICT_ERRNO(EPERM) },
	{ { OTHERWISE }, VERDICT_ERRNO(EINVAL) },
};
RULE(prctl);
