/* SPDX-License-Identifier: Apache-2.0 */
/* What a program in a box answers, and which headers pass the border between it and its visitors. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "server/port/head.h"
#include "server/port/rules.h"

static struct port_answer a;
static char memory[PORT_HEAD_MAX + 64];

static int read_head(const char *text, bool to_head)
{
	size_t len = strlen(text);

	assert_true(len < sizeof(memory));
	(void)snprintf(memory, sizeof(memory), "%sX", text); /* the X is not to be touched */
	assert_int_equal(port_head_end(memory, len), len);
	return port_answer_read(&a, memory, len, to_head);
}

static void good_heads(void **state)
{
	static const struct {
		const char *head;
		bool to_head;
		unsigned status;
		enum port_body body;
		uint64_t length;
		bool keeps;
	} heads[] = {
		{ "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", false, 200, PORT_BODY_LENGTH, 5,
		  true },
		{ "HTTP/1.1 200 OK\r\nContent-Length:5  \r\n\r\n", false, 200, PORT_BODY_LENGTH, 5,
		  true },
		{ "HTTP/1.1 200\r\nContent-Length: 0\r\n\r\n", false, 200, PORT_BODY_LENGTH, 0,
		  true },
		{ "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\n", false, 200,
		  PORT_BODY_LENGTH, 5, false },
		{ "HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\n", false, 200, PORT_BODY_LENGTH, 5,
		  false },
		{ "HTTP/1.0 200 OK\r\nContent-Length: 5\r\nConnection: keep-alive\r\n\r\n", false,
		  200, PORT_BODY_LENGTH, 5, true },
		{ "HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\n\r\n", false, 200,
		  PORT_BODY_CHUNKED, UINT64_MAX, true },
		{ "HTTP/1.1 404 Not here\r\nX: y\r\n\r\n", false, 404, PORT_BODY_TO_END, UINT64_MAX,
		  false },
		{ "HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\n", true, 200, PORT_BODY_NONE, 7,
		  true },
		{ "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", true, 200,
		  PORT_BODY_NONE, UINT64_MAX, true },
		{ "HTTP/1.1 204 None\r\n\r\n", false, 204, PORT_BODY_NONE, UINT64_MAX, true },
		{ "HTTP/1.1 304 Same\r\nContent-Length: 7\r\n\r\n", false, 304, PORT_BODY_NONE, 7,
		  true },
		{ "HTTP/1.1 100 Continue\r\n\r\n", false, 100, PORT_BODY_NONE, UINT64_MAX, true },
		{ "HTTP/1.1 101 Switching\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n",
		  false, 101, PORT_BODY_NONE, UINT64_MAX, true },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(heads); i++) {
		if (read_head(heads[i].head, heads[i].to_head) < 0)
			fail_msg("%s: %s", heads[i].head, a.broken);
		assert_int_equal(a.status, heads[i].status);
		assert_int_equal(a.body, heads[i].body);
		assert_int_equal(a.length, heads[i].length);
		assert_int_equal(a.keeps, heads[i].keeps);
		assert_int_equal(memory[strlen(heads[i].head)], 'X');
	}
}

static void bad_heads(void **state)
{
	static const char *const heads[] = {
		"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding:\r\n\r\n",
		"HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length: +5\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length: 5, 5\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length: 0x5\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length:\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length: 9223372036854775808\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n",
		"HTTP/1.1 200 OK\nX: y\r\n\r\n",
		"HTTP/1.1 200 OK\r\nX: y\nZ: w\r\n\r\n",
		"HTTP/1.1 200 OK\r\nX: y\rZ: w\r\n\r\n",
		"HTTP/1.1 200 OK\r\nX: y\r\n folded\r\n\r\n",
		"HTTP/1.1 200 OK\r\n\tX: y\r\n\r\n",
		"HTTP/1.1 200 OK\r\nX y: z\r\n\r\n",
		"HTTP/1.1 200 OK\r\nX : z\r\n\r\n",
		"HTTP/1.1 200 OK\r\n: z\r\n\r\n",
		"HTTP/1.1 200 OK\r\nX(: z\r\n\r\n",
		"HTTP/1.1 200 OK\r\nX\r\n\r\n",
		"HTTP/1.1 200 OK\r\nX: a\x01z\r\n\r\n",
		"HTTP/1.1 200 OK\r\nX: a\x7fz\r\n\r\n",
		"HTTP/1.1 099 Low\r\n\r\n",
		"HTTP/1.1 600 High\r\n\r\n",
		"HTTP/1.1 20 Short\r\n\r\n",
		"HTTP/2.0 200 OK\r\n\r\n",
		"HTTP/0.9 200 OK\r\n\r\n",
		"HTTP/1.2 200 OK\r\n\r\n",
		"ICY 200 OK\r\n\r\n",
		"GET / HTTP/1.1\r\n\r\n",
		"\r\nHTTP/1.1 200 OK\r\n\r\n",
		" HTTP/1.1 200 OK\r\n\r\n",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(heads); i++) {
		if (read_head(heads[i], false) != -EPROTO)
			fail_msg("accepted: %s", heads[i]);
		assert_non_null(a.broken);
	}
}

/* A head with this many fields, which ends as heads do. */
static size_t make_fields(size_t n)
{
	size_t len = (size_t)snprintf(memory, sizeof(memory), "HTTP/1.1 200 OK\r\n");

	for (size_t i = 0; i < n; i++)
		len += (size_t)snprintf(memory + len, sizeof(memory) - len, "X-%zu: %zu\r\n", i, i);
	return len + (size_t)snprintf(memory + len, sizeof(memory) - len, "\r\n");
}

static void many_fields(void **state)
{
	(void)state;
	assert_int_equal(port_answer_read(&a, memory, make_fields(PORT_FIELDS_MAX), false), 0);
	assert_int_equal(a.n_fields, PORT_FIELDS_MAX);
	assert_string_equal(a.field[PORT_FIELDS_MAX - 1].name, "X-127");
	assert_string_equal(a.field[PORT_FIELDS_MAX - 1].value, "127");
	assert_int_equal(port_answer_read(&a, memory, make_fields(PORT_FIELDS_MAX + 1), false),
			 -EPROTO);
}

static void fields(void **state)
{
	(void)state;
	assert_int_equal(read_head("HTTP/1.1 200 OK\r\nEmpty:\r\nBlank:  \r\nA:  b c \t\r\n"
				   "Set-Cookie: 1\r\nSet-Cookie: 2\r\n\r\n",
				   false),
			 0);
	assert_int_equal(a.n_fields, 5);
	assert_string_equal(a.field[0].name, "Empty");
	assert_string_equal(a.field[0].value, "");
	assert_string_equal(a.field[1].name, "Blank");
	assert_string_equal(a.field[1].value, "");
	assert_string_equal(a.field[2].value, "b c");
	assert_string_equal(a.field[4].value, "2");
	assert_string_equal(port_answer_get(&a, "set-cookie"), "1");
	assert_null(port_answer_get(&a, "B"));
}

static void head_ends(void **state)
{
	(void)state;
	assert_int_equal(port_head_end("a\r\n\r\nb", 6), 5);
	assert_int_equal(port_head_end("a\r\n\r", 4), 0);
	assert_int_equal(port_head_end("a\n\n", 3), 0);
	assert_int_equal(port_head_end("", 0), 0);
}

/* --- chunks ------------------------------------------------------------------------------------------------- */

static const char chunked_head[] = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";

/* The chunks in pieces of a size: what was in them, or -EPROTO. */
static ssize_t unchunk(const char *text, size_t piece, char *ret, bool *ret_end, size_t *ret_rest)
{
	size_t left = strlen(text), out = 0;

	assert_int_equal(read_head(chunked_head, false), 0);
	*ret_end = false;
	*ret_rest = 0;
	while (left > 0 && !*ret_end) {
		size_t n = MIN(piece, left);
		ssize_t got;

		memcpy(ret + out, text, n);
		got = port_answer_unchunk(&a, ret + out, n, ret_end, ret_rest);
		if (got < 0)
			return got;
		assert_true((size_t)got <= n);
		out += (size_t)got;
		text += n;
		left -= n;
	}
	*ret_rest += left;
	return (ssize_t)out;
}

static void chunks(void **state)
{
	static const char text[] =
		"5\r\nhello\r\n1;a=\"b\"\r\n,\r\n6 \r\n world\r\n0\r\nX-Trailer: 1\r\n\r\nmore";
	char out[sizeof(text)];
	size_t rest;
	bool end;

	(void)state;
	for (size_t piece = 1; piece < sizeof(text); piece++) {
		assert_int_equal(unchunk(text, piece, out, &end, &rest), 12);
		assert_memory_equal(out, "hello, world", 12);
		assert_true(end);
		assert_int_equal(rest, 4);
	}
	assert_int_equal(unchunk("5\r\nhello\r\n", 3, out, &end, &rest), 5);
	assert_false(end);
}

static void bad_chunks(void **state)
{
	static const char *const bad[] = {
		"g\r\n",
		"-1\r\n",
		"\r\n",
		"5\nhello\r\n0\r\n\r\n",
		"5\r\nhelloX\r\n",
		"5\r\nhello\n0\r\n\r\n",
		"fffffffffffffffff\r\n",
		"0x5\r\nhello\r\n",
		" 5\r\nhello\r\n",
	};
	char out[64];
	size_t rest;
	bool end;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		for (size_t piece = 1; piece < 20; piece += 6)
			if (unchunk(bad[i], piece, out, &end, &rest) != -EPROTO)
				fail_msg("accepted: %s", bad[i]);
}

/* --- what passes ---------------------------------------------------------------------------------------------- */

static void goes_in(void **state)
{
	(void)state;
	assert_true(port_field_goes_in("Accept", "*", NULL));
	assert_true(port_field_goes_in("Authorization", "Bearer abc", NULL));
	assert_true(port_field_goes_in("Authorization", "Basic e2b_", NULL));
	assert_true(port_field_goes_in("Cookie", "a=b", "keep-alive"));
	assert_true(port_field_goes_in("X-Api-Key-2", "a", NULL));
	assert_false(port_field_goes_in("authorization", "bearer e2b_0", NULL));
	assert_false(port_field_goes_in("x-api-key", "a", NULL));
	assert_false(port_field_goes_in("X-ACCESS-TOKEN", "a", NULL));
	assert_false(port_field_goes_in("e2b-traffic-access-token", "a", NULL));
	assert_false(port_field_goes_in("e2b-sandbox-id", "a", NULL));
	assert_false(port_field_goes_in("E2B-Sandbox-Port", "a", NULL));
	assert_false(port_field_goes_in("content-length", "1", NULL));
	assert_false(port_field_goes_in("TRANSFER-ENCODING", "chunked", NULL));
	assert_false(port_field_goes_in("te", "trailers", NULL));
	assert_false(port_field_goes_in("x-forwarded-for", "1", NULL));
	assert_false(port_field_goes_in("Mine", "1", "close,\tmine , other"));
	assert_true(port_field_goes_in("Mine", "1", "close, mine2"));
}

static bool goes_out_as(const char *name, const char *value, bool own_address)
{
	char n[64], v[64];
	struct port_field f = { .name = n, .value = v };

	f.name_len = (size_t)snprintf(n, sizeof(n), "%s", name);
	f.value_len = (size_t)snprintf(v, sizeof(v), "%s", value);
	return port_field_goes_out(&a, &f, own_address);
}

static void goes_out(void **state)
{
	(void)state;
	assert_int_equal(read_head("HTTP/1.1 200 OK\r\nConnection: close, Private\r\n\r\n", false),
			 0);
	assert_true(goes_out_as("Set-Cookie", "a", false));
	assert_false(goes_out_as("set-cookie", "a", true));
	assert_false(goes_out_as("clear-site-data", "*", true));
	assert_false(goes_out_as("service-worker-allowed", "/", true));
	assert_false(goes_out_as("cache-control", "public", true));
	assert_true(goes_out_as("cache-control", "public", false));
	assert_true(goes_out_as("Content-Type", "text/html", true));
	for (int own = 0; own < 2; own++) {
		assert_false(goes_out_as("private", "1", own));
		assert_false(goes_out_as("connection", "close", own));
		assert_false(goes_out_as("Transfer-encoding", "chunked", own));
		assert_false(goes_out_as("Content-length", "1", own));
		assert_false(goes_out_as("Upgrade", "h2c", own));
		assert_false(goes_out_as("Empty", "", own));
	}
}

static void masks(void **state)
{
	static const char *const bad[] = { "",        "a b", "a\r\nb", "a/b",
					   "${HOST}", "$",   "a@b",    "caf\xc3\xa9" };
	char host[32];

	(void)state;
	assert_int_equal(host_mask("localhost:${PORT}", 3000, host, sizeof(host)), 0);
	assert_string_equal(host, "localhost:3000");
	assert_int_equal(host_mask("${PORT}.${PORT}.test", 65535, host, sizeof(host)), 0);
	assert_string_equal(host, "65535.65535.test");
	assert_int_equal(host_mask("[::1]:80", 1, host, sizeof(host)), 0);
	assert_int_equal(host_mask("0123456789012345678901234567890", 1, host, sizeof(host)), 0);
	assert_int_equal(host_mask("01234567890123456789012345678901", 1, host, sizeof(host)),
			 -EINVAL);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_false(host_mask_ok(bad[i]));
}

static void lists(void **state)
{
	(void)state;
	assert_true(port_list_has("Upgrade", "upgrade"));
	assert_true(port_list_has("keep-alive,\tUpgrade ,x", "upgrade"));
	assert_false(port_list_has("Upgraded", "upgrade"));
	assert_false(port_list_has("", "upgrade"));
	assert_false(port_list_has(NULL, "upgrade"));
	assert_false(port_list_has(", ,", "upgrade"));
}

/* --- requests ------------------------------------------------------------------------------------------- */

static struct port_head asked;

static bool read_request(const char *text)
{
	(void)snprintf(memory, sizeof(memory), "%s", text);
	return port_head_read(&asked, memory, strlen(text));
}

static void express_heads(void **state)
{
	(void)state;
	assert_true(read_request("GET /a?b=%20c HTTP/1.1\r\nHost: 1-x.localhost\r\nA:b\r\n"
				 "Empty:\r\nC: \t d e \t\r\n\r\nGET /next"));
	assert_int_equal(asked.len,
			 strlen("GET /a?b=%20c HTTP/1.1\r\nHost: 1-x.localhost\r\nA:b\r\n"
				"Empty:\r\nC: \t d e \t\r\n\r\n"));
	assert_string_equal(asked.method, "GET");
	assert_string_equal(asked.target, "/a?b=%20c");
	assert_string_equal(asked.host, "1-x.localhost");
	assert_int_equal(asked.n_fields, 4);
	assert_string_equal(asked.field[1].name, "A");
	assert_string_equal(asked.field[1].value, "b");
	assert_string_equal(asked.field[2].value, "");
	assert_string_equal(asked.field[3].value, "d e");
	assert_false(asked.to_head || asked.last || asked.connection || asked.traffic_token);
	assert_string_equal(memory + asked.len, "GET /next");
	assert_true(read_request("HEAD / HTTP/1.1\r\nhost: h\r\nConnection: X, close\r\n"
				 "e2b-traffic-access-token: t\r\n\r\n"));
	assert_true(asked.to_head && asked.last);
	assert_string_equal(asked.connection, "X, close");
	assert_string_equal(asked.traffic_token, "t");
}

/* Whatever could be read in two ways, has a body, or changes the protocol goes to the library. */
static void other_heads(void **state)
{
	static const char *const heads[] = {
		"GET / HTTP/1.1\r\nHost: h\r\n",
		"GET / HTTP/1.1\nHost: h\n\n",
		"GET / HTTP/1.1\r\nHost: h\r\nX: a\nY: b\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: h\r\nX: a\r\n folded\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: h\r\nX: a\rb\r\n\r\n",
		"\r\nGET / HTTP/1.1\r\nHost: h\r\n\r\n",
		"GET / HTTP/1.0\r\nHost: h\r\n\r\n",
		"GET / HTTP/1.1 \r\nHost: h\r\n\r\n",
		"GET  / HTTP/1.1\r\nHost: h\r\n\r\n",
		"GET /a b HTTP/1.1\r\nHost: h\r\n\r\n",
		"GET /a#b HTTP/1.1\r\nHost: h\r\n\r\n",
		"GET /\x80 HTTP/1.1\r\nHost: h\r\n\r\n",
		"GET http://h/ HTTP/1.1\r\nHost: h\r\n\r\n",
		"get / HTTP/1.1\r\nHost: h\r\n\r\n",
		"POST / HTTP/1.1\r\nHost: h\r\n\r\n",
		"OPTIONS * HTTP/1.1\r\nHost: h\r\n\r\n",
		"GET / HTTP/1.1\r\n\r\n",
		"GET / HTTP/1.1\r\nX: h\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: h\r\nHost: h\r\n\r\n",
		"GET / HTTP/1.1\r\nHost : h\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: h\r\n: x\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: h\r\nnothing\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: h\r\na b: x\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: h\r\ntransfer-encoding: chunked\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: h\r\nUpgrade: websocket\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: h\r\nConnection: a\r\nConnection: close\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: h\r\nAuthorization: a\r\nauthorization: b\r\n\r\n",
		("GET / HTTP/1.1\r\nHost: h\r\nE2B-Traffic-Access-Token: a\r\n"
		 "E2B-Traffic-Access-Token: a\r\n\r\n"),
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(heads); i++)
		if (read_request(heads[i]))
			fail_msg("taken: %s", heads[i]);
}

/* A NUL ends nothing, and no head is larger than the library would take. */
static void odd_sizes(void **state)
{
	static const char nul[] = "GET / HTTP/1.1\r\nHost: h\0evil\r\n\r\n";
	static char text[PORT_HEAD_MAX];
	size_t n = (size_t)snprintf(text, sizeof(text), "GET / HTTP/1.1\r\nHost: h\r\n");

	(void)state;
	memcpy(memory, nul, sizeof(nul));
	assert_false(port_head_read(&asked, memory, sizeof(nul) - 1));
	for (int i = 0; i < HTTP_HEADERS_MAX - 1; i++)
		n += (size_t)snprintf(text + n, sizeof(text) - n, "X%d: y\r\n", i);
	(void)snprintf(text + n, sizeof(text) - n, "\r\n");
	assert_true(read_request(text));
	(void)snprintf(text + n, sizeof(text) - n, "One: more\r\n\r\n");
	assert_false(read_request(text));
	n = (size_t)snprintf(text, sizeof(text), "GET / HTTP/1.1\r\nHost: h\r\nX: ");
	memset(text + n, 'x', HTTP_HEADER_BYTES_MAX);
	(void)snprintf(text + n + HTTP_HEADER_BYTES_MAX, 8, "\r\n\r\n");
	assert_false(read_request(text));
}

static void asks(void **state)
{
	struct port_ask q = { .method = "GET",
			      .target = "/x",
			      .host = "1-x.localhost",
			      .host_to_tell = "localhost:1",
			      .client = "127.0.0.1",
			      .connection = "close, Private" };
	struct buf b = BUF_INIT(PORT_ASK_MAX);

	(void)state;
	assert_int_equal(port_ask_begin(&q, &b), 0);
	assert_int_equal(port_ask_field(&q, "Accept", "*/*", &b), 0);
	assert_int_equal(port_ask_field(&q, "private", "1", &b), 0);
	assert_int_equal(port_ask_field(&q, "X-API-KEY", "1", &b), 0);
	assert_int_equal(port_ask_end(&b), 0);
	assert_string_equal((const char *)b.data,
			    "GET /x HTTP/1.1\r\nHost: localhost:1\r\nX-Forwarded-For: 127.0.0.1\r\n"
			    "X-Forwarded-Proto: http\r\nX-Forwarded-Host: 1-x.localhost\r\n"
			    "Accept: */*\r\n\r\n");
	buf_done(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(good_heads),  cmocka_unit_test(bad_heads),
		cmocka_unit_test(many_fields), cmocka_unit_test(fields),
		cmocka_unit_test(head_ends),   cmocka_unit_test(chunks),
		cmocka_unit_test(bad_chunks),  cmocka_unit_test(goes_in),
		cmocka_unit_test(goes_out),    cmocka_unit_test(masks),
		cmocka_unit_test(lists),       cmocka_unit_test(express_heads),
		cmocka_unit_test(other_heads), cmocka_unit_test(odd_sizes),
		cmocka_unit_test(asks),
	};

	return cmocka_run_group_tests_name("port", tests, NULL, NULL);
}
