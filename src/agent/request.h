/* SPDX-License-Identifier: Apache-2.0 */
/* What a process becomes of a request that it has read. */
#pragma once

#include "agent/agent.h"
#include "wire/request.h"

/* Puts the user's variables (and a terminal's) before those that came; the last of a name wins. */
_must_check_ int request_environment(struct request *q, const struct agent_user *user, bool tty);

/* Enters the directory: relative to the user's home, or from "~"; nothing means the home. */
_must_check_ int request_enter(const struct request *q, const struct agent_user *user);
