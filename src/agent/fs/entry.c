/* SPDX-License-Identifier: Apache-2.0 */
/* What a file is, and whose, as an ENTRY. */
#include "agent/fs/fs_priv.h"

#include <fcntl.h>
#include <limits.h>
#include <sys/xattr.h>

#define XATTR_LIST_SIZE 65536    /* the kernel's XATTR_LIST_MAX */
#define IDS_FILE_MAX (256 << 10) /* what is beyond is not looked at */

/*
 * Names of owners, from the box's own /etc/passwd and /etc/group. Not by the C library, which also
 * asks a name-service daemon whose socket anything with the box's root may have put there, and
 * waits for it.
 */
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
static bool is_this_id(const char *field, size_t len, uint32_t id)
{
	char text[16];
	int n = snprintf(text, sizeof(text), "%u", id);

	return n > 0 && (size_t)n == len && memcmp(field, text, len) == 0;
}

/* name:password:id:… */
static bool ids_match(const char *line, size_t len, uint32_t id, char ret[FS_OWNER_SIZE])
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
	if (!number_end || !is_this_id(number, (size_t)(number_end - number), id))
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

		if (!memchr(text, '\0', n) && ids_match(text, n, id, ret))
			return true;
		n += newline ? 1 : 0;
		text += n;
		len -= n;
	}
	return false;
}

static void ids_load(struct ids_file *f)
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

static void ids_name(struct ids_file *f, uint32_t id, char ret[FS_OWNER_SIZE])
{
	if (!f->loaded)
		ids_load(f);
	/* The files of one directory mostly belong to one user. */
	if (!f->known || f->id != id) {
		if (!f->text || !fs_names_find(f->text, f->len, id, f->name))
			(void)snprintf(f->name, sizeof(f->name), "%u", id);
		f->known = true;
		f->id = id;
	}
	memcpy(ret, f->name, FS_OWNER_SIZE);
}

static void owner_name(uint32_t uid, char ret[FS_OWNER_SIZE])
{
	static struct ids_file passwd = { .path = "/etc/passwd" };

	ids_name(&passwd, uid, ret);
}

static void group_name(uint32_t gid, char ret[FS_OWNER_SIZE])
{
	static struct ids_file group = { .path = "/etc/group" };

	ids_name(&group, gid, ret);
}

/* What the attributes are read from: an open file, or a path that is followed. */
struct attrs_place {
	int fd; /* negative: the path */
	const char *path;
};

static ssize_t list_attrs(const struct attrs_place *p, char *list, size_t size)
{
	return p->fd >= 0 ? flistxattr(p->fd, list, size) : listxattr(p->path, list, size);
}

static ssize_t get_attr(const struct attrs_place *p, const char *name, void *value, size_t size)
{
	return p->fd >= 0 ? fgetxattr(p->fd, name, value, size) :
			    getxattr(p->path, name, value, size);
}

static void entry_put(struct fs_entry *e, const void *data, size_t len)
{
	memcpy(e->data + e->len, data, len);
	e->len += len;
}

/* Puts key, NUL, value, NUL for each attribute of ours that fits and can be told. */
static size_t entry_put_attrs(struct fs_entry *e, const struct attrs_place *place)
{
	static char list[XATTR_LIST_SIZE];
	char value[FS_ATTRS_MAX];
	size_t begin = e->len;
	ssize_t len = list_attrs(place, list, sizeof(list));

	for (const char *name = list; len > 0 && name < list + len; name += strlen(name) + 1) {
		const char *key = name + strlen(FS_ATTR_PREFIX);
		ssize_t n;

		if (strncmp(name, FS_ATTR_PREFIX, strlen(FS_ATTR_PREFIX)) != 0 || !*key)
			continue;
		n = get_attr(place, name, value, sizeof(value));
		if (n < 0 || memchr(value, '\0', (size_t)n))
			continue;
		if (e->len - begin + strlen(key) + (size_t)n + 2 > FS_ATTRS_SHOWN_MAX)
			continue;
		entry_put(e, key, strlen(key) + 1);
		entry_put(e, value, (size_t)n);
		entry_put(e, "", 1);
	}
	return e->len - begin;
}

static uint32_t type_of(mode_t mode)
{
	if (S_ISREG(mode))
		return WIRE_FS_FILE;
	return S_ISDIR(mode) ? WIRE_FS_DIR : WIRE_FS_OTHER;
}

/* st is the name's own; led_to what a link leads to, NULL where it leads nowhere. */
static int entry_build(const struct attrs_place *place, const char *shown, uint64_t size,
		       const struct stat *led_to, const char *target, struct fs_entry *e)
{
	struct wire_fs_entry head = {
		.size = size,
		.mtime_s = e->st.st_mtim.tv_sec,
		.mtime_ns = (uint32_t)e->st.st_mtim.tv_nsec,
		.type = led_to ? type_of(led_to->st_mode) : (uint32_t)WIRE_FS_OTHER,
		.mode = led_to ? led_to->st_mode & 07777u : 0,
		.is_link = S_ISLNK(e->st.st_mode),
		.target_len = (uint16_t)strlen(target),
	};
	char owner[FS_OWNER_SIZE], group[FS_OWNER_SIZE];

	if (strlen(shown) > WIRE_PATH_MAX || strlen(target) > WIRE_PATH_MAX)
		return -ENAMETOOLONG;
	owner_name(e->st.st_uid, owner);
	group_name(e->st.st_gid, group);
	head.path_len = (uint16_t)strlen(shown);
	head.owner_len = (uint16_t)strlen(owner);
	head.group_len = (uint16_t)strlen(group);
	e->len = sizeof(head);
	entry_put(e, shown, head.path_len);
	entry_put(e, owner, head.owner_len);
	entry_put(e, group, head.group_len);
	entry_put(e, target, head.target_len);
	/* Only these have attributes of users; and a list must not open what it lists. */
	if (head.type != WIRE_FS_OTHER)
		head.attrs_len = (uint32_t)entry_put_attrs(e, place);
	memcpy(e->data, &head, sizeof(head));
	return 0;
}
_Static_assert(sizeof(struct wire_fs_entry) + WIRE_PATH_MAX + FS_OWNER_SIZE + FS_OWNER_SIZE +
			       WIRE_PATH_MAX + FS_ATTRS_SHOWN_MAX <=
		       WIRE_DATA_MAX,
	       "whatever a file is fits in one frame");

int fs_entry_look(const char *at, const char *shown, struct fs_entry *ret)
{
	const struct attrs_place place = { .fd = -EBADF, .path = at };
	static char target[PATH_MAX];
	const struct stat *led_to = &ret->st;
	struct stat st;

	if (lstat(at, &ret->st) < 0)
		return -errno;
	target[0] = '\0';
	if (S_ISLNK(ret->st.st_mode)) {
		bool leads = stat(at, &st) == 0 && realpath(at, target);

		led_to = leads ? &st : NULL;
		if (!leads)
			target[0] = '\0';
	}
	return entry_build(&place, shown, (uint64_t)ret->st.st_size, led_to, target, ret);
}

int fs_entry_opened(int fd, uint64_t size, const char *shown, struct fs_entry *ret)
{
	const struct attrs_place place = { .fd = fd };

	if (fstat(fd, &ret->st) < 0)
		return -errno;
	return entry_build(&place, shown, size, &ret->st, "", ret);
}

int fs_entry_send(int sock, const struct fs_entry *e)
{
	return wire_send(sock, WIRE_ENTRY, e->data, e->len);
}

int fs_entry_tell(int sock, const char *at, const char *shown)
{
	static struct fs_entry e;
	int r = fs_entry_look(at, shown, &e);

	return r < 0 ? r : fs_entry_send(sock, &e);
}
