/* SPDX-License-Identifier: Apache-2.0 */
/* Why a sandbox is gone, in words. */
#pragma once

#include "store/store.h"

/* One word for programs: "killed", "timeout", "memory", "crashed", "stopped". */
const char *reason_word(uint32_t reason);
/* A clause for people: "its time-out was reached", and what the store has to add. */
void reason_text(const struct store_sandbox *info, char *ret, size_t size);
