/* SPDX-License-Identifier: Apache-2.0 */
/* What tests of the server's talk with an agent need of the rest of the server, and what is the same for all of them. */
#pragma once

#include "run/judge.h"

extern unsigned agent_broke_protocol; /* how often the log says so */
extern enum run_limit judged_limit;   /* of commands that fail */
