/* SPDX-License-Identifier: Apache-2.0 */
#include "client/session.h"

#include "base/io.h"

#include <getopt.h>
#include <signal.h>
#include <sodium.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>

#define INPUT_CHUNK 49152 /* one frame to the agent, and few requests: those are counted */

/* --- input ------------------------------------------------------------------------------------ */

static json_t *selector(const struct session *s)
{
	return json_pack("{sI}", "pid", (json_int_t)s->pid);
}

static int send_input(struct session *s, const unsigned char *data, size_t len)
{
	_cleanup_(freep) char *text = NULL;
	size_t size = sodium_base64_encoded_len(len, sodium_base64_VARIANT_ORIGINAL);

	text = malloc(size);
	if (!text)
		return -ENOMEM;
	(void)sodium_bin2base64(text, size, data, len, sodium_base64_VARIANT_ORIGINAL);
	return stream_post(&s->events, s->api, &s->sandbox, "process.Process/SendInput",
			   json_pack("{so s{ss}}", "process", selector(s), "input",
				     s->is_pty ? "pty" : "stdin", text));
}

/* What the command did not get must not be missing without a word, unless it does not want any
 * more. */
static int on_posted(void *arg, int result, struct fail *fail)
{
	struct session *s = arg;
	char why[sizeof(fail->msg)];

	if (result == 0)
		return 0;
	if (result == -ENOENT || strstr(fail->msg, "has no open input")) {
		s->events.n_fds = 1; /* only signals from now on; its end will come */
		return 0;
	}
	memcpy(why, fail->msg, sizeof(why));
	return fail_set(fail, -result, "exec", "input was lost: %.100s", why);
}

static void on_tick(void *arg)
{
	const struct session *s = arg;

	if (s->own)
		own_keep(s->own);
}

static int on_input(struct session *s)
{
	unsigned char data[INPUT_CHUNK];
	ssize_t n;

	if (!s->pid)
		return 0; /* not started yet */
	n = read(STDIN_FILENO, data, sizeof(data));
	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return 0;
	if (n > 0)
		return send_input(s, data, (size_t)n);
	s->events.n_fds = 1; /* the end: only signals from now on */
	if (s->is_pty)
		return 0;
	return stream_post(&s->events, s->api, &s->sandbox, "process.Process/CloseStdin",
			   json_pack("{so}", "process", selector(s)));
}

static void send_size(struct session *s)
{
	struct winsize size = { .ws_row = 24, .ws_col = 80 };
	struct fail fail = { 0 };

	if (!s->is_pty || ioctl(STDIN_FILENO, TIOCGWINSZ, &size) < 0)
		return;
	(void)!api_rpc(s->api, &s->sandbox, "process.Process/Update",
		       json_pack("{so s{s{si si}}}", "process", selector(s), "pty", "size", "cols",
				 (int)size.ws_col, "rows", (int)size.ws_row),
		       NULL, &fail);
}

static int on_signal(struct session *s)
{
	struct signalfd_siginfo info;
	struct fail fail = { 0 };

	if (read(s->fds[0], &info, sizeof(info)) != sizeof(info))
		return 0;
	if (info.ssi_signo == SIGWINCH) {
		if (s->pid)
			send_size(s);
		return 0;
	}
	if (!s->pid || s->interrupts++ > 1)
		return -EINTR;
	(void)!api_rpc(s->api, &s->sandbox, "process.Process/SendSignal",
		       json_pack("{so ss}", "process", selector(s), "signal",
				 s->interrupts == 1 ? "SIGNAL_SIGTERM" : "SIGNAL_SIGKILL"),
		       NULL, &fail);
	return 0;
}

static int on_readable(void *arg, size_t which)
{
	return which == 0 ? on_signal(arg) : on_input(arg);
}

static void on_started(void *arg, uint32_t pid)
{
	struct session *s = arg;

	s->pid = pid;
	send_size(s); /* it may have changed meanwhile */
}

/* --- output ----------------------------------------------------------------------------------- */

static int on_output(void *arg, bool is_err, const void *data, size_t len)
{
	struct session *s = arg;
	int fd = is_err ? STDERR_FILENO : STDOUT_FILENO, r;
	size_t size = termsafe_max_out(len);
	char *shown;

	if (!s->safe[is_err])
		return io_write_all(fd, data, len);
	shown = malloc(size);
	if (!shown)
		return -ENOMEM;
	r = io_write_all(fd, shown, termsafe_feed(&s->filter[is_err], data, len, shown, size));
	free(shown);
	return r;
}

static void flush_output(struct session *s)
{
	for (int i = 0; i < 2; i++) {
		char shown[512];

		if (s->safe[i])
			(void)!io_write_all(i + 1, shown,
					    termsafe_flush(&s->filter[i], shown, sizeof(shown)));
	}
}

/* --- a session -------------------------------------------------------------------------------- */

static int open_signals(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	sigaddset(&set, SIGWINCH);
	(void)sigprocmask(SIG_BLOCK, &set, NULL);
	(void)signal(SIGPIPE, SIG_IGN);
	return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

int session_run(struct session *s, json_t *body, const char *user, bool with_input)
{
	struct stream_end end = { 0 };
	struct fail fail = { 0 };
	int r;

	s->fds[0] = open_signals();
	s->fds[1] = STDIN_FILENO;
	s->events = (struct stream_events){
		.arg = s,
		.started = on_started,
		.output = on_output,
		.readable = on_readable,
		.posted = on_posted,
		.tick = on_tick,
		.fds = s->fds,
		.n_fds = with_input ? 2 : 1,
	};
	r = stream_start(s->api, &s->sandbox, body, user, &s->events, &end, &fail);
	flush_output(s);
	fd_closep(&s->fds[0]);
	if (r == -EINTR)
		return 128 + SIGINT;
	if (r < 0)
		return client_error(CLIENT_LOST, "%s", fail.msg[0] ? fail.msg : strerror(-r));
	return stream_exit_status(&end);
}

int session_options(int argc, char **argv, const char *help, struct session_options *o)
{
	enum { ENV = 256, RAW };
	static const struct option options[] = {
		{ "stdin", no_argument, NULL, 'i' },
		{ "user", required_argument, NULL, 'u' },
		{ "cwd", required_argument, NULL, 'w' },
		{ "env", required_argument, NULL, ENV },
		{ "raw", no_argument, NULL, RAW },
		{ "help", no_argument, NULL, 'h' },
		{ 0 },
	};
	int c;

	while ((c = getopt_long(argc, argv, "+iu:w:h", options, NULL)) != -1) {
		const char *equals = c == ENV ? strchr(optarg, '=') : NULL;
		char name[256];

		if (c == 'i') {
			o->with_input = true;
		} else if (c == 'u') {
			o->user = optarg;
		} else if (c == 'w') {
			o->cwd = optarg;
		} else if (c == RAW) {
			o->raw = true;
		} else if (c == ENV && equals && equals > optarg &&
			   equals - optarg < (ptrdiff_t)sizeof(name)) {
			(void)snprintf(name, sizeof(name), "%.*s", (int)(equals - optarg), optarg);
			(void)json_object_set_new(o->env, name, json_string(equals + 1));
		} else if (c == ENV) {
			return client_error(CLIENT_USAGE, "--env %s: give NAME=VALUE", optarg);
		} else {
			return client_help(help, c == 'h');
		}
	}
	return -1;
}
