/* SPDX-License-Identifier: Apache-2.0 */
/* The boxes that the warden tells of: those of the last run of this program, and what happens to
 * them. */
#pragma once

#include "server/sandbox/link.h"
#include "server/server.h"

/* What link_open() is given; arg is the server. */
extern const struct link_events boxes_events;

/*
 * After link_open(), before link_start(): puts the sandboxes of the store and the warden's boxes
 * together. Rows whose box is gone are ended with the reason; boxes that nobody knows are left in a
 * list for boxes_kill_unknown().
 */
_must_check_ int boxes_take_up(struct server *s, struct fail *fail);
/* After link_start(). */
void boxes_kill_unknown(struct server *s);
/* Before the workers start: what the last server was at when it died is given to them. */
_must_check_ int boxes_finish_changes(struct server *s);
