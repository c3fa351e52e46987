/* SPDX-License-Identifier: Apache-2.0 */
/* Reads what a file operation is asked to do. All of it comes from outside and is checked here,
 * before the child has become anybody. */
#include "agent/fs/fs_priv.h"

/* How many paths an operation takes, and which parts of struct wire_fs mean something to it. */
static const struct rule {
	size_t min_paths, max_paths;
	uint32_t flags;
	bool depth;
	bool range;
	bool attrs;
} rules[_WIRE_FS_MAX] = {
	[WIRE_FS_STAT] = { .min_paths = 1, .max_paths = 1 },
	[WIRE_FS_MKDIR] = { .min_paths = 1, .max_paths = 1 },
	[WIRE_FS_MOVE] = { .min_paths = 2, .max_paths = 2 },
	[WIRE_FS_LIST] = { .min_paths = 1, .max_paths = 1, .depth = true },
	[WIRE_FS_REMOVE] = { .min_paths = 1, .max_paths = 1 },
	[WIRE_FS_READ] = { .min_paths = 1, .max_paths = 1, .range = true },
	[WIRE_FS_WRITE] = { .min_paths = 1, .max_paths = 1, .attrs = true },
	[WIRE_FS_WATCH] = { .min_paths = 1,
			    .max_paths = 1,
			    .flags = WIRE_FS_RECURSIVE | WIRE_FS_ENTRIES },
	[WIRE_FS_JOIN] = { .min_paths = 2, .max_paths = FS_PATHS_MAX, .attrs = true },
};

static int check_numbers(const struct wire_fs *fs)
{
	const struct rule *rule;

	if (fs->op == 0 || fs->op >= _WIRE_FS_MAX || fs->zero)
		return -EINVAL;
	rule = &rules[fs->op];
	if (fs->flags & ~rule->flags)
		return -EINVAL;
	if (rule->depth ? fs->depth == 0 : fs->depth != 0)
		return -EINVAL;
	if (!rule->range && (fs->offset || fs->length))
		return -EINVAL;
	return 0;
}

static int take_user(struct fs_request *q, const unsigned char *data, size_t len)
{
	if (q->user[0] || len >= sizeof(q->user) || memchr(data, '\0', len))
		return -EINVAL;
	memcpy(q->user, data, len);
	q->user[len] = '\0';
	return 0;
}

static int take_path(struct fs_request *q, const unsigned char *data, size_t len)
{
	if (q->n_paths >= rules[q->fs.op].max_paths)
		return -E2BIG;
	if (len >= FS_PATH_SIZE || memchr(data, '\0', len))
		return -EINVAL;
	memcpy(q->paths[q->n_paths], data, len);
	q->paths[q->n_paths++][len] = '\0';
	return 0;
}

static bool attr_is_printable(const unsigned char *data, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (data[i] < 0x20 || data[i] > 0x7e)
			return false;
	return true;
}

/* Kept as it came, with a NUL behind the value. */
static int take_attr(struct fs_request *q, const unsigned char *data, size_t len)
{
	const unsigned char *nul = memchr(data, '\0', len);
	size_t key_len = nul ? (size_t)(nul - data) : 0;

	if (!rules[q->fs.op].attrs || key_len == 0 || key_len > FS_ATTR_KEY_MAX)
		return -EINVAL;
	if (!attr_is_printable(data, key_len) || !attr_is_printable(nul + 1, len - key_len - 1))
		return -EINVAL;
	if (len + 1 > sizeof(q->attrs) - q->attrs_len)
		return -E2BIG;
	memcpy(q->attrs + q->attrs_len, data, len);
	q->attrs_len += len;
	q->attrs[q->attrs_len++] = '\0';
	return 0;
}

/* The next frame: only GO may bring a descriptor, and only where bytes are asked for. */
static int request_frame(int sock, const struct wire_fs *fs, struct wire_frame *ret, int *ret_pipe)
{
	_cleanup_(fd_closep) int fd = -EBADF;
	size_t n_fds = 1;
	int r = wire_recv_fds(sock, ret, WIRE_ON_TO_OP, &fd, &n_fds);

	if (r <= 0)
		return r < 0 ? r : -ECANCELED;
	if (n_fds && (ret->head.type != WIRE_GO || fs->op != WIRE_FS_READ))
		return -EPROTO;
	*ret_pipe = take_fd(&fd);
	return 0;
}

int fs_request_read(int sock, const struct wire_fs *fs, struct fs_request *ret, int *ret_pipe)
{
	static struct wire_frame f;
	int r = check_numbers(fs);

	ret->fs = *fs;
	ret->user[0] = '\0';
	ret->n_paths = ret->attrs_len = 0;
	while (r == 0) {
		r = request_frame(sock, fs, &f, ret_pipe);
		if (r < 0)
			return r;
		switch (f.head.type) {
		case WIRE_USER:
			r = take_user(ret, f.data, wire_len(&f));
			break;
		case WIRE_PATH:
			r = take_path(ret, f.data, wire_len(&f));
			break;
		case WIRE_ATTR:
			r = take_attr(ret, f.data, wire_len(&f));
			break;
		case WIRE_GO:
			return ret->n_paths < rules[fs->op].min_paths ? -EINVAL : 0;
		default:
			r = -EPROTO;
		}
	}
	return r;
}
