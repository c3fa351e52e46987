/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sandboxes as the server knows them: a table in memory (by id), backed by the store, with each
 * one's control socket. The box itself is the warden's.
 */
#pragma once

#include "run/judge.h"
#include "server/sandbox/id.h"
#include "store/store.h"
#include "wire/warden.h"
#include "wire/wire.h"

#include <pthread.h>

struct interp_table;
struct metrics;
struct outlet;
struct server;
struct table;

struct op {
	int sock;
	int theirs;              /* until it is given away */
	struct sandbox *sandbox; /* a reference */
	struct op *next, *prev;  /* among its sandbox's */
};

#define OP_INIT                                                                                    \
	{                                                                                          \
		.sock = -EBADF, .theirs = -EBADF                                                   \
	}

struct sandbox {
	unsigned refs;        /* atomic */
	unsigned port_visits; /* requests to ports of its own programs that are under way; atomic */
	size_t *key_results;  /* what large results of its key take; atomic; the table's */
	struct server *server;
	bool had_doors; /* its box had a way out when this server took it up; never changes */
	pthread_mutex_t
		change; /* one change at a time: changes/changes.h; taken before all others */
	pthread_mutex_t save_lock; /* one save at a time; taken before the next one */
	pthread_mutex_t lock;      /* for everything below; never held while waiting for anybody */
	struct store_sandbox info; /* id, key_id, tokens, env, template and metadata never change */
	int control_fd; /* -EBADF while there is no box: paused without memory, or ended */
	bool boxless; /* its files are all there is of it: the end of its last box is not its own */
	uint64_t deadline_us;       /* since boot; info.end_ms is for people */
	uint64_t deadline_pause_us; /* when it was last paused because its time was over */
	struct op *ops;             /* open ones: hung up when it is paused or ends */
	struct isolation isolation;
	struct warden_limits limits;
	bool counted;                       /* what follows is known: */
	uint64_t memory_kills, pids_denied; /* as last counted by sandbox_judge() */
	struct outlet *outlet; /* its way out; NULL: it never had one. Stays once it is there */
	json_t *log; /* array of the newest entries, as clients see them; at most SANDBOX_LOG_MAX */
	size_t n_log_network;    /* how many of them are about the network */
	struct metrics *metrics; /* what it used: one block of control/metrics.c's own, or NULL */
	struct interp_table *interp; /* contexts of interpreters: interp/contexts.c; or NULL */
	void (*interp_forget)(struct sandbox *b); /* frees them; NULL while there are none */
	bool listed; /* it is in the table; this and what follows is guarded by the table's lock */
	struct sandbox *next;                          /* of the same hash */
	unsigned char token_digest[TOKEN_DIGEST_SIZE]; /* if it has a token */
	struct sandbox *token_next;                    /* of a digest in the same bucket */
	struct sandbox *key_next, *key_prev;           /* among those of its key, newest first */
};

#define SANDBOX_LOG_MAX 200 /* entries */
#define SANDBOX_LOG_NETWORK_MAX                                                                    \
	100                      /* of them about the network: so many the box itself can cause */
#define SANDBOX_LOG_LINE_MAX 400 /* bytes of a message */

_must_check_ int table_new(size_t max, struct table **ret);
void table_free(struct table *t);
/* For sandbox.c. Takes it out, with the table's reference; false when it was not in. */
bool table_remove(struct sandbox *b);
/* For sandbox.c. A box came to be, with these protections. */
void table_note_isolation(struct table *t, const struct isolation *isolation);
/* For table.c. Takes over what info points to, also when it fails. */
struct sandbox *sandbox_new(struct server *s, struct store_sandbox *info,
			    const struct warden_limits *limits);

/*
 * Puts a sandbox into the table, with the state its info says and no box yet. Takes over what info
 * points to, also when it fails. -EEXIST: there is one of that id; -EUSERS: max_of_key or the
 * table's own limit is reached (max_of_key 0: for one that exists already, there is no limit).
 */
_must_check_ int sandbox_add(struct server *s, struct store_sandbox *info,
			     const struct warden_limits *limits, size_t max_of_key,
			     struct sandbox **ret);
/* Takes it out of the table (once; later calls do nothing): nobody finds it any more. References
 * stay good. */
void sandbox_remove(struct sandbox *b);
/* It has a box, whose control socket is given away, also when it fails. -ENOENT: it has ended
 * meanwhile. */
_must_check_ int sandbox_set_box(struct sandbox *b, int control_fd,
				 const struct isolation *isolation);
/* Hangs up all its operations: it is about to be paused. With `box`, the control socket is closed
 * too. */
void sandbox_hang_up(struct sandbox *b, bool box);
/* Whether its files are all there is of it, and no box's end its own. -ENOENT when it has ended. */
_must_check_ int sandbox_set_boxless(struct sandbox *b, bool boxless);
bool sandbox_is_boxless(struct sandbox *b);
/* Saves info as it is now. Call with the lock free. */
_must_check_ int sandbox_save(struct sandbox *b);
/* It is over: out of the table, hung up, saved as ended with this reason. False when somebody else
 * was first. */
bool sandbox_end(struct sandbox *b, uint32_t reason, const char *detail);

/* References to all sandboxes of a key, or of all keys (NULL), newest first. Free with
 * sandbox_list_free(). */
_must_check_ int sandbox_list(struct server *s, const char *key_id, struct sandbox ***ret,
			      size_t *ret_n);
void sandbox_list_free(struct sandbox **list, size_t n);
size_t sandbox_count(struct server *s, const char *key_id);
/* The protections of the newest box; false when there has been none yet. */
bool sandbox_isolation(struct server *s, struct isolation *ret);

/* A reference to a sandbox that is running or paused; NULL when there is none of that id. */
struct sandbox *sandbox_get(struct server *s, const char *id);
void sandbox_ref(struct sandbox *b);
void sandbox_put(struct sandbox *b);
void sandbox_putp(struct sandbox **b);
/* For requests that name none: the sandbox that has this token. */
struct sandbox *sandbox_by_token(struct server *s, const char *token);
/*
 * The same for a signature that its token made (see E2B's signed URLs): all of them have to be
 * tried. One search at a time, which keeps nobody waiting but the next one.
 */
struct sandbox *sandbox_by_signature(struct server *s,
				     bool (*matches)(const char *token, void *arg), void *arg);

/* Makes sure it can be talked to: running, or paused and to be resumed by traffic (then it is
 * resumed). -ENOTCONN otherwise. */
_must_check_ int sandbox_wake(struct sandbox *b);

/* Opens an operation: an agent's message of this type, with the operation's other end. The socket
 * blocks and sends give up after ten seconds. Hung up (recv says 0) when the sandbox is paused or
 * ends; -ENOTCONN when it is already. The struct must stay where it is until op_close(). */
_must_check_ int op_open(struct sandbox *b, enum wire_type type, const void *data, size_t len,
			 struct op *ret);
/* Its two halves, for a caller that has something to say before the agent listens: that saves it
 * from being woken for each frame. op_close() after op_make(), too; op_give() has done so when it
 * fails. */
_must_check_ int op_make(struct op *ret);
_must_check_ int op_give(struct op *op, struct sandbox *b, enum wire_type type, const void *data,
			 size_t len);
/* Makes one of a connected socket, op->sock, which is hung up like the others. -ENOTCONN: it does
 * not run. */
_must_check_ int op_adopt(struct op *op, struct sandbox *b);
void op_close(struct op *op);

/* Where the host has no cgroup for it, a limit for each process is all there is; /capabilities says
 * so. */
void exec_limits(const struct isolation *has, const struct warden_limits *limits,
		 struct wire_exec *q);
void sandbox_exec_limits(struct sandbox *b, struct wire_exec *q);

/* A line in the sandbox's log: level is debug, info, warn or error. */
void sandbox_log(struct sandbox *b, const char *level, const char *fmt, ...) _printf_(3, 4);
/* The same for what the box asks of the network: "network: …". */
void sandbox_log_network(struct sandbox *b, const char *level, const char *fmt, ...) _printf_(3, 4);

/* What its programs are told of its way out, if it has one: all but what is given (may be NULL) or
 * is a variable of the sandbox's own. */
_must_check_ int sandbox_network_variables(struct sandbox *b, const json_t *given,
					   int (*add)(void *arg, const char *name,
						      const char *value),
					   void *arg);

/* Its way out, or NULL; good for as long as the reference to the sandbox is. */
struct outlet *sandbox_outlet(struct sandbox *b);

/* What the warden counts of it. */
_must_check_ int sandbox_usage(struct sandbox *b, struct warden_usage *ret);
/*
 * Which limit ended a command of it; *l has those of the command itself, the sandbox's are filled
 * in. What was killed or denied since somebody last asked here counts, so it is told once.
 */
enum run_limit sandbox_judge(struct sandbox *b, const struct wire_exit *end, struct run_limits *l);
