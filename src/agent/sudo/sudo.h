/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sudo in a box. A payload has no_new_privs, so no program of it can become root by itself. `sudo`
 * is this image under another name: it asks the agent over a socket to run a command as somebody
 * else, with the standard streams that it passes along, and waits for the end of it. No password,
 * no rules: a box made with a root trusts its user with it, as E2B's do. Programs of other users
 * are refused.
 *
 * The agent only accepts the connection and forks; the child reads the request, which is hostile,
 * starts the command, and stays to pass on signals and the exit. When the connection ends before
 * the command does, so does the command.
 *
 * A command cannot join the session of the terminal it is called from. So when all three streams
 * are terminals, sudo makes a new one, gives the command its slave and copies between the two: job
 * control, ^C and full-screen programs work on the inner one. Otherwise the streams are passed as
 * they are, and the signals that sudo gets are passed on.
 */
#pragma once

#include "agent/child.h"

#define SUDO_DIR "/run/glovebox"
#define SUDO_SOCKET SUDO_DIR "/sudo.sock"
#define SUDO_FDS 3

/* sudo/serve.c, in the agent: does nothing in a box without a root. */
void sudo_open(void);
void sudo_watch(void);

/* sudo/sudo.c: the program */
int sudo_main(int argc, char **argv);
