/* SPDX-License-Identifier: Apache-2.0 */
/* The messages between server and warden: what is taken, and that nothing else is (AP-18). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <fcntl.h>
#include <sys/socket.h>

#include "sys/sock.h"
#include "wire/warden.h"

#define TO_WARDEN WARDEN_TO_WARDEN
#define FROM_WARDEN WARDEN_FROM_WARDEN

static const struct {
	uint32_t type;
	enum warden_direction where;
	size_t size;
} messages[] = {
#define MESSAGE(name, number, direction, payload) { (number), (direction), sizeof(payload) },
#include "wire/warden.def"
#undef MESSAGE
};

static struct warden_frame frame;

/* A message of that type with everything filled in as it should be. */
static size_t good(uint32_t type, size_t size)
{
	memset(&frame, 0, sizeof(frame));
	frame.head =
		(struct warden_head){ .type = type, .len = (uint32_t)(sizeof(frame.head) + size) };
	if (type == WARDEN_DROP_LAYER || type == WARDEN_SNAPSHOT)
		memcpy(frame.as_SNAPSHOT.layer, "layer1", 6);
	if (type == WARDEN_DROP_LAYER)
		memcpy(frame.as_DROP_LAYER.layer, "layer1", 6);
	else if (type != WARDEN_HELLO && type != WARDEN_REPLY && type != WARDEN_EGRESS &&
		 type != WARDEN_MEET)
		memcpy(frame.as_KILL.id, "box1", 4);
	if (type == WARDEN_CONTEXT) {
		memcpy(frame.as_CONTEXT.context.name, "python", 6);
		memcpy(frame.as_CONTEXT.context.language, "python", 6);
		frame.as_CONTEXT.zygote = WARDEN_ZYGOTE_SCIENCE;
	}
	if (type == WARDEN_SOCKET)
		frame.as_SOCKET.family = 4;
	return frame.head.len;
}

static void test_every_message(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(messages); i++) {
		enum warden_direction where = messages[i].where;
		enum warden_direction other = where == TO_WARDEN ? FROM_WARDEN : TO_WARDEN;
		size_t n = good(messages[i].type, messages[i].size);

		assert_int_equal(warden_check(&frame, n, where), 0);
		assert_int_equal(warden_check(&frame, n, other), -EPROTO);
		assert_int_equal(warden_check(&frame, n - 1, where), -EPROTO);
		frame.head.len = (uint32_t)n - 1;
		assert_int_equal(warden_check(&frame, n - 1, where), -EPROTO);
		frame.head.len = (uint32_t)n + 1;
		assert_int_equal(warden_check(&frame, n + 1, where), -EPROTO);
		assert_int_equal(warden_check(&frame, n, where), -EPROTO);
	}
}

static void test_unknown_types(void **state)
{
	(void)state;
	for (uint32_t type = 0; type < 64; type++) {
		bool known = false;

		for (size_t i = 0; i < ARRAY_SIZE(messages); i++)
			known |= messages[i].type == type;
		for (size_t size = 0; !known && size <= sizeof(frame) - sizeof(frame.head);
		     size++) {
			size_t n = good(type, size);

			assert_int_equal(warden_check(&frame, n, TO_WARDEN), -EPROTO);
			assert_int_equal(warden_check(&frame, n, FROM_WARDEN), -EPROTO);
		}
	}
	assert_int_equal(warden_check(&frame, 0, TO_WARDEN), -EPROTO);
	assert_int_equal(warden_check(&frame, sizeof(frame) + 1, TO_WARDEN), -EPROTO);
}

static void test_ids(void **state)
{
	static const char *const bad[] = { "",    "A",        "a.b", "../x", "a/b", "a b",
					   "a\n", "\xc3\xa4", "a-b", "a_b",  "." };
	char id[WARDEN_ID_SIZE];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		memset(id, 0, sizeof(id));
		memcpy(id, bad[i], strlen(bad[i]));
		assert_false(warden_id_ok(id));
	}
	memset(id, 'z', sizeof(id));
	assert_false(warden_id_ok(id)); /* not ended */
	id[31] = '\0';
	assert_true(warden_id_ok(id));
	id[1] = '\0';
	assert_false(warden_id_ok(id)); /* more behind the end */
	memset(id + 1, 0, sizeof(id) - 1);
	assert_true(warden_id_ok(id));
}

static void expect_create(int result)
{
	size_t n = frame.head.len;

	assert_int_equal(warden_check(&frame, n, TO_WARDEN), result);
}

static void test_context(void **state)
{
	const size_t size = sizeof(struct warden_context);

	(void)state;
	good(WARDEN_CONTEXT, size);
	frame.as_CONTEXT.zygote = _WARDEN_ZYGOTE_MAX;
	expect_create(-EPROTO);
	good(WARDEN_CONTEXT, size);
	frame.as_CONTEXT.zygote = 0;
	expect_create(-EPROTO);
	good(WARDEN_CONTEXT, size);
	frame.as_CONTEXT.context.name[0] = '/';
	expect_create(-EPROTO);
	good(WARDEN_CONTEXT, size);
	frame.as_CONTEXT.context.language[WIRE_LANGUAGE_SIZE - 1] = 'x'; /* behind the end */
	expect_create(-EPROTO);
	good(WARDEN_CONTEXT, size);
	frame.as_CONTEXT.flags = WARDEN_CONTEXT_BETTER | 2;
	expect_create(-EPROTO);
}

static void test_create(void **state)
{
	(void)state;
	for (uint32_t n_layers = 0; n_layers <= WARDEN_LAYERS_MAX; n_layers++) {
		good(WARDEN_CREATE, sizeof(struct warden_create));
		frame.as_CREATE.n_layers = n_layers;
		for (uint32_t i = 0; i < n_layers; i++)
			frame.as_CREATE.layer[i][0] = 'l';
		expect_create(0);
		if (n_layers < WARDEN_LAYERS_MAX) {
			frame.as_CREATE.layer[WARDEN_LAYERS_MAX - 1][WARDEN_ID_SIZE - 1] = 'x';
			expect_create(-EPROTO); /* in a layer that is not counted */
		}
	}
	frame.as_CREATE.n_layers = WARDEN_LAYERS_MAX + 1;
	expect_create(-EPROTO);
	frame.as_CREATE.n_layers = UINT32_MAX;
	expect_create(-EPROTO);
	good(WARDEN_CREATE, sizeof(struct warden_create));
	frame.as_CREATE.n_layers = 1;
	expect_create(-EPROTO); /* without a name */
	memcpy(frame.as_CREATE.layer[0], "../db", 5);
	expect_create(-EPROTO);
	good(WARDEN_CREATE, sizeof(struct warden_create));
	frame.as_CREATE.zero = 1;
	expect_create(-EPROTO);
}

static void test_reply_text(void **state)
{
	size_t n = good(WARDEN_REPLY, sizeof(struct warden_reply));

	(void)state;
	memset(frame.as_REPLY.msg, 'm', sizeof(frame.as_REPLY.msg) - 1);
	assert_int_equal(warden_check(&frame, n, FROM_WARDEN), 0);
	frame.as_REPLY.msg[sizeof(frame.as_REPLY.msg) - 1] = 'm';
	assert_int_equal(warden_check(&frame, n, FROM_WARDEN), -EPROTO);
	n = good(WARDEN_REPLY, sizeof(struct warden_reply));
	frame.as_REPLY.where[3] = 'x';
	assert_int_equal(warden_check(&frame, n, FROM_WARDEN), -EPROTO);
	n = good(WARDEN_REPLY, sizeof(struct warden_reply));
	frame.as_REPLY.box.state = WARDEN_STATE_RUNNING; /* of which box? */
	assert_int_equal(warden_check(&frame, n, FROM_WARDEN), -EPROTO);
	frame.as_REPLY.box.id[0] = 'b';
	assert_int_equal(warden_check(&frame, n, FROM_WARDEN), 0);
}

/* NEXT_LAYER may ask for the first one; a reply names one or none. */
static void test_next_layer(void **state)
{
	static const char *const bad[] = { "A", "a.tmp", "../db", "a/b", " " };
	size_t n = good(WARDEN_NEXT_LAYER, sizeof(struct warden_layer));

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		n = good(WARDEN_NEXT_LAYER, sizeof(struct warden_layer));
		memset(frame.as_NEXT_LAYER.layer, 0, WARDEN_ID_SIZE);
		assert_int_equal(warden_check(&frame, n, TO_WARDEN), 0);
		memcpy(frame.as_NEXT_LAYER.layer, bad[i], strlen(bad[i]));
		assert_int_equal(warden_check(&frame, n, TO_WARDEN), -EPROTO);
		n = good(WARDEN_REPLY, sizeof(struct warden_reply));
		memcpy(frame.as_REPLY.layer, "layer1", 6);
		assert_int_equal(warden_check(&frame, n, FROM_WARDEN), 0);
		memset(frame.as_REPLY.layer, 0, WARDEN_ID_SIZE);
		memcpy(frame.as_REPLY.layer, bad[i], strlen(bad[i]));
		assert_int_equal(warden_check(&frame, n, FROM_WARDEN), -EPROTO);
	}
	n = good(WARDEN_NEXT_LAYER, sizeof(struct warden_layer));
	memset(frame.as_NEXT_LAYER.layer, 0, WARDEN_ID_SIZE);
	frame.as_NEXT_LAYER.layer[WARDEN_ID_SIZE - 1] = 'a'; /* behind the end */
	assert_int_equal(warden_check(&frame, n, TO_WARDEN), -EPROTO);
	memset(frame.as_NEXT_LAYER.layer, 'a', WARDEN_ID_SIZE); /* without an end */
	assert_int_equal(warden_check(&frame, n, TO_WARDEN), -EPROTO);
}

static size_t open_fds(void)
{
	DIR *dir = opendir("/proc/self/fd");
	size_t n = 0;

	assert_non_null(dir);
	while (readdir(dir))
		n++;
	(void)closedir(dir);
	return n;
}

static void test_network(void **state)
{
	const size_t size = sizeof(struct warden_socket);
	size_t n;

	(void)state;
	for (uint32_t family = 0; family < 20; family++) {
		n = good(WARDEN_SOCKET, size);
		frame.as_SOCKET.family = family;
		assert_int_equal(warden_check(&frame, n, TO_WARDEN),
				 family == 4 || family == 6 ? 0 : -EPROTO);
	}
	n = good(WARDEN_SOCKET, size);
	frame.as_SOCKET.zero = 1;
	assert_int_equal(warden_check(&frame, n, TO_WARDEN), -EPROTO);
	n = good(WARDEN_EGRESS, sizeof(struct warden_egress));
	frame.as_EGRESS.zero = 1;
	assert_int_equal(warden_check(&frame, n, FROM_WARDEN), -EPROTO);
	n = good(WARDEN_REPLY, sizeof(struct warden_reply));
	frame.as_REPLY.flags = WARDEN_NET_CATCHES;
	assert_int_equal(warden_check(&frame, n, FROM_WARDEN), 0);
	frame.as_REPLY.flags = WARDEN_NET_CATCHES << 1;
	assert_int_equal(warden_check(&frame, n, FROM_WARDEN), -EPROTO);
}

static void test_socket(void **state)
{
	struct warden_frame got;
	int pair[2], fd = 7;
	size_t before;

	(void)state;
	assert_int_equal(sock_pair(pair), 0);
	before = open_fds();
	good(WARDEN_KILL, sizeof(struct warden_target));
	frame.head.request = 99;
	assert_int_equal(warden_send(pair[0], WARDEN_KILL, &frame, -EBADF), 0);
	assert_int_equal(warden_recv(pair[1], &got, TO_WARDEN, &fd), 1);
	assert_int_equal(got.head.request, 99);
	assert_string_equal(got.as_KILL.id, "box1");
	assert_int_equal(fd, -EBADF);

	/* To the warden no descriptor goes, whether or not there is a place for it. */
	assert_int_equal(warden_send(pair[0], WARDEN_KILL, &frame, pair[0]), 0);
	assert_int_equal(warden_recv(pair[1], &got, TO_WARDEN, &fd), -EPROTO);
	assert_int_equal(warden_send(pair[0], WARDEN_KILL, &frame, pair[0]), 0);
	assert_int_equal(warden_recv(pair[1], &got, TO_WARDEN, NULL), -EPROTO);

	/* From it only with a REPLY, a BOX and an EGRESS. */
	good(WARDEN_BOX, sizeof(struct warden_box));
	assert_int_equal(warden_send(pair[0], WARDEN_BOX, &frame, pair[0]), 0);
	assert_int_equal(warden_recv(pair[1], &got, FROM_WARDEN, &fd), 1);
	assert_true(fd >= 0);
	assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
	(void)close(fd);
	good(WARDEN_EGRESS, sizeof(struct warden_egress));
	assert_int_equal(warden_send(pair[0], WARDEN_EGRESS, &frame, pair[0]), 0);
	assert_int_equal(warden_recv(pair[1], &got, FROM_WARDEN, &fd), 1);
	assert_true(fd >= 0);
	(void)close(fd);
	good(WARDEN_PAUSED, sizeof(struct warden_target));
	assert_int_equal(warden_send(pair[0], WARDEN_PAUSED, &frame, pair[0]), 0);
	assert_int_equal(warden_recv(pair[1], &got, FROM_WARDEN, &fd), -EPROTO);
	assert_int_equal(open_fds(), before);

	/* Anything else. */
	assert_int_equal(send(pair[0], "x", 1, 0), 1);
	assert_int_equal(warden_recv(pair[1], &got, TO_WARDEN, &fd), -EPROTO);
	assert_int_equal(warden_send(pair[0], (enum warden_type)63, &frame, -EBADF), -EINVAL);
	(void)close(pair[0]);
	assert_int_equal(warden_recv(pair[1], &got, TO_WARDEN, &fd), 0);
	(void)close(pair[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_message), cmocka_unit_test(test_unknown_types),
		cmocka_unit_test(test_ids),           cmocka_unit_test(test_create),
		cmocka_unit_test(test_context),       cmocka_unit_test(test_reply_text),
		cmocka_unit_test(test_next_layer),    cmocka_unit_test(test_network),
		cmocka_unit_test(test_socket),
	};

	return cmocka_run_group_tests_name("warden", tests, NULL, NULL);
}
