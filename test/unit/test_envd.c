/* SPDX-License-Identifier: Apache-2.0 */
/* Port 49983 without a sandbox: what clients ask, what they are told, and what an agent may say. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "server/envd/envd.h"
#include "server/envd/file_head.h"
#include "server/http/head_field.h"

static struct rpc_error e;

/* --- requests --------------------------------------------------------------------------------------- */

static int decode(const char *text, struct envd_start *ret, json_t **ret_message)
{
	*ret_message = NULL;
	assert_int_equal(rpc_parse(text, strlen(text), ret_message, &e), 0);
	return envd_decode_start(*ret_message, ret, &e);
}

static void test_start(void **state)
{
	struct envd_start s;
	json_t *m;

	(void)state;
	assert_int_equal(
		decode("{\"process\":{\"cmd\":\"/bin/bash\",\"args\":[\"-l\",\"-c\",\"id\"],"
		       "\"envs\":{\"A\":\"1\"},\"cwd\":\"/tmp\"},\"tag\":\"t\",\"stdin\":false}",
		       &s, &m),
		0);
	assert_string_equal(s.cmd, "/bin/bash");
	assert_int_equal(json_array_size(s.args), 3);
	assert_string_equal(s.cwd, "/tmp");
	assert_string_equal(s.tag, "t");
	assert_false(s.with_stdin);
	assert_false(s.pty);
	json_decref(m);
	/* Without the field, input is open: old clients expect it. */
	assert_int_equal(decode("{\"process\":{\"cmd\":\"cat\"}}", &s, &m), 0);
	assert_true(s.with_stdin);
	json_decref(m);
	assert_int_equal(
		decode("{\"process\":{\"cmd\":\"sh\"},\"pty\":{\"size\":{\"rows\":5,\"cols\":6}}}",
		       &s, &m),
		0);
	assert_true(s.pty && s.rows == 5 && s.cols == 6);
	json_decref(m);
}

static void test_start_refused(void **state)
{
	static const char *const bad[] = {
		"{}",
		"{\"process\":{}}",
		"{\"process\":{\"cmd\":\"\"}}",
		"{\"process\":{\"cmd\":1}}",
		"{\"process\":{\"cmd\":\"a\",\"args\":{}}}",
		"{\"process\":{\"cmd\":\"a\",\"args\":[1]}}",
		"{\"process\":{\"cmd\":\"a\",\"envs\":[]}}",
		"{\"process\":{\"cmd\":\"a\",\"envs\":{\"A\":1}}}",
		"{\"process\":{\"cmd\":\"a\",\"envs\":{\"A=B\":\"1\"}}}",
		"{\"process\":{\"cmd\":\"a\",\"envs\":{\"\":\"1\"}}}",
		"{\"process\":{\"cmd\":\"a\"},\"tag\":7}",
		"{\"process\":{\"cmd\":\"a\"},\"stdin\":\"yes\"}",
		"{\"process\":{\"cmd\":\"a\"},\"pty\":[]}",
	};
	struct envd_start s;
	json_t *m;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		assert_int_equal(decode(bad[i], &s, &m), -EREMOTEIO);
		assert_int_equal(e.code, RPC_INVALID_ARGUMENT);
		json_decref(m);
	}
}

static void test_selector(void **state)
{
	static const char *const bad[] = {
		"{}",
		"{\"process\":{}}",
		"{\"process\":{\"pid\":0}}",
		"{\"process\":{\"pid\":1,\"tag\":\"a\"}}",
		"{\"process\":{\"pid\":-1}}",
		"{\"process\":{\"pid\":2147483648}}",
		"{\"process\":{\"tag\":1}}",
	};
	struct envd_selector s;
	json_t *m = json_pack("{s:{s:s}}", "process", "pid", "12");

	(void)state;
	assert_int_equal(envd_decode_selector(m, &s, &e), 0);
	assert_int_equal(s.pid, 12);
	json_decref(m);
	m = json_pack("{s:{s:s}}", "process", "tag", "x");
	assert_int_equal(envd_decode_selector(m, &s, &e), 0);
	assert_string_equal(s.tag, "x");
	json_decref(m);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		m = json_loads(bad[i], 0, NULL);
		assert_int_equal(envd_decode_selector(m, &s, &e), -EREMOTEIO);
		json_decref(m);
	}
}

static void test_signal(void **state)
{
	static const struct {
		const char *text;
		int r;
		uint32_t signal;
	} cases[] = {
		{ "{\"signal\":\"SIGNAL_SIGKILL\"}", 0, 9 },
		{ "{\"signal\":9}", 0, 9 },
		{ "{\"signal\":\"SIGNAL_SIGTERM\"}", 0, 15 },
		{ "{\"signal\":15}", 0, 15 },
		{ "{\"signal\":\"SIGNAL_SIGHUP\"}", -EREMOTEIO, 0 },
		{ "{\"signal\":1}", -EREMOTEIO, 0 },
		{ "{}", -EREMOTEIO, 0 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		json_t *m = json_loads(cases[i].text, 0, NULL);
		uint32_t got = 0;

		assert_int_equal(envd_decode_signal(m, &got, &e), cases[i].r);
		assert_int_equal(got, cases[i].signal);
		json_decref(m);
	}
}

static void test_user(void **state)
{
	char user[RPC_USER_SIZE];

	(void)state;
	assert_int_equal(rpc_user_check("root", 4, user, &e), 0);
	assert_string_equal(user, "root");
	assert_int_equal(rpc_user_check("", 0, user, &e), -EREMOTEIO);
	assert_int_equal(e.code, RPC_UNAUTHENTICATED);
	assert_int_equal(rpc_user_check("a b", 3, user, &e), -EREMOTEIO);
	assert_int_equal(rpc_user_check("a\nb", 3, user, &e), -EREMOTEIO);
	assert_int_equal(rpc_user_check("a\0b", 3, user, &e), -EREMOTEIO);
	assert_int_equal(rpc_user_check("../x", 4, user, &e), -EREMOTEIO);
	assert_int_equal(rpc_user_check("123456789012345678901234567890123", 33, user, &e),
			 -EREMOTEIO);
}

/* --- events ----------------------------------------------------------------------------------------- */

static void test_exit_text(void **state)
{
	static const struct {
		struct wire_exit end;
		const char *text; /* NULL: cannot be */
	} cases[] = {
		{ { 0, 0, 0, 0 }, "exit status 0" },
		{ { 255, 0, 0, 0 }, "exit status 255" },
		{ { -1, 9, 0, 0 }, "signal: killed" },
		{ { -1, 9, 0, 1 }, "signal: killed" },
		{ { -1, 15, 0, 0 }, "signal: terminated" },
		{ { -1, 11, 1, 0 }, "signal: segmentation fault (core dumped)" },
		{ { -1, 2, 0, 0 }, "signal: interrupt" },
		{ { -1, 64, 0, 0 }, "signal: signal 64" },
		{ { -1, 16, 0, 0 }, "signal: signal 16" },
		{ { 256, 0, 0, 0 }, NULL },
		{ { -2, 0, 0, 0 }, NULL },
		{ { -1, 0, 0, 0 }, NULL },
		{ { 0, 9, 0, 0 }, NULL },
		{ { -1, 65, 0, 0 }, NULL },
		{ { -1, -1, 0, 0 }, NULL },
		{ { 0, 0, 1, 0 }, NULL },
		{ { -1, 9, 2, 0 }, NULL },
		{ { 0, 0, 0, 2 }, NULL },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		char text[ENVD_STATUS_SIZE] = "";

		assert_int_equal(envd_exit_text(&cases[i].end, text), cases[i].text ? 0 : -EPROTO);
		assert_string_equal(text, cases[i].text ? cases[i].text : "");
	}
}

static void expect(struct buf *out, const char *text)
{
	assert_int_equal(out->len, strlen(text));
	assert_memory_equal(out->data, text, out->len);
	out->len = 0;
}

static void test_events(void **state)
{
	struct buf out = BUF_INIT(1000);

	(void)state;
	assert_int_equal(envd_event_start(&out, 42), 0);
	expect(&out, "{\"event\":{\"start\":{\"pid\":42}}}");
	assert_int_equal(envd_event_data(&out, WIRE_OUT, "hi\n", 3), 0);
	expect(&out, "{\"event\":{\"data\":{\"stdout\":\"aGkK\"}}}");
	assert_int_equal(envd_event_data(&out, WIRE_ERR, "\xff", 1), 0);
	expect(&out, "{\"event\":{\"data\":{\"stderr\":\"/w==\"}}}");
	assert_int_equal(envd_event_data(&out, WIRE_PTY, "a", 1), 0);
	expect(&out, "{\"event\":{\"data\":{\"pty\":\"YQ==\"}}}");
	assert_int_equal(envd_event_end(&out, &(struct wire_exit){ .code = 0 }, ""), 0);
	expect(&out, "{\"event\":{\"end\":{\"exited\":true,\"status\":\"exit status 0\"}}}");
	assert_int_equal(envd_event_end(&out, &(struct wire_exit){ .code = 3 }, ""), 0);
	expect(&out,
	       "{\"event\":{\"end\":{\"exitCode\":3,\"exited\":true,\"status\":\"exit status 3\","
	       "\"error\":\"exit status 3\"}}}");
	assert_int_equal(envd_event_end(&out, &(struct wire_exit){ .code = -1, .signal = 9 }, ""),
			 0);
	expect(&out, "{\"event\":{\"end\":{\"exitCode\":-1,\"exited\":false,"
		     "\"status\":\"signal: killed\",\"error\":\"signal: killed\"}}}");
	assert_int_equal(envd_event_end(&out, &(struct wire_exit){ .code = -1, .signal = 9 },
					"it was too large"),
			 0);
	expect(&out, "{\"event\":{\"end\":{\"exitCode\":-1,\"exited\":false,\"status\":\"signal: "
		     "killed\",\"error\":\"signal: killed; it was too large\"}}}");
	buf_done(&out);
}

static void expect_json(json_t *got, const char *text)
{
	char *dumped = json_dumps(got, JSON_COMPACT | JSON_SORT_KEYS);

	assert_non_null(dumped);
	assert_string_equal(dumped, text);
	free(dumped);
	json_decref(got);
}

static void test_label(void **state)
{
	struct buf label = BUF_INIT(ENVD_LABEL_MAX);
	struct envd_start s;
	json_t *m;

	(void)state;
	assert_int_equal(
		decode("{\"process\":{\"cmd\":\"a\",\"args\":[\"b\"],\"envs\":{\"C\":\"d\"},"
		       "\"cwd\":\"/e\"},\"tag\":\"f\"}",
		       &s, &m),
		0);
	assert_int_equal(envd_label_make(&s, &label), 0);
	expect_json(
		envd_label_read(9, label.data, label.len),
		"{\"config\":{\"args\":[\"b\"],\"cmd\":\"a\",\"cwd\":\"/e\",\"envs\":{\"C\":\"d\"}},"
		"\"pid\":9,\"tag\":\"f\"}");
	json_decref(m);
	buf_done(&label);
}

/* A label that would be too long loses its variables first, then its arguments. */
static void test_label_large(void **state)
{
	struct buf label = BUF_INIT(ENVD_LABEL_MAX);
	static char large[ENVD_LABEL_MAX + 1];
	json_t *args, *envs;
	struct envd_start s = { .cmd = "a" };

	(void)state;
	memset(large, 'x', sizeof(large) - 1);
	s.args = args = json_pack("[s]", "b");
	s.envs = envs = json_pack("{s:s}", "C", large);
	assert_int_equal(envd_label_make(&s, &label), 0);
	expect_json(envd_label_read(1, label.data, label.len),
		    "{\"config\":{\"args\":[\"b\"],\"cmd\":\"a\"},\"pid\":1}");
	label.len = 0;
	assert_int_equal(json_array_append_new(args, json_string(large)), 0);
	assert_int_equal(envd_label_make(&s, &label), 0);
	expect_json(envd_label_read(1, label.data, label.len),
		    "{\"config\":{\"cmd\":\"a\"},\"pid\":1}");
	json_decref(args);
	json_decref(envs);
	buf_done(&label);
}

/* It comes from the box: nothing but the known members of the right type goes on to a client. */
static void test_label_hostile(void **state)
{
	static const char *const bad[] = {
		"",
		"{",
		"[]",
		"null",
		"{\"config\":1,\"tag\":2}",
		"{\"config\":{\"cmd\":[],\"args\":\"x\",\"envs\":[1],\"cwd\":{}}}",
		"{\"config\":{\"args\":[1],\"envs\":{\"a\":[]},\"more\":1},\"other\":true}",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		expect_json(envd_label_read(1, bad[i], strlen(bad[i])),
			    "{\"config\":{},\"pid\":1}");
}

static void test_command_line(void **state)
{
	struct envd_start s = { .cmd = "/bin/bash" };
	json_t *args = json_pack("[sss]", "-l", "-c", "echo h\xc3\xa4llo");
	char line[8], longer[40];

	(void)state;
	envd_command_line(&s, longer, sizeof(longer));
	assert_string_equal(longer, "/bin/bash");
	s.args = args;
	envd_command_line(&s, longer, sizeof(longer));
	assert_string_equal(longer, "echo h\xc3\xa4llo");
	envd_command_line(&s, line, sizeof(line)); /* the cut falls into the character */
	assert_string_equal(line, "echo h");
	json_decref(args);
	s.args = args = json_pack("[ss]", "-i", "-l");
	envd_command_line(&s, longer, sizeof(longer));
	assert_string_equal(longer, "/bin/bash -i -l");
	json_decref(args);
}

/* --- files ------------------------------------------------------------------------------------------ */

struct made {
	struct wire_fs_entry head;
	char texts[200];
	size_t len;
};

static struct made make_entry(const char *path, const char *target, const char *attrs,
			      size_t attrs_len)
{
	struct made m = { .head = { .size = 5,
				    .mtime_s = 1700000000,
				    .mtime_ns = 5000,
				    .type = WIRE_FS_FILE,
				    .mode = 0644 } };
	int n = snprintf(m.texts, sizeof(m.texts), "%suserstaff%s", path, target);

	m.head.path_len = (uint16_t)strlen(path);
	m.head.owner_len = 4;
	m.head.group_len = 5;
	m.head.target_len = (uint16_t)strlen(target);
	m.head.is_link = *target != '\0';
	m.head.attrs_len = (uint32_t)attrs_len;
	memcpy(m.texts + n, attrs, attrs_len);
	m.len = sizeof(m.head) + (size_t)n + attrs_len;
	return m;
}

static void test_entry(void **state)
{
	struct made m = make_entry("/home/user/a", "", "", 0);
	struct envd_entry entry;

	(void)state;
	assert_int_equal(envd_entry_read(&m, m.len, &entry), 0);
	expect_json(
		envd_entry_json(&entry),
		"{\"group\":\"staff\",\"mode\":420,\"modifiedTime\":\"2023-11-14T22:13:20.000005000Z\","
		"\"name\":\"a\",\"owner\":\"user\",\"path\":\"/home/user/a\","
		"\"permissions\":\"-rw-r--r--\",\"size\":\"5\",\"type\":\"FILE_TYPE_FILE\"}");
	m = make_entry("/l", "/home/user", "k\0v\0", 4);
	m.head.type = WIRE_FS_DIR;
	m.head.mode = 0755;
	assert_int_equal(envd_entry_read(&m, m.len, &entry), 0);
	expect_json(
		envd_entry_json(&entry),
		"{\"group\":\"staff\",\"metadata\":{\"k\":\"v\"},\"mode\":493,"
		"\"modifiedTime\":\"2023-11-14T22:13:20.000005000Z\",\"name\":\"l\",\"owner\":\"user\","
		"\"path\":\"/l\",\"permissions\":\"Lrwxrwxrwx\",\"size\":\"5\","
		"\"symlinkTarget\":\"/home/user\",\"type\":\"FILE_TYPE_DIRECTORY\"}");
	m = make_entry("/", "", "", 0);
	assert_int_equal(envd_entry_read(&m, m.len, &entry), 0);
	assert_null(envd_entry_attrs(&entry));
}

static void test_broken_link(void **state)
{
	struct made m = make_entry("/l", "", "", 0);
	struct envd_entry entry;
	json_t *info;

	(void)state;
	m.head.is_link = 1;
	assert_int_equal(envd_entry_read(&m, m.len, &entry), 0);
	info = envd_entry_json(&entry);
	assert_string_equal(json_string_value(json_object_get(info, "type")),
			    "FILE_TYPE_UNSPECIFIED");
	assert_null(json_object_get(info, "symlinkTarget"));
	json_decref(info);
}

/* AG-06, AG-07: what an agent may not say about a file. */
static void test_entry_hostile(void **state)
{
	const struct made good = make_entry("/a/b", "/c", "k\0v\0", 4);
	struct envd_entry entry;
	struct made m;

	(void)state;
	assert_int_equal(envd_entry_read(&good, good.len, &entry), 0);
	for (size_t n = 0; n < good.len; n++)
		assert_int_equal(envd_entry_read(&good, n, &entry), -EPROTO);
	assert_int_equal(envd_entry_read(&good, good.len + 1, &entry), -EPROTO);
#define BAD(change)                                                                                \
	m = good;                                                                                  \
	change;                                                                                    \
	assert_int_equal(envd_entry_read(&m, m.len, &entry), -EPROTO)
	BAD(m.head.path_len = 0);
	BAD(m.head.path_len = UINT16_MAX);
	BAD(m.head.attrs_len = UINT32_MAX);
	BAD(m.head.type = 3);
	BAD(m.head.mode = 010000);
	BAD(m.head.is_link = 2);
	BAD(m.head.is_link = 0); /* but has a target */
	BAD(m.head.mtime_ns = 1000000000);
	BAD(m.head.size = UINT64_MAX);
	BAD(m.head.zero = 1);
	BAD(m.texts[0] = 'x');                          /* not absolute */
	BAD(m.texts[2] = '\0');                         /* a NUL in the path */
	BAD(m.texts[m.len - sizeof(m.head) - 1] = 'x'); /* the last value does not end */
	BAD(m.texts[m.len - sizeof(m.head) - 3] = 'x'); /* a key without a value */
#undef BAD
}

static void test_permissions(void **state)
{
	static const struct {
		uint32_t type, mode, link;
		const char *text;
	} cases[] = {
		{ WIRE_FS_FILE, 0, 0, "----------" },
		{ WIRE_FS_FILE, 0755, 0, "-rwxr-xr-x" },
		{ WIRE_FS_DIR, 0700, 0, "drwx------" },
		{ WIRE_FS_DIR, 01777, 0, "dtrwxrwxrwx" },
		{ WIRE_FS_FILE, 04755, 0, "urwxr-xr-x" },
		{ WIRE_FS_FILE, 06711, 0, "ugrwx--x--x" },
		{ WIRE_FS_DIR, 07777, 0, "dugtrwxrwxrwx" },
		{ WIRE_FS_FILE, 0, 1, "Lrwxrwxrwx" },
		{ WIRE_FS_OTHER, 0600, 0, "?rw-------" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct wire_fs_entry head = { .type = cases[i].type,
					      .mode = cases[i].mode,
					      .is_link = cases[i].link };
		char text[ENVD_PERMISSIONS_SIZE];

		envd_permissions(&head, text);
		assert_string_equal(text, cases[i].text);
	}
}

static void test_time(void **state)
{
	char text[ENVD_TIME_SIZE];

	(void)state;
	envd_time(0, 1, text);
	assert_string_equal(text, "1970-01-01T00:00:00.000000001Z");
	envd_time(INT64_MAX, 0, text);
	assert_string_equal(text, "9999-12-31T23:59:59.000000000Z");
	envd_time(INT64_MIN, 0, text);
	assert_string_equal(text, "0001-01-01T00:00:00.000000000Z");
}

/* --- headers ---------------------------------------------------------------------------------------- */

static void test_range(void **state)
{
	static const struct {
		const char *header;
		uint64_t size;
		int r;
		uint64_t offset, length;
	} cases[] = {
		{ NULL, 100, 0, 0, 0 },
		{ "bytes=0-0", 100, 1, 0, 1 },
		{ "bytes=10-19", 100, 1, 10, 10 },
		{ "Bytes=10-", 100, 1, 10, 90 },
		{ "bytes=-10", 100, 1, 90, 10 },
		{ "bytes=-1000", 100, 1, 0, 100 },
		{ "bytes=90-1000", 100, 1, 90, 10 },
		{ "bytes=99-99", 100, 1, 99, 1 },
		{ "bytes=0-18446744073709551615", 100, 1, 0, 100 },
		{ "bytes=100-", 100, -ERANGE, 0, 0 },
		{ "bytes=-0", 100, -ERANGE, 0, 0 },
		{ "bytes=0-", 0, -ERANGE, 0, 0 },
		{ "bytes=-1", 0, -ERANGE, 0, 0 },
		/* not one range of bytes: all of the file */
		{ "bytes=19-10", 100, 0, 0, 0 },
		{ "bytes=0-1,5-6", 100, 0, 0, 0 },
		{ "bytes=-", 100, 0, 0, 0 },
		{ "bytes=", 100, 0, 0, 0 },
		{ "bytes=a-b", 100, 0, 0, 0 },
		{ "bytes=1-2x", 100, 0, 0, 0 },
		{ "bytes= 1-2", 100, 0, 0, 0 },
		{ "lines=1-2", 100, 0, 0, 0 },
		{ "bytes=18446744073709551616-", 100, 0, 0, 0 },
		{ "bytes=000000000000000000000001-", 100, 0, 0, 0 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		uint64_t offset = 0, length = 0;

		assert_int_equal(envd_range_parse(cases[i].header, cases[i].size, &offset, &length),
				 cases[i].r);
		assert_int_equal(offset, cases[i].offset);
		assert_int_equal(length, cases[i].length);
	}
}

static void test_conditions(void **state)
{
	char etag[ENVD_ETAG_SIZE], other[ENVD_ETAG_SIZE], list[300];
	int64_t when = 0;
	char date[HEAD_DATE_SIZE];

	(void)state;
	envd_etag(1, 2, 3, etag);
	envd_etag(1, 2, 4, other);
	assert_true(envd_etag_matches(etag, etag));
	assert_false(envd_etag_matches(other, etag));
	assert_false(envd_etag_matches(NULL, etag));
	assert_false(envd_etag_matches("", etag));
	assert_true(envd_etag_matches("*", etag));
	(void)snprintf(list, sizeof(list), "%s, W/%s", other, etag);
	assert_true(envd_etag_matches(list, etag));
	head_date(784111777, date);
	assert_string_equal(date, "Sun, 06 Nov 1994 08:49:37 GMT");
	assert_true(envd_date_parse(date, &when));
	assert_int_equal(when, 784111777);
	assert_false(envd_date_parse(NULL, &when));
	assert_false(envd_date_parse("yesterday", &when));
	head_date(INT64_MAX, date);
	assert_string_equal(date, "");
}

static void test_identity(void **state)
{
	(void)state;
	assert_true(envd_gzip_wanted("gzip"));
	assert_true(envd_gzip_wanted("GZIP;q=0.5, identity; q=0"));
	assert_false(envd_gzip_wanted(NULL));
	assert_false(envd_gzip_wanted(""));
	assert_false(envd_gzip_wanted("gzip, deflate"));
	assert_false(envd_gzip_wanted("gzip;q=0"));
	assert_false(envd_gzip_wanted("gzip, *"));
	assert_true(envd_identity_accepted(NULL));
	assert_true(envd_identity_accepted(""));
	assert_true(envd_identity_accepted("gzip"));
	assert_true(envd_identity_accepted("gzip, deflate"));
	assert_true(envd_identity_accepted("*"));
	assert_true(envd_identity_accepted("*;q=0, identity"));
	assert_true(envd_identity_accepted("identity;q=0.5"));
	assert_false(envd_identity_accepted("identity;q=0"));
	assert_false(envd_identity_accepted("gzip, identity; q=0.0"));
	assert_false(envd_identity_accepted("gzip;q=1, *;q=0"));
}

static void test_disposition(void **state)
{
	char text[ENVD_DISPOSITION_SIZE], name[400];

	(void)state;
	envd_disposition("/tmp/a b.txt", text);
	assert_string_equal(text, "inline; filename=\"a_b.txt\"; filename*=UTF-8''a%20b.txt");
	envd_disposition("x\r\nSet-Cookie: \"y\"", text);
	assert_string_equal(text, "inline; filename=\"x__Set-Cookie___y_\"; "
				  "filename*=UTF-8''x%0D%0ASet-Cookie%3A%20%22y%22");
	envd_disposition("\xc3\xa4", text);
	assert_string_equal(text, "inline; filename=\"__\"; filename*=UTF-8''%C3%A4");
	envd_disposition("/tmp/", text);
	assert_string_equal(text, "inline");
	memset(name, 0xff, sizeof(name));
	name[255] = '\0';
	envd_disposition(name, text);
	assert_int_equal(strlen(text),
			 strlen("inline; filename=\"\"; filename*=UTF-8''") + 4 * 255);
	name[255] = 'x';
	name[256] = '\0';
	envd_disposition(name, text);
	assert_string_equal(text, "inline");
}

static void test_boundary(void **state)
{
	static const char *const good[] = {
		"multipart/form-data; boundary=----formdata-undici-012345678901",
		"multipart/form-data; boundary=\"a=b\"",
		"multipart/form-data;BOUNDARY=x; charset=utf-8",
	};
	static const char *const bad[] = {
		"multipart/form-data",
		"multipart/form-data; boundary=",
		"multipart/form-data; boundary=\"",
		"multipart/form-data; boundary=\"a",
		"multipart/form-data; boundary=\"\"",
		"multipart/form-data; boundary=a\"",
		"multipart/form-data; boundary=a; boundary=b",
		"multipart/form-data; boundary=a\x01",
		"multipart/form-data; boundary=aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(good); i++)
		assert_true(envd_boundary_ok(good[i]));
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_false(envd_boundary_ok(bad[i]));
}

static void test_part_name(void **state)
{
	char name[8];

	(void)state;
	assert_int_equal(envd_part_name("a%22b%0d%0A", name, sizeof(name)), 0);
	assert_string_equal(name, "a\"b\r\n");
	assert_int_equal(envd_part_name("%2", name, sizeof(name)), 0);
	assert_string_equal(name, "%2");
	assert_int_equal(envd_part_name("%2fx", name, sizeof(name)), 0);
	assert_string_equal(name, "%2fx");
	assert_int_equal(envd_part_name("1234567", name, sizeof(name)), 0);
	assert_int_equal(envd_part_name("12345678", name, sizeof(name)), -ENAMETOOLONG);
}

static void test_attributes(void **state)
{
	char key[ENVD_ATTR_KEY_MAX + 1], header[300] = "x-metadata-";

	(void)state;
	assert_int_equal(envd_attr_key("X-Metadata-Author", key), 0);
	assert_string_equal(key, "author");
	assert_int_equal(envd_attr_key("Content-Type", key), -ENOENT);
	assert_int_equal(envd_attr_key("X-Metadata-", key), -EINVAL);
	memset(header + 11, 'k', ENVD_ATTR_KEY_MAX);
	assert_int_equal(envd_attr_key(header, key), 0);
	header[11 + ENVD_ATTR_KEY_MAX] = 'k';
	assert_int_equal(envd_attr_key(header, key), -EINVAL);
	assert_true(envd_attr_value_ok(""));
	assert_true(envd_attr_value_ok("a b~"));
	assert_false(envd_attr_value_ok("a\tb"));
	assert_false(envd_attr_value_ok("\xc3\xa4"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_start),        cmocka_unit_test(test_start_refused),
		cmocka_unit_test(test_selector),     cmocka_unit_test(test_signal),
		cmocka_unit_test(test_user),         cmocka_unit_test(test_exit_text),
		cmocka_unit_test(test_events),       cmocka_unit_test(test_label),
		cmocka_unit_test(test_label_large),  cmocka_unit_test(test_label_hostile),
		cmocka_unit_test(test_command_line), cmocka_unit_test(test_entry),
		cmocka_unit_test(test_broken_link),  cmocka_unit_test(test_entry_hostile),
		cmocka_unit_test(test_permissions),  cmocka_unit_test(test_time),
		cmocka_unit_test(test_range),        cmocka_unit_test(test_conditions),
		cmocka_unit_test(test_identity),     cmocka_unit_test(test_disposition),
		cmocka_unit_test(test_boundary),     cmocka_unit_test(test_attributes),
		cmocka_unit_test(test_part_name),
	};

	return cmocka_run_group_tests_name("envd", tests, NULL, NULL);
}
