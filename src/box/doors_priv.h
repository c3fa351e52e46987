/* SPDX-License-Identifier: Apache-2.0 */
/* Between the files of doors. */
#pragma once

#include "box/doors.h"

/* Forks a helper: 0 in it, and then h->sock is its end of the socket and h->pid its parent, with which it ends. It has no
 * other descriptor but the box's pidfd. */
_must_check_ pid_t doors_fork(const struct box *b, struct doors_helper *h);

/* In the helper. From here on it has the powers of the box's root over the box's network, and none over anything else. */
_must_check_ int doors_enter(const struct box *b, const struct doors_helper *h);

/* In the helper: every connection of this network is led to the doors. */
_must_check_ int doors_catch(bool with_ipv6);
/* Is that the answer of a kernel without one of the parts that it takes, or of a container that forbids it? */
bool doors_cannot_catch(int err);
