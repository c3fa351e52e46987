/* SPDX-License-Identifier: Apache-2.0 */
/* cgroup directories, files and the kernel's text formats. */
#include "sys/cgroup_priv.h"

#include "base/parse.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

int cgroup_mkdir(int at, const char *name, int *ret_fd)
{
	int fd, r;

	if (mkdirat(at, name, 0755) < 0)
		return -errno;
	fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0) {
		r = -errno;
		(void)unlinkat(at, name, AT_REMOVEDIR);
		return r;
	}
	*ret_fd = fd;
	return 0;
}

int cgroup_rmdir(int at, const char *name)
{
	if (unlinkat(at, name, AT_REMOVEDIR) < 0 && errno != ENOENT)
		return -errno;
	return 0;
}

int cgroup_write(int at, const char *file, const char *text)
{
	_cleanup_(fd_closep) int fd = openat(at, file, O_WRONLY | O_CLOEXEC);
	size_t len = strlen(text);
	ssize_t n;

	if (fd < 0)
		return -errno;
	do {
		n = write(fd, text, len); /* lowering a memory limit can be interrupted */
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	return (size_t)n == len ? 0 : -EIO;
}

int cgroup_write_u64(int at, const char *file, uint64_t value)
{
	char text[24];

	(void)snprintf(text, sizeof(text), "%llu", (unsigned long long)value);
	return cgroup_write(at, file, text);
}

/* For files that a kernel built without the feature does not have. */
int cgroup_write_optional(int at, const char *file, const char *text)
{
	int r = cgroup_write(at, file, text);

	return r == -ENOENT ? 0 : r;
}

int cgroup_read_fd(int fd, char *buf, size_t size)
{
	ssize_t n = pread(fd, buf, size - 1, 0);

	if (n < 0)
		return -errno;
	buf[n] = '\0';
	return 0;
}

int cgroup_read(int at, const char *file, char *buf, size_t size)
{
	_cleanup_(fd_closep) int fd = openat(at, file, O_RDONLY | O_CLOEXEC);

	return fd < 0 ? -errno : cgroup_read_fd(fd, buf, size);
}

int cgroup_read_lines(int at, const char *file, char *buf, size_t size)
{
	_cleanup_(fd_closep) int fd = openat(at, file, O_RDONLY | O_CLOEXEC);
	size_t len = 0;
	ssize_t n;

	if (fd < 0)
		return -errno;
	do {
		n = read(fd, buf + len, size - 1 - len);
		if (n < 0)
			return -errno;
		len += (size_t)n;
	} while (n > 0);
	while (len > 0 && buf[len - 1] != '\n')
		len--;
	buf[len] = '\0';
	return 0;
}

uint64_t cgroup_limit(int at, const char *file)
{
	uint64_t limit;
	char text[32];

	if (cgroup_read(at, file, text, sizeof(text)) < 0)
		return UINT64_MAX;
	text[strcspn(text, "\n")] = '\0';
	/* v2 begins with "max", v1 with nearly all of a signed number. */
	return parse_u64(text, &limit) < 0 || limit > INT64_MAX / 2 ? UINT64_MAX : limit;
}

bool cgroup_may_write(int at, const char *file)
{
	return faccessat(at, file, W_OK, AT_EACCESS) == 0;
}

struct cgroup_name cgroup_exec_name(const char *prefix, unsigned n)
{
	struct cgroup_name name;

	(void)snprintf(name.text, sizeof(name.text), "%s%sexec-%u", prefix ? prefix : "",
		       prefix ? "." : "", n);
	return name;
}

struct cgroup_name cgroup_exec_path(const char *box, unsigned n)
{
	struct cgroup_name name;

	(void)snprintf(name.text, sizeof(name.text), "%s/exec-%u", box, n);
	return name;
}

bool cgroup_keyed_u64(const char *text, const char *key, uint64_t *ret)
{
	size_t len = strlen(key);

	for (const char *line = text; *line != '\0';) {
		size_t end = strcspn(line, "\n");
		char number[24];

		if (end > len + 1 && strncmp(line, key, len) == 0 && line[len] == ' ' &&
		    end - len - 1 < sizeof(number)) {
			memcpy(number, line + len + 1, end - len - 1);
			number[end - len - 1] = '\0';
			return parse_u64(number, ret) == 0;
		}
		line += end + (line[end] == '\n');
	}
	return false;
}

bool cgroup_has_word(const char *text, const char *word)
{
	size_t len = strlen(word);

	while (*text != '\0') {
		size_t end = strcspn(text, " \n");

		if (end == len && memcmp(text, word, len) == 0)
			return true;
		text += end + (text[end] != '\0');
	}
	return false;
}

/* Whether a comma-separated list of given length has the word; an empty list has the empty word. */
static bool list_has(const char *list, size_t len, const char *word)
{
	for (size_t at = 0; at <= len;) {
		size_t n = strcspn(list + at, ",:");

		if (n == strlen(word) && memcmp(list + at, word, n) == 0)
			return true;
		at += n + 1;
	}
	return false;
}

/* /proc/self/cgroup: "<id>:<controllers>:<path>" lines; "0::<path>" is the unified one. */
int cgroup_own_path(const char *text, const char *controller, char *ret, size_t size)
{
	for (const char *line = text; *line != '\0';) {
		size_t end = strcspn(line, "\n");
		const char *list = memchr(line, ':', end);
		const char *path = list ? memchr(list + 1, ':', end - (size_t)(list + 1 - line)) :
					  NULL;

		if (path != NULL && list_has(list + 1, (size_t)(path - list - 1), controller)) {
			size_t len = end - (size_t)(path + 1 - line);

			if (len >= size)
				return -ENAMETOOLONG;
			memcpy(ret, path + 1, len);
			ret[len] = '\0';
			return 0;
		}
		line += end + (line[end] == '\n');
	}
	return -ENOENT;
}

int cgroup_read_own_path(const char *controller, char *ret, size_t size)
{
	char text[4096] = "";
	int r = cgroup_read(AT_FDCWD, "/proc/self/cgroup", text, sizeof(text));

	return r < 0 ? r : cgroup_own_path(text, controller, ret, size);
}
