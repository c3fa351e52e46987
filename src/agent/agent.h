/* SPDX-License-Identifier: Apache-2.0 */
/* What the agent's parts share. struct command and its table are in command/command.h. */
#pragma once

#include "wire/wire.h"

#include <sys/types.h>

struct agent_request;

#define AGENT_CONTROL_FD 3
#define AGENT_PIDS_FD 4  /* a /proc with every process, which nobody else has, or nothing */
#define AGENT_JOIN_MAX 7 /* cgroups a command joins */

/* The cgroups that commands join which bring none of their own (WIRE_LEAF), and what they all may
 * use: a command started by sudo gets the limits of the last one that the host asked for. */
struct agent_defaults {
	int join_fds[AGENT_JOIN_MAX];
	size_t n_join;
	struct wire_exec request;
};
extern struct agent_defaults agent_defaults;

#define AGENT_GROUPS_MAX 32
#define AGENT_PATH_MAX 255 /* of a home directory or shell in /etc/passwd */

/* A user of the box's /etc/passwd. */
struct agent_user {
	uint32_t uid;
	uint32_t gid;
	char name[WIRE_USER_MAX + 1];
	char home[AGENT_PATH_MAX + 1];
	char shell[AGENT_PATH_MAX + 1];
	size_t n_groups;
	uint32_t groups[AGENT_GROUPS_MAX]; /* the supplementary ones, of /etc/group */
};

/* user.c: -ENOENT when there is no such user. What it reads may have been written by anything in
 * the box. */
_must_check_ int agent_user_lookup(const char *name, struct agent_user *ret);
_must_check_ int agent_user_find(const char *passwd_path, const char *group_path, const char *name,
				 struct agent_user *ret);

/* Puts the user's variables (and a terminal's) before those that came; the last of a name wins. */
_must_check_ int agent_user_environment(struct agent_request *q, const struct agent_user *user,
					bool tty);

/* Enters the directory: relative to the user's home, or from "~"; nothing means the home. */
_must_check_ int agent_user_enter(const struct agent_request *q, const struct agent_user *user);

/* become.c. First of all, in the agent: what there is to drop. */
_must_check_ int agent_read_bounding_set(void);

/* The rest is for forked children. Was the box made with a root that commands can be? */
bool agent_has_root(void);

/* For file operations. uid 0 keeps CHOWN, DAC_OVERRIDE, FOWNER and FSETID, nobody else keeps
 * anything. -EPERM for uid 0 in a box that was not made for it. */
_must_check_ int agent_become_user(const struct agent_user *user);

/* For programs. uid 0 keeps the box root's short list, nobody else keeps anything. */
_must_check_ int agent_become_payload(const struct agent_user *user);

/* For file trees of a run: the user without a name. */
_must_check_ int agent_become(uint32_t uid, uint32_t gid);

/* In the agent itself: what only commands of uid 0 need is put aside until a child asks for it. */
_must_check_ int agent_lower_capabilities(void);
_must_check_ int agent_raise_capabilities(void);

/* For a child that has started a command of another user and has nothing left to do but to end
 * it. */
_must_check_ int agent_keep_kill(void);

/* main.c: the /proc to look for processes in. Where a kernel cannot make one for us, the one that
 * all see. */
int agent_pids(void);
