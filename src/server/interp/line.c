/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lines of JSON, all ASCII: clients decode each piece that comes from the network by itself, and a character may be
 * cut where pieces meet.
 */
#include "server/interp/interp.h"

#include "base/utf8.h"
#include "server/sandbox/clock.h"

static int add_piece(const char *data, size_t len, void *arg)
{
	return buf_add(arg, data, len);
}

int interp_line(struct buf *out, json_t *event)
{
	size_t before = out->len;
	int r = event ? 0 : -ENOMEM;

	if (r == 0 &&
	    json_dump_callback(event, add_piece, out, JSON_COMPACT | JSON_ENSURE_ASCII) < 0)
		r = -ENOBUFS;
	if (r == 0)
		r = buf_add(out, "\n", 1);
	if (r < 0)
		out->len = before;
	json_decref(event);
	return r;
}

/* How many bytes at the end are the beginning of a character. */
static size_t unfinished(const unsigned char *data, size_t len)
{
	for (size_t n = 1; n < 4 && n <= len; n++) {
		const unsigned char *at = data + len - n;

		if ((*at & 0xc0) == 0x80)
			continue; /* not a first byte */
		return utf8_next(at, n).kind == UTF8_SHORT ? n : 0;
	}
	return 0;
}

static int add_output(struct buf *out, bool is_err, const void *data, size_t len)
{
	_cleanup_(buf_done) struct buf text = BUF_INIT(3 * len + 1);
	char now[CLOCK_TEXT_SIZE];
	int r = utf8_replace_invalid(data, len, &text);

	if (r < 0)
		return r;
	clock_format(clock_wall_ms(), now);
	return interp_line(out, json_pack("{s:s, s:o, s:s}", "type", is_err ? "stderr" : "stdout",
					  "text",
					  json_stringn_nocheck((const char *)text.data, text.len),
					  "timestamp", now));
}

int interp_line_output(struct buf *out, struct interp_carry *carry, bool is_err, const void *data,
		       size_t len)
{
	_cleanup_(buf_done) struct buf all = BUF_INIT(sizeof(carry->bytes) + len);
	int r = buf_add(&all, carry->bytes, carry->len);

	if (r == 0)
		r = buf_add(&all, data, len);
	if (r < 0)
		return r;
	carry->len = unfinished(all.data, all.len);
	all.len -= carry->len;
	memcpy(carry->bytes, all.data + all.len, carry->len);
	return all.len ? add_output(out, is_err, all.data, all.len) : 0;
}

int interp_line_rest(struct buf *out, struct interp_carry *carry, bool is_err)
{
	size_t len = carry->len;

	carry->len = 0;
	return len ? add_output(out, is_err, carry->bytes, len) : 0;
}
