/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One packet from a server that was taken over, or from the warden (AP-18): the first byte says in which
 * direction, the rest is the packet. What the decoder accepts must hold what its users rely on and survive
 * being sent again.
 */
#include "fuzz.h"

#include "sys/sock.h"
#include "wire/warden.h"

static struct warden_frame in, out;

/* In other words than the decoder's. */
static void check_id(const char *id)
{
	size_t len = strnlen(id, WARDEN_ID_SIZE);

	assert(len >= 1 && len < WARDEN_ID_SIZE);
	assert(strspn(id, "abcdefghijklmnopqrstuvwxyz0123456789") == len);
	for (size_t i = len; i < WARDEN_ID_SIZE; i++)
		assert(id[i] == '\0');
}

static void check_fields(void)
{
	switch (in.head.type) {
	case WARDEN_CREATE:
		check_id(in.as_CREATE.id);
		assert(in.as_CREATE.n_layers <= WARDEN_LAYERS_MAX);
		for (uint32_t i = 0; i < in.as_CREATE.n_layers; i++)
			check_id(in.as_CREATE.layer[i]);
		break;
	case WARDEN_SNAPSHOT:
		check_id(in.as_SNAPSHOT.id);
		check_id(in.as_SNAPSHOT.layer);
		break;
	case WARDEN_DROP_LAYER:
		check_id(in.as_DROP_LAYER.layer);
		break;
	case WARDEN_NEXT_LAYER:
		if (in.as_NEXT_LAYER.layer[0])
			check_id(in.as_NEXT_LAYER.layer);
		break;
	case WARDEN_REPLY:
		if (in.as_REPLY.layer[0])
			check_id(in.as_REPLY.layer);
		assert(strnlen(in.as_REPLY.msg, sizeof(in.as_REPLY.msg)) < sizeof(in.as_REPLY.msg));
		assert(strnlen(in.as_REPLY.where, sizeof(in.as_REPLY.where)) <
		       sizeof(in.as_REPLY.where));
		break;
	case WARDEN_SOCKET:
		check_id(in.as_SOCKET.id);
		assert(in.as_SOCKET.family == 4 || in.as_SOCKET.family == 6);
		break;
	case WARDEN_HELLO:
	case WARDEN_MEET:
	case WARDEN_EGRESS:
		break;
	default:
		check_id(in.as_KILL.id);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	enum warden_direction where;
	int pair[2], fd = -EBADF;
	size_t n;

	if (size == 0)
		return 0;
	where = data[0] & 1 ? WARDEN_TO_WARDEN : WARDEN_FROM_WARDEN;
	n = MIN(size - 1, sizeof(in));
	memset(&in, 0, sizeof(in));
	memcpy(&in, data + 1, n);
	if (warden_check(&in, n, where) < 0)
		return 0;
	check_fields();
	assert(sock_pair(pair) == 0);
	assert(warden_send(pair[0], (enum warden_type)in.head.type, &in, -EBADF) == 0);
	assert(warden_recv(pair[1], &out, where, &fd) == 1 && fd < 0);
	assert(memcmp(&in, &out, n) == 0);
	fd_close(pair[0]);
	fd_close(pair[1]);
	return 0;
}
