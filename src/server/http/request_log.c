/* SPDX-License-Identifier: Apache-2.0 */
#include "server/http/request_log.h"

#include "base/clock.h"
#include "server/http/exchange.h"
#include "server/sandbox/clock.h"
#include "server/sandbox/log.h"
#include "server/sandbox/sandbox.h"

#include <inttypes.h>

#define PATH_MAX_LOGGED 200

/* Nothing in it needs escaping: the method was found to be a token, the rest is ours. */
void visit_log_write(const struct visit_log *l, const char *peer, const char *request)
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

/* Of what came as the target: no query, and not without end. */
static json_t *path_json(const char *target)
{
	char path[PATH_MAX_LOGGED + 1];

	(void)snprintf(path, sizeof(path), "%.*s", (int)strcspn(target, "?"), target);
	return reply_safe_string(path);
}

static void write_visit(const struct exchange *x, bool completed)
{
	struct visit_log l = {
		.count = 1,
		.status = x->status,
		.ms = (clock_boot_us() - x->started_us) / 1000,
		.port = x->r.port,
		.broken_off = !completed,
	};

	(void)snprintf(l.id, sizeof(l.id), "%s", x->r.sandbox->info.id);
	(void)snprintf(l.method, sizeof(l.method), "%s", x->r.method);
	visit_log_write(&l, connection_peer(x->peer), x->r.id);
}

/* AP-12: one line, and nothing secret: no query, no header. */
static void write_own(const struct exchange *x, bool completed)
{
	const struct request *r = &x->r;
	json_t *line = json_pack("{s:s, s:s, s:i, s:I}", "request", r->id, "peer",
				 connection_peer(x->peer), "status", (int)x->status, "ms",
				 (json_int_t)((clock_boot_us() - x->started_us) / 1000));

	if (!line)
		return;
	if (r->method)
		(void)json_object_set_new(line, "method", reply_safe_string(r->method));
	if (r->route)
		(void)json_object_set_new(line, "operation", json_string(r->route->operation));
	else
		(void)json_object_set_new(line, "path", path_json(x->target));
	if (r->key.id[0])
		(void)json_object_set_new(line, "key", json_string(r->key.id));
	if (r->sandbox)
		(void)json_object_set_new(line, "sandbox", json_string(r->sandbox->info.id));
	if (!completed)
		(void)json_object_set_new(line, "broken_off", json_true());
	if (x->cut)
		(void)json_object_set_new(line, "cut", json_string(strerror(-x->cut)));
	server_log(r->server, "info", "request", line);
}

void request_log_write(const struct exchange *x, bool completed)
{
	if (exchange_is_visit(x) && x->r.sandbox)
		write_visit(x, completed);
	else
		write_own(x, completed);
}
