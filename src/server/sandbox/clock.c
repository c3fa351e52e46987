/* SPDX-License-Identifier: Apache-2.0 */
#include "server/sandbox/clock.h"

#include <stdio.h>
#include <time.h>

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

json_t *clock_json(int64_t wall_ms)
{
	char text[CLOCK_TEXT_SIZE];

	clock_format(wall_ms, text);
	return json_string(text);
}
