/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every protection asks here whether it is on. In a real build the answer is the constant true and
 * the compiler removes the question. A build with -Dbreakable=true answers from GLOVEBOX_BREAK
 * (names separated by commas), so that the escape suite can show that each test fails without its
 * control.
 */
#pragma once

#include <stdbool.h>

#ifdef GLOVEBOX_BREAKABLE
bool control_on(const char *name);
#else
#define control_on(name) true
#endif
