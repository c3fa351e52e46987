/* SPDX-License-Identifier: Apache-2.0 */
#include "base/utf8.h"

/* What a lead byte promises: how many bytes follow and the range of the first of them. */
struct lead {
	unsigned char first, last; /* lead bytes this row is about */
	unsigned char more;
	unsigned char low, high; /* bounds of the second byte; later ones are 80..BF */
};

/* The second byte's bounds are what keeps out overlong forms, surrogates and U+110000 upwards. */
static const struct lead leads[] = {
	{ 0xc2, 0xdf, 1, 0x80, 0xbf }, { 0xe0, 0xe0, 2, 0xa0, 0xbf }, { 0xe1, 0xec, 2, 0x80, 0xbf },
	{ 0xed, 0xed, 2, 0x80, 0x9f }, { 0xee, 0xef, 2, 0x80, 0xbf }, { 0xf0, 0xf0, 3, 0x90, 0xbf },
	{ 0xf1, 0xf3, 3, 0x80, 0xbf }, { 0xf4, 0xf4, 3, 0x80, 0x8f },
};

static const struct lead *lead_find(unsigned char byte)
{
	for (size_t i = 0; i < ARRAY_SIZE(leads); i++)
		if (byte >= leads[i].first && byte <= leads[i].last)
			return &leads[i];
	return NULL;
}

struct utf8_step utf8_next(const unsigned char *p, size_t n)
{
	const struct lead *lead;
	uint32_t cp;

	if (p[0] < 0x80)
		return (struct utf8_step){ UTF8_CHAR, 1, p[0] };
	lead = lead_find(p[0]);
	if (!lead)
		return (struct utf8_step){ UTF8_BAD, 1, 0 };
	cp = p[0] & (0x3fu >> lead->more);
	for (size_t i = 1; i <= lead->more; i++) {
		unsigned char low = i == 1 ? lead->low : 0x80;
		unsigned char high = i == 1 ? lead->high : 0xbf;

		if (i == n)
			return (struct utf8_step){ UTF8_SHORT, n, 0 };
		if (p[i] < low || p[i] > high)
			return (struct utf8_step){ UTF8_BAD, i, 0 };
		cp = cp << 6 | (p[i] & 0x3fu);
	}
	return (struct utf8_step){ UTF8_CHAR, lead->more + 1u, cp };
}

/* Length of the well-formed text at the start. */
static size_t valid_prefix(const unsigned char *p, size_t n)
{
	size_t i = 0;

	while (i < n) {
		uint64_t eight;
		struct utf8_step step;

		/* Almost everything is ASCII: eight bytes at a time. */
		if (n - i >= sizeof(eight)) {
			memcpy(&eight, p + i, sizeof(eight));
			if (!(eight & UINT64_C(0x8080808080808080))) {
				i += sizeof(eight);
				continue;
			}
		}
		step = utf8_next(p + i, n - i);
		if (step.kind != UTF8_CHAR)
			break;
		i += step.len;
	}
	return i;
}

bool utf8_valid(const void *p, size_t n, size_t *ret_bad_offset)
{
	size_t good = valid_prefix(p, n);

	if (good == n)
		return true;
	if (ret_bad_offset)
		*ret_bad_offset = good;
	return false;
}

bool utf8_plain(const char *text, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (((unsigned char)text[i] < ' ' && text[i] != '\n' && text[i] != '\t') ||
		    text[i] == 0x7f)
			return false;
	return utf8_valid(text, n, NULL);
}

int utf8_replace_invalid(const void *p, size_t n, struct buf *out)
{
	const unsigned char *from = p;
	size_t before = out->len;
	int r = buf_add(out, "", 0);

	while (r >= 0 && n > 0) {
		size_t good = valid_prefix(from, n);

		r = buf_add(out, from, good);
		from += good;
		n -= good;
		if (r >= 0 && n > 0) {
			/* A character cut off by the end is one subpart too. */
			size_t bad = utf8_next(from, n).len;

			r = buf_add(out, "\xef\xbf\xbd", 3);
			from += bad;
			n -= bad;
		}
	}
	if (r < 0) {
		out->len = before;
		if (out->data)
			out->data[before] = '\0';
	}
	return r;
}
