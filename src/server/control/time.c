/* SPDX-License-Identifier: Apache-2.0 */
#include "server/control/text.h"

#include <time.h>

/* Exactly n digits from *text on, which is advanced. */
static int digits(const char **text, int n, int max, int *ret)
{
	int value = 0;

	for (int i = 0; i < n; i++) {
		char c = *(*text)++;

		if (c < '0' || c > '9')
			return -EINVAL;
		value = value * 10 + (c - '0');
	}
	if (value > max)
		return -EINVAL;
	*ret = value;
	return 0;
}

static int separator(const char **text, const char *any)
{
	if (!**text || !strchr(any, **text))
		return -EINVAL;
	(*text)++;
	return 0;
}

/* ".123456789", or nothing. */
static int fraction(const char **text, int *ret_ms)
{
	int weight = 100;

	*ret_ms = 0;
	if (**text != '.')
		return 0;
	(*text)++;
	if (**text < '0' || **text > '9')
		return -EINVAL;
	for (; **text >= '0' && **text <= '9'; (*text)++, weight /= 10)
		*ret_ms += (**text - '0') * weight;
	return 0;
}

/* "Z" or "+02:00", and nothing behind it. */
static int zone(const char *text, int *ret_minutes)
{
	int sign, hours = 0, minutes = 0, r;

	if ((text[0] == 'Z' || text[0] == 'z') && !text[1]) {
		*ret_minutes = 0;
		return 0;
	}
	sign = *text == '-' ? -1 : 1;
	r = separator(&text, "+-");
	if (r == 0)
		r = digits(&text, 2, 23, &hours);
	if (r == 0)
		r = separator(&text, ":");
	if (r == 0)
		r = digits(&text, 2, 59, &minutes);
	if (r < 0 || *text)
		return -EINVAL;
	*ret_minutes = sign * (hours * 60 + minutes);
	return 0;
}

static int date_and_time(const char **text, struct tm *ret)
{
	const struct {
		int *field;
		int digits, max;
		const char *after;
	} parts[] = {
		{ &ret->tm_year, 4, 9999, "-" }, { &ret->tm_mon, 2, 12, "-" },
		{ &ret->tm_mday, 2, 31, "Tt " }, { &ret->tm_hour, 2, 23, ":" },
		{ &ret->tm_min, 2, 59, ":" },    { &ret->tm_sec, 2, 60, NULL },
	};

	for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
		int r = digits(text, parts[i].digits, parts[i].max, parts[i].field);

		if (r == 0 && parts[i].after)
			r = separator(text, parts[i].after);
		if (r < 0)
			return r;
	}
	ret->tm_year -= 1900;
	ret->tm_mon -= 1;
	return 0;
}

int time_parse(const char *text, int64_t *ret_ms)
{
	struct tm tm = { 0 }, normal;
	int ms = 0, minutes = 0, r;
	time_t seconds;

	r = date_and_time(&text, &tm);
	if (r == 0)
		r = fraction(&text, &ms);
	if (r == 0)
		r = zone(text, &minutes);
	if (r < 0)
		return r;
	normal = tm;
	normal.tm_sec = MIN(tm.tm_sec, 59); /* a leap second */
	seconds = timegm(&normal);
	/* A day that does not exist (31 April, month 0) comes back as another one. */
	if (normal.tm_mon != tm.tm_mon || normal.tm_mday != tm.tm_mday)
		return -EINVAL;
	*ret_ms = ((int64_t)seconds + (tm.tm_sec - normal.tm_sec) - (int64_t)minutes * 60) * 1000 +
		  ms;
	return 0;
}

void time_span(int64_t ms, char *ret, size_t size)
{
	int64_t seconds = MAX(ms, 0) / 1000;

	if (seconds < 120)
		(void)snprintf(ret, size, "%lld s", (long long)seconds);
	else if (seconds < 7200)
		(void)snprintf(ret, size, "%lld min", (long long)(seconds / 60));
	else if (seconds < 172800)
		(void)snprintf(ret, size, "%lld h", (long long)(seconds / 3600));
	else
		(void)snprintf(ret, size, "%lld days", (long long)(seconds / 86400));
}
