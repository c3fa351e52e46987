/* SPDX-License-Identifier: Apache-2.0 */
/* Where the service of this machine is: `glovebox serve` leaves word of it for the verbs that run
 * here. */
#pragma once

#include "base/util.h"

#define DISCOVERY_NAME "service.json" /* in the directory of lock files (box/ids.h) */
#define DISCOVERY_URL_SIZE 256
#define DISCOVERY_STATE_SIZE 512

struct discovery {
	char url[DISCOVERY_URL_SIZE];
	char state[DISCOVERY_STATE_SIZE]; /* its state directory */
};

/* Of this user's own service, else of the machine's. -ENOENT: there is none; -EBADMSG: it does not
 * say both. */
_must_check_ int discovery_read(struct discovery *ret);

/* discovery_place.c: where it looks for word of one, i from 0: the user's own, then the machine's.
 * -ENOENT: that is all. */
_must_check_ int discovery_place(size_t i, char *ret, size_t size);
/* Is there any? Where there is none, discovery_read() finds none. */
bool discovery_left(void);
