/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Listing. Entries are sent as they are found, each directory before what is in it, so only the
 * names of the directories between the root and the current one are kept: on two stacks (the
 * bytes, and where each name begins) that grow together up to FS_LIST_BYTES_MAX. FI-11: links are
 * told and not followed.
 */
#include "agent/fs/fs_priv.h"

#include "base/dir.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/syscall.h>

/* Every level has at least a slash and a letter in the path. */
#define LEVELS_MAX (FS_PATH_SIZE / 2 + 1)

struct list_level {
	uint32_t bytes_before; /* of names, below this level's */
	uint32_t first, next;  /* of its names, in index */
	uint32_t path_len;
};

static struct listing {
	char *bytes;
	uint32_t n_bytes, bytes_size;
	uint32_t *index;
	uint32_t n_index, index_size;
	struct list_level levels[LEVELS_MAX];
	size_t n_levels;
	char path[FS_PATH_SIZE]; /* relative to the root, where we stand */
} l;

static int listing_compare(const void *a, const void *b)
{
	return strcmp(l.bytes + *(const uint32_t *)a, l.bytes + *(const uint32_t *)b);
}

static uint64_t bytes_held(void)
{
	return (uint64_t)l.bytes_size + (uint64_t)l.index_size * sizeof(*l.index);
}

/* Makes space for one more name. */
static int listing_grow(uint32_t len)
{
	if (l.n_bytes + len > l.bytes_size) {
		uint32_t size = MAX(l.bytes_size * 2, UINT32_C(16384));
		char *bytes;

		if (bytes_held() + size - l.bytes_size > FS_LIST_BYTES_MAX)
			return -ENOBUFS;
		bytes = realloc(l.bytes, size);
		if (!bytes)
			return -ENOMEM;
		l.bytes = bytes;
		l.bytes_size = size;
	}
	if (l.n_index == l.index_size) {
		uint32_t size = MAX(l.index_size * 2, UINT32_C(1024));
		uint32_t *index;

		if (bytes_held() + (uint64_t)(size - l.index_size) * sizeof(*index) >
		    FS_LIST_BYTES_MAX)
			return -ENOBUFS;
		index = realloc(l.index, size * sizeof(*index));
		if (!index)
			return -ENOMEM;
		l.index = index;
		l.index_size = size;
	}
	return 0;
}

static int listing_add(const char *name)
{
	uint32_t len = (uint32_t)strlen(name) + 1;
	bool replaces;
	int r;

	if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0 || fs_is_temp_name(name, &replaces))
		return 0;
	r = listing_grow(len);
	if (r < 0)
		return r;
	memcpy(l.bytes + l.n_bytes, name, len);
	l.index[l.n_index++] = l.n_bytes;
	l.n_bytes += len;
	return 0;
}

/* A directory could have become a link since it was looked at. */
static int open_here(const char *path)
{
	struct open_how how = {
		.flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC,
		.resolve = RESOLVE_NO_SYMLINKS,
	};
	long fd = syscall(SYS_openat2, AT_FDCWD, *path ? path : ".", &how, sizeof(how));

	return fd < 0 ? -errno : (int)fd;
}

static void listing_pop(void)
{
	const struct list_level *level = &l.levels[--l.n_levels];

	l.n_bytes = level->bytes_before;
	l.n_index = level->first;
}

/* Reads and sorts the names of the directory that l.path names. */
static int listing_push(void)
{
	struct list_level *level = &l.levels[l.n_levels];
	_cleanup_(dir_closep) DIR *dir = NULL;
	const struct dirent *d;
	int fd = open_here(l.path), r = 0;

	if (fd < 0)
		return fd;
	dir = fdopendir(fd);
	if (!dir) {
		fd_close(fd);
		return -errno;
	}
	*level = (struct list_level){ .bytes_before = l.n_bytes,
				      .first = l.n_index,
				      .next = l.n_index,
				      .path_len = (uint32_t)strlen(l.path) };
	l.n_levels++;
	while (r == 0 && (errno = 0, d = readdir(dir)))
		r = listing_add(d->d_name);
	if (r == 0 && errno)
		r = -errno;
	if (r < 0) {
		listing_pop();
		return r;
	}
	if (l.n_index > level->first)
		qsort(l.index + level->first, l.n_index - level->first, sizeof(*l.index),
		      listing_compare);
	return 0;
}

static int listing_set_path(const struct list_level *level, const char *name)
{
	size_t at = level->path_len, len = strlen(name);

	if (at + 1 + len > WIRE_PATH_MAX)
		return -ENAMETOOLONG;
	if (at)
		l.path[at++] = '/';
	memcpy(l.path + at, name, len + 1);
	return 0;
}

/* What may happen to one entry without harm to the rest of the list. */
static bool is_passing(int r)
{
	return r == -ENOENT || r == -ENOTDIR || r == -EACCES || r == -ELOOP || r == -ENAMETOOLONG;
}

/* Tells the entry that l.path names, and goes into it when it is a directory. */
static int listing_enter(struct fs *fs)
{
	static struct fs_entry e;
	static char shown[FS_PATH_SIZE];
	int r = fs_path_join(fs->request->paths[0], l.path, shown);

	if (r == 0)
		r = fs_entry_look(l.path, shown, &e);
	if (r < 0)
		return is_passing(r) ? 0 : r;
	r = fs_entry_send(fs->sock, &e);
	if (r < 0 || !S_ISDIR(e.st.st_mode) || l.n_levels >= fs->request->fs.depth ||
	    l.n_levels >= LEVELS_MAX)
		return r;
	r = listing_push();
	return is_passing(r) ? 0 : r;
}

int fs_list(struct fs *fs)
{
	int r = chdir(fs->request->paths[0]) < 0 ? -errno : listing_push();

	while (r == 0 && l.n_levels) {
		struct list_level *level = &l.levels[l.n_levels - 1];

		if (level->next == l.n_index) {
			listing_pop();
			continue;
		}
		r = listing_set_path(level, l.bytes + l.index[level->next++]);
		if (r == 0)
			r = listing_enter(fs);
		else if (is_passing(r))
			r = 0;
	}
	return r;
}
