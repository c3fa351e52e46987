/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Snapshots on disk: STATE/layers/NAME/{root,usr}, root's alone. A name is there when the layer is
 * whole: it is made as NAME.tmp and renamed. What is dropped is renamed first and deleted at
 * leisure, by another process.
 */
#include "warden/layers/layers.h"

#include "base/dir.h"
#include "sys/proc.h"
#include "warden/layers/tree.h"

#include <fcntl.h>
#include <sys/stat.h>

#define TMP ".tmp"
#define TRASH ".trash-"
#define ENTRIES_MAX 65536 /* that are read for one request: some ten milliseconds */

struct layer_name layer_tmp_name(const char *name)
{
	struct layer_name tmp;

	(void)snprintf(tmp.text, sizeof(tmp.text), "%.31s" TMP, name);
	return tmp;
}

static bool ends_with(const char *text, const char *end)
{
	size_t len = strlen(text), n = strlen(end);

	return len > n && strcmp(text + len - n, end) == 0;
}

static bool is_trash(const char *name)
{
	return strncmp(name, TRASH, strlen(TRASH)) == 0;
}

/* In a process of its own: everything of that name. */
static _noreturn_ void delete_all(const struct warden *w)
{
	_cleanup_(dir_closep) DIR *dir = NULL;
	int fd = helper_begin(&w->layers_fd, 1, w->pid);
	struct dirent *entry;

	/* Opened anew: the descriptor that we were given shares its place in the list with the
	 * warden's. */
	fd = fd < 0 ? fd : tree_open(fd, ".", O_RDONLY | O_DIRECTORY, 0);
	dir = fd < 0 ? NULL : fdopendir(fd);
	while (dir && (entry = readdir(dir)))
		if (is_trash(entry->d_name))
			(void)!tree_remove(dirfd(dir), entry->d_name);
	_exit(0);
}

static void empty_trash(struct warden *w);

static void on_deleted(struct loop *l, struct source *source)
{
	struct warden *w = warden_of(l);
	bool again = w->trash_again;

	source_remove(&w->loop, source);
	(void)waitid(P_PIDFD, (id_t)w->trash_fd, &(siginfo_t){ 0 }, WEXITED);
	fd_closep(&w->trash_fd);
	w->trash_again = false;
	if (again)
		empty_trash(w);
}

static void empty_trash(struct warden *w)
{
	pid_t pid;

	if (w->trash_fd >= 0) {
		w->trash_again = true; /* it may have looked there already */
		return;
	}
	pid = proc_clone(0, -EBADF, &w->trash_fd);
	if (pid == 0)
		delete_all(w);
	/* If it cannot be done now, the next start does it. */
	if (pid > 0 && source_add(&w->loop, &w->trash_source, w->trash_fd, EPOLLIN, on_deleted) < 0)
		fd_closep(&w->trash_fd);
}

int layer_throw_away(struct warden *w, const char *entry)
{
	char trash[32];

	/* Of an earlier service something may be left under the same number. */
	for (int i = 0; i < 1000; i++) {
		(void)snprintf(trash, sizeof(trash), TRASH "%u", w->trash_number++);
		if (faccessat(w->layers_fd, trash, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
			continue;
		if (renameat(w->layers_fd, entry, w->layers_fd, trash) < 0)
			return -errno;
		empty_trash(w);
		return 0;
	}
	return -EBUSY;
}

/* In a process of its own: a name that is there is there after a power cut too. */
static _noreturn_ void sync_names(const struct warden *w)
{
	int r = helper_begin(&w->layers_fd, 1, w->pid);

	if (r >= 0)
		r = fsync(r) < 0 ? -errno : 0;
	_exit(r < 0 ? MIN(-r, 255) : 0);
}

int layer_keep(struct warden *w, const char *name, int *ret_pidfd)
{
	struct layer_name tmp = layer_tmp_name(name);
	pid_t pid;

	if (renameat(w->layers_fd, tmp.text, w->layers_fd, name) < 0)
		return -errno;
	/* It waits for what others write to that disk as well, which can take seconds. */
	pid = proc_clone(0, -EBADF, ret_pidfd);
	if (pid == 0)
		sync_names(w);
	if (pid < 0)
		(void)!layer_throw_away(w, name);
	return pid < 0 ? (int)pid : 0;
}

/* What a service that was killed in the middle has left. */
static void throw_away_leftovers(struct warden *w)
{
	_cleanup_(dir_closep) DIR *dir = NULL;
	struct dirent *entry;
	bool trash = false;
	int fd = openat(w->layers_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	dir = fd < 0 ? NULL : fdopendir(fd);
	while (dir && (entry = readdir(dir))) {
		if (ends_with(entry->d_name, TMP))
			(void)!layer_throw_away(w, entry->d_name);
		trash |= is_trash(entry->d_name);
	}
	if (trash)
		empty_trash(w);
}

int layer_open_dir(struct warden *w, struct fail *fail)
{
	struct stat st;

	if (mkdirat(w->state.dir_fd, "layers", 0700) < 0 && errno != EEXIST)
		return fail_set(fail, errno, "layers", "cannot make %.120s/layers: %s",
				w->state.path, strerror(errno));
	w->layers_fd =
		openat(w->state.dir_fd, "layers", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (w->layers_fd < 0 || fstat(w->layers_fd, &st) < 0)
		return fail_set(fail, errno, "layers", "cannot open %.120s/layers: %s",
				w->state.path, strerror(errno));
	/* Files in it belong to the users that they belonged to in their box, root and set-uid bits
	 * included: nobody of this machine may reach them. */
	if (st.st_uid != geteuid() || (st.st_mode & 077))
		return fail_set(fail, EPERM, "layers",
				"%.120s/layers must be ours and closed to others: chmod 0700",
				w->state.path);
	throw_away_leftovers(w);
	return 0;
}

bool layer_exists(const struct warden *w, const char *name)
{
	return faccessat(w->layers_fd, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

int layer_drop(struct warden *w, const char *name)
{
	if (!layer_exists(w, name))
		return -ENOENT;
	return wards_use_layer(w, name) ? -EBUSY : layer_throw_away(w, name);
}

/* Is it the name of a layer, and not of one that is being made or deleted? Fills ret with it and
 * NULs. */
static bool layer_read_name(const char *entry, char ret[static WARDEN_ID_SIZE])
{
	memset(ret, 0, WARDEN_ID_SIZE);
	return snprintf(ret, WARDEN_ID_SIZE, "%s", entry) < WARDEN_ID_SIZE && warden_id_ok(ret);
}

/* Nothing is kept between two requests, so each reads the whole directory: names only, and no more
 * of them than ENTRIES_MAX, so that boxes never wait long for it. The server, which needs it once
 * in its life, asks slowly. */
int layer_next(const struct warden *w, const char *after, char ret[static WARDEN_ID_SIZE])
{
	_cleanup_(dir_closep) DIR *dir = NULL;
	char name[WARDEN_ID_SIZE], next[WARDEN_ID_SIZE] = "";
	const struct dirent *entry;
	size_t n = 0;
	int fd = openat(w->layers_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	dir = fd < 0 ? NULL : fdopendir(fd);
	if (!dir) {
		int err = errno;

		fd_close(fd);
		return -err;
	}
	while (errno = 0, (entry = readdir(dir))) {
		if (++n > ENTRIES_MAX)
			return -EOVERFLOW;
		if (layer_read_name(entry->d_name, name) && strcmp(name, after) > 0 &&
		    (!*next || strcmp(name, next) < 0))
			memcpy(next, name, sizeof(next));
	}
	if (errno)
		return -errno;
	if (!*next)
		return -ENOENT;
	memcpy(ret, next, sizeof(next));
	return 0;
}

int layer_paths(const struct warden *w, const char *name, struct layer_paths *ret)
{
	const char *dir = w->state.path;

	if (snprintf(ret->root, sizeof(ret->root), "%s/layers/%s/root", dir, name) >=
		    (int)sizeof(ret->root) ||
	    snprintf(ret->usr, sizeof(ret->usr), "%s/layers/%s/usr", dir, name) >=
		    (int)sizeof(ret->usr))
		return -ENAMETOOLONG;
	return 0;
}
