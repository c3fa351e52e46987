/* SPDX-License-Identifier: Apache-2.0 */
/* The table of settings, for the files that read and show it. */
#pragma once

#include "service/config.h"

#include <assert.h>

enum kind { KIND_TEXT, KIND_BYTES, KIND_COUNT, KIND_MILLIS, KIND_CPUS, KIND_FLAG };

struct setting {
	const char *name; /* "section.key" */
	size_t section_len;
	const char *help;
	const char *text; /* default of a TEXT */
	uint64_t number;  /* default of the others */
	uint64_t min, max;
	size_t at; /* in struct config */
	enum kind kind;
};

const struct setting *config_setting(size_t i);

/* The number of the setting "section.key", or -ENOENT. */
int config_find(const char *name);

/* Checks a value and, unless something of a higher source has set it, keeps it. where names it in
 * errors. */
_must_check_ int config_apply(struct config *c, size_t i, const char *value,
			      enum config_source source, const char *where, struct fail *fail);

/* Settings that are numbers (all but KIND_TEXT): what text says, within the bounds; the text of a
 * number, shortest form; the message about a text that was not accepted with err. */
_must_check_ int config_value_read(const struct setting *s, const char *text, uint64_t *ret);
_must_check_ int config_value_text(const struct setting *s, uint64_t number, char *ret,
				   size_t size);
int config_value_refuse(const struct setting *s, int err, const char *where, struct fail *fail);

/* For config_check(): what [egress] says. */
_must_check_ int config_check_egress(const struct config *c, struct fail *fail);
