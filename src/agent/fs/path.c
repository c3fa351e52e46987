/* SPDX-License-Identifier: Apache-2.0 */
/* Paths as a client writes them, and the directories above them. */
#include "agent/fs/fs_priv.h"

#include <fcntl.h>

/* Puts the components of a text behind a path of *len bytes that begins with '/' or is empty. */
static int add_components(char path[FS_PATH_SIZE], size_t *len, const char *text)
{
	while (*text) {
		size_t n = strcspn(text, "/");

		if (n == 2 && text[0] == '.' && text[1] == '.') {
			while (*len && path[--*len] != '/')
				;
		} else if (n && !(n == 1 && text[0] == '.')) {
			if (n + 1 > WIRE_PATH_MAX - *len)
				return -ENAMETOOLONG;
			path[(*len)++] = '/';
			memcpy(path + *len, text, n);
			*len += n;
		}
		text += n;
		text += strspn(text, "/");
	}
	return 0;
}

int fs_path_resolve(const char *home, const char *text, char ret[FS_PATH_SIZE])
{
	size_t len = 0;
	int r = 0;

	if (text[0] == '~' && text[1] && text[1] != '/')
		return -EINVAL; /* somebody else's home */
	if (text[0] != '/')
		r = add_components(ret, &len, home);
	if (r == 0)
		r = add_components(ret, &len, text[0] == '~' ? text + 1 : text);
	if (r < 0)
		return r;
	if (len == 0)
		ret[len++] = '/';
	ret[len] = '\0';
	return 0;
}

int fs_path_join(const char *dir, const char *name, char ret[FS_PATH_SIZE])
{
	const char *slash = dir[0] && dir[strlen(dir) - 1] != '/' ? "/" : "";
	int n = snprintf(ret, FS_PATH_SIZE, "%s%s%s", dir, slash, name);

	return n < 0 || n >= FS_PATH_SIZE ? -ENAMETOOLONG : 0;
}

int fs_path_split(const char *path, char ret_dir[FS_PATH_SIZE], const char **ret_base)
{
	const char *slash = strrchr(path, '/');
	size_t len = slash ? (size_t)(slash - path) : 0;

	if (!slash || len >= FS_PATH_SIZE)
		return -EINVAL;
	memcpy(ret_dir, path, len);
	if (len == 0)
		ret_dir[len++] = '/';
	ret_dir[len] = '\0';
	*ret_base = slash + 1;
	if (strlen(*ret_base) > WIRE_NAME_MAX)
		return -ENAMETOOLONG;
	return wire_name_ok((const unsigned char *)*ret_base, strlen(*ret_base)) ? 0 : -EINVAL;
}

int fs_path_follow(char path[FS_PATH_SIZE])
{
	char dir[FS_PATH_SIZE], target[FS_PATH_SIZE], next[FS_PATH_SIZE];

	for (unsigned links = 0; links < FS_LINKS_MAX; links++) {
		ssize_t n = readlink(path, target, sizeof(target));
		const char *base;
		int r;

		if (n < 0)
			return errno == EINVAL || errno == ENOENT ? 0 : -errno;
		if (n == 0 || (size_t)n >= sizeof(target))
			return -ENAMETOOLONG;
		target[n] = '\0';
		if (target[0] == '/') {
			memcpy(path, target, (size_t)n + 1);
			continue;
		}
		r = fs_path_split(path, dir, &base);
		if (r == 0)
			r = fs_path_join(dir, target, next);
		if (r < 0)
			return r;
		memcpy(path, next, strlen(next) + 1);
	}
	return -ELOOP;
}

int fs_parents_make(const char *path, struct fs_parents *ret)
{
	const char *base;
	struct stat st;
	int r = fs_path_split(path, ret->path, &base);

	ret->first = 0;
	if (r < 0)
		return r;
	if (stat(ret->path, &st) == 0)
		return S_ISDIR(st.st_mode) ? 0 : -ENOTDIR;
	for (char *end = ret->path + 1; *end; end++) {
		char saved;

		end += strcspn(end, "/");
		saved = *end;
		*end = '\0';
		if (mkdir(ret->path, 0755) == 0)
			ret->first = ret->first ? ret->first : (size_t)(end - ret->path);
		else if (errno != EEXIST)
			r = -errno;
		*end = saved;
		if (r < 0) {
			fs_parents_unmake(ret);
			return r;
		}
		if (!saved)
			break;
	}
	return 0;
}

void fs_parents_unmake(struct fs_parents *p)
{
	size_t len = strlen(p->path);

	/* From the lowest up. One that somebody else has used in the meantime is not empty and
	 * stays. */
	while (p->first && len >= p->first) {
		p->path[len] = '\0';
		(void)rmdir(p->path);
		while (len && p->path[len] != '/')
			len--;
		if (len == 0)
			break;
	}
	p->first = 0;
}
