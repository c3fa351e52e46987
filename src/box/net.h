/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A box's network namespace: `lo` and nothing else. Making one takes the kernel longer than all the
 * other namespaces together, so a helper process makes it while the box's child builds its file
 * system, and hands it over.
 */
#pragma once

#include "base/util.h"

#include <sys/types.h>

/*
 * Starts the helper: it enters the user namespace, makes the network namespace and sends it to the
 * other end of sock. Returns its pid; it ends by itself, and the caller reaps it.
 */
_must_check_ pid_t net_start(int userns_fd, int sock);

/* Waits for the helper, which has ended or is about to once the box has its namespace; with a signal, ends
 * it first. Sets *pid to 0; 0 is no helper. */
void net_reap(pid_t *pid, int sig);

/* In the box's child: takes what the helper sent and enters it. */
_must_check_ int net_enter(int sock);
