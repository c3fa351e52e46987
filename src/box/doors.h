/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The doors of a box's network: sockets that are open in the box's own network namespace and belong
 * to egress, and rules that lead every connection to them. The namespace has `lo` and nothing else,
 * with or without doors: what does not come through one of them goes nowhere. Nobody but this box
 * can reach them.
 *
 * They are opened by a helper process, which reads nothing and ends at once.
 */
#pragma once

#include "box/box.h"
#include "wire/egress.h"

struct doors {
	size_t n;
	int fd[EGRESS_DOORS_MAX];
	uint32_t kind[EGRESS_DOORS_MAX]; /* enum egress_door */
	bool catches;                    /* programs that know of no proxy are led to one */
};

#define DOORS_INIT                                                                                 \
	{                                                                                          \
		.n = 0                                                                             \
	}

void doors_close(struct doors *d);

/* Opens them, and waits for it (about a millisecond). -EADDRINUSE: a program in the box has one of
 * the ports. */
_must_check_ int doors_open(const struct box *b, struct doors *ret, struct fail *fail);

/*
 * The same for those who do not wait. When sock can be read there is an answer for doors_take();
 * the helper then ends by itself, and once pidfd can be read (or before that, if one waits)
 * doors_done() removes what is left. With an earlier doors_done() it is killed.
 */
struct doors_helper {
	pid_t pid; /* 0: none */
	int pidfd;
	int sock;
};

#define DOORS_HELPER_INIT                                                                          \
	{                                                                                          \
		.pidfd = -EBADF, .sock = -EBADF                                                    \
	}

_must_check_ int doors_start(const struct box *b, struct doors_helper *ret, struct fail *fail);
_must_check_ int doors_take(struct doors_helper *h, struct doors *ret, struct fail *fail);
void doors_done(struct doors_helper *h);

/* How a helper begins, also for the test that looks at what it can still do. 0 in the helper: then
 * h->sock is its end of the socket and h->pid its parent, with which it ends. It has no other
 * descriptor but the box's pidfd. */
_must_check_ pid_t doors_fork(const struct box *b, struct doors_helper *h);
/* In the helper. From here on it has the powers of the box's root over the box's network, and none
 * over anything else. */
_must_check_ int doors_enter(const struct box *b, const struct doors_helper *h);

/* Can programs that know of no proxy be led to one on this machine? Tried in namespaces of its own:
 * 0, or why not. */
_must_check_ int doors_probe_catching(void);

/* A new TCP socket in the box's network, not connected. family: 4 or 6. -ESRCH: the box is gone.
 * For processes of one thread. */
_must_check_ int doors_socket(const struct box *b, int family, int *ret_fd);
