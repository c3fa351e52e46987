/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A box's network namespace: `lo` and nothing else. Making one takes the kernel longer than all the
 * other namespaces together, so the parent makes it while the box's child builds its file system,
 * and hands it over.
 */
#pragma once

#include "base/util.h"

/*
 * By a helper, which enters the user namespace, makes the network namespace and sends it, or its
 * errno, to the other end of sock. When this returns, the helper has ended.
 */
_must_check_ int net_make(int userns_fd, int sock);

/* In the box's child: takes what the helper sent and enters it. */
_must_check_ int net_enter(int sock);
