/* SPDX-License-Identifier: Apache-2.0 */
/* A real box, and the host's side of its agent's messages, for the cases. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "box/box.h"
#include "wire/wire.h"

extern struct box box;       /* one with a root, */
extern struct box plain_box; /* and one without, with agents and commands in leaves of their own */

int drive_open(void **state);
int drive_close(void **state);

/* What to run; a field that is not set has the server's default. */
struct spec {
	struct box *box;  /* NULL: the one with a root */
	const char *user; /* NULL: "user" */
	const char *cwd;
	const char *const *env;
	const char *label;
	uint32_t flags; /* beside KEEP */
	bool not_kept;
	uint64_t timeout_ms;
	uint16_t rows, cols;
};

/* An operation on a control socket: the host's end of it. */
int op_open(struct box *b, enum wire_type type, const void *data, size_t len);

/* Sends an EXEC up to its GO: the operation's socket. */
int exec_prepare(const struct spec *s, const char *const *argv);

/* Sends a whole EXEC: the operation's socket. */
int exec_start(const struct spec *s, const char *const *argv);
int sh_start(const struct spec *s, const char *script);

#define WAIT_MS 60000
/* Nobody has waited for what takes a minute, or nearly; a busy machine needs less. */
#define IN_TIME_MS 30000

/* The next frame within WAIT_MS; asserts that there is one. Returns its type, 0 at the end. */
unsigned next_frame(int sock);
extern struct wire_frame got;

/* Is there nothing for so long? */
bool quiet(int sock, int ms);

uint32_t expect_started(int sock); /* the pid */
void expect_failed(int sock, uint32_t step, int err);
void expect_done(int sock);
void expect_end(int sock);

/* Everything up to EXIT: the output in text (stderr and pty in the same, cut to its size). */
struct outcome {
	uint32_t pid;
	struct wire_exit exit;
	size_t len; /* all of it, also what was cut */
	char text[65536];
};
void follow(int sock, struct outcome *ret); /* after STARTED */
void await_text(int sock,
		const char *text); /* on a terminal; what follows it is kept for the next */
void run_sh(const struct spec *s, const char *script, struct outcome *ret);

/* Short operations: their answer is left in got, its type returned. */
unsigned tell(uint32_t pid, uint32_t what, uint32_t signal, uint16_t rows, uint16_t cols);
int attach(uint32_t pid);
int input_open(uint32_t pid);
void send_input(uint32_t pid, const char *text); /* IN, IN_END, DONE */

uint64_t now_ms(void);
size_t agent_fds(void);      /* how many descriptors the agent has open */
uint64_t agent_cpu_ms(void); /* how long it has been on a CPU */

/* The groups of cases. */
int cases_life(void);
int cases_input(void);
int cases_end(void);
int cases_user(void);
int cases_sudo(void);
int cases_root(void);
int cases_runner(void);
int cases_kernel(void);
int cases_kernel_end(void);
int cases_kernel_adopt(void);
