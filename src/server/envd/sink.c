/* SPDX-License-Identifier: Apache-2.0 */
#include "server/envd/upload.h"

#include "base/clock.h"

#include <poll.h>
#include <sodium.h>
#include <sys/socket.h>

#define LARGE_PIECE (UINT64_C(16) << 10)
#define SMALL_REST (UINT64_C(4) << 10)
#define UNDO_US (UINT64_C(5) * 1000000)
#define FILES_MAX 10000              /* of one request: each is kept in mind until the reply */
#define KEPT_MAX (UINT64_C(4) << 20) /* and so much is said about them */
#define SOCKET_BUFFER (1 << 20)      /* the kernel gives what it allows */

static int send_attrs(struct talk *t, const struct buf *attrs)
{
	const char *at = (const char *)attrs->data, *end = at + attrs->len;
	int r = 0;

	while (r == 0 && at && at < end) {
		size_t key = strlen(at), value = strlen(at + key + 1);

		r = talk_send(t, WIRE_ATTR, at, key + 1 + value);
		at += key + value + 2;
	}
	return r;
}

/*
 * Two parts of one request for the same file: the later would silently win. Paths are any bytes, and as long as the
 * client likes: what is kept is a hash of each, as text.
 */
static int claim(struct upload *u, const char *path)
{
	unsigned char hash[crypto_hash_sha256_BYTES];
	char key[2 * sizeof(hash) + 1];

	crypto_hash_sha256(hash, (const unsigned char *)path, strlen(path));
	(void)sodium_bin2hex(key, sizeof(key), hash, sizeof(hash));
	if (json_object_get(u->targets, key))
		return upload_fail(u, 400, "two files of this request go to '%.300s'", path);
	return json_object_set_new(u->targets, key, json_true()) < 0 ? -ENOMEM : 0;
}

int sink_open(struct upload *u, const char *path)
{
	const struct wire_fs request = { .op = WIRE_FS_WRITE };
	struct sink *s = &u->sink;
	int r;

	if (strlen(path) > WIRE_PATH_MAX)
		return upload_fail(u, 400, "the path is longer than %d bytes", WIRE_PATH_MAX);
	if (json_array_size(u->written) >= FILES_MAX || u->kept >= KEPT_MAX)
		return upload_fail(
			u, 400, "too many files in one request: at most %d, fewer with long names",
			FILES_MAX);
	r = claim(u, path);
	if (r < 0)
		return r;
	s->n = s->bytes = 0;
	s->path = strdup(path);
	s->talk = talk_new(u->request);
	if (!s->path || !s->talk)
		return -ENOMEM;
	r = envd_fs_open(s->talk, &request, u->user, &path, 1);
	if (r == 0) /* more in flight means fewer changes between the two processes */
		(void)setsockopt(s->talk->op.sock, SOL_SOCKET, SO_SNDBUF, &(int){ SOCKET_BUFFER },
				 sizeof(int));
	if (r == 0)
		r = send_attrs(s->talk, &u->attrs);
	return r < 0 ? r : talk_send(s->talk, WIRE_GO, NULL, 0);
}

static int wait_for_answer(struct sink *s)
{
	/* However long the upload took: from now on. */
	s->talk->until_us = clock_boot_us() + ENVD_WAIT_MS * UINT64_C(1000);
	return talk_recv(s->talk);
}

/* The frame says why the file could not be written. */
static int on_failed(struct upload *u)
{
	struct sink *s = &u->sink;
	struct wire_failed failed;
	struct rpc_error e;

	if (talk_failed(&s->talk->frame, &failed) < 0)
		return envd_broken(u->request->sandbox, "while a file was sent");
	(void)envd_fs_failed(&failed, u->user, s->path, &e);
	if (failed.step == WIRE_STEP_FILE && failed.err == EISDIR)
		return upload_fail(u, 400, "path '%.300s' is a directory", s->path);
	if (failed.step == WIRE_STEP_FILE && (failed.err == ENOSPC || failed.err == EDQUOT))
		return upload_fail(u, 507, "the sandbox's disk is full");
	return upload_fail(u, rpc_code_status(e.code), "%s", e.message);
}

/* What the agent says before it has everything can only be that it failed. */
int sink_failure(struct upload *u)
{
	int r = wait_for_answer(&u->sink);

	return r < 0 ? r : on_failed(u);
}

/* Sends what was collected, and data behind it. */
static int send_frame(struct upload *u, const void *data, size_t len)
{
	struct sink *s = &u->sink;
	struct pollfd p = { .fd = s->talk->op.sock, .events = POLLIN };
	size_t before = s->n;
	int r;

	/* Sending two gigabytes to somebody who has refused already would be a waste. */
	if (poll(&p, 1, 0) > 0)
		return sink_failure(u);
	s->n = 0;
	r = wire_send2(p.fd, WIRE_DATA, s->data, before, data, len);
	if (r == -EPIPE)
		return sink_failure(u);
	return r == -EAGAIN ? -ETIMEDOUT : r;
}

int sink_write(struct upload *u, const void *data, size_t len)
{
	struct sink *s = &u->sink;
	const unsigned char *from = data;
	/* Copying a large piece costs more than sending it, so only a small rest of one is kept. */
	size_t keep = len >= LARGE_PIECE ? SMALL_REST : sizeof(s->data) - 1;

	s->bytes += len;
	while (s->n + len > keep) {
		size_t n = MIN(len, sizeof(s->data) - s->n);
		int r = send_frame(u, from, n);

		if (r < 0)
			return r;
		from += n;
		len -= n;
	}
	memcpy(s->data + s->n, from, len);
	s->n += len;
	return 0;
}

int sink_flush(struct upload *u)
{
	return u->sink.n ? send_frame(u, NULL, 0) : 0;
}

static int add_written(struct upload *u, const struct envd_entry *entry)
{
	json_t *info = envd_entry_json(entry), *attrs = envd_entry_attrs(entry);
	json_t *file = json_pack("{s:O, s:O, s:s}", "name", json_object_get(info, "name"), "path",
				 json_object_get(info, "path"), "type", "file");
	int r = file ? 0 : -ENOMEM;

	if (r == 0 && attrs)
		r = json_object_set(file, "metadata", attrs) < 0 ? -ENOMEM : 0;
	json_decref(attrs);
	json_decref(info);
	if (r < 0 || json_array_append_new(u->written, file) < 0)
		return -ENOMEM;
	return 0;
}

/* The same file by two names is noticed too, though only now. */
static int claim_resolved(struct upload *u, const struct envd_entry *entry)
{
	_cleanup_(freep) char *path = strndup(entry->path, entry->head->path_len);

	if (!path)
		return -ENOMEM;
	return strcmp(path, u->sink.path) == 0 ? 0 : claim(u, path);
}

int sink_finish(struct upload *u)
{
	struct sink *s = &u->sink;
	struct envd_entry entry;
	int r = sink_flush(u);

	if (r == 0)
		r = talk_send(s->talk, WIRE_FILE_END, NULL, 0);
	if (r < 0)
		return r;
	r = wait_for_answer(s);
	if (r < 0)
		return r;
	if (s->talk->frame.head.type == WIRE_FAILED)
		return on_failed(u);
	if (s->talk->frame.head.type != WIRE_ENTRY ||
	    envd_entry_read(s->talk->frame.data, wire_len(&s->talk->frame), &entry) < 0)
		return envd_broken(u->request->sandbox, "after a file was sent");
	u->kept += wire_len(&s->talk->frame);
	r = claim_resolved(u, &entry);
	if (r == 0)
		r = add_written(u, &entry);
	sink_drop(u);
	return r;
}

void sink_drop(struct upload *u)
{
	talk_freep(&u->sink.talk);
	free(u->sink.path);
	u->sink.path = NULL;
}

void sink_undo(struct upload *u)
{
	struct talk *t = u->sink.talk;

	if (t && t->op.sock >= 0) {
		(void)shutdown(t->op.sock, SHUT_WR);
		t->until_us = clock_boot_us() + UNDO_US;
		/* An agent that always has something to say would never be timed out otherwise. */
		while (clock_boot_us() < t->until_us && talk_recv(t) > 0)
			;
	}
	sink_drop(u);
}
