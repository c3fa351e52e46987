/* SPDX-License-Identifier: Apache-2.0 */
/* Which headers go into a box and which come out of it, and by which name a program there is asked.
 * Pure. */
#pragma once

#include "server/port/answer.h"

#define PORT_HOST_SIZE 300

/* Does this field of a request go in? connection: what its Connection field says, or NULL. */
bool port_field_goes_in(const char *name, const char *value, const char *connection);
/* Does this field of an answer go out? own_address: the client came by our own address, not by the
 * sandbox's name. */
bool port_field_goes_out(const struct port_answer *a, const struct port_field *f, bool own_address);

/* maskRequestHost as the program gets it, with the port for ${PORT}. -EINVAL: that is no host. */
_must_check_ int port_mask_host(const char *mask, uint32_t port, char *ret, size_t size);
bool port_mask_ok(const char *mask);
