/* SPDX-License-Identifier: Apache-2.0 */
#include "sys/landlock.h"

#include <fcntl.h>
#include <linux/landlock.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>

/* Newer than the headers of the oldest distribution we build on. */
#ifndef LANDLOCK_ACCESS_FS_REFER
#define LANDLOCK_ACCESS_FS_REFER (UINT64_C(1) << 13)
#endif
#ifndef LANDLOCK_ACCESS_FS_TRUNCATE
#define LANDLOCK_ACCESS_FS_TRUNCATE (UINT64_C(1) << 14)
#endif
#ifndef LANDLOCK_ACCESS_FS_IOCTL_DEV
#define LANDLOCK_ACCESS_FS_IOCTL_DEV (UINT64_C(1) << 15)
#endif
#define SCOPE_ABSTRACT_UNIX_SOCKET (UINT64_C(1) << 0)
#define SCOPE_SIGNAL (UINT64_C(1) << 1)

struct ruleset_attr {
	uint64_t handled_access_fs;
	uint64_t handled_access_net;
	uint64_t scoped;
};

#define FS_READ                                                                                    \
	(LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR)
#define FS_CHANGE                                                                                  \
	(LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_REMOVE_DIR |                           \
	 LANDLOCK_ACCESS_FS_REMOVE_FILE | LANDLOCK_ACCESS_FS_MAKE_DIR |                            \
	 LANDLOCK_ACCESS_FS_MAKE_REG | LANDLOCK_ACCESS_FS_MAKE_SOCK |                              \
	 LANDLOCK_ACCESS_FS_MAKE_FIFO | LANDLOCK_ACCESS_FS_MAKE_SYM)
#define FS_OF_FILES                                                                                \
	(LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_READ_FILE |                               \
	 LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_TRUNCATE |                             \
	 LANDLOCK_ACCESS_FS_IOCTL_DEV)
#define FS_NODES (LANDLOCK_ACCESS_FS_MAKE_CHAR | LANDLOCK_ACCESS_FS_MAKE_BLOCK)

int landlock_abi(void)
{
	long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);

	if (abi < 0)
		return errno == ENOSYS || errno == EOPNOTSUPP ? 0 : -errno;
	return (int)abi;
}

/* All rights this ABI can handle: what no rule grants is then denied. */
static uint64_t handled_fs(int abi)
{
	uint64_t fs = FS_READ | FS_CHANGE | FS_NODES;

	if (abi >= 2)
		fs |= LANDLOCK_ACCESS_FS_REFER;
	if (abi >= 3)
		fs |= LANDLOCK_ACCESS_FS_TRUNCATE;
	if (abi >= 5)
		fs |= LANDLOCK_ACCESS_FS_IOCTL_DEV;
	return fs;
}

static uint64_t granted_fs(unsigned rules)
{
	uint64_t fs = 0;

	if (rules & LANDLOCK_READ)
		fs |= FS_READ;
	if (rules & LANDLOCK_CHANGE)
		fs |= FS_CHANGE | LANDLOCK_ACCESS_FS_REFER | LANDLOCK_ACCESS_FS_TRUNCATE;
	if (rules & LANDLOCK_WRITE)
		fs |= LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_TRUNCATE;
	if (rules & LANDLOCK_IOCTL)
		fs |= LANDLOCK_ACCESS_FS_IOCTL_DEV;
	return fs;
}

static int add_path(int ruleset_fd, const struct landlock_path *p, uint64_t handled)
{
	_cleanup_(fd_closep) int fd = p->fd ? fcntl(*p->fd, F_DUPFD_CLOEXEC, 3) :
					      open(p->path, O_PATH | O_CLOEXEC);
	struct landlock_path_beneath_attr rule = {
		.allowed_access = granted_fs(p->rules) & handled,
		.parent_fd = fd,
	};
	struct stat st;

	if (fd < 0)
		return errno == ENOENT ? 0 : -errno;
	if (fstat(fd, &st) < 0)
		return -errno;
	/* The kernel refuses a rule for a file that has rights only a directory can have. */
	if (!S_ISDIR(st.st_mode))
		rule.allowed_access &= FS_OF_FILES;
	if (!rule.allowed_access)
		return 0;
	return syscall(SYS_landlock_add_rule, ruleset_fd, LANDLOCK_RULE_PATH_BENEATH, &rule, 0) <
			       0 ?
		       -errno :
		       0;
}

static int restrict_self(const struct ruleset_attr *attr, int abi,
			 const struct landlock_path *paths, size_t n_paths)
{
	size_t attr_size = abi >= 6 ? sizeof(*attr) : sizeof(attr->handled_access_fs);
	_cleanup_(fd_closep) int fd = (int)syscall(SYS_landlock_create_ruleset, attr, attr_size, 0);

	if (fd < 0)
		return -errno;
	for (size_t i = 0; i < n_paths; i++) {
		int r = add_path(fd, &paths[i], attr->handled_access_fs);

		if (r < 0)
			return r;
	}
	return syscall(SYS_landlock_restrict_self, fd, 0) < 0 ? -errno : 0;
}

static int restrict_files(const struct landlock_path *paths, size_t n_paths, uint64_t scoped,
			  int *ret_abi)
{
	int abi = landlock_abi(), r;
	const struct ruleset_attr attr = {
		.handled_access_fs = handled_fs(abi),
		.scoped = abi >= 6 ? scoped : 0,
	};

	if (abi <= 0)
		return abi < 0 ? abi : -EOPNOTSUPP;
	r = restrict_self(&attr, abi, paths, n_paths);
	if (r == 0)
		*ret_abi = abi;
	return r;
}

int landlock_restrict(const struct landlock_path *paths, size_t n_paths, int *ret_abi)
{
	return restrict_files(paths, n_paths, SCOPE_ABSTRACT_UNIX_SOCKET | SCOPE_SIGNAL, ret_abi);
}

int landlock_restrict_files(const struct landlock_path *paths, size_t n_paths, int *ret_abi)
{
	return restrict_files(paths, n_paths, 0, ret_abi);
}

int landlock_keep_apart(void)
{
	int abi = landlock_abi();
	/* A domain has to be about something; these nobody can make anyway. */
	const struct ruleset_attr attr = { .handled_access_fs = FS_NODES };

	if (abi <= 0)
		return abi < 0 ? abi : -EOPNOTSUPP;
	return restrict_self(&attr, abi, NULL, 0);
}
