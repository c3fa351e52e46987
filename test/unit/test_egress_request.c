/* SPDX-License-Identifier: Apache-2.0 */
/* What clients of the proxy write: src/egress/parse/target.c, http_head.c, socks.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "egress/parse/request.h"

static struct http_head head;

#define BYTES(text) (const unsigned char *)(text), sizeof(text) - 1

static enum policy_reason read_head(const unsigned char *data, size_t len, bool as_proxy,
				    uint16_t port)
{
	assert_int_equal(http_head_length(data, len), len);
	return http_head_read(data, len, as_proxy, port, &head);
}
#define PROXY(text) read_head(BYTES(text), true, 80)
#define ORIGIN(text) read_head(BYTES(text), false, 80)

static void test_target(void **state)
{
	struct target t;
	char text[TARGET_TEXT_SIZE];

	(void)state;
	assert_int_equal(target_authority(BYTES("Example.COM.:443"), 0, &t), 0);
	assert_string_equal(t.name, "example.com");
	assert_int_equal(t.port, 443);
	target_text(&t, 0, text);
	assert_string_equal(text, "example.com:443");
	target_text(&t, 443, text);
	assert_string_equal(text, "example.com");
	assert_int_equal(target_authority(BYTES("[2001:DB8::1]:80"), 0, &t), 0);
	target_text(&t, 0, text);
	assert_string_equal(text, "[2001:db8::1]:80");
	assert_int_equal(target_authority(BYTES("192.0.2.1"), 80, &t), 0);
	target_text(&t, 0, text);
	assert_string_equal(text, "192.0.2.1:80");
}

/* NW-04, NW-09 */
static void test_bad_targets(void **state)
{
	static const char *const bad[] = {
		"",           ":443",        "a.com",
		"a.com:",     "a.com:0",     "a.com:65536",
		"a.com:080",  "a.com:+80",   "a.com:80 ",
		"u@a.com:80", "a.com:80:80", "2001:db8::1:80",
		"[::1]x:80",  "[::1%1]:80",  "[192.0.2.1]:80",
		"127.1:80",   "0x7f.1:80",   "2130706433:80",
		"a b.com:80", "a#b.com:80",  "a%00.com:80",
		"a/b.com:80",
	};
	struct target t = { .port = 7 };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_int_equal(target_authority(bad[i], strlen(bad[i]), 0, &t), -EINVAL);
	assert_int_equal(target_authority(BYTES("a\0.com:80"), 0, &t), -EINVAL);
	assert_int_equal(t.port, 7);
}

static void assert_built(const char *as, const unsigned char *data, const struct http_extra *extra)
{
	unsigned char *out;
	size_t len;

	assert_int_equal(http_head_build(&head, data, extra, &out, &len), 0);
	assert_int_equal(len, strlen(as));
	assert_memory_equal(out, as, len);
	free(out);
}

static void test_rewrite(void **state)
{
	static const char request[] = "GET http://Example.com:8080?a=b HTTP/1.1\r\n"
				      "Host: example.com:8080\r\n"
				      "Connection: keep-alive, X-Private ,Keep-Alive\r\n"
				      "Keep-Alive: 5\r\n"
				      "X-Private: 1\r\n"
				      "Proxy-Authorization: Basic eA==\r\n"
				      "Proxy-Connection: keep-alive\r\n"
				      "TE: trailers\r\n"
				      "Upgrade: h2c\r\n"
				      "Accept:   */* \t\r\n\r\n";
	struct http_extra extra = { .port = 8080, .scheme_port = 80 };

	(void)state;
	assert_int_equal(PROXY(request), POLICY_ALLOWED);
	assert_int_equal(head.target.port, 8080);
	assert_false(head.is_connect || head.is_upgrade);
	assert_built("GET /?a=b HTTP/1.1\r\nHost: example.com:8080\r\nAccept: */*\r\n"
		     "Connection: close\r\n\r\n",
		     (const unsigned char *)request, &extra);
	extra.absolute = true;
	extra.proxy_authorization = "Basic x";
	assert_built("GET http://example.com:8080/?a=b HTTP/1.1\r\nHost: example.com:8080\r\n"
		     "Accept: */*\r\nProxy-Authorization: Basic x\r\nConnection: close\r\n\r\n",
		     (const unsigned char *)request, &extra);
}

static void test_added_headers(void **state)
{
	static const char request[] =
		"GET /x HTTP/1.1\r\nHost: a.com\r\nAUTHORIZATION: mine\r\nX: y\r\n\r\n";
	static char value[] = "Bearer secret";
	struct net_header h = { .name = "Authorization", .value = value };
	const struct net_header *const list[] = { &h };
	struct http_extra extra = {
		.headers = list, .n_headers = 1, .port = 443, .scheme_port = 443
	};

	(void)state;
	assert_int_equal(ORIGIN(request), POLICY_ALLOWED);
	assert_built("GET /x HTTP/1.1\r\nHost: a.com\r\nX: y\r\nAuthorization: Bearer secret\r\n"
		     "Connection: close\r\n\r\n",
		     (const unsigned char *)request, &extra);
}

static void test_upgrade(void **state)
{
	static const char request[] = "GET /ws HTTP/1.1\r\nHost: a.com\r\nconnection: Upgrade\r\n"
				      "Upgrade: WebSocket\r\nSec-WebSocket-Key: k\r\n\r\n";
	struct http_extra extra = { .port = 80, .scheme_port = 80 };

	(void)state;
	assert_int_equal(ORIGIN(request), POLICY_ALLOWED);
	assert_true(head.is_upgrade);
	assert_built("GET /ws HTTP/1.1\r\nHost: a.com\r\nSec-WebSocket-Key: k\r\n"
		     "Upgrade: websocket\r\nConnection: Upgrade\r\n\r\n",
		     (const unsigned char *)request, &extra);
	assert_int_equal(
		ORIGIN("POST / HTTP/1.1\r\nHost: a.com\r\nConnection: upgrade\r\nUpgrade: websocket\r\n"
		       "Content-Length: 1\r\n\r\n"),
		POLICY_BAD_REQUEST);
}

static void test_forms(void **state)
{
	(void)state;
	assert_int_equal(PROXY("CONNECT a.com:443 HTTP/1.1\r\nHost: a.com:443\r\n\r\n"),
			 POLICY_ALLOWED);
	assert_true(head.is_connect);
	assert_int_equal(PROXY("CONNECT a.com:443 HTTP/1.1\r\nHost: a.com\r\n\r\n"),
			 POLICY_ALLOWED);
	assert_int_equal(PROXY("CONNECT a.com:443 HTTP/1.0\r\n\r\n"), POLICY_ALLOWED);
	assert_int_equal(PROXY("CONNECT a.com HTTP/1.1\r\n\r\n"), POLICY_BAD_NAME);
	assert_int_equal(PROXY("CONNECT a.com:443 HTTP/1.1\r\nHost: b.com:443\r\n\r\n"),
			 POLICY_HOST_MISMATCH);
	assert_int_equal(PROXY("CONNECT a.com:443 HTTP/1.1\r\nContent-Length: 3\r\n\r\n"),
			 POLICY_BAD_REQUEST);
	assert_int_equal(ORIGIN("CONNECT a.com:443 HTTP/1.1\r\nHost: a.com:443\r\n\r\n"),
			 POLICY_PROTOCOL);
	assert_int_equal(PROXY("GET / HTTP/1.1\r\nHost: a.com\r\n\r\n"), POLICY_BAD_REQUEST);
	assert_int_equal(ORIGIN("GET http://a.com/ HTTP/1.1\r\nHost: a.com\r\n\r\n"),
			 POLICY_BAD_REQUEST);
	assert_int_equal(PROXY("GET https://a.com/ HTTP/1.1\r\nHost: a.com\r\n\r\n"),
			 POLICY_PROTOCOL);
	assert_int_equal(PROXY("TRACE http://a.com/ HTTP/1.1\r\nHost: a.com\r\n\r\n"),
			 POLICY_PROTOCOL);
	assert_int_equal(ORIGIN("OPTIONS * HTTP/1.1\r\nHost: a.com\r\n\r\n"), POLICY_ALLOWED);
	assert_int_equal(ORIGIN("GET * HTTP/1.1\r\nHost: a.com\r\n\r\n"), POLICY_BAD_REQUEST);
	assert_int_equal(PROXY("GET http://a.com/ HTTP/1.0\r\n\r\n"), POLICY_ALLOWED);
	assert_int_equal(PROXY("GET http://a.com/ HTTP/1.1\r\n\r\n"), POLICY_BAD_REQUEST);
	assert_int_equal(ORIGIN("GET / HTTP/1.0\r\n\r\n"), POLICY_BAD_REQUEST);
}

/* NW-13 */
static void test_mismatch(void **state)
{
	(void)state;
	assert_int_equal(PROXY("GET http://a.com/ HTTP/1.1\r\nHost: b.com\r\n\r\n"),
			 POLICY_HOST_MISMATCH);
	assert_int_equal(PROXY("GET http://a.com/ HTTP/1.1\r\nHost: a.com:8080\r\n\r\n"),
			 POLICY_HOST_MISMATCH);
	assert_int_equal(PROXY("GET http://a.com/ HTTP/1.1\r\nHost: A.com:80\r\n\r\n"),
			 POLICY_ALLOWED);
	assert_int_equal(PROXY("GET http://a.com/ HTTP/1.1\r\nHost: a.com\r\nhost: a.com\r\n\r\n"),
			 POLICY_BAD_REQUEST);
	assert_int_equal(PROXY("GET http://a@b.com/ HTTP/1.1\r\nHost: b.com\r\n\r\n"),
			 POLICY_BAD_REQUEST);
	assert_int_equal(PROXY("GET http://a.com#@b.com/ HTTP/1.1\r\nHost: a.com\r\n\r\n"),
			 POLICY_BAD_REQUEST);
	assert_int_equal(PROXY("GET http://a.com/ HTTP/1.1\r\nHost: a.com,b.com\r\n\r\n"),
			 POLICY_BAD_NAME);
	assert_int_equal(PROXY("GET http:///x HTTP/1.1\r\nHost: a.com\r\n\r\n"), POLICY_BAD_NAME);
}

#define WITH(fields) "POST /x HTTP/1.1\r\nHost: a.com\r\n" fields "\r\n\r\n"

static void test_smuggling(void **state)
{
	static const struct {
		const char *text;
		size_t len;
	} bad[] = {
#define ROW(text) { text, sizeof(text) - 1 }
		ROW(WITH("Content-Length: 3\r\nTransfer-Encoding: chunked")),
		ROW(WITH("Content-Length: 3\r\nContent-Length: 3")),
		ROW(WITH("Content-Length: +3")),
		ROW(WITH("Content-Length: 3, 3")),
		ROW(WITH("Content-Length: ")),
		ROW(WITH("Content-Length: 99999999999999999999")),
		ROW(WITH("Transfer-Encoding: gzip, chunked")),
		ROW(WITH("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked")),
		ROW(WITH("Transfer-Encoding: identity")),
		ROW(WITH("Transfer-Encoding : chunked")),
		ROW(WITH(" Folded: x")),
		ROW(WITH("A: b\r\n c")),
		ROW(WITH("A b: c")),
		ROW(WITH(": c")),
		ROW(WITH("A: b\nC: d")),
		ROW(WITH("A: b\rC: d")),
		ROW(WITH("A: \0")),
		ROW(WITH("A: \x01")),
		ROW(WITH("Connection: content-length\r\nContent-Length: 3")),
		ROW(WITH("Connection: host")),
		ROW(WITH("Expect: 200-maybe")),
		ROW(WITH("Nothing")),
		ROW("POST /x  HTTP/1.1\r\nHost: a.com\r\n\r\n"),
		ROW("POST /x y HTTP/1.1\r\nHost: a.com\r\n\r\n"),
		ROW("POST\t/x HTTP/1.1\r\nHost: a.com\r\n\r\n"),
		ROW("POST /x HTTP/1.2\r\nHost: a.com\r\n\r\n"),
		ROW("POST /x HTTP/2.0\r\nHost: a.com\r\n\r\n"),
		ROW("POST /x http/1.1\r\nHost: a.com\r\n\r\n"),
		ROW("post /x HTTP/1.1\r\nHost: a.com\r\n\r\n"),
		ROW("POST /x\r\nHost: a.com\r\n\r\n"),
		ROW("\r\nPOST /x HTTP/1.1\r\nHost: a.com\r\n\r\n"),
		ROW("POST /x HTTP/1.0\r\nHost: a.com\r\nTransfer-Encoding: chunked\r\n\r\n"),
		ROW("POST /\x80 HTTP/1.1\r\nHost: a.com\r\n\r\n"),
#undef ROW
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		enum policy_reason reason = http_head_read((const unsigned char *)bad[i].text,
							   bad[i].len, false, 80, &head);

		if (reason != POLICY_BAD_REQUEST)
			fail_msg("%s: %s", bad[i].text, policy_reason_word(reason));
	}
	assert_int_equal(ORIGIN(WITH("Content-Length: 3")), POLICY_ALLOWED);
	assert_int_equal(head.body, HTTP_BODY_LENGTH);
	assert_int_equal(head.body_len, 3);
	assert_int_equal(ORIGIN(WITH("Transfer-Encoding: Chunked")), POLICY_ALLOWED);
	assert_int_equal(head.body, HTTP_BODY_CHUNKED);
}

static void test_length(void **state)
{
	static unsigned char big[REQUEST_MAX];

	(void)state;
	assert_int_equal(http_head_length(BYTES("")), 0);
	assert_int_equal(http_head_length(BYTES("GET / HTTP/1.1\r\nA: b\r\n")), 0);
	assert_int_equal(http_head_length(BYTES("GET / HTTP/1.1\r\n\r\nbody")), 18);
	assert_int_equal(http_head_length(BYTES("GET / HTTP/1.1\n\n")), -EINVAL);
	assert_int_equal(http_head_length(BYTES("GET / HTTP/1.1\n\r\n")), -EINVAL);
	memset(big, 'a', sizeof(big));
	assert_int_equal(http_head_length(big, sizeof(big)), -E2BIG);
}

/* The body in pieces of every size gives the same bytes, whatever follows it. */
static void feed(const char *fields, const char *body, const char *as)
{
	char request[256];
	unsigned char out[512];

	(void)snprintf(request, sizeof(request), "POST / HTTP/1.1\r\nHost: a.com\r\n%s\r\n\r\n",
		       fields);
	for (size_t piece = 1; piece <= strlen(body); piece++) {
		char all[1024] = "";
		size_t at = 0, n_all = 0, n;
		bool done = false;

		assert_int_equal(read_head((const unsigned char *)request, strlen(request), false,
					   80),
				 POLICY_ALLOWED);
		for (; at < strlen(body) && !done; at += piece) {
			size_t len = MIN(piece, strlen(body) - at);

			assert_int_equal(http_body_feed(&head.parser, head.body,
							(const unsigned char *)body + at, len, out,
							&n, &done),
					 0);
			assert_true(n <= len + HTTP_BODY_MORE && n_all + n < sizeof(all));
			memcpy(all + n_all, out, n);
			n_all += n;
		}
		assert_true(done);
		if (as && piece >= strlen(body))
			assert_string_equal(all, as);
	}
}

static void test_body(void **state)
{
	unsigned char out[512];
	size_t n;
	bool done;

	(void)state;
	feed("Content-Length: 5", "helloGET / HTTP/1.1\r\n\r\n", "hello");
	feed("Content-Length: 5", "helloPOST / HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc", "hello");
	feed("Transfer-Encoding: chunked",
	     "5;x=y\r\nhello\r\n003\r\nabc\r\n0\r\nT: r\r\n\r\nGET / HTTP/1.1",
	     "5\r\nhello\r\n3\r\nabc\r\n0\r\n\r\n");
	assert_int_equal(ORIGIN(WITH("Transfer-Encoding: chunked")), POLICY_ALLOWED);
	assert_int_equal(http_body_feed(&head.parser, head.body, BYTES("xyz\r\n"), out, &n, &done),
			 -EPROTO);
}

static void test_socks(void **state)
{
	struct target t = { 0 };
	enum socks_code code;
	bool free_of_charge;

	(void)state;
	assert_int_equal(socks_greeting(BYTES("\5"), &free_of_charge), 0);
	assert_int_equal(socks_greeting(BYTES("\5\2\0"), &free_of_charge), 0);
	assert_int_equal(socks_greeting(BYTES("\5\2\2\0x"), &free_of_charge), 4);
	assert_true(free_of_charge);
	assert_int_equal(socks_greeting(BYTES("\5\1\2"), &free_of_charge), 3);
	assert_false(free_of_charge);
	assert_int_equal(socks_greeting(BYTES("\4\1\0"), &free_of_charge), -EPROTO);
	assert_int_equal(socks_greeting(BYTES("\5\0"), &free_of_charge), -EPROTO);

	assert_int_equal(socks_request(BYTES("\5\1\0\3\5A.com\1\xbb!"), &t, &code), 12);
	assert_int_equal(code, SOCKS_OK);
	assert_string_equal(t.name, "a.com");
	assert_int_equal(t.port, 443);
	for (size_t len = 0; len < 12; len++)
		assert_int_equal(socks_request((const unsigned char *)"\5\1\0\3\5A.com\1\xbb", len,
					       &t, &code),
				 0);
	assert_int_equal(socks_request(BYTES("\5\1\0\1\300\0\2\1\0\x50"), &t, &code), 10);
	assert_int_equal(code, SOCKS_OK);
	assert_true(address_is_v4(&t.address) && !t.name[0]);
	assert_int_equal(socks_request(BYTES("\5\1\0\3\x09"
					     "192.0.2.1\0\x50"),
				       &t, &code),
			 16);
	assert_int_equal(code, SOCKS_OK);
	assert_false(t.name[0]);
}

/* NW-09: the NUL that another allow-list fell to. */
static void test_bad_socks(void **state)
{
	struct target t = { .port = 7 };
	enum socks_code code;

	(void)state;
	assert_int_equal(socks_request(BYTES("\5\1\0\3\x0b"
					     "evil.com\0a.\0\x50"),
				       &t, &code),
			 18);
	assert_int_equal(code, SOCKS_FAILED);
	assert_int_equal(socks_request(BYTES("\5\1\0\3\0\0\x50"), &t, &code), 7);
	assert_int_equal(code, SOCKS_FAILED);
	assert_int_equal(socks_request(BYTES("\5\1\0\3\5a.com\0\0"), &t, &code), 12);
	assert_int_equal(code, SOCKS_FAILED);
	assert_int_equal(socks_request(BYTES("\5\2\0\1\1\2\3\4\0\1"), &t, &code), 10);
	assert_int_equal(code, SOCKS_NO_COMMAND);
	assert_int_equal(socks_request(BYTES("\5\1\0\2\1\2\3\4\0\1"), &t, &code), 10);
	assert_int_equal(code, SOCKS_NO_ADDRESS_TYPE);
	assert_int_equal(socks_request(BYTES("\5\1\1\1\1\2\3\4\0\1"), &t, &code), -EPROTO);
	assert_int_equal(socks_request(BYTES("\4\1\0\1\1\2\3\4\0\1"), &t, &code), -EPROTO);
	assert_int_equal(t.port, 7);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_target),   cmocka_unit_test(test_bad_targets),
		cmocka_unit_test(test_rewrite),  cmocka_unit_test(test_added_headers),
		cmocka_unit_test(test_upgrade),  cmocka_unit_test(test_forms),
		cmocka_unit_test(test_mismatch), cmocka_unit_test(test_smuggling),
		cmocka_unit_test(test_length),   cmocka_unit_test(test_body),
		cmocka_unit_test(test_socks),    cmocka_unit_test(test_bad_socks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
