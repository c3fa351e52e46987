/* SPDX-License-Identifier: Apache-2.0 */
/* Starting egress, as the warden and `glovebox run` do it. */
#pragma once

#include "service/config.h"
#include "wire/egress.h"

#include <sys/types.h>

struct egress_room {
	pid_t pid; /* 0: it does not run */
	int pidfd;
	int sock; /* OPERATOR, OPEN, CLOSE, SERVER go in here. It ends when this is closed. */
};

#define EGRESS_ROOM_INIT                                                                           \
	{                                                                                          \
		.pidfd = -EBADF, .sock = -EBADF                                                    \
	}

/*
 * Starts it: with power, as egress.user or an id that nobody has, never the server's. learn:
 * everything is let through, for the local operator alone. It knows nothing yet and refuses
 * everything; messages may be sent at once.
 */
_must_check_ int egress_start(const struct config *c, bool learn, struct egress_room *ret,
			      struct fail *fail);

/* Ends it, and waits for that. Safe on EGRESS_ROOM_INIT. */
void egress_end(struct egress_room *e);

/*
 * The operator's rule sets and settings as they are on disk now (service/sets.h), as a file that
 * nobody can change: what an OPERATOR message carries.
 */
_must_check_ int egress_operator_file(const struct config *c, int *ret_fd, struct fail *fail);

/* Makes that and tells it. */
_must_check_ int egress_tell_operator(const struct egress_room *e, const struct config *c,
				      struct fail *fail);
