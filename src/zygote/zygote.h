/* SPDX-License-Identifier: Apache-2.0 */
/* What kernels/python/zygote.py calls. */
#pragma once

/*
 * Waits for the warden's orders on the socket. Returns in a context: 0, and the caller is an
 * ordinary process of a box with its descriptors at their places. In the zygote itself: 1 when the
 * warden has hung up and the last context has ended, or -errno; -EBUSY when the process has more
 * than one thread.
 */
int zygote_serve(int sock);

/* Rearranges what has been loaded so that forking it is cheap. Without effect where the kernel
 * cannot. proc_fd is the process's own directory of /proc, and is closed. */
void zygote_compact(int proc_fd);
