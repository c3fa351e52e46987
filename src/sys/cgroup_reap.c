/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a crash left: a box's directories in all or some hierarchies, with or without processes.
 * It runs at every start, so the usual case, nothing there, is one fstat per hierarchy.
 */
#include "sys/cgroup_priv.h"

#include "base/clock.h"
#include "base/dir.h"
#include "base/parse.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>

#define REAP_WAIT_US 1000000

/* A directory stream of its own over an open directory. */
static DIR *dir_open(int at, const char *name)
{
	_cleanup_(fd_closep) int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);

	if (d != NULL)
		(void)take_fd(&fd);
	return d;
}

static const struct dirent *dir_next(DIR *d)
{
	const struct dirent *de;

	do
		de = readdir(d);
	while (de != NULL && (de->d_type != DT_DIR || de->d_name[0] == '.'));
	return de;
}

static bool procs_has(int dir, const char *pid)
{
	char text[4096];

	return cgroup_read(dir, "cgroup.procs", text, sizeof(text)) == 0 &&
	       cgroup_has_word(text, pid);
}

/*
 * PL-09: between reading a number and killing it the process may have gone and the number been
 * given to a stranger. So: hold it by pidfd first, and then see that it is still a member.
 */
static void member_kill(int dir, const char *pid)
{
	_cleanup_(fd_closep) int pidfd = -EBADF;
	uint64_t number;

	if (parse_u64(pid, &number) < 0 || number == 0) /* 0: in a pid namespace we do not see */
		return;
	pidfd = (int)syscall(SYS_pidfd_open, (pid_t)number, 0);
	if (pidfd >= 0 && procs_has(dir, pid))
		(void)syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, NULL, 0);
}

/* One page of members at a time; the caller comes back until the directory can be removed. */
static void members_kill(int dir)
{
	char text[4096], *line = text;

	if (cgroup_write(dir, "cgroup.kill", "1") == 0)
		return;
	if (cgroup_read(dir, "cgroup.procs", text, sizeof(text)) < 0)
		return;
	while (*line != '\0') {
		size_t end = strcspn(line, "\n");

		/* A number cut off at the end of the buffer is another pid: leave it for later. */
		if (line[end] == '\0')
			return;
		line[end] = '\0';
		member_kill(dir, line);
		line += end + 1;
	}
}

/* Kills and removes at/name and the leaves in it; -EBUSY when it is not empty yet. */
static int tree_remove(int at, const char *name)
{
	_cleanup_(dir_closep) DIR *d = dir_open(at, name);
	const struct dirent *de;

	if (d == NULL)
		return errno == ENOENT ? 0 : -errno;
	members_kill(dirfd(d));
	while ((de = dir_next(d)) != NULL) {
		_cleanup_(fd_closep) int leaf =
			openat(dirfd(d), de->d_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

		if (leaf >= 0)
			members_kill(leaf);
		(void)cgroup_rmdir(dirfd(d), de->d_name); /* if it fails, so does the box's */
	}
	return cgroup_rmdir(at, name);
}

/* An entry is a box, or one of its flat leaves: "<name>.exec-<n>". */
static void entry_box(const char *entry, char *ret, size_t size)
{
	(void)snprintf(ret, size, "%.*s", (int)strcspn(entry, "."), entry);
}

static int box_remove_in(int hier_fd, const char *name)
{
	_cleanup_(dir_closep) DIR *d = dir_open(hier_fd, ".");
	const struct dirent *de;
	char box[64];
	int r = 0;

	if (d == NULL)
		return -errno;
	while ((de = dir_next(d)) != NULL) {
		entry_box(de->d_name, box, sizeof(box));
		if (strcmp(box, name) == 0) {
			int q = tree_remove(hier_fd, de->d_name);

			r = r < 0 ? r : q;
		}
	}
	return r;
}

/* The last hierarchy first: that is the unified one, where one write kills everybody at once. */
static int box_remove_everywhere(const struct cgroup_host *h, const char *name)
{
	int r = 0;

	for (size_t i = h->n_hier; i-- > 0;) {
		int q = box_remove_in(h->hier[i].fd, name);

		r = r < 0 ? r : q;
	}
	return r;
}

static int box_reap(const struct cgroup_host *h, const char *name, uint64_t deadline_us)
{
	for (;;) {
		int r = box_remove_everywhere(h, name);

		if (r != -EBUSY || clock_boot_us() >= deadline_us)
			return r;
		(void)nanosleep(&(struct timespec){ .tv_nsec = 200000 }, NULL);
	}
}

struct reap {
	bool (*stale)(const char *name, void *arg);
	void *arg;
	uint64_t
		deadline_us; /* for all of them: one that cannot die must not hold up every start */
	int removed;
	int err;
};

static void reap_hier(const struct cgroup_host *h, size_t i, struct reap *reap)
{
	_cleanup_(dir_closep) DIR *d = dir_open(h->hier[i].fd, ".");
	const struct dirent *de;
	char box[64];

	while (d != NULL && (de = dir_next(d)) != NULL) {
		int r;

		entry_box(de->d_name, box, sizeof(box));
		if (faccessat(h->hier[i].fd, de->d_name, F_OK, 0) < 0 ||
		    !reap->stale(box, reap->arg))
			continue; /* the stream may still show what was removed with its box */
		r = box_reap(h, box, reap->deadline_us);
		if (r < 0)
			reap->err = reap->err < 0 ? reap->err : r;
		else
			reap->removed++;
	}
}

int cgroup_reap(const struct cgroup_host *h, bool (*stale)(const char *name, void *arg), void *arg)
{
	struct reap reap = { .stale = stale, .arg = arg };

	for (size_t i = 0; i < h->n_hier; i++) {
		struct stat st;

		/* In a cgroup tree the link count is the number of subdirectories and 2. */
		if (fstat(h->hier[i].fd, &st) < 0 || st.st_nlink <= 2)
			continue;
		if (reap.deadline_us == 0)
			reap.deadline_us = clock_boot_us() + REAP_WAIT_US;
		reap_hier(h, i, &reap);
	}
	return reap.err < 0 ? reap.err : reap.removed;
}
