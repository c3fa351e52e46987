/* SPDX-License-Identifier: Apache-2.0 */
/* The messages of egress: what is taken from whom, and that nothing else is (AP-18, NW-15). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "sys/sock.h"
#include "wire/egress.h"

#define WARDEN EGRESS_FROM_WARDEN
#define SERVER EGRESS_FROM_SERVER
#define REPORT EGRESS_FROM_EGRESS

static const struct {
	uint32_t type;
	enum egress_channel channel;
	size_t size;
} messages[] = {
#define MESSAGE(name, number, channel, payload) { (number), (channel), sizeof(payload) },
#include "wire/egress.def"
#undef MESSAGE
};

static struct egress_frame frame;

static size_t size_of(uint32_t type)
{
	for (size_t i = 0; i < ARRAY_SIZE(messages); i++)
		if (messages[i].type == type)
			return messages[i].size;
	return 0;
}

static struct rule some_rule(void)
{
	struct rule r = { .kind = RULE_NAME, .n_ports = 1, .ports = { { 443, 443 } } };

	memcpy(r.name, "example.com", 11);
	return r;
}

/* A message of that type with everything filled in as it should be. */
static size_t good(uint32_t type)
{
	memset(&frame, 0, sizeof(frame));
	frame.head = (struct warden_head){ .type = type,
					   .len = (uint32_t)(sizeof(frame.head) + size_of(type)) };
	if (type != EGRESS_OPERATOR && type != EGRESS_SERVER)
		memcpy(frame.as_CLOSE.id, "box1", 4);
	if (type == EGRESS_OPEN) {
		frame.as_OPEN.n_doors = 2;
		frame.as_OPEN.door[0] = EGRESS_DOOR_PROXY;
		frame.as_OPEN.door[1] = EGRESS_DOOR_DNS_UDP;
	} else if (type == EGRESS_USE) {
		memcpy(frame.as_USE.set, "packages", 8);
	} else if (type == EGRESS_RULE) {
		frame.as_RULE.rule = some_rule();
	} else if (type == EGRESS_HEADER) {
		memcpy(frame.as_HEADER.host, "example.com", 11);
		memcpy(frame.as_HEADER.name, "Authorization", 13);
		memcpy(frame.as_HEADER.value, "Bearer x", 8);
	} else if (type == EGRESS_EVENT) {
		frame.as_EVENT.how = EGRESS_HOW_HTTP;
		frame.as_EVENT.reason = POLICY_ALLOWED;
	}
	return frame.head.len;
}

static void expect(enum egress_channel channel, int result)
{
	assert_int_equal(egress_check(&frame, frame.head.len, channel), result);
}

static void test_every_message(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(messages); i++) {
		enum egress_channel own = messages[i].channel;
		size_t n = good(messages[i].type);

		for (enum egress_channel c = WARDEN; c <= REPORT; c++)
			assert_int_equal(egress_check(&frame, n, c), c == own ? 0 : -EPROTO);
		assert_int_equal(egress_check(&frame, n - 1, own), -EPROTO);
		frame.head.len = (uint32_t)n - 1;
		assert_int_equal(egress_check(&frame, n - 1, own), -EPROTO);
		frame.head.len = (uint32_t)n + 1;
		assert_int_equal(egress_check(&frame, n + 1, own), -EPROTO);
		good(messages[i].type);
		frame.head.request = 1;
		expect(own, -EPROTO);
	}
	for (uint32_t type = 0; type < 64; type++)
		if (size_of(type) == 0) {
			good(type);
			for (enum egress_channel c = WARDEN; c <= REPORT; c++)
				expect(c, -EPROTO);
		}
	assert_int_equal(egress_check(&frame, 0, WARDEN), -EPROTO);
}

/* Every message that names a box names it in the one way. */
static void test_ids(void **state)
{
	static const char *const bad[] = { "", "A", "../x", "a b", "a\n" };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(messages); i++) {
		if (messages[i].type == EGRESS_OPERATOR || messages[i].type == EGRESS_SERVER)
			continue;
		for (size_t k = 0; k < ARRAY_SIZE(bad); k++) {
			good(messages[i].type);
			memset(frame.as_CLOSE.id, 0, WARDEN_ID_SIZE);
			memcpy(frame.as_CLOSE.id, bad[k], strlen(bad[k]));
			expect(messages[i].channel, -EPROTO);
		}
		good(messages[i].type);
		frame.as_CLOSE.id[WARDEN_ID_SIZE - 2] = 'x'; /* behind the end */
		expect(messages[i].channel, -EPROTO);
	}
}

static void test_open(void **state)
{
	(void)state;
	good(EGRESS_OPEN);
	frame.as_OPEN.n_doors = 0;
	frame.as_OPEN.door[0] = frame.as_OPEN.door[1] = 0;
	expect(WARDEN, -EPROTO);
	good(EGRESS_OPEN);
	frame.as_OPEN.n_doors = EGRESS_DOORS_MAX + 1;
	expect(WARDEN, -EPROTO);
	good(EGRESS_OPEN);
	frame.as_OPEN.door[1] = _EGRESS_DOOR_MAX;
	expect(WARDEN, -EPROTO);
	good(EGRESS_OPEN);
	frame.as_OPEN.door[1] = 0;
	expect(WARDEN, -EPROTO);
	good(EGRESS_OPEN);
	frame.as_OPEN.door[2] = EGRESS_DOOR_PROXY; /* not counted */
	expect(WARDEN, -EPROTO);
	good(EGRESS_OPEN);
	frame.as_OPEN.n_doors = EGRESS_DOORS_MAX;
	for (size_t i = 0; i < EGRESS_DOORS_MAX; i++)
		frame.as_OPEN.door[i] = EGRESS_DOOR_CATCH;
	expect(WARDEN, 0);
}

/* What only egress itself may say about a rule, no server says for it. */
static void test_rules(void **state)
{
	(void)state;
	good(EGRESS_RULE);
	frame.as_RULE.rule.flags = RULE_DENY;
	frame.as_RULE.rule.kind = RULE_RANGE;
	memset(frame.as_RULE.rule.name, 0, POLICY_NAME_SIZE);
	expect(SERVER, 0);
	frame.as_RULE.rule.flags = RULE_DENY | RULE_OPERATOR;
	expect(SERVER, -EPROTO);
	frame.as_RULE.rule.flags = RULE_PRIVATE;
	expect(SERVER, -EPROTO);
	good(EGRESS_RULE);
	frame.as_RULE.rule.n_ports = POLICY_PORTS_MAX + 1;
	expect(SERVER, -EPROTO);
	good(EGRESS_RULE);
	frame.as_RULE.rule.name[0] = 'E';
	expect(SERVER, -EPROTO);
	good(EGRESS_POLICY);
	frame.as_POLICY.base_allow = 2;
	expect(SERVER, -EPROTO);
	good(EGRESS_USE);
	memcpy(frame.as_USE.set, "../etc", 6);
	expect(SERVER, -EPROTO);
}

static void header_name(const char *name, int result)
{
	good(EGRESS_HEADER);
	memset(frame.as_HEADER.name, 0, EGRESS_HEADER_NAME_SIZE);
	memcpy(frame.as_HEADER.name, name, strlen(name));
	expect(SERVER, result);
}

static void test_headers(void **state)
{
	static const char *const bad[] = { "",
					   "a b",
					   "a:",
					   "a\r\nb",
					   "Host",
					   "hOST",
					   "TE",
					   "Transfer-Encoding",
					   "Content-Length",
					   "Proxy-Foo",
					   "Upgrade",
					   "\xc3\xa4",
					   "Connection" };
	static const char *const bad_values[] = { "a\r\nb: c", "a\n", "\x7f", "a\tb" };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		header_name(bad[i], -EPROTO);
	header_name("X-Api-Key", 0);
	header_name("hosts", 0);
	for (size_t i = 0; i < ARRAY_SIZE(bad_values); i++) {
		good(EGRESS_HEADER);
		memset(frame.as_HEADER.value, 0, EGRESS_HEADER_VALUE_SIZE);
		memcpy(frame.as_HEADER.value, bad_values[i], strlen(bad_values[i]));
		expect(SERVER, -EPROTO);
	}
	good(EGRESS_HEADER);
	memset(frame.as_HEADER.value, 'v', EGRESS_HEADER_VALUE_SIZE);
	expect(SERVER, -EPROTO); /* not ended */
	frame.as_HEADER.value[EGRESS_HEADER_VALUE_SIZE - 1] = '\0';
	expect(SERVER, 0);
	good(EGRESS_HEADER);
	frame.as_HEADER.tls = 2;
	expect(SERVER, -EPROTO);
}

static void test_header_hosts(void **state)
{
	static const struct {
		const char *host;
		int result;
	} rows[] = { { "example.com", 0 }, { ".example.com", 0 }, { "", -EPROTO },
		     { ".", -EPROTO },     { "..com", -EPROTO },  { "*.example.com", -EPROTO },
		     { "A.com", -EPROTO }, { "a.com.", -EPROTO }, { "10.0.0.1", -EPROTO } };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		good(EGRESS_HEADER);
		memset(frame.as_HEADER.host, 0, POLICY_NAME_SIZE);
		memcpy(frame.as_HEADER.host, rows[i].host, strlen(rows[i].host));
		expect(SERVER, rows[i].result);
	}
}

static void test_events(void **state)
{
	(void)state;
	good(EGRESS_EVENT);
	frame.as_EVENT.how = _EGRESS_HOW_MAX;
	expect(REPORT, -EPROTO);
	good(EGRESS_EVENT);
	frame.as_EVENT.reason = 9;
	expect(REPORT, -EPROTO);
	good(EGRESS_EVENT);
	frame.as_EVENT.flags = 2;
	expect(REPORT, -EPROTO);
	good(EGRESS_EVENT);
	frame.as_EVENT.zero[2] = 1;
	expect(REPORT, -EPROTO);
	good(EGRESS_EVENT);
	memcpy(frame.as_EVENT.name, "a\nb", 3);
	expect(REPORT, -EPROTO);
	good(EGRESS_EVENT);
	memcpy(frame.as_EVENT.name, "a.b", 3);
	expect(REPORT, 0);
	good(EGRESS_APPLIED);
	frame.as_APPLIED.err = -1;
	expect(REPORT, -EPROTO);
}

static size_t open_descriptors(void)
{
	DIR *d = opendir("/proc/self/fd");
	size_t n = 0;

	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

/* Sends a message with that many descriptors; what comes out. Whatever is not taken must not stay open. */
static int passed(uint32_t type, size_t n_fds, bool takes)
{
	int pair[2], fds[SOCK_FDS_MAX], got[EGRESS_DOORS_MAX], r;
	size_t before = open_descriptors(), n_got = 99;
	static struct egress_frame in;

	for (size_t i = 0; i < n_fds; i++)
		fds[i] = STDIN_FILENO;
	assert_int_equal(sock_pair(pair), 0);
	good(type);
	assert_int_equal(egress_send(pair[0], (enum egress_type)type, &frame, fds, n_fds), 0);
	r = egress_recv(pair[1], &in, type < EGRESS_POLICY ? WARDEN : SERVER, takes ? got : NULL,
			takes ? &n_got : NULL);
	if (r == 1 && takes) {
		assert_int_equal(n_got, n_fds);
		while (n_got)
			fd_close(got[--n_got]);
	} else if (takes) {
		assert_int_equal(n_got, 0);
	}
	fd_close(pair[0]);
	fd_close(pair[1]);
	assert_int_equal(open_descriptors(), before);
	return r;
}

static void test_descriptors(void **state)
{
	(void)state;
	for (size_t n = 0; n <= EGRESS_DOORS_MAX + 2; n++) {
		assert_int_equal(passed(EGRESS_OPEN, n, true), n == 2 ? 1 : -EPROTO);
		assert_int_equal(passed(EGRESS_OPERATOR, n, true), n == 1 ? 1 : -EPROTO);
		assert_int_equal(passed(EGRESS_SERVER, n, true), n == 1 ? 1 : -EPROTO);
		assert_int_equal(passed(EGRESS_CLOSE, n, true), n == 0 ? 1 : -EPROTO);
		assert_int_equal(passed(EGRESS_COMMIT, n, false), n == 0 ? 1 : -EPROTO);
	}
}

/* A receiver that may open no more is told so: that is no nonsense of the sender. */
static void test_no_descriptors_left(void **state)
{
	int pair[2], got[EGRESS_DOORS_MAX], fds[SOCK_FDS_MAX] = { 0 };
	static struct egress_frame in;
	struct rlimit before, none;
	size_t n = 99;

	(void)state;
	assert_int_equal(sock_pair(pair), 0);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	for (rlim_t spare = 0; spare < 2; spare++) { /* the lowest that are free are the next */
		good(EGRESS_OPEN);
		assert_int_equal(egress_send(pair[0], EGRESS_OPEN, &frame, fds, 2), 0);
		none = (struct rlimit){ (rlim_t)pair[1] + 1 + spare, before.rlim_max };
		assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
		assert_int_equal(egress_recv(pair[1], &in, WARDEN, got, &n), -EMFILE);
		assert_int_equal(n, 0);
		assert_int_equal(fcntl(pair[1] + 1, F_GETFD), -1); /* nor does one of two stay */
		assert_string_equal(in.as_OPEN.id, "box1");
		/* What is no message is none without its descriptors either. */
		good(EGRESS_OPEN);
		frame.as_OPEN.zero = 1;
		assert_int_equal(egress_send(pair[0], EGRESS_OPEN, &frame, fds, 2), 0);
		assert_int_equal(egress_recv(pair[1], &in, WARDEN, got, &n), -EPROTO);
		/* Any where none may come. */
		good(EGRESS_COMMIT);
		assert_int_equal(egress_send(pair[0], EGRESS_COMMIT, &frame, fds, 1), 0);
		assert_int_equal(egress_recv(pair[1], &in, SERVER, NULL, NULL), -EPROTO);
		assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	}
	fd_close(pair[0]);
	fd_close(pair[1]);
}

static void test_end_and_wait(void **state)
{
	static struct egress_frame in;
	int pair[2];

	(void)state;
	assert_int_equal(sock_pair(pair), 0);
	assert_int_equal(fcntl(pair[1], F_SETFL, O_NONBLOCK), 0);
	assert_int_equal(egress_recv(pair[1], &in, SERVER, NULL, NULL), -EAGAIN);
	assert_int_equal(send(pair[0], &(char[sizeof(in) + 1]){ 0 }, sizeof(in) + 1, 0),
			 sizeof(in) + 1);
	assert_int_equal(egress_recv(pair[1], &in, SERVER, NULL, NULL), -EPROTO);
	fd_close(pair[0]);
	assert_int_equal(egress_recv(pair[1], &in, SERVER, NULL, NULL), 0);
	fd_close(pair[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_message), cmocka_unit_test(test_ids),
		cmocka_unit_test(test_open),          cmocka_unit_test(test_rules),
		cmocka_unit_test(test_headers),       cmocka_unit_test(test_header_hosts),
		cmocka_unit_test(test_events),        cmocka_unit_test(test_descriptors),
		cmocka_unit_test(test_end_and_wait),  cmocka_unit_test(test_no_descriptors_left),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
