/* SPDX-License-Identifier: Apache-2.0 */
/* The life of boxes. */
#pragma once

#include "warden/warden_priv.h"

/* boxes/life.c. A ward that cannot be begun is gone; otherwise it ends by itself or with
 * ward_end(). */
struct ward_wish {
	const struct warden_limits *limits;
	uint32_t flags;
	uint32_t n_layers;
	const char (*layer)[WARDEN_ID_SIZE];
};
struct ward *ward_begin(struct warden *w, const struct ward_wish *wish, struct fail *fail);
/* It is ready, and the answer to the request. */
void ward_hand_out(struct warden *w, struct ward *d, struct pending *p);
/* Kills it. Told: the server knows already. */
void ward_end(struct warden *w, struct ward *d, enum warden_reason reason, bool told);
void ward_set_deadline(struct warden *w, struct ward *d, uint64_t timeout_ms);
_must_check_ int ward_freeze(struct warden *w, struct ward *d);
_must_check_ int ward_thaw(struct warden *w, struct ward *d);

/* boxes/snapshot.c: a box's files become a layer. The request is answered at the end, unless it cannot
 * even begin. */
_must_check_ int copy_begin(struct warden *w, struct ward *d, const char *layer,
			    const struct pending *p);
void copy_frozen(struct warden *w, struct ward *d); /* the box stands still: go on */
void copy_cancel(struct warden *w, struct ward *d, int err);
void copy_timed_out(struct warden *w, struct ward *d);

/* boxes/pool.c */
void pool_open(struct warden *w);
struct ward *pool_take(struct warden *w, const struct warden_limits *limits, uint32_t flags);
void pool_add(struct warden *w, struct ward *d); /* it is ready */
void pool_remove(struct warden *w, struct ward *d);
void pool_fill(struct warden *w);                             /* in a moment, if it is not full */
void pool_prepare(struct warden *w, enum warden_zygote kind); /* there is a zygote of that kind */

/* boxes/memory.c: looks after boxes from the first one on */
void guard_start(struct warden *w);
