/* SPDX-License-Identifier: Apache-2.0 */
/* Which host user ids a box gets, and the number that makes it unique on this machine. */
#pragma once

#include "base/fail.h"
#include "sys/payload.h"
#include "sys/slot.h"
#include "wire/isolation.h"

#include <sys/types.h>

struct ids_host {
	enum ids_kind kind;
	struct slots slots;
	uint32_t uid_base;
	uint32_t gid_base;
	char why_single[96]; /* for people, when kind is IDS_SINGLE */
};

struct ids {
	enum ids_kind kind;
	uint32_t number;
	int lock_fd;
	uint32_t uid_base; /* of this box */
	uint32_t gid_base;
};

#define IDS_HOST_INIT                                                                              \
	{                                                                                          \
		.slots = SLOTS_INIT                                                                \
	}
#define IDS_INIT                                                                                   \
	{                                                                                          \
		.lock_fd = -EBADF                                                                  \
	}

/* Where lock files are: of the machine when we are root, else of this user. */
#define IDS_RUN_DIR_SIZE 256
void ids_run_dir(char ret[static IDS_RUN_DIR_SIZE]);

/* Finds out what this user may map and opens the lock file. */
_must_check_ int ids_host_open(struct ids_host *ret, struct fail *fail);
void ids_host_close(struct ids_host *h);

_must_check_ int ids_take(struct ids_host *h, struct ids *ret, struct fail *fail);
void ids_release(struct ids *ids);

/* Writes the maps of a child that was just cloned into its user namespace. */
_must_check_ int ids_map(const struct ids *ids, pid_t pid, struct fail *fail);
