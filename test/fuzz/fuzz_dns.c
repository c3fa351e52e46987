/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A DNS message of a box. Whatever comes, an answer to it is an answer, repeats at most the question that was asked, fits,
 * and has addresses for a name only that our grammar knows.
 */
#include "fuzz.h"

#include "egress/parse/dns_message.h"

static void check_answer(const uint8_t *data, size_t size, const struct dns_query *q,
			 const uint8_t *out, size_t len, size_t room)
{
	assert(len >= DNS_HEAD_SIZE && len <= room);
	assert(out[0] == data[0] && out[1] == data[1] && (out[2] & 0x80));
	assert(q->question_len <= size - DNS_HEAD_SIZE);
	assert(memcmp(out + DNS_HEAD_SIZE, data + DNS_HEAD_SIZE, q->question_len) == 0);
	assert(dns_parse(out, len, &(struct dns_query){ 0 }) == -EBADMSG); /* no loops */
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct net_address a[16] = { { { [10] = 0xff, 0xff, 1, 2, 3, 4 } },
						  { { 0x20, 1 } } };
	struct dns_query q;
	uint8_t out[DNS_ANSWER_MAX];
	int r = dns_parse(data, size, &q);

	if (r < 0)
		return 0;
	assert(!q.name[0] || name_ok(q.name));
	assert(q.udp_size >= DNS_PLAIN_MAX && q.udp_size <= DNS_ANSWER_MAX);
	for (unsigned blocked = 0; blocked <= 1; blocked++) {
		const struct dns_reply reply = { .rcode = (enum dns_rcode)r,
						 .addresses = a,
						 .n_addresses = ARRAY_SIZE(a),
						 .blocked = blocked };
		size_t len = dns_write(&q, &reply, out, q.udp_size);

		check_answer(data, size, &q, out, len, q.udp_size);
	}
	return 0;
}
