/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file tree from a hostile sender. The input is a list of records: type (of a small choice), flags,
 * length, bytes; each becomes a packet with a proper header unless the flags ask for a broken one. The
 * receiver works in a directory of its own, within its limits, keeps no descriptor, and nothing appears
 * beside the directory.
 */
#include "fuzz.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "sys/sock.h"
#include "wire/tree.h"

#define BYTES_MAX 4096u
#define ENTRIES_MAX 32u

enum { FLAG_BROKEN_LEN = 1, FLAG_BROKEN_ZERO = 2, FLAG_RAW = 4, FLAG_ENTRY = 8 };

struct seen {
	uint64_t bytes;
	uint64_t names;
};

static char top[] = "fuzz-tree-XXXXXX"; /* where we were started */
static int top_fd = -EBADF;

static void remove_all(int parent_fd, const char *name)
{
	int fd = openat(parent_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;

	if (!dir) {
		assert(unlinkat(parent_fd, name, 0) == 0);
		return;
	}
	while ((entry = readdir(dir)))
		if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
			remove_all(dirfd(dir), entry->d_name);
	(void)closedir(dir);
	assert(unlinkat(parent_fd, name, AT_REMOVEDIR) == 0);
}

static void remove_top(void)
{
	remove_all(AT_FDCWD, top);
}

static void start(void)
{
	if (top_fd >= 0)
		return;
	assert(mkdtemp(top));
	top_fd = open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert(top_fd >= 0 && atexit(remove_top) == 0);
}

static void on_data(void *arg, const void *data, size_t len)
{
	volatile unsigned char last;

	last = ((const unsigned char *)data)[len - 1]; /* all of it must be readable */
	(void)last;
	((struct seen *)arg)->bytes += len;
}

static int on_name(void *arg, const char *path)
{
	assert(path[0] && path[0] != '/' && strlen(path) <= WIRE_PATH_MAX);
	((struct seen *)arg)->names++;
	return 0;
}

static int on_file(void *arg, const char *path, uint64_t size)
{
	assert(size <= BYTES_MAX);
	return on_name(arg, path);
}

static int on_refused(void *arg, const char *path, uint32_t type)
{
	assert((type & ~(uint32_t)S_IFMT) == 0);
	return on_name(arg, path);
}

/* One record; what is left of the input behind it. */
static size_t send_record(int sock, const uint8_t *data, size_t size)
{
	static const uint16_t types[] = { WIRE_DIR,      WIRE_DIR_END, WIRE_FILE,    WIRE_DATA,
					  WIRE_FILE_END, WIRE_LINK,    WIRE_REFUSED, WIRE_TREE_END,
					  WIRE_FAILED,   WIRE_ROOT,    WIRE_STARTED, WIRE_OUT };
	static unsigned char packet[sizeof(struct wire_head) + sizeof(struct wire_entry) + 512];
	struct wire_head head = { .type = types[data[0] % ARRAY_SIZE(types)] };
	struct wire_entry entry = { .size = data[1], .mode = (uint32_t)data[0] << 8 | data[2] };
	size_t len = MIN((size_t)data[2] + (data[1] >> 7) * 256u, size - 3), at = sizeof(head);

	if (data[1] & FLAG_ENTRY) {
		memcpy(packet + at, &entry, sizeof(entry));
		at += sizeof(entry);
	}
	memcpy(packet + at, data + 3, len);
	at += len;
	head.len = (uint32_t)at + (data[1] & FLAG_BROKEN_LEN ? 1 : 0);
	head.zero = data[1] & FLAG_BROKEN_ZERO ? 1 : 0;
	if (!(data[1] & FLAG_RAW))
		memcpy(packet, &head, sizeof(head));
	(void)!send(sock, packet, at, MSG_DONTWAIT | MSG_NOSIGNAL);
	return size - 3 - len;
}

static void check_top(void)
{
	DIR *dir = fdopendir(openat(top_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
	struct dirent *entry;

	assert(dir);
	while ((entry = readdir(dir)))
		assert(entry->d_name[0] == '.' || strcmp(entry->d_name, "in") == 0);
	(void)closedir(dir);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct tree_limits limits = { .bytes = BYTES_MAX,
					    .entries = ENTRIES_MAX,
					    .cancel_fd = -EBADF };
	struct seen seen = { 0 };
	const struct tree_events events = {
		.arg = &seen,
		.data = on_data,
		.file = on_file,
		.refused = on_refused,
	};
	int pair[2], dir_fd, probe, probe_after, r;

	if (size < 1)
		return 0;
	start();
	assert(mkdirat(top_fd, "in", 0755) == 0 && sock_pair(pair) == 0);
	dir_fd = openat(top_fd, "in", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	for (size_t left = size - 1; left >= 3;)
		left = send_record(pair[0], data + size - left, left);
	fd_close(pair[0]);
	probe = dup(0);
	r = tree_recv(pair[1], data[0] & 1 ? WIRE_ON_TO_OP : WIRE_ON_FROM_OP, dir_fd, &limits,
		      &events);
	assert(r <= 0 && seen.bytes <= BYTES_MAX && seen.names <= ENTRIES_MAX);
	/* The lowest free descriptor is the one it was: none was kept. */
	fd_close(probe);
	probe_after = dup(0);
	assert(probe_after == probe);
	fd_close(probe_after);
	fd_close(pair[1]);
	fd_close(dir_fd);
	check_top();
	remove_all(top_fd, "in");
	return 0;
}
