/* SPDX-License-Identifier: Apache-2.0 */
/* Which headers go into a box and which come out of it. Pure. */
#pragma once

#include "server/http/host.h"
#include "server/port/answer.h"

/* Does this field of a request go in? connection: what its Connection field says, or NULL. */
bool port_field_goes_in(const char *name, const char *value, const char *connection);
/* Does this field of an answer go out? own_address: the client came by our own address, not by the
 * sandbox's name. */
bool port_field_goes_out(const struct port_answer *a, const struct port_field *f, bool own_address);
