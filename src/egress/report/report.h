/* SPDX-License-Identifier: Apache-2.0 */
/* What egress says: to the server about boxes, to the operator about itself. */
#pragma once

#include "egress/egress.h"

/* --- report.c: the log of connections ------------------------------------------------------- */

/* Fills in id and time and tells the server; if it does not listen, counts it as missed. Never
 * waits. number 0: a new one is given. Returns the number under which it was told; 0: it was
 * not. */
uint64_t report(struct egress *g, struct net *n, struct egress_event *e);
/* Takes one of a share, if there is one left. */
bool share_take(struct egress_share *s, uint64_t per_second, uint64_t burst);

/* --- say.c ---------------------------------------------------------------------------------- */

/* An event for the server; -EAGAIN, -ENOTCONN. */
_must_check_ int say_event(const struct egress *g, const struct egress_event *e);
/* One line on standard error: for what the operator should know. Never of anything a box said. */
void say_log(const char *fmt, ...) _printf_(1, 2);
