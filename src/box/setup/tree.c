/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation. The child starts in fresh user, mount, pid, net, ipc and uts namespaces and
 * waits until its ids are mapped. Then it builds the box's tree in this order:
 *
 *	scratch   a tmpfs with a byte and an inode limit; everything writable lives on it
 *	root      overlay: the template's layer below, scratch/up above
 *	/usr      a second overlay when the template borrows the host's /usr
 *	/home/user, /tmp, /var/tmp: of a fixed box, whose overlay cannot be written to
 *	/proc     a new procfs for the new pid namespace, masked, /proc/sys read-only
 *	/dev      six device nodes, devpts, shm: where the parent makes the nodes it is the last
 *
 * All of it is attached by descriptor below directories that were made a moment ago and that no
 * foreign instruction has seen. Directories that mounts go onto are created in the upper layer, so
 * a template in which /proc or /dev is a symbolic link cannot lead them elsewhere (FS-13). Then the
 * root is changed, the old one detached, the process sealed and the agent executed. What the parent
 * makes meanwhile is asked for after that change, for which the kernel needs a while.
 *
 * No malloc, no stdio, no return: every failure is reported as the step and the errno.
 */
#include "box/setup/setup_priv.h"

#include "box/breakable.h"
#include "box/ids.h"
#include "sys/mnt.h"

#include <sys/random.h>
#include <sys/stat.h>

#define OWN_INODES 128 /* directories, devices and work files that are ours, not the payload's */

/* The umask is 0 here. */
static int make_dir(int dir_fd, const char *name, mode_t mode)
{
	return mkdirat(dir_fd, name, mode) < 0 ? -errno : 0;
}

int setup_make_file(int dir_fd, const char *name, mode_t mode, const char *text)
{
	_cleanup_(fd_closep) int fd =
		openat(dir_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);

	if (fd < 0)
		return -errno;
	return write(fd, text, strlen(text)) == (ssize_t)strlen(text) ? 0 : -errno;
}

/* A box has been up only since now: an identifier of its own, by which a restart can be told. */
static int make_boot_id(int dir_fd)
{
	unsigned char r[16];
	char text[40];

	if (getrandom(r, sizeof(r), 0) != sizeof(r))
		return -errno;
	(void)snprintf(text, sizeof(text),
		       "%02x%02x%02x%02x-%02x%02x-4%01x%02x-8%01x%02x-%02x%02x%02x%02x%02x%02x\n",
		       r[0], r[1], r[2], r[3], r[4], r[5], r[6] & 15, r[7], r[8] & 15, r[9], r[10],
		       r[11], r[12], r[13], r[14], r[15]);
	return setup_make_file(dir_fd, "mask/boot-id", 0444, text);
}

int setup_clone(int dir_fd, const char *path, uint64_t attrs)
{
	struct mount_attr attr = { .attr_set = attrs };
	_cleanup_(fd_closep) int fd = mnt_open_tree(
		dir_fd, path, OPEN_TREE_CLONE | (*path ? 0u : (unsigned)AT_EMPTY_PATH));
	int r;

	if (fd < 0)
		return fd;
	r = attrs ? mnt_setattr(fd, 0, &attr) : 0;
	return r < 0 ? r : take_fd(&fd);
}

int setup_clone_onto(int from_fd, const char *from, uint64_t attrs, int to_fd, const char *to)
{
	_cleanup_(fd_closep) int fd = setup_clone(from_fd, from, attrs);

	return fd < 0 ? fd : mnt_move(fd, to_fd, to);
}

/* While nothing of ours is mounted yet, and our ids are not mapped anyway. */
int setup_do_find(struct setup_state *s)
{
	const struct setup *setup = s->setup;

	return control_on("hidden-mounts") ?
		       hidden_find(setup->layer_path, setup->n_trees, &s->hidden) :
		       0;
}

int setup_do_layers(struct setup_state *s)
{
	if (s->layer_fd[0] >= 0) { /* they came idmapped with the word to go */
		s->report.features |= SETUP_HAS_IDMAP;
		return 0;
	}
	for (size_t i = 0; i < s->setup->n_layers; i++) {
		s->layer_fd[i] =
			setup_clone(AT_FDCWD, s->setup->layer_path[i],
				    MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
		if (s->layer_fd[i] < 0)
			return s->layer_fd[i];
	}
	return 0;
}

int setup_do_private(struct setup_state *s)
{
	(void)s;
	return control_on("private") ? mnt_make_private() : 0;
}

int setup_do_scratch(struct setup_state *s)
{
	char size[24], inodes[24];
	const struct mnt_option options[] = {
		{ "size", size },
		{ "nr_inodes", inodes },
		{ "mode", "0755" },
		/* Large writes get large pages, which halves what they cost; never more than the
		 * file is long. */
		{ "huge", "within_size" },
	};
	size_t n = ARRAY_SIZE(options);

	if (!control_on("disk"))
		(void)snprintf(size, sizeof(size), "0");
	else
		(void)snprintf(size, sizeof(size), "%llu",
			       (unsigned long long)s->setup->disk_bytes);
	if (!control_on("inodes"))
		(void)snprintf(inodes, sizeof(inodes), "0");
	else
		(void)snprintf(inodes, sizeof(inodes), "%llu",
			       (unsigned long long)s->setup->files_max + OWN_INODES);
	s->scratch_fd = mnt_make("tmpfs", options, n, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
	if (s->scratch_fd == -EINVAL) /* a kernel without huge pages */
		s->scratch_fd =
			mnt_make("tmpfs", options, n - 1, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
	if (s->scratch_fd < 0)
		return s->scratch_fd;
	/* Overlay layers must be attached somewhere. /usr exists on every machine, our view of it
	 * is private, and the layer that shows it was opened before. */
	return mnt_move(s->scratch_fd, AT_FDCWD, "/usr");
}

struct overlay_name {
	char text[12];
};

static struct overlay_name layer_name(size_t i)
{
	struct overlay_name name;

	(void)snprintf(name.text, sizeof(name.text), "low%u", (unsigned)i % 1000);
	return name;
}

/* The places that the user may write to. In a fixed box, what is mounted there is made as well:
 * "home" is shown at up/home/user, and so on. */
static const struct {
	const char *path; /* below the root */
	const char *own;  /* of a fixed box, below scratch */
	mode_t mode;
	bool users;
} user_dirs[] = {
	{ "tmp", "tmp", 01777, false },         { "var", NULL, 0755, false },
	{ "var/tmp", "var-tmp", 01777, false }, { "home", NULL, 0755, false },
	{ "home/user", "home", 0755, true },
};

static int make_user_dir(struct setup_state *s, const char *path, mode_t mode, bool users)
{
	int r = make_dir(s->scratch_fd, path, mode);

	if (r == 0 && users && fchownat(s->scratch_fd, path, PAYLOAD_USER, PAYLOAD_USER, 0) < 0)
		r = -errno;
	return r;
}

static int make_user_dirs(struct setup_state *s)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(user_dirs); i++) {
		char path[16];

		(void)snprintf(path, sizeof(path), "up/%s", user_dirs[i].path);
		r = make_user_dir(s, path, user_dirs[i].mode, user_dirs[i].users);
		if (r == 0 && s->setup->fixed && user_dirs[i].own)
			r = make_user_dir(s, user_dirs[i].own, user_dirs[i].mode,
					  user_dirs[i].users);
	}
	return r;
}

int setup_do_upper(struct setup_state *s)
{
	static const struct {
		const char *path;
		mode_t mode;
	} dirs[] = {
		{ "up", 0755 },
		{ "root", 0755 },
		{ "dev", 0755 },
		{ "shm", 01777 },
		{ "mask", 0755 },
		{ "mask/dir", 0555 },
		{ "up/dev", 0755 },
		{ "up/proc", 0555 },
		{ "up/sys", 0555 },
		{ "up/run", 0755 },
		/* not in a fixed box */
		{ "work", 0755 },
		{ "usr-up", 0755 },
		{ "usr-work", 0755 },
	};
	size_t n = ARRAY_SIZE(dirs) - (s->setup->fixed ? 3 : 0);
	int r = fchdir(s->scratch_fd) < 0 ? -errno : 0;

	for (size_t i = 0; r == 0 && i < n; i++)
		r = make_dir(s->scratch_fd, dirs[i].path, dirs[i].mode);
	for (size_t i = 0; r == 0 && i < s->setup->n_layers; i++)
		r = make_dir(s->scratch_fd, layer_name(i).text, 0755);
	if (r == 0 && s->setup->n_trees > 1)
		r = make_dir(s->scratch_fd, "up/usr", 0755);
	if (r == 0)
		r = setup_make_file(s->scratch_fd, "mask/file", 0444, "");
	if (r == 0)
		r = make_boot_id(s->scratch_fd);
	/* Another box has made these, and perhaps changed them since. */
	return r < 0 || s->setup->n_layers > s->setup->n_trees ? r : make_user_dirs(s);
}

/*
 * FS-26: layers are named relative to scratch, so mountinfo tells nothing about the host. userxattr
 * switches redirect_dir and metacopy off (FS-22). In a fixed box the upper layer is just another
 * one below, and nobody can write.
 */
static int overlay(const struct setup_state *s, const char *lower, const char *upper,
		   const char *work)
{
	const struct mnt_option options[] = {
		{ "lowerdir", lower }, { "userxattr", NULL }, { "index", "off" },
		{ "upperdir", upper }, { "workdir", work },   { "volatile", NULL },
	};

	return mnt_make("overlay", options, ARRAY_SIZE(options) - (s->setup->fixed ? 3 : 0),
			(control_on("nosuid") ? MOUNT_ATTR_NOSUID : 0) | MOUNT_ATTR_NODEV);
}

/* Adds one name to a list of layers. The kernel takes 255 bytes. */
struct layers {
	char text[256];
	size_t len;
};

static int layers_add(struct layers *l, const char *name)
{
	l->len += (size_t)snprintf(l->text + l->len, sizeof(l->text) - l->len, "%s%s",
				   l->len ? ":" : "", name);
	return l->len < sizeof(l->text) ? 0 : -ENAMETOOLONG;
}

/* The layers of one tree, the topmost first, as overlayfs wants them. */
static int attach_layers(struct setup_state *s, size_t tree, struct layers *l)
{
	for (size_t i = s->setup->n_layers; i-- > 0;) {
		struct overlay_name name = layer_name(i);
		int r;

		if (i % s->setup->n_trees != tree)
			continue;
		r = mnt_move(s->layer_fd[i], s->scratch_fd, name.text);
		if (r == 0)
			r = layers_add(l, name.text);
		if (r < 0)
			return r;
	}
	return 0;
}

/* The directories that mounts go onto lie above the template's, in a fixed box as in any other. */
static int overlay_root(struct setup_state *s)
{
	struct layers l = { .len = 0 };
	int r = s->setup->fixed ? layers_add(&l, "up") : 0;

	if (r == 0)
		r = attach_layers(s, 0, &l);
	return r < 0 ? r : overlay(s, l.text, "up", "work");
}

/* CC-03, CC-04: never without an overlay, for locks and watches on its files would reach the host's
 * and every other box's. Without an upper layer one wants two below: the second is empty. */
static int overlay_usr(struct setup_state *s)
{
	struct layers l = { .len = 0 };
	int r = attach_layers(s, 1, &l);

	if (r == 0 && s->setup->fixed)
		r = layers_add(&l, "mask/dir");
	return r < 0 ? r : overlay(s, l.text, "usr-up", "usr-work");
}

/* Paths are relative to scratch, where we stand, here and below: nothing on them was made by
 * anybody else. */
static int show_user_dirs(void)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(user_dirs); i++) {
		char path[24];

		(void)snprintf(path, sizeof(path), "root/%s", user_dirs[i].path);
		if (user_dirs[i].own)
			r = mnt_bind(user_dirs[i].own, path);
	}
	return r;
}

int setup_do_overlay(struct setup_state *s)
{
	_cleanup_(fd_closep) int usr_fd = -EBADF;
	int r;

	s->root_fd = overlay_root(s);
	if (s->root_fd < 0)
		return s->root_fd;
	r = mnt_move(s->root_fd, s->scratch_fd, "root");
	if (r == 0 && s->setup->n_trees > 1) {
		usr_fd = overlay_usr(s);
		r = usr_fd < 0 ? usr_fd : mnt_move(usr_fd, s->root_fd, "usr");
	}
	return r == 0 && s->setup->fixed ? show_user_dirs() : r;
}

int setup_do_pivot(struct setup_state *s)
{
	int r;

	if (fchdir(s->root_fd) < 0)
		return -errno;
	r = mnt_pivot_here();
	if (r == 0)
		r = mnt_detach("."); /* the old root lies on top of the new one */
	if (r == 0 && chdir("/") < 0)
		r = -errno;
	return r;
}
