/* SPDX-License-Identifier: Apache-2.0 */
/* SOCKS5 (RFC 1928) without a password, and of its commands only CONNECT. */
#include "egress/parse/request.h"

#define SOCKS_VERSION 5
#define SOCKS_METHOD_FREE 0
#define SOCKS_COMMAND_CONNECT 1

enum socks_address {
	SOCKS_ADDRESS_V4 = 1,
	SOCKS_ADDRESS_NAME = 3,
	SOCKS_ADDRESS_V6 = 4,
};

ssize_t socks_greeting(const unsigned char *data, size_t len, bool *ret_free)
{
	size_t methods;

	if (len >= 1 && data[0] != SOCKS_VERSION)
		return -EPROTO;
	if (len < 2)
		return 0;
	methods = data[1];
	if (methods == 0)
		return -EPROTO;
	if (len < 2 + methods)
		return 0;
	*ret_free = memchr(data + 2, SOCKS_METHOD_FREE, methods);
	return (ssize_t)(2 + methods);
}

/* The length of the address, with that of a name in front; 0: more must come. */
static size_t address_size(const unsigned char *data, size_t len, enum socks_address type)
{
	switch (type) {
	case SOCKS_ADDRESS_V4:
		return sizeof(struct in_addr);
	case SOCKS_ADDRESS_V6:
		return sizeof(struct in6_addr);
	case SOCKS_ADDRESS_NAME:
		return len ? 1 + (size_t)data[0] : 0;
	}
	return 0;
}

static int read_address(const unsigned char *data, size_t size, enum socks_address type,
			struct target *t)
{
	struct sockaddr_in v4 = { .sin_family = AF_INET };
	struct sockaddr_in6 v6 = { .sin6_family = AF_INET6 };
	uint16_t port;

	switch (type) {
	case SOCKS_ADDRESS_V4:
		memcpy(&v4.sin_addr, data, sizeof(v4.sin_addr));
		return address_from_sockaddr((struct sockaddr *)&v4, &t->address, &port);
	case SOCKS_ADDRESS_V6:
		memcpy(&v6.sin6_addr, data, sizeof(v6.sin6_addr));
		return address_from_sockaddr((struct sockaddr *)&v6, &t->address, &port);
	case SOCKS_ADDRESS_NAME:
		/* Brackets are for where a port follows. */
		if (size > 1 && data[1] == '[')
			return -EINVAL;
		if (address_parse(data + 1, size - 1, &t->address) == 0)
			return 0;
		return name_parse(data + 1, size - 1, t->name);
	}
	return -EINVAL;
}

ssize_t socks_request(const unsigned char *data, size_t len, struct target *ret,
		      enum socks_code *ret_code)
{
	const size_t header = 4; /* version, command, zero, type of the address */
	struct target t = { 0 };
	enum socks_address type;
	size_t size;

	if (len >= 1 && data[0] != SOCKS_VERSION)
		return -EPROTO;
	if (len < header)
		return 0;
	if (data[2] != 0)
		return -EPROTO;
	type = data[3];
	if (type != SOCKS_ADDRESS_V4 && type != SOCKS_ADDRESS_V6 && type != SOCKS_ADDRESS_NAME) {
		*ret_code = SOCKS_NO_ADDRESS_TYPE;
		return (ssize_t)len;
	}
	size = address_size(data + header, len - header, type);
	if (size == 0 || len < header + size + 2)
		return 0;
	t.port = (uint16_t)(data[header + size] << 8 | data[header + size + 1]);
	*ret_code = SOCKS_OK;
	if (data[1] != SOCKS_COMMAND_CONNECT)
		*ret_code = SOCKS_NO_COMMAND;
	else if (t.port == 0 || read_address(data + header, size, type, &t) < 0)
		*ret_code = SOCKS_FAILED;
	else
		*ret = t;
	return (ssize_t)(header + size + 2);
}

void socks_reply(enum socks_code code, unsigned char ret[static SOCKS_REPLY_SIZE])
{
	memset(ret, 0, SOCKS_REPLY_SIZE);
	ret[0] = SOCKS_VERSION;
	ret[1] = (unsigned char)code;
	ret[3] = SOCKS_ADDRESS_V4; /* 0.0.0.0:0: where we dial from is none of the box's business */
}

enum socks_code socks_code_of(enum policy_reason reason)
{
	switch ((unsigned)reason) {
	case POLICY_RESOLVE:
	case POLICY_NO_ADDRESS:
		return SOCKS_HOST_UNREACHABLE;
	case POLICY_CONNECT:
	case POLICY_UPSTREAM:
		return SOCKS_REFUSED;
	case POLICY_TIMEOUT:
		return SOCKS_TIMEOUT;
	case POLICY_BAD_NAME:
	case POLICY_BAD_REQUEST:
	case POLICY_PROTOCOL:
	case POLICY_BUSY:
	case POLICY_CONNECTIONS:
		return SOCKS_FAILED;
	default:
		return SOCKS_NOT_ALLOWED;
	}
}
