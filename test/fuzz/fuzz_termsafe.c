/* SPDX-License-Identifier: Apache-2.0 */
/*
 * DV-07: any bytes, cut anywhere, come out as harmless text, and the same text however they are
 * cut.
 */
#include "fuzz.h"

#include "base/termsafe.h"
#include "base/utf8.h"

#define SIZE_LIMIT ((size_t)64 * 1024)

static char whole[4 * (SIZE_LIMIT + TERMSAFE_SGR_MAX) + 256];
static char pieces[sizeof(whole) + 4 * SIZE_LIMIT];

/* Feeds in pieces whose lengths the data itself chooses, or at once. */
static size_t filter(const uint8_t *data, size_t size, bool cut, char *out, size_t out_size)
{
	struct termsafe ts;
	size_t len = 0;

	termsafe_init(&ts);
	for (size_t i = 0; i < size;) {
		size_t part = cut ? MIN((size_t)data[i] % 5 + 1, size - i) : size;
		size_t n = termsafe_feed(&ts, data + i, part, out + len, out_size - len);

		assert(n <= termsafe_max_out(part));
		len += n;
		i += part;
	}
	len += termsafe_flush(&ts, out + len, out_size - len);
	out[len] = '\0';
	return len;
}

static void check_char(const char *text, size_t n)
{
	struct utf8_step step = utf8_next((const unsigned char *)text, n);

	assert(step.kind == UTF8_CHAR);
	if (step.cp == 0x1b) {
		size_t digits = strspn(text + 2, "0123456789;");

		assert(text[1] == '[' && text[2 + digits] == 'm' && digits + 3 <= TERMSAFE_SGR_MAX);
		return;
	}
	if (step.cp == '\r')
		assert(text[1] == '\n');
	else
		assert(step.cp >= 0x20 || step.cp == '\n' || step.cp == '\t');
	assert(step.cp < 0x7f || step.cp > 0x9f);
	assert((step.cp < 0x202a || step.cp > 0x202e) && (step.cp < 0x2066 || step.cp > 0x2069));
	assert(step.cp != 0x200e && step.cp != 0x200f && step.cp != 0x61c);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	size_t n;

	size = MIN(size, SIZE_LIMIT);
	n = filter(data, size, false, whole, sizeof(whole));
	assert(filter(data, size, true, pieces, sizeof(pieces)) == n);
	assert(memcmp(whole, pieces, n) == 0);
	for (size_t i = 0; i < n; i += utf8_next((const unsigned char *)whole + i, n - i).len)
		check_char(whole + i, n - i);
	return 0;
}
