/* SPDX-License-Identifier: Apache-2.0 */
/* What an agent says of a cell, in the words of E2B's interpreter. */
#include "cli/repl/local_priv.h"

static int show(struct repl *r, json_t *event)
{
	int e = event ? repl_show_event(r, event) : -ENOMEM;

	json_decref(event);
	return e;
}

static json_t *error_event(const char *name, const char *value)
{
	return json_pack("{ss ss ss ss}", "type", "error", "name", name, "value", value,
			 "traceback", "");
}

/* The text is an object that the interpreter, or whoever took its place, made up. */
static json_t *object_event(const struct buf *text, const char *type)
{
	json_t *o = json_loadb((const char *)text->data, text->len, 0, NULL), *event;

	if (!json_is_object(o)) {
		json_decref(o);
		return error_event("BadResult", "what the interpreter says is not JSON");
	}
	event = json_pack("{ss}", "type", type);
	if (json_object_update(event, o) < 0 ||
	    json_object_set_new(event, "type", json_string(type)) < 0) {
		json_decref(event);
		event = NULL;
	}
	json_decref(o);
	return event;
}

static int show_count(struct repl *r, const struct buf *text)
{
	json_t *n = json_loadb((const char *)text->data, text->len, JSON_DECODE_ANY, NULL);
	int e = -EPROTO;

	if (json_is_integer(n))
		e = show(r, json_pack("{ss sI}", "type", "number_of_executions", "execution_count",
				      json_integer_value(n)));
	json_decref(n);
	return e;
}

/* It is shown when the cell is over: a limit can be what stands behind it. */
static int keep_error(struct local *l)
{
	json_decref(l->error);
	l->error = object_event(&l->event, "error");
	return l->error ? 0 : -ENOMEM;
}

static int on_event_end(struct repl *r, const struct wire_event *end)
{
	struct local *l = r->here;
	int e;

	if (l->event_lost)
		e = show(r, error_event("ResultTooLarge", "a result of more than 32 MiB"));
	else if (end->kind == WIRE_EVENT_COUNT)
		e = show_count(r, &l->event);
	else if (end->kind == WIRE_EVENT_ERROR)
		e = keep_error(l);
	else
		e = show(r, object_event(&l->event, "result"));
	l->event.len = 0;
	l->event_lost = false;
	return e;
}

static int on_spilled(struct repl *r, const struct wire_frame *f)
{
	const struct wire_spilled *s = (const struct wire_spilled *)f->data;

	return show(r, json_pack("{ss ss ss%}", "type", "output_spilled", "stream",
				 s->stream == 1 ? "stdout" : "stderr", "path",
				 (const char *)(s + 1), wire_len(f) - sizeof(*s)));
}

static const char *reason_name(const struct wire_cell_end *end)
{
	static const char *const names[_WIRE_CELL_MAX] = {
		[WIRE_CELL_DONE] = "done",     [WIRE_CELL_INTERRUPTED] = "interrupted",
		[WIRE_CELL_WALL] = "wall",     [WIRE_CELL_CPU] = "cpu",
		[WIRE_CELL_MEMORY] = "memory",
	};

	return end->died && end->reason == WIRE_CELL_DONE ? "died" : names[end->reason];
}

/* What a cell did that nobody but we can tell: it reached a limit, or its interpreter is gone. NULL: neither. */
static const char *why_ended(struct local *l, const struct wire_cell_end *end, char *ret,
			     size_t size)
{
	bool memory = l->memory_kills > l->memory_kills_told;
	const char *gone = end->died ? "; its variables are gone" : "";

	l->memory_kills_told = l->memory_kills;
	if (end->reason == WIRE_CELL_WALL) {
		(void)snprintf(ret, size, "it ran longer than --timeout allows%s", gone);
		return "CellTimeout";
	}
	if (end->reason == WIRE_CELL_CPU) {
		(void)snprintf(ret, size, "it used more CPU time than --cpu-time allows%s", gone);
		return "CellCpuLimit";
	}
	if (memory) {
		(void)snprintf(ret, size, "it used more memory than --memory allows%s", gone);
		return "CellMemoryLimit";
	}
	if (!end->died)
		return NULL;
	if (end->exit.code >= 0)
		(void)snprintf(ret, size, "the interpreter ended with status %d%s", end->exit.code,
			       gone);
	else
		(void)snprintf(ret, size, "the interpreter was ended by signal %d%s",
			       end->exit.signal, gone);
	return "ContextDied";
}

/* The error that the cell told, or what stands behind it. */
static int show_error(struct repl *r, const struct wire_cell_end *end)
{
	struct local *l = r->here;
	char value[128] = "";
	const char *name = why_ended(l, end, value, sizeof(value));
	json_t *told = take_ptr(l->error);

	if (!name)
		return told ? show(r, told) : 0;
	json_decref(told);
	return show(r, error_event(name, value));
}

static int on_cell_end(struct repl *r, const struct wire_cell_end *end)
{
	struct local *l = r->here;
	int e = show_error(r, end);

	if (end->died)
		l->has_kernel = false;
	if (e == 0)
		e = show(r, json_pack("{ss sI sI sI sI sI ss}", "type", "usage", "cpu_ms",
				      (json_int_t)(end->cpu_us / 1000), "wall_ms",
				      (json_int_t)(end->wall_us / 1000), "memory_peak_bytes",
				      (json_int_t)end->memory_peak, "stdout_bytes",
				      (json_int_t)end->out_bytes, "stderr_bytes",
				      (json_int_t)end->err_bytes, "reason", reason_name(end)));
	if (e == 0 && end->died)
		e = show(r, json_pack("{ss}", "type", "unexpected_end_of_execution"));
	return e < 0 ? e : show(r, json_pack("{ss}", "type", "end_of_execution"));
}

int local_frame(struct repl *r, const struct wire_frame *f)
{
	struct local *l = r->here;

	switch (f->head.type) {
	case WIRE_OUT:
	case WIRE_ERR:
		return repl_show_output(r, f->head.type == WIRE_ERR, f->data, wire_len(f));
	case WIRE_EVENT:
		if (buf_add(&l->event, f->data, wire_len(f)) < 0)
			l->event_lost = true;
		return 0;
	case WIRE_EVENT_END:
		return on_event_end(r, (const struct wire_event *)f->data);
	case WIRE_SPILLED:
		return on_spilled(r, f);
	case WIRE_CELL_END:
		return on_cell_end(r, (const struct wire_cell_end *)f->data);
	default:
		return -EPROTO;
	}
}
