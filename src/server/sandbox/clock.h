/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/clock.h"

#include <jansson.h>
#include <stdint.h>

#define CLOCK_TEXT_SIZE 32

/* Milliseconds since 1970, by the clock on the wall: for what people see. */
int64_t clock_wall_ms(void);

/* RFC 3339 in UTC with milliseconds: "2026-09-21T08:00:00.000Z". */
void clock_format(int64_t wall_ms, char ret[CLOCK_TEXT_SIZE]);
json_t *clock_json(int64_t wall_ms);
