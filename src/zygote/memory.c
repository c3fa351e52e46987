/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory that is cheap to fork, before and after.
 *
 * fork copies one entry of a page table for each page that was written, and an interpreter with a
 * scientific stack has twenty thousand. In huge pages the same memory has a few dozen
 * (zygote_compact). A context that writes to one gets a copy of the small page it wrote to, no
 * more.
 *
 * A fork copies each page when it first writes to it, and an interpreter that ends has written to
 * most of them: to take a thousand faults for that costs more than to run a small script. The
 * copies are made in one go instead, while the script itself is still on its way into the box
 * (ahead_copy).
 */
#include "zygote/zygote.h"

#include "zygote/zygote_priv.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>

#define MAPS_LINE_MAX 512
#define HUGE_SIZE (UINT64_C(2) << 20)
#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif
#define RANGES_MAX 64
#define BYTES_MAX (UINT64_C(8) << 20) /* a plain Python has five */
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

#define PUBLIC __attribute__((visibility("default")))

struct maps_range {
	uint64_t from, to;
	bool of_file; /* it began as a copy of a file */
};

static struct maps_range ranges[RANGES_MAX];
static size_t n_ranges;

static const char *maps_hex(const char *at, uint64_t *ret)
{
	static const char digits[] = "0123456789abcdef";
	const char *digit;

	for (*ret = 0; *at && (digit = strchr(digits, *at)); at++)
		*ret = *ret << 4 | (uint64_t)(digit - digits);
	return at;
}

static const char *maps_field(const char *at)
{
	at += strcspn(at, " \n");
	return at + strspn(at, " ");
}

/* "7f0c-7f0d rw-p 00000000 00:00 0 [heap]": memory of its own that it can write. Not its stack. */
static bool maps_is_own(const char *line, struct maps_range *ret)
{
	const char *at = maps_hex(line, &ret->from), *mode, *inode, *name;

	if (*at != '-')
		return false;
	mode = maps_field(maps_hex(at + 1, &ret->to));
	inode = maps_field(maps_field(maps_field(mode)));
	name = maps_field(inode);
	ret->of_file = strncmp(inode, "0 ", 2) != 0;
	return strncmp(mode, "rw-p ", 5) == 0 && strncmp(name, "[stack", 6) != 0;
}

/* Calls take() for each range of memory of our own, as long as it says so. proc_fd is closed. */
static void maps_read(int proc_fd, bool (*take)(const struct maps_range *r))
{
	int fd = openat(proc_fd, "maps", O_RDONLY | O_CLOEXEC);
	FILE *maps = fd < 0 ? NULL : fdopen(fd, "r");
	struct maps_range range;
	char line[MAPS_LINE_MAX];

	(void)close(proc_fd);
	while (maps && fgets(line, sizeof(line), maps))
		if (maps_is_own(line, &range) && !take(&range))
			break;
	if (maps)
		(void)fclose(maps);
	else
		fd_close(fd);
}

static bool collapse(const struct maps_range *r)
{
	uint64_t from = (r->from + HUGE_SIZE - 1) & ~(HUGE_SIZE - 1), to = r->to & ~(HUGE_SIZE - 1);

	for (uint64_t at = from; at < to && !r->of_file; at += HUGE_SIZE)
		(void)madvise((void *)(uintptr_t)at, HUGE_SIZE, MADV_COLLAPSE);
	return true;
}

PUBLIC void zygote_compact(int proc_fd)
{
	maps_read(proc_fd, collapse);
}

static bool ahead_remember(const struct maps_range *r)
{
	static uint64_t bytes;

	if (r->to - r->from <= BYTES_MAX - bytes) {
		bytes += r->to - r->from;
		ranges[n_ranges++] = *r;
	}
	return n_ranges < RANGES_MAX;
}

void ahead_find(int proc_fd)
{
	maps_read(proc_fd, ahead_remember);
}

/* Where the kernel cannot, or there is no memory, they are copied one by one. */
void ahead_copy(void)
{
	for (size_t i = 0; i < n_ranges; i++)
		(void)madvise((void *)(uintptr_t)ranges[i].from, ranges[i].to - ranges[i].from,
			      MADV_POPULATE_WRITE);
}
