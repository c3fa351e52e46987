/* SPDX-License-Identifier: Apache-2.0 */
/* What main() starts with. */
#pragma once

#include "egress/egress.h"
#include "service/config.h"

/* --- settings.c ----------------------------------------------------------------------------- */

/* --egress.KEY=VALUE and --learn, and GLOVEBOX_EGRESS_PROXY. */
_must_check_ int settings_read(int argc, char **argv, struct egress *g, struct config *ret,
			       struct fail *fail);
/* egress.proxy, "http://[USER:PASSWORD@]HOST:PORT": looks up the host and fills in g's proxy. */
_must_check_ int settings_proxy(struct egress *g, const char *url, struct fail *fail);

/* --- seal.c --------------------------------------------------------------------------------- */

/* Shuts the room, for good: no file can be opened from here on, and only the system calls of
 * syscalls.def are left. */
_must_check_ int seal(struct fail *fail);

/* --- talk.c --------------------------------------------------------------------------------- */

_must_check_ int talk_open(struct egress *g, int warden_fd);
