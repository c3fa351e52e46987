/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stddef.h>

/* openapi.json, which is part of the program. Not terminated. */
const char *openapi_text(size_t *ret_len);
