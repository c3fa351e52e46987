/* SPDX-License-Identifier: Apache-2.0 */
/* Calls of filesystem.Filesystem about one file, and what they say of it. */
#include "server/envd/envd.h"

#include <time.h>

/* --- what the agent says a file is ----------------------------------------------------------- */

#define MODE_MAX 07777
#define SETUID 04000
#define SETGID 02000
#define STICKY 01000
#define NS_PER_S 1000000000u
/* The years 1 to 9999, which RFC 3339 can write. */
#define TIME_MIN (-62135596800)
#define TIME_MAX 253402300799

/* Key, NUL, value, NUL, as often as it takes. */
static bool attrs_ok(const char *attrs, size_t len)
{
	size_t texts = 0;

	for (size_t i = 0; i < len; i++)
		texts += attrs[i] == '\0';
	return len == 0 || (texts % 2 == 0 && attrs[len - 1] == '\0');
}

int envd_entry_read(const void *data, size_t len, struct envd_entry *ret)
{
	const struct wire_fs_entry *h = data;
	struct envd_entry e = { .head = h };
	size_t texts;

	if (len < sizeof(*h))
		return -EPROTO;
	texts = (size_t)h->path_len + h->owner_len + h->group_len + h->target_len;
	if (len - sizeof(*h) < texts || len - sizeof(*h) - texts != h->attrs_len)
		return -EPROTO;
	e.path = (const char *)data + sizeof(*h);
	e.owner = e.path + h->path_len;
	e.group = e.owner + h->owner_len;
	e.target = e.group + h->group_len;
	e.attrs = e.target + h->target_len;
	if (memchr(e.path, '\0', texts) || h->path_len == 0 || e.path[0] != '/' ||
	    !attrs_ok(e.attrs, h->attrs_len))
		return -EPROTO;
	if (h->type > WIRE_FS_DIR || h->is_link > 1 || h->mode > MODE_MAX || h->zero ||
	    h->mtime_ns >= NS_PER_S || h->size > INT64_MAX || (h->target_len && !h->is_link))
		return -EPROTO;
	*ret = e;
	return 0;
}

/* As Go writes a mode: of a link, what links always have. */
void envd_permissions(const struct wire_fs_entry *head, char ret[ENVD_PERMISSIONS_SIZE])
{
	static const char bits[] = "rwxrwxrwx";
	uint32_t mode = head->is_link ? 0777 : head->mode;
	size_t n = 0;

	if (head->is_link)
		ret[n++] = 'L';
	else if (head->type == WIRE_FS_DIR)
		ret[n++] = 'd';
	else if (head->type == WIRE_FS_OTHER)
		ret[n++] = '?';
	if (mode & SETUID)
		ret[n++] = 'u';
	if (mode & SETGID)
		ret[n++] = 'g';
	if (mode & STICKY)
		ret[n++] = 't';
	if (n == 0)
		ret[n++] = '-';
	for (unsigned i = 0; i < 9; i++)
		ret[n++] = mode & (0400u >> i) ? bits[i] : '-';
	ret[n] = '\0';
}

void envd_time(int64_t s, uint32_t ns, char ret[ENVD_TIME_SIZE])
{
	time_t when = (time_t)MIN(MAX(s, TIME_MIN), TIME_MAX);
	struct tm tm = { 0 };

	(void)gmtime_r(&when, &tm);
	(void)snprintf(ret, ENVD_TIME_SIZE, "%04d-%02d-%02dT%02d:%02d:%02d.%09uZ",
		       tm.tm_year + 1900, tm.tm_mon + 1, tm.tm_mday, tm.tm_hour, tm.tm_min,
		       tm.tm_sec, ns);
}

json_t *envd_entry_attrs(const struct envd_entry *entry)
{
	const char *at = entry->attrs, *end = entry->attrs + entry->head->attrs_len;
	json_t *attrs;

	if (at == end)
		return NULL;
	attrs = json_object();
	while (attrs && at < end) {
		/* attrs_ok(): both texts have their end before the whole does. */
		const char *key = at, *value = key + strlen(key) + 1;

		at = value + strlen(value) + 1;
		/* A key that is not UTF-8 is left out: nobody could ask for it. */
		if (*key)
			(void)json_object_set_new(attrs, key, rpc_text(value, strlen(value)));
	}
	return attrs;
}

static const char *entry_type_name(const struct wire_fs_entry *head)
{
	/* A link that leads nowhere has no type; clients leave it out of lists. */
	if (head->is_link && !head->target_len)
		return "FILE_TYPE_UNSPECIFIED";
	switch (head->type) {
	case WIRE_FS_FILE:
		return "FILE_TYPE_FILE";
	case WIRE_FS_DIR:
		return "FILE_TYPE_DIRECTORY";
	default:
		return "FILE_TYPE_UNSPECIFIED";
	}
}

static json_t *entry_name(const struct envd_entry *entry)
{
	size_t len = entry->head->path_len;
	const char *slash = memrchr(entry->path, '/', len);
	size_t before = (size_t)(slash - entry->path) + 1;

	/* "/" is called "/". */
	return before == len ? rpc_text(entry->path, len) :
			       rpc_text(entry->path + before, len - before);
}

json_t *envd_entry_json(const struct envd_entry *entry)
{
	const struct wire_fs_entry *h = entry->head;
	char permissions[ENVD_PERMISSIONS_SIZE], when[ENVD_TIME_SIZE], size[24];
	json_t *info, *attrs;

	envd_permissions(h, permissions);
	envd_time(h->mtime_s, h->mtime_ns, when);
	(void)snprintf(size, sizeof(size), "%llu", (unsigned long long)h->size);
	info = json_pack("{s:o, s:s, s:o, s:s, s:i, s:s, s:o, s:o, s:s}", "name", entry_name(entry),
			 "type", entry_type_name(h), "path", rpc_text(entry->path, h->path_len),
			 "size", size, "mode", (int)(h->mode & 0777), "permissions", permissions,
			 "owner", rpc_text(entry->owner, h->owner_len), "group",
			 rpc_text(entry->group, h->group_len), "modifiedTime", when);
	if (info && h->target_len)
		(void)json_object_set_new(info, "symlinkTarget",
					  rpc_text(entry->target, h->target_len));
	attrs = envd_entry_attrs(entry);
	if (info && attrs)
		(void)json_object_set_new(info, "metadata", attrs);
	else
		json_decref(attrs);
	return info;
}

/* --- calls about one file -------------------------------------------------------------------- */

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
static int fs_read_answer(struct talk *t, const char *user, const char *path, json_t **ret,
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

static int fs_ask(struct request *r, enum wire_fs_op op, const char *const *paths, size_t n_paths,
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
	return n < 0 ? n : fs_read_answer(t, user, paths[0], ret, e);
}

static int ask_about_path(struct request *r, const json_t *message, enum wire_fs_op op,
			  json_t **ret, struct rpc_error *e)
{
	const char *path;
	int n = get_path(message, "path", &path, e);

	return n < 0 ? n : fs_ask(r, op, &path, 1, ret, e);
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

static int call_remove_file(struct request *r, const json_t *message, json_t **ret,
			    struct rpc_error *e)
{
	return ask_about_path(r, message, WIRE_FS_REMOVE, ret, e);
}

static int call_move(struct request *r, const json_t *message, json_t **ret, struct rpc_error *e)
{
	const char *paths[2];
	int n = get_path(message, "source", &paths[0], e);

	if (n == 0)
		n = get_path(message, "destination", &paths[1], e);
	return n < 0 ? n : fs_ask(r, WIRE_FS_MOVE, paths, 2, ret, e);
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
	return rpc_unary(r, call_remove_file);
}
