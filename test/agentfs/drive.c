/* SPDX-License-Identifier: Apache-2.0 */
#include "drive.h"

#include <poll.h>

#define SILENCE_MS 250

const struct drive *drive;

static struct wire_frame frame;

const char *at_home(const char *name)
{
	static char paths[8][WIRE_PATH_MAX + 1];
	static unsigned next;
	char *path = paths[next++ % ARRAY_SIZE(paths)];

	(void)snprintf(path, sizeof(paths[0]), "%s/%s", drive->home, name);
	return path;
}

int begin_request(const struct wire_fs *request, const char *user, const char *const *paths)
{
	int sock = drive->open(request);

	assert_true(sock >= 0);
	if (user)
		assert_int_equal(wire_send(sock, WIRE_USER, user, strlen(user)), 0);
	for (; *paths; paths++)
		assert_int_equal(wire_send(sock, WIRE_PATH, *paths, strlen(*paths)), 0);
	assert_int_equal(wire_send(sock, WIRE_GO, NULL, 0), 0);
	return sock;
}

int begin(uint32_t op, uint32_t flags, uint32_t depth, const char *path, ...)
{
	const struct wire_fs request = {
		.op = op,
		.flags = flags,
		.depth = depth,
		.length = op == WIRE_FS_READ ? UINT64_MAX : 0,
	};
	const char *paths[8] = { path };
	size_t n = 1;
	va_list ap;

	va_start(ap, path);
	while (n < ARRAY_SIZE(paths) - 1 && (paths[n] = va_arg(ap, const char *)))
		n++;
	va_end(ap);
	return begin_request(&request, NULL, paths);
}

bool next_frame(int sock, struct wire_frame *ret)
{
	int r = wire_recv(sock, ret, WIRE_ON_FROM_OP);

	if (r < 0)
		fail_msg("receiving: %s", strerror(-r));
	return r > 0;
}

static void take(const unsigned char **at, size_t len, char *ret, size_t size)
{
	assert_true(len < size);
	assert_null(memchr(*at, '\0', len));
	memcpy(ret, *at, len);
	ret[len] = '\0';
	*at += len;
}

static void parse_entry(const struct wire_frame *f, struct seen_entry *ret)
{
	const unsigned char *at = f->data + sizeof(ret->head), *end = f->data + wire_len(f);
	size_t len = 0;

	memcpy(&ret->head, f->data, sizeof(ret->head));
	take(&at, ret->head.path_len, ret->path, sizeof(ret->path));
	take(&at, ret->head.owner_len, ret->owner, sizeof(ret->owner));
	take(&at, ret->head.group_len, ret->group, sizeof(ret->group));
	take(&at, ret->head.target_len, ret->target, sizeof(ret->target));
	assert_int_equal(end - at, ret->head.attrs_len);
	assert_int_equal(ret->head.zero, 0);
	ret->attrs[0] = '\0';
	while (at < end) {
		const char *key = (const char *)at, *value;

		assert_non_null(memchr(at, '\0', (size_t)(end - at)));
		at += strlen(key) + 1;
		value = (const char *)at;
		assert_non_null(memchr(at, '\0', (size_t)(end - at)));
		at += strlen(value) + 1;
		len += (size_t)snprintf(ret->attrs + len, sizeof(ret->attrs) - len, "%s=%s\n", key,
					value);
	}
}

static int failed_of(const struct wire_frame *f)
{
	const struct wire_failed *failed = (const struct wire_failed *)f->data;

	assert_int_equal(failed->step, WIRE_STEP_FILE);
	assert_true(failed->err > 0);
	return failed->err;
}

static void want_type(int sock, enum wire_type type)
{
	if (!next_frame(sock, &frame))
		fail_msg("the end instead of frame %d", type);
	if (frame.head.type == WIRE_FAILED && type != WIRE_FAILED)
		fail_msg("FAILED %s instead of frame %d", strerror(failed_of(&frame)), type);
	assert_int_equal(frame.head.type, type);
}

void want_entry(int sock, struct seen_entry *ret)
{
	want_type(sock, WIRE_ENTRY);
	parse_entry(&frame, ret);
}

static void want_end(int sock)
{
	assert_false(next_frame(sock, &frame));
	fd_close(sock);
}

void want_done(int sock)
{
	want_type(sock, WIRE_DONE);
	want_end(sock);
}

void want_failed(int sock, uint32_t step, int err)
{
	const struct wire_failed *failed = (const struct wire_failed *)frame.data;

	want_type(sock, WIRE_FAILED);
	assert_int_equal(failed->err, err);
	assert_int_equal(failed->step, step);
	fd_close(sock);
}

void want_change(int sock, uint32_t what, const char *name, struct seen_entry *ret)
{
	static struct seen_entry ignored;
	const struct wire_fs_change *change = (const struct wire_fs_change *)frame.data;
	uint32_t has_entry;

	want_type(sock, WIRE_CHANGE);
	assert_int_equal(wire_len(&frame), sizeof(*change) + strlen(name));
	assert_memory_equal(frame.data + sizeof(*change), name, strlen(name));
	assert_int_equal(change->what, what);
	has_entry = change->has_entry;
	if (ret)
		assert_int_equal(has_entry, 1);
	if (has_entry)
		want_entry(sock, ret ? ret : &ignored);
}

void want_silence(int sock)
{
	struct pollfd p = { .fd = sock, .events = POLLIN };

	if (poll(&p, 1, SILENCE_MS) != 0) {
		const struct wire_fs_change *change = (const struct wire_fs_change *)frame.data;

		assert_true(next_frame(sock, &frame));
		fail_msg("silence was expected, came frame %d, change %u of %.*s", frame.head.type,
			 change->what, (int)(wire_len(&frame) - sizeof(*change)),
			 (const char *)(change + 1));
	}
}

/* The answer of an operation that has no more to say than ENTRY and DONE. */
static int answer(int sock, struct seen_entry *ret)
{
	bool entry = false;
	int err = 0;

	while (next_frame(sock, &frame)) {
		switch (frame.head.type) {
		case WIRE_ENTRY:
			assert_false(entry);
			entry = true;
			if (ret)
				parse_entry(&frame, ret);
			break;
		case WIRE_FAILED:
			err = failed_of(&frame);
			fd_close(sock);
			return err;
		case WIRE_DONE:
			assert_true(entry || !ret);
			want_end(sock);
			return 0;
		default:
			fail_msg("frame %d", frame.head.type);
		}
	}
	fail_msg("an end without DONE");
	return 0;
}

int do_stat(const char *path, struct seen_entry *ret)
{
	return answer(begin(WIRE_FS_STAT, 0, 0, path, NULL), ret);
}

int do_write(const char *path, const char *text)
{
	static struct seen_entry e;
	int sock = begin(WIRE_FS_WRITE, 0, 0, path, NULL);

	if (*text)
		(void)!wire_send(sock, WIRE_DATA, text, strlen(text));
	(void)!wire_send(sock, WIRE_FILE_END, NULL, 0);
	return answer(sock, &e);
}

int do_read(const char *path, char *ret, size_t size)
{
	static struct seen_entry e;
	int sock = begin(WIRE_FS_READ, 0, 0, path, NULL);
	size_t len = 0;

	ret[0] = '\0';
	assert_true(next_frame(sock, &frame));
	if (frame.head.type == WIRE_FAILED) {
		int err = failed_of(&frame);

		fd_close(sock);
		return err;
	}
	assert_int_equal(frame.head.type, WIRE_ENTRY);
	parse_entry(&frame, &e);
	while (next_frame(sock, &frame) && frame.head.type == WIRE_DATA) {
		assert_true(len + wire_len(&frame) < size);
		memcpy(ret + len, frame.data, wire_len(&frame));
		len += wire_len(&frame);
		ret[len] = '\0';
	}
	assert_int_equal(frame.head.type, WIRE_DONE);
	assert_int_equal(e.head.size, len);
	want_end(sock);
	return 0;
}

int do_simple(uint32_t op, const char *path, const char *second)
{
	return answer(begin(op, 0, 0, path, second, NULL), NULL);
}

int do_list(const char *path, uint32_t depth, char *ret, size_t size)
{
	static struct seen_entry e;
	int sock = begin(WIRE_FS_LIST, 0, depth, path, NULL);
	size_t len = 0;

	ret[0] = '\0';
	while (next_frame(sock, &frame) && frame.head.type == WIRE_ENTRY) {
		parse_entry(&frame, &e);
		assert_int_equal(strncmp(e.path, path, strlen(path)), 0);
		assert_int_equal(e.path[strlen(path)], '/');
		len += (size_t)snprintf(ret + len, size - len, "%s\n", e.path + strlen(path) + 1);
		assert_true(len < size);
	}
	if (frame.head.type == WIRE_FAILED) {
		int err = failed_of(&frame);

		fd_close(sock);
		return err;
	}
	assert_int_equal(frame.head.type, WIRE_DONE);
	want_end(sock);
	return 0;
}
