/* SPDX-License-Identifier: Apache-2.0 */
/* Until when a key is good, as people write it. */
#pragma once

#include "base/util.h"

#define KEY_TIME_SIZE 32

/* "30d", "12h", "90m", "3600s" from now, or a date in UTC: "2027-01-31", "2027-01-31T12:00:00Z".
 * -EINVAL; -ERANGE: more than a hundred years, or not after now. */
_must_check_ int key_time_read(const char *text, int64_t now_ms, int64_t *ret_ms);

/* "2027-01-31T12:00:00Z". */
void key_time_text(int64_t ms, char ret[KEY_TIME_SIZE]);
