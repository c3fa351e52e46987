/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The warden: what `glovebox serve` becomes. It makes boxes, keeps their deadlines and ends them;
 * it starts the server, which talks to the world, and starts it again when it dies.
 */
#pragma once

#include "service/config.h"

struct warden_options {
	const struct config *config;
	const char *server; /* the server's program instead of ours, or NULL */
	const char *client; /* the program that makes the first key, or NULL for ours */
	int languages_fd;   /* the language files: the server's user may not be able to come by */
};

/* Returns when it was told to stop and nothing is left: 0, or a negative errno and why. */
_must_check_ int warden_run(const struct warden_options *o, struct fail *fail);
