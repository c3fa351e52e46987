/* SPDX-License-Identifier: Apache-2.0 */
#include "client/key_time.h"

#include "base/parse.h"

#include <time.h>

#define DAY_S UINT64_C(86400)
#define FARTHEST_S (36600 * DAY_S) /* a hundred years */

/* A number of whole days, or what durations are elsewhere; a number alone is not one here. */
static int read_duration(const char *text, uint64_t *ret_s)
{
	size_t len = strlen(text);
	char number[24];
	uint64_t value;
	int r;

	if (len < 2 || len >= sizeof(number) || (text[len - 1] >= '0' && text[len - 1] <= '9'))
		return -EINVAL;
	if (text[len - 1] != 'd') {
		r = parse_duration_us(text, &value);
		*ret_s = r < 0 ? 0 : value / 1000000;
		return r;
	}
	memcpy(number, text, len - 1);
	number[len - 1] = '\0';
	r = parse_u64(number, &value);
	if (r < 0)
		return r;
	return __builtin_mul_overflow(value, DAY_S, ret_s) ? -ERANGE : 0;
}

static int read_date(const char *text, int64_t *ret_s)
{
	static const char *const forms[] = { "%Y-%m-%d", "%Y-%m-%dT%H:%M:%SZ" };

	if (text[strspn(text, "0123456789-:TZ")]) /* strptime() skips blanks */
		return -EINVAL;
	for (size_t i = 0; i < ARRAY_SIZE(forms); i++) {
		struct tm tm = { 0 };
		const char *end = strptime(text, forms[i], &tm);
		int day = tm.tm_mday;

		/* February 30 becomes a day in March: refused. */
		if (!end || *end)
			continue;
		*ret_s = (int64_t)timegm(&tm);
		return tm.tm_mday == day ? 0 : -EINVAL;
	}
	return -EINVAL;
}

int key_time_read(const char *text, int64_t now_ms, int64_t *ret_ms)
{
	int64_t now_s = now_ms / 1000, until_s;
	uint64_t s;
	int r = read_date(text, &until_s);

	if (r < 0) {
		r = read_duration(text, &s);
		if (r < 0)
			return r;
		if (s > FARTHEST_S)
			return -ERANGE;
		until_s = now_s + (int64_t)s;
	}
	if (until_s <= now_s || until_s - now_s > (int64_t)FARTHEST_S)
		return -ERANGE;
	*ret_ms = until_s * 1000;
	return 0;
}

void key_time_text(int64_t ms, char ret[KEY_TIME_SIZE])
{
	time_t s = (time_t)(ms / 1000);
	struct tm tm;

	if (!gmtime_r(&s, &tm) || strftime(ret, KEY_TIME_SIZE, "%Y-%m-%dT%H:%M:%SZ", &tm) == 0)
		(void)snprintf(ret, KEY_TIME_SIZE, "?");
}
