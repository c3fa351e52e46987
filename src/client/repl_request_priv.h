/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/buf.h"
#include "client/api/api.h"
#include "client/client.h"
#include "client/own.h"

#define REQUESTS_MAX ((size_t)8 << 20)

/* Lines of JSON on standard input. */
struct requests {
	struct buf text;
	bool ended;
};

struct repl_talk {
	struct api *api;
	struct api_sandbox sandbox;
	struct own_sandbox own; /* it is ours */
	char language[32];
	json_t *limits;
	struct requests requests;
};

json_t *requests_next(struct requests *q);
_must_check_ int requests_read(struct requests *q);

/* repl_cell.c: one cell to its end, its events to standard output. 0 also for a cell that was
 * refused or interrupted. */
_must_check_ int talk_cell(struct repl_talk *t, const json_t *code, struct fail *fail);
