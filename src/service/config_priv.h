/* SPDX-License-Identifier: Apache-2.0 */
/* The table of settings, for the file that sets them. */
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
