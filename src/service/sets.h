/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The operator's rule sets: files NAME.rules in one directory (config_sets_dir()), one rule in a
 * line, and the settings egress.deny and egress.private, which hold for every box.
 */
#pragma once

#include "base/buf.h"
#include "policy/policy.h"
#include "service/config.h"

#define SETS_SUFFIX ".rules"
#define SETS_FILE_MAX ((size_t)64 << 10)
#define SETS_TEXT_MAX ((size_t)1 << 20) /* of all together */

/*
 * Everything as the one text that sets_parse() takes, and parsed; either may be NULL. Also checks
 * that the sets of egress.default are there. No directory: no sets. Errors name the file and the
 * line.
 */
_must_check_ int sets_load(const struct config *c, struct buf *ret_text, struct policy_sets *ret,
			   struct fail *fail);

/* The file of one set, as it was written. -ENOENT. name has passed set_name_ok(). */
_must_check_ int sets_read_file(const struct config *c, const char *name, struct buf *ret,
				struct fail *fail);
/* Checks the text and puts it in place of what was there, in one step; makes the directory. -EEXIST
 * unless it may replace. */
_must_check_ int sets_write_file(const struct config *c, const char *name, const char *text,
				 size_t len, bool replace, struct fail *fail);
_must_check_ int sets_remove_file(const struct config *c, const char *name, struct fail *fail);

/* Are egress.deny and egress.private as they must be? */
_must_check_ int sets_check_settings(const struct config *c, struct fail *fail);

/* Calls f for each word of a setting that is a list with blanks between. Stops with its error. */
_must_check_ int sets_each_word(const char *list, int (*f)(const char *word, size_t len, void *arg),
				void *arg);
