/* SPDX-License-Identifier: Apache-2.0 */
#include "box/filter/filter.h"

#include <assert.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/syscall.h>

#include "box_filter_data.h"

static_assert(ARRAY_SIZE(box_filter_code) <= BPF_MAXINSNS, "longer than the kernel takes");

const struct sock_filter *box_filter_program(size_t *ret_len)
{
	*ret_len = ARRAY_SIZE(box_filter_code);
	return box_filter_code;
}

int box_filter_install(void)
{
	/* The kernel only reads the program; the interface is older than const. */
	const struct sock_fprog prog = {
		.len = ARRAY_SIZE(box_filter_code),
		.filter = (struct sock_filter *)(uintptr_t)box_filter_code,
	};

	if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0UL, &prog) < 0)
		return -errno;
	return 0;
}
