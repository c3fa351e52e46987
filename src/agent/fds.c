/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/agent.h"

#include <sys/syscall.h>

#define KEEP_MAX 32

static void close_between(int above, int below)
{
	if (below - above > 1)
		(void)syscall(SYS_close_range, above + 1, below - 1, 0);
}

void agent_keep_fds(const int *fds, size_t n)
{
	int sorted[KEEP_MAX], last = 2;
	size_t n_sorted = 0;

	if (n > KEEP_MAX)
		_exit(1);
	for (size_t i = 0; i < n; i++) {
		size_t at = n_sorted;

		if (fds[i] <= 2)
			continue;
		for (; at > 0 && sorted[at - 1] > fds[i]; at--)
			sorted[at] = sorted[at - 1];
		sorted[at] = fds[i];
		n_sorted++;
	}
	for (size_t i = 0; i < n_sorted; i++) {
		close_between(last, sorted[i]);
		last = sorted[i];
	}
	(void)syscall(SYS_close_range, last + 1, ~0U, 0);
}
