/* SPDX-License-Identifier: Apache-2.0 */
/* The device nodes of a box, made outside of it. */
#pragma once

#include "base/util.h"

/* A detached file system that is the box's whole /dev: its descriptor. The root belongs to the
 * ids. */
_must_check_ int devices_make(uint32_t uid, uint32_t gid);
