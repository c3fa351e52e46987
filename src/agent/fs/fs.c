/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The life of a file operation: read what is asked, become the user, do it, say how it went.
 *
 * Runs as     a child of the agent; from the first touch of a file on, the user that was named.
 * Holds       the operation's socket; while a file moves, one end of a pipe whose other end the
 *             host has.
 * Reads       frames from the host, whose texts are a client's; the box's files, which are hostile.
 * Must never  touch a file before it has become the user (but /etc/passwd, to find out who that
 *             is), or wait for anything in the box: pipes, devices, locks.
 */
#include "agent/fs/fs_priv.h"

#include <poll.h>

#define DEFAULT_USER "user"

static int (*const operations[_WIRE_FS_MAX])(struct fs *fs) = {
	[WIRE_FS_STAT] = fs_stat,   [WIRE_FS_MKDIR] = fs_mkdir,   [WIRE_FS_MOVE] = fs_move,
	[WIRE_FS_LIST] = fs_list,   [WIRE_FS_REMOVE] = fs_remove, [WIRE_FS_READ] = fs_read,
	[WIRE_FS_WRITE] = fs_write, [WIRE_FS_WATCH] = fs_watch,   [WIRE_FS_JOIN] = fs_join,
};

bool fs_hung_up(int sock)
{
	struct pollfd p = { .fd = sock };

	return poll(&p, 1, 0) > 0 && (p.revents & (POLLHUP | POLLERR));
}

/* From the client's texts to paths in the box, each in its own place. */
static int resolve_paths(struct fs_request *q, const char *home)
{
	char path[FS_PATH_SIZE];

	for (size_t i = 0; i < q->n_paths; i++) {
		int r = fs_path_resolve(home, q->paths[i], path);

		if (r < 0)
			return r;
		memcpy(q->paths[i], path, strlen(path) + 1);
	}
	return 0;
}

static int fs_run_request(struct fs *fs, const struct wire_fs *request, enum wire_step *ret_step)
{
	static struct agent_user user;
	int r;

	*ret_step = WIRE_STEP_REQUEST;
	r = fs_request_read(fs->sock, request, fs->request, &fs->pipe_fd);
	if (r < 0)
		return r;
	*ret_step = WIRE_STEP_USER;
	r = agent_user_lookup(fs->request->user[0] ? fs->request->user : DEFAULT_USER, &user);
	if (r < 0)
		return r;
	*ret_step = WIRE_STEP_DROP;
	r = agent_become_user(&user);
	if (r < 0)
		return r;
	*ret_step = WIRE_STEP_FILE;
	r = resolve_paths(fs->request, user.home);
	return r < 0 ? r : operations[fs->request->fs.op](fs);
}

/*
 * What is still on its way when we end would turn into a reset that overtakes our last word. So
 * the rest of the request is read and dropped: up to GO, and where a file follows, up to FILE_END.
 */
static void fs_drain(int sock, const struct wire_fs *request, enum wire_step step)
{
	static struct wire_frame f;
	bool go = step != WIRE_STEP_REQUEST, file = request->op == WIRE_FS_WRITE;

	while (file || !go) {
		_cleanup_(fd_closep) int fd = -EBADF;
		size_t n_fds = 1;

		if (wire_recv_fds(sock, &f, WIRE_ON_TO_OP, &fd, &n_fds) <= 0)
			return;
		go |= f.head.type == WIRE_GO;
		file &= f.head.type != WIRE_FILE_END;
	}
}

void agent_fs_run(const struct wire_fs *request, int sock)
{
	static struct fs_request q;
	struct fs fs = { .sock = sock, .request = &q, .pipe_fd = -EBADF };
	enum wire_step step;
	int r;

	(void)umask(022);
	r = fs_run_request(&fs, request, &step);
	if (r == 0) {
		r = wire_send(sock, WIRE_DONE, NULL, 0);
	} else if (r != -ECANCELED) {
		const struct wire_failed failed = { .step = step, .err = -r };

		r = wire_send(sock, WIRE_FAILED, &failed, sizeof(failed));
		fs_drain(sock, request, step);
	}
	_exit(r < 0);
}
