/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Between sandbox/outlet.c (the table, and who waits), sandbox/outlet_talk.c (the thread that talks with egress) and sandbox/outlet_note.c
 * (what egress tells).
 *
 * Theory of operation: only one thread ever reads from or writes to egress. Who wants rules to hold puts them into the
 * outlet, marks it as stale, wakes the thread and waits; the thread sends what is stale, one outlet at a time, and
 * settles it when egress has answered. Those that somebody waits for come before those that are only told anew, of which
 * a changed secret or a new egress makes thousands; among these, keys take turns. Egress does not read while it has an
 * answer that we do not take: so nothing is sent while one is due. With a new socket everything is stale again, and
 * whoever waits is served by the next egress without knowing of it.
 *
 * The lock guards all that can change. It is never held while a message is sent, the store is asked or a sandbox is
 * looked for.
 */
#pragma once

#include "server/sandbox/outlet.h"
#include "server/server.h"

#include <pthread.h>

#define OUTLET_BUCKETS 1024
#define OUTLET_TURNS 64                  /* more or less one for each key that is busy */
#define OUTLET_MEET_US UINT64_C(1000000) /* that a new egress gets to come by itself */

/* Rules that several threads hold for a while; counted under the lock. */
struct held {
	unsigned refs;
	struct network network;
};

/* Outlets that egress is to be told of, in turn. */
struct stale_list {
	struct outlet *first, **last;
};

struct outlets {
	struct server *server;
	pthread_t thread;
	bool has_thread;
	int wake_fd; /* an eventfd: there is something to do */
	int sock;    /* to egress; this and the next two are the thread's own */
	bool awaits_answer;
	bool retry; /* what could not be sent, in a moment */
	pthread_mutex_t lock;
	bool stop;
	uint64_t
		meet_us; /* when the warden is asked for another socket; 0: one is there, or never was */
	int next_sock;                           /* one that the thread has not taken up yet */
	struct stale_list urgent;                /* before the next ones, */
	struct stale_list refresh[OUTLET_TURNS]; /* of which each gets its turn */
	size_t turn;
	struct outlet *bucket[OUTLET_BUCKETS];
};

struct outlet {
	struct outlets *all;
	struct outlet *next; /* in its bucket */
	char id[WARDEN_ID_SIZE];
	char key_id[STORE_ID_SIZE];
	size_t turn; /* its key's */
	bool catches;
	struct held *held;                       /* what is to hold; NULL: nothing was said yet */
	bool urgent;                             /* until it is settled: somebody waits for it */
	struct stale_list *stale;                /* egress is to be told: it is in this list, */
	struct outlet *stale_next, **stale_link; /* before this one and behind that */
	bool told;                               /* it was, and has not answered */
	bool settled;                            /* it has answered: err is its word */
	int err;
	pthread_cond_t changed;
	struct net_log log;
	uint64_t used_up, used_down; /* bytes, as far as egress has told */
	uint64_t second;             /* in which that many lines went into the sandbox's log, */
	unsigned lines;
	uint64_t unlogged; /* and that many events did not */
};

/* sandbox/outlet.c; with the lock held */
struct outlet *outlet_find(struct outlets *all, const char *id);
void outlet_set_stale(struct outlet *o);
void outlet_clear_stale(struct outlet *o);
void held_unref(struct held *h);

/* sandbox/outlet_talk.c */
void *outlets_talk(void *arg);

/* sandbox/outlet_note.c; without the lock */
void outlet_note(struct outlets *all, const struct egress_event *e);
