/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The name in a ClientHello (NW-11). The handshake may come in many small records; it is put
 * together first, then GnuTLS walks its extensions. Whatever a server might read differently is
 * refused: two names, bytes behind the handshake in its last record, a name that is none.
 */
#include "egress/parse/request.h"

#include <gnutls/gnutls.h>

#define RECORD_HEADER 5
#define RECORD_MAX 16384 /* RFC 8446 5.1 */
#define RECORD_HANDSHAKE 22
#define HANDSHAKE_HEADER 4
#define HANDSHAKE_CLIENT_HELLO 1

#define EXTENSION_SERVER_NAME 0
#define EXTENSION_ECH 0xfe0d
#define NAME_TYPE_HOST 0

struct handshake {
	unsigned char data[REQUEST_MAX];
	size_t len;
};

/* 1: all of it is there. */
static int handshake_is_whole(const struct handshake *h)
{
	size_t need;

	if (h->len >= 1 && h->data[0] != HANDSHAKE_CLIENT_HELLO)
		return -EPROTO;
	if (h->len < HANDSHAKE_HEADER)
		return 0;
	need = HANDSHAKE_HEADER + ((size_t)h->data[1] << 16 | (size_t)h->data[2] << 8 | h->data[3]);
	if (need > sizeof(h->data) || h->len > need)
		return -EPROTO;
	return h->len == need;
}

/* Puts the records together. 1: the handshake is whole; 0: more must come. */
static int hello_gather(const unsigned char *data, size_t len, struct handshake *ret)
{
	ret->len = 0;
	while (len >= RECORD_HEADER) {
		size_t body = (size_t)data[3] << 8 | data[4];
		int r;

		if (data[0] != RECORD_HANDSHAKE || data[1] != 3 || body == 0 || body > RECORD_MAX)
			return -EPROTO;
		if (body > sizeof(ret->data) - ret->len)
			return -EPROTO;
		if (body > len - RECORD_HEADER)
			return 0;
		memcpy(ret->data + ret->len, data + RECORD_HEADER, body);
		ret->len += body;
		r = handshake_is_whole(ret);
		if (r != 0)
			return r;
		data += RECORD_HEADER + body;
		len -= RECORD_HEADER + body;
	}
	return 0;
}

struct names {
	unsigned n_names, n_hidden;
	const unsigned char *name;
	size_t name_len;
};

/* One entry, of a host, and nothing behind it: RFC 6066 3. */
static int take_server_name(struct names *n, const unsigned char *data, size_t size)
{
	const size_t header = 5; /* length of the list, type, length of the name */

	if (size <= header || ((size_t)data[0] << 8 | data[1]) != size - 2 ||
	    data[2] != NAME_TYPE_HOST || ((size_t)data[3] << 8 | data[4]) != size - header)
		return GNUTLS_E_RECEIVED_ILLEGAL_PARAMETER;
	n->n_names++;
	n->name = data + header;
	n->name_len = size - header;
	return 0;
}

static int take_extension(void *arg, unsigned id, const unsigned char *data, unsigned size)
{
	struct names *n = arg;

	if (id == EXTENSION_ECH)
		n->n_hidden++;
	return id == EXTENSION_SERVER_NAME ? take_server_name(n, data, size) : 0;
}

static enum hello read_names(struct handshake *h, char ret_name[static POLICY_NAME_SIZE])
{
	gnutls_datum_t body = { .data = h->data + HANDSHAKE_HEADER,
				.size = (unsigned)(h->len - HANDSHAKE_HEADER) };
	struct names n = { 0 };

	if (gnutls_ext_raw_parse(&n, take_extension, &body, GNUTLS_EXT_RAW_FLAG_TLS_CLIENT_HELLO) <
	    0)
		return HELLO_BAD;
	/* Browsers put a meaningless one in to keep servers used to it; it looks like one that
	 * means something. */
	if (n.n_hidden)
		return HELLO_HIDDEN;
	if (n.n_names == 0)
		return HELLO_NO_NAME;
	if (n.n_names > 1 || name_parse(n.name, n.name_len, ret_name) < 0)
		return HELLO_BAD;
	return HELLO_NAME;
}

enum hello hello_read(const unsigned char *data, size_t len, char ret_name[static POLICY_NAME_SIZE])
{
	struct handshake h;
	int r;

	if ((len > 0 && data[0] != RECORD_HANDSHAKE) || (len > 1 && data[1] != 3))
		return HELLO_NOT_TLS;
	r = hello_gather(data, len, &h);
	if (r < 0)
		return HELLO_BAD;
	return r == 0 ? HELLO_MORE : read_names(&h, ret_name);
}
