/* SPDX-License-Identifier: Apache-2.0 */
/* Starts the process of a room: another user, no capability, nothing inherited but what it is
 * given. */
#pragma once

#include "base/fail.h"

#include <sys/resource.h>
#include <sys/types.h>

#define SPAWN_FIRST_FD 3
#define SPAWN_FDS_MAX 8
#define SPAWN_CAN_NOT_START 127 /* exit status when it did not get as far as its program */

struct spawn {
	const char *name; /* "the server": for messages */
	int program_fd;   /* of the executable; O_PATH will do */
	char *const *argv;
	char *const *env;
	const int *fds; /* it finds them at SPAWN_FIRST_FD and on; a negative one is closed there */
	size_t n_fds;
	uid_t uid; /* whom root becomes; anybody else stays himself */
	gid_t gid;
	bool silent;        /* standard input and output are /dev/null */
	rlim_t descriptors; /* how many it would like to have; 0: as we have */
};

/*
 * It ends with us, at the latest. The caller owns the pidfd and reaps the process. A program that
 * cannot be started ends with SPAWN_CAN_NOT_START and has said why.
 */
_must_check_ int spawn_room(const struct spawn *s, pid_t *ret_pid, int *ret_pidfd,
			    struct fail *fail);

/* Opens the program of a room (see program_find()), or the one at path unless that is NULL. */
_must_check_ int spawn_find(const char *dir, const char *name, const char *path, int *ret_fd,
			    struct fail *fail);
