/* SPDX-License-Identifier: Apache-2.0 */
/* glovebox exec: one command in a sandbox. glovebox shell: a terminal in it. */
#include "client/client.h"

#include "base/termsafe.h"
#include "client/stream.h"

#include <getopt.h>
#include <signal.h>
#include <sodium.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <termios.h>

#define INPUT_CHUNK 16384

static const char exec_help[] =
	"Usage: glovebox exec [OPTION]… ID [--] COMMAND [ARGUMENT]…\n"
	"\n"
	"Runs a command in a sandbox. Its exit status is ours.\n"
	"\n"
	"  -i, --stdin           pass our standard input on\n"
	"  -u, --user NAME       as this user of the sandbox (default: user)\n"
	"  -w, --cwd DIR         where (default: the user's home)\n"
	"      --env NAME=VALUE  with this variable\n"
	"      --raw             do not defuse control characters on a terminal\n"
	"\n"
	"Ctrl-C asks the command to end; a second time it is killed.\n"
	"\n"
	"Examples\n"
	"  glovebox exec $id -- python3 -c 'print(6 * 7)'\n"
	"  tar c src | glovebox exec -i $id -- tar x\n";

static const char shell_help[] =
	"Usage: glovebox shell [-u NAME] [ID]\n"
	"\n"
	"Opens a terminal in a sandbox; without ID in a new one, which ends with it.\n"
	"\n"
	"  -u, --user NAME  as this user of the sandbox (default: user)\n";

struct session {
	struct api *api;
	struct api_sandbox sandbox;
	struct stream_events events;
	int fds[2]; /* signals, then our input */
	uint32_t pid;
	bool is_pty;
	bool safe[2]; /* our output is a terminal: defuse what it must not do */
	struct termsafe filter[2];
	int interrupts;
};

/* --- input -------------------------------------------------------------------------------------------------------- */

static json_t *selector(const struct session *s)
{
	return json_pack("{sI}", "pid", (json_int_t)s->pid);
}

static int send_input(struct session *s, const unsigned char *data, size_t len)
{
	_cleanup_(freep) char *text = NULL;
	size_t size = sodium_base64_encoded_len(len, sodium_base64_VARIANT_ORIGINAL);
	struct fail fail = { 0 };

	text = malloc(size);
	if (!text)
		return -ENOMEM;
	(void)sodium_bin2base64(text, size, data, len, sodium_base64_VARIANT_ORIGINAL);
	/* A command that no longer reads, or has just ended, is no reason to stop: its end will come. */
	(void)!api_rpc(s->api, &s->sandbox, "process.Process/SendInput",
		       json_pack("{so s{ss}}", "process", selector(s), "input",
				 s->is_pty ? "pty" : "stdin", text),
		       NULL, &fail);
	return 0;
}

static int on_input(struct session *s)
{
	unsigned char data[INPUT_CHUNK];
	ssize_t n;
	struct fail fail = { 0 };

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
	(void)!api_rpc(s->api, &s->sandbox, "process.Process/CloseStdin",
		       json_pack("{so}", "process", selector(s)), NULL, &fail);
	return 0;
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

/* --- output ----------------------------------------------------------------------------------------------------- */

static int write_all(int fd, const void *data, size_t len)
{
	const char *p = data;

	while (len) {
		ssize_t n = write(fd, p, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		p += n;
		len -= (size_t)n;
	}
	return 0;
}

static int on_output(void *arg, bool is_err, const void *data, size_t len)
{
	struct session *s = arg;
	int fd = is_err ? STDERR_FILENO : STDOUT_FILENO, r;
	size_t size = termsafe_max_out(len);
	char *shown;

	if (!s->safe[is_err])
		return write_all(fd, data, len);
	shown = malloc(size);
	if (!shown)
		return -ENOMEM;
	r = write_all(fd, shown, termsafe_feed(&s->filter[is_err], data, len, shown, size));
	free(shown);
	return r;
}

static void flush_output(struct session *s)
{
	for (int i = 0; i < 2; i++) {
		char shown[512];

		if (s->safe[i])
			(void)write_all(i + 1, shown,
					termsafe_flush(&s->filter[i], shown, sizeof(shown)));
	}
}

/* --- a session ---------------------------------------------------------------------------------------------------- */

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

/* Runs body (taken) to its end: an exit status. */
static int run_session(struct session *s, json_t *body, const char *user, bool with_input)
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

struct exec_options {
	const char *user;
	const char *cwd;
	json_t *env;
	bool with_input;
	bool raw;
};

static int read_options(int argc, char **argv, const char *help, struct exec_options *o)
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

int client_exec(int argc, char **argv)
{
	struct exec_options o = { .env = json_object() };
	int status = read_options(argc, argv, exec_help, &o);
	struct session s = { 0 };
	struct fail fail = { 0 };
	struct api a = { 0 };
	json_t *args = json_array(), *process;
	int first;

	if (status < 0 && argc - optind < 2)
		status = client_help(exec_help, false);
	first = optind + 1;
	if (status < 0 && !strcmp(argv[first], "--"))
		first++;
	if (status < 0 && first >= argc)
		status = client_help(exec_help, false);
	if (status < 0 &&
	    (api_open(&a, &fail) < 0 || api_sandbox(&a, argv[optind], &s.sandbox, &fail) < 0))
		status = client_error(CLIENT_LOST, "%s", fail.msg);
	if (status >= 0) {
		json_decref(o.env);
		json_decref(args);
		api_close(&a);
		return status;
	}
	for (int i = first + 1; i < argc; i++)
		(void)json_array_append_new(args, json_string(argv[i]));
	process = json_pack("{ss so so}", "cmd", argv[first], "args", args, "envs", o.env);
	if (o.cwd)
		(void)json_object_set_new(process, "cwd", json_string(o.cwd));
	s.api = &a;
	for (int i = 0; i < 2; i++) {
		s.safe[i] = !o.raw && isatty(i + 1);
		termsafe_init(&s.filter[i]);
	}
	status = run_session(&s, json_pack("{so sb}", "process", process, "stdin", o.with_input),
			     o.user, o.with_input);
	api_close(&a);
	return status;
}

/* --- shell ----------------------------------------------------------------------------------------------------- */

static struct termios terminal_before;

static void restore_terminal(void)
{
	(void)tcsetattr(STDIN_FILENO, TCSADRAIN, &terminal_before);
}

static int set_raw_terminal(void)
{
	struct termios raw;

	if (tcgetattr(STDIN_FILENO, &terminal_before) < 0)
		return -errno;
	raw = terminal_before;
	cfmakeraw(&raw);
	if (tcsetattr(STDIN_FILENO, TCSADRAIN, &raw) < 0)
		return -errno;
	(void)atexit(restore_terminal);
	return 0;
}

static json_t *shell_body(void)
{
	struct winsize size = { .ws_row = 24, .ws_col = 80 };
	const char *term = getenv("TERM");

	(void)ioctl(STDIN_FILENO, TIOCGWINSZ, &size);
	return json_pack("{s{ss s[ss] s{ss ss}} s{s{si si}}}", "process", "cmd", "/bin/bash",
			 "args", "-i", "-l", "envs", "TERM",
			 term && *term ? term : "xterm-256color", "LANG", "C.UTF-8", "pty", "size",
			 "cols", (int)size.ws_col, "rows", (int)size.ws_row);
}

/* A sandbox for this shell alone. */
static int make_sandbox(struct api *a, struct api_sandbox *ret, struct fail *fail)
{
	json_t *made = NULL;
	int r = api_call(a, "POST", "/v2/sandboxes",
			 json_pack("{ss sI}", "templateID", "base", "timeout", (json_int_t)3600),
			 &made, fail);

	if (r < 0)
		return r;
	(void)snprintf(ret->id, sizeof(ret->id), "%s", client_text(made, "sandboxID"));
	(void)snprintf(ret->token, sizeof(ret->token), "%s", client_text(made, "envdAccessToken"));
	json_decref(made);
	return 0;
}

int client_shell(int argc, char **argv)
{
	struct exec_options o = { .env = json_object() };
	int status = read_options(argc, argv, shell_help, &o);
	struct session s = { .is_pty = true };
	struct fail fail = { 0 };
	struct api a = { 0 };
	bool own = argc - optind == 0;
	char path[128];

	json_decref(o.env);
	if (status >= 0)
		return status;
	if (argc - optind > 1)
		return client_help(shell_help, false);
	if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO))
		return client_error(CLIENT_USAGE,
				    "a shell needs a terminal; use 'glovebox exec -i' in scripts");
	if (api_open(&a, &fail) < 0 ||
	    (own ? make_sandbox(&a, &s.sandbox, &fail) :
		   api_sandbox(&a, argv[optind], &s.sandbox, &fail)) < 0) {
		api_close(&a);
		return client_error(CLIENT_LOST, "%s", fail.msg);
	}
	s.api = &a;
	/* The terminal belongs to the sandbox's programs now, as with ssh: nothing is defused. */
	status = set_raw_terminal() < 0 ? client_error(CLIENT_LOST, "cannot use the terminal") :
					  run_session(&s, shell_body(), o.user, true);
	if (own && client_path(s.sandbox.id, "", path, sizeof(path)) == 0)
		(void)!api_call(&a, "DELETE", path, NULL, NULL, &fail);
	api_close(&a);
	return status;
}
