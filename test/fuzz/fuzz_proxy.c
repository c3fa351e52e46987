/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a box's program says to egress: TLS handshakes, requests in the clear, SOCKS5. The first byte says which.
 * What is accepted must be what the headers promise, and a request that was written anew must read as the same
 * one.
 */
#include "fuzz.h"

#include "egress/parse/request.h"

static struct http_head head, again;

static void check_target(const struct target *t)
{
	assert(t->port != 0);
	assert(!t->name[0] || name_ok(t->name));
}

static void fuzz_hello(const uint8_t *data, size_t size)
{
	char name[POLICY_NAME_SIZE], other[POLICY_NAME_SIZE];

	if (hello_read(data, size, name) != HELLO_NAME)
		return;
	assert(name_ok(name));
	/* A name that was read does not change with what comes later, and was not there before its last byte. */
	for (size_t len = 0; len < size; len += 1 + len / 16) {
		enum hello h = hello_read(data, len, other);

		assert(h == HELLO_MORE || (h == HELLO_NAME && strcmp(name, other) == 0));
	}
}

static void fuzz_body(struct http_head *h, const uint8_t *data, size_t size)
{
	static unsigned char out[REQUEST_MAX * 2];
	bool done = false;
	size_t n = 0;

	for (size_t at = 0; at < size && !done && h->body != HTTP_BODY_NONE; at += 7)
		if (http_body_feed(&h->parser, h->body, data + at, MIN((size_t)7, size - at), out,
				   &n, &done) < 0)
			return;
	assert(n <= 7 + HTTP_BODY_MORE);
}

/* As the next server would read it. */
static void fuzz_build(const uint8_t *data)
{
	struct http_extra extra = { .port = head.target.port, .scheme_port = 80 };
	unsigned char *out;
	size_t len;

	assert(http_head_build(&head, data, &extra, &out, &len) == 0);
	assert(http_head_length(out, len) == (ssize_t)len);
	assert(http_head_read(out, len, false, 80, &again) == POLICY_ALLOWED);
	assert(target_equal(&again.target, &head.target));
	assert(again.body == head.body && again.body_len == head.body_len);
	assert(again.is_upgrade == head.is_upgrade);
	free(out);
}

static void fuzz_head(const uint8_t *data, size_t size, bool as_proxy)
{
	ssize_t len = http_head_length(data, size);

	if (len <= 0 || http_head_read(data, (size_t)len, as_proxy, 80, &head) != POLICY_ALLOWED)
		return;
	check_target(&head.target);
	assert(!memchr(data, '\0', (size_t)len));
	/* It grows by a line or two: the longest could not be read again. */
	if (!head.is_connect && len < REQUEST_MAX / 2 && head.n_fields < HTTP_FIELDS_MAX - 2)
		fuzz_build(data);
	fuzz_body(&head, data + len, size - (size_t)len);
}

static void fuzz_socks(const uint8_t *data, size_t size)
{
	struct target t = { 0 };
	enum socks_code code;
	bool is_free;
	ssize_t n = socks_greeting(data, size, &is_free);

	assert(n <= (ssize_t)size);
	if (n <= 0)
		return;
	data += n;
	size -= (size_t)n;
	n = socks_request(data, size, &t, &code);
	assert(n <= (ssize_t)size);
	if (n > 0 && code == SOCKS_OK)
		check_target(&t);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size == 0)
		return 0;
	switch (*data) {
	case 'h':
		fuzz_hello(data + 1, size - 1);
		break;
	case 'p':
	case 'o':
		fuzz_head(data + 1, size - 1, *data == 'p');
		break;
	case 's':
		fuzz_socks(data + 1, size - 1);
		break;
	default:
		(void)first_bytes(data, size);
		break;
	}
	return 0;
}
