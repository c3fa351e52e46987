/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fork copies one entry of a page table for each page that was written, and an interpreter with a
 * scientific stack has twenty thousand. In huge pages the same memory has a few dozen. A context that
 * writes to one gets a copy of the small page it wrote to, no more.
 */
#include "zygote/zygote.h"

#include "zygote/maps.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>

#define HUGE_SIZE (UINT64_C(2) << 20)
#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif

#define PUBLIC __attribute__((visibility("default")))

static void collapse(const struct maps_range *r)
{
	uint64_t from = (r->from + HUGE_SIZE - 1) & ~(HUGE_SIZE - 1), to = r->to & ~(HUGE_SIZE - 1);

	for (uint64_t at = from; at < to; at += HUGE_SIZE)
		(void)madvise((void *)(uintptr_t)at, HUGE_SIZE, MADV_COLLAPSE);
}

PUBLIC void zygote_compact(int proc_fd)
{
	int fd = openat(proc_fd, "maps", O_RDONLY | O_CLOEXEC);
	FILE *maps = fd < 0 ? NULL : fdopen(fd, "r");
	struct maps_range range;
	char line[MAPS_LINE_MAX];

	(void)close(proc_fd);
	while (maps && fgets(line, sizeof(line), maps))
		if (maps_is_own(line, &range) && !range.of_file)
			collapse(&range);
	if (maps)
		(void)fclose(maps);
	else
		fd_close(fd);
}
