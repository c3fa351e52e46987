/* SPDX-License-Identifier: Apache-2.0 */
#include "base/parse.h"

/* Reads digits from *text on, advances it; at least one digit is needed. */
static int parse_digits(const char **text, uint64_t *ret)
{
	const char *p = *text;
	uint64_t value = 0;

	if (*p < '0' || *p > '9')
		return -EINVAL;
	for (; *p >= '0' && *p <= '9'; p++) {
		if (__builtin_mul_overflow(value, 10u, &value) ||
		    __builtin_add_overflow(value, (uint64_t)(*p - '0'), &value))
			return -ERANGE;
	}
	*text = p;
	*ret = value;
	return 0;
}

int parse_u64(const char *text, uint64_t *ret)
{
	uint64_t value;
	int r = parse_digits(&text, &value);

	if (r < 0)
		return r;
	if (*text)
		return -EINVAL;
	*ret = value;
	return 0;
}

/* A number followed by one of the units; the empty unit is allowed when the table has it. */
struct unit {
	const char *name;
	uint64_t factor;
};

static int number_with_unit(const char *text, const struct unit *units, size_t n_units,
			    uint64_t *ret)
{
	uint64_t value;
	int r = parse_digits(&text, &value);

	if (r < 0)
		return r;
	for (size_t i = 0; i < n_units; i++) {
		if (strcmp(text, units[i].name) != 0)
			continue;
		if (__builtin_mul_overflow(value, units[i].factor, &value))
			return -ERANGE;
		*ret = value;
		return 0;
	}
	return -EINVAL;
}

int parse_bytes(const char *text, uint64_t *ret)
{
	static const struct unit units[] = {
		{ "", 1 },
		{ "K", UINT64_C(1) << 10 },
		{ "M", UINT64_C(1) << 20 },
		{ "G", UINT64_C(1) << 30 },
		{ "T", UINT64_C(1) << 40 },
	};

	return number_with_unit(text, units, ARRAY_SIZE(units), ret);
}

int parse_duration_us(const char *text, uint64_t *ret_us)
{
	static const struct unit units[] = {
		{ "", 1000000 },
		{ "ms", 1000 },
		{ "s", 1000000 },
		{ "m", UINT64_C(60) * 1000000 },
		{ "h", UINT64_C(3600) * 1000000 },
	};

	return number_with_unit(text, units, ARRAY_SIZE(units), ret_us);
}

int parse_cpus_milli(const char *text, uint32_t *ret_milli)
{
	uint64_t whole, milli = 0;
	int r = parse_digits(&text, &whole);

	if (r < 0)
		return r;
	if (*text == '.') {
		uint64_t weight = 100;

		if (!*++text)
			return -EINVAL;
		for (; *text >= '0' && *text <= '9' && weight; text++, weight /= 10)
			milli += (uint64_t)(*text - '0') * weight;
	}
	if (*text)
		return -EINVAL;
	if (whole > 100000)
		return -ERANGE;
	*ret_milli = (uint32_t)(whole * 1000 + milli);
	return 0;
}

char *parse_trim(char *text)
{
	static const char blanks[] = " \t";
	size_t n;

	text += strspn(text, blanks);
	for (n = strlen(text); n > 0 && strchr(blanks, text[n - 1]);)
		text[--n] = '\0';
	return text;
}
