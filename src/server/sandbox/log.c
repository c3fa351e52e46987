/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The log: one JSON object on one line of standard error. All text is escaped to ASCII, so whatever a client puts
 * into a name stays inside its string (AP-12).
 */
#include "server/sandbox/clock.h"
#include "server/http/http.h"
#include "server/sandbox/log_queue.h"
#include "server/server.h"

int64_t clock_wall_ms(void)
{
	struct timespec ts;

	(void)clock_gettime(CLOCK_REALTIME, &ts);
	return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

void clock_format(int64_t wall_ms, char ret[CLOCK_TEXT_SIZE])
{
	time_t seconds = (time_t)(wall_ms / 1000);
	struct tm tm;
	char day[24] = "1970-01-01T00:00:00";

	if (wall_ms >= 0 && gmtime_r(&seconds, &tm))
		(void)strftime(day, sizeof(day), "%Y-%m-%dT%H:%M:%S", &tm);
	(void)snprintf(ret, CLOCK_TEXT_SIZE, "%s.%03dZ", day,
		       wall_ms >= 0 ? (int)(wall_ms % 1000) : 0);
}

static size_t dump(const json_t *line, char *ret, size_t size)
{
	size_t n = json_dumpb(line, ret, size, JSON_COMPACT | JSON_ENSURE_ASCII);

	return n <= size ? n : 0;
}

void server_log(struct server *s, const char *level, const char *event, json_t *fields)
{
	char now[CLOCK_TEXT_SIZE], text[LOG_LINE_MAX];
	json_t *line;
	size_t n;

	(void)s;
	clock_format(clock_wall_ms(), now);
	line = json_pack("{s:s, s:s, s:s}", "time", now, "level", level, "event", event);
	if (!line) {
		json_decref(fields);
		return;
	}
	(void)json_object_update(line, fields);
	n = dump(line, text, sizeof(text) - 1);
	if (n == 0) {
		/* Too long: say what happened without the particulars. */
		(void)json_object_clear(line);
		(void)json_object_set_new(line, "time", json_string(now));
		(void)json_object_set_new(line, "event", json_string(event));
		(void)json_object_set_new(line, "cut", json_true());
		n = dump(line, text, sizeof(text) - 1);
	}
	json_decref(fields);
	json_decref(line);
	text[n++] = '\n';
	log_queue_add(text, n, strcmp(level, "info") != 0);
}
