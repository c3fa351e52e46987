/* SPDX-License-Identifier: Apache-2.0 */
/* src/egress/syscalls.def as the table that mkfilter compiles, with the rules about arguments.
 * Build time only. */
#include "box/filter/filter_table.h"

#include "base/util.h"
#include "box/filter/syscall_nr.h"

#include <asm/ioctls.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <sys/mman.h>
#include <sys/socket.h>

/* clang-format takes these braces for blocks. */
/* clang-format off */
#define LIST(...) (const uint32_t[]){ __VA_ARGS__ }
#define LIST_LEN(...) (sizeof(LIST(__VA_ARGS__)) / sizeof(uint32_t))
#define IN(n, ...) { ARG_IN, n, UINT32_MAX, LIST(__VA_ARGS__), LIST_LEN(__VA_ARGS__) }
#define NOT_IN(n, m, ...) { ARG_NOT_IN, n, m, LIST(__VA_ARGS__), LIST_LEN(__VA_ARGS__) }
#define ANY_BIT(n, m) { ARG_ANY_BIT, n, m, NULL, 0 }
#define OTHERWISE { ARG_DONE, 0, 0, NULL, 0 }
/* clang-format on */

#define VERDICT_KILL SECCOMP_RET_KILL_PROCESS
#define SOCK_KIND 0xfu /* of socket()'s type, without its flags */
#define RULE(call)                                                                                 \
	static const struct arg_rule egress_rule_##call = { call##_clauses,                        \
							    ARRAY_SIZE(call##_clauses) }

static const struct arg_clause ioctl_clauses[] = {
	{ { IN(1, FIONREAD, FIONBIO, SIOCOUTQ) }, VERDICT_ALLOW },
	{ { OTHERWISE }, VERDICT_ERRNO(ENOTTY) },
};
RULE(ioctl);

static const struct arg_clause fcntl_clauses[] = {
	{ { IN(1, F_GETFD, F_SETFD, F_GETFL, F_SETFL, F_SETPIPE_SZ, F_GETPIPE_SZ) },
	  VERDICT_ALLOW },
	{ { OTHERWISE }, VERDICT_ERRNO(EINVAL) },
};
RULE(fcntl);

/* TCP to hosts, UDP to the resolver, netlink to ask which addresses this machine has. Never raw
 * ones, never unix. */
static const struct arg_clause socket_clauses[] = {
	{ { IN(0, AF_INET, AF_INET6), NOT_IN(1, SOCK_KIND, SOCK_STREAM, SOCK_DGRAM) },
	  VERDICT_ERRNO(EAFNOSUPPORT) },
	{ { IN(0, AF_INET, AF_INET6), IN(2, 0, IPPROTO_TCP, IPPROTO_UDP) }, VERDICT_ALLOW },
	{ { IN(0, AF_NETLINK), IN(2, NETLINK_ROUTE) }, VERDICT_ALLOW },
	{ { OTHERWISE }, VERDICT_ERRNO(EAFNOSUPPORT) },
};
RULE(socket);

/* No options of netfilter, filters or devices. */
static const struct arg_clause setsockopt_clauses[] = {
	{ { IN(1, SOL_SOCKET),
	    IN(2, SO_KEEPALIVE, SO_LINGER, SO_SNDBUF, SO_RCVBUF, SO_RCVLOWAT, SO_REUSEADDR) },
	  VERDICT_ALLOW },
	{ { IN(1, IPPROTO_TCP) }, VERDICT_ALLOW },
	{ { IN(1, IPPROTO_IPV6), IN(2, IPV6_V6ONLY, IPV6_RECVERR) }, VERDICT_ALLOW },
	{ { OTHERWISE }, VERDICT_ERRNO(ENOPROTOOPT) },
};
RULE(setsockopt);

/* All code there will ever be is mapped before the seal. */
static const struct arg_clause mmap_clauses[] = {
	{ { ANY_BIT(2, PROT_EXEC) }, VERDICT_ERRNO(EPERM) },
	{ { OTHERWISE }, VERDICT_ALLOW },
};
RULE(mmap);

static const struct arg_clause mprotect_clauses[] = {
	{ { ANY_BIT(2, PROT_EXEC) }, VERDICT_ERRNO(EPERM) },
	{ { OTHERWISE }, VERDICT_ALLOW },
};
RULE(mprotect);

static const struct syscall_policy table[] = {
#define ALLOW(call) { #call, __NR_##call, VERDICT_ALLOW, NULL },
#define REFUSE(call, err) { #call, __NR_##call, VERDICT_ERRNO(err), NULL },
#define CHECK(call) { #call, __NR_##call, 0, &egress_rule_##call },
#define KILL(call) { #call, __NR_##call, VERDICT_KILL, NULL },
#include "egress/syscalls.def"
#undef ALLOW
#undef REFUSE
#undef CHECK
#undef KILL
};

const struct syscall_policy *syscall_table(size_t *ret_len)
{
	*ret_len = ARRAY_SIZE(table);
	return table;
}
