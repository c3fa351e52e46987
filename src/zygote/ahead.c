/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A fork copies each page when it first writes to it, and an interpreter that ends has written to most of them: to take
 * a thousand faults for that costs more than to run a small script. The copies are made in one go instead, while the
 * script itself is still on its way into the box.
 */
#include "zygote/maps.h"
#include "zygote/zygote_priv.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>

#define RANGES_MAX 64
#define BYTES_MAX (UINT64_C(8) << 20) /* a plain Python has five */
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

static struct maps_range ranges[RANGES_MAX];
static size_t n_ranges;

void ahead_find(int proc_fd)
{
	int fd = openat(proc_fd, "maps", O_RDONLY | O_CLOEXEC);
	FILE *maps = fd < 0 ? NULL : fdopen(fd, "r");
	char line[MAPS_LINE_MAX];
	uint64_t bytes = 0;

	(void)close(proc_fd);
	while (maps && n_ranges < RANGES_MAX && fgets(line, sizeof(line), maps)) {
		struct maps_range *r = &ranges[n_ranges];

		if (!maps_is_own(line, r) || r->to - r->from > BYTES_MAX - bytes)
			continue;
		bytes += r->to - r->from;
		n_ranges++;
	}
	if (maps)
		(void)fclose(maps);
	else
		fd_close(fd);
}

/* Where the kernel cannot, or there is no memory, they are copied one by one. */
void ahead_copy(void)
{
	for (size_t i = 0; i < n_ranges; i++)
		(void)madvise((void *)(uintptr_t)ranges[i].from, ranges[i].to - ranges[i].from,
			      MADV_POPULATE_WRITE);
}
