/* SPDX-License-Identifier: Apache-2.0 */
/* What the core of the server asks of the control plane (control_*.c). */
#pragma once

#include "server/sandbox/sandbox.h"

/* Threads, queues: called once before the first request, after the sandboxes of the last run were taken up. */
_must_check_ int control_start(struct server *s, struct fail *fail);
void control_stop(struct server *s);

/* The warden said that a box is gone. The sandbox has been ended and saved (info has the reason); this is for
 * events and metrics. */
void control_ended(struct sandbox *b, const struct warden_usage *usage);

/* The warden said that a sandbox was paused because its time was over. Its operations were hung up and its state
 * saved. */
void control_paused(struct sandbox *b);

/* Traffic for a paused sandbox: resumes it if it is to be resumed by traffic, and returns when that is done.
 * -ENOTCONN: it is not. Several threads may call this at once. */
_must_check_ int control_wake(struct sandbox *b);

/* Has a box killed, in the worker's thread: that of a sandbox that has ended, or that is to have none. */
void kill_box_later(struct sandbox *b);

/* At start, for a row of the store: is it paused without memory? Any other one that has no box is lost. */
bool control_needs_no_box(const struct store_sandbox *info);

/* At start: the store's row of a sandbox that is lost has been saved as ended. For events, and for its layers. */
void control_lost(struct server *s, const struct store_sandbox *info);

/* The limits a sandbox was created with, for one that is taken up again: from info->config. */
void control_limits(struct server *s, const struct store_sandbox *info, struct warden_limits *ret);

/* Frees sandbox->control, which may be NULL. */
void control_forget(struct sandbox *b);

/* What a sandbox uses, as clients of the control plane see it; at most five seconds old. NULL: nobody knows yet. */
json_t *control_newest_sample(struct sandbox *b);
