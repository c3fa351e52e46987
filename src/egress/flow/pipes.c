/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pipes for splice(): bytes go from socket to socket through one without being copied. They are only held while
 * there is something in them, so a few do for a thousand connections. The kernel gives a user 64 MiB of large ones
 * and then only tiny ones, so that large ones are for those whose bytes flow: see flow_move().
 */
#include "egress/flow/conn.h"

#include <fcntl.h>

#define KEPT 16
#define LARGE_MAX 48 /* at once, of all boxes */

static struct pool {
	int pipe[KEPT][2];
	size_t n;
} pools[2];

static size_t n_large;

static int make(bool large, int ret[2])
{
	if (pipe2(ret, O_NONBLOCK | O_CLOEXEC) < 0) {
		ret[0] = ret[1] = -EBADF;
		return -errno;
	}
	/* Not given where the operator allows less: then it does it as it is, more slowly. */
	if (large)
		(void)fcntl(ret[1], F_SETPIPE_SZ, PIPE_LARGE);
	n_large += large;
	return 0;
}

int pipes_take(bool want_large, int ret[2], bool *ret_large)
{
	bool large = want_large && (pools[true].n || n_large < LARGE_MAX);
	struct pool *p = &pools[large];

	*ret_large = large;
	if (!p->n)
		return make(large, ret);
	p->n--;
	memcpy(ret, p->pipe[p->n], sizeof(p->pipe[0]));
	return 0;
}

void pipes_give(int pipe[2], bool large, bool is_empty)
{
	struct pool *p = &pools[large];

	if (pipe[0] < 0)
		return;
	if (is_empty && p->n < KEPT) {
		memcpy(p->pipe[p->n++], pipe, sizeof(p->pipe[0]));
	} else {
		(void)fd_close(pipe[0]);
		(void)fd_close(pipe[1]);
		n_large -= large;
	}
	pipe[0] = pipe[1] = -EBADF;
}
