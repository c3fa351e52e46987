/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the warden knows: one record, which all its groups share. What each of them does is in its
 * own header. Calls go down only:
 *
 *	warden.c, request.c, place.c    start and stop; what the server may ask for; where it all is
 *	boxes/     the life of boxes: begin, freeze, copy, end; the pool; memory and CPU shares
 *	zygote/    interpreters that are loaded, and forks of them for boxes
 *	net/       the process of egress, and doors of boxes to it
 *	layers/    files: snapshots on disk, the template's root, the processes that work on them
 *	link/      the server's process, and messages to and from it
 *	ward.c     the records of boxes
 */
#pragma once

#include "service/egress_start.h"
#include "service/state.h"
#include "template/template.h"
#include "warden/ward.h"
#include "warden/warden.h"

/* The server's process: link/server.c. */
struct outgoing;

struct room {
	int program_fd;
	int previous_fd; /* the program before that, until this one has said HELLO */
	pid_t pid;       /* 0: it does not run */
	int pidfd;
	int sock;
	unsigned number; /* counts the servers that there were */
	bool greeted;    /* it said HELLO */
	bool refused;    /* it broke the protocol and is being killed */
	bool restart;    /* it was asked to end so that another can start */
	struct source sock_source;
	struct source pid_source;
	struct timer timer; /* start it, or end it for good */
	struct outgoing *first, **last;
	uint64_t started_us;
	uint64_t backoff_us;
};

#define ROOM_INIT                                                                                  \
	{                                                                                          \
		.program_fd = -EBADF, .previous_fd = -EBADF, .pidfd = -EBADF, .sock = -EBADF,      \
		.sock_source = SOURCE_INIT, .pid_source = SOURCE_INIT,                             \
	}

/* The process of egress: net/egress.c. */
struct telling;

struct egress_place {
	struct egress_room room;
	struct source sock_source;
	struct source pid_source;
	struct timer timer; /* start it again, or go on telling */
	struct telling *first, **last;
	int operator_fd; /* the operator's rule sets, as they were read last */
	bool catches;    /* boxes can be given more than the proxy */
	uint64_t started_us;
	uint64_t backoff_us;
};

#define EGRESS_PLACE_INIT                                                                          \
	{                                                                                          \
		.room = EGRESS_ROOM_INIT, .sock_source = SOURCE_INIT, .pid_source = SOURCE_INIT,   \
		.operator_fd = -EBADF                                                              \
	}

/* Zygotes: those that the server names, and one that stands before a script, which comes with a box
 * or not at all. */
#define ZYGOTE_SCRIPT ((enum warden_zygote)_WARDEN_ZYGOTE_MAX)
#define ZYGOTES _WARDEN_ZYGOTE_MAX

/* The place of one kind. */
struct zygote_place {
	struct zygote *now; /* or NULL */
	struct timer timer; /* start one, or it does not get ready */
	uint64_t backoff_us;
	struct root *tried; /* with which one was started last */
	bool cannot;        /* not with that */
};

/* What a lower group has to tell the parts above it. Set before the loop runs. */
struct warden_hooks {
	void (*request)(struct warden *w, const struct warden_frame *f); /* the server asks */
	void (*server_over)(struct warden *w); /* it has ended, and is not started again */
	void (*zygote_ready)(struct warden *w, enum warden_zygote kind);
};

enum warden_phase {
	WARDEN_SERVING,
	WARDEN_CLOSING,  /* the server has been told to end */
	WARDEN_EMPTYING, /* boxes are being killed */
	WARDEN_OVER,
};

#define ENDED_KEPT 256 /* of the boxes that ended, for the next server */
#define BUCKETS 4096
#define ROOTS_MAX 16 /* states of the host that boxes stand on at once */
#define POOL_MAX 256 /* as config.def says */

/* What a copy of a box's files takes of the state's disk. */
struct copy_need {
	uint64_t bytes;
	uint64_t files;
};

struct warden {
	const struct config *config;
	pid_t pid; /* our own */
	struct loop loop;
	struct state state;
	int lock_fd;   /* STATE, locked */
	int layers_fd; /* STATE/layers */
	int listen_fd;
	int languages_fd;
	int discovery_fd; /* service.json, locked, when it is ours */
	int run_fd;       /* the directory it lies in */
	struct source signal_source;
	int signal_fd;
	char url[96];
	enum warden_phase phase;
	struct timer phase_timer;
	bool served; /* there has been a server that said HELLO */
	const char *server_program;
	int result; /* what to end with */
	struct fail fail;
	struct room room;
	struct box_host host;
	struct warden_hooks hooks;

	struct template template; /* as it is now */
	struct root {
		char path[PATH_MAX];
		size_t users; /* boxes that stand on it */
	} roots[ROOTS_MAX];
	struct root *root_now; /* of the newest box */
	bool roots_full;       /* and a newer state of the host has no place */
	struct timer roots_timer;

	struct ward *wards; /* all places for boxes */
	size_t n_wards;
	size_t n_used_wards; /* none behind that has ever been used */
	struct ward *free_wards;
	struct ward *bucket[BUCKETS];
	size_t n_boxes;    /* with an id */
	size_t n_starting; /* boxes for requests that are being set up */
	size_t n_dying;

	struct timer guard_timer;
	size_t guard_first; /* the box that is looked at first */

	struct zygote_place zygote[ZYGOTES]; /* by kind, from 1 */
	struct zygote *zygotes;              /* all there are, the replaced too */
	int zygote_cgroup_fd;                /* where they live, or -EBADF */

	struct egress_place egress;
	size_t n_networks; /* boxes that have doors to it */

	struct ward *pool[POOL_MAX]; /* those that wait */
	size_t n_waiting;
	size_t n_pool; /* and those that are being made */
	struct timer pool_timer;
	uint64_t pool_taken_us; /* when one was last asked for */

	struct warden_ended ended[ENDED_KEPT]; /* a ring */
	size_t n_ended;

	size_t n_copies;
	struct copy_need copying; /* all those that are being made */
	int trash_fd;             /* pidfd of the process that deletes dropped layers */
	struct source trash_source;
	unsigned trash_number; /* counts names of what is being deleted */
	bool trash_again;
};

/* What the handlers of its loop begin with. */
static inline struct warden *warden_of(struct loop *l)
{
	return container_of(l, struct warden, loop);
}

/* request.c: a message that passed warden_check() */
void request_handle(struct warden *w, const struct warden_frame *f);

/* place.c: the state directory and the address; service.json, once there is a server */
_must_check_ int place_open(struct warden *w, const char *client, struct fail *fail);
void place_publish(struct warden *w);
void place_unpublish(struct warden *w);
void place_close(struct warden *w);

/* warden.c */
void warden_served(struct warden *w); /* the server is there */

/* One line for people who run the service. */
void say(const char *fmt, ...) _printf_(1, 2);
