/* SPDX-License-Identifier: Apache-2.0 */
/* File operations that have one answer. Paths are the client's own text; only the box resolves them. */
#include "server/envd/envd.h"

int envd_fs_open(struct talk *t, const struct wire_fs *request, const char *user,
		 const char *const *paths, size_t n_paths)
{
	int r = talk_open(t, WIRE_FS, request, sizeof(*request));

	if (r == 0)
		r = talk_text(t, WIRE_USER, user);
	for (size_t i = 0; r == 0 && i < n_paths; i++)
		r = talk_text(t, WIRE_PATH, paths[i]);
	return r;
}

int envd_fs_failed(const struct wire_failed *failed, const char *user, const char *path,
		   struct rpc_error *e)
{
	const char *why = strerror(failed->err);

	if (failed->step == WIRE_STEP_USER && failed->err == ENOENT)
		return rpc_fail(e, RPC_UNAUTHENTICATED, "invalid username: '%s'", user);
	if (failed->step == WIRE_STEP_USER || failed->step == WIRE_STEP_DROP)
		return rpc_fail(e, RPC_PERMISSION_DENIED,
				"this sandbox does nothing as user '%s': %s", user, why);
	switch (failed->err) {
	case ENOENT:
		return rpc_fail(e, RPC_NOT_FOUND, "path not found: '%.400s'", path);
	case EEXIST:
		return rpc_fail(e, RPC_ALREADY_EXISTS, "already exists: '%.400s'", path);
	case ENOTDIR:
		return rpc_fail(e, RPC_INVALID_ARGUMENT, "path is not a directory: '%.400s'", path);
	case EACCES:
	case EPERM:
	case EROFS:
		return rpc_fail(e, RPC_PERMISSION_DENIED, "permission denied: '%.400s'", path);
	case ENOSPC:
	case EDQUOT:
		return rpc_fail(e, RPC_RESOURCE_EXHAUSTED, "the sandbox's disk is full");
	case EAGAIN:
	case ENOMEM:
	case ENOBUFS:
	case EMFILE:
		return rpc_fail(e, RPC_RESOURCE_EXHAUSTED, "'%.400s': %s", path, why);
	case EINVAL:
	case EISDIR:
	case ELOOP:
	case ENAMETOOLONG:
	case ENOTEMPTY:
	case EXDEV:
	case EBUSY:
	case E2BIG:
	case EFBIG:
	case EOPNOTSUPP:
		return rpc_fail(e, RPC_INVALID_ARGUMENT, "'%.400s': %s", path, why);
	default:
		return rpc_fail(e, RPC_INTERNAL, "'%.400s': %s", path, why);
	}
}

/* The path that a message names. An empty one is the user's home. */
static int get_path(const json_t *message, const char *name, const char **ret, struct rpc_error *e)
{
	int r = rpc_string(message, name, WIRE_PATH_MAX, ret, e);

	if (r == 0 && (!*ret || !**ret))
		*ret = "~";
	return r;
}

/* ENTRY, DONE or FAILED; *ret stays NULL when there is nothing to tell. */
static int read_answer(struct talk *t, const char *user, const char *path, json_t **ret,
		       struct rpc_error *e)
{
	struct wire_failed failed;
	struct envd_entry entry;
	int r = talk_recv(t);

	if (r < 0)
		return r;
	if (t->frame.head.type == WIRE_DONE)
		return 0;
	if (talk_failed(&t->frame, &failed) == 0)
		return envd_fs_failed(&failed, user, path, e);
	if (t->frame.head.type != WIRE_ENTRY ||
	    envd_entry_read(t->frame.data, wire_len(&t->frame), &entry) < 0)
		return envd_broken(t->request->sandbox, "in the answer of a file operation");
	*ret = json_pack("{s:o}", "entry", envd_entry_json(&entry));
	return *ret ? 0 : -ENOMEM;
}

static int ask(struct request *r, enum wire_fs_op op, const char *const *paths, size_t n_paths,
	       json_t **ret, struct rpc_error *e)
{
	const struct wire_fs request = { .op = op };
	_cleanup_(talk_freep) struct talk *t = talk_new(r);
	char user[RPC_USER_SIZE];
	int n = t ? rpc_user(r, user, e) : -ENOMEM;

	if (n == 0)
		n = envd_fs_open(t, &request, user, paths, n_paths);
	if (n == 0)
		n = talk_send(t, WIRE_GO, NULL, 0);
	return n < 0 ? n : read_answer(t, user, paths[0], ret, e);
}

static int ask_about_path(struct request *r, const json_t *message, enum wire_fs_op op,
			  json_t **ret, struct rpc_error *e)
{
	const char *path;
	int n = get_path(message, "path", &path, e);

	return n < 0 ? n : ask(r, op, &path, 1, ret, e);
}

static int call_stat(struct request *r, const json_t *message, json_t **ret, struct rpc_error *e)
{
	return ask_about_path(r, message, WIRE_FS_STAT, ret, e);
}

static int call_make_dir(struct request *r, const json_t *message, json_t **ret,
			 struct rpc_error *e)
{
	return ask_about_path(r, message, WIRE_FS_MKDIR, ret, e);
}

static int call_remove(struct request *r, const json_t *message, json_t **ret, struct rpc_error *e)
{
	return ask_about_path(r, message, WIRE_FS_REMOVE, ret, e);
}

static int call_move(struct request *r, const json_t *message, json_t **ret, struct rpc_error *e)
{
	const char *paths[2];
	int n = get_path(message, "source", &paths[0], e);

	if (n == 0)
		n = get_path(message, "destination", &paths[1], e);
	return n < 0 ? n : ask(r, WIRE_FS_MOVE, paths, 2, ret, e);
}

int envd_fs_stat(struct request *r)
{
	return rpc_unary(r, call_stat);
}

int envd_fs_make_dir(struct request *r)
{
	return rpc_unary(r, call_make_dir);
}

int envd_fs_move(struct request *r)
{
	return rpc_unary(r, call_move);
}

int envd_fs_remove(struct request *r)
{
	return rpc_unary(r, call_remove);
}
