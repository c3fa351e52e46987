/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The frames between the host and a box's agent. An operation is a socket: each command or file
 * transfer has its own SEQPACKET pair, so there is no multiplexing, back-pressure comes from the
 * kernel, and closing the socket cancels the operation.
 *
 * Both ends run on one machine and come from one build, so integers are in host order. What makes a
 * frame trustworthy is that it passed wire_check(); nothing reads a payload before.
 */
#pragma once

#include "base/util.h"

#include <sys/types.h>

#define WIRE_MAX 65536 /* a whole packet */
#define WIRE_DATA_MAX (WIRE_MAX - sizeof(struct wire_head))
#define WIRE_NAME_MAX 255 /* NAME_MAX */
#define WIRE_PATH_MAX 4095
#define WIRE_USER_MAX 32
#define WIRE_ATTR_MAX 4096

/* Where commands of a sandbox are looked for; at last where Go is when it came from no package. */
#define WIRE_BOX_PATH                                                                              \
	"/opt/glovebox/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:"          \
	"/usr/local/go/bin"

struct wire_head {
	uint16_t type; /* enum wire_type */
	uint16_t zero;
	uint32_t len; /* of the whole packet, header included */
};

/* Run a command. The descriptors: the operation's socket, then cgroup.procs files to join. */
struct wire_exec {
	uint32_t uid;
	uint32_t gid;
	uint32_t flags; /* WIRE_EXEC_* */
	int32_t oom_score_adj;
	uint64_t fsize_max;  /* RLIMIT_FSIZE */
	uint64_t data_max;   /* RLIMIT_DATA, 0: none */
	uint64_t nproc_max;  /* RLIMIT_NPROC, 0: none */
	uint64_t cpu_max_s;  /* RLIMIT_CPU, 0: none */
	uint64_t nofile_max; /* RLIMIT_NOFILE */
	/* the agent kills it then, whether or not somebody follows it; 0: never */
	uint64_t timeout_ms;
	uint16_t rows; /* of the terminal, with WIRE_EXEC_PTY */
	uint16_t cols;
	uint32_t zero;
};

#define WIRE_EXEC_ALONE 1u   /* when the command ends, so does everything else in the box */
#define WIRE_EXEC_STDIN 2u   /* IN frames will follow; otherwise standard input is empty */
#define WIRE_EXEC_LAST 4u    /* nothing comes after it: the agent ends with it */
#define WIRE_EXEC_KEEP 8u    /* it outlives its socket: who hangs up only stops following it */
#define WIRE_EXEC_PTY 16u    /* on a terminal of its own; its output comes as PTY */
#define WIRE_EXEC_RUNNER 32u /* the RUNNER becomes it, if one has come */
#define WIRE_EXEC_FLAGS                                                                            \
	(WIRE_EXEC_ALONE | WIRE_EXEC_STDIN | WIRE_EXEC_LAST | WIRE_EXEC_KEEP | WIRE_EXEC_PTY |     \
	 WIRE_EXEC_RUNNER)

/* A command that runs or has ended a short while ago, by the pid it has in the box. */
struct wire_process {
	uint32_t pid;
	uint32_t forked; /* 0 or 1, in STARTED only: it was not executed, a RUNNER has become it */
};

/* What the agent hands to a runner with EXEC, and what a command it forks itself would have. */
enum wire_runner_fd {
	WIRE_RUNNER_OP, /* the operation's socket: what to run is read from there */
	/* STARTED: it goes on as it is; FAILED: why not; just the end: it has executed */
	WIRE_RUNNER_STATUS,
	WIRE_RUNNER_OUT,
	WIRE_RUNNER_ERR,
	WIRE_RUNNER_IN, /* with WIRE_EXEC_STDIN */
	_WIRE_RUNNER_MAX,
};

/* Input for a running command, which must have that kind of it. */
struct wire_input {
	uint32_t pid;
	uint32_t kind; /* enum wire_input_kind */
};

enum wire_input_kind { WIRE_INPUT_ANY, WIRE_INPUT_PIPE, WIRE_INPUT_PTY, _WIRE_INPUT_KIND_MAX };

/* Something for a running command. */
struct wire_tell {
	uint32_t pid;
	uint32_t what; /* enum wire_tell_what */
	uint32_t signal;
	uint16_t rows;
	uint16_t cols;
};

enum wire_tell_what {
	WIRE_TELL_SIGNAL = 1,
	WIRE_TELL_RESIZE = 2,
	WIRE_TELL_CLOSE_INPUT = 3,
	_WIRE_TELL_MAX,
};

/*
 * What `sudo` in a box asks the agent for, on a connection of its own; the descriptors are its
 * standard input, output and error. Then USER, CWD, ARGs, ENVs and GO as for a command, then
 * SIGNALs.
 */
struct wire_sudo {
	uint32_t flags; /* WIRE_SUDO_* */
	uint32_t zero;
};

#define WIRE_SUDO_TTY 1u /* the standard input is the terminal the command is to live on */

struct wire_signal {
	uint32_t signal; /* 1..64 */
	uint32_t zero;
};

#define WIRE_SIGNAL_MAX 64

/* Move a file tree, as this user. The descriptor: the operation's socket. */
struct wire_files {
	uint32_t uid;
	uint32_t gid;
};

/* One file operation, done by a child that has become the user. Paths are the client's own text:
 * absolute, relative to the user's home, or "~"; they are resolved in the box and nowhere else. */
struct wire_fs {
	uint32_t op;    /* enum wire_fs_op */
	uint32_t flags; /* WIRE_FS_* */
	uint32_t depth; /* LIST: how deep, at least 1 */
	uint32_t zero;
	uint64_t offset; /* READ: where to begin */
	uint64_t length; /* READ: at most this much; UINT64_MAX: to the end */
};

enum wire_fs_op {
	WIRE_FS_STAT = 1, /* ENTRY */
	/* with its parents: ENTRY; EEXIST: it is there, ENOTDIR: as something else */
	WIRE_FS_MKDIR,
	WIRE_FS_MOVE,   /* two PATHs: ENTRY of the new place */
	WIRE_FS_LIST,   /* an ENTRY each, depth first, sorted by name in each directory */
	WIRE_FS_REMOVE, /* with everything below; not there is fine */
	WIRE_FS_READ,   /* ENTRY, DATA…, then DONE */
	/* DATA, PIPE…, FILE_END; then ENTRY. Hanging up before leaves nothing behind */
	WIRE_FS_WRITE,
	WIRE_FS_WATCH, /* DONE once watching, then CHANGEs until hung up */
	WIRE_FS_JOIN,  /* PATHs: destination first, then sources, which are removed: ENTRY */
	_WIRE_FS_MAX,
};

#define WIRE_FS_RECURSIVE 1u /* WATCH: directories below, also those made later */
#define WIRE_FS_ENTRIES 2u   /* WATCH: an ENTRY behind each CHANGE that has one */
#define WIRE_FS_FLAGS (WIRE_FS_RECURSIVE | WIRE_FS_ENTRIES)

/* What a file is. Behind it: path, owner, group, link target, then attributes (key, NUL, value,
 * NUL)…; every one of the lengths is without a terminator, and none of the texts has a NUL in
 * it. */
struct wire_fs_entry {
	uint64_t size;
	int64_t mtime_s;
	uint32_t mtime_ns;
	uint32_t type; /* enum wire_fs_type: of what a link leads to */
	uint32_t mode; /* permission bits, setuid, setgid, sticky; of what a link leads to */
	uint32_t is_link;
	uint16_t path_len;
	uint16_t owner_len;
	uint16_t group_len;
	uint16_t target_len; /* 0: not a link, or it leads nowhere */
	uint32_t attrs_len;
	uint32_t zero;
};

enum wire_fs_type { WIRE_FS_OTHER, WIRE_FS_FILE, WIRE_FS_DIR };

/* So many bytes of a file that is written, and behind them more frames. */
struct wire_pipe {
	uint64_t bytes; /* at least 1 */
};

struct wire_fs_change {
	uint32_t what; /* enum wire_fs_change_what */
	uint32_t has_entry;
	/* the name, relative to the watched directory, follows */
};

enum wire_fs_change_what {
	WIRE_FS_CREATED = 1,
	WIRE_FS_WRITTEN,
	WIRE_FS_REMOVED,
	WIRE_FS_RENAMED,
	WIRE_FS_CHMODDED,
	WIRE_FS_OVERFLOW, /* changes were lost; the name is "." */
	_WIRE_FS_CHANGE_MAX,
};

/* Why a command did not start. */
struct wire_failed {
	uint32_t step; /* enum wire_step */
	int32_t err;
};

enum wire_step {
	WIRE_STEP_NONE,
	WIRE_STEP_REQUEST, /* what was asked for cannot be read */
	WIRE_STEP_CGROUP,
	WIRE_STEP_RLIMIT,
	WIRE_STEP_DROP, /* becoming the user */
	WIRE_STEP_CWD,
	WIRE_STEP_EXEC,
	WIRE_STEP_USER,    /* there is no such user */
	WIRE_STEP_PROCESS, /* there is no such command, or it has no such input */
	WIRE_STEP_FILE,    /* the file operation itself: the errno says why */
	/* ENOENT: no such context, EEXIST: there is one, EAGAIN: too many, EBUSY: too many cells
	 * wait, EPIPE: it ended before it was ready */
	WIRE_STEP_CONTEXT,
	_WIRE_STEP_MAX,
};

struct wire_exit {
	int32_t code; /* 0..255, or -1 when a signal ended it */
	int32_t signal;
	uint32_t core;      /* 0 or 1 */
	uint32_t timed_out; /* 0 or 1: killed by its timeout_ms */
};

struct wire_entry {
	uint64_t size;
	uint32_t mode; /* permission bits; in REFUSED the type bits only */
	uint32_t zero;
	/* the name follows, not terminated */
};

/* --- interpreters ---------------------------------------------------------------------------- */

#define WIRE_CONTEXT_SIZE 40  /* [a-z0-9-]{1,39}, then NULs to the end */
#define WIRE_LANGUAGE_SIZE 24 /* the same */

struct wire_context {
	char name[WIRE_CONTEXT_SIZE];
	char language[WIRE_LANGUAGE_SIZE];
};

/* Starts an interpreter. The descriptors: as EXEC's. It finds its requests at descriptor 3 and says
 * its events at 4. */
struct wire_kernel {
	struct wire_exec exec;
	struct wire_context context;
};

/* An interpreter that was forked outside and walks into the box: the agent's ends of its pipes. */
enum wire_adopt_fd {
	WIRE_ADOPT_REQUESTS, /* to write */
	WIRE_ADOPT_EVENTS,   /* these to read */
	WIRE_ADOPT_OUT,
	WIRE_ADOPT_ERR,
	/* a struct wire_exit when it has ended; just the end when nobody knows how */
	WIRE_ADOPT_STATUS,
	_WIRE_ADOPT_MAX,
};

/* A limit of 0 is none. What exceeds a limit is interrupted, and killed if it goes on. */
struct wire_cell {
	char context[WIRE_CONTEXT_SIZE];
	uint64_t wall_ms;      /* from its turn on */
	uint64_t cpu_ms;       /* of the interpreter and what it has reaped */
	uint64_t memory_bytes; /* more than the interpreter had when it was ready */
	uint64_t output_bytes; /* of OUT, and again of ERR; the rest goes into a file */
};

struct wire_context_tell {
	char context[WIRE_CONTEXT_SIZE];
	uint32_t signal; /* SIGINT: interrupt the cell; SIGKILL: end the context */
	uint32_t zero;
};

struct wire_event {
	uint32_t kind; /* enum wire_event_kind */
	uint32_t zero;
};

enum wire_event_kind {
	WIRE_EVENT_COUNT = 1, /* the cell's number in its context */
	WIRE_EVENT_RESULT,
	WIRE_EVENT_ERROR,
	_WIRE_EVENT_MAX,
};

struct wire_spilled {
	uint32_t stream; /* 1: OUT, 2: ERR */
	uint32_t zero;
	/* the path of the file follows */
};

/* As far as the agent could see; the kernel's own counters are the warden's. */
struct wire_cell_end {
	uint32_t reason; /* enum wire_cell_reason */
	uint32_t died;   /* 0 or 1: the interpreter is gone, with all it knew, in this way: */
	struct wire_exit exit;
	uint64_t wall_us;
	uint64_t cpu_us;
	uint64_t memory_peak; /* of the interpreter: more than it had when it was ready */
	uint64_t out_bytes;   /* with what was spilled */
	uint64_t err_bytes;
};

enum wire_cell_reason {
	WIRE_CELL_DONE, /* by itself, also with an error */
	WIRE_CELL_INTERRUPTED,
	WIRE_CELL_WALL,
	WIRE_CELL_CPU,
	WIRE_CELL_MEMORY,
	_WIRE_CELL_MAX,
};

struct wire_context_info {
	struct wire_context context;
	uint32_t pid;
	uint32_t busy; /* cells that run or wait */
};

enum wire_type {
#define MESSAGE(name, number, socket, min, max) WIRE_##name = (number),
#include "wire/agent.def"
#undef MESSAGE
};

enum wire_socket {
	WIRE_ON_CONTROL = 1 << 0,
	WIRE_ON_TO_OP = 1 << 1,
	WIRE_ON_FROM_OP = 1 << 2,
	WIRE_ON_SUDO = 1 << 3,
};

struct wire_frame {
	struct wire_head head;
	unsigned char data[WIRE_DATA_MAX];
} __attribute__((aligned(8)));

_Static_assert(sizeof(struct wire_frame) == WIRE_MAX, "a frame is one packet");

/*
 * Is what arrived (n bytes) a message that may come on this socket, of a size it may have, with
 * every number that has a fixed meaning one of those that have one, and with nothing in reserved
 * fields? 0, or -EPROTO. What the numbers amount to (an exit code of 300) is for the reader to
 * judge.
 */
_must_check_ int wire_check(const struct wire_frame *f, size_t n, enum wire_socket where);

/*
 * The messages in a SEVERAL, one after the other: 1 and the next one, checked as if it had come
 * alone; 0 at the end; -EPROTO. *at is 0 to begin with. None of them is a SEVERAL.
 */
_must_check_ int wire_unpack(const struct wire_frame *several, size_t *at, enum wire_socket where,
			     struct wire_frame *ret);

static inline size_t wire_len(const struct wire_frame *f)
{
	return f->head.len - sizeof(f->head);
}

/* Is the text a single path component that can be created: no '/', NUL, "." or ".."? */
bool wire_name_ok(const unsigned char *name, size_t len);

/* Sends a message whose payload is data (and, if given, more behind it). */
_must_check_ int wire_send(int fd, enum wire_type type, const void *data, size_t len);
_must_check_ int wire_send2(int fd, enum wire_type type, const void *data, size_t len,
			    const void *more, size_t more_len);
_must_check_ int wire_send_fds(int fd, enum wire_type type, const void *data, size_t len,
			       const int *fds, size_t n_fds);
_must_check_ int wire_send_fds_now(int fd, enum wire_type type, const void *data, size_t len,
				   const int *fds, size_t n_fds); /* or -EAGAIN */

/* Receives and checks: 1 for a message, 0 at the end, -EPROTO for anything that is not one. */
_must_check_ int wire_recv(int fd, struct wire_frame *ret, enum wire_socket where);
_must_check_ int wire_recv_fds(int fd, struct wire_frame *ret, enum wire_socket where, int *fds,
			       size_t *n_fds);

/* Can a process have ended like this: with a status, or by a signal? */
bool wire_exit_ok(const struct wire_exit *e);

/* Is it [a-z0-9-]{1,size-1} followed by NULs only? */
bool wire_word_ok(const char *word, size_t size);

const char *wire_step_name(uint32_t step);
