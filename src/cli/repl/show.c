/* SPDX-License-Identifier: Apache-2.0 */
/* What a cell says, for people and for programs. All of it is hostile: on a terminal it is defused
 * (run_emit). */
#include "cli/repl/repl.h"

#include "base/io.h"
#include "base/utf8.h"

#include <fcntl.h>
#include <limits.h>
#include <sodium.h>
#include <stdarg.h>

/* --- pictures of a result become files: a terminal cannot show them -------------------------- */

#define SAME_NAME_MAX 1000

/* A new file, named after the cell; one that is there is never touched. */
static int new_file(struct repl *r, const char *ending, char *path, size_t size)
{
	for (int i = 0; i < SAME_NAME_MAX; i++) {
		char number[16] = "";
		int fd;

		r->n_pictures++;
		if (r->n_pictures > 1)
			(void)snprintf(number, sizeof(number), "-%u", r->n_pictures);
		if (snprintf(path, size, "%s/cell-%lld%s.%s", r->pictures, (long long)r->count,
			     number, ending) >= (int)size)
			return -ENAMETOOLONG;
		fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
		if (fd >= 0)
			return fd;
		if (errno != EEXIST)
			return -errno;
	}
	return -EEXIST;
}

static int decode(const char *text, size_t len, unsigned char **ret, size_t *ret_len)
{
	size_t size = len / 4 * 3 + 3;
	_cleanup_(freep) unsigned char *data = malloc(size);

	if (!data)
		return -ENOMEM;
	if (sodium_base642bin(data, size, text, len, "\n", ret_len, NULL,
			      sodium_base64_VARIANT_ORIGINAL) < 0)
		return -EBADMSG;
	*ret = take_ptr(data);
	return 0;
}

static int picture_save(struct repl *r, const char *ending, const void *data, size_t len)
{
	_cleanup_(fd_closep) int fd = -EBADF;
	char path[PATH_MAX];
	int e;

	fd = new_file(r, ending, path, sizeof(path));
	e = fd < 0 ? fd : io_write_all(fd, data, len);
	if (e < 0)
		repl_say(r, "cannot save a picture in %s: %s", r->pictures, strerror(-e));
	else
		repl_say(r, "picture: %s", path);
	return e;
}

static int repl_pictures(struct repl *r, const json_t *result)
{
	static const struct {
		const char *key, *ending;
		bool base64;
	} kinds[] = {
		{ "png", "png", true },
		{ "jpeg", "jpg", true },
		{ "svg", "svg", false },
		{ "pdf", "pdf", true },
	};
	int n = 0;

	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		const json_t *value = json_object_get(result, kinds[i].key);
		_cleanup_(freep) unsigned char *data = NULL;
		size_t len = json_string_length(value);

		if (!json_is_string(value))
			continue;
		n++;
		if (!kinds[i].base64)
			(void)picture_save(r, kinds[i].ending, json_string_value(value), len);
		else if (decode(json_string_value(value), len, &data, &len) == 0)
			(void)picture_save(r, kinds[i].ending, data, len);
		else
			repl_say(r, "a picture that cannot be read (%s)", kinds[i].key);
	}
	return n;
}

#define RED "\033[31m"
#define PLAIN "\033[0m"

/* --- for programs ----------------------------------------------------------------------------- */

static int print_line(const json_t *event)
{
	_cleanup_(freep) char *text =
		json_dumps(event, JSON_COMPACT | JSON_ENSURE_ASCII | JSON_REAL_PRECISION(17));

	if (!text)
		return -ENOMEM;
	return puts(text) < 0 || fflush(stdout) == EOF ? -EPIPE : 0;
}

/* Bytes at the end of a text that are the beginning of a character. */
static size_t unfinished(const unsigned char *p, size_t n)
{
	for (size_t back = 1; back <= MIN(n, (size_t)3); back++)
		if ((p[n - back] & 0xc0) == 0xc0)
			return utf8_next(p + n - back, back).kind == UTF8_SHORT ? back : 0;
	return 0;
}

/* A character that is cut in two comes whole with its second half. */
static int print_output(struct repl *r, bool is_err, const void *data, size_t len, bool last)
{
	_cleanup_(buf_done) struct buf bytes = BUF_INIT(REPL_EVENT_MAX);
	_cleanup_(buf_done) struct buf text = BUF_INIT(REPL_EVENT_MAX * 3);
	int e = buf_add(&bytes, r->rest[is_err], r->n_rest[is_err]);
	size_t rest;
	json_t *event;

	if (e == 0)
		e = buf_add(&bytes, data, len);
	if (e < 0)
		return e;
	rest = last ? 0 : unfinished(bytes.data, bytes.len);
	memcpy(r->rest[is_err], bytes.data + bytes.len - rest, rest);
	r->n_rest[is_err] = rest;
	if (bytes.len == rest)
		return 0;
	e = utf8_replace_invalid(bytes.data, bytes.len - rest, &text);
	if (e < 0)
		return e;
	event = json_pack("{ss ss%}", "type", is_err ? "stderr" : "stdout", "text",
			  (const char *)text.data, text.len);
	e = event ? print_line(event) : -ENOMEM;
	json_decref(event);
	return e;
}

/* Before anything that is not output. */
static int print_rest(struct repl *r)
{
	int e = 0;

	for (int is_err = 0; e == 0 && is_err < 2; is_err++)
		if (r->n_rest[is_err])
			e = print_output(r, is_err, "", 0, true);
	return e;
}

/* --- for people ------------------------------------------------------------------------------- */

/* A terminal that went away answers EIO, as a pipe that nobody reads answers EPIPE. */
static int emit(const struct repl *r, bool is_err, const void *data, size_t len)
{
	int e = run_emit(&r->q, NULL, is_err, data, len);

	return e == -EIO && r->terminal ? -EPIPE : e;
}

int repl_show_output(struct repl *r, bool is_err, const void *data, size_t len)
{
	const char *text = data;

	if (r->q.json)
		return print_output(r, is_err, data, len, false);
	if (len)
		r->in_line = text[len - 1] != '\n';
	repl_record_output(r, data, len);
	return emit(r, is_err, data, len);
}

static int show_text(struct repl *r, bool is_err, const char *text)
{
	return repl_show_output(r, is_err, text, strlen(text));
}

static int fresh_line(struct repl *r, bool is_err)
{
	return r->in_line ? show_text(r, is_err, "\n") : 0;
}

void repl_say(struct repl *r, const char *fmt, ...)
{
	char text[512], shown[768];
	va_list args;

	va_start(args, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	termsafe_line(text, shown, sizeof(shown));
	/* On a terminal both streams are one. */
	if (!r->terminal)
		run_emit_break();
	else if (r->in_line)
		(void)fputs("\n", stderr);
	r->in_line = false;
	(void)fprintf(stderr, r->terminal ? "%s\n" : "glovebox: %s\n", shown);
}

static const char *text_of(const json_t *o, const char *key)
{
	const char *text = json_string_value(json_object_get(o, key));

	return text ? text : "";
}

static int show_error(struct repl *r, const json_t *error)
{
	const char *traceback = text_of(error, "traceback");
	int e = fresh_line(r, true);

	r->failed = true;
	if (e == 0 && r->colour)
		e = emit(r, true, RED, strlen(RED));
	if (e == 0 && *traceback) {
		e = show_text(r, true, traceback);
	} else if (e == 0) {
		e = show_text(r, true, text_of(error, "name"));
		if (e == 0 && *text_of(error, "value"))
			e = show_text(r, true, ": ");
		if (e == 0)
			e = show_text(r, true, text_of(error, "value"));
	}
	if (e == 0 && r->colour)
		e = emit(r, true, PLAIN, strlen(PLAIN));
	r->in_line = true;
	return e < 0 ? e : fresh_line(r, true);
}

/* What a result has to say in words; "" when nothing. */
static const char *words_of(const json_t *result)
{
	static const char *const kinds[] = { "text", "markdown", "latex", "html", "javascript" };

	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		if (*text_of(result, kinds[i]))
			return text_of(result, kinds[i]);
	return "";
}

static int show_result(struct repl *r, const json_t *result)
{
	bool main_result = json_is_true(json_object_get(result, "is_main_result"));
	const char *text = words_of(result);
	char label[48];
	int e = 0;

	if (repl_pictures(r, result) > 0)
		return 0; /* its text only says that there is one */
	e = fresh_line(r, false);
	if (e == 0 && main_result && r->terminal) {
		(void)snprintf(label, sizeof(label), "Out[%lld]:%s", (long long)r->count,
			       strchr(text, '\n') ? "\n" : " ");
		e = show_text(r, false, label);
	}
	if (e == 0)
		e = show_text(r, false, text);
	r->in_line = true;
	return e < 0 ? e : fresh_line(r, false);
}

static void show_usage(struct repl *r, const json_t *u)
{
	if (r->q.verbose)
		repl_say(r, "%.1f ms, CPU %.1f ms, memory %.1f MiB more at its peak",
			 json_number_value(json_object_get(u, "wall_ms")),
			 json_number_value(json_object_get(u, "cpu_ms")),
			 json_number_value(json_object_get(u, "memory_peak_bytes")) / 1048576.0);
}

static int show_event(struct repl *r, const char *type, const json_t *event)
{
	if (!strcmp(type, "result"))
		return show_result(r, event);
	if (!strcmp(type, "error"))
		return show_error(r, event);
	if (!strcmp(type, "stdout") || !strcmp(type, "stderr"))
		return repl_show_output(r, !strcmp(type, "stderr"), text_of(event, "text"),
					json_string_length(json_object_get(event, "text")));
	if (!strcmp(type, "usage"))
		show_usage(r, event);
	if (!strcmp(type, "output_spilled"))
		repl_say(r, "the rest of its %s is in %s in the box", text_of(event, "stream"),
			 text_of(event, "path"));
	return 0;
}

int repl_show_event(struct repl *r, const json_t *event)
{
	const char *type = text_of(event, "type");
	const json_t *count = json_object_get(event, "execution_count");
	int e = 0;

	if (!strcmp(type, "number_of_executions") && json_is_integer(count))
		r->count = json_integer_value(count);
	if (!strcmp(type, "error"))
		r->failed = true;
	if (!strcmp(type, "end_of_execution"))
		r->over = true;
	if (!r->q.json)
		return show_event(r, type, event);
	e = print_rest(r);
	return e < 0 ? e : print_line(event);
}
