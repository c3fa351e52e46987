/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ListDir. A list may have a million entries, so it is written while it comes in: the first answer
 * of the agent decides whether there is a list at all, and one that breaks off later resets the
 * connection.
 */
#include "server/envd/envd.h"

#define LIST_BATCH (UINT64_C(32) << 10)
#define LIST_MAX (UINT64_C(1) << 20) /* a batch and the largest entry, however it must be escaped */

struct listing {
	struct talk *talk;
	struct buf out;
	size_t sent;
	size_t n;
	bool ended;
};

static void list_close(void *arg)
{
	struct listing *l = arg;

	talk_free(l->talk);
	buf_done(&l->out);
	free(l);
}

static int list_add_entry(struct listing *l)
{
	struct envd_entry entry;
	json_t *info;
	char *text;
	int r;

	if (envd_entry_read(l->talk->frame.data, wire_len(&l->talk->frame), &entry) < 0)
		return -EPROTO;
	info = envd_entry_json(&entry);
	text = info ? json_dumps(info, JSON_COMPACT) : NULL;
	json_decref(info);
	if (!text)
		return -ENOMEM;
	r = l->n++ ? buf_add(&l->out, ",", 1) : 0;
	if (r == 0)
		r = buf_add(&l->out, text, strlen(text));
	free(text);
	return r;
}

static int list_on_frame(struct listing *l)
{
	int r = -EPROTO;

	if (l->talk->frame.head.type == WIRE_DONE) {
		l->ended = true;
		return buf_add(&l->out, "]}", 2);
	}
	if (l->talk->frame.head.type == WIRE_ENTRY)
		r = list_add_entry(l);
	if (r == -EPROTO)
		(void)envd_broken(l->talk->op.sandbox, "in a list of files");
	return r;
}

/* Takes what is there; waits only when there is nothing to send. */
static int list_fill(struct listing *l)
{
	int r = 0;

	while (r >= 0 && !l->ended && l->out.len < LIST_BATCH) {
		r = talk_recv_now(l->talk);
		if (r == -EAGAIN && l->out.len > 0)
			return 0;
		if (r == -EAGAIN) {
			r = stream_wait(l->talk->request, l->talk->op.sock, ENVD_WAIT_MS);
			if (r == 0)
				r = -ETIMEDOUT;
			continue;
		}
		if (r > 0)
			r = list_on_frame(l);
	}
	return r;
}

static ssize_t list_read(void *arg, char *data, size_t max)
{
	struct listing *l = arg;
	size_t n;

	if (l->sent == l->out.len) {
		int r;

		l->sent = l->out.len = 0;
		r = list_fill(l);
		if (r < 0)
			return r;
	}
	n = MIN(max, l->out.len - l->sent);
	memcpy(data, l->out.data + l->sent, n);
	l->sent += n;
	return (ssize_t)n;
}

static const struct stream list_stream = { .read = list_read, .close = list_close };

/* The frame is the first answer. */
static int list_reply(struct request *r, struct talk **t)
{
	struct listing *l = calloc(1, sizeof(*l));
	int n;

	if (!l)
		return -ENOMEM;
	l->talk = take_ptr(*t);
	l->out.max = LIST_MAX;
	n = buf_add(&l->out, "{\"entries\":[", 12);
	if (n == 0)
		n = list_on_frame(l);
	if (n == 0)
		n = talk_no_wait(l->talk);
	if (n < 0) {
		list_close(l);
		return n;
	}
	return reply_stream(r, 200, "application/json", UINT64_MAX, &list_stream, l);
}

static int call_list_dir(struct request *r, const json_t *message, json_t **ret,
			 struct rpc_error *e)
{
	_cleanup_(talk_freep) struct talk *t = talk_new(r);
	struct wire_fs request = { .op = WIRE_FS_LIST };
	struct wire_failed failed;
	char user[RPC_USER_SIZE];
	const char *path = NULL;
	uint64_t depth = 0;
	int n = t ? rpc_string(message, "path", WIRE_PATH_MAX, &path, e) : -ENOMEM;

	(void)ret;
	if (n == 0)
		n = rpc_number(message, "depth", UINT32_MAX, &depth, e);
	if (n == 0)
		n = rpc_user(r, user, e);
	if (n < 0)
		return n;
	if (!path || !*path)
		path = "~";
	request.depth = depth ? (uint32_t)depth : 1;
	n = envd_fs_open(t, &request, user, &path, 1);
	if (n == 0)
		n = talk_send(t, WIRE_GO, NULL, 0);
	if (n == 0)
		n = talk_recv(t);
	if (n < 0)
		return n;
	if (talk_failed(&t->frame, &failed) == 0)
		return envd_fs_failed(&failed, user, path, e);
	return list_reply(r, &t);
}

int envd_fs_list_dir(struct request *r)
{
	return rpc_unary(r, call_list_dir);
}
