/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cells in a sandbox of a service. glovebox-client makes the sandbox and speaks HTTP; requests go
 * to it through a pipe and its answers come through another, one JSON object per line each
 * (src/client/repl_request.c has the other side).
 */
#include "cli/repl/repl.h"

#include "base/io.h"
#include "cli/client.h"
#include "cli/run/service.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/signalfd.h>
#include <sys/wait.h>

#define LINE_MAX_BYTES (REPL_EVENT_MAX + 65536)
#define READ_SIZE 65536

struct remote {
	pid_t pid;
	int to_fd, from_fd;
	struct buf line;
	bool in_cell;
	bool ready; /* the last request is done */
};

static struct remote *remote_of(const struct repl *r)
{
	return r->here;
}

static int send_line(struct remote *m, json_t *request, struct fail *fail)
{
	_cleanup_(freep) char *text = request ? json_dumps(request, JSON_COMPACT) : NULL;
	int e = text ? io_write_all(m->to_fd, text, strlen(text)) : -ENOMEM;

	json_decref(request);
	if (e == 0)
		e = io_write_all(m->to_fd, "\n", 1);
	return e < 0 ? fail_set(fail, -e, "service", "glovebox-client does not answer: %s",
				strerror(-e)) :
		       0;
}

/* {"error": …}: nothing works any more. {"ready": true}: the request is done. Else an event. */
static int on_line(struct repl *r, const char *text, size_t len, struct fail *fail)
{
	json_t *o = json_loadb(text, len, 0, NULL);
	const char *error = json_string_value(json_object_get(o, "error"));
	int e = 0;

	if (error)
		e = fail_set(fail, EPROTO, "service", "%.200s", error);
	else if (json_is_true(json_object_get(o, "ready")))
		remote_of(r)->ready = true;
	else if (json_is_object(o) && json_object_get(o, "type"))
		e = repl_show_event(r, o);
	json_decref(o);
	if (e < 0 && !fail->msg[0] && e != -EPIPE)
		return fail_set(fail, -e, "repl", "cannot show what the cell says");
	return e;
}

static int on_bytes(struct repl *r, struct fail *fail)
{
	static char chunk[READ_SIZE];
	struct remote *m = remote_of(r);
	ssize_t n = read(m->from_fd, chunk, sizeof(chunk));
	unsigned char *end;

	if (n < 0 && errno == EINTR)
		return 0;
	if (n <= 0)
		return fail_set(fail, EPIPE, "service", "the service broke off");
	if (buf_add(&m->line, chunk, (size_t)n) < 0)
		return fail_set(fail, EPROTO, "service", "the service sent something oversized");
	while ((end = memchr(m->line.data, '\n', m->line.len))) {
		size_t len = (size_t)(end - m->line.data);
		int e = len ? on_line(r, (const char *)m->line.data, len, fail) : 0;

		memmove(m->line.data, end + 1, m->line.len - len - 1);
		m->line.len -= len + 1;
		if (e < 0)
			return e;
	}
	return 0;
}

static int on_signal(struct repl *r, struct fail *fail)
{
	struct signalfd_siginfo info;

	if (read(r->q.signal_fd, &info, sizeof(info)) != sizeof(info))
		return 0;
	if (info.ssi_signo == SIGINT && remote_of(r)->in_cell)
		return send_line(remote_of(r), json_pack("{sb}", "interrupt", 1), fail);
	r->ended_by = (int)info.ssi_signo;
	return -EINTR;
}

/* Until what was asked for is done. */
static int service_await(struct repl *r, struct fail *fail)
{
	struct remote *m = remote_of(r);
	int e = 0;

	m->ready = false;
	while (e == 0 && !m->ready) {
		struct pollfd polls[] = {
			{ .fd = m->from_fd, .events = POLLIN },
			{ .fd = r->q.signal_fd, .events = POLLIN },
		};

		if (poll(polls, ARRAY_SIZE(polls), -1) < 0 && errno != EINTR)
			return fail_set(fail, errno, "repl", "poll: %s", strerror(errno));
		if (polls[1].revents)
			e = on_signal(r, fail);
		if (e == 0 && polls[0].revents)
			e = on_bytes(r, fail);
	}
	return e;
}

static json_t *first_request(const struct repl *r)
{
	const struct run_limits *given = &r->q.given;
	json_t *env = json_object(), *limits = json_object();

	for (char **v = r->q.given_env; *v; v++) {
		char *equals = strchr(*v, '=');

		*equals = '\0';
		(void)json_object_set_new(env, *v, json_string(equals + 1));
		*equals = '=';
	}
	if (given->timeout_us)
		(void)json_object_set_new(limits, "wall_ms",
					  json_integer((json_int_t)(given->timeout_us / 1000)));
	if (given->cpu_time_us)
		(void)json_object_set_new(limits, "cpu_ms",
					  json_integer((json_int_t)(given->cpu_time_us / 1000)));
	if (given->memory_bytes)
		(void)json_object_set_new(limits, "memory_mb",
					  json_integer((json_int_t)(given->memory_bytes >> 20)));
	if (given->output_bytes)
		(void)json_object_set_new(limits, "output_bytes",
					  json_integer((json_int_t)given->output_bytes));
	return json_pack("{ss ss so so}", "template", r->q.template_name, "language",
			 r->language.name, "env", env, "limits", limits);
}

static int service_open(struct repl *r, struct fail *fail)
{
	int to[2] = { -EBADF, -EBADF }, from[2] = { -EBADF, -EBADF }, e;
	struct remote *m = calloc(1, sizeof(*m));

	if (!m)
		return fail_set(fail, ENOMEM, "repl", "out of memory");
	m->line = (struct buf)BUF_INIT(LINE_MAX_BYTES);
	r->here = m;
	if (pipe2(to, O_CLOEXEC) < 0 || pipe2(from, O_CLOEXEC) < 0)
		e = -errno;
	else
		e = m->pid = client_spawn("repl-request", r->q.where == RUN_WHERE_SERVICE, to[0],
					  from[1]);
	fd_close(to[0]);
	fd_close(from[1]);
	m->to_fd = to[1];
	m->from_fd = from[0];
	if (e < 0)
		return fail_set(fail, -e, "repl", "cannot start glovebox-client: %s", strerror(-e));
	e = send_line(m, first_request(r), fail);
	return e < 0 ? e : service_await(r, fail);
}

/* The end of its input tells it to remove the sandbox; that is worth waiting for. */
static void service_close(struct repl *r)
{
	struct remote *m = remote_of(r);

	if (!m)
		return;
	fd_close(m->to_fd);
	fd_close(m->from_fd);
	while (m->pid > 0 && waitpid(m->pid, NULL, 0) < 0 && errno == EINTR)
		;
	buf_done(&m->line);
	free(m);
	r->here = NULL;
}

static int service_cell(struct repl *r, const char *code, size_t len, struct fail *fail)
{
	struct remote *m = remote_of(r);
	int e = send_line(m, json_pack("{ss%}", "code", code, len), fail);

	m->in_cell = true;
	if (e == 0)
		e = service_await(r, fail);
	m->in_cell = false;
	return e;
}

static int service_restart(struct repl *r, struct fail *fail)
{
	int e = send_line(remote_of(r), json_pack("{sb}", "restart", 1), fail);

	return e < 0 ? e : service_await(r, fail);
}

const struct repl_place repl_service = {
	.open = service_open,
	.cell = service_cell,
	.restart = service_restart,
	.close = service_close,
};
