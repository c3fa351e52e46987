/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One packet from the other side (AG-15, AG-16): the first byte says on which socket it came, the rest is
 * the packet. What the decoder accepts must survive being sent again.
 */
#include "fuzz.h"

#include "sys/sock.h"
#include "wire/wire.h"

static struct wire_frame in, out;

static bool name_ok(const unsigned char *name, size_t len)
{
	bool dots = (len == 1 && name[0] == '.') || (len == 2 && name[0] == '.' && name[1] == '.');

	for (size_t i = 0; i < len; i++)
		if (name[i] == '/' || name[i] == 0)
			return false;
	return len >= 1 && len <= 255 && !dots;
}

/* Whoever reads an entry believes its lengths. */
static void check_entry(const struct wire_fs_entry *e, size_t len)
{
	const char *text = (const char *)(e + 1);
	size_t texts = (size_t)e->path_len + e->owner_len + e->group_len + e->target_len;

	assert(texts + e->attrs_len == len - sizeof(*e) && e->path_len > 0);
	for (size_t i = 0; i < texts; i++)
		assert(text[i]);
	assert(e->attrs_len == 0 || text[texts + e->attrs_len - 1] == '\0');
}

/* Nothing that was accepted may differ from what the decoder promised about it. */
static void check_accepted(size_t n, enum wire_socket where)
{
	int pair[2];

	if (in.head.type == WIRE_ENTRY)
		check_entry((const struct wire_fs_entry *)in.data, wire_len(&in));
	if (in.head.type == WIRE_PIPE)
		assert(((const struct wire_pipe *)in.data)->bytes > 0 && where == WIRE_ON_TO_OP);
	assert(in.head.len == n && in.head.zero == 0 && wire_len(&in) == n - sizeof(in.head));
	assert(sock_pair(pair) == 0);
	assert(wire_send(pair[0], (enum wire_type)in.head.type, in.data, wire_len(&in)) == 0);
	assert(wire_recv(pair[1], &out, where) == 1);
	assert(memcmp(&in, &out, n) == 0);
	fd_close(pair[0]);
	fd_close(pair[1]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const enum wire_socket sockets[] = { WIRE_ON_CONTROL, WIRE_ON_TO_OP, WIRE_ON_FROM_OP,
						    WIRE_ON_SUDO };
	enum wire_socket where;
	size_t n = MIN(size - (size ? 1 : 0), sizeof(in));

	if (size == 0)
		return 0;
	where = sockets[data[0] % ARRAY_SIZE(sockets)];
	memcpy(&in, data + 1, n);
	if (wire_check(&in, n, where) == 0)
		check_accepted(n, where);
	assert(wire_name_ok(data + 1, n) == name_ok(data + 1, n));
	return 0;
}
