/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The messages between the server and the warden, over one SEQPACKET socket. The server is the less
 * trusted side: the warden checks every message with warden_check() and every field with its own
 * limits, so a server that has been taken over can do what these messages can do and nothing else.
 */
#pragma once

#include "wire/isolation.h"
#include "wire/wire.h"

#define WARDEN_ID_SIZE 32   /* of a sandbox or a layer: [a-z0-9]{1,31}, then NULs to the end */
#define WARDEN_LAYERS_MAX 8 /* snapshots upon snapshots */
/* that a box may have on top of the longest time-out: a run's, for files in and out */
#define WARDEN_SLACK_MS 60000
#define WARDEN_SERVER_FD 3 /* the server finds its socket to the warden here, */
#define WARDEN_LISTEN_FD 4 /* the listening socket here, */
#define WARDEN_STATE_FD 5  /* and the directory with the store here */
#define WARDEN_TLS_CERT_FD                                                                         \
	6 /* with TLS: the certificate and its key, which only root may be able to */
#define WARDEN_TLS_KEY_FD 7   /* read; closed otherwise */
#define WARDEN_LANGUAGES_FD 8 /* the directory of the language files; closed once they are read */

/* The server's exit status when it will not run with these settings. Until a server has said HELLO,
 * the warden gives up when one ends, and says why; from then on, one that ends is started again,
 * whatever its status. */
#define WARDEN_EXIT_REFUSED 78

struct warden_head {
	uint32_t type; /* enum warden_type */
	uint32_t len;  /* of the whole packet, header included */
	uint64_t request;
};

struct warden_hello {
	uint32_t version; /* WARDEN_VERSION */
	uint32_t zero;
};

/* Of what server, warden and egress say to each other: to be raised when any of it changes. After
 * SIGHUP the server may be of a newer build than the others, which then go on with the one
 * before. */
#define WARDEN_VERSION 3

struct warden_limits {
	uint64_t memory_bytes;
	uint64_t disk_bytes;
	uint64_t files;
	uint32_t pids;
	uint32_t cpu_milli;
};

enum warden_template {
	WARDEN_TEMPLATE_BASE = 1,
	WARDEN_TEMPLATE_CODE_INTERPRETER = 2,
};

#define WARDEN_CREATE_ROOT 1u  /* commands may be run as the box's root */
#define WARDEN_CREATE_PAUSE 2u /* when its time is over it is paused, not killed */
/* its first command is a script: a loaded interpreter walks in to become it, if there is one */
#define WARDEN_CREATE_SCRIPT 4u

struct warden_create {
	char id[WARDEN_ID_SIZE];
	uint32_t template; /* enum warden_template */
	uint32_t flags;    /* WARDEN_CREATE_* */
	struct warden_limits limits;
	uint64_t timeout_ms;
	uint32_t n_layers; /* over the template, the lowest first */
	uint32_t zero;
	char layer[WARDEN_LAYERS_MAX][WARDEN_ID_SIZE];
};

struct warden_target {
	char id[WARDEN_ID_SIZE];
};

struct warden_deadline {
	char id[WARDEN_ID_SIZE];
	uint64_t timeout_ms; /* from now */
};

struct warden_snapshot {
	char id[WARDEN_ID_SIZE];
	char layer[WARDEN_ID_SIZE]; /* a new name */
};

struct warden_layer {
	char layer[WARDEN_ID_SIZE]; /* of NEXT_LAYER: may be "" */
};

/* What a zygote has loaded. */
enum warden_zygote {
	WARDEN_ZYGOTE_PYTHON = 1, /* the interpreter and its shell */
	WARDEN_ZYGOTE_SCIENCE,    /* and the packages of [interpreter] preload */
	_WARDEN_ZYGOTE_MAX,
};

struct warden_context {
	char id[WARDEN_ID_SIZE];
	struct wire_context context;
	uint32_t zygote; /* enum warden_zygote */
	uint32_t flags;  /* WARDEN_CONTEXT_* */
};

/* The box may have been handed out with a context of that name that nobody has used. If it is of
 * another kind, it is replaced; otherwise nothing is done. */
#define WARDEN_CONTEXT_BETTER 1u

struct warden_socket {
	char id[WARDEN_ID_SIZE];
	uint32_t family; /* 4 or 6 */
	uint32_t zero;
};

struct warden_egress {
	uint64_t zero;
};

enum warden_state { WARDEN_STATE_RUNNING = 1, WARDEN_STATE_PAUSED = 2 };

/* Why a box ended. */
enum warden_reason {
	WARDEN_ENDED_KILLED = 1, /* somebody asked for it */
	WARDEN_ENDED_TIMEOUT,
	/* the kernel killed its agent for want of memory, or the warden all of it */
	WARDEN_ENDED_MEMORY,
	WARDEN_ENDED_CRASHED, /* its agent ended or broke the protocol */
	WARDEN_ENDED_STOPPED, /* the service was stopped or restarted */
	_WARDEN_ENDED_MAX,
};

/* Of the kernel's counters, never of the agent. */
struct warden_usage {
	uint64_t cpu_us;
	uint64_t cpu_user_us;
	uint64_t cpu_system_us;
	uint64_t memory_now;
	uint64_t memory_shmem; /* the part of it that is files or shared memory */
	uint64_t memory_cache;
	uint64_t memory_peak;
	uint64_t disk_used;
	uint64_t disk_size;
	uint64_t disk_free;
	uint64_t files_free;
	uint64_t oom_kills;
	uint64_t pids_denied;
	uint64_t read_bytes;
	uint64_t written_bytes;
	uint32_t pids_now;
	uint32_t pids_peak;
};

#define WARDEN_BOX_DOORS 1u /* it has doors to egress, which may have rules for it */

struct warden_box {
	char id[WARDEN_ID_SIZE];
	uint32_t state;             /* enum warden_state */
	uint32_t flags;             /* WARDEN_BOX_* */
	struct isolation isolation; /* the protections that are really on */
	uint64_t left_ms;           /* until its deadline; 0 when paused */
};

struct warden_ended {
	char id[WARDEN_ID_SIZE];
	uint32_t reason; /* enum warden_reason */
	uint32_t zero;
	struct warden_usage usage; /* the last that is known */
};

#define WARDEN_NET_CATCHES 1u /* programs that know of no proxy are redirected to one */

struct warden_reply {
	/* errno value, 0: done. ENOENT: no such box or layer. EEXIST: the name is taken. EBUSY: not
	 * in a state for that. EUSERS, ENOSPC, EAGAIN: no space for a box. */
	int32_t err;
	uint32_t flags; /* to NET, and to HELLO for boxes to come: WARDEN_NET_* */
	char where[32]; /* the step that failed */
	char msg[168];  /* one line for people, without a path of this machine */
	struct warden_box box;
	struct warden_usage usage;
	char layer[WARDEN_ID_SIZE]; /* to NEXT_LAYER, otherwise "" */
};

enum warden_type {
#define MESSAGE(name, number, direction, payload) WARDEN_##name = (number),
#include "wire/warden.def"
#undef MESSAGE
};

enum warden_direction { WARDEN_TO_WARDEN = 1, WARDEN_FROM_WARDEN = 2 };

struct warden_frame {
	struct warden_head head;
	union {
#define MESSAGE(name, number, direction, payload) payload as_##name;
#include "wire/warden.def"
#undef MESSAGE
	};
};

/* Is what arrived (n bytes) a message that may go in this direction, with all its text ended and
 * its reserved fields zero? 0, or -EPROTO. */
_must_check_ int warden_check(const struct warden_frame *f, size_t n, enum warden_direction where);

/* Is it [a-z0-9]{1,31} followed by NULs only? */
bool warden_id_ok(const char id[WARDEN_ID_SIZE]);

/* Fills in the header and sends; at most one descriptor goes with it (-EBADF: none). */
_must_check_ int warden_send(int sock, enum warden_type type, struct warden_frame *f, int fd);

/* Receives and checks: 1, 0 at the end, -EPROTO. *ret_fd is the descriptor that came, or -EBADF;
 * only a REPLY, a BOX and an EGRESS may bring one, and come without it where this process has no
 * number free. */
_must_check_ int warden_recv(int sock, struct warden_frame *ret, enum warden_direction where,
			     int *ret_fd);
