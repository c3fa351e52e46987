/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pipes for splice(): bytes go from socket to socket through one without being copied. They are only held while there is something in
 * them, so a few do for a thousand connections.
 */
#include "egress/conn.h"

#include <fcntl.h>

#define KEPT 16
#define PIPE_BYTES (1024 * 1024) /* what the kernel gives to everybody (fs.pipe-max-size) */

static struct {
	int pipe[KEPT][2];
	size_t n;
} kept;

int pipes_take(int ret[2])
{
	if (kept.n) {
		kept.n--;
		memcpy(ret, kept.pipe[kept.n], sizeof(kept.pipe[0]));
		return 0;
	}
	if (pipe2(ret, O_NONBLOCK | O_CLOEXEC) < 0) {
		ret[0] = ret[1] = -EBADF;
		return -errno;
	}
	/* Not given when many pipes are in use: a small one does it, more slowly. */
	(void)fcntl(ret[1], F_SETPIPE_SZ, PIPE_BYTES);
	return 0;
}

void pipes_give(int pipe[2], bool is_empty)
{
	if (pipe[0] >= 0 && is_empty && kept.n < KEPT) {
		memcpy(kept.pipe[kept.n++], pipe, sizeof(kept.pipe[0]));
	} else {
		(void)fd_close(pipe[0]);
		(void)fd_close(pipe[1]);
	}
	pipe[0] = pipe[1] = -EBADF;
}
