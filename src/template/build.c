/* SPDX-License-Identifier: Apache-2.0 */
/* Building the built-in root where it is kept, on first use. */
#include "template/template_priv.h"

#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <sys/file.h>
#include <sys/stat.h>

/* mkdir -p for a path that is ours. It is there but for the first time. */
static int make_dirs(char *path)
{
	if (access(path, F_OK) == 0)
		return 0;
	for (char *p = path + 1; *p; p++) {
		if (*p != '/')
			continue;
		*p = '\0';
		if (mkdir(path, 0755) < 0 && errno != EEXIST) {
			*p = '/';
			return -errno;
		}
		*p = '/';
	}
	return mkdir(path, 0700) < 0 && errno != EEXIST ? -errno : 0;
}

int template_state_dir(char *ret, size_t size, struct fail *fail)
{
	int r = template_state_path(ret, size, fail);

	if (r < 0)
		return r;
	r = make_dirs(ret);
	if (r < 0)
		return fail_set(fail, -r, "template", "cannot make %s: %s", ret, strerror(-r));
	return 0;
}

static int remove_entry(const char *path, const struct stat *st, int kind, struct FTW *ftw)
{
	(void)st;
	(void)kind;
	(void)ftw;
	(void)remove(path);
	return 0;
}

/* Only directories that we made: nothing of a box is ever below them. */
static void remove_tree(const char *path)
{
	(void)nftw(path, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

/* Roots of earlier states of this host that no box can use any more, and what broken-off builds left:
 * the caller holds the lock, so nobody is building now. */
static void prune(const char *dir)
{
	time_t long_ago = time(NULL) - TEMPLATE_KEEP_SECONDS;
	struct dirent *entry;
	DIR *d = opendir(dir);

	while (d && (entry = readdir(d))) {
		char path[PATH_MAX];
		struct stat st;

		if (entry->d_name[0] == '.' ||
		    snprintf(path, sizeof(path), "%s/%s", dir, entry->d_name) >= (int)sizeof(path))
			continue;
		if (strncmp(entry->d_name, "new-", 4) == 0 ||
		    (stat(path, &st) == 0 && st.st_mtime < long_ago))
			remove_tree(path);
	}
	if (d)
		(void)closedir(d);
}

static int build_in(const char *temporary, const char *final, const char *ca_bundle,
		    struct fail *fail)
{
	_cleanup_(fd_closep) int dir_fd = open(temporary, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int r;

	if (dir_fd < 0 || fchmod(dir_fd, 0755) < 0)
		return fail_set(fail, errno, "template", "cannot use %s: %s", temporary,
				strerror(errno));
	r = template_build_base(dir_fd, ca_bundle, fail);
	if (r < 0)
		return r;
	if (rename(temporary, final) < 0)
		return fail_set(fail, errno, "template", "cannot rename %s: %s", temporary,
				strerror(errno));
	return 0;
}

/* Builds beside the final name and renames: nobody ever sees half a root. One at a time. */
static int build(const char *dir, const char *final, const char *ca_bundle, struct fail *fail)
{
	_cleanup_(fd_closep) int lock_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	char temporary[PATH_MAX];
	int r;

	if (lock_fd < 0 || flock(lock_fd, LOCK_EX) < 0)
		return fail_set(fail, errno, "template", "cannot lock %s: %s", dir,
				strerror(errno));
	if (access(final, F_OK) == 0)
		return 0; /* somebody else was faster */
	prune(dir);
	if (snprintf(temporary, sizeof(temporary), "%s/new-XXXXXX", dir) >= (int)sizeof(temporary))
		return fail_set(fail, ENAMETOOLONG, "template", "HOME is too long");
	if (!mkdtemp(temporary))
		return fail_set(fail, errno, "template", "cannot write to %s: %s", dir,
				strerror(errno));
	r = build_in(temporary, final, ca_bundle, fail);
	if (r < 0)
		remove_tree(temporary);
	return r;
}

int template_open(const char *name, const char *ca_bundle, struct template *ret, struct fail *fail)
{
	char dir[TEMPLATE_STATE_SIZE];
	int r = template_find(name, ca_bundle, ret, fail);

	if (r != TEMPLATE_UNBUILT)
		return r;
	r = template_state_dir(dir, sizeof(dir), fail);
	return r < 0 ? r : build(dir, ret->root, ca_bundle, fail);
}
