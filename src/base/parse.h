/* SPDX-License-Identifier: Apache-2.0 */
/* Strict readers for what people type: the whole text must be the value, or -EINVAL / -ERANGE. */
#pragma once

#include "base/util.h"

/* Digits only: no sign, no spaces, no empty text. */
_must_check_ int parse_u64(const char *text, uint64_t *ret);

/* Bytes: "4096", "64K", "256M", "2G" (powers of 1024). */
_must_check_ int parse_bytes(const char *text, uint64_t *ret);

/* A duration: "250ms", "30s", "2m", "1h"; a bare number means seconds. */
_must_check_ int parse_duration_us(const char *text, uint64_t *ret_us);

/* A CPU share: "1", "0.5", "2.25", in thousandths of a CPU. */
_must_check_ int parse_cpus_milli(const char *text, uint32_t *ret_milli);

/* Takes spaces and tabs off both ends, in place. */
char *parse_trim(char *text);
