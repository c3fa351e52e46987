/* SPDX-License-Identifier: Apache-2.0 */
/* What an interpreter said: put together from its pieces, as events for the client, and those as
 * lines. Pure. */
#include "server/interp/interp.h"

#include "base/parse.h"
#include "base/utf8.h"
#include "base/budget.h"
#include "server/http/schema.h"
#include "server/sandbox/clock.h"

/* --- put together ---------------------------------------------------------------------------- */

/*
 * AG-05: an event comes in pieces, and it may be large. What all of them together may take is
 * bounded, and so is a key's share of it, whose client perhaps does not read: beyond that a large
 * one is refused as too large. Small ones are not counted and always pass.
 */

#define ALL_MAX ((size_t)512 << 20)
#define KEY_MAX (ALL_MAX / 2) /* more than the largest event takes */

static size_t assembled; /* atomic */

/* Room for an event of this size, whose line, and what it is while it is made, are about as
 * large again. */
static bool assembly_charge(struct interp_assembly *a, size_t size)
{
	size_t want = size > INTERP_EVENT_SMALL ? 3 * size : 0, more;

	if (want <= a->charged)
		return true;
	more = want - a->charged;
	if (!budget_take(a->of_key, more, KEY_MAX))
		return false;
	if (!budget_take(&assembled, more, ALL_MAX)) {
		budget_give_back(a->of_key, more);
		return false;
	}
	a->charged += more;
	return true;
}

static void assembly_empty(struct interp_assembly *a)
{
	buf_done(&a->text);
	a->text = (struct buf)BUF_INIT(INTERP_EVENT_MAX);
}

void interp_assembly_init(struct interp_assembly *a, size_t *of_key)
{
	*a = (struct interp_assembly){ .text = BUF_INIT(INTERP_EVENT_MAX), .of_key = of_key };
}

int interp_assembly_add(struct interp_assembly *a, const void *data, size_t len)
{
	int r;

	a->came += len;
	if (a->came > INTERP_EVENT_MAX)
		return -EPROTO;
	r = a->too_large || !assembly_charge(a, a->came) ? -ENOBUFS : buf_add(&a->text, data, len);
	if (r != -ENOBUFS)
		return r;
	a->too_large = true; /* what there is of it is worth nothing */
	assembly_empty(a);
	return 0;
}

void interp_assembly_reset(struct interp_assembly *a)
{
	assembly_empty(a);
	a->too_large = false;
	a->came = 0;
}

void interp_assembly_release(struct interp_assembly *a)
{
	budget_give_back(&assembled, a->charged);
	budget_give_back(a->of_key, a->charged);
	a->charged = 0;
}

/* --- for the client -------------------------------------------------------------------------- */

#define COUNT_DIGITS_MAX 10
#define ERROR_TEXT_MAX ((size_t)256 << 10)

/* Does reading it take a multiple of what its budget counts? Small ones have that many values at
 * most. */
bool interp_event_is_heavy(const void *text, size_t len)
{
	return len > INTERP_EVENT_SMALL &&
	       !check_bounded(text, len, CHECK_DEPTH_MAX, INTERP_EVENT_SMALL / 2);
}

/*
 * AG-05: what is too deep or has too many values is not read at all. Numbers that are no int64
 * become floating-point ones, as they are in every client anyway.
 */
static int event_parse(const void *text, size_t len, json_t **ret)
{
	json_error_t why;
	json_t *value;

	if (!check_bounded(text, len, CHECK_DEPTH_MAX, INTERP_EVENT_VALUES_MAX))
		return -E2BIG;
	value = json_loadb(text, len, JSON_ALLOW_NUL, &why);
	if (!value && json_error_code(&why) == json_error_numeric_overflow)
		value = json_loadb(text, len, JSON_ALLOW_NUL | JSON_DECODE_INT_AS_REAL, NULL);
	if (!json_is_object(value)) {
		json_decref(value);
		return -EINVAL;
	}
	*ret = value;
	return 0;
}

enum kind { KIND_TEXT, KIND_OBJECT, KIND_OBJECT_OR_ARRAY, KIND_OURS };

static const struct field {
	const char *name;
	enum kind kind;
} fields[] = {
	{ "text", KIND_TEXT },
	{ "html", KIND_TEXT },
	{ "markdown", KIND_TEXT },
	{ "svg", KIND_TEXT },
	{ "png", KIND_TEXT },
	{ "jpeg", KIND_TEXT },
	{ "pdf", KIND_TEXT },
	{ "latex", KIND_TEXT },
	{ "json", KIND_OBJECT_OR_ARRAY },
	{ "javascript", KIND_TEXT },
	{ "data", KIND_OBJECT },
	{ "chart", KIND_OBJECT },
	{ "extra", KIND_OURS },
	{ "is_main_result", KIND_OURS },
	{ "type", KIND_OURS },
};

static const struct field *find_field(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(fields); i++)
		if (strcmp(fields[i].name, name) == 0)
			return &fields[i];
	return NULL;
}

static bool is_kind(const json_t *value, enum kind kind)
{
	switch (kind) {
	case KIND_TEXT:
		return json_is_string(value);
	case KIND_OBJECT:
		return json_is_object(value);
	case KIND_OBJECT_OR_ARRAY:
		return json_is_object(value) || json_is_array(value);
	case KIND_OURS:
	default:
		return false;
	}
}

/* What clients know under a name of its own stays there, if it is of the right type; the rest is
 * extra. */
static int sort_fields(const json_t *from, json_t *event, json_t *extra)
{
	const json_t *more = json_object_get(from, "extra");
	const char *name;
	json_t *value;
	int r = 0;

	json_object_foreach((json_t *)(uintptr_t)from, name, value) {
		const struct field *field = find_field(name);

		if (!field)
			r = json_object_set(extra, name, value);
		else if (is_kind(value, field->kind))
			r = json_object_set(event, name, value);
		if (r < 0)
			return -ENOMEM;
	}
	if (json_is_object(more) && json_object_update(extra, (json_t *)(uintptr_t)more) < 0)
		return -ENOMEM;
	return 0;
}

int interp_event_result(const void *text, size_t len, json_t **ret)
{
	json_t *from = NULL, *event = NULL, *extra = json_object();
	int r = event_parse(text, len, &from);

	if (r == 0) {
		event = json_pack("{s:s, s:b}", "type", "result", "is_main_result",
				  json_is_true(json_object_get(from, "is_main_result")));
		r = event && extra ? sort_fields(from, event, extra) : -ENOMEM;
	}
	if (r == 0 && json_object_set(event, "extra", extra) < 0)
		r = -ENOMEM;
	json_decref(extra);
	json_decref(from);
	if (r < 0) {
		json_decref(event);
		return r;
	}
	*ret = event;
	return 0;
}

/* An error is held until its cell ends, so its texts are cut; not in the middle of a character. */
static json_t *text_or(json_t *object, const char *name, const char *otherwise)
{
	json_t *value = json_object_get(object, name);
	const char *text = json_string_value(value);
	size_t len = json_string_length(value);

	if (!text)
		return json_string(otherwise);
	if (len <= ERROR_TEXT_MAX)
		return json_incref(value);
	for (len = ERROR_TEXT_MAX; len > 0 && ((unsigned char)text[len] & 0xc0) == 0x80;)
		len--;
	return json_stringn(text, len);
}

int interp_event_error(const void *text, size_t len, json_t **ret)
{
	json_t *from = NULL;
	int r = event_parse(text, len, &from);

	if (r < 0)
		return r;
	*ret = json_pack("{s:s, s:o, s:o, s:o}", "type", "error", "name",
			 text_or(from, "name", "Error"), "value", text_or(from, "value", ""),
			 "traceback", text_or(from, "traceback", ""));
	json_decref(from);
	return *ret ? 0 : -ENOMEM;
}

int interp_event_count(const void *text, size_t len, json_t **ret)
{
	char digits[COUNT_DIGITS_MAX + 1];
	uint64_t n;

	if (len == 0 || len > COUNT_DIGITS_MAX)
		return -EINVAL;
	memcpy(digits, text, len);
	digits[len] = '\0';
	if (parse_u64(digits, &n) < 0)
		return -EINVAL;
	*ret = json_pack("{s:s, s:I}", "type", "number_of_executions", "execution_count",
			 (json_int_t)n);
	return *ret ? 0 : -ENOMEM;
}

json_t *interp_error(const char *name, const char *value, const char *traceback)
{
	return json_pack("{s:s, s:s, s:o, s:o}", "type", "error", "name", name, "value",
			 rpc_text(value, strlen(value)), "traceback",
			 rpc_text(traceback, strlen(traceback)));
}

const char *interp_reason(const struct wire_cell_end *end)
{
	static const char *const words[_WIRE_CELL_MAX] = {
		[WIRE_CELL_DONE] = "done",     [WIRE_CELL_INTERRUPTED] = "interrupted",
		[WIRE_CELL_WALL] = "wall",     [WIRE_CELL_CPU] = "cpu",
		[WIRE_CELL_MEMORY] = "memory",
	};

	return end->died && end->reason == WIRE_CELL_DONE ? "died" : words[end->reason];
}

/* AG-06: clients read these as doubles, so what is larger than they can hold is cut. */
static json_int_t event_number(uint64_t n)
{
	return (json_int_t)MIN(n, UINT64_C(1) << 53);
}

json_t *interp_usage(const struct wire_cell_end *end)
{
	return json_pack("{s:s, s:I, s:I, s:I, s:I, s:I, s:s}", "type", "usage", "cpu_ms",
			 event_number(end->cpu_us / 1000), "wall_ms",
			 event_number(end->wall_us / 1000), "memory_peak_bytes",
			 event_number(end->memory_peak), "stdout_bytes",
			 event_number(end->out_bytes), "stderr_bytes", event_number(end->err_bytes),
			 "reason", interp_reason(end));
}

void interp_exit_text(const struct wire_exit *end, char ret[ENVD_STATUS_SIZE])
{
	if (envd_exit_text(end, ret) < 0)
		(void)snprintf(ret, ENVD_STATUS_SIZE, "nobody knows how");
}

/* --- lines ----------------------------------------------------------------------------------- */

/*
 * All ASCII: clients decode each piece that comes from the network by itself, and a character may
 * be cut where pieces meet.
 */

static int line_add_piece(const char *data, size_t len, void *arg)
{
	return buf_add(arg, data, len);
}

int interp_line(struct buf *out, json_t *event)
{
	size_t before = out->len;
	int r = event ? 0 : -ENOMEM;

	if (r == 0 &&
	    json_dump_callback(event, line_add_piece, out, JSON_COMPACT | JSON_ENSURE_ASCII) < 0)
		r = -ENOBUFS;
	if (r == 0)
		r = buf_add(out, "\n", 1);
	if (r < 0)
		out->len = before;
	json_decref(event);
	return r;
}

/* How many bytes at the end are the beginning of a character. */
static size_t line_unfinished(const unsigned char *data, size_t len)
{
	for (size_t n = 1; n < 4 && n <= len; n++) {
		const unsigned char *at = data + len - n;

		if ((*at & 0xc0) == 0x80)
			continue; /* not a first byte */
		return utf8_next(at, n).kind == UTF8_SHORT ? n : 0;
	}
	return 0;
}

static int line_add_output(struct buf *out, bool is_err, const void *data, size_t len)
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
	carry->len = line_unfinished(all.data, all.len);
	all.len -= carry->len;
	memcpy(carry->bytes, all.data + all.len, carry->len);
	return all.len ? line_add_output(out, is_err, all.data, all.len) : 0;
}

int interp_line_rest(struct buf *out, struct interp_carry *carry, bool is_err)
{
	size_t len = carry->len;

	carry->len = 0;
	return len ? line_add_output(out, is_err, carry->bytes, len) : 0;
}
