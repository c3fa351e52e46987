/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a program in a box answers: the head, and behind it chunks, which must come out the same however they arrive. What
 * is accepted must keep the promises of the header.
 */
#include "fuzz.h"

#include "server/port/rules.h"

#define SIZE_MAX_HERE 8192

/* The body behind a head that was read, in pieces: what was in it, or -1. */
static ssize_t unchunk(const struct port_answer *head, const char *data, size_t len, size_t piece,
		       char *ret, bool *ret_end)
{
	struct port_answer a = *head;
	size_t out = 0, rest = 0;

	*ret_end = false;
	while (len > 0 && !*ret_end) {
		size_t n = MIN(piece, len);
		ssize_t got;

		memcpy(ret + out, data, n);
		got = port_answer_unchunk(&a, ret + out, n, ret_end, &rest);
		if (got < 0)
			return -1;
		assert((size_t)got <= n && rest <= n && (rest == 0 || *ret_end));
		out += (size_t)got;
		data += n;
		len -= n;
	}
	return (ssize_t)out;
}

static void fuzz_chunks(const struct port_answer *head, const char *data, size_t len, size_t piece)
{
	static char whole[SIZE_MAX_HERE], parts[SIZE_MAX_HERE];
	bool whole_end, parts_end;
	ssize_t n = unchunk(head, data, len, SIZE_MAX_HERE, whole, &whole_end);
	ssize_t m = unchunk(head, data, len, piece, parts, &parts_end);

	assert(n == m);
	assert(n < 0 || (whole_end == parts_end && memcmp(whole, parts, (size_t)n) == 0));
}

static void check_field(const struct port_answer *a, const struct port_field *f)
{
	assert(strlen(f->name) == f->name_len && f->name_len > 0);
	assert(strlen(f->value) == f->value_len);
	assert(!strpbrk(f->name, " \t\r\n:") && !strpbrk(f->value, "\r\n"));
	assert(!port_field_goes_out(a, f, false) || f->value_len > 0);
	/* What goes out by our own address goes out by the box's name, too. */
	assert(!port_field_goes_out(a, f, true) || port_field_goes_out(a, f, false));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static char head[SIZE_MAX_HERE];
	struct port_answer a = { 0 };
	size_t len, piece;

	if (size < 2 || size > sizeof(head))
		return 0;
	piece = (size_t)data[0] % 32 + 1;
	memcpy(head, data + 1, size - 1);
	len = port_head_end(head, size - 1);
	if (len == 0)
		return 0;
	if (port_answer_read(&a, head, len, data[0] & 0x80) < 0) {
		assert(a.broken);
		return 0;
	}
	assert(a.status >= 100 && a.status <= 599 && a.n_fields <= PORT_FIELDS_MAX);
	assert(a.body != PORT_BODY_LENGTH || a.length <= INT64_MAX);
	assert(a.body != PORT_BODY_TO_END || !a.keeps);
	for (size_t i = 0; i < a.n_fields; i++)
		check_field(&a, &a.field[i]);
	if (a.body == PORT_BODY_CHUNKED)
		fuzz_chunks(&a, (const char *)data + 1 + len, size - 1 - len, piece);
	return 0;
}
