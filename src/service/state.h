/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The state directory and who owns what in it:
 *
 *	STATE       0711  root's (or the user's, when rootless); others may pass, for local.key
 *	  db        0700  the server room's: the store
 *	  local.key 0600  the first key, for the person who started the service
 *	  …               what else the warden keeps: its own, 0700
 *
 * The server room owns STATE/db, so root must not open by name what is in it: a program that wants
 * to use the store becomes that owner first (state_become_server()).
 */
#pragma once

#include "service/config.h"

#include <sys/types.h>

enum state_how {
	STATE_LOOK,  /* it must be there */
	STATE_MAKE,  /* what is missing is made; an owner that STATE/db has is left alone */
	STATE_CLAIM, /* for the warden, which holds the lock: STATE/db becomes the server user's */
};

struct state {
	char path[CONFIG_TEXT_SIZE];
	int dir_fd; /* STATE */
	int db_fd;  /* STATE/db */
	uid_t uid;  /* who owns STATE/db: what the server room runs as */
	gid_t gid;
};

#define STATE_INIT                                                                                 \
	{                                                                                          \
		.dir_fd = -EBADF, .db_fd = -EBADF                                                  \
	}

/* Opens the directories. The user is config's server.user, an unused id where there is no such
 * user, or, without root, the user we are. */
_must_check_ int state_open(const struct config *c, enum state_how how, struct state *ret,
			    struct fail *fail);
void state_done(struct state *s);

/* Gives up root, for good, for the owner of STATE/db. Does nothing when that is what we are. */
_must_check_ int state_become_server(const struct state *s, struct fail *fail);

/* An id for egress that no user and no server has; 0: there is none. */
uid_t state_unused_egress_id(void);
