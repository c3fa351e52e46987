/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A ward: the warden's record of one box. Every group works on it and has its own part of it. What
 * is here only keeps the records and reads from them; how a box lives is in boxes/.
 */
#pragma once

#include "box/box.h"
#include "box/doors.h"
#include "sys/loop.h"
#include "wire/warden.h"

struct copy;
struct opening;
struct root;
struct warden;

enum ward_state {
	WARD_FREE,
	WARD_STARTING, /* being set up */
	WARD_WAITING,  /* in the pool */
	WARD_RUNNING,
	WARD_FREEZING, /* told to stop where it stands, not yet all of it has */
	WARD_PAUSED,
	WARD_COPYING, /* frozen while its files are kept as a layer */
	WARD_DYING,   /* killed; the kernel is not done with it */
};

/* A request that is answered later, and which server made it: no other gets the answer. */
struct pending {
	uint64_t request;
	unsigned server; /* 0: none */
};

#define NET_WAITING 4 /* requests that wait for the doors of one box */

struct ward {
	char id[WARDEN_ID_SIZE]; /* "": in the pool, or dying */
	enum ward_state state;
	struct ward *next; /* in its bucket, or among the free ones */
	struct box box;
	struct cgroup_exec leaf; /* where its commands run */
	struct source setup_source;
	struct source pid_source;
	struct timer timer; /* the deadline; else what the state waits for */
	struct pending pending;
	uint32_t flags; /* WARDEN_CREATE_* */
	struct warden_limits limits;
	struct root *root; /* what it stands on */
	uint32_t n_layers;
	char layer[WARDEN_LAYERS_MAX][WARDEN_ID_SIZE];
	uint64_t deadline_us;
	uint64_t since_us; /* of the state, where it may last only so long */
	uint64_t wait_us;  /* until it is looked at again */
	bool to_pause;     /* its time is over: PAUSED when frozen */
	bool stay_paused;  /* when its files have been copied */
	struct copy *copy; /* freezing or frozen for that */
	/* the zygote (enum warden_zygote) of its context from the pool; 0: none */
	uint32_t prepared;

	/* boxes/memory.c */
	bool hot;         /* beyond its memory limit, or near it and growing */
	uint64_t look_us; /* when it is looked at for that */
	uint64_t charged; /* what was seen then, */
	uint64_t grew_us; /* and when it was last more than before */
	uint32_t weight;  /* as it was set, in thousandths */
	uint64_t memory_kills;
	unsigned kills_in_row; /* since it was last within its memory limit */
	int victim_fd;         /* the last of them, until it is gone; -EBADF: none */
	uint64_t victim_us;    /* when it was killed, or missed; 0: none is waited for */

	/* net/ */
	struct doors doors;      /* to egress; none: it has no network */
	struct opening *opening; /* they are being opened */
	bool doors_told;         /* egress has them */
	struct pending net_pending[NET_WAITING];
};

_must_check_ int wards_open(struct warden *w);
void wards_close(struct warden *w);
struct ward *ward_find(struct warden *w, const char *id);
struct ward *ward_take(struct warden *w); /* NULL: all are taken */
void ward_name(struct warden *w, struct ward *d, const char *id);
void ward_unname(struct warden *w, struct ward *d);
void ward_give_back(struct warden *w, struct ward *d);
/* Does a box stand on it? */
bool wards_use_layer(const struct warden *w, const char *layer);

/* Between two uses, a box's cgroups are closed. */
void ward_settle(struct ward *d);
void ward_usage(struct ward *d, struct warden_usage *ret);
void ward_describe(const struct ward *d, struct warden_box *ret);
