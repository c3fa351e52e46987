/* SPDX-License-Identifier: Apache-2.0 */
/* The server's process, and what is said to it. */
#pragma once

#include "warden/warden_priv.h"

/* link/server.c */
_must_check_ int room_find(struct warden *w, const char *program, struct fail *fail);
_must_check_ int room_start(struct warden *w, struct fail *fail);
void room_stop(struct warden *w);    /* asks, and kills after a while */
void room_restart(struct warden *w); /* with the program that was found last */
void room_greeted(struct warden *w);
void room_kill(struct warden *w);
void room_close(struct warden *w);
void room_refuse(struct warden *w, const char *why);
/* The same; if there is a program that was of our version, that one starts next. */
void room_refuse_version(struct warden *w);

/* link/talk.c */
void talk_open(struct warden *w);
void talk_close(struct warden *w);
void talk_ready(struct loop *l, struct source *source);
void talk_send(struct warden *w, enum warden_type type, const struct warden_frame *f, int fd);
void talk_reply(struct warden *w, struct pending *p, const struct ward *d, int fd);
void talk_reply_usage(struct warden *w, struct pending *p, struct ward *d);
void talk_reply_net(struct warden *w, struct pending *p, const struct ward *d, uint32_t flags);
void talk_reply_layer(struct warden *w, struct pending *p, const char layer[static WARDEN_ID_SIZE]);
void talk_refuse(struct warden *w, struct pending *p, int err, const char *where, const char *msg);
/* Keeps it for the next server; told: this one knows. */
void talk_ended(struct warden *w, const struct warden_ended *ended, bool told);
