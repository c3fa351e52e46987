/* SPDX-License-Identifier: Apache-2.0 */
/* File systems that boxes are built of, and the disk for template roots. */
#include "cli/doctor/doctor.h"
#include "sys/mnt.h"
#include "sys/proc.h"
#include "template/template.h"

#include <sched.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <sys/xattr.h>

#define IN_A_USERNS (CLONE_NEWUSER | CLONE_NEWNS)

static int try_proc(void)
{
	_cleanup_(fd_closep) int fs_fd = mnt_fsopen("proc");
	_cleanup_(fd_closep) int fd = -EBADF;
	int r = fs_fd < 0 ? fs_fd : mnt_fsconfig_string(fs_fd, "hidepid", "invisible");

	if (r == 0)
		r = mnt_fsconfig_create(fs_fd);
	if (r < 0)
		return r;
	fd = mnt_fsmount(fs_fd, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC);
	return fd < 0 ? fd : 0;
}

void doctor_check_proc(const struct doctor *d, struct doctor_result *r)
{
	int e;

	if (doctor_is_blocked(d, r))
		return;
	e = doctor_probe(IN_A_USERNS | CLONE_NEWPID, try_proc);
	if (e == 0) {
		doctor_summary(r, DOCTOR_OK, "can be mounted with hidden processes");
		return;
	}
	doctor_summary(r, doctor_needed(d), "cannot be mounted in a namespace: %s", strerror(-e));
	if (e == -EPERM)
		doctor_detail(r,
			      "Something is mounted over parts of /proc, as container engines do; "
			      "the kernel then refuses a new one that would show them.");
	doctor_cost(r,
		    "boxes cannot be made: each needs a /proc that shows only its own processes");
	doctor_remedy(r, "grep ' /proc/' /proc/self/mountinfo shows what is in the way; in a "
			 "container: docker run --security-opt systempaths=unconfined, or "
			 "--privileged");
}

/* A tmpfs on /usr of this namespace, which is private, as boxes have it. Returns its root. */
static int mount_scratch(void)
{
	_cleanup_(fd_closep) int fs_fd = mnt_fsopen("tmpfs");
	_cleanup_(fd_closep) int fd = -EBADF;
	int r = fs_fd < 0 ? fs_fd : mnt_fsconfig_string(fs_fd, "nr_inodes", "64");

	if (r == 0)
		r = mnt_fsconfig_string(fs_fd, "size", "65536");
	if (r == 0)
		r = mnt_fsconfig_create(fs_fd);
	if (r < 0)
		return r;
	fd = mnt_fsmount(fs_fd, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
	if (fd < 0)
		return fd;
	r = mnt_move(fd, AT_FDCWD, "/usr");
	return r < 0 ? r : take_fd(&fd);
}

/* The limit must hold: 64 KiB go in, no more. */
static int try_tmpfs_limit(void)
{
	_cleanup_(fd_closep) int dir_fd = mount_scratch();
	_cleanup_(fd_closep) int fd = -EBADF;
	char chunk[8192] = "";

	if (dir_fd < 0)
		return dir_fd;
	fd = openat(dir_fd, "full", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	for (size_t i = 0; i < 32; i++)
		if (write(fd, chunk, sizeof(chunk)) != (ssize_t)sizeof(chunk))
			return 0;
	return -EDQUOT;
}

void doctor_check_tmpfs(const struct doctor *d, struct doctor_result *r)
{
	int e;

	if (doctor_is_blocked(d, r))
		return;
	e = doctor_probe(IN_A_USERNS, try_tmpfs_limit);
	if (e == 0) {
		doctor_summary(r, DOCTOR_OK, "can be mounted in a namespace, its size limit holds");
		return;
	}
	doctor_summary(r, doctor_needed(d), "does not work in a namespace: %s", strerror(-e));
	doctor_cost(r, "boxes cannot be made: what they write lives on a tmpfs with a limit");
	doctor_remedy(r, "use a kernel with CONFIG_TMPFS=y");
}

static int try_overlay(void)
{
	_cleanup_(fd_closep) int dir_fd = mount_scratch();
	_cleanup_(fd_closep) int fs_fd = -EBADF;
	_cleanup_(fd_closep) int fd = -EBADF;
	int r;

	if (dir_fd < 0)
		return dir_fd;
	if (fchdir(dir_fd) < 0 || mkdir("low", 0755) < 0 || mkdir("up", 0755) < 0 ||
	    mkdir("work", 0755) < 0)
		return -errno;
	fs_fd = mnt_fsopen("overlay");
	if (fs_fd < 0)
		return fs_fd;
	r = mnt_fsconfig_string(fs_fd, "lowerdir", "low");
	if (r == 0)
		r = mnt_fsconfig_string(fs_fd, "upperdir", "up");
	if (r == 0)
		r = mnt_fsconfig_string(fs_fd, "workdir", "work");
	if (r == 0)
		r = mnt_fsconfig_flag(fs_fd, "userxattr");
	if (r == 0)
		r = mnt_fsconfig_flag(fs_fd, "volatile");
	if (r == 0)
		r = mnt_fsconfig_create(fs_fd);
	if (r < 0)
		return r;
	fd = mnt_fsmount(fs_fd, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
	return fd < 0 ? fd : 0;
}

/* overlayfs keeps its notes in user attributes of the upper layer, which tmpfs has since 6.6. */
static int try_tmpfs_attributes(void)
{
	_cleanup_(fd_closep) int dir_fd = mount_scratch();
	_cleanup_(fd_closep) int fd = -EBADF;

	if (dir_fd < 0)
		return dir_fd;
	fd = openat(dir_fd, ".",
		    O_RDONLY | O_DIRECTORY | O_CLOEXEC); /* the mount itself only names it */
	return fd < 0 || fsetxattr(fd, "user.glovebox", "1", 1, 0) < 0 ? -errno : 0;
}

void doctor_check_overlay(const struct doctor *d, struct doctor_result *r)
{
	int e;

	if (doctor_is_blocked(d, r))
		return;
	e = doctor_probe(IN_A_USERNS, try_overlay);
	if (e < 0) {
		doctor_summary(r, doctor_needed(d), "cannot be mounted in a namespace: %s",
			       strerror(-e));
		doctor_cost(r, "boxes cannot be made: their root is an overlay on the template");
		doctor_remedy(r, "%s",
			      e == -ENODEV ? "sudo modprobe overlay" :
					     "use Linux 5.11 or later (userxattr), outside of a "
					     "container that forbids it");
		return;
	}
	if (doctor_probe(IN_A_USERNS, try_tmpfs_attributes) == 0) {
		doctor_summary(r, DOCTOR_OK, "can be mounted in a namespace, with user attributes");
		return;
	}
	doctor_summary(r, DOCTOR_NOTE, "works, but tmpfs has no user attributes");
	doctor_cost(
		r, "nothing for programs, which may not change the template's directories; a box's "
		   "root could not rename them");
	doctor_remedy(r, "install Linux 6.6 or later with CONFIG_TMPFS_XATTR=y");
}

/* The user namespace of a process that only lends it; one without a map is no use for this. */
static int open_userns(pid_t pid)
{
	char path[40];
	int r, fd;

	(void)snprintf(path, sizeof(path), "/proc/%d/uid_map", pid);
	r = doctor_write(path, "0 0 65536");
	(void)snprintf(path, sizeof(path), "/proc/%d/gid_map", pid);
	if (r == 0)
		r = doctor_write(path, "0 0 65536");
	if (r < 0)
		return r;
	(void)snprintf(path, sizeof(path), "/proc/%d/ns/user", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

static int try_idmap(const char *path, int userns_fd)
{
	_cleanup_(fd_closep) int fd = mnt_open_tree(AT_FDCWD, path, OPEN_TREE_CLONE);
	struct mount_attr attr = {
		.attr_set = MOUNT_ATTR_IDMAP,
		.userns_fd = (uint64_t)userns_fd,
	};

	return fd < 0 ? fd : mnt_setattr(fd, 0, &attr);
}

/* Tries it on the file systems that layers come from; *ret_path is the one that failed. */
static int probe_idmap(const char *const *paths, size_t n, const char **ret_path)
{
	_cleanup_(fd_closep) int pidfd = -EBADF;
	_cleanup_(fd_closep) int userns_fd = -EBADF;
	pid_t pid = proc_clone(CLONE_NEWUSER, -EBADF, &pidfd);
	siginfo_t info;
	int r;

	if (pid < 0)
		return pid;
	if (pid == 0)
		for (;;)
			(void)pause();
	userns_fd = open_userns(pid);
	r = userns_fd < 0 ? userns_fd : 0;
	for (size_t i = 0; r == 0 && i < n; i++)
		r = try_idmap(*ret_path = paths[i], userns_fd);
	(void)proc_kill(pidfd, SIGKILL);
	while (waitid(P_PIDFD, (id_t)pidfd, &info, WEXITED) < 0 && errno == EINTR)
		;
	return r;
}

void doctor_check_idmap(const struct doctor *d, struct doctor_result *r)
{
	char roots[PATH_MAX - 64] = "/";
	const char *const paths[] = { "/usr", roots };
	const char *path = "";
	struct fail fail;
	int e;

	if (!d->root) {
		doctor_summary(r, DOCTOR_NOTE, "only root can make them");
		doctor_cost(r, "in a box, files of the template belong to 'nobody'");
		return;
	}
	if (doctor_is_blocked(d, r))
		return;
	if (template_state_dir(roots, sizeof(roots), &fail) < 0)
		(void)snprintf(roots, sizeof(roots), "/");
	e = probe_idmap(paths, ARRAY_SIZE(paths), &path);
	if (e == 0) {
		doctor_summary(r, DOCTOR_OK, "work for /usr and for templates");
		return;
	}
	doctor_summary(r, doctor_needed(d), "do not work for %.60s: %s", path, strerror(-e));
	doctor_detail(r, "The file system there cannot, or the kernel is older than 5.12 (5.19 for "
			 "layers of an overlay).");
	doctor_cost(r, "boxes of root cannot show whose a template's files are");
	doctor_remedy(r, "put it on ext4, xfs or btrfs, or install a newer kernel");
}

void doctor_check_disk(const struct doctor *d, struct doctor_result *r)
{
	char dir[PATH_MAX - 64];
	struct fail fail = { 0 };
	struct statvfs fs;
	uint64_t mib;

	if (template_state_dir(dir, sizeof(dir), &fail) < 0 || statvfs(dir, &fs) < 0) {
		doctor_summary(r, doctor_needed(d), "%.150s",
			       fail.msg[0] ? fail.msg : strerror(errno));
		doctor_cost(r, "boxes cannot be made: their template has no place");
		doctor_remedy(r, "make it writable, or set HOME or XDG_DATA_HOME");
		return;
	}
	mib = (uint64_t)fs.f_bavail * fs.f_frsize >> 20;
	doctor_summary(r, mib >= 256 ? DOCTOR_OK : DOCTOR_NOTE, "%llu MiB free in %.100s",
		       (unsigned long long)mib, dir);
	if (mib >= 256)
		return;
	doctor_cost(r, "a template's root may not be built when the host's configuration changes");
	doctor_remedy(r, "free some disk; rm -r %.200s/base-* is safe while no box runs", dir);
}
