/* SPDX-License-Identifier: Apache-2.0 */
/* STATE/local.key: the key that `glovebox` on this machine uses for the person who started the service. */
#include "client/key/priv.h"

#include "base/parse.h"

#include <fcntl.h>
#include <sys/stat.h>

#define NAME "local.key"
#define NEW_NAME NAME "-new"

static int variable_id(const char *name, uint32_t *ret)
{
	const char *text = getenv(name);
	uint64_t id;

	if (!text || parse_u64(text, &id) < 0 || id >= UINT32_MAX)
		return -ENOENT;
	*ret = (uint32_t)id;
	return 0;
}

/* Behind sudo there is a person who will want to use it. */
static int give_to_caller(int fd)
{
	uint32_t uid, gid;

	if (geteuid() != 0 || variable_id("SUDO_UID", &uid) < 0 ||
	    variable_id("SUDO_GID", &gid) < 0)
		return 0;
	return fchown(fd, uid, gid) < 0 ? -errno : 0;
}

int local_key_open(const struct state *s, int *ret_fd, struct fail *fail)
{
	_cleanup_(fd_closep) int fd =
		openat(s->dir_fd, NAME, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	struct stat st;

	if (fd < 0 && errno == ENOENT)
		return -ENOENT;
	if (fd < 0 || fstat(fd, &st) < 0)
		return fail_set(fail, errno, "key", "cannot open %.120s/" NAME ": %s", s->path,
				strerror(errno));
	if (!S_ISREG(st.st_mode) || st.st_nlink != 1)
		return fail_set(fail, EINVAL, "key", "%.120s/" NAME " is not a plain file",
				s->path);
	*ret_fd = take_fd(&fd);
	return 0;
}

bool local_key_is(int fd, struct store *store, const char *id)
{
	char text[STORE_KEY_TEXT_SIZE];
	struct store_key key;
	ssize_t n = pread(fd, text, sizeof(text) - 1, 0);
	bool same = n > 0 && store_key_check(store, text, (size_t)n, &key) == 0 &&
		    strcmp(key.id, id) == 0;

	explicit_bzero(text, sizeof(text));
	return same;
}

int local_key_write(int fd, const char *text, struct fail *fail)
{
	char line[STORE_KEY_TEXT_SIZE + 1] = "";
	int len = text ? snprintf(line, sizeof(line), "%s\n", text) : 0;
	int r = 0;

	if (pwrite(fd, line, (size_t)len, 0) != len || ftruncate(fd, len) < 0 || fsync(fd) < 0)
		r = fail_set(fail, errno ? errno : EIO, "key", "cannot write " NAME ": %s",
			     strerror(errno));
	explicit_bzero(line, sizeof(line));
	return r;
}

int local_key_replace(const struct state *s, const char *text, struct fail *fail)
{
	_cleanup_(fd_closep) int fd = -EBADF;
	int r;

	(void)unlinkat(s->dir_fd, NEW_NAME, 0); /* of somebody who was killed here */
	fd = openat(s->dir_fd, NEW_NAME, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	r = fd < 0 ? -errno : give_to_caller(fd);
	if (r < 0)
		return fail_set(fail, -r, "key", "cannot make %.120s/" NAME ": %s", s->path,
				strerror(-r));
	r = local_key_write(fd, text, fail);
	if (r == 0 && renameat(s->dir_fd, NEW_NAME, s->dir_fd, NAME) < 0)
		r = fail_set(fail, errno, "key", "cannot make %.120s/" NAME ": %s", s->path,
			     strerror(errno));
	if (r < 0)
		(void)unlinkat(s->dir_fd, NEW_NAME, 0);
	return r;
}
