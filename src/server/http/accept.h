/* SPDX-License-Identifier: Apache-2.0 */
/* Who comes in: one thread takes connections from the listening socket, as many as there may be (http/connection.h). */
#pragma once

#include "server/server.h"

struct acceptor;

/* Takes over the descriptor. Without TLS all connections begin on the express way, with it in the HTTP library. */
_must_check_ int acceptor_start(struct server *s, int listen_fd, struct acceptor **ret);
void acceptor_stop(struct acceptor *a);
