/* SPDX-License-Identifier: Apache-2.0 */
/* Cells from a pipe or a file: as they are, or with --json one request per line. */
#include "cli/repl/repl.h"

#include "cli/cli.h"

#include <poll.h>
#include <sys/signalfd.h>

#define INPUT_MAX (REPL_CODE_MAX * 4)
#define REQUEST_MAX (REPL_CODE_MAX * 6 + 4096) /* JSON may write a byte as \u00XX */
#define READ_SIZE 65536

static int lost(struct repl *r, const struct fail *fail, int e)
{
	if (r->ended_by)
		return 128 + r->ended_by;
	if (e == -EPIPE && !fail->msg[0])
		return 128 + SIGPIPE;
	return cli_error(CLI_FAILURE, "%s", fail->msg);
}

/* --- one request per line --------------------------------------------------------------------- */

/* A request that is none fails like a cell, so that the other side, who waits for an end, gets one.
 */
static int pipe_refuse(struct repl *r, const char *why)
{
	json_t *error = json_pack("{ss ss ss ss}", "type", "error", "name", "BadRequest", "value",
				  why, "traceback", "");
	json_t *end = json_pack("{ss}", "type", "end_of_execution");
	int e = error && end ? repl_show_event(r, error) : -ENOMEM;

	if (e == 0)
		e = repl_show_event(r, end);
	json_decref(error);
	json_decref(end);
	return e;
}

static int pipe_restart(struct repl *r, struct fail *fail)
{
	json_t *end = json_pack("{ss}", "type", "end_of_execution");
	int e = r->place->restart(r, fail);

	if (e == 0)
		e = end ? repl_show_event(r, end) : -ENOMEM;
	json_decref(end);
	return e;
}

static int pipe_on_request(struct repl *r, const char *line, size_t len, bool *failed,
			   struct fail *fail)
{
	json_t *o = json_loadb(line, len, JSON_REJECT_DUPLICATES, NULL);
	const json_t *code = json_object_get(o, "code");
	int e;

	r->failed = false;
	if (json_is_string(code))
		e = json_string_length(code) > REPL_CODE_MAX ?
			    pipe_refuse(r, "the code is larger than 1 MiB") :
			    repl_run(r, json_string_value(code), json_string_length(code), fail);
	else if (json_is_true(json_object_get(o, "restart")))
		e = pipe_restart(r, fail);
	else
		e = pipe_refuse(r, "a line must be {\"code\": TEXT} or {\"restart\": true}");
	json_decref(o);
	*failed |= r->failed;
	return e;
}

/* More of standard input: 1, 0 at its end. */
static int read_more(struct repl *r, struct buf *input, struct fail *fail)
{
	static char chunk[READ_SIZE];
	struct pollfd polls[] = {
		{ .fd = STDIN_FILENO, .events = POLLIN },
		{ .fd = r->q.signal_fd, .events = POLLIN },
	};
	struct signalfd_siginfo info;
	ssize_t n;

	while (poll(polls, ARRAY_SIZE(polls), -1) < 0)
		if (errno != EINTR)
			return fail_set(fail, errno, "repl", "poll: %s", strerror(errno));
	if (polls[1].revents && read(r->q.signal_fd, &info, sizeof(info)) == sizeof(info)) {
		r->ended_by = (int)info.ssi_signo;
		return -EINTR;
	}
	n = read(STDIN_FILENO, chunk, sizeof(chunk));
	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return 1;
	if (n < 0)
		return fail_set(fail, errno, "repl", "cannot read the cells: %s", strerror(errno));
	if (n > 0 && buf_add(input, chunk, (size_t)n) < 0)
		return fail_set(fail, EFBIG, "repl", "the input is larger than %zu MiB",
				input->max >> 20);
	return n > 0;
}

static int serve_requests(struct repl *r)
{
	_cleanup_(buf_done) struct buf input = BUF_INIT(REQUEST_MAX);
	struct fail fail = { 0 };
	bool failed = false;
	int more = 1, e = 0;

	while (e == 0 && more > 0) {
		unsigned char *end;

		more = read_more(r, &input, &fail);
		while (e == 0 && input.len && (end = memchr(input.data, '\n', input.len))) {
			size_t len = (size_t)(end - input.data);

			e = pipe_on_request(r, (const char *)input.data, len, &failed, &fail);
			memmove(input.data, end + 1, input.len - len - 1);
			input.len -= len + 1;
		}
	}
	if (e == 0 && more == 0 && input.len)
		e = pipe_on_request(r, (const char *)input.data, input.len, &failed, &fail);
	e = e < 0 ? e : more;
	return e < 0 ? lost(r, &fail, e) : failed;
}

/* --- cells as they are ------------------------------------------------------------------------ */

static bool is_blank(const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (!strchr(" \t\r\n", text[i]) || !text[i])
			return false;
	return true;
}

/* Where the cell that begins at `text` ends: before a line that divides, or at the end. */
static size_t cell_length(const struct repl *r, const char *text, size_t len)
{
	for (size_t at = 0; at < len;) {
		const char *newline = memchr(text + at, '\n', len - at);
		size_t line = newline ? (size_t)(newline - text) - at : len - at;

		if (at > 0 && repl_is_marker(r, text + at, line))
			return at;
		at += line + (newline != NULL);
	}
	return len;
}

static int run_all(struct repl *r)
{
	_cleanup_(buf_done) struct buf input = BUF_INIT(INPUT_MAX);
	struct fail fail = { 0 };
	int e;

	do {
		e = read_more(r, &input, &fail);
	} while (e > 0);
	if (e < 0)
		return lost(r, &fail, e);
	for (size_t at = 0; at < input.len && !r->failed;) {
		const char *cell = (const char *)input.data + at;
		size_t len = cell_length(r, cell, input.len - at);

		if (!is_blank(cell, len))
			e = repl_run(r, cell, len, &fail);
		if (e < 0)
			return lost(r, &fail, e);
		at += len;
	}
	return r->failed;
}

int repl_pipe(struct repl *r)
{
	return r->q.json ? serve_requests(r) : run_all(r);
}
