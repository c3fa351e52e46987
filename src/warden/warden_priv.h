/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Between the files of the warden.
 *
 *	warden.c    start, the loop, stop           room.c     the server's process
 *	notify.c    systemd                         talk.c     messages to and from it
 *	boxes/ward.c      one box from begin to end       boxes/request.c  what it may ask for
 *	boxes/table.c     boxes by id                     boxes/pool.c     boxes made ahead
 *	layers/layer.c     snapshots on disk               copy*.c    making one
 *	layers/helper.c    processes for files of boxes    tree*.c    what they do
 *	boxes/place.c     state, socket, files            layers/root.c      the template's root
 *	net/discovery.c service.json                    boxes/guard.c    memory and CPU shares
 *	zygote/zygote.c    interpreters that are loaded    zygote/process.c  how one is started
 *	zygote/context.c  forks of them for boxes   zygote/script.c   the one that stands before a script
 *	net/egress.c    the process of egress           net/net.c      doors of boxes to it
 */
#pragma once

#include "box/box.h"
#include "box/doors.h"
#include "service/egress_start.h"
#include "service/state.h"
#include "sys/loop.h"
#include "template/template.h"
#include "warden/warden.h"
#include "wire/warden.h"

struct warden;
struct ward;

/* --- boxes/ward.c: a box in our care ------------------------------------------------------------------ */

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

/* A request that is answered later, and by whom it was made: nobody else gets the answer. */
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
	bool hot;          /* beyond its memory limit, or near it and growing */
	uint64_t look_us;  /* when it is looked at for that */
	uint64_t charged;  /* what was seen then, */
	uint64_t grew_us;  /* and when it was last more than before */
	uint32_t weight;   /* as it was set, in thousandths */
	uint64_t memory_kills;
	unsigned kills_in_row;   /* since it was last within its memory limit */
	int victim_fd;           /* the last of them, until it is gone; -EBADF: none */
	uint64_t victim_us;      /* when it was killed, or missed; 0: nobody is waited for */
	bool stay_paused;        /* when its files have been copied */
	struct copy *copy;       /* freezing or frozen for that */
	struct doors doors;      /* to egress; none: it has no network */
	struct opening *opening; /* they are being opened */
	bool doors_told;         /* egress has them */
	struct pending net_pending[NET_WAITING];
	uint32_t
		prepared; /* of which zygote (enum warden_zygote) is the context it got in the pool; 0: it has none */
};

/* --- zygote/zygote.c: loaded interpreters -------------------------------------------------------------- */

/* Those that the server names, and one that stands before a script: it comes with a box or not at all. */
#define ZYGOTE_SCRIPT ((enum warden_zygote)_WARDEN_ZYGOTE_MAX)
#define ZYGOTES _WARDEN_ZYGOTE_MAX

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

/* The place of one kind. */
struct zygote_place {
	struct zygote *now; /* or NULL */
	struct timer timer; /* start one, or it does not get ready */
	uint64_t backoff_us;
	struct root *tried; /* with which one was started last */
	bool cannot;        /* not with that */
};

/* --- room.c: the server's process --------------------------------------------------------------- */

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

/* --- net/egress.c ------------------------------------------------------------------------------------- */

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
	size_t guard_first; /* who is looked at first */

	struct zygote_place zygote[ZYGOTES]; /* by kind, from 1 */
	struct zygote *zygotes;              /* all there are, the replaced too */
	int zygote_cgroup_fd;                /* where they live, or -EBADF */

	struct egress_place egress;
	size_t n_networks; /* boxes that have doors to it */

	struct ward *pool[POOL_MAX]; /* those that wait */
	size_t n_waiting;
	size_t n_pool; /* and those that are being made */
	struct timer pool_timer;
	uint64_t pool_taken_us; /* when somebody last asked for one */

	struct warden_ended ended[ENDED_KEPT]; /* a ring */
	size_t n_ended;

	size_t n_copies;
	struct copy_need copying; /* all those that are being made */
	int trash_fd;             /* pidfd of whoever deletes dropped layers */
	struct source trash_source;
	unsigned trash_number; /* counts names of what is being deleted */
	bool trash_again;
};

/* What the handlers of its loop begin with. */
static inline struct warden *warden_of(struct loop *l)
{
	return container_of(l, struct warden, loop);
}

/* boxes/table.c */
_must_check_ int table_open(struct warden *w);
void table_close(struct warden *w);
struct ward *table_find(struct warden *w, const char *id);
struct ward *table_take(struct warden *w); /* NULL: all are taken */
void table_name(struct warden *w, struct ward *d, const char *id);
void table_unname(struct warden *w, struct ward *d);
void table_give_back(struct warden *w, struct ward *d);

/* boxes/ward.c. A ward that cannot be begun is gone; otherwise it ends by itself or with ward_end(). */
struct ward_wish {
	const struct warden_limits *limits;
	uint32_t flags;
	uint32_t n_layers;
	const char (*layer)[WARDEN_ID_SIZE];
};
struct ward *ward_begin(struct warden *w, const struct ward_wish *wish, struct fail *fail);
/* It is ready: whoever asked for it gets it. */
void ward_hand_out(struct warden *w, struct ward *d, struct pending *p);
/* Kills it. Told: whoever should know does already. */
void ward_end(struct warden *w, struct ward *d, enum warden_reason reason, bool told);
/* Between two uses, a box's cgroups are closed. */
void ward_settle(struct ward *d);
/* It is dead: removes what is left of it, now or a little later. */
void ward_reap(struct warden *w, struct ward *d);
void ward_set_deadline(struct warden *w, struct ward *d, uint64_t timeout_ms);
/* boxes/ward_state.c */
_must_check_ int ward_freeze(struct warden *w, struct ward *d);
_must_check_ int ward_thaw(struct warden *w, struct ward *d);
void ward_on_timer(struct loop *l, struct timer *t);
void ward_usage(struct ward *d, struct warden_usage *ret);
void ward_describe(const struct ward *d, struct warden_box *ret);

/* layers/root.c: finds what boxes are made from. Cheap unless the host's /etc has changed. */
_must_check_ int root_find(struct warden *w, struct fail *fail);

/* zygote/zygote.c. Whether there can be any is decided by zygote_open(), before the first box is made. */
void zygote_open(struct warden *w);
void zygote_start_all(struct warden *w); /* the service is up */
void zygote_check_root(struct warden *w);
void zygote_close(struct warden *w);
bool zygote_is_on(const struct warden *w);
/* The one contexts are forked from now: -EOPNOTSUPP, -EAGAIN. */
_must_check_ int zygote_find(struct warden *w, const struct ward *d, enum warden_zygote kind,
			     struct zygote **ret);
/* zygote/process.c. Starts the process: its pidfd, the socket to it and what it prints are in z. */
_must_check_ int zygote_spawn(struct warden *w, struct zygote *z);
/* zygote/script.c, in its process: what the interpreter finds where its script will be, and the interpreter. */
_must_check_ int zygote_script_home(int root_fd);
_must_check_ int zygote_script_execute(const char *controls); /* only when it could not */
/* zygote/context.c. Sends somebody into a box, to become its first command, and tells its agent. */
_must_check_ int zygote_command(struct warden *w, struct ward *d);
/* Sends a context into a box and tells its agent. */
_must_check_ int zygote_context(struct warden *w, struct ward *d,
				const struct wire_context *context, enum warden_zygote kind);
/* One ahead of time; it replaces one of another kind. Who finds none makes one, so a failure is not worth a word. */
int zygote_prepare(struct warden *w, struct ward *d, enum warden_zygote kind);

/* net/egress.c. Reads the operator's rule sets, which must be right; the process comes with the first box that needs it. */
_must_check_ int egress_open(struct warden *w, struct fail *fail);
void egress_reload(struct warden *w); /* the rule sets, if they are right */
void egress_close(struct warden *w);
_must_check_ int egress_need(struct warden *w, struct fail *fail);
void egress_add(struct warden *w, struct ward *d);    /* a box has doors: net_told() follows */
void egress_remove(struct warden *w, struct ward *d); /* it ends */
void egress_greet_server(struct warden *w);           /* there is a new one */

/* net/net.c. Whoever asked is answered in any case. */
void net_begin(struct warden *w, struct ward *d, struct pending *p);
void net_socket(struct warden *w, struct ward *d, uint32_t family, struct pending *p);
void net_told(struct warden *w, struct ward *d);     /* egress has its doors */
void net_not_told(struct warden *w, struct ward *d); /* and will not have them soon */
void net_end(struct warden *w, struct ward *d);      /* before it loses its id */

/* boxes/pool.c */
struct ward *pool_take(struct warden *w, const struct warden_limits *limits, uint32_t flags);
void pool_add(struct warden *w, struct ward *d); /* it is ready */
void pool_remove(struct warden *w, struct ward *d);
void pool_fill(struct warden *w); /* in a moment, if it is not full */
void pool_improve(
	struct warden
		*w); /* when it is quiet: interpreters with more loaded, for those that wait */
void pool_on_timer(struct loop *l, struct timer *t);

/* boxes/guard.c: looks after boxes from the first one on */
void guard_start(struct warden *w);

/* room.c */
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

/* talk.c */
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

/* boxes/request.c: a message that passed warden_check() */
void request_handle(struct warden *w, const struct warden_frame *f);

/* layers/layer.c */
_must_check_ int layer_open_dir(struct warden *w, struct fail *fail);
bool layer_exists(const struct warden *w, const char *name);
_must_check_ int layer_drop(struct warden *w, const char *name);
/* The layer whose name follows in byte order (after "": the first). -ENOENT; -EOVERFLOW: there is more in the directory
 * than is read for one request. */
_must_check_ int layer_next(const struct warden *w, const char *after,
			    char ret[static WARDEN_ID_SIZE]);
void layer_empty_trash(struct warden *w);
/* Deletes an entry of STATE/layers, in a while. */
_must_check_ int layer_throw_away(struct warden *w, const char *entry);
struct layer_name {
	char text[WARDEN_ID_SIZE + 8];
};
struct layer_name layer_tmp_name(const char *name);
/* NAME.tmp becomes NAME, for good when the process that is started for that has ended with 0, or with an errno. */
_must_check_ int layer_keep(struct warden *w, const char *name, int *ret_pidfd);
struct layer_paths {
	char root[CONFIG_TEXT_SIZE + 64];
	char usr[CONFIG_TEXT_SIZE + 64];
};
_must_check_ int layer_paths(const struct warden *w, const char *name, struct layer_paths *ret);

/* layers/copy.c: a box's files become a layer. Whoever asked is answered at the end, unless it cannot even begin. */
struct copy;
_must_check_ int copy_begin(struct warden *w, struct ward *d, const char *layer,
			    const struct pending *p);
void copy_frozen(struct warden *w, struct ward *d); /* the box stands still: go on */
void copy_cancel(struct warden *w, struct ward *d, int err);
void copy_timed_out(struct warden *w, struct ward *d);
/* layers/copy_need.c. That much stays free on the state's disk. */
#define COPY_RESERVE_BYTES (UINT64_C(64) << 20)
#define COPY_RESERVE_FILES 1024
/* -ENOSPC: there is no room; -EAGAIN: not while others are being made. */
_must_check_ int copy_need(const struct warden *w, const struct ward *d, struct copy_need *ret);

/* layers/helper.c: what a forked helper does first. Keeps these descriptors only: the number of the first one. */
_must_check_ int helper_begin(const int *fds, size_t n_fds, pid_t parent);

/* boxes/place.c */
_must_check_ int place_open(struct warden *w, const char *client, struct fail *fail);
void place_close(struct warden *w);

/* net/discovery.c */
void discovery_open(struct warden *w);
void discovery_close(struct warden *w);

/* notify.c */
void notify_systemd(const char *text);

/* warden.c */
void warden_stop(struct warden *w);   /* begins to, or goes on with it */
void warden_served(struct warden *w); /* the server is there */

/* One line for whoever runs the service. */
void say(const char *fmt, ...) _printf_(1, 2);
