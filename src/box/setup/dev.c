/* SPDX-License-Identifier: Apache-2.0 */
/* The steps that make /dev: nodes of the box's own where the parent can make them, else the host's. */
#include "box/setup/priv.h"

#include "box/breakable.h"
#include "box/setup/devices.h"
#include "sys/mnt.h"

#include <sys/stat.h>
#include <sys/sysmacros.h>

/* Shows a device of the host, after making sure that it is the one we mean (FS-14). Read-only, so that
 * nobody can change the node's times; what the device does is not affected. */
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
	for (size_t i = 0; r == 0 && i < n_box_devices; i++)
		r = bind_device(s, &box_devices[i]);
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
