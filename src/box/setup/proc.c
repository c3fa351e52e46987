/* SPDX-License-Identifier: Apache-2.0 */
/* The steps that make /proc, and cover what a box is not to see: there and in its template. */
#include "box/setup/setup_priv.h"

#include "box/breakable.h"
#include "sys/mnt.h"

#include <sys/stat.h>

int setup_do_proc(struct setup_state *s)
{
	const struct mnt_option options[] = { { "hidepid", "invisible" } };
	/* For the agent alone, which has to know what interpreters use and what they left behind:
	 * every process, and nothing else of /proc. A kernel before 5.8 cannot make that. */
	const struct mnt_option pids[] = { { "subset", "pid" } };

	if (!s->setup->one_command)
		s->pids_fd = mnt_make("proc", pids, ARRAY_SIZE(pids),
				      MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV |
					      MOUNT_ATTR_NOEXEC);
	s->proc_fd = mnt_make("proc", options, control_on("hidepid") ? 1 : 0,
			      MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC);
	if (s->proc_fd < 0)
		return s->proc_fd;
	s->sys_user_fd = openat(s->proc_fd, "sys/user", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (s->sys_user_fd < 0)
		return -errno;
	return mnt_move(s->proc_fd, s->root_fd, "proc");
}

int setup_do_proc_sys(struct setup_state *s)
{
	return control_on("proc-sys") ?
		       setup_clone_onto(s->proc_fd, "sys", MOUNT_ATTR_RDONLY, s->proc_fd, "sys") :
		       0;
}

#define MASK_FILE_FROM "cmdline" /* every kernel has these two */
#define MASK_DIR_FROM "fs"

/* 1: it is; 0: there is no need to. Who could not find out does not go on without. */
static int mask(const char *from, const char *to)
{
	struct stat st;
	int r;

	if (fstatat(AT_FDCWD, to, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT || errno == EACCES ? 0 : -errno;
	/* What only its owner may use belongs to the host's root, who does not exist in a box. */
	if (!(st.st_mode & 07))
		return 0;
	if (strcmp(from, to) == 0)
		return 1; /* done first */
	r = mnt_bind(from, to);
	return r < 0 ? r : 1;
}

/* Thirty names in one directory: we go there, and what is masked already is what further masks are
 * taken from. */
static int mask_proc(struct setup_state *s)
{
	static const struct {
		const char *from, *to;
	} masks[] = {
#define MASK_FILE(path) { MASK_FILE_FROM, path },
#define MASK_DIR(path) { MASK_DIR_FROM, path },
#include "box/setup/masks.def"
#undef MASK_FILE
#undef MASK_DIR
	};
	int r = mnt_bind("mask/file", "root/proc/" MASK_FILE_FROM);

	if (r == 0)
		r = mnt_bind("mask/dir", "root/proc/" MASK_DIR_FROM);
	if (r == 0 && fchdir(s->proc_fd) < 0)
		r = -errno;
	for (size_t i = 0; r >= 0 && i < ARRAY_SIZE(masks); i++) {
		r = mask(masks[i].from, masks[i].to);
		s->report.masks += r > 0;
	}
	if (r >= 0)
		r = fchdir(s->scratch_fd) < 0 ? -errno : 0;
	return r;
}

int setup_do_masks(struct setup_state *s)
{
	/* The mask itself becomes a read-only mount; its copies inherit that. */
	int r = setup_clone_onto(s->scratch_fd, "mask", MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOEXEC,
				 s->scratch_fd, "mask");

	if (r == 0)
		r = mnt_bind("mask/boot-id", "root/proc/sys/kernel/random/boot_id");
	return r == 0 && control_on("masks") ? mask_proc(s) : r;
}

/* Where the host has something mounted inside a layer, the box sees an empty file or directory. */
int setup_do_hidden(struct setup_state *s)
{
	for (size_t i = 0; i < s->hidden.n; i++) {
		char path[HIDDEN_PATH_MAX + 8];
		struct stat st;
		int r;

		(void)snprintf(path, sizeof(path), "root/%s", s->hidden.path[i]);
		if (fstatat(s->scratch_fd, path, &st, AT_SYMLINK_NOFOLLOW) < 0) {
			if (errno == ENOENT)
				continue; /* below another one that is covered already */
			return -errno;
		}
		r = mnt_bind(S_ISDIR(st.st_mode) ? "mask/dir" : "mask/file", path);
		if (r < 0)
			return r;
	}
	return 0;
}
