/* SPDX-License-Identifier: Apache-2.0 */
/* The file of one rule set. */
#include "service/sets.h"

#include "base/io.h"

#include <fcntl.h>
#include <sys/stat.h>

#define FILE_NAME_SIZE (POLICY_SET_NAME_SIZE + sizeof(SETS_SUFFIX))

static int refuse(struct fail *fail, const char *name, int err)
{
	if (err == ENOENT)
		return fail_set(fail, ENOENT, "sets",
				"there is no rule set %s; see 'glovebox egress set ls'", name);
	return fail_set(fail, err, "sets", "rule set %s: %s", name, strerror(err));
}

static int directory(const struct config *c, char ret[static CONFIG_TEXT_SIZE], struct fail *fail)
{
	int r = config_sets_dir(c, ret, CONFIG_TEXT_SIZE);

	if (r < 0)
		return fail_set(fail, -r, "sets",
				"where are the rule sets? HOME is not set; set egress.sets");
	return 0;
}

static int open_directory(const struct config *c, struct fail *fail)
{
	char path[CONFIG_TEXT_SIZE];
	int fd, r = directory(c, path, fail);

	if (r < 0)
		return r;
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

static void file_name(const char *name, char ret[static FILE_NAME_SIZE])
{
	(void)snprintf(ret, FILE_NAME_SIZE, "%.*s%s", POLICY_SET_NAME_SIZE - 1, name, SETS_SUFFIX);
}

/* Rules say what leaves this machine: nobody else writes them. */
static int check_file(int fd, const char *name, struct fail *fail)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return refuse(fail, name, errno);
	if (!S_ISREG(st.st_mode))
		return fail_set(fail, EINVAL, "sets", "%s%s is not a regular file", name,
				SETS_SUFFIX);
	if (st.st_mode & S_IWOTH)
		return fail_set(fail, EPERM, "sets",
				"%s%s can be written by everybody; use: chmod o-w", name,
				SETS_SUFFIX);
	return 0;
}

int sets_read_file(const struct config *c, const char *name, struct buf *ret, struct fail *fail)
{
	_cleanup_(fd_closep) int dir_fd = open_directory(c, fail);
	_cleanup_(fd_closep) int fd = -EBADF;
	char file[FILE_NAME_SIZE];
	int r;

	if (dir_fd < 0)
		return refuse(fail, name, -dir_fd);
	file_name(name, file);
	fd = openat(dir_fd, file, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	if (fd < 0)
		return refuse(fail, name, errno);
	r = check_file(fd, name, fail);
	if (r < 0)
		return r;
	r = buf_read_fd(ret, fd);
	return r < 0 ? refuse(fail, name, -r) : 0;
}

static int make_directory(const struct config *c, struct fail *fail)
{
	char path[CONFIG_TEXT_SIZE], part[CONFIG_TEXT_SIZE];
	int r = directory(c, path, fail);
	size_t len;

	if (r < 0)
		return r;
	len = strlen(path);
	for (size_t i = 1; i <= len; i++) {
		if (i < len && path[i] != '/')
			continue;
		memcpy(part, path, i);
		part[i] = '\0';
		if (mkdir(part, 0755) < 0 && errno != EEXIST)
			return fail_set(fail, errno, "sets", "cannot make %.120s: %s", part,
					strerror(errno));
	}
	return 0;
}

/* Either name is the whole new text afterwards, or nothing has changed: what is half written has another name. */
static int write_beside(int dir_fd, const char *beside, const char *text, size_t len)
{
	_cleanup_(fd_closep) int fd =
		openat(dir_fd, beside, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644);
	int r;

	if (fd < 0)
		return -errno;
	r = io_write_all(fd, text, len);
	if (r == 0 && fsync(fd) < 0)
		r = -errno;
	return r;
}

static int put_file(int dir_fd, const char *file, const char *text, size_t len, bool replace)
{
	char beside[FILE_NAME_SIZE + 16];
	int r;

	(void)snprintf(beside, sizeof(beside), ".%s-%d", file, (int)getpid());
	r = write_beside(dir_fd, beside, text, len);
	if (r == -EEXIST) /* what a dead process with our number left */
		return unlinkat(dir_fd, beside, 0) < 0 ? -errno : -EAGAIN;
	if (r == 0 && renameat2(dir_fd, beside, dir_fd, file, replace ? 0 : RENAME_NOREPLACE) < 0)
		r = -errno;
	if (r < 0)
		(void)unlinkat(dir_fd, beside, 0);
	return r;
}

int sets_write_file(const struct config *c, const char *name, const char *text, size_t len,
		    bool replace, struct fail *fail)
{
	_cleanup_(set_done) struct policy_set parsed = { 0 };
	_cleanup_(fd_closep) int dir_fd = -EBADF;
	char file[FILE_NAME_SIZE];
	int r;

	if (len > SETS_FILE_MAX)
		return fail_set(fail, EFBIG, "sets", "a rule set can have %zu bytes",
				SETS_FILE_MAX);
	r = set_parse(text, len, &parsed, fail);
	if (r == 0)
		r = make_directory(c, fail);
	if (r < 0)
		return r;
	dir_fd = open_directory(c, fail);
	if (dir_fd < 0)
		return refuse(fail, name, -dir_fd);
	file_name(name, file);
	r = put_file(dir_fd, file, text, len, replace);
	if (r == -EAGAIN)
		r = put_file(dir_fd, file, text, len, replace);
	if (r == -EEXIST)
		return fail_set(fail, EEXIST, "sets",
				"there is a rule set %s already; use --force to replace it", name);
	return r < 0 ? refuse(fail, name, -r) : 0;
}

int sets_remove_file(const struct config *c, const char *name, struct fail *fail)
{
	_cleanup_(fd_closep) int dir_fd = open_directory(c, fail);
	char file[FILE_NAME_SIZE];

	if (dir_fd < 0)
		return refuse(fail, name, -dir_fd);
	file_name(name, file);
	return unlinkat(dir_fd, file, 0) < 0 ? refuse(fail, name, errno) : 0;
}
