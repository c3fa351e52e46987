/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of owners, from the box's own /etc/passwd and /etc/group. Not by the C library, which also
 * asks a name-service daemon whose socket anybody with the box's root may have put there, and
 * waits for it.
 */
#include "agent/fs/priv.h"

#include <fcntl.h>

#define IDS_FILE_MAX (256 << 10) /* what is beyond is not looked at */

struct ids_file {
	const char *path;
	bool loaded;
	char *text;
	size_t len;
	bool known; /* the last answer */
	uint32_t id;
	char name[FS_OWNER_SIZE];
};

/* Does the field, which is not terminated, say this number? */
static bool is_number(const char *field, size_t len, uint32_t id)
{
	char text[16];
	int n = snprintf(text, sizeof(text), "%u", id);

	return n > 0 && (size_t)n == len && memcmp(field, text, len) == 0;
}

/* name:password:id:… */
static bool match_line(const char *line, size_t len, uint32_t id, char ret[FS_OWNER_SIZE])
{
	const char *end = line + len, *password, *number, *number_end;
	const char *name_end = memchr(line, ':', len);

	if (!name_end || name_end == line || name_end - line >= FS_OWNER_SIZE)
		return false;
	password = name_end + 1;
	number = memchr(password, ':', (size_t)(end - password));
	if (!number)
		return false;
	number++;
	number_end = memchr(number, ':', (size_t)(end - number));
	if (!number_end || !is_number(number, (size_t)(number_end - number), id))
		return false;
	memcpy(ret, line, (size_t)(name_end - line));
	ret[name_end - line] = '\0';
	return true;
}

bool fs_names_find(const char *text, size_t len, uint32_t id, char ret[FS_OWNER_SIZE])
{
	while (len) {
		const char *newline = memchr(text, '\n', len);
		size_t n = newline ? (size_t)(newline - text) : len;

		if (!memchr(text, '\0', n) && match_line(text, n, id, ret))
			return true;
		n += newline ? 1 : 0;
		text += n;
		len -= n;
	}
	return false;
}

static void load(struct ids_file *f)
{
	struct stat st;
	_cleanup_(fd_closep) int fd = fs_open_regular(f->path, &st);

	f->loaded = true;
	if (fd < 0)
		return;
	f->text = malloc(IDS_FILE_MAX);
	while (f->text && f->len < IDS_FILE_MAX) {
		ssize_t n = read(fd, f->text + f->len, IDS_FILE_MAX - f->len);

		if (n <= 0)
			break;
		f->len += (size_t)n;
	}
}

static void look_up(struct ids_file *f, uint32_t id, char ret[FS_OWNER_SIZE])
{
	if (!f->loaded)
		load(f);
	/* The files of one directory mostly belong to one user. */
	if (!f->known || f->id != id) {
		if (!f->text || !fs_names_find(f->text, f->len, id, f->name))
			(void)snprintf(f->name, sizeof(f->name), "%u", id);
		f->known = true;
		f->id = id;
	}
	memcpy(ret, f->name, FS_OWNER_SIZE);
}

void fs_owner_name(uint32_t uid, char ret[FS_OWNER_SIZE])
{
	static struct ids_file passwd = { .path = "/etc/passwd" };

	look_up(&passwd, uid, ret);
}

void fs_group_name(uint32_t gid, char ret[FS_OWNER_SIZE])
{
	static struct ids_file group = { .path = "/etc/group" };

	look_up(&group, gid, ret);
}
