/* SPDX-License-Identifier: Apache-2.0 */
#include "server/port/log.h"

#include "server/sandbox/clock.h"
#include "server/sandbox/log.h"

#include <inttypes.h>

/* Nothing in it needs escaping: the method was found to be a token, the rest is ours. */
void port_log_write(const struct port_log *l, const char *peer, const char *request)
{
	char line[512], now[CLOCK_TEXT_SIZE], count[32] = "", id[48] = "";
	int n;

	clock_format(clock_wall_ms(), now);
	if (l->count > 1)
		(void)snprintf(count, sizeof(count), ",\"count\":%u", l->count);
	if (request)
		(void)snprintf(id, sizeof(id), "\"request\":\"%s\",", request);
	n = snprintf(line, sizeof(line),
		     "{\"time\":\"%s\",\"level\":\"info\",\"event\":\"request\",%s"
		     "\"peer\":\"%s\",\"status\":%u,\"ms\":%" PRIu64 ",\"method\":\"%s\","
		     "\"operation\":\"port\",\"port\":%u,\"sandbox\":\"%s\"%s%s}\n",
		     now, id, peer, l->status, l->ms, l->method, l->port, l->id, count,
		     l->broken_off ? ",\"broken_off\":true" : "");
	log_queue_add(line, (size_t)n, false);
}
