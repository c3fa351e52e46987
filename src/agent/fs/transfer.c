/* SPDX-License-Identifier: Apache-2.0 */
/*
 * File transfers: a forked child that becomes the user and only then touches a file, so a transfer
 * can do nothing that the user could not do, and links planted in the box lead nowhere but there.
 */
#include "agent/fs/fs.h"
#include "wire/tree.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>

static int open_dir(int dir_fd, const char *name)
{
	struct open_how how = {
		.flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC,
		.resolve = RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS,
	};
	long fd;

	do {
		fd = syscall(SYS_openat2, dir_fd, name, &how, sizeof(how));
	} while (fd < 0 && (errno == EAGAIN || errno == EINTR));
	return fd < 0 ? -errno : (int)fd;
}

/* Opens an absolute directory component by component, making what is missing when asked to. */
static int open_path(char *path, bool make)
{
	_cleanup_(fd_closep) int dir_fd = open_dir(AT_FDCWD, "/");
	char *save = NULL;

	for (char *name = strtok_r(path, "/", &save); name; name = strtok_r(NULL, "/", &save)) {
		int next;

		if (dir_fd < 0)
			return dir_fd;
		if (!wire_name_ok((const unsigned char *)name, strlen(name)))
			return -EINVAL;
		if (make && mkdirat(dir_fd, name, 0755) < 0 && errno != EEXIST && errno != EACCES &&
		    errno != EROFS)
			return -errno;
		next = open_dir(dir_fd, name);
		fd_close(dir_fd);
		dir_fd = next;
	}
	return dir_fd < 0 ? dir_fd : take_fd(&dir_fd);
}

/* The first message names the directory in the box that the tree belongs to. */
static int open_root(int sock, bool make)
{
	static struct wire_frame f;
	static char path[WIRE_PATH_MAX + 1];
	int r = wire_recv(sock, &f, WIRE_ON_TO_OP);

	if (r <= 0)
		return r < 0 ? r : -ECANCELED;
	if (f.head.type != WIRE_ROOT || f.data[0] != '/' || memchr(f.data, '\0', wire_len(&f)))
		return -EINVAL;
	memcpy(path, f.data, wire_len(&f));
	path[wire_len(&f)] = '\0';
	return open_path(path, make);
}

static int files_put(int sock)
{
	/* The sender is ours and has counted; the box's own disk limit is what stops it here. */
	const struct tree_limits limits = { .bytes = UINT64_MAX,
					    .entries = UINT64_MAX,
					    .cancel_fd = -EBADF };
	const struct tree_events events = { 0 };
	_cleanup_(fd_closep) int dir_fd = open_root(sock, true);

	return dir_fd < 0 ? dir_fd : tree_recv(sock, WIRE_ON_TO_OP, dir_fd, &limits, &events);
}

static int files_get(int sock)
{
	_cleanup_(fd_closep) int dir_fd = open_root(sock, false);

	return dir_fd < 0 ? dir_fd : tree_send_dir(sock, dir_fd, NULL);
}

void agent_files_run(enum wire_type type, const struct wire_files *request, int sock)
{
	struct wire_failed failed = { .step = WIRE_STEP_DROP };
	int r;

	(void)umask(022);
	r = agent_become(request->uid, request->gid);
	if (r == 0) {
		failed.step = WIRE_STEP_REQUEST;
		r = type == WIRE_PUT ? files_put(sock) : files_get(sock);
	}
	failed.err = -r;
	if (r < 0)
		r = wire_send(sock, WIRE_FAILED, &failed, sizeof(failed));
	else
		r = wire_send(sock, WIRE_TREE_END, NULL, 0);
	_exit(r < 0);
}
