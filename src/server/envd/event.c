/* SPDX-License-Identifier: Apache-2.0 */
/* What clients are told of a command. The texts of its end are those of Go, which E2B's clients look at. */
#include "server/envd/envd.h"

#include <signal.h>

/* base64 and numbers need no escaping, so these messages are put together from fixed text. */
static int add_text(struct buf *out, const char *text)
{
	return buf_add(out, text, strlen(text));
}

int envd_event_start(struct buf *out, uint32_t pid)
{
	char text[64];

	(void)snprintf(text, sizeof(text), "{\"event\":{\"start\":{\"pid\":%u}}}", pid);
	return add_text(out, text);
}

int envd_event_data(struct buf *out, enum wire_type type, const void *data, size_t len)
{
	const char *name = type == WIRE_OUT ? "stdout" : type == WIRE_ERR ? "stderr" : "pty";
	char text[64];
	int r;

	(void)snprintf(text, sizeof(text), "{\"event\":{\"data\":{\"%s\":\"", name);
	r = add_text(out, text);
	if (r == 0)
		r = rpc_base64_add(out, data, len);
	return r < 0 ? r : add_text(out, "\"}}}");
}

static const char *signal_text(int signal_number)
{
	static const char *const names[] = {
		[SIGHUP] = "hangup",
		[SIGINT] = "interrupt",
		[SIGQUIT] = "quit",
		[SIGILL] = "illegal instruction",
		[SIGTRAP] = "trace/breakpoint trap",
		[SIGABRT] = "aborted",
		[SIGBUS] = "bus error",
		[SIGFPE] = "floating point exception",
		[SIGKILL] = "killed",
		[SIGUSR1] = "user defined signal 1",
		[SIGSEGV] = "segmentation fault",
		[SIGUSR2] = "user defined signal 2",
		[SIGPIPE] = "broken pipe",
		[SIGALRM] = "alarm clock",
		[SIGTERM] = "terminated",
	};

	return (size_t)signal_number < ARRAY_SIZE(names) ? names[signal_number] : NULL;
}

int envd_exit_text(const struct wire_exit *end, char ret[ENVD_STATUS_SIZE])
{
	const char *name, *core = end->core ? " (core dumped)" : "";

	if (!wire_exit_ok(end))
		return -EPROTO;
	name = signal_text(end->signal);
	if (end->signal == 0)
		(void)snprintf(ret, ENVD_STATUS_SIZE, "exit status %d", end->code);
	else if (name)
		(void)snprintf(ret, ENVD_STATUS_SIZE, "signal: %s%s", name, core);
	else
		(void)snprintf(ret, ENVD_STATUS_SIZE, "signal: signal %d%s", end->signal, core);
	return 0;
}

int envd_event_end(struct buf *out, const struct wire_exit *end, const char *why)
{
	char status[ENVD_STATUS_SIZE], text[4 * ENVD_STATUS_SIZE + RUN_LIMIT_TEXT_SIZE];
	int r = envd_exit_text(end, status);

	if (r < 0)
		return r;
	if (end->code == 0)
		(void)snprintf(text, sizeof(text),
			       "{\"event\":{\"end\":{\"exited\":true,\"status\":\"%s\"}}}", status);
	else
		(void)snprintf(text, sizeof(text),
			       "{\"event\":{\"end\":{\"exitCode\":%d,\"exited\":%s,"
			       "\"status\":\"%s\",\"error\":\"%s%s%s\"}}}",
			       end->code, end->code > 0 ? "true" : "false", status, status,
			       *why ? "; " : "", why);
	return add_text(out, text);
}
