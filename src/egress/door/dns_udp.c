/* SPDX-License-Identifier: Apache-2.0 */
#include "egress/door/dns.h"

#define BATCH 8 /* questions of one door in one go */

/* Nobody waits for a box that does not take its answer: it will ask again. */
void dns_udp_send(const struct question *q, const uint8_t *data, size_t len)
{
	(void)!sendto(q->udp_fd, data, len, MSG_DONTWAIT | MSG_NOSIGNAL,
		      (const struct sockaddr *)&q->from, q->from_len);
}

void dns_udp_ready(struct egress *g, struct net *n, int fd)
{
	for (unsigned i = 0; i < BATCH; i++) {
		struct question q = { .udp_fd = fd, .from_len = sizeof(q.from) };
		uint8_t data[DNS_QUERY_MAX + 1]; /* one more, to see what is too long */
		ssize_t len = recvfrom(fd, data, sizeof(data), MSG_DONTWAIT,
				       (struct sockaddr *)&q.from, &q.from_len);

		/* An error is that of an answer which nobody took; asking for it has cleared it. */
		if (len < 0)
			return;
		(void)dns_ask(g, n, &q, data, (size_t)len);
	}
}
