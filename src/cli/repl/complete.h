/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When is what was typed a whole cell? A simple rule that needs no parser and does not ask the
 * interpreter: it goes on while a bracket, a string or (in a shell) a compound command is open, or
 * behind a line that ends in a way that calls for another. In Python a line that ends with a colon
 * begins a block, which an empty line ends. What the rule gets wrong is never lost: two empty lines
 * always end a cell.
 */
#pragma once

#include "base/util.h"

enum repl_state {
	REPL_COMPLETE,
	REPL_OPEN,  /* something is open */
	REPL_BLOCK, /* complete with an empty line */
};

enum repl_state repl_state(const char *language, const char *text, size_t len);

/* The same, and what empty lines at the end mean. */
bool repl_is_whole(const char *language, const char *text, size_t len);
