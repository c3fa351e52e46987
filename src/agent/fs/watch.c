/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Watching a directory. FI-17: nothing is queued here. A reader that is slow makes us wait, then
 * the kernel's own queue fills up, which is bounded and merges what is equal, and when it
 * overflows the reader is told that changes were lost.
 */
#include "agent/fs/fs_priv.h"

#include "base/dir.h"

#include <poll.h>
#include <sys/inotify.h>

#define TOLD_MAX 256 /* names that were found in new directories and whose own events may follow */
#define MASK                                                                                       \
	(IN_CREATE | IN_MOVED_TO | IN_MOVED_FROM | IN_MODIFY | IN_ATTRIB | IN_DELETE |             \
	 IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR)

/* --- which directories ----------------------------------------------------------------------- */

/*
 * The directories that are watched. A directory is known by its parent and its name in there, so
 * when one moves the paths of everything below are right at once.
 */
#define NODE_NONE UINT32_MAX

struct watch_tree {
	int fd; /* inotify */
	const char *root;
	uint32_t n; /* slots of nodes in use or used before */
	struct watch_node {
		int wd; /* -1: free */
		uint32_t parent;
		char *name;
	} nodes[FS_WATCHES_MAX];
};

/* Too many watches is the same to a client, whether the limit is ours or the kernel's for this
 * user. */
static int add_watch(struct watch_tree *t, const char *path, uint32_t flags)
{
	int wd = inotify_add_watch(t->fd, path, MASK | flags);

	if (wd >= 0)
		return wd;
	return errno == ENOSPC ? -EMFILE : -errno;
}

/* Begins with the directory itself, slot 0. */
static int watch_tree_open(struct watch_tree *t, const char *root)
{
	int wd;

	t->root = root;
	t->n = 0;
	t->fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	if (t->fd < 0)
		return -errno;
	wd = add_watch(t, root, 0);
	if (wd < 0)
		return wd;
	t->nodes[t->n++] = (struct watch_node){ .wd = wd, .parent = NODE_NONE };
	return 0;
}

static uint32_t watch_tree_find(const struct watch_tree *t, int wd)
{
	for (uint32_t i = 0; wd >= 0 && i < t->n; i++)
		if (t->nodes[i].wd == wd)
			return i;
	return NODE_NONE;
}

/* A child of a watched directory by its name. */
static uint32_t watch_tree_child(const struct watch_tree *t, uint32_t parent, const char *name)
{
	for (uint32_t i = 1; i < t->n; i++)
		if (t->nodes[i].wd >= 0 && t->nodes[i].parent == parent &&
		    strcmp(t->nodes[i].name, name) == 0)
			return i;
	return NODE_NONE;
}

/* The path of a name in a watched directory, relative to the root; name "": of the directory
 * itself. Written from the end of the buffer towards its beginning, then moved there. */
static int watch_tree_path(const struct watch_tree *t, uint32_t node, const char *name,
			   char ret[FS_PATH_SIZE])
{
	size_t at = WIRE_PATH_MAX, len = strlen(name);

	if (len > at)
		return -ENAMETOOLONG;
	at -= len;
	memcpy(ret + at, name, len);
	while (node != 0) {
		const struct watch_node *n = &t->nodes[node];
		size_t need = strlen(n->name) + (at < WIRE_PATH_MAX ? 1 : 0);

		if (need > at)
			return -ENAMETOOLONG;
		if (at < WIRE_PATH_MAX)
			ret[at - 1] = '/';
		at -= need;
		memcpy(ret + at, n->name, strlen(n->name));
		node = n->parent;
	}
	memmove(ret, ret + at, WIRE_PATH_MAX - at);
	ret[WIRE_PATH_MAX - at] = '\0';
	return 0;
}

static int absolute_path(const struct watch_tree *t, uint32_t node, const char *name,
			 char ret[FS_PATH_SIZE])
{
	char relative[FS_PATH_SIZE];
	int r = watch_tree_path(t, node, name, relative);

	return r < 0 ? r : fs_path_join(t->root, relative, ret);
}

static uint32_t free_slot(struct watch_tree *t)
{
	for (uint32_t i = 1; i < t->n; i++)
		if (t->nodes[i].wd < 0)
			return i;
	return t->n < FS_WATCHES_MAX ? t->n++ : NODE_NONE;
}

/* Is it the other one, or below it? */
static bool is_below(const struct watch_tree *t, uint32_t node, uint32_t other)
{
	while (node != other && node != NODE_NONE)
		node = t->nodes[node].parent;
	return node == other;
}

/* Stops watching it and everything below. */
static void watch_tree_drop(struct watch_tree *t, uint32_t node)
{
	static bool below[FS_WATCHES_MAX];

	for (uint32_t i = 0; i < t->n; i++)
		below[i] = t->nodes[i].wd >= 0 && is_below(t, i, node);
	for (uint32_t i = 0; i < t->n; i++) {
		if (!below[i])
			continue;
		(void)inotify_rm_watch(t->fd, t->nodes[i].wd);
		t->nodes[i].wd = -1;
		free(t->nodes[i].name);
		t->nodes[i].name = NULL;
	}
}

static void watch_tree_move(struct watch_tree *t, uint32_t node, uint32_t parent, const char *name)
{
	char *copy;

	/* What was told out of order must not make a ring of it. */
	if (node == 0 || is_below(t, parent, node))
		return;
	copy = strdup(name);
	if (!copy) {
		watch_tree_drop(t, node);
		return;
	}
	free(t->nodes[node].name);
	t->nodes[node].name = copy;
	t->nodes[node].parent = parent;
}

/* Watches a directory that is in a watched one. One that is watched under another name has
 * moved. */
static int watch_tree_add(struct watch_tree *t, uint32_t parent, const char *name, uint32_t *ret)
{
	static char path[FS_PATH_SIZE];
	int wd = absolute_path(t, parent, name, path);
	char *copy;
	uint32_t node;

	if (wd < 0)
		return wd;
	wd = add_watch(t, path, IN_DONT_FOLLOW);
	if (wd < 0)
		return wd;
	node = watch_tree_find(t, wd);
	if (node != NODE_NONE) {
		watch_tree_move(t, node, parent, name);
		*ret = node;
		return 0;
	}
	node = free_slot(t);
	copy = node == NODE_NONE ? NULL : strdup(name);
	if (!copy) {
		(void)inotify_rm_watch(t->fd, wd);
		if (node != NODE_NONE)
			t->nodes[node].wd = -1;
		return node == NODE_NONE ? -EMFILE : -ENOMEM;
	}
	t->nodes[node] = (struct watch_node){ .wd = wd, .parent = parent, .name = copy };
	*ret = node;
	return 0;
}

static bool is_dir(const struct dirent *d, const char *dir_path)
{
	char path[FS_PATH_SIZE];
	struct stat st;

	if (d->d_type != DT_UNKNOWN)
		return d->d_type == DT_DIR;
	return fs_path_join(dir_path, d->d_name, path) == 0 && lstat(path, &st) == 0 &&
	       S_ISDIR(st.st_mode);
}

/* Adds the directories in one directory to the list of those still to be read. */
static int scan_one(struct watch_tree *t, uint32_t node, uint32_t *todo, uint32_t *n_todo,
		    void (*found)(void *arg, uint32_t parent, const char *name), void *arg)
{
	static char path[FS_PATH_SIZE];
	_cleanup_(dir_closep) DIR *dir = NULL;
	const struct dirent *d;
	int r = absolute_path(t, node, "", path);

	dir = r < 0 ? NULL : opendir(path);
	if (!dir)
		return 0; /* gone already, or not for this user's eyes */
	while ((d = readdir(dir))) {
		uint32_t child;

		if (!wire_name_ok((const unsigned char *)d->d_name, strlen(d->d_name)))
			continue;
		if (found)
			found(arg, node, d->d_name);
		if (!is_dir(d, path))
			continue;
		r = watch_tree_add(t, node, d->d_name, &child);
		if (r == -EMFILE || r == -ENOMEM)
			return r;
		if (r == 0 && *n_todo < FS_WATCHES_MAX)
			todo[(*n_todo)++] = child;
	}
	return 0;
}

/* Watches all directories below one. found() hears of every entry, if given. -EMFILE when there are
 * too many (the rest is not watched then). */
static int watch_tree_scan(struct watch_tree *t, uint32_t node,
			   void (*found)(void *arg, uint32_t parent, const char *name), void *arg)
{
	static uint32_t todo[FS_WATCHES_MAX];
	uint32_t n_todo = 1;

	todo[0] = node;
	while (n_todo) {
		int r = scan_one(t, todo[--n_todo], todo, &n_todo, found, arg);

		if (r < 0)
			return r;
	}
	return 0;
}

/* --- what is told ---------------------------------------------------------------------------- */

static struct watch {
	struct fs *fs;
	bool recursive;
	bool entries;
	struct watch_tree tree;

	/* A directory that moved away, until the next event says where to: node, or
	 * NODE_NONE. */
	uint32_t moving;
	uint32_t moving_cookie;
	/* An upload that is being renamed to its final name. */
	uint32_t upload_cookie;
	bool upload_replaces;
	/* What was sent last, so that a stream of writes is told once for each reading of the
	 * queue. */
	uint32_t last_what;
	char last_name[FS_PATH_SIZE];

	size_t n_told;
	struct {
		int wd;
		char *name;
	} told[TOLD_MAX];
} w;

/* The reader is gone: nothing is left to do, and there is nothing to undo. */
static _noreturn_ void watch_stop(void)
{
	_exit(0);
}

static void send_change(uint32_t what, const char *name)
{
	static struct fs_entry e;
	static char path[FS_PATH_SIZE];
	struct wire_fs_change change = { .what = what };
	bool exists = what == WIRE_FS_CREATED || what == WIRE_FS_WRITTEN ||
		      what == WIRE_FS_CHMODDED;

	if (what == w.last_what && what != WIRE_FS_OVERFLOW && strcmp(name, w.last_name) == 0)
		return;
	w.last_what = what;
	memcpy(w.last_name, name, strlen(name) + 1);
	if (w.entries && exists && fs_path_join(w.tree.root, name, path) == 0)
		change.has_entry = fs_entry_look(path, path, &e) == 0;
	if (wire_send2(w.fs->sock, WIRE_CHANGE, &change, sizeof(change), name, strlen(name)) < 0)
		watch_stop();
	if (change.has_entry && fs_entry_send(w.fs->sock, &e) < 0)
		watch_stop();
}

static void watch_tell(uint32_t what, uint32_t node, const char *name)
{
	static char path[FS_PATH_SIZE];

	if (watch_tree_path(&w.tree, node, name, path) < 0)
		send_change(WIRE_FS_OVERFLOW, "."); /* too long a name to be told */
	else
		send_change(what, path[0] ? path : ".");
}

/* --- directories that appear while we watch -------------------------------------------------- */

static void forget_told(void)
{
	while (w.n_told)
		free(w.told[--w.n_told].name);
}

/* Once: when the same name appears a second time, that is news. */
static bool take_told(int wd, const char *name)
{
	for (size_t i = 0; i < w.n_told; i++) {
		if (w.told[i].wd != wd || strcmp(w.told[i].name, name) != 0)
			continue;
		free(w.told[i].name);
		w.told[i] = w.told[--w.n_told];
		return true;
	}
	return false;
}

/* Something that was in a new directory before it was watched: nobody else will tell of it. */
static void found(void *arg, uint32_t parent, const char *name)
{
	static char relative[FS_PATH_SIZE], path[FS_PATH_SIZE];
	struct stat st;
	bool replaces;

	(void)arg;
	if (fs_is_temp_name(name, &replaces))
		return;
	watch_tell(WIRE_FS_CREATED, parent, name);
	if (watch_tree_path(&w.tree, parent, name, relative) == 0 &&
	    fs_path_join(w.tree.root, relative, path) == 0 && lstat(path, &st) == 0 &&
	    S_ISREG(st.st_mode) && st.st_size > 0)
		watch_tell(WIRE_FS_WRITTEN, parent, name);
	if (w.n_told < TOLD_MAX) {
		char *copy = strdup(name);

		if (copy) {
			w.told[w.n_told].wd = w.tree.nodes[parent].wd;
			w.told[w.n_told++].name = copy;
		}
	}
}

static void add_directory(uint32_t parent, const char *name, bool is_new)
{
	uint32_t node;
	int r = watch_tree_add(&w.tree, parent, name, &node);

	if (r == 0)
		r = watch_tree_scan(&w.tree, node, is_new ? found : NULL, NULL);
	/* Gone again is fine; not being able to watch it is not. */
	if (r < 0 && r != -ENOENT && r != -ENOTDIR && r != -EACCES)
		send_change(WIRE_FS_OVERFLOW, ".");
}

/* --- events ---------------------------------------------------------------------------------- */

/* The directory that moved away did not come to another place that we see. */
static void settle_move(void)
{
	if (w.moving != NODE_NONE)
		watch_tree_drop(&w.tree, w.moving);
	w.moving = NODE_NONE;
}

static void on_moved_to(const struct inotify_event *e, uint32_t node, bool told)
{
	bool is_dir = e->mask & IN_ISDIR;

	if (w.upload_cookie && e->cookie == w.upload_cookie) {
		w.upload_cookie = 0;
		if (!w.upload_replaces && !told)
			watch_tell(WIRE_FS_CREATED, node, e->name);
		if (!is_dir)
			watch_tell(WIRE_FS_WRITTEN, node, e->name);
	} else if (!told) {
		watch_tell(WIRE_FS_CREATED, node, e->name);
	}
	if (!is_dir || !w.recursive)
		return;
	if (w.moving != NODE_NONE && e->cookie == w.moving_cookie) {
		watch_tree_move(&w.tree, w.moving, node, e->name);
		w.moving = NODE_NONE;
		return;
	}
	settle_move();
	add_directory(node, e->name, false);
}

static void on_moved_from(const struct inotify_event *e, uint32_t node)
{
	bool replaces;

	settle_move();
	if (fs_is_temp_name(e->name, &replaces)) {
		w.upload_cookie = e->cookie;
		w.upload_replaces = replaces;
	} else {
		watch_tell(WIRE_FS_RENAMED, node, e->name);
	}
	if (w.recursive && (e->mask & IN_ISDIR)) {
		w.moving = watch_tree_child(&w.tree, node, e->name);
		w.moving_cookie = e->cookie;
	}
}

static void on_named(const struct inotify_event *e, uint32_t node)
{
	bool replaces, told = false;

	if (e->mask & IN_MOVED_FROM) {
		on_moved_from(e, node);
		return;
	}
	if (fs_is_temp_name(e->name, &replaces))
		return;
	if (e->mask & (IN_CREATE | IN_MOVED_TO))
		told = take_told(e->wd, e->name);
	if (e->mask & IN_MOVED_TO) {
		on_moved_to(e, node, told);
		return;
	}
	settle_move();
	if ((e->mask & IN_CREATE) && !told) {
		watch_tell(WIRE_FS_CREATED, node, e->name);
		if (w.recursive && (e->mask & IN_ISDIR))
			add_directory(node, e->name, true);
	}
	if (e->mask & IN_MODIFY)
		watch_tell(WIRE_FS_WRITTEN, node, e->name);
	if (e->mask & IN_ATTRIB)
		watch_tell(WIRE_FS_CHMODDED, node, e->name);
	if (e->mask & IN_DELETE)
		watch_tell(WIRE_FS_REMOVED, node, e->name);
}

/* About a watched directory itself. Those below the root are told by the directory they are in. */
static void on_unnamed(const struct inotify_event *e, uint32_t node)
{
	if (e->mask & IN_IGNORED) {
		if (node == w.moving)
			w.moving = NODE_NONE;
		watch_tree_drop(&w.tree, node);
		return;
	}
	if (node != 0)
		return;
	if (e->mask & IN_ATTRIB)
		send_change(WIRE_FS_CHMODDED, ".");
	if (e->mask & IN_MOVE_SELF)
		send_change(WIRE_FS_RENAMED, ".");
	if (e->mask & IN_DELETE_SELF)
		send_change(WIRE_FS_REMOVED, ".");
}

static void watch_event(const struct inotify_event *e)
{
	uint32_t node = watch_tree_find(&w.tree, e->wd);

	if (e->mask & IN_Q_OVERFLOW) {
		send_change(WIRE_FS_OVERFLOW, ".");
		/* Among the lost ones may have been directories. */
		if (w.recursive && w.tree.nodes[0].wd >= 0 &&
		    watch_tree_scan(&w.tree, 0, NULL, NULL) < 0)
			send_change(WIRE_FS_OVERFLOW, ".");
		return;
	}
	if (node == NODE_NONE)
		return;
	if (e->len)
		on_named(e, node);
	else
		on_unnamed(e, node);
}

/* Takes events until there are none. */
static void watch_read(void)
{
	static _Alignas(struct inotify_event) char data[16384];
	ssize_t n;

	while ((n = read(w.tree.fd, data, sizeof(data))) > 0) {
		w.last_what = 0;
		for (const char *at = data; at < data + n;) {
			const struct inotify_event *e = (const struct inotify_event *)at;

			watch_event(e);
			at += sizeof(*e) + e->len;
		}
	}
	if (n == 0 || (errno != EAGAIN && errno != EINTR))
		watch_stop();
	/* The queue was empty: whatever was found in new directories has been told by its own
	 * events too. */
	settle_move();
	forget_told();
}

int fs_watch(struct fs *fs)
{
	struct pollfd p[] = { { .fd = -1, .events = POLLIN },
			      { .fd = fs->sock, .events = POLLIN } };
	int r;

	w.fs = fs;
	w.recursive = fs->request->fs.flags & WIRE_FS_RECURSIVE;
	w.entries = fs->request->fs.flags & WIRE_FS_ENTRIES;
	w.moving = NODE_NONE;
	r = watch_tree_open(&w.tree, fs->request->paths[0]);
	if (r == 0 && w.recursive)
		r = watch_tree_scan(&w.tree, 0, NULL, NULL);
	if (r == 0)
		r = wire_send(fs->sock, WIRE_DONE, NULL, 0);
	if (r < 0)
		return r;
	p[0].fd = w.tree.fd;
	for (;;) {
		if (poll(p, ARRAY_SIZE(p), -1) < 0 && errno != EINTR)
			watch_stop();
		if (p[1].revents)
			watch_stop(); /* nothing is expected there but the end */
		if (p[0].revents)
			watch_read();
	}
}
