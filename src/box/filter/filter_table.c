/* SPDX-License-Identifier: Apache-2.0 */
#include "box/filter/filter_table.h"

#include "base/util.h"
#include "box/filter/syscall_nr.h"

static const struct syscall_policy table[] = {
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

const struct syscall_policy *syscall_table(size_t *ret_len)
{
	*ret_len = ARRAY_SIZE(table);
	return table;
}
