/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Freezing: only cgroup2 can (its own tree on v2, the tree beside the v1 ones in hybrid mode). v1's freezer
 * is another hierarchy to make and to enter for every box, on machines that hardly exist any more.
 */
#include "sys/cgroup_priv.h"

#include <string.h>

static int freezer_dir(const struct cgroup_box *b)
{
	for (size_t i = 0; b->host && i < b->host->n_hier; i++)
		if ((b->host->hier[i].controllers & CGROUP_FREEZE) && b->fd[i] >= 0)
			return b->fd[i];
	return -EOPNOTSUPP;
}

int cgroup_box_freeze(const struct cgroup_box *b, bool frozen)
{
	int dir = freezer_dir(b);

	return dir < 0 ? dir : cgroup_write(dir, "cgroup.freeze", frozen ? "1" : "0");
}

int cgroup_box_is_frozen(const struct cgroup_box *b)
{
	int dir = freezer_dir(b), r;
	uint64_t frozen = 0;
	char text[256];

	if (dir < 0)
		return dir;
	r = cgroup_read(dir, "cgroup.events", text, sizeof(text));
	if (r < 0)
		return r;
	return cgroup_keyed_u64(text, "frozen", &frozen) ? frozen == 1 : -ENODATA;
}
