/* SPDX-License-Identifier: Apache-2.0 */
#include "box/ids.h"

#include "base/buf.h"
#include "base/parse.h"
#include "box/breakable.h"
#include "sys/user.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/wait.h>

/* systemd's range for containers, 65,536 ids each; the upper half of an id is the box's number. */
#define RANGE_FIRST 524288u
#define RANGE_SIZE 65536u
#define RANGES 16384u

#define SUBID_SIZE 1024u
#define SINGLE_SLOTS 4096u

void ids_run_dir(char ret[static IDS_RUN_DIR_SIZE])
{
	const char *runtime = getenv("XDG_RUNTIME_DIR");

	if (geteuid() == 0)
		(void)snprintf(ret, IDS_RUN_DIR_SIZE, "/run/glovebox");
	else if (runtime && runtime[0] == '/' && access(runtime, W_OK) == 0 &&
		 strlen(runtime) < 200)
		(void)snprintf(ret, IDS_RUN_DIR_SIZE, "%s/glovebox", runtime);
	else
		(void)snprintf(ret, IDS_RUN_DIR_SIZE, "/tmp/glovebox-%u", geteuid());
}

/* The directory of lock files: only this user can write there. */
static int open_run_dir(struct fail *fail)
{
	_cleanup_(fd_closep) int fd = -EBADF;
	char path[IDS_RUN_DIR_SIZE];
	struct stat st;

	ids_run_dir(path);
	if (mkdir(path, 0700) < 0 && errno != EEXIST)
		return fail_set(fail, errno, "lock directory", "cannot make %s: %s", path,
				strerror(errno));
	fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0)
		return fail_set(fail, errno, "lock directory", "cannot open %s: %s", path,
				strerror(errno));
	if (st.st_uid != geteuid() || (st.st_mode & 022))
		return fail_set(fail, EPERM, "lock directory",
				"%s belongs to somebody else or is writable by others; remove it",
				path);
	return take_fd(&fd);
}

/* One line of /etc/subuid: who:first:count. True when it is ours and large enough. */
static bool subid_line(char *line, const char *name, uid_t uid, uint32_t *ret)
{
	char *save = NULL, *who = strtok_r(line, ":", &save);
	char *first_text = strtok_r(NULL, ":", &save), *count_text = strtok_r(NULL, ":", &save);
	uint64_t first, count, id;

	if (!who || !first_text || !count_text)
		return false;
	if ((!name || strcmp(who, name) != 0) && (parse_u64(who, &id) < 0 || id != uid))
		return false;
	if (parse_u64(first_text, &first) < 0 || parse_u64(count_text, &count) < 0)
		return false;
	if (first == 0 || first > UINT32_MAX - RANGE_SIZE || count < RANGE_SIZE)
		return false;
	*ret = (uint32_t)first;
	return true;
}

static int find_subids(const char *file, const char *name, uid_t uid, uint32_t *ret)
{
	_cleanup_(fd_closep) int fd = open(file, O_RDONLY | O_CLOEXEC);
	_cleanup_(buf_done) struct buf b = BUF_INIT(1 << 20);
	char *save = NULL;
	int r;

	if (fd < 0)
		return -errno;
	r = buf_read_fd(&b, fd);
	if (r < 0)
		return r;
	for (char *line = strtok_r((char *)b.data, "\n", &save); line;
	     line = strtok_r(NULL, "\n", &save))
		if (subid_line(line, name, uid, ret))
			return 0;
	return -ENOENT;
}

/* What an ordinary user may map. */
static void find_user_ids(struct ids_host *h)
{
	const struct passwd *pw = user_by_id(geteuid());
	const char *name = pw ? pw->pw_name : NULL;

	h->kind = IDS_SINGLE;
	if (access("/usr/bin/newuidmap", X_OK) < 0 || access("/usr/bin/newgidmap", X_OK) < 0)
		(void)snprintf(h->why_single, sizeof(h->why_single),
			       "newuidmap is not installed (package uidmap)");
	else if (find_subids("/etc/subuid", name, geteuid(), &h->uid_base) < 0 ||
		 find_subids("/etc/subgid", name, geteuid(), &h->gid_base) < 0)
		(void)snprintf(h->why_single, sizeof(h->why_single),
			       "no 65,536 ids for this user in /etc/subuid and /etc/subgid");
	else
		h->kind = IDS_SUBIDS;
}

int ids_host_open(struct ids_host *ret, struct fail *fail)
{
	_cleanup_(fd_closep) int dir_fd = open_run_dir(fail);
	struct ids_host h = IDS_HOST_INIT;
	uint32_t count = SINGLE_SLOTS;
	int r;

	if (dir_fd < 0)
		return dir_fd;
	if (geteuid() == 0) {
		h.kind = IDS_RANGE;
		h.uid_base = h.gid_base = RANGE_FIRST;
		count = RANGES;
	} else {
		find_user_ids(&h);
		if (h.kind == IDS_SUBIDS)
			count = RANGE_SIZE / SUBID_SIZE;
	}
	r = slots_open(dir_fd, "boxes", count, &h.slots);
	if (r < 0)
		return fail_set(fail, -r, "lock file", "cannot open the lock file of boxes: %s",
				strerror(-r));
	*ret = h;
	return 0;
}

void ids_host_close(struct ids_host *h)
{
	slots_close(&h->slots);
}

int ids_take(struct ids_host *h, struct ids *ret, struct fail *fail)
{
	uint32_t size = h->kind == IDS_RANGE ? RANGE_SIZE : SUBID_SIZE, number;
	int fd = slots_take(&h->slots, &number);

	if (fd == -EUSERS)
		return fail_set(fail, EUSERS, "user ids", "%u boxes are running already",
				h->slots.count);
	if (fd < 0)
		return fail_set(fail, -fd, "user ids", "cannot lock a range of user ids: %s",
				strerror(-fd));
	*ret = (struct ids){
		.kind = h->kind,
		.number = number,
		.lock_fd = fd,
		.uid_base = !control_on("uid-ranges") ? 0 :
			    h->kind == IDS_SINGLE     ? geteuid() :
							h->uid_base + number * size,
		.gid_base = !control_on("uid-ranges") ? 0 :
			    h->kind == IDS_SINGLE     ? getegid() :
							h->gid_base + number * size,
	};
	return 0;
}

void ids_release(struct ids *ids)
{
	fd_closep(&ids->lock_fd);
}

/* FS-16: a write to /proc must reach the kernel, so make sure that /proc is one. */
static int write_proc(pid_t pid, const char *file, const char *text)
{
	_cleanup_(fd_closep) int fd = -EBADF;
	struct statfs fs;
	char path[64];

	(void)snprintf(path, sizeof(path), "/proc/%d/%s", pid, file);
	fd = open(path, O_WRONLY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0 || fstatfs(fd, &fs) < 0)
		return -errno;
	if (fs.f_type != PROC_SUPER_MAGIC && control_on("proc-magic"))
		return -ENOTTY;
	return write(fd, text, strlen(text)) == (ssize_t)strlen(text) ? 0 : -errno;
}

/* Runs newuidmap or newgidmap: the only set-uid programs we ever need, and only without root. */
static int run_idmap_tool(const char *tool, pid_t pid, uint32_t base)
{
	char pid_text[16], first[16], last[16];
	const char *argv[] = { tool, pid_text, "0", first, "1023", "65534", last, "1", NULL };
	char *const env[] = { NULL };
	pid_t child;
	int status;

	(void)snprintf(pid_text, sizeof(pid_text), "%d", pid);
	(void)snprintf(first, sizeof(first), "%u", base);
	(void)snprintf(last, sizeof(last), "%u", base + SUBID_SIZE - 1);
	child = fork();
	if (child < 0)
		return -errno;
	if (child == 0) {
		execve(tool, (char *const *)(uintptr_t)argv, env);
		_exit(127);
	}
	while (waitpid(child, &status, 0) < 0)
		if (errno != EINTR)
			return -errno;
	return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : -EPERM;
}

int ids_map(const struct ids *ids, pid_t pid, struct fail *fail)
{
	char uids[64], gids[64];
	int r = 0;

	if (ids->kind == IDS_SUBIDS) {
		r = run_idmap_tool("/usr/bin/newuidmap", pid, ids->uid_base);
		if (r == 0)
			r = run_idmap_tool("/usr/bin/newgidmap", pid, ids->gid_base);
	} else {
		uint32_t first = ids->kind == IDS_SINGLE ? PAYLOAD_USER : 0;
		uint32_t count = ids->kind == IDS_SINGLE ? 1 : RANGE_SIZE;

		(void)snprintf(uids, sizeof(uids), "%u %u %u\n", first, ids->uid_base, count);
		(void)snprintf(gids, sizeof(gids), "%u %u %u\n", first, ids->gid_base, count);
		r = write_proc(pid, "uid_map", uids);
		if (r == 0 && ids->kind == IDS_SINGLE)
			r = write_proc(pid, "setgroups", "deny");
		if (r == 0)
			r = write_proc(pid, "gid_map", gids);
	}
	if (r < 0)
		return fail_set(fail, -r, "user ids", "cannot map the box's user ids: %s",
				strerror(-r));
	return 0;
}
