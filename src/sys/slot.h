/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Small numbers that belong to a process while it lives: one byte of a file, locked. The kernel
 * drops the lock with the process, however it dies, so a number can be neither leaked nor stolen. A
 * box's number gives it its cgroup's name and its range of user ids.
 */
#pragma once

#include "base/util.h"

struct slots {
	int fd;
	uint32_t count;
};

#define SLOTS_INIT                                                                                 \
	{                                                                                          \
		.fd = -EBADF                                                                       \
	}

/* Opens (creating it) the file below dir_fd. */
_must_check_ int slots_open(int dir_fd, const char *name, uint32_t count, struct slots *ret);
void slots_close(struct slots *s);

/*
 * Takes a free number. They are handed out in rotation, so a range of user ids rests as long as
 * possible before it is used again. -EUSERS when all are taken. The lock is held by the returned
 * descriptor; closing it gives the number back.
 */
_must_check_ int slots_take(struct slots *s, uint32_t *ret_number);

/* Takes this number: a descriptor, or -EBUSY when somebody lives who has it. */
_must_check_ int slots_take_number(struct slots *s, uint32_t number);
