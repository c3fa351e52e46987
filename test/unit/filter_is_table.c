/* SPDX-License-Identifier: Apache-2.0 */
#include "filter_is_table.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "base/util.h"

size_t filter_is_its_table(const struct sock_filter *code, size_t len)
{
	size_t n;
	const struct syscall_policy *table = syscall_table(&n);

	for (size_t i = 0; i < n; i++) {
		if (!table[i].rule)
			assert_int_equal(bpf_verdict(code, len, BPF_NATIVE, table[i].nr, 0, 0, 0),
					 table[i].verdict);
		assert_int_equal(bpf_verdict(code, len, BPF_FOREIGN, table[i].nr, 0, 0, 0),
				 SECCOMP_RET_KILL_PROCESS);
	}
	for (int nr = 900; nr < 1000; nr++)
		assert_int_equal(bpf_verdict(code, len, BPF_NATIVE, nr, 0, 0, 0),
				 VERDICT_ERRNO(ENOSYS));
	return n;
}
