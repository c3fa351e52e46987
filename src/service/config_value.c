/* SPDX-License-Identifier: Apache-2.0 */
/* Settings that are numbers, as text: sizes, durations, shares of CPUs, plain numbers, switches. */
#include "service/config_priv.h"

#include "base/parse.h"

#include <inttypes.h>

static int read_flag(const char *text, uint64_t *ret)
{
	if (strcmp(text, "true") != 0 && strcmp(text, "false") != 0)
		return -EINVAL;
	*ret = text[0] == 't';
	return 0;
}

static int read_millis(const char *text, uint64_t *ret)
{
	uint64_t us;
	int r = parse_duration_us(text, &us);

	if (r < 0)
		return r;
	*ret = us / 1000;
	return 0;
}

static int read_cpus(const char *text, uint64_t *ret)
{
	uint32_t milli;
	int r = parse_cpus_milli(text, &milli);

	if (r < 0)
		return r;
	*ret = milli;
	return 0;
}

int config_value_read(const struct setting *s, const char *text, uint64_t *ret)
{
	uint64_t number;
	int r = -EINVAL;

	switch (s->kind) {
	case KIND_BYTES:
		r = parse_bytes(text, &number);
		break;
	case KIND_COUNT:
		r = parse_u64(text, &number);
		break;
	case KIND_MILLIS:
		r = read_millis(text, &number);
		break;
	case KIND_CPUS:
		r = read_cpus(text, &number);
		break;
	case KIND_FLAG:
		r = read_flag(text, &number);
		break;
	case KIND_TEXT:
		return -EINVAL;
	}
	if (r < 0)
		return r;
	if (number < s->min || number > s->max)
		return -ERANGE;
	*ret = number;
	return 0;
}

int config_value_text(const struct setting *s, uint64_t number, char *ret, size_t size)
{
	static const struct unit {
		enum kind kind;
		const char *name;
		uint64_t factor;
	} units[] = {
		{ KIND_BYTES, "T", UINT64_C(1) << 40 },
		{ KIND_BYTES, "G", UINT64_C(1) << 30 },
		{ KIND_BYTES, "M", UINT64_C(1) << 20 },
		{ KIND_BYTES, "K", UINT64_C(1) << 10 },
		{ KIND_MILLIS, "h", 3600000 },
		{ KIND_MILLIS, "m", 60000 },
		{ KIND_MILLIS, "s", 1000 },
		{ KIND_MILLIS, "ms", 1 },
	};
	const char *unit = "";
	char text[48];
	int n;

	if (s->kind == KIND_FLAG) {
		n = snprintf(ret, size, "%s", number ? "true" : "false");
		return n < 0 || (size_t)n >= size ? -ENOBUFS : 0;
	}
	if (s->kind == KIND_CPUS) {
		n = snprintf(text, sizeof(text), "%" PRIu64 ".%03" PRIu64, number / 1000,
			     number % 1000);
		while (n > 0 && text[n - 1] == '0')
			text[--n] = '\0';
		if (n > 0 && text[n - 1] == '.')
			text[--n] = '\0';
		n = snprintf(ret, size, "%s", text);
		return n < 0 || (size_t)n >= size ? -ENOBUFS : 0;
	}
	for (size_t i = 0; i < ARRAY_SIZE(units) && !*unit; i++) {
		if (units[i].kind != s->kind || number == 0 || number % units[i].factor != 0)
			continue;
		unit = units[i].name;
		number /= units[i].factor;
	}
	n = snprintf(ret, size, "%" PRIu64 "%s", number, unit);
	return n < 0 || (size_t)n >= size ? -ENOBUFS : 0;
}

/* For the message about a number that is none, or too small or too large. */
int config_value_refuse(const struct setting *s, int err, const char *where, struct fail *fail)
{
	static const char *const like[] = {
		[KIND_TEXT] = "text",
		[KIND_BYTES] = "a size like 512M",
		[KIND_COUNT] = "a number",
		[KIND_MILLIS] = "a duration like 30s or 2h",
		[KIND_CPUS] = "a number of CPUs like 2 or 0.5",
		[KIND_FLAG] = "true or false",
	};
	char min[32] = "", max[32] = "";

	if (s->kind == KIND_FLAG)
		return fail_set(fail, -err, "setting", "%s must be %s", where, like[s->kind]);
	if (config_value_text(s, s->min, min, sizeof(min)) < 0 ||
	    config_value_text(s, s->max, max, sizeof(max)) < 0)
		return fail_set(fail, -err, "setting", "%s must be %s", where, like[s->kind]);
	return fail_set(fail, -err, "setting", "%s must be %s, from %s to %s", where, like[s->kind],
			min, max);
}
