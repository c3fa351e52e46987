/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Port 49999: notebook cells. A context is an interpreter that the box's agent keeps under a name;
 * a cell is an operation, whose frames become lines of JSON for the client as they come.
 *
 *	interp/body.c      what POST /execute asks for. Pure.
 *	interp/event.c     what an interpreter said, as lines for the client. Pure.
 *	interp/contexts.c     the contexts of a sandbox, as the server knows them
 *	interp/make.c      making an interpreter, asking and ending them
 *	interp/cell.c      a cell on its way into the box, and what comes back of it
 *	interp/single.c    languages that keep no state: a cell is a command
 *	interp/stream.c    a reply of many lines
 *	interp/routes.c  the handlers
 *
 * Everything that comes out of a box is hostile: interpreters run foreign code, and so may the
 * agent by now.
 */
#pragma once

#include "language/language.h"
#include "server/envd/envd.h"
#include "server/server.h"

extern const struct route interp_routes[]; /* port 49999; ends with operation == NULL */

#define INTERP_CODE_MAX ((size_t)2 << 20)
#define INTERP_BODY_MAX ((uint64_t)8 << 20) /* code in JSON is longer than code */
#define INTERP_CONTEXTS_MAX 128             /* that a server remembers of one sandbox */
#define INTERP_HOME "/home/user"

/* --- what is asked for (interp/body.c) ------------------------------------------------------- */

/* 0: none. */
struct interp_limits {
	uint64_t wall_ms;
	uint64_t cpu_ms;
	uint64_t memory_bytes;
	uint64_t output_bytes;
};

/* The texts belong to the body. */
struct interp_execute {
	const char *code;
	size_t code_len;
	const char *context;  /* or NULL */
	const char *language; /* or NULL */
	const json_t *env;    /* object of strings, or NULL */
	struct interp_limits limits;
};

/* Reads a body that openapi.json has checked. most is what the settings allow. */
_must_check_ int interp_read_execute(const json_t *body, const struct interp_limits *most,
				     struct interp_execute *ret, struct rpc_error *e);
struct interp_limits interp_config_limits(const struct config *c);
struct run_limits interp_run_limits(const struct interp_limits *l);

/* Trimmed and in lower case; -EINVAL when nothing is left, or too much. */
_must_check_ int interp_language_name(const char *text, char ret[static LANGUAGE_NAME_MAX + 1]);

/* Does the code have the first part of one of these dotted names, as a word of its own? */
bool interp_mentions(const char *code, size_t len, const char *names);

/* --- what is said (interp/event.c) ----------------------------------------------------- */

#define INTERP_EVENT_MAX ((size_t)32 << 20)
#define INTERP_EVENT_VALUES_MAX ((size_t)1 << 20) /* AG-05: each costs some fifty bytes when read */
#define INTERP_LINE_MAX ((size_t)64 << 20)

#define INTERP_EVENT_SMALL ((size_t)256 << 10)

/* An event that comes in pieces. */
struct interp_assembly {
	struct buf text;
	bool too_large; /* its pieces are dropped */
	size_t came;    /* of it, with what was dropped */
	size_t charged; /* of what all may take, */
	size_t *of_key; /* and of what its key may: atomic */
};

void interp_assembly_init(struct interp_assembly *a, size_t *of_key);
/* -EPROTO: no agent makes one of that size. */
_must_check_ int interp_assembly_add(struct interp_assembly *a, const void *data, size_t len);
void interp_assembly_reset(struct interp_assembly *a);
/* What was made of it is gone, too: others may have its room. */
void interp_assembly_release(struct interp_assembly *a);

/* Is it one of those that are read one at a time? Others need not wait for them. */
bool interp_event_is_heavy(const void *text, size_t len);
/* From an interpreter's JSON text to an event for the client. -EINVAL: that is none; -E2BIG;
 * -ENOMEM. */
_must_check_ int interp_event_result(const void *text, size_t len, json_t **ret);
_must_check_ int interp_event_error(const void *text, size_t len, json_t **ret);
_must_check_ int interp_event_count(const void *text, size_t len, json_t **ret);
/* Of our own. NULL: no memory. The value and the traceback may be any bytes. */
json_t *interp_error(const char *name, const char *value, const char *traceback);
json_t *interp_usage(const struct wire_cell_end *end);
const char *interp_reason(const struct wire_cell_end *end);
/* How a process ended: "exit status 1"; for numbers that cannot be, "nobody knows how". */
void interp_exit_text(const struct wire_exit *end, char ret[ENVD_STATUS_SIZE]);

/* Appends the event, which is taken, as one line of ASCII. -ENOBUFS: it is too long; nothing was
 * added. */
_must_check_ int interp_line(struct buf *out, json_t *event);

/* The beginning of a character whose end is yet to come. */
struct interp_carry {
	unsigned char bytes[4];
	size_t len;
};

/* Output as a line: what is not UTF-8 is replaced, a character that is cut is kept for the next
 * call. */
_must_check_ int interp_line_output(struct buf *out, struct interp_carry *carry, bool is_err,
				    const void *data, size_t len);
/* What was kept and will not be completed. */
_must_check_ int interp_line_rest(struct buf *out, struct interp_carry *carry, bool is_err);

/* --- contexts (interp/contexts.c) --------------------------------------------------------------- */

struct interp_target {
	char name[WIRE_CONTEXT_SIZE];
	char cwd[WIRE_PATH_MAX + 1];
	const struct language *language; /* one that keeps state */
	uint64_t generation;
	bool fresh; /* as far as this server knows, nobody has used it */
};

/* What happened to a context since a target was found. */
enum interp_fate { INTERP_SAME, INTERP_RESTARTED, INTERP_REMOVED };

void interp_forget(struct sandbox *b); /* frees sandbox->interp, which may be NULL */

/* By its id: -EREMOTEIO when there is none. */
_must_check_ int interp_find(struct sandbox *b, const char *name, struct interp_target *ret,
			     struct rpc_error *e);
/* The one that a language's cells run in when they name none. */
_must_check_ int interp_default(struct sandbox *b, const struct language *l,
				struct interp_target *ret, struct rpc_error *e);
/* A new one, with a random name. */
_must_check_ int interp_add(struct sandbox *b, const struct language *l, const char *cwd,
			    struct interp_target *ret, struct rpc_error *e);
/* One that the agent says it has. */
void interp_note(struct sandbox *b, const struct wire_context *context, const char *cwd);
/* Its interpreter is about to be ended on purpose; with `forever` it is taken out. False: there
 * is none. */
bool interp_end(struct sandbox *b, const char *name, bool forever);
enum interp_fate interp_fate(struct sandbox *b, const struct interp_target *t);
json_t *interp_list(struct sandbox *b);
/* Was the agent asked for what a server before this one made? */
bool interp_is_complete(struct sandbox *b);
void interp_set_complete(struct sandbox *b);

/* --- languages (interp/routes.c) ----------------------------------------------------------- */

/* -EREMOTEIO: there is none of that name. "python" for NULL. */
_must_check_ int interp_language(const char *name, const struct language **ret,
				 struct rpc_error *e);

/* --- interpreters (interp/make.c) ------------------------------------------------------------ */

enum interp_way { INTERP_PYTHON, INTERP_SCIENCE, INTERP_EXEC };

/* Makes the interpreter of a context; from a zygote if that can be, unless `way` says otherwise.
 * 0: a cell for it may be sent now. */
_must_check_ int interp_make(struct request *r, const struct interp_target *t, enum interp_way way,
			     struct rpc_error *e);
/* A sandbox may have come with a context that has nothing but Python loaded: if nobody has used
 * it, it is replaced by one with the packages. If that cannot be, no harm is done. */
void interp_improve(struct request *r, const struct interp_target *t);
/* Ends it and waits until it is gone; 0 also when there is none. */
_must_check_ int interp_kill(struct request *r, const char *name, struct rpc_error *e);
/* Once for each sandbox: asks the agent for the contexts of an earlier server. */
_must_check_ int interp_sync(struct request *r);
/* Calls add() with each variable that programs of the sandbox get. Stops at what is not 0 and
 * returns it. */
_must_check_ int interp_variables(struct sandbox *b,
				  int (*add)(void *arg, const char *name, const char *value),
				  void *arg);

/* --- a cell (interp/cell.c) ------------------------------------------------------------------ */

/* Frames that wait until the agent reads: a cell's turn may be hours away. */
struct interp_outgoing {
	struct buf frames;
	size_t at;
};

struct interp_cell {
	struct request *request;
	struct interp_target target;
	struct wire_cell what;
	enum interp_way way; /* for making its context */
	unsigned tries;
	struct talk *talk;
	struct interp_outgoing outgoing;
};

/* execute is NULL for a cell that only prepares its context. */
_must_check_ int interp_cell_init(struct interp_cell *c, struct request *r,
				  const struct interp_target *t,
				  const struct interp_execute *execute);
void interp_cell_done(struct interp_cell *c);

/*
 * Sends it, makes its context first where there is none, and returns when the agent has said
 * something (1: it is in c->talk->frame and is not FAILED) or has said nothing for a moment (0: it
 * waits for its turn).
 */
_must_check_ int interp_cell_begin(struct interp_cell *c, struct rpc_error *e);
/* Sends what is left of it and waits for a frame: 1, or 0 when there was none until then. */
_must_check_ int interp_cell_await(struct interp_cell *c, uint64_t until_us);
/* It was refused before it began: sends it once more if that can help. */
_must_check_ int interp_cell_again(struct interp_cell *c, const struct wire_failed *failed,
				   struct rpc_error *e);

/* --- replies of lines (interp/stream.c) ------------------------------------------------------ */

struct interp_stream;

struct interp_source {
	/* Adds lines for as long as it need not wait. 0: nothing more now; an errno resets the
	 * connection. */
	int (*pump)(struct interp_stream *s);
	void (*free)(void *arg);
};

struct interp_stream {
	struct request *request;
	const struct interp_source *source;
	void *arg;
	int fd;       /* what to wait for */
	bool writing; /* also until it can be written */
	bool ended;
	struct buf out; /* not yet sent, from sent on */
	size_t sent;
	uint64_t last_us; /* when something was sent */
};

#define INTERP_BATCH ((size_t)32 << 10) /* pump() stops adding beyond this */
#define INTERP_FRAMES                                                                              \
	64 /* and after so many, however little they add: perhaps the client has gone */

/* Starts the reply; arg is the source's from then on, also when this fails. */
int interp_stream_reply(struct request *r, const struct interp_source *source, void *arg, int fd);
/* The last lines. */
_must_check_ int interp_stream_end(struct interp_stream *s, bool unexpected);

/* --- the rest -------------------------------------------------------------------------------- */

/* Replies for what went wrong before the first line. */
int interp_reply_error(struct request *r, int err, const struct rpc_error *e);

/* Follows a cell that has begun; has_frame: there is a frame in its talk. The cell is given
 * away. */
int interp_follow(struct interp_cell *c, bool has_frame);

/* A cell of a language that keeps no state (interp/single.c). */
int interp_single(struct request *r, const struct language *l, const struct interp_execute *x);

int interp_execute_handle(struct request *r);
int interp_contexts_list(struct request *r);
int interp_contexts_create(struct request *r);
