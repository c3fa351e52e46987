/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sudo in a box. A payload has no_new_privs, so no program of it can become root by itself. `sudo` is this
 * image under another name: it asks the agent over a socket to run a command as somebody else, with the
 * standard streams that it passes along, and waits for the end of it. No password, no rules: a box made
 * with a root trusts its user with it, as E2B's do. Programs of other users are refused.
 *
 * The agent only accepts the connection and forks; the child reads the request, which is hostile, starts
 * the command, and stays to pass on signals and the exit. When the connection ends before the command
 * does, so does the command.
 *
 * A command cannot join the session of the terminal it is called from. So when all three streams are
 * terminals, sudo makes a new one, gives the command its slave and copies between the two: job control,
 * ^C and full-screen programs work on the inner one. Otherwise the streams are passed as they are, and
 * the signals that sudo gets are passed on.
 */
#pragma once

#include "agent/request.h"

#define SUDO_DIR "/run/glovebox"
#define SUDO_SOCKET SUDO_DIR "/sudo.sock"
#define SUDO_FDS 3

/* sudo/listen.c, in the agent: does nothing in a box without a root. */
void sudo_open(void);
void sudo_watch(void);

/* sudo/serve.c, in its forked child */
_noreturn_ void sudo_serve(int conn);

/* sudo/main.c: the program */
int sudo_main(int argc, char **argv);

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

/* sudo/options.c: 0, or -1 after having said what is wrong. 1: help or version was printed. */
_must_check_ int sudo_parse(int argc, char **argv, struct sudo_options *ret);

/* sudo/send.c: what to run, to the agent. -EMSGSIZE: an argument or variable is larger than 64 KiB. */
_must_check_ int sudo_send(int sock, const struct sudo_options *o, const struct agent_user *target,
			   const int fds[SUDO_FDS], bool tty);

/* sudo/wait.c: until the command's end; returns the status to exit with, or dies of its signal. With a
 * terminal, master is the inner one, else -EBADF. */
int sudo_wait(int sock, const struct sudo_options *o, int master);

/* sudo/relay.c: between the terminal we were called on and the inner one. */
void relay_begin(int master_fd);
short relay_stdin_events(void);  /* what to wait for on standard input, */
short relay_master_events(void); /* and on the inner terminal */
void relay_stdin(void);
void relay_master(void);
void relay_resize(void);
void relay_end(void); /* passes on what is left, puts the terminal back */
