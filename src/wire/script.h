/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a script in Python is run: the host that asks for a run, and the interpreter that was stopped
 * just before it opens the script, must mean the same. Where they do not, the script is executed,
 * so a difference costs time and nothing else.
 */
#pragma once

#include "sys/payload.h"

#define SCRIPT_PROGRAM "python3"
#define SCRIPT_FILE "main.py"
#define SCRIPT_HOME PAYLOAD_HOME /* where the file is, and where it runs */
#define SCRIPT_PATH "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin:/usr/local/go/bin"
#define SCRIPT_LANG "C.UTF-8"
#define SCRIPT_LIBRARY                                                                             \
	"/opt/glovebox/lib/script.so" /* stops the interpreter, in the zygote's own root */
