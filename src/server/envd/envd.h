/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The data plane: what a sandbox's logical port 49983 answers. In E2B a daemon in the sandbox does
 * this; here it is the server, which asks the box's agent. Everything the agent says is hostile: it
 * is checked here, field by field, and an agent that breaks the protocol is not asked anything
 * further on that operation.
 */
#pragma once

#include "server/http/http.h"
#include "server/rpc/rpc.h"
#include "server/sandbox/sandbox.h"

extern const struct route envd_routes[]; /* port 49983; ends with operation == NULL */

#define ENVD_TAG_MAX 256
#define ENVD_WAIT_MS 60000 /* for an answer of the agent, unless the client gives less */

/* --- one question to the agent (envd/talk.c) ------------------------------------------------- */

struct talk {
	struct request *request; /* NULL for one that outlives its request */
	struct op op;
	uint64_t until_us;       /* when to stop waiting for an answer; UINT64_MAX: never */
	struct wire_frame frame; /* what came last */
};

struct talk *talk_new(struct request *r); /* NULL: no memory */
void talk_free(struct talk *t);
void talk_freep(struct talk **t);

/*
 * Opens the operation. These and talk_recv() return 0 (talk_recv: 1 with a frame that passed
 * wire_check()), or
 *	-ENOTCONN	the sandbox is gone or paused
 *	-EPROTO		the agent broke the protocol
 *	-ETIMEDOUT	no answer in time
 *	-ECONNRESET	the client is gone, or -ESHUTDOWN: so are we
 */
_must_check_ int talk_open(struct talk *t, enum wire_type type, const void *data, size_t len);
_must_check_ int talk_send(struct talk *t, enum wire_type type, const void *data, size_t len);
_must_check_ int talk_text(struct talk *t, enum wire_type type, const char *text);
/* An ARG or ENV of any length: what does not fit follows as MORE. */
_must_check_ int talk_string(struct talk *t, enum wire_type type, const char *text, size_t len);
_must_check_ int talk_env(struct talk *t, const char *name, const char *value);
_must_check_ int talk_recv(struct talk *t);
/* However long sending took: the time for the answer begins now. */
void talk_wait_anew(struct talk *t);
/* From now on it may take as long as the client waits: what Connect-Timeout-Ms says, else for
 * ever. */
void talk_wait_with_client(struct talk *t);
int talk_left_ms(const struct talk *t); /* of that time, as poll() wants it */
/* The same without waiting, once talk_no_wait() was called: -EAGAIN when nothing is there. */
_must_check_ int talk_no_wait(struct talk *t);
_must_check_ int talk_recv_now(struct talk *t);
/* A pipe for a file's bytes, of which ours (0: to read, 1: to write) does not block. What it
 * holds, as far as the kernel lets us: ENVD_PIPE_SIZE or less. */
#define ENVD_PIPE_SIZE (1 << 20)
_must_check_ int talk_pipe(int ret[2], unsigned ours);
/* Waits for DONE: 0; 1 when FAILED came instead, with *ret_failed; anything else is -EPROTO. */
_must_check_ int talk_await_done(struct talk *t, struct wire_failed *ret_failed);
/* The frame, which must be FAILED, checked. */
_must_check_ int talk_failed(const struct wire_frame *f, struct wire_failed *ret);

/* Notes in the log that this box's agent broke the protocol; `what` is ours. Returns -EPROTO. */
int envd_broken(struct sandbox *b, const char *what);

/* --- commands -------------------------------------------------------------------------------- */

/* What Start asks for. The texts belong to the message. */
struct envd_start {
	const char *cmd;
	const json_t *args; /* array of strings, or NULL */
	const json_t *envs; /* object of strings, or NULL */
	const char *cwd;    /* or NULL */
	const char *tag;    /* or NULL */
	bool with_stdin;
	bool pty;
	uint16_t rows, cols;
};

struct envd_selector {
	uint32_t pid;    /* or 0: */
	const char *tag; /* by tag */
};

/* envd/process_message.c: pure. What clients ask for, */
_must_check_ int envd_decode_start(const json_t *message, struct envd_start *ret,
				   struct rpc_error *e);
_must_check_ int envd_decode_selector(const json_t *message, struct envd_selector *ret,
				      struct rpc_error *e);
_must_check_ int envd_decode_input(const json_t *message, enum wire_input_kind *ret_kind,
				   unsigned char **ret, size_t *ret_len, struct rpc_error *e);
_must_check_ int envd_decode_signal(const json_t *message, uint32_t *ret, struct rpc_error *e);

/* what they are told of a command, */
_must_check_ int envd_event_start(struct buf *out, uint32_t pid);
_must_check_ int envd_event_data(struct buf *out, enum wire_type type, const void *data,
				 size_t len);
/* why: the limit that ended it, a run_limit_text(), or "". -EPROTO for an end that cannot be. */
_must_check_ int envd_event_end(struct buf *out, const struct wire_exit *end, const char *why);
/* "exit status 1", "signal: killed". */
#define ENVD_STATUS_SIZE 64
_must_check_ int envd_exit_text(const struct wire_exit *end, char ret[ENVD_STATUS_SIZE]);

/* and what the agent keeps for us beside it, for List. */
#define ENVD_LABEL_MAX (UINT64_C(8) << 10)
_must_check_ int envd_label_make(const struct envd_start *start, struct buf *ret);
/* Its part of List's answer, made from what came back, which need not be what was sent. */
json_t *envd_label_read(uint32_t pid, const void *data, size_t len);
/* The command on one line, for the log: at most size - 1 bytes. */
void envd_command_line(const struct envd_start *start, char *ret, size_t size);

/* A FAILED of ATTACH, INPUT or TELL as an error for the client. */
int envd_process_failed(const struct wire_failed *failed, uint32_t pid, struct rpc_error *e);

int envd_process_list(struct request *r);
int envd_process_update(struct request *r);
int envd_process_send_input(struct request *r);
int envd_process_send_signal(struct request *r);
int envd_process_close_stdin(struct request *r);

int envd_process_start(struct request *r);
int envd_process_connect(struct request *r);
int envd_input_begin(struct request *r);
int envd_input_data(struct request *r, const char *data, size_t len);
int envd_input_handle(struct request *r);
void envd_input_done(struct request *r);

/* Follows a command whose operation is open (and given away). start is NULL for one that runs
 * already. */
int envd_follow(struct talk *t, const char *user, const struct envd_start *start, uint32_t pid,
		uint64_t timeout_ms);

/* --- files ----------------------------------------------------------------------------------- */

/* What the agent says a file is, checked. The texts point into the frame and are not terminated. */
struct envd_entry {
	const struct wire_fs_entry *head;
	const char *path, *owner, *group, *target, *attrs;
};

/* envd/fs.c */
_must_check_ int envd_entry_read(const void *data, size_t len, struct envd_entry *ret);
json_t *envd_entry_json(const struct envd_entry *entry); /* EntryInfo */
json_t *envd_entry_attrs(
	const struct envd_entry *entry); /* an object, or NULL when there are none */
#define ENVD_PERMISSIONS_SIZE 16
void envd_permissions(const struct wire_fs_entry *head, char ret[ENVD_PERMISSIONS_SIZE]);
#define ENVD_TIME_SIZE 48
void envd_time(int64_t s, uint32_t ns, char ret[ENVD_TIME_SIZE]); /* RFC 3339 */

/* envd/fs.c: opens a file operation: FS, USER, PATHs, and what comes before GO is sent. */
_must_check_ int envd_fs_open(struct talk *t, const struct wire_fs *request, const char *user,
			      const char *const *paths, size_t n_paths);
/* A FAILED of a file operation as an error for the client; path is the client's own. */
int envd_fs_failed(const struct wire_failed *failed, const char *user, const char *path,
		   struct rpc_error *e);

int envd_fs_stat(struct request *r);
int envd_fs_make_dir(struct request *r);
int envd_fs_move(struct request *r);
int envd_fs_remove(struct request *r);
int envd_fs_list_dir(struct request *r);    /* envd/list.c */
int envd_fs_watch_dir(struct request *r);   /* envd/watch.c */
int envd_watcher_create(struct request *r); /* envd/watcher.c */
int envd_watcher_events(struct request *r);
int envd_watcher_remove(struct request *r);
/* Ends polled watchers that nobody asks any more, or whose sandbox is gone: called now and then. */
void envd_watchers_tick(struct server *s);
void envd_watchers_stop(void); /* ends all of them */

/* envd/watch.c: a directory that is watched. */
struct envd_watch {
	struct talk *talk; /* talk_no_wait() */
	bool wants_entry;  /* the next frame is the ENTRY of this change: */
	uint32_t what;
	size_t name_len;
	char name[WIRE_PATH_MAX];
};

#define ENVD_WATCH_LOST "changes came too fast and some were lost"
_must_check_ int envd_watch_open(struct talk *t, const json_t *message, struct rpc_error *e);
/* The next event: 1. -EAGAIN when there is none now, -EOVERFLOW when some were lost, or as
 * talk_recv(). */
_must_check_ int envd_watch_next(struct envd_watch *w, json_t **ret);

/* --- plain HTTP ------------------------------------------------------------------------------ */

int envd_files_read(struct request *r);   /* envd/download.c */
int envd_upload_begin(struct request *r); /* envd/upload.c */
int envd_upload_data(struct request *r, const char *data, size_t len);
int envd_upload_handle(struct request *r);
void envd_upload_done(struct request *r);

/* A file operation's FAILED as a status of plain HTTP, and the reply for it. */
int envd_files_failed(struct request *r, const struct wire_failed *failed, const char *user,
		      const char *path);
