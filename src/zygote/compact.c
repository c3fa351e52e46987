/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fork copies one entry of a page table for each page that was written, and an interpreter with a
 * scientific stack has twenty thousand. In huge pages the same memory has a few dozen. A context that
 * writes to one gets a copy of the small page it wrote to, no more.
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

static const char *read_hex(const char *at, uint64_t *ret)
{
	static const char digits[] = "0123456789abcdef";
	const char *digit;

	for (*ret = 0; *at && (digit = strchr(digits, *at)); at++)
		*ret = *ret << 4 | (uint64_t)(digit - digits);
	return at;
}

static const char *next_field(const char *at)
{
	at += strcspn(at, " \n");
	return at + strspn(at, " ");
}

/* "7f0c-7f0d rw-p 00000000 00:00 0 [heap]": memory of its own that it can write. Not its stack. */
static bool is_plain_memory(const char *line, struct range *ret)
{
	const char *at = read_hex(line, &ret->from), *mode, *inode, *name;

	if (*at != '-')
		return false;
	mode = next_field(read_hex(at + 1, &ret->to));
	inode = next_field(next_field(next_field(mode)));
	name = next_field(inode);
	return strncmp(mode, "rw-p ", 5) == 0 && strncmp(inode, "0 ", 2) == 0 &&
	       strncmp(name, "[stack", 6) != 0;
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
