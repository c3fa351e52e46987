/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The zygote's system calls: those of a box and the four that walking into one takes. The filter
 * stays on in the contexts, below the box's own, so it may refuse nothing that a box allows; what
 * only the zygote may do, the box's filter takes away again. Build time only.
 */
#include "box/filter/filter_table.h"

#include "base/util.h"
#include "box/filter/syscall_nr.h"

#include <linux/keyctl.h>
#include <linux/prctl.h>
#include <linux/sched.h>

#ifndef PR_SCHED_CORE
#define PR_SCHED_CORE 62
#endif

#define CLAUSES_MAX 16

/* clang-format takes these braces for blocks. */
/* clang-format off */
#define LIST(...) (const uint32_t[]){ __VA_ARGS__ }
#define LIST_LEN(...) (sizeof(LIST(__VA_ARGS__)) / sizeof(uint32_t))
#define IN(n, ...) { ARG_IN, n, UINT32_MAX, LIST(__VA_ARGS__), LIST_LEN(__VA_ARGS__) }
#define OTHERWISE { ARG_DONE, 0, 0, NULL, 0 }
/* clang-format on */

/* One kind of namespace at a time, and a word about which it is: never all of somebody's by a
 * pidfd. */
static const struct arg_clause setns_clauses[] = {
	{ { IN(1, CLONE_NEWUSER, CLONE_NEWNS, CLONE_NEWPID, CLONE_NEWNET, CLONE_NEWIPC,
	       CLONE_NEWUTS, CLONE_NEWCGROUP, CLONE_NEWTIME) },
	  VERDICT_ALLOW },
	{ { OTHERWISE }, VERDICT_ERRNO(EPERM) },
};
static const struct arg_rule setns_rule = { setns_clauses, ARRAY_SIZE(setns_clauses) };

static const struct arg_clause keyctl_clauses[] = {
	{ { IN(0, KEYCTL_JOIN_SESSION_KEYRING) }, VERDICT_ALLOW },
	{ { OTHERWISE }, VERDICT_ERRNO(ENOSYS) },
};
static const struct arg_rule keyctl_rule = { keyctl_clauses, ARRAY_SIZE(keyctl_clauses) };

static struct arg_clause prctl_clauses[CLAUSES_MAX] = {
	{ { IN(0, PR_SCHED_CORE, PR_GET_TID_ADDRESS) }, VERDICT_ALLOW },
};
static struct arg_rule prctl_rule = { prctl_clauses, 1 };

static struct syscall_policy table[] = {
#define ALLOW(call) { #call, __NR_##call, VERDICT_ALLOW, NULL },
#define REFUSE(call, err) { #call, __NR_##call, VERDICT_ERRNO(err), NULL },
#define PRETEND(call) { #call, __NR_##call, VERDICT_ERRNO(0), NULL },
#define CHECK(call) { #call, __NR_##call, 0, &arg_rule_##call },
#include "box/filter/syscalls.def"
#undef ALLOW
#undef REFUSE
#undef PRETEND
#undef CHECK
};

/* The box's rule with ours before it. */
static void extend_prctl(void)
{
	for (size_t i = 0; i < arg_rule_prctl.n_clauses && prctl_rule.n_clauses < CLAUSES_MAX; i++)
		prctl_clauses[prctl_rule.n_clauses++] = arg_rule_prctl.clauses[i];
}

const struct syscall_policy *syscall_table(size_t *ret_len)
{
	if (prctl_rule.n_clauses == 1)
		extend_prctl();
	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		if (table[i].nr == __NR_setns)
			table[i].rule = &setns_rule;
		else if (table[i].nr == __NR_keyctl)
			table[i].rule = &keyctl_rule;
		else if (table[i].nr == __NR_prctl)
			table[i].rule = &prctl_rule;
		else if (table[i].nr == __NR_clone3) /* the only way to be born into a cgroup */
			table[i].verdict = VERDICT_ALLOW;
	}
	*ret_len = ARRAY_SIZE(table);
	return table;
}
