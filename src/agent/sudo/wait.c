/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/sudo/sudo.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>

/* Passed on to the command. What stops and continues a job is ours as a member of it. */
static const int passed_on[] = { SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGALRM };

static int open_signals(void)
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

static int say_failed(const struct wire_failed *f, const struct sudo_options *o)
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

/* Ends as the command did, so that whoever waits for us sees the same. */
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
static bool on_frame(int sock, struct wire_frame *f)
{
	int r = wire_recv(sock, f, WIRE_ON_FROM_OP);

	if (r == 1 && f->head.type == WIRE_STARTED)
		return false;
	if (r != 1)
		f->head.type = 0;
	return true;
}

int sudo_wait(int sock, const struct sudo_options *o, int master)
{
	static struct wire_frame f;
	_cleanup_(fd_closep) int signal_fd = open_signals();
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
			over = on_frame(sock, &f);
	}
	if (tty)
		relay_end();
	if (f.head.type == WIRE_FAILED)
		return say_failed((const struct wire_failed *)f.data, o);
	if (f.head.type == WIRE_EXIT)
		return end_like((const struct wire_exit *)f.data);
	(void)fputs("sudo: the box's agent hung up: too many sudo commands run at once\n", stderr);
	return 1;
}
