/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One packet to or from egress: the first byte says from whom, the rest is the packet. What is accepted holds what its
 * users rely on, and survives being sent again.
 */
#include "fuzz.h"

#include "sys/sock.h"
#include "wire/egress.h"

static struct egress_frame in, out;

static void check_ended(const char *text, size_t size)
{
	size_t len = strnlen(text, size);

	assert(len < size);
	for (size_t i = len; i < size; i++)
		assert(text[i] == '\0');
}

static void check_fields(void)
{
	switch (in.head.type) {
	case EGRESS_OPERATOR:
	case EGRESS_SERVER:
		return;
	case EGRESS_OPEN:
		assert(in.as_OPEN.n_doors >= 1 && in.as_OPEN.n_doors <= EGRESS_DOORS_MAX);
		break;
	case EGRESS_RULE:
		assert(rule_ok(&in.as_RULE.rule));
		assert((in.as_RULE.rule.flags & (RULE_OPERATOR | RULE_PRIVATE)) == 0);
		break;
	case EGRESS_HEADER:
		check_ended(in.as_HEADER.host, sizeof(in.as_HEADER.host));
		check_ended(in.as_HEADER.name, sizeof(in.as_HEADER.name));
		check_ended(in.as_HEADER.value, sizeof(in.as_HEADER.value));
		assert(!strpbrk(in.as_HEADER.name, " \t\r\n:"));
		assert(!strpbrk(in.as_HEADER.value, "\r\n"));
		break;
	case EGRESS_EVENT:
		check_ended(in.as_EVENT.name, sizeof(in.as_EVENT.name));
		break;
	default:
		break;
	}
	check_ended(in.as_CLOSE.id, WARDEN_ID_SIZE);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	enum egress_channel channel;
	int pair[2];
	size_t n;

	if (size == 0)
		return 0;
	channel = (enum egress_channel)(1 + data[0] % 3);
	n = MIN(size - 1, sizeof(in));
	memset(&in, 0, sizeof(in));
	memcpy(&in, data + 1, n);
	if (egress_check(&in, n, channel) < 0)
		return 0;
	check_fields();
	if (in.head.type < EGRESS_POLICY)
		return 0; /* these come with descriptors */
	assert(sock_pair(pair) == 0);
	assert(egress_send(pair[0], (enum egress_type)in.head.type, &in, NULL, 0) == 0);
	assert(egress_recv(pair[1], &out, channel, NULL, NULL) == 1);
	assert(memcmp(&in, &out, n) == 0);
	fd_close(pair[0]);
	fd_close(pair[1]);
	return 0;
}
