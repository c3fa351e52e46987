/* SPDX-License-Identifier: Apache-2.0 */
#include "box/setup/hidden.h"

#include <fcntl.h>

/* The kernel writes blanks, tabs, newlines and backslashes as \ooo. In place. */
static void hidden_unescape(char *text)
{
	char *to = text;

	for (const char *p = text; *p;) {
		if (p[0] == '\\' && p[1] >= '0' && p[1] <= '3' && p[2] >= '0' && p[2] <= '7' &&
		    p[3] >= '0' && p[3] <= '7') {
			*to++ = (char)((p[1] - '0') << 6 | (p[2] - '0') << 3 | (p[3] - '0'));
			p += 4;
		} else {
			*to++ = *p++;
		}
	}
	*to = '\0';
}

const char *hidden_mount_point(char *line)
{
	char *save = NULL, *field = NULL;

	/* "36 35 98:0 /mnt1 /mnt2 rw,…": the fifth is where it is mounted. */
	for (int i = 0; i < 5; i++)
		field = strtok_r(i ? NULL : line, " ", &save);
	if (field)
		hidden_unescape(field);
	return field;
}

const char *hidden_below(const char *point, const char *dir)
{
	size_t len = strcmp(dir, "/") == 0 ? 0 : strlen(dir);

	return strncmp(point, dir, len) == 0 && point[len] == '/' && point[len + 1] ?
		       point + len + 1 :
		       NULL;
}

/* The kernel lists what is mounted first. What lies below that needs no cover of its own. */
static bool is_covered(const struct hidden *h, const char *path)
{
	for (size_t i = 0; i < h->n; i++) {
		size_t len = strlen(h->path[i]);

		if (strncmp(path, h->path[i], len) == 0 && (path[len] == '/' || !path[len]))
			return true;
	}
	return false;
}

static int hidden_add(struct hidden *h, const char *prefix, const char *below)
{
	char path[HIDDEN_PATH_MAX];

	if (snprintf(path, sizeof(path), "%s%s", prefix, below) >= HIDDEN_PATH_MAX)
		return -ENAMETOOLONG;
	if (is_covered(h, path))
		return 0;
	if (h->n == HIDDEN_MAX)
		return -E2BIG;
	memcpy(h->path[h->n++], path, sizeof(path));
	return 0;
}

/* The box has its own there, over whatever the layer has: it mounts /proc, and the others are where
 * its user writes. */
static bool is_own(const char *below)
{
	static const char *const users[] = { "home", "home/user", "tmp", "var", "var/tmp" };

	for (size_t i = 0; i < ARRAY_SIZE(users); i++)
		if (strcmp(below, users[i]) == 0)
			return true;
	return strncmp(below, "proc", 4) == 0 && (below[4] == '/' || !below[4]);
}

static int find_in_line(char *line, const char *const *layers, size_t n_layers, struct hidden *h)
{
	const char *point = hidden_mount_point(line);

	for (size_t i = 0; point && i < n_layers; i++) {
		const char *below = hidden_below(point, layers[i]);
		int r = below && (i || !is_own(below)) ? hidden_add(h, i ? "usr/" : "", below) : 0;

		if (r < 0)
			return r;
	}
	return 0;
}

int hidden_find(const char *const *layers, size_t n_layers, struct hidden *ret)
{
	_cleanup_(fd_closep) int fd = open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC);
	char text[16384];
	size_t len = 0;

	if (fd < 0)
		return -errno;
	ret->n = 0;
	for (;;) {
		ssize_t n = read(fd, text + len, sizeof(text) - 1 - len);
		char *line = text, *end;

		if (n < 0)
			return -errno;
		len += (size_t)n;
		text[len] = '\0';
		for (; (end = strchr(line, '\n')); line = end + 1) {
			int r;

			*end = '\0';
			r = find_in_line(line, layers, n_layers, ret);
			if (r < 0)
				return r;
		}
		if (n == 0)
			return 0;
		len -= (size_t)(line - text);
		if (len == sizeof(text) - 1)
			return -ENAMETOOLONG;
		memmove(text, line, len);
	}
}
