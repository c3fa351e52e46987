/* SPDX-License-Identifier: Apache-2.0 */
/* The table behind sandbox/sandbox.h: only for the core itself. */
#pragma once

#include "server/sandbox/sandbox.h"

struct sandbox *sandbox_new(struct server *s, struct store_sandbox *info /* taken */,
			    const struct warden_limits *limits);

/* Takes it out, with the table's reference; false when it was not in. */
bool table_remove(struct sandbox *b);

/* A box came to be, with these protections. */
void table_note_isolation(struct table *t, const struct isolation *isolation);

void table_free(struct table *t);
