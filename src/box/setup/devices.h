/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A box's /dev: six devices, links, and places for pts and shm. As root the nodes are the box's own:
 * two boxes that could open one inode could talk through its locks, and see each other's and the host's
 * use of it (CC-03, CC-04). Only the initial user namespace can make nodes, so they are made out here
 * and handed in. Without root the host's own are shown, read-only as files.
 */
#pragma once

#include "base/util.h"

struct device {
	const char *name;
	unsigned major_number;
	unsigned minor_number;
};

extern const struct device box_devices[];
extern const size_t n_box_devices;

/* A detached file system that is the box's whole /dev: its descriptor. The root belongs to the ids. */
_must_check_ int devices_make(uint32_t uid, uint32_t gid);

/* The links and mount points in an empty /dev. The umask must be 0. */
_must_check_ int devices_fill(int dir_fd);
