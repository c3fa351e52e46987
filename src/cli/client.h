/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/util.h"

#include <sys/types.h>

/*
 * Starts glovebox-client with these descriptors as its standard input and output; it ends with us
 * at the latest. Unless it may go anywhere, it goes to this machine's service, whatever E2B_API_URL
 * says. Its pid, or -errno.
 */
_must_check_ pid_t client_spawn(const char *verb, bool anywhere, int in_fd, int out_fd);
