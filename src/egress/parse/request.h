/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a box's program writes before its first byte may leave: pure readers of hostile bytes. Each
 * takes all bytes so far and says what they are, or that more must come; none remembers anything.
 *
 *	target.c     a host and a port
 *	first.c      which protocol it is
 *	hello.c      the name in a TLS handshake
 *	http_head.c  the head of a request, and how it is sent on
 *	socks.c      SOCKS5
 */
#pragma once

#include "egress/egress.h"

#include "base/http_parse.h"

#define REQUEST_MAX 16384 /* bytes of a head or a handshake: nobody needs more to say where to go */

/* --- where to (target.c) -------------------------------------------------------------------- */

struct target {
	char name[POLICY_NAME_SIZE]; /* canonical; "": the address was said */
	struct net_address address;
	uint16_t port;
};

/* "example.com", "192.0.2.1", or "[2001:db8::1]"; -EINVAL. Sets name and address, not the port. */
_must_check_ int target_host(const void *text, size_t len, struct target *ret);
/* The same with ":PORT"; without one it is default_port, or, where that is 0, -EINVAL. */
_must_check_ int target_authority(const void *text, size_t len, uint16_t default_port,
				  struct target *ret);
bool target_equal(const struct target *a, const struct target *b);
/* "example.com:443", "[2001:db8::1]:443"; without_port: the port is left out if it is that one. */
#define TARGET_TEXT_SIZE (POLICY_NAME_SIZE + sizeof("[]:65535"))
void target_text(const struct target *t, uint16_t without_port, char ret[static TARGET_TEXT_SIZE]);

/* --- TLS (hello.c) -------------------------------------------------------------------------- */

enum hello {
	HELLO_MORE = 1, /* it may become one */
	HELLO_NOT_TLS,
	HELLO_BAD, /* TLS, but cannot be understood in only one way */
	HELLO_NO_NAME,
	/* encrypted_client_hello: the name that we see may not be the one that is meant */
	HELLO_HIDDEN,
	HELLO_NAME,
};

/* The first bytes of a connection; ret_name is set for HELLO_NAME. */
enum hello hello_read(const unsigned char *data, size_t len,
		      char ret_name[static POLICY_NAME_SIZE]);

/* --- HTTP (http_head.c) --------------------------------------------------------------------- */

#define HTTP_FIELDS_MAX 100

struct http_slice {
	uint16_t at, len; /* in the head: it has at most REQUEST_MAX bytes */
};

struct http_field {
	struct http_slice name, value;
	bool drop; /* not sent on */
};

enum http_body {
	HTTP_BODY_NONE,
	HTTP_BODY_LENGTH,
	HTTP_BODY_CHUNKED,
};

struct http_head {
	size_t len; /* with the empty line */
	bool is_connect;
	bool is_upgrade; /* to WebSocket */
	struct target target;
	struct http_slice method, path; /* path: "" for "http://host", which means "/" */
	unsigned minor;                 /* HTTP/1.minor */
	enum http_body body;
	uint64_t body_len;
	struct http_field fields[HTTP_FIELDS_MAX];
	size_t n_fields;
	http_parser parser; /* has read the head: the body is next */
};

/* How long the head is: 0, more must come; -E2BIG; -EINVAL when it will never be one. */
_must_check_ ssize_t http_head_length(const unsigned char *data, size_t len);

/*
 * Reads a head of that length. ALLOWED, or why not: BAD_REQUEST, BAD_NAME, HOST_MISMATCH, PROTOCOL.
 * port: where a request that names no port goes (origin-form: the connection's own port); as_proxy:
 * absolute-form and CONNECT are understood, and nothing else; otherwise origin-form only.
 */
enum policy_reason http_head_read(const unsigned char *data, size_t len, bool as_proxy,
				  uint16_t port, struct http_head *ret);

/* What is added to a head. */
struct http_extra {
	const struct net_header *const *headers;
	size_t n_headers;
	bool absolute;                   /* to a proxy of ours */
	const char *proxy_authorization; /* with absolute; "" or NULL: none */
	uint16_t scheme_port; /* the port that is not named in Host: 80, or 443 with TLS */
	uint16_t port;        /* the one that is dialed */
};

/* The head as it is sent on, in memory that was never moved (it may hold secrets): wipe it.
 * -ENOMEM, -E2BIG. */
_must_check_ int http_head_build(const struct http_head *h, const unsigned char *data,
				 const struct http_extra *extra, unsigned char **ret,
				 size_t *ret_len);

/*
 * What came of the body, as it is sent on: chunks are written anew, so that nobody else's reading
 * of theirs matters, and what follows the last one is dropped. out has room for len +
 * HTTP_BODY_MORE. Behind the end of the body nothing is read: *ret_done. -EPROTO.
 */
#define HTTP_BODY_MORE 64
_must_check_ int http_body_feed(http_parser *p, enum http_body kind, const unsigned char *data,
				size_t len, unsigned char *out, size_t *ret_out_len,
				bool *ret_done);

/* --- SOCKS5 (socks.c) ----------------------------------------------------------------------- */

/* What SOCKS5 answers; 0 is success. */
enum socks_code {
	SOCKS_OK = 0,
	SOCKS_FAILED = 1,
	SOCKS_NOT_ALLOWED = 2,
	SOCKS_HOST_UNREACHABLE = 4,
	SOCKS_REFUSED = 5,
	SOCKS_TIMEOUT = 6,
	SOCKS_NO_COMMAND = 7,
	SOCKS_NO_ADDRESS_TYPE = 8,
};

#define SOCKS_REPLY_SIZE 10

/* The greeting: its length, 0 for more, -EPROTO. *ret_free: we may come in without a password. */
_must_check_ ssize_t socks_greeting(const unsigned char *data, size_t len, bool *ret_free);
/* The request behind it: its length, 0 for more, -EPROTO. *ret_code: SOCKS_OK, or what to answer;
 * SOCKS_FAILED for a host that is none. */
_must_check_ ssize_t socks_request(const unsigned char *data, size_t len, struct target *ret,
				   enum socks_code *ret_code);
void socks_reply(enum socks_code code, unsigned char ret[static SOCKS_REPLY_SIZE]);
enum socks_code socks_code_of(enum policy_reason reason);

/* --- which one (first.c) -------------------------------------------------------------------- */

enum first {
	FIRST_MORE,
	FIRST_TLS,
	FIRST_HTTP,
	FIRST_RAW, /* neither */
};

/* What a client that speaks first speaks, whatever the port. Text is waited for up to the end of
 * its first line: that of a request cannot be told from another one's before. */
enum first first_bytes(const unsigned char *data, size_t len);
