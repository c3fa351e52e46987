/* SPDX-License-Identifier: Apache-2.0 */
/* The current network namespace. */
#pragma once

#include "base/util.h"

/* Brings up `lo`. */
int netns_lo_up(void);

/* Every address of that family (AF_INET, AF_INET6) is one of this machine's own: what is sent there
 * comes back by `lo`. */
_must_check_ int netns_route_all_to_lo(int family);

/* Sends a netfilter batch, which must be taken whole, and waits for its n_acks acknowledgements: 0,
 * or the first error, and then nothing of it holds. */
_must_check_ int netns_rules(const void *batch, size_t len, unsigned n_acks);
