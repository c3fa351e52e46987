/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Is there room for a copy? The server's database may lie on the same disk, so some of it stays free whatever is copied.
 * This is what can be known before; whoever copies looks at the disk itself as it goes (layers/tree_copy.c).
 */
#include "warden/warden_priv.h"

#include <sys/statvfs.h>

#define ENTRY_BYTES 4096 /* a directory takes that on most disks; in a box it takes nothing */

static bool fits(const struct statvfs *fs, uint64_t bytes, uint64_t files)
{
	return (uint64_t)fs->f_bavail * fs->f_frsize >= bytes + COPY_RESERVE_BYTES &&
	       /* Some file systems make as many as there is room for, and say 0. */
	       (fs->f_files == 0 || fs->f_favail >= files + COPY_RESERVE_FILES);
}

int copy_need(const struct warden *w, const struct ward *d, struct copy_need *ret)
{
	struct statvfs box, disk;
	uint64_t bytes, files;

	if (fstatvfs(d->box.scratch_fd, &box) < 0 || fstatvfs(w->layers_fd, &disk) < 0)
		return -errno;
	files = box.f_files - box.f_ffree;
	bytes = (uint64_t)(box.f_blocks - box.f_bfree) * box.f_frsize + files * ENTRY_BYTES;
	if (!fits(&disk, bytes, files))
		return -ENOSPC;
	/* Some of what they need they may have written already: whoever asks again will see. */
	if (!fits(&disk, bytes + w->copying.bytes, files + w->copying.files))
		return -EAGAIN;
	*ret = (struct copy_need){ .bytes = bytes, .files = files };
	return 0;
}
