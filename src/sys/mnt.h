/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The mount API by descriptor. Raw system calls, because the C libraries of supported distributions
 * do not all have them, and <sys/mount.h> clashes with <linux/mount.h> where they do.
 */
#pragma once

#include "base/util.h"

#include <fcntl.h>
#include <linux/mount.h>
#include <sys/syscall.h>

#ifndef MOUNT_ATTR_IDMAP
#define MOUNT_ATTR_IDMAP 0x00100000
#endif
#define MNT_DETACH_FLAG 2 /* MNT_DETACH; its header is the one we cannot include */

static inline int mnt_syscall_result(long r)
{
	return r < 0 ? -errno : (int)r;
}

static inline int mnt_fsopen(const char *type)
{
	return mnt_syscall_result(syscall(SYS_fsopen, type, FSOPEN_CLOEXEC));
}

static inline int mnt_fsconfig_string(int fs_fd, const char *key, const char *value)
{
	return mnt_syscall_result(syscall(SYS_fsconfig, fs_fd, FSCONFIG_SET_STRING, key, value, 0));
}

static inline int mnt_fsconfig_flag(int fs_fd, const char *key)
{
	return mnt_syscall_result(syscall(SYS_fsconfig, fs_fd, FSCONFIG_SET_FLAG, key, NULL, 0));
}

static inline int mnt_fsconfig_create(int fs_fd)
{
	return mnt_syscall_result(syscall(SYS_fsconfig, fs_fd, FSCONFIG_CMD_CREATE, NULL, NULL, 0));
}

/* Returns a descriptor of the root of the new, not yet attached mount. */
static inline int mnt_fsmount(int fs_fd, unsigned attrs)
{
	return mnt_syscall_result(syscall(SYS_fsmount, fs_fd, FSMOUNT_CLOEXEC, attrs));
}

/* A value of NULL is a flag. */
struct mnt_option {
	const char *key;
	const char *value;
};

/* All of it: a new file system with these options, mounted but not yet attached. */
_must_check_ int mnt_make(const char *type, const struct mnt_option *options, size_t n,
			  unsigned attrs);

static inline int mnt_open_tree(int dir_fd, const char *path, unsigned flags)
{
	return mnt_syscall_result(syscall(SYS_open_tree, dir_fd, path, flags | OPEN_TREE_CLOEXEC));
}

/* Attaches the mount behind from_fd at path below to_fd; an empty path means to_fd itself. */
static inline int mnt_move(int from_fd, int to_fd, const char *path)
{
	return mnt_syscall_result(
		syscall(SYS_move_mount, from_fd, "", to_fd, path,
			MOVE_MOUNT_F_EMPTY_PATH | (*path ? 0 : MOVE_MOUNT_T_EMPTY_PATH)));
}

static inline int mnt_setattr(int fd, unsigned flags, struct mount_attr *attr)
{
	return mnt_syscall_result(
		syscall(SYS_mount_setattr, fd, "", AT_EMPTY_PATH | flags, attr, sizeof(*attr)));
}

static inline int mnt_pivot_here(void)
{
	return mnt_syscall_result(syscall(SYS_pivot_root, ".", "."));
}

static inline int mnt_detach(const char *path)
{
	return mnt_syscall_result(syscall(SYS_umount2, path, MNT_DETACH_FLAG));
}

static inline int mnt_make_private(void)
{
	return mnt_syscall_result(syscall(SYS_mount, NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL));
}

/* The old call, for many small binds in a row: one system call where the new API takes four. The
 * copy has the attributes of the mount it is taken from. */
static inline int mnt_bind(const char *from, const char *to)
{
	return mnt_syscall_result(syscall(SYS_mount, from, to, NULL, MS_BIND, NULL));
}
