/* SPDX-License-Identifier: Apache-2.0 */
/* The system-call filters of our own programs against the tables that they are made of. */
#pragma once

#include "bpf_eval.h"
#include "box/filter/filter_table.h"

/* Every call has the verdict of its table, but for those with a rule; unknown ones do not exist, and those of
 * another architecture are the end. How many calls there are. */
size_t filter_is_its_table(const struct sock_filter *code, size_t len);
