/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A request for a file operation (AG-16): four bytes of numbers, then frames, each a byte for its
 * type, two for its length, and its payload. What is accepted must be what the operations rely on;
 * paths come out clean whatever they were. The same bytes are read as a passwd file.
 */
#include "fuzz.h"

#include <sys/socket.h>

#include "agent/fs/fs_priv.h"
#include "sys/sock.h"

#define FRAMES_MAX 64 /* what fits in the socket for sure */

static void check_path(const char *path)
{
	size_t len = strlen(path);

	assert(path[0] == '/' && len <= WIRE_PATH_MAX);
	assert(len == 1 || path[len - 1] != '/');
	for (const char *at = path; *at; at += strcspn(at, "/")) {
		size_t n = strcspn(++at, "/");

		assert(n > 0 || len == 1);
		assert(!(n == 1 && at[0] == '.') && !(n == 2 && at[0] == '.' && at[1] == '.'));
	}
}

static void check_attrs(const struct fs_request *q)
{
	const char *at = q->attrs, *end = at + q->attrs_len;

	assert(q->attrs_len <= sizeof(q->attrs));
	while (at < end) {
		size_t key = strnlen(at, (size_t)(end - at)), value;

		assert(key >= 1 && key <= FS_ATTR_KEY_MAX && at + key < end);
		at += key + 1;
		value = strnlen(at, (size_t)(end - at));
		assert(at + value < end);
		at += value + 1;
	}
}

static void check_accepted(const struct fs_request *q)
{
	char path[FS_PATH_SIZE];

	assert(q->fs.op > 0 && q->fs.op < _WIRE_FS_MAX);
	assert(q->n_paths >= 1 && q->n_paths <= FS_PATHS_MAX);
	assert(q->n_paths == 1 || q->fs.op == WIRE_FS_MOVE || q->fs.op == WIRE_FS_JOIN);
	assert(q->n_paths == 2 || q->fs.op != WIRE_FS_MOVE);
	assert((q->fs.depth > 0) == (q->fs.op == WIRE_FS_LIST));
	assert(strlen(q->user) <= WIRE_USER_MAX);
	check_attrs(q);
	for (size_t i = 0; i < q->n_paths; i++) {
		int r;

		assert(strlen(q->paths[i]) >= 1 && strlen(q->paths[i]) <= WIRE_PATH_MAX);
		r = fs_path_resolve("/home/user", q->paths[i], path);
		assert(r == 0 || r == -EINVAL || r == -ENAMETOOLONG);
		if (r == 0)
			check_path(path);
	}
}

static void send_frames(int sock, const uint8_t *data, size_t size)
{
	for (unsigned i = 0; i < FRAMES_MAX && size >= 3; i++) {
		size_t len = MIN((size_t)(data[1] | data[2] << 8), size - 3);

		(void)!wire_send(sock, (enum wire_type)data[0], data + 3, len);
		data += 3 + len;
		size -= 3 + len;
	}
	assert(shutdown(sock, SHUT_WR) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct fs_request q;
	struct wire_fs fs = { 0 };
	char name[FS_OWNER_SIZE];
	int pair[2], pipe_fd = -EBADF, r;

	if (size < 4)
		return 0;
	fs.op = data[0];
	fs.flags = data[1];
	fs.depth = data[2];
	fs.offset = fs.length = data[3];
	assert(sock_pair(pair) == 0);
	send_frames(pair[0], data + 4, size - 4);
	r = fs_request_read(pair[1], &fs, &q, &pipe_fd);
	if (r == 0)
		check_accepted(&q);
	else
		assert(r == -EINVAL || r == -EPROTO || r == -E2BIG || r == -ECANCELED);
	fd_close(pair[0]);
	fd_close(pair[1]);

	if (fs_names_find((const char *)data + 4, size - 4, data[0], name))
		assert(name[0] && strlen(name) <= WIRE_USER_MAX);
	return 0;
}
