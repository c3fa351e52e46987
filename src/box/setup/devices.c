/* SPDX-License-Identifier: Apache-2.0 */
#include "box/setup/devices.h"

#include "sys/mnt.h"

#include <sys/stat.h>
#include <sys/sysmacros.h>

const struct device box_devices[] = {
	{ "null", 1, 3 },   { "zero", 1, 5 },    { "full", 1, 7 },
	{ "random", 1, 8 }, { "urandom", 1, 9 }, { "tty", 5, 0 },
};
const size_t n_box_devices = ARRAY_SIZE(box_devices);

int devices_fill(int dir_fd)
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
	for (size_t i = 0; i < n_box_devices; i++)
		if (mknodat(dir_fd, box_devices[i].name, S_IFCHR | 0666,
			    makedev(box_devices[i].major_number, box_devices[i].minor_number)) < 0)
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
