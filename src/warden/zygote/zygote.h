/* SPDX-License-Identifier: Apache-2.0 */
/* Loaded interpreters, and forks of them that walk into boxes. */
#pragma once

#include "warden/warden_priv.h"

/* One process. It may live on after it was replaced, until its last context has ended. */
struct zygote {
	struct zygote *next;
	enum warden_zygote kind;
	int sock;   /* -EBADF: nobody new is forked from it */
	int pidfd;  /* of its keeper */
	int out_fd; /* what it prints */
	struct source sock_source;
	struct source pid_source;
	struct source out_source;
	struct root *root; /* what it has loaded */
	uint64_t started_us;
	unsigned lines; /* that were passed on */
	bool ready;
};

/* zygote/zygote.c. Whether there can be any is decided by zygote_open(), before the first box is
 * made. */
void zygote_open(struct warden *w);
void zygote_start_all(struct warden *w);  /* the service is up */
void zygote_check_root(struct warden *w); /* boxes may stand on another one now */
void zygote_close(struct warden *w);
bool zygote_is_on(const struct warden *w);
/* The one contexts are forked from now: -EOPNOTSUPP, -EAGAIN. */
_must_check_ int zygote_find(struct warden *w, const struct ward *d, enum warden_zygote kind,
			     struct zygote **ret);

/* zygote/process.c. Starts the process: its pidfd, the socket to it and what it prints are in z. */
_must_check_ int zygote_spawn(struct warden *w, struct zygote *z);

/* zygote/context.c. Sends a fork into a box, to become its first command, and tells its agent. */
_must_check_ int zygote_command(struct warden *w, struct ward *d);
/* Sends a context into a box and tells its agent. */
_must_check_ int zygote_context(struct warden *w, struct ward *d,
				const struct wire_context *context, enum warden_zygote kind);
/* One ahead of time; it replaces one of another kind. Where there is none, one is made when it is
 * asked for, so a failure is not worth a word. */
int zygote_prepare(struct warden *w, struct ward *d, enum warden_zygote kind);
