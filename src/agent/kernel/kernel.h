/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Interpreters that keep their state ("kernels"), and the cells that run in them. Theory of
 * operation:
 *
 * A kernel is known by its context's name. It is our child (KERNEL), or was forked outside and
 * walked in (ADOPT); then its end is told on a pipe, by its parent. Cells wait in line, as sockets
 * that are not read. When a cell's turn comes, what it is to run is gathered from its socket,
 * whole, before the first byte goes to the kernel: who hangs up half-way leaves the kernel
 * untouched.
 *
 * What the kernel prints and says goes to the cell's socket. Output that was written before an
 * event is told before it: when the line of an event has been read, everything it follows is in the
 * pipes, and the kernel tells us how much that is. Only one frame waits for a socket; while it
 * does, nothing is read from the kernel, so a slow reader slows its own cell. Between cells output
 * stays in the pipes, for the next.
 *
 * The end of a kernel's process is the end of the context: what is left in the pipes is told, then
 * how it ended. Closing a cell's socket interrupts it. A kernel that breaks the protocol is killed.
 */
#pragma once

#include "agent/agent.h"
#include "agent/kernel/event.h"

#include <sys/resource.h>

#define KERNELS_MAX 64
#define KERNEL_SLOTS                                                                               \
	(KERNELS_MAX + 8) /* with those that have ended and whose last words are on their way */
#define CELLS_MAX 512
#define CELLS_PER_KERNEL 64
#define KERNEL_KILLERS_MAX 4
#define KERNEL_LISTERS_MAX 16

#define CELL_GATHER_US 10000000            /* how long a cell may take to bring what it is to run */
#define CELL_BYTES_MAX (UINT64_C(4) << 20) /* of all that a cell brings */
#define SPILL_BYTES_MAX (UINT64_C(64) << 20) /* of a file with output beyond the limit */

struct kernel;

enum spill_state {
	SPILL_NONE,
	SPILL_OPENING, /* the helper makes the file */
	SPILL_OPEN,
	SPILL_CLOSING, /* all was sent; it is not all written yet */
	SPILL_LOST,    /* there is no file, or it cannot be written: the rest is only counted */
};

struct spill {
	enum spill_state state;
	int sock; /* to the helper */
};

enum cell_state {
	CELL_FREE,
	CELL_WAITING,   /* for its turn: its socket is not read */
	CELL_GATHERING, /* what it is to run comes in */
	CELL_FEEDING,   /* that goes to the kernel; STARTED has been said */
	CELL_RUNNING,
	CELL_ENDING, /* the kernel has done with it; CELL_END is on its way */
};

enum { CELL_OUT, CELL_ERR, CELL_STREAMS };

struct cell {
	enum cell_state state;
	struct kernel *kernel;
	uint64_t order; /* who came first */
	int sock;       /* -EBADF: hung up */
	struct wire_cell request;
	bool heard;      /* of: its kernel has begun with it */
	bool erred;      /* its kernel has said so */
	uint64_t number; /* of the cell, as its kernel counts */
	unsigned stage;  /* of what it brings, see kernel/feed.c */
	uint64_t begun_us;
	uint64_t cpu_begun_us;
	uint64_t peak_begun;  /* the kernel's peak before it */
	uint64_t memory_seen; /* the largest of what was looked at */
	struct wire_cell_end end;
	bool told; /* CELL_END was sent, or nobody is there */
	uint64_t bytes[CELL_STREAMS];
	struct spill spill[CELL_STREAMS];
};

enum kernel_state {
	KERNEL_FREE,
	KERNEL_STARTING, /* between fork and exec */
	KERNEL_LOADING,  /* until it says that it is ready */
	KERNEL_READY,
	KERNEL_ENDED, /* its process is gone, and nobody finds it any more */
};

struct kernel_stream {
	int fd;
	bool readable;
	size_t owed;   /* bytes that were written before the event in hand */
	size_t before; /* bytes that were in it when the events in hand were read */
};

#define KERNEL_EVENTS_SIZE 16384

struct kernel {
	enum kernel_state state;
	struct wire_context context;
	uint64_t order; /* which was made first */
	pid_t pid;      /* 0: adopted, and not ready yet */
	bool child;     /* ours to reap */
	bool alive;
	uint64_t start; /* adopted: when it was started, so that nobody else is taken for it */
	bool broken;    /* it broke the protocol: it is not listened to any more */
	bool killed;    /* by us */
	bool more;      /* its turn was over before its work */
	struct wire_exit exit;
	int starter;            /* KERNEL's socket, until ready */
	struct wire_failed why; /* it will not be */
	int status_fd;
	int requests_fd;
	int events_fd;
	struct kernel_stream stream[CELL_STREAMS];

	/* what it says */
	bool events_readable;
	size_t events_left; /* after its end: bytes that it left in the pipe */
	bool dropping;      /* the event in hand belongs to no cell, or is one too many */
	bool drained;       /* after its end: what is left in the pipes has been looked at */
	struct kernel_event event;
	struct kernel_bytes in;

	/* the frame that waits for the cell's socket, or for a spill's */
	int *wait_fd;
	enum wire_type wait_type;
	unsigned char *wait_data;
	size_t wait_len;
	uint64_t spill_since_us; /* since when a spill's helper is waited for; 0: it is not */

	/* what it is to run */
	struct cell *cell;
	size_t n_cells; /* with the waiting ones */
	bool begun;     /* it has had a first cell */
	unsigned char *request;
	size_t request_at, request_len, request_size;
	char *cwd; /* NULL: the home directory */

	/* all of kernel_now_us(), 0: none */
	uint64_t deadline_us; /* to be ready, to have gathered, to have taken a cell */
	uint64_t again_us;    /* to be interrupted again */
	uint64_t kill_us;
	uint64_t presume_us; /* when a killed one that is not our child counts as gone */
	uint64_t look_us;    /* at its usage */

	/* what it used, as far as we can see */
	uint64_t ready_rss;
	uint64_t reaped_cpu_us; /* of its children, when last looked at */
	uint64_t peak;
	bool knows_user; /* who it is, and so who its files belong to */
	uint32_t uid, gid;

	int killers[KERNEL_KILLERS_MAX]; /* who waits for its end */
	unsigned char bytes[KERNEL_EVENTS_SIZE];
};

/* --- kernel/kernel.c: the table -------------------------------------------------------------- */

/* Time in which the box was awake. */
uint64_t kernel_now_us(void);
void kernel_wake_at(uint64_t when_us); /* the loop, at the latest; 0: never */

struct kernel *kernel_at(size_t i); /* 0 to kernels_count() - 1 */
size_t kernels_count(void);
struct kernel *kernel_find(const char *name);
void kernel_ready(struct kernel *k, uint64_t pid);
void kernel_failed(int sock, enum wire_step step, int err);  /* FAILED, and closes it */
void kernel_answer(int *sock, enum wire_step step, int err); /* DONE if err is 0 */

/* They take what they are given, whatever comes of it. */
void kernel_start(const struct wire_kernel *q, int sock, const int *join_fds, size_t n_join);
void kernel_adopt(const struct wire_context *q, int fds[_WIRE_ADOPT_MAX]);

void kernels_reaped(pid_t pid, int status, const struct rusage *used);
void kernels_watch(void);  /* before the loop waits */
void kernels_finish(void); /* after */

/* --- kernel/ask.c ---------------------------------------------------------------------------- */
void kernel_ask_list(int sock);
void kernel_ask_tell(const struct wire_context_tell *q, int sock);
void kernel_listers_watch(void);

/* --- kernel/cell.c --------------------------------------------------------------------------- */
void cell_queue(const struct wire_cell *q, int sock);
void cell_fail(struct cell *c, enum wire_step step, int err); /* before it was fed */
void cell_hung_up(struct cell *c);
void cell_over(struct kernel *k);   /* its cell: the kernel has done with it, or died */
bool cell_end_step(struct cell *c); /* false: something has to happen first */
void cells_fail_waiting(struct kernel *k);
void cells_turn(struct kernel *k); /* the next one, if it is free */
void cells_watch(void);

static inline bool cell_is_on(const struct cell *c)
{
	return c && (c->state == CELL_FEEDING || c->state == CELL_RUNNING);
}

/* --- kernel/feed.c --------------------------------------------------------------------------- */
void kernel_gather(struct kernel *k);
bool kernel_may_gather(const struct kernel *k); /* false: others hold too much memory */
void kernel_feed(struct kernel *k);
void kernel_request_free(struct kernel *k);

/* --- kernel/pump.c: what it prints and says -------------------------------------------------- */
void kernel_pump(struct kernel *k);
void kernel_pump_last(struct kernel *k); /* it has ended: what it left is still to be told */
void kernel_pump_watch(struct kernel *k);
void kernel_say(struct kernel *k, enum wire_type type, const void *data, size_t len);
void kernel_say_to(struct kernel *k, int *fd, enum wire_type type, const void *data, size_t len);
void kernel_wait_drop(struct kernel *k);

/* --- kernel/signal.c ------------------------------------------------------------------------- */
#define KERNEL_PATIENCE_US 5000000       /* from interrupt to kill */
#define KERNEL_LIMIT_PATIENCE_US 2000000 /* the same, when a limit was exceeded */
void kernel_interrupt(struct kernel *k, enum wire_cell_reason reason, uint64_t patience_us);
void kernel_interrupt_late(struct kernel *k); /* the cell has begun only now */
void kernel_kill(struct kernel *k);
void kernel_broken(struct kernel *k);
void kernel_check_deadlines(struct kernel *k);
void kernel_watch_deadlines(const struct kernel *k);
void kernel_sweep(pid_t session); /* SIGKILL for all of it */

/* --- kernel/usage.c -------------------------------------------------------------------------- */
struct kernel_proc {
	char state;
	uint64_t start; /* when it was started */
	pid_t session;
	uint64_t reaped_us; /* CPU time of the children it has reaped */
	uint64_t rss;
};

bool kernel_lives(const struct kernel *k);
_must_check_ int kernel_proc_stat(pid_t pid, struct kernel_proc *ret);

void kernel_usage_ready(struct kernel *k);
void kernel_usage_begin(struct kernel *k);
void kernel_usage_look(struct kernel *k); /* at the limits of its cell */
void kernel_usage_end(struct kernel *k);
void kernel_usage_reaped(struct kernel *k, const struct rusage *used);

/* --- kernel/spill.c: output beyond the limit ------------------------------------------------- */
void spill_open(struct cell *c, unsigned stream);
void spill_close(struct spill *s); /* all has been sent */
void spill_lose(struct cell *c, unsigned stream);
bool spills_open(const struct cell *c);
void spills_watch(struct cell *c);
