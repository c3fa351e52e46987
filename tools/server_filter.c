/* SPDX-License-Identifier: Apache-2.0 */
/* src/server/syscalls.def as the table that mkfilter compiles, with the rules about arguments.
 * Build time only. */
#include "box/filter/filter_table.h"

#include "base/util.h"
#include "box/filter/syscall_nr.h"

#include <asm/ioctls.h>
#include <linux/netlink.h>
#include <linux/prctl.h>
#include <linux/sched.h>
#include <linux/sockios.h>
#include <sys/mman.h>
#include <sys/socket.h>

/* clang-format takes these braces for blocks. */
/* clang-format off */
#define LIST(...) (const uint32_t[]){ __VA_ARGS__ }
#define LIST_LEN(...) (sizeof(LIST(__VA_ARGS__)) / sizeof(uint32_t))
#define IN(n, ...) { ARG_IN, n, UINT32_MAX, LIST(__VA_ARGS__), LIST_LEN(__VA_ARGS__) }
#define ANY_BIT(n, m) { ARG_ANY_BIT, n, m, NULL, 0 }
#define OTHERWISE { ARG_DONE, 0, 0, NULL, 0 }
/* clang-format on */

#define VERDICT_KILL SECCOMP_RET_KILL_PROCESS
#define RULE(call)                                                                                 \
	static const struct arg_rule server_rule_##call = { call##_clauses,                        \
							    ARRAY_SIZE(call##_clauses) }

static const struct arg_clause ioctl_clauses[] = {
	{ { IN(1, FIONREAD, FIONBIO, SIOCOUTQ) }, VERDICT_ALLOW },
	{ { OTHERWISE }, VERDICT_ERRNO(ENOTTY) },
};
RULE(ioctl);

/* Netlink for name lookups, which ask which addresses this machine has. */
static const struct arg_clause socket_clauses[] = {
	{ { IN(0, AF_INET, AF_INET6, AF_UNIX) }, VERDICT_ALLOW },
	{ { IN(0, AF_NETLINK), IN(2, NETLINK_ROUTE) }, VERDICT_ALLOW },
	{ { OTHERWISE }, VERDICT_ERRNO(EAFNOSUPPORT) },
};
RULE(socket);

static const struct arg_clause socketpair_clauses[] = {
	{ { IN(0, AF_UNIX) }, VERDICT_ALLOW },
	{ { OTHERWISE }, VERDICT_ERRNO(EAFNOSUPPORT) },
};
RULE(socketpair);

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

static const struct arg_clause clone_clauses[] = {
	{ { ANY_BIT(0, CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC |
			       CLONE_NEWUTS | CLONE_NEWCGROUP) },
	  VERDICT_KILL },
	{ { ANY_BIT(0, CLONE_THREAD) }, VERDICT_ALLOW },
	{ { OTHERWISE }, VERDICT_KILL },
};
RULE(clone);

static const struct arg_clause prctl_clauses[] = {
	{ { IN(0, PR_SET_NAME, PR_GET_NAME) }, VERDICT_ALLOW },
	{ { OTHERWISE }, VERDICT_ERRNO(EINVAL) },
};
RULE(prctl);

static const struct syscall_policy table[] = {
#define ALLOW(call) { #call, __NR_##call, VERDICT_ALLOW, NULL },
#define REFUSE(call, err) { #call, __NR_##call, VERDICT_ERRNO(err), NULL },
#define CHECK(call) { #call, __NR_##call, 0, &server_rule_##call },
#define KILL(call) { #call, __NR_##call, VERDICT_KILL, NULL },
#include "server/syscalls.def"
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
