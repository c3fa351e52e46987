/* SPDX-License-Identifier: Apache-2.0 */
/* What starting a command and starting an interpreter have in common. */
#pragma once

#include "box/box.h"
#include "wire/wire.h"

/* Without cgroups the per-process limits are all there is; with them they are a second lock. */
struct wire_exec box_exec_request(const struct box *b, const struct box_command *c);

/* AG-09: an agent that does not read must not hold us for ever. */
_must_check_ int box_limit_waiting(int sock);

/* Directory, arguments, environment, go. */
_must_check_ int box_send_command(int sock, const struct box_command *c);
