/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The directories that are watched. A directory is known by its parent and its name in there, so
 * when one moves the paths of everything below are right at once.
 */
#include "agent/fs/priv.h"

#include "base/dir.h"

#include <sys/inotify.h>

#define MASK                                                                                       \
	(IN_CREATE | IN_MOVED_TO | IN_MOVED_FROM | IN_MODIFY | IN_ATTRIB | IN_DELETE |             \
	 IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR)

/* Too many watches is the same to a client, whoever's limit it is: ours, or the kernel's for this
 * user. */
static int watch(struct fs_tree *t, const char *path, uint32_t flags)
{
	int wd = inotify_add_watch(t->fd, path, MASK | flags);

	if (wd >= 0)
		return wd;
	return errno == ENOSPC ? -EMFILE : -errno;
}

int fs_tree_open(struct fs_tree *t, const char *root)
{
	int wd;

	t->root = root;
	t->n = 0;
	t->fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	if (t->fd < 0)
		return -errno;
	wd = watch(t, root, 0);
	if (wd < 0)
		return wd;
	t->nodes[t->n++] = (struct fs_node){ .wd = wd, .parent = FS_NODE_NONE };
	return 0;
}

uint32_t fs_tree_find(const struct fs_tree *t, int wd)
{
	for (uint32_t i = 0; wd >= 0 && i < t->n; i++)
		if (t->nodes[i].wd == wd)
			return i;
	return FS_NODE_NONE;
}

uint32_t fs_tree_child(const struct fs_tree *t, uint32_t parent, const char *name)
{
	for (uint32_t i = 1; i < t->n; i++)
		if (t->nodes[i].wd >= 0 && t->nodes[i].parent == parent &&
		    strcmp(t->nodes[i].name, name) == 0)
			return i;
	return FS_NODE_NONE;
}

/* Written from the end of the buffer towards its beginning, then moved there. */
int fs_tree_path(const struct fs_tree *t, uint32_t node, const char *name, char ret[FS_PATH_SIZE])
{
	size_t at = WIRE_PATH_MAX, len = strlen(name);

	if (len > at)
		return -ENAMETOOLONG;
	at -= len;
	memcpy(ret + at, name, len);
	while (node != 0) {
		const struct fs_node *n = &t->nodes[node];
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

static int absolute_path(const struct fs_tree *t, uint32_t node, const char *name,
			 char ret[FS_PATH_SIZE])
{
	char relative[FS_PATH_SIZE];
	int r = fs_tree_path(t, node, name, relative);

	return r < 0 ? r : fs_path_join(t->root, relative, ret);
}

static uint32_t free_slot(struct fs_tree *t)
{
	for (uint32_t i = 1; i < t->n; i++)
		if (t->nodes[i].wd < 0)
			return i;
	return t->n < FS_WATCHES_MAX ? t->n++ : FS_NODE_NONE;
}

int fs_tree_add(struct fs_tree *t, uint32_t parent, const char *name, uint32_t *ret)
{
	static char path[FS_PATH_SIZE];
	int wd = absolute_path(t, parent, name, path);
	char *copy;
	uint32_t node;

	if (wd < 0)
		return wd;
	wd = watch(t, path, IN_DONT_FOLLOW);
	if (wd < 0)
		return wd;
	node = fs_tree_find(t, wd);
	if (node != FS_NODE_NONE) {
		fs_tree_move(t, node, parent, name);
		*ret = node;
		return 0;
	}
	node = free_slot(t);
	copy = node == FS_NODE_NONE ? NULL : strdup(name);
	if (!copy) {
		(void)inotify_rm_watch(t->fd, wd);
		if (node != FS_NODE_NONE)
			t->nodes[node].wd = -1;
		return node == FS_NODE_NONE ? -EMFILE : -ENOMEM;
	}
	t->nodes[node] = (struct fs_node){ .wd = wd, .parent = parent, .name = copy };
	*ret = node;
	return 0;
}

/* Is it the other one, or below it? */
static bool is_below(const struct fs_tree *t, uint32_t node, uint32_t other)
{
	while (node != other && node != FS_NODE_NONE)
		node = t->nodes[node].parent;
	return node == other;
}

void fs_tree_move(struct fs_tree *t, uint32_t node, uint32_t parent, const char *name)
{
	char *copy;

	/* What was told out of order must not make a ring of it. */
	if (node == 0 || is_below(t, parent, node))
		return;
	copy = strdup(name);
	if (!copy) {
		fs_tree_drop(t, node);
		return;
	}
	free(t->nodes[node].name);
	t->nodes[node].name = copy;
	t->nodes[node].parent = parent;
}

void fs_tree_drop(struct fs_tree *t, uint32_t node)
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
static int scan_one(struct fs_tree *t, uint32_t node, uint32_t *todo, uint32_t *n_todo,
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
		r = fs_tree_add(t, node, d->d_name, &child);
		if (r == -EMFILE || r == -ENOMEM)
			return r;
		if (r == 0 && *n_todo < FS_WATCHES_MAX)
			todo[(*n_todo)++] = child;
	}
	return 0;
}

int fs_tree_scan(struct fs_tree *t, uint32_t node,
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
