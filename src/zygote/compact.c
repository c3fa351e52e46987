/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fork copies one entry of a page table for each page that was written, and an interpreter with a scientific stack
 * has twenty thousand. In huge pages the same memory has a few dozen. A context that writes to one gets a copy of the
 * small page it wrote to, no more.
 */
#include "zygote/zygote.h"

#include "base/util.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>

#define HUGE_SIZE (UINT64_C(2) << 20)
#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif

#define PUBLIC __attribute__((visibility("default")))

struct range {
	uint64_t from, to;
};

/* "7f0c-7f0d rw-p 00000000 00:00 0 [heap]": memory of its own that it can write. Not its stack. */
static bool is_plain_memory(const char *line, struct range *ret)
{
	unsigned long from, to, inode;
	char mode[5], name[16] = "";

	if (sscanf(line, "%lx-%lx %4s %*s %*s %lu %15s", &from, &to, mode, &inode, name) < 4)
		return false;
	*ret = (struct range){ from, to };
	return strcmp(mode, "rw-p") == 0 && inode == 0 && strncmp(name, "[s", 2) != 0;
}

static void collapse(const struct range *r)
{
	uint64_t from = (r->from + HUGE_SIZE - 1) & ~(HUGE_SIZE - 1), to = r->to & ~(HUGE_SIZE - 1);

	for (uint64_t at = from; at < to; at += HUGE_SIZE)
		(void)madvise((void *)(uintptr_t)at, HUGE_SIZE, MADV_COLLAPSE);
}

PUBLIC void zygote_compact(int proc_fd)
{
	int fd = openat(proc_fd, "maps", O_RDONLY | O_CLOEXEC);
	FILE *maps = fd < 0 ? NULL : fdopen(fd, "r");
	struct range range;
	char line[512];

	(void)close(proc_fd);
	while (maps && fgets(line, sizeof(line), maps))
		if (is_plain_memory(line, &range))
			collapse(&range);
	if (maps)
		(void)fclose(maps);
	else
		fd_close(fd);
}
