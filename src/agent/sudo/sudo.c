/* SPDX-License-Identifier: Apache-2.0 */
/* The program: what is asked on its command line goes to the agent, and it ends as the command
 * does. */
#include "agent/sudo/sudo.h"

#include <fcntl.h>
#include <getopt.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <termios.h>

#ifndef TIOCGPTPEER
#define TIOCGPTPEER _IO('T', 0x41)
#endif

#define CHUNK 4096
#define LEFT_MAX (1 << 20) /* of output that comes after the command's end */

extern char **environ;

/* What the command line says. */
struct sudo_options {
	const char *user;
	bool keep_env;         /* -E */
	const char *keep_list; /* --preserve-env=A,B */
	bool set_home;         /* -H */
	bool login;            /* -i */
	bool shell;            /* -s */
	bool nothing;          /* -v, -k, -K: there is no password to ask for or to forget */
	char **vars;           /* VAR=value in front of the command */
	size_t n_vars;
	char **command;
	size_t n_command;
};

/* --- the command line ------------------------------------------------------------------------ */

static const char help[] =
	"usage: sudo [-EHinsS] [-u USER] [VAR=value]... [--] [COMMAND [ARGUMENT...]]\n"
	"\n"
	"Runs a command as root of this box, or as USER of it. There is no password.\n"
	"\n"
	"  -u, --user USER        run as USER instead of root\n"
	"  -E, --preserve-env     keep the environment; --preserve-env=A,B keeps A and B\n"
	"  -H, --set-home         HOME is USER's also with -E\n"
	"  -i, --login            run USER's shell as a login shell, in USER's home\n"
	"  -s, --shell            run the shell that SHELL names\n"
	"  -n, --non-interactive  never ask for a password, which is always so\n"
	"  -S, --stdin            read the password from standard input: none is read\n"
	"  -v, -k, -K             check or forget the password: does nothing\n"
	"\n"
	"examples: sudo apt-get install -y jq   sudo -u postgres psql   sudo -i\n";

static const struct option longs[] = {
	{ "user", required_argument, NULL, 'u' },
	{ "preserve-env", optional_argument, NULL, 'E' },
	{ "set-home", no_argument, NULL, 'H' },
	{ "login", no_argument, NULL, 'i' },
	{ "shell", no_argument, NULL, 's' },
	{ "non-interactive", no_argument, NULL, 'n' },
	{ "stdin", no_argument, NULL, 'S' },
	{ "validate", no_argument, NULL, 'v' },
	{ "reset-timestamp", no_argument, NULL, 'k' },
	{ "remove-timestamp", no_argument, NULL, 'K' },
	{ "prompt", required_argument, NULL, 'p' },
	{ "help", no_argument, NULL, 'h' },
	{ "version", no_argument, NULL, 'V' },
	{ NULL, 0, NULL, 0 },
};

static int on_option(struct sudo_options *o, int option)
{
	switch (option) {
	case 'u':
		o->user = optarg;
		return 0;
	case 'E':
		if (optarg)
			o->keep_list = optarg;
		else
			o->keep_env = true;
		return 0;
	case 'H':
		o->set_home = true;
		return 0;
	case 'i':
		o->login = true;
		return 0;
	case 's':
		o->shell = true;
		return 0;
	case 'v':
	case 'k':
	case 'K':
		o->nothing = true;
		return 0;
	case 'n':
	case 'S':
	case 'p':
		return 0; /* about the password */
	case 'h':
		(void)fputs(help, stdout);
		return 1;
	case 'V':
		(void)puts("sudo of glovebox");
		return 1;
	default:
		(void)fputs(help, stderr); /* getopt has said which one it does not know */
		return -1;
	}
}

static bool is_variable(const char *text)
{
	return strchr(text, '=') && text[0] != '=';
}

/* 0, or -1 after having said what is wrong. 1: help or version was printed. */
static int sudo_parse(int argc, char **argv, struct sudo_options *o)
{
	int option, r = 0;

	*o = (struct sudo_options){ .user = "root" };
	/* "+": options behind the command are the command's. */
	while (r == 0 && (option = getopt_long(argc, argv, "+u:EHisnSvkKp:hV", longs, NULL)) != -1)
		r = on_option(o, option);
	if (r != 0)
		return r;
	o->vars = argv + optind;
	while (optind < argc && is_variable(argv[optind])) {
		optind++;
		o->n_vars++;
	}
	o->command = argv + optind;
	o->n_command = (size_t)(argc - optind);
	if (o->login && o->shell) {
		(void)fputs("sudo: -i and -s exclude each other\n", stderr);
		return -1;
	}
	if (o->n_command == 0 && !o->login && !o->shell && !o->nothing) {
		(void)fputs(help, stderr);
		return -1;
	}
	return 0;
}

/* --- what to run ----------------------------------------------------------------------------- */

static int sudo_send_text(int sock, enum wire_type type, const char *text)
{
	return wire_send(sock, type, text, strlen(text));
}

static int sudo_send_variable(int sock, const char *name, const char *value)
{
	char *text = NULL;
	int r = asprintf(&text, "%s=%s", name, value) < 0 ? -ENOMEM : 0;

	if (r == 0)
		r = sudo_send_text(sock, WIRE_ENV, text);
	free(text);
	return r;
}

static bool is_variable_named(const char *variable, const char *name, size_t len)
{
	return strncmp(variable, name, len) == 0 && variable[len] == '=';
}

static bool in_list(const char *variable, const char *list)
{
	while (list && *list) {
		size_t len = strcspn(list, ",");

		if (is_variable_named(variable, list, len))
			return true;
		list += len + (list[len] == ',');
	}
	return false;
}

/* What another user's command gets of our environment when nobody asked for more. The proxy is the
 * box's way out for every user. */
static bool is_kept(const char *variable)
{
	static const char *const names[] = {
		"TERM",       "COLORTERM",   "LANG",     "LANGUAGE",   "TZ",          "DISPLAY",
		"http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY",
	};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (is_variable_named(variable, names[i], strlen(names[i])))
			return true;
	return strncmp(variable, "LC_", 3) == 0;
}

/* What is always the target's. */
static bool is_set(const char *variable, const struct sudo_options *o)
{
	return is_variable_named(variable, "PATH", 4) || is_variable_named(variable, "USER", 4) ||
	       is_variable_named(variable, "LOGNAME", 7) ||
	       ((o->set_home || o->login) && is_variable_named(variable, "HOME", 4)) ||
	       (o->login && is_variable_named(variable, "SHELL", 5));
}

static int sudo_send_environment(int sock, const struct sudo_options *o)
{
	char uid[16], gid[16];
	int r = 0;

	for (char **v = environ; r == 0 && *v; v++)
		if (strchr(*v, '=') > *v && !is_set(*v, o) &&
		    (o->keep_env || is_kept(*v) || in_list(*v, o->keep_list)))
			r = sudo_send_text(sock, WIRE_ENV, *v);
	(void)snprintf(uid, sizeof(uid), "%u", getuid());
	(void)snprintf(gid, sizeof(gid), "%u", getgid());
	if (r == 0)
		r = sudo_send_variable(sock, "PATH", WIRE_BOX_PATH);
	if (r == 0)
		r = sudo_send_variable(sock, "SUDO_USER", getuid() == 0 ? "root" : "user");
	if (r == 0)
		r = sudo_send_variable(sock, "SUDO_UID", uid);
	if (r == 0)
		r = sudo_send_variable(sock, "SUDO_GID", gid);
	if (r == 0 && o->n_command)
		r = sudo_send_variable(sock, "SUDO_COMMAND", o->command[0]);
	for (size_t i = 0; r == 0 && i < o->n_vars; i++)
		r = sudo_send_text(sock, WIRE_ENV, o->vars[i]);
	return r;
}

/* Appends a word so that a shell reads it as this word. */
static char *quote(char *to, const char *word)
{
	for (; *word; word++) {
		unsigned char c = (unsigned char)*word;
		bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
			     (c >= '0' && c <= '9') || c == '_' || c == '-' || c == '$' || c >= 128;

		if (c == '\n') { /* a backslash before it would remove it */
			*to++ = '\'';
			*to++ = '\n';
			*to++ = '\'';
			continue;
		}
		if (!plain)
			*to++ = '\\';
		*to++ = (char)c;
	}
	return to;
}

static int sudo_send_quoted(int sock, const struct sudo_options *o)
{
	size_t size = 1;
	char *text, *end;
	int r;

	for (size_t i = 0; i < o->n_command; i++)
		size += strlen(o->command[i]) * 3 + 1;
	text = end = malloc(size);
	if (!text)
		return -ENOMEM;
	for (size_t i = 0; i < o->n_command; i++) {
		if (i)
			*end++ = ' ';
		end = quote(end, o->command[i]);
	}
	r = wire_send(sock, WIRE_ARG, text, (size_t)(end - text));
	free(text);
	return r;
}

static int sudo_send_command(int sock, const struct sudo_options *o,
			     const struct agent_user *target)
{
	const char *shell = getenv("SHELL");
	int r = 0;

	if (!o->login && !o->shell) {
		for (size_t i = 0; r == 0 && i < o->n_command; i++)
			r = sudo_send_text(sock, WIRE_ARG, o->command[i]);
		return r;
	}
	r = sudo_send_text(sock, WIRE_ARG, o->login || !shell || !shell[0] ? target->shell : shell);
	if (r == 0 && o->login)
		r = sudo_send_text(sock, WIRE_ARG, "-l");
	if (r == 0 && o->n_command)
		r = sudo_send_text(sock, WIRE_ARG, "-c");
	if (r == 0 && o->n_command)
		r = sudo_send_quoted(sock, o);
	return r;
}

/* What to run, to the agent. -EMSGSIZE: an argument or variable is larger than 64 KiB. */
static int sudo_send(int sock, const struct sudo_options *o, const struct agent_user *target,
		     const int fds[SUDO_FDS], bool tty)
{
	const struct wire_sudo request = { .flags = tty ? WIRE_SUDO_TTY : 0 };
	char cwd[WIRE_PATH_MAX + 1];
	int r = wire_send_fds(sock, WIRE_SUDO, &request, sizeof(request), fds, SUDO_FDS);

	if (r == 0)
		r = sudo_send_text(sock, WIRE_USER, target->name);
	if (r == 0 && !o->login)
		r = sudo_send_text(sock, WIRE_CWD,
				   getcwd(cwd, sizeof(cwd)) && cwd[0] == '/' ? cwd : "/");
	if (r == 0)
		r = sudo_send_environment(sock, o);
	if (r == 0)
		r = sudo_send_command(sock, o, target);
	return r < 0 ? r : wire_send(sock, WIRE_GO, NULL, 0);
}

/* --- between the terminal we were called on and the inner one -------------------------------- */

static int inner_fd = -EBADF;
static struct termios before;
static bool stdin_open = true;
static bool master_open = true;
static char pending[CHUNK]; /* typed, and not taken by the inner terminal yet */
static size_t n_pending;

static void relay_resize(void)
{
	struct winsize size;

	if (ioctl(0, TIOCGWINSZ, &size) == 0)
		(void)ioctl(inner_fd, TIOCSWINSZ, &size);
}

/* What is typed goes to the inner terminal as it is: that one makes signals and echo of it. */
static void relay_begin(int master_fd)
{
	struct termios raw;

	inner_fd = master_fd;
	(void)fcntl(inner_fd, F_SETFL, O_NONBLOCK);
	if (tcgetattr(0, &before) < 0)
		return;
	raw = before;
	raw.c_iflag &= ~(tcflag_t)(BRKINT | ICRNL | INLCR | IGNCR | INPCK | ISTRIP | IXON);
	raw.c_oflag &= ~(tcflag_t)OPOST;
	raw.c_lflag &= ~(tcflag_t)(ECHO | ECHONL | ICANON | IEXTEN | ISIG);
	raw.c_cc[VMIN] = 1;
	raw.c_cc[VTIME] = 0;
	(void)tcsetattr(0, TCSADRAIN, &raw);
}

static short relay_stdin_events(void)
{
	return stdin_open && n_pending == 0 ? POLLIN : 0;
}

static short relay_master_events(void)
{
	return (short)((master_open ? POLLIN : 0) | (n_pending ? POLLOUT : 0));
}

static void flush_pending(void)
{
	ssize_t n = n_pending ? write(inner_fd, pending, n_pending) : 0;

	if (n < 0 && errno != EAGAIN && errno != EINTR)
		n_pending = 0; /* nobody is there */
	if (n <= 0)
		return;
	n_pending -= (size_t)n;
	memmove(pending, pending + n, n_pending);
}

static void relay_stdin(void)
{
	ssize_t n = read(0, pending, sizeof(pending));

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		stdin_open = false;
		return;
	}
	n_pending = (size_t)n;
	flush_pending();
}

static void relay_write(const char *data, size_t len)
{
	while (len) {
		ssize_t n = write(1, data, len);

		if (n < 0 && errno == EAGAIN)
			(void)poll(&(struct pollfd){ .fd = 1, .events = POLLOUT }, 1, -1);
		if (n < 0 && errno != EINTR && errno != EAGAIN)
			return;
		if (n > 0) {
			data += n;
			len -= (size_t)n;
		}
	}
}

/* Passes on one read; false when there is nothing. */
static bool pass_output(void)
{
	char chunk[CHUNK];
	ssize_t n = read(inner_fd, chunk, sizeof(chunk));

	if (n > 0)
		relay_write(chunk, (size_t)n);
	else if (n == 0 || (errno != EAGAIN && errno != EINTR))
		master_open = false;
	return n > 0;
}

static void relay_master(void)
{
	flush_pending();
	if (master_open)
		(void)pass_output();
}

static void relay_end(void)
{
	for (int i = 0; i < LEFT_MAX / CHUNK && master_open && pass_output(); i++)
		;
	(void)tcsetattr(0, TCSADRAIN, &before);
}

/* --- until the end --------------------------------------------------------------------------- */

/* Passed on to the command. What stops and continues a job is ours as a member of it. */
static const int passed_on[] = { SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGALRM };

static int sudo_open_signals(void)
{
	sigset_t set;

	sigemptyset(&set);
	for (size_t i = 0; i < ARRAY_SIZE(passed_on); i++)
		sigaddset(&set, passed_on[i]);
	sigaddset(&set, SIGWINCH);
	if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
		return -errno;
	return signalfd(-1, &set, SFD_CLOEXEC);
}

static void on_signal(int signal_fd, int sock, bool tty)
{
	struct signalfd_siginfo info;
	struct wire_signal signal = { 0 };

	if (read(signal_fd, &info, sizeof(info)) != sizeof(info))
		return;
	signal.signal = info.ssi_signo;
	if (info.ssi_signo != SIGWINCH)
		(void)!wire_send(sock, WIRE_SIGNAL, &signal, sizeof(signal));
	else if (tty)
		relay_resize();
}

static int sudo_say_failed(const struct wire_failed *f, const struct sudo_options *o)
{
	if (f->step == WIRE_STEP_EXEC && f->err == ENOENT && o->n_command)
		(void)fprintf(stderr, "sudo: %s: command not found\n", o->command[0]);
	else if (f->step == WIRE_STEP_USER && f->err == EPERM)
		(void)fputs("sudo: this user may not use sudo\n", stderr);
	else
		(void)fprintf(stderr, "sudo: cannot %s: %s\n", wire_step_name(f->step),
			      strerror(f->err));
	return 1;
}

/* Ends as the command did, so that our parent sees the same. */
static int end_like(const struct wire_exit *e)
{
	sigset_t set;

	if (e->code >= 0)
		return e->code;
	sigemptyset(&set);
	sigaddset(&set, e->signal);
	(void)sigprocmask(SIG_UNBLOCK, &set, NULL);
	(void)kill(getpid(), e->signal);
	return 128 + e->signal;
}

/* The agent's word: true when it was the last one. */
static bool sudo_on_frame(int sock, struct wire_frame *f)
{
	int r = wire_recv(sock, f, WIRE_ON_FROM_OP);

	if (r == 1 && f->head.type == WIRE_STARTED)
		return false;
	if (r != 1)
		f->head.type = 0;
	return true;
}

/* Until the command's end; returns the status to exit with, or dies of its signal. With a terminal,
 * master is the inner one, else -EBADF. */
static int sudo_wait(int sock, const struct sudo_options *o, int master)
{
	static struct wire_frame f;
	_cleanup_(fd_closep) int signal_fd = sudo_open_signals();
	bool tty = master >= 0, over = false;

	if (tty)
		relay_begin(master);
	while (!over) {
		struct pollfd polls[] = {
			{ .fd = sock, .events = POLLIN },
			{ .fd = signal_fd, .events = POLLIN },
			{ .fd = tty && relay_stdin_events() ? 0 : -1, .events = POLLIN },
			{ .fd = tty && relay_master_events() ? master : -1,
			  .events = tty ? relay_master_events() : 0 },
		};

		if (poll(polls, ARRAY_SIZE(polls), -1) < 0 && errno != EINTR)
			break;
		if (polls[1].revents)
			on_signal(signal_fd, sock, tty);
		if (polls[2].revents)
			relay_stdin();
		if (polls[3].revents)
			relay_master();
		if (polls[0].revents)
			over = sudo_on_frame(sock, &f);
	}
	if (tty)
		relay_end();
	if (f.head.type == WIRE_FAILED)
		return sudo_say_failed((const struct wire_failed *)f.data, o);
	if (f.head.type == WIRE_EXIT)
		return end_like((const struct wire_exit *)f.data);
	(void)fputs("sudo: the box's agent hung up: too many sudo commands run at once\n", stderr);
	return 1;
}

static int connect_agent(void)
{
	const struct sockaddr_un address = { .sun_family = AF_UNIX, .sun_path = SUDO_SOCKET };
	_cleanup_(fd_closep) int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	if (fd < 0 || connect(fd, (const struct sockaddr *)&address, sizeof(address)) < 0)
		return -errno;
	return take_fd(&fd);
}

/* A terminal like the one we are on. */
static int relay_open(int *ret_master, int *ret_slave)
{
	_cleanup_(fd_closep) int master = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC);
	struct winsize size;
	struct termios settings;
	int unlocked = 0, slave;

	if (master < 0 || ioctl(master, TIOCSPTLCK, &unlocked) < 0)
		return -errno;
	slave = ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (slave < 0)
		return -errno;
	if (tcgetattr(0, &settings) == 0)
		(void)tcsetattr(slave, TCSANOW, &settings);
	if (ioctl(0, TIOCGWINSZ, &size) == 0)
		(void)ioctl(slave, TIOCSWINSZ, &size);
	*ret_master = take_fd(&master);
	*ret_slave = slave;
	return 0;
}

static int complain(const char *what, int err)
{
	(void)fprintf(stderr, "sudo: %s: %s\n", what, strerror(-err));
	return 1;
}

static int sudo_run(const struct sudo_options *o, const struct agent_user *target, int sock)
{
	_cleanup_(fd_closep) int master = -EBADF;
	_cleanup_(fd_closep) int slave = -EBADF;
	bool tty = isatty(0) && isatty(1) && isatty(2) && relay_open(&master, &slave) == 0;
	const int fds[SUDO_FDS] = { tty ? slave : 0, tty ? slave : 1, tty ? slave : 2 };
	int r = sudo_send(sock, o, target, fds, tty);

	if (r == -EMSGSIZE)
		r = -E2BIG;
	/* When the agent does not take it all, it has said why. */
	if (r < 0 && r != -EPIPE)
		return complain("cannot ask the box's agent", r);
	fd_closep(&slave);
	return sudo_wait(sock, o, master);
}

int sudo_main(int argc, char **argv)
{
	_cleanup_(fd_closep) int sock = -EBADF;
	struct agent_user target;
	struct sudo_options o;
	int r = sudo_parse(argc, argv, &o);

	if (r != 0)
		return r < 0 ? 1 : 0;
	if (o.n_command == 0 && o.nothing)
		return 0;
	r = strlen(o.user) > WIRE_USER_MAX ? -ENOENT : agent_user_lookup(o.user, &target);
	if (r == -ENOENT) {
		(void)fprintf(stderr, "sudo: unknown user %s\n", o.user);
		return 1;
	}
	if (r < 0)
		return complain("cannot read /etc/passwd", r);
	sock = connect_agent();
	if (sock == -ENOENT || sock == -ECONNREFUSED) {
		(void)fputs("sudo: this box was made without a root user\n", stderr);
		return 1;
	}
	if (sock < 0)
		return complain("cannot reach the box's agent", sock);
	return sudo_run(&o, &target, sock);
}
