/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "cli/repl/edit.h"

/* Keys that are not characters; characters are their code points. */
enum edit_key {
	KEY_NONE = 0x200000, /* nothing that means anything here */
	KEY_UP,
	KEY_DOWN,
	KEY_LEFT,
	KEY_RIGHT,
	KEY_HOME,
	KEY_END,
	KEY_DELETE,
	KEY_PASTE_BEGIN,
	KEY_PASTE_END,
	KEY_EOF,
	KEY_SIGNAL,
};

/* repl/keys.c: the next key, or -errno. */
_must_check_ int edit_key(struct edit *e, uint32_t *ret);

/* repl/draw.c: shows the line with its prompt, the cursor where it belongs. */
void edit_draw(const struct edit *e);

/* The bytes of the character before, or at, an offset of the line. */
size_t edit_before(const struct edit *e, size_t at);
size_t edit_at(const struct edit *e, size_t at);
