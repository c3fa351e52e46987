/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A box's /dev: six devices, links, and places for pts and shm. As root the nodes are the box's
 * own: two boxes that could open one inode could talk through its locks, and see each other's and
 * the host's use of it (CC-03, CC-04). Only the initial user namespace can make nodes, so they are
 * made out here and handed in. Without root the host's own are shown, read-only as files.
 */
#include "box/setup/dev.h"

#include "box/breakable.h"
#include "box/setup/setup_priv.h"
#include "sys/mnt.h"

#include <sys/stat.h>
#include <sys/sysmacros.h>

static const struct device {
	const char *name;
	unsigned major_number;
	unsigned minor_number;
} devices[] = {
	{ "null", 1, 3 },   { "zero", 1, 5 },    { "full", 1, 7 },
	{ "random", 1, 8 }, { "urandom", 1, 9 }, { "tty", 5, 0 },
};

/* The links and mount points in an empty /dev. The umask must be 0. */
static int devices_fill(int dir_fd)
{
	static const struct {
		const char *name, *target;
	} links[] = {
		{ "fd", "/proc/self/fd" },       { "stdin", "/proc/self/fd/0" },
		{ "stdout", "/proc/self/fd/1" }, { "stderr", "/proc/self/fd/2" },
		{ "ptmx", "pts/ptmx" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(links); i++)
		if (symlinkat(links[i].target, dir_fd, links[i].name) < 0)
			return -errno;
	if (mkdirat(dir_fd, "pts", 0755) < 0 || mkdirat(dir_fd, "shm", 01777) < 0)
		return -errno;
	return 0;
}

static int make_nodes(int dir_fd)
{
	for (size_t i = 0; i < ARRAY_SIZE(devices); i++)
		if (mknodat(dir_fd, devices[i].name, S_IFCHR | 0666,
			    makedev(devices[i].major_number, devices[i].minor_number)) < 0)
			return -errno;
	return devices_fill(dir_fd);
}

int devices_make(uint32_t uid, uint32_t gid)
{
	char uid_text[12], gid_text[12];
	const struct mnt_option options[] = {
		{ "size", "16k" },   { "nr_inodes", "32" }, { "mode", "0755" },
		{ "uid", uid_text }, { "gid", gid_text },
	};
	_cleanup_(fd_closep) int fd = -EBADF;
	mode_t mask;
	int r;

	(void)snprintf(uid_text, sizeof(uid_text), "%u", uid);
	(void)snprintf(gid_text, sizeof(gid_text), "%u", gid);
	fd = mnt_make("tmpfs", options, ARRAY_SIZE(options), MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC);
	if (fd < 0)
		return fd;
	mask = umask(0);
	r = make_nodes(fd);
	(void)umask(mask);
	return r < 0 ? r : take_fd(&fd);
}

/* --- the steps of the set-up ----------------------------------------------------------------- */

/* Shows a device of the host, after making sure that it is the one we mean (FS-14). Read-only, so
 * that nobody can change the node's times; what the device does is not affected. */
static int bind_device(struct setup_state *s, const struct device *d)
{
	_cleanup_(fd_closep) int fd = -EBADF;
	char path[24];
	struct stat st;
	int r;

	(void)snprintf(path, sizeof(path), "/dev/%s", d->name);
	fd = setup_clone(AT_FDCWD, path, MOUNT_ATTR_RDONLY);
	if (fd < 0)
		return fd;
	if (fstat(fd, &st) < 0)
		return -errno;
	if (control_on("device-check") &&
	    (!S_ISCHR(st.st_mode) || st.st_rdev != makedev(d->major_number, d->minor_number)))
		return -ENODEV;
	r = setup_make_file(s->dev_fd, d->name, 0666, "");
	return r < 0 ? r : mnt_move(fd, s->dev_fd, d->name);
}

static int borrow_devices(struct setup_state *s)
{
	int r;

	s->dev_fd = setup_clone(s->scratch_fd, "dev", MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC);
	if (s->dev_fd < 0)
		return s->dev_fd;
	r = mnt_move(s->dev_fd, s->root_fd, "dev");
	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(devices); i++)
		r = bind_device(s, &devices[i]);
	return r < 0 ? r : devices_fill(s->dev_fd);
}

static int clone_dev_whole(struct setup_state *s)
{
	_cleanup_(fd_closep) int fd =
		mnt_open_tree(AT_FDCWD, "/dev", OPEN_TREE_CLONE | AT_RECURSIVE);

	return fd < 0 ? fd : mnt_move(fd, s->root_fd, "dev");
}

static int fill_dev(struct setup_state *s)
{
	int r = mnt_move(s->pts_fd, s->dev_fd, "pts");

	return r < 0 ? r : mnt_move(s->shm_fd, s->dev_fd, "shm");
}

/* All that the host's tree or scratch is needed for: both are gone after the pivot. */
int setup_do_dev(struct setup_state *s)
{
	const struct mnt_option pts_options[] = {
		{ "ptmxmode", "0666" },
		{ "mode", "0620" },
		{ "max", control_on("pty-max") ? "64" : "4096" },
	};
	int r;

	if (!control_on("dev"))
		return clone_dev_whole(s);
	s->pts_fd = mnt_make("devpts", pts_options, ARRAY_SIZE(pts_options),
			     MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC);
	if (s->pts_fd < 0)
		return s->pts_fd;
	s->shm_fd = setup_clone(s->scratch_fd, "shm", MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
	if (s->shm_fd < 0)
		return s->shm_fd;
	if (s->setup->given_nodes)
		return 0;
	r = borrow_devices(s);
	return r < 0 ? r : fill_dev(s);
}

int setup_do_nodes(struct setup_state *s)
{
	int r;

	if (!s->setup->given_nodes)
		return 0;
	s->report.features |= SETUP_HAS_OWN_DEVICES;
	r = mnt_move(s->dev_fd, s->root_fd, "dev");
	return r < 0 ? r : fill_dev(s);
}
