/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "server/server.h"

/*
 * Shuts the room (sys/seal.h): from here on this process can open files of the store only, and read
 * what is needed to call a webhook, and make only the system calls of syscalls.def. Everything must
 * be open by now. s->has_filter and s->landlock_abi say what is in force.
 */
_must_check_ int seal(struct server *s, struct fail *fail);
