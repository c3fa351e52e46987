/* SPDX-License-Identifier: Apache-2.0 */
/* One traced run of glovebox, with or without a fault in it. See fault.c. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define TASKS_MAX 16
#define ROLES_MAX 10
#define ROLE_HELPER 9
#define TEXT_MAX 65536

struct task {
	pid_t pid;
	int role;
	bool inside;  /* between a call's start and its end */
	bool foreign; /* executes the command: its calls are not ours */
	bool failing;
	bool loading; /* glovebox: was executed, and the C library has not come to main() */
	int calls;
};

struct run {
	int role, call, err; /* where the fault is; err 0: kill */
	struct task task[TASKS_MAX];
	int n_tasks, alive;
	int calls[ROLES_MAX];
	int own_code; /* glovebox's first call that is its own, not the loader's */
	int hit;      /* the number of the call that failed, -1: none did */
	int status;
	bool hung;
	char seal[TEXT_MAX];
	char out[TEXT_MAX];
	char err_text[4096];
};

/* What is at role's call-th system call: an errno, or 0 to kill it there. Role -1: nothing. */
void run_start(struct run *r, int role, int call, int err);

/* Runs the command until all of its processes have ended. */
void run_traced(struct run *r, char **argv);

/* What the host sees of a command at the moment it is executed, as text in r->seal. */
void seal_take(struct run *r, pid_t pid);

/* NUL-terminated beginning of a file; empty when there is none. */
size_t read_path(const char *path, char *buf, size_t size);
