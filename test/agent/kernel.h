/* SPDX-License-Identifier: Apache-2.0 */
/* The host's side of contexts and cells, and an interpreter to try them with. */
#pragma once

#include "drive.h"

/* Python that executes cells with say(word, text) at hand, as kernels/PROTOCOL.md has it and no more. */
extern const char *const kernel_source;

/* A whole KERNEL: the operation's socket. With argv NULL it is the one above. */
int kernel_start(struct box *b, const char *name, const char *const *argv);
uint32_t kernel_make(const char *name); /* until it is ready: the pid */

struct cell_spec {
	const char *context; /* NULL: "test" */
	struct box *box;     /* NULL: the one with a root */
	const char *base, *env, *cwd;
	uint64_t wall_ms, cpu_ms, memory_bytes, output_bytes;
};

int cell_open(const struct cell_spec *s);                    /* nothing of it sent yet */
int cell_start(const struct cell_spec *s, const char *code); /* all of it */

/* Everything up to CELL_END, in words: "out(text)err(text)count(1)result({})", pieces of a kind joined. */
struct story {
	struct wire_cell_end end;
	size_t n_out, n_err;
	char spilled[2][256]; /* "": not */
	size_t len;
	char text[65536]; /* cut to its size */
};
void cell_follow(int sock, struct story *ret); /* from STARTED on */
void cell_run(const struct cell_spec *s, const char *code, struct story *ret);

/* DONE, or FAILED whose errno is returned. */
int context_tell(const char *name, uint32_t signal);

/* The contexts that there are: how many, and the names with their directories as "a=/dir b=/dir ". */
size_t contexts(char *text, size_t size);
