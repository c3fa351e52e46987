/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SEQPACKET sockets between rooms: one send is one packet, so frames cannot be torn or glued.
 * Descriptors travel only where the receiver says how many it takes; anywhere else they are an
 * error (-EPROTO) and the kernel has already dropped them.
 */
#pragma once

#include "base/util.h"

#include <sys/types.h>
#include <sys/uio.h>

#define SOCK_FDS_MAX 20

_must_check_ int sock_pair(int ret[2]);

/* Sends one packet, gathered from parts. With fds, they are attached. -EAGAIN on a full
 * non-blocking socket, -EPIPE when the other side is gone (never SIGPIPE). */
_must_check_ int sock_send(int fd, struct iovec *parts, size_t n_parts, const int *fds,
			   size_t n_fds);

/* The same, but never waits: -EAGAIN also where the socket would. */
_must_check_ int sock_send_now(int fd, struct iovec *parts, size_t n_parts, const int *fds,
			       size_t n_fds);

/*
 * Receives one packet: its length, 0 at the end of the conversation. *n_fds is the room in fds on
 * entry and what came on return; fds == NULL takes none. -EMSGSIZE when the packet is larger than
 * size, -EPROTO when descriptors came that were not expected, -EMFILE when ones came that were, but
 * this process has no number free for them: the packet itself is in data. Where it fails none stays
 * open.
 */
_must_check_ ssize_t sock_recv(int fd, void *data, size_t size, int *fds, size_t *n_fds);
