/* SPDX-License-Identifier: Apache-2.0 */
/* The server's end of the conversation with the warden: many threads ask, one thread reads. */
#pragma once

#include "wire/warden.h"

struct link;

struct link_events {
	void (*box)(void *arg, const struct warden_box *box, int control_fd /* given away */);
	void (*ended)(void *arg, const struct warden_ended *ended);
	void (*paused)(void *arg, const char *id);
	void (*egress)(void *arg, int sock /* given away */); /* a new one: it knows nothing yet */
	void (*lost)(void *arg); /* the warden is gone: so are all boxes, and so should we be */
};

/* Says HELLO and returns when the warden has told of all its boxes, through events called from
 * here. */
_must_check_ int link_open(int sock, const struct link_events *events, void *arg,
			   struct link **ret);

/* What the warden said of boxes to come: WARDEN_NET_*. */
uint32_t link_flags(const struct link *l);

/* Starts the thread that reads: only from here on link_ask() is answered and events come by
 * themselves. */
_must_check_ int link_start(struct link *l);
void link_close(struct link *l);

/*
 * Sends a request (its payload is filled in) and waits for its reply: at most timeout_ms, then
 * -ETIMEDOUT; -ENOTCONN when the warden is gone. 0 means that a reply came; whether it was done is
 * in its err. *ret_fd (may be NULL) is the descriptor that came with it, or -EBADF. What is asked
 * for may still happen after a time-out.
 */
_must_check_ int link_ask(struct link *l, enum warden_type type, struct warden_frame *request,
			  unsigned timeout_ms, struct warden_reply *ret, int *ret_fd);
