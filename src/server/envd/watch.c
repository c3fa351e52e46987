/* SPDX-License-Identifier: Apache-2.0 */
/* WatchDir: changes below a directory, as they happen. */
#include "server/envd/envd.h"

struct watch {
	struct envd_watch reader;
	bool started;
};

static const char *change_name(uint32_t what)
{
	static const char *const names[] = {
		[WIRE_FS_CREATED] = "EVENT_TYPE_CREATE", [WIRE_FS_WRITTEN] = "EVENT_TYPE_WRITE",
		[WIRE_FS_REMOVED] = "EVENT_TYPE_REMOVE", [WIRE_FS_RENAMED] = "EVENT_TYPE_RENAME",
		[WIRE_FS_CHMODDED] = "EVENT_TYPE_CHMOD",
	};

	return what < ARRAY_SIZE(names) ? names[what] : NULL;
}

/* An event as clients see it; NULL: no memory. */
static json_t *change_json(uint32_t what, const char *name, size_t name_len,
			   const struct envd_entry *entry)
{
	json_t *event = json_pack("{s:o, s:s}", "name", rpc_text(name, name_len), "type",
				  change_name(what));

	if (event && entry)
		(void)json_object_set_new(event, "entry", envd_entry_json(entry));
	return event;
}

/* CHANGE: 1 with an event, 0 when its ENTRY has to come first. */
static int watch_read_change(struct envd_watch *w, json_t **ret)
{
	const struct wire_frame *f = &w->talk->frame;
	struct wire_fs_change change;

	if (f->head.type != WIRE_CHANGE)
		return -EPROTO;
	memcpy(&change, f->data, sizeof(change));
	w->name_len = wire_len(f) - sizeof(change);
	memcpy(w->name, f->data + sizeof(change), w->name_len);
	if (change.has_entry > 1 || memchr(w->name, '\0', w->name_len))
		return -EPROTO;
	if (change.what == WIRE_FS_OVERFLOW)
		return -EOVERFLOW;
	if (!change_name(change.what))
		return -EPROTO;
	w->what = change.what;
	w->wants_entry = change.has_entry;
	if (w->wants_entry)
		return 0;
	*ret = change_json(w->what, w->name, w->name_len, NULL);
	return *ret ? 1 : -ENOMEM;
}

static int watch_read_entry(struct envd_watch *w, json_t **ret)
{
	struct envd_entry entry;

	if (w->talk->frame.head.type != WIRE_ENTRY ||
	    envd_entry_read(w->talk->frame.data, wire_len(&w->talk->frame), &entry) < 0)
		return -EPROTO;
	w->wants_entry = false;
	*ret = change_json(w->what, w->name, w->name_len, &entry);
	return *ret ? 1 : -ENOMEM;
}

int envd_watch_next(struct envd_watch *w, json_t **ret)
{
	int r;

	do {
		r = talk_recv_now(w->talk);
		if (r < 0)
			return r;
		r = w->wants_entry ? watch_read_entry(w, ret) : watch_read_change(w, ret);
	} while (r == 0);
	return r == -EPROTO ? envd_broken(w->talk->op.sandbox, "while watching") : r;
}

int envd_watch_open(struct talk *t, const json_t *message, struct rpc_error *e)
{
	struct wire_fs request = { .op = WIRE_FS_WATCH };
	struct wire_failed failed;
	bool recursive = false, entries = false, network;
	char user[RPC_USER_SIZE];
	const char *path = NULL;
	int r = rpc_string(message, "path", WIRE_PATH_MAX, &path, e);

	if (r == 0)
		r = rpc_bool(message, "recursive", &recursive, e);
	if (r == 0)
		r = rpc_bool(message, "includeEntry", &entries, e);
	if (r ==
	    0) /* a box has no network mounts, so it does not matter whether they are allowed */
		r = rpc_bool(message, "allowNetworkMounts", &network, e);
	if (r == 0)
		r = rpc_user(t->request, user, e);
	if (r < 0)
		return r;
	if (!path || !*path)
		path = "~";
	request.flags = (recursive ? WIRE_FS_RECURSIVE : 0) | (entries ? WIRE_FS_ENTRIES : 0);
	r = envd_fs_open(t, &request, user, &path, 1);
	if (r == 0)
		r = talk_send(t, WIRE_GO, NULL, 0);
	if (r == 0)
		r = talk_await_done(t, &failed);
	return r > 0 ? envd_fs_failed(&failed, user, path, e) : r;
}

static void watch_free(void *arg)
{
	struct watch *w = arg;

	talk_free(w->reader.talk);
	free(w);
}

static int watch_end(struct rpc_stream *s, const char *why)
{
	struct rpc_error e;

	(void)rpc_fail(&e, RPC_INTERNAL, "watcher error: %s", why);
	return rpc_stream_end(s, &e);
}

static int watch_pump(struct rpc_stream *s)
{
	struct watch *w = s->arg;

	if (!w->started) {
		w->started = true;
		return rpc_stream_add(s, "{\"start\":{}}", 12);
	}
	while (!s->ended && s->out.len < RPC_STREAM_BATCH) {
		json_t *event = NULL;
		int r = envd_watch_next(&w->reader, &event);

		if (r == -EAGAIN)
			return 0;
		if (r > 0)
			r = rpc_stream_add_json(s, json_pack("{s:o}", "filesystem", event));
		else if (r == -EOVERFLOW)
			r = watch_end(s, ENVD_WATCH_LOST);
		else if (r == -EPROTO)
			r = watch_end(s, "the sandbox gave an answer that makes no sense");
		if (r < 0)
			return r;
	}
	return 0;
}

#define KEEPALIVE "{\"keepalive\":{}}"

static const struct rpc_source watch_source = {
	.pump = watch_pump,
	.free = watch_free,
	.keepalive = KEEPALIVE,
	.keepalive_len = sizeof(KEEPALIVE) - 1,
};

/* The talk is given away. */
static int watch_reply(struct request *r, struct talk *t, uint64_t timeout_ms)
{
	struct watch *w = calloc(1, sizeof(*w));

	if (!w || talk_no_wait(t) < 0) {
		free(w);
		talk_free(t);
		return -ENOMEM;
	}
	w->reader.talk = t;
	return rpc_stream_reply(r, &watch_source, w, t->op.sock, timeout_ms);
}

int envd_fs_watch_dir(struct request *r)
{
	_cleanup_(talk_freep) struct talk *t = talk_new(r);
	json_t *message = NULL;
	struct rpc_error e;
	uint64_t timeout_ms;
	int n = t ? rpc_stream_message(r, &message, &e) : -ENOMEM;

	if (n == 0)
		n = rpc_timeout(r, &timeout_ms, &e);
	if (n == 0)
		n = envd_watch_open(t, message, &e);
	json_decref(message);
	if (n == -EREMOTEIO)
		return rpc_stream_error(r, &e);
	return n < 0 ? rpc_reply_gone(r, n) : watch_reply(r, take_ptr(t), timeout_ms);
}
