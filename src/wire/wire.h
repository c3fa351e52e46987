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
};

#define WIRE_EXEC_ALONE 1u /* when the command ends, so does everything else in the box */
#define WIRE_EXEC_STDIN 2u /* IN frames will follow; otherwise standard input is empty */
#define WIRE_EXEC_LAST 4u  /* nothing comes after it: the agent ends with it */
#define WIRE_EXEC_FLAGS (WIRE_EXEC_ALONE | WIRE_EXEC_STDIN | WIRE_EXEC_LAST)

/* Move a file tree, as this user. The descriptor: the operation's socket. */
struct wire_files {
	uint32_t uid;
	uint32_t gid;
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
	_WIRE_STEP_MAX,
};

struct wire_exit {
	int32_t code; /* 0..255, or -1 when a signal ended it */
	int32_t signal;
	uint32_t core; /* 0 or 1 */
	uint32_t zero;
};

struct wire_entry {
	uint64_t size;
	uint32_t mode; /* permission bits; in REFUSED the type bits only */
	uint32_t zero;
	/* the name follows, not terminated */
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
};

struct wire_frame {
	struct wire_head head;
	unsigned char data[WIRE_DATA_MAX];
} __attribute__((aligned(8)));

_Static_assert(sizeof(struct wire_frame) == WIRE_MAX, "a frame is one packet");

/* Is what arrived (n bytes) a message that may come on this socket? 0, or -EPROTO. */
_must_check_ int wire_check(const struct wire_frame *f, size_t n, enum wire_socket where);

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

/* Receives and checks: 1 for a message, 0 at the end, -EPROTO for anything that is not one. */
_must_check_ int wire_recv(int fd, struct wire_frame *ret, enum wire_socket where);
_must_check_ int wire_recv_fds(int fd, struct wire_frame *ret, enum wire_socket where, int *fds,
			       size_t *n_fds);

const char *wire_step_name(uint32_t step);
