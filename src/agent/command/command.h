/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A command, and the table of them. Theory of operation:
 *
 * A command has up to three pipes (or one terminal) and any number of followers up to a bound:
 * sockets to the host that get STARTED, all output, EXIT. What is read from a pipe goes to every
 * follower; one that cannot take it makes it wait, and while something waits the command's pipes
 * are not read. So a slow reader slows its own command, as a pipe would, and nobody else. Its input
 * comes from writers: sockets that bring IN frames, the first follower's own among them. One frame
 * at most waits to be written.
 *
 * The process and its pipes end independently. EXIT is told when the process has been reaped and
 * the pipes have reached their end, or will not be waited for. A command that was to be kept stays
 * in the table for a while after that, so that a late question still gets the answer.
 */
#pragma once

#include "agent/agent.h"

#define COMMANDS_MAX 256
#define FOLLOWERS_MAX 8
#define WRITERS_MAX 256
#define LISTERS_MAX 16
#define PTY_CHUNK 16384
#define TIMEOUT_MAX_MS (UINT64_C(366) * 86400 * 1000) /* so that no sum of times overflows */

struct command;

struct follower {
	int sock;
	bool owes; /* it has not got what waits yet */
	struct command *command;
};

enum command_state {
	COMMAND_FREE,
	COMMAND_STARTING, /* between fork and exec */
	COMMAND_RUNNING,  /* executed; until EXIT has been offered to the followers */
	COMMAND_TELLING,  /* EXIT is on its way to them */
	COMMAND_ENDED,    /* remembered only */
};

struct command {
	enum command_state state;
	pid_t pid;  /* names it in messages, also after its end */
	bool alive; /* not reaped yet: pid is certainly this process */
	bool alone; /* WIRE_EXEC_ALONE, _LAST, _KEEP and _PTY */
	bool last;
	bool keep;
	bool pty;
	bool forked;          /* it was not executed: a runner has become it */
	bool wants_input;     /* WIRE_EXEC_STDIN: IN frames come on the socket that started it */
	bool cancelled;       /* nobody wants it any more: no EXIT will be told */
	bool hurried;         /* it was told to end: do not wait for its pipes */
	bool close_input;     /* once what waits has been written */
	uint64_t deadline_us; /* 0: none */
	/* when the process was reaped or the command hurried, the later of both */
	uint64_t ended_us;
	struct wire_exit exit;
	/* the child says here what went wrong before exec, or by closing it that all is well */
	int status_fd;
	int in_fd;
	int out_fd; /* with a terminal: its master, for both directions (in_fd is a copy) */
	int err_fd;
	struct follower follower[FOLLOWERS_MAX];
	unsigned char *label;
	size_t label_len;
	enum wire_type out_type; /* what waits for those followers who owe */
	unsigned char *out_data;
	size_t out_len;
	unsigned char *in_data; /* what waits to be written to in_fd */
	size_t in_at, in_len;
};

/* command/command.c: the table */
struct command *command_new(void); /* NULL: the table is full */
void command_free(struct command *c);
struct command *command_find(uint32_t pid); /* started, running or ended lately; NULL */
struct command *command_at(size_t i);       /* 0 to COMMANDS_MAX - 1 */
void command_signal(struct command *c, int sig);
void command_hurry(struct command *c);  /* tell EXIT soon, even if its pipes are held open */
void command_cancel(struct command *c); /* its last follower is gone, and it was not to be kept */
void commands_reaped(pid_t pid, int status);
void commands_watch(void);  /* before the loop waits */
void commands_finish(void); /* after */

/* command/start.c: sock is the command's from then on; on failure it stays the caller's. */
_must_check_ int command_start(const struct wire_exec *request, int sock, const int *join_fds,
			       size_t n_join);
void command_status_ready(void *command, short events);

/* A process from outside that waits to become a command: keeps its socket. */
void runner_keep(int sock);
_must_check_ int pty_resize(int fd, uint16_t rows, uint16_t cols);

/* command/output.c */
_must_check_ int follower_add(struct command *c, int sock);
void follower_greet(struct command *c, int sock); /* STARTED, for one that came later */
void followers_watch(struct command *c);
void followers_offer(struct command *c, enum wire_type type, const void *data, size_t len);
void followers_close(struct command *c);
bool followers_any(const struct command *c);
void output_watch(struct command *c);
void output_drop(struct command *c); /* what waits is not wanted any more */

/* command/input.c: with own, sock stays the first follower's; otherwise it is an INPUT's, answered
 * by DONE. */
_must_check_ int writer_add(struct command *c, int sock, bool own);
void writers_watch(void);
void writers_orphan(struct command *c); /* the first follower is gone */
void writers_drop(struct command *c);   /* the command takes no more input */
void input_watch(struct command *c);
void input_close(struct command *c); /* once what waits has been written */

/* command/ask.c: requests about commands. sock is theirs from then on, and they answer on it. */
void ask_attach(const struct wire_process *q, int sock);
void ask_input(const struct wire_input *q, int sock);
void ask_tell(const struct wire_tell *q, int sock);
void ask_list(int sock);
void listers_watch(void);
