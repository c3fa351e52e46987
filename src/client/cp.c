/* SPDX-License-Identifier: Apache-2.0 */
/*
 * glovebox cp: files and directories into a sandbox and out of it. Names that come from a sandbox
 * are hostile: each is one component, created below a descriptor, and never followed. Only files
 * and directories are copied.
 */
#include "client/client.h"

#include "base/dir.h"
#include "client/api/transfer.h"

#include <fcntl.h>
#include <getopt.h>
#include <sys/stat.h>

#define DEPTH_MAX 64

static const char help[] =
	"Usage: glovebox cp SOURCE DESTINATION\n"
	"\n"
	"Copies a file or a directory into a sandbox or out of it. The side in the sandbox is\n"
	"written ID:PATH; a relative PATH means below the user's home.\n"
	"\n"
	"  -u, --user NAME  as this user of the sandbox (default: user)\n"
	"\n"
	"Examples\n"
	"  glovebox cp data.csv $id:data.csv\n"
	"  glovebox cp src/ $id:/home/user/src\n"
	"  glovebox cp $id:out ./results\n";

static bool name_ok(const char *name)
{
	return *name && !strchr(name, '/') && strcmp(name, ".") != 0 && strcmp(name, "..") != 0;
}

/* The last component of a path, without slashes at the end; "" when there is none. */
static void last_name(const char *path, char *ret, size_t size)
{
	size_t len = strlen(path), from;

	while (len && path[len - 1] == '/')
		len--;
	from = len;
	while (from && path[from - 1] != '/')
		from--;
	(void)snprintf(ret, size, "%.*s", (int)(len - from), path + from);
}

static int path_join(char *ret, size_t size, const char *dir, const char *name)
{
	size_t len = strlen(dir);

	return (size_t)snprintf(ret, size, "%s%s%s", dir, len && dir[len - 1] == '/' ? "" : "/",
				name) >= size ?
		       -ENAMETOOLONG :
		       0;
}

/* --- out of the sandbox ----------------------------------------------------------------------- */

/* Into a new name first, so that half a file is never taken for a whole one. */
static int fetch_file(struct transfer *t, const char *path, int dir_fd, const char *name,
		      struct fail *fail)
{
	_cleanup_(fd_closep) int fd = -EBADF;
	char temp[280];
	int r;

	if (strlen(name) > 200)
		return fail_set(fail, ENAMETOOLONG, "cp", "%.40s…: the name is too long", name);
	(void)snprintf(temp, sizeof(temp), ".%s.%d.part", name, (int)getpid());
	fd = openat(dir_fd, temp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644);
	if (fd < 0)
		return fail_set(fail, errno, "cp", "cannot write %s: %s", name, strerror(errno));
	r = transfer_get(t, path, fd, fail);
	if (r == 0 && renameat(dir_fd, temp, dir_fd, name) < 0)
		r = fail_set(fail, errno, "cp", "cannot write %s: %s", name, strerror(errno));
	if (r < 0)
		(void)unlinkat(dir_fd, temp, 0);
	return r;
}

static int cp_open_dir(int dir_fd, const char *name, struct fail *fail)
{
	int fd;

	if (mkdirat(dir_fd, name, 0755) < 0 && errno != EEXIST)
		return fail_set(fail, errno, "cp", "cannot make %s: %s", name, strerror(errno));
	fd = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return fd < 0 ? fail_set(fail, errno, "cp", "cannot use %s: %s", name, strerror(errno)) :
			fd;
}

static int fetch_dir(struct transfer *t, const char *path, int dir_fd, unsigned depth,
		     struct fail *fail)
{
	json_t *answer = NULL, *e;
	size_t i;
	int r;

	if (depth > DEPTH_MAX)
		return fail_set(fail, ELOOP, "cp", "directories are nested more than %d deep",
				DEPTH_MAX);
	r = transfer_list(t, path, &answer, fail);
	json_array_foreach(json_object_get(answer, "entries"), i, e) {
		const char *name = client_text(e, "name"), *type = client_text(e, "type");
		char sub[4096];

		if (r < 0)
			break;
		if (!name_ok(name) || path_join(sub, sizeof(sub), path, name) < 0) {
			r = fail_set(fail, EPROTO, "cp",
				     "the sandbox has a name that cannot be used here");
		} else if (json_object_get(e, "symlinkTarget") ||
			   (strcmp(type, "FILE_TYPE_FILE") != 0 &&
			    strcmp(type, "FILE_TYPE_DIRECTORY") != 0)) {
			(void)client_error(0, "not copied, not a file or directory: %s", sub);
		} else if (!strcmp(type, "FILE_TYPE_FILE")) {
			r = fetch_file(t, sub, dir_fd, name, fail);
		} else {
			_cleanup_(fd_closep) int sub_fd = cp_open_dir(dir_fd, name, fail);

			r = sub_fd < 0 ? sub_fd : fetch_dir(t, sub, sub_fd, depth + 1, fail);
		}
	}
	json_decref(answer);
	return r;
}

/* Where what is fetched goes: a directory and a name in it. An existing directory takes it in. */
static int open_destination(const char *to, const char *from_name, char *ret_name, size_t size,
			    struct fail *fail)
{
	char parent[4096];
	size_t len;
	int fd = open(to, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd >= 0) {
		(void)snprintf(ret_name, size, "%s", from_name);
		return fd;
	}
	last_name(to, ret_name, size);
	(void)snprintf(parent, sizeof(parent), "%s", to);
	len = strlen(parent);
	while (len && parent[len - 1] == '/')
		parent[--len] = '\0';
	while (len && parent[len - 1] != '/')
		parent[--len] = '\0';
	fd = open(*parent ? parent : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 ? fail_set(fail, errno, "cp", "cannot use %s: %s", *parent ? parent : ".",
				 strerror(errno)) :
			fd;
}

static int fetch(struct transfer *t, const char *from, const char *to, struct fail *fail)
{
	_cleanup_(fd_closep) int dir_fd = -EBADF;
	char from_name[256], name[256], type[40];
	int r = transfer_type(t, from, type, sizeof(type), fail);

	if (r < 0)
		return r;
	last_name(from, from_name, sizeof(from_name));
	dir_fd = open_destination(to, from_name, name, sizeof(name), fail);
	if (dir_fd < 0)
		return dir_fd;
	if (!name_ok(name))
		return fail_set(fail, EINVAL, "cp", "give %s a name of its own in the destination",
				from);
	if (!strcmp(type, "FILE_TYPE_FILE"))
		return fetch_file(t, from, dir_fd, name, fail);
	if (strcmp(type, "FILE_TYPE_DIRECTORY") != 0)
		return fail_set(fail, EINVAL, "cp", "%s is neither a file nor a directory", from);
	{
		_cleanup_(fd_closep) int sub_fd = cp_open_dir(dir_fd, name, fail);

		return sub_fd < 0 ? sub_fd : fetch_dir(t, from, sub_fd, 0, fail);
	}
}

/* --- into the sandbox ------------------------------------------------------------------------- */

static int send_dir(struct transfer *t, int dir_fd, const char *path, unsigned depth,
		    struct fail *fail);

static int send_name(struct transfer *t, int dir_fd, const char *name, const char *path,
		     unsigned depth, struct fail *fail)
{
	_cleanup_(fd_closep) int fd =
		openat(dir_fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
	struct stat st;

	if (fd < 0 && errno != ELOOP)
		return fail_set(fail, errno, "cp", "cannot read %s: %s", name, strerror(errno));
	if (fd < 0 || fstat(fd, &st) < 0 || (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode))) {
		(void)client_error(0, "not copied, not a file or directory: %s", name);
		return 0;
	}
	return S_ISDIR(st.st_mode) ? send_dir(t, fd, path, depth + 1, fail) :
				     transfer_put(t, fd, (uint64_t)st.st_size, path, fail);
}

static int send_dir(struct transfer *t, int dir_fd, const char *path, unsigned depth,
		    struct fail *fail)
{
	_cleanup_(dir_closep) DIR *dir = NULL;
	struct dirent *entry;
	int copy, r;

	if (depth > DEPTH_MAX)
		return fail_set(fail, ELOOP, "cp", "directories are nested more than %d deep",
				DEPTH_MAX);
	r = transfer_mkdir(t, path, fail);
	copy = r < 0 ? -EBADF : fcntl(dir_fd, F_DUPFD_CLOEXEC, 3);
	dir = copy < 0 ? NULL : fdopendir(copy);
	if (r == 0 && !dir) {
		fd_close(copy);
		r = fail_set(fail, errno, "cp", "cannot read a directory: %s", strerror(errno));
	}
	while (r == 0 && dir && (entry = readdir(dir))) {
		char sub[4096];

		if (!name_ok(entry->d_name))
			continue;
		r = path_join(sub, sizeof(sub), path, entry->d_name) < 0 ?
			    fail_set(fail, ENAMETOOLONG, "cp", "%s: the path is too long",
				     entry->d_name) :
			    send_name(t, dir_fd, entry->d_name, sub, depth, fail);
	}
	return r;
}

static int send_path(struct transfer *t, const char *from, const char *to, struct fail *fail)
{
	char target[4096], name[256], type[40];
	int r = 0;

	(void)snprintf(target, sizeof(target), "%s", to);
	last_name(from, name, sizeof(name));
	/* An existing directory takes it in; "ID:" is the home. */
	if (!*to || (transfer_type(t, to, type, sizeof(type), fail) == 0 &&
		     !strcmp(type, "FILE_TYPE_DIRECTORY")))
		r = !name_ok(name) ? 0 : path_join(target, sizeof(target), *to ? to : "~", name);
	if (r < 0)
		return fail_set(fail, ENAMETOOLONG, "cp", "%s: the path is too long", to);
	/* What was named is followed if it is a link; what is found below is not. */
	{
		_cleanup_(fd_closep) int fd =
			open(from, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
		struct stat st;

		if (fd < 0 || fstat(fd, &st) < 0)
			return fail_set(fail, errno, "cp", "cannot read %s: %s", from,
					strerror(errno));
		if (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode))
			return fail_set(fail, EINVAL, "cp", "%s is neither a file nor a directory",
					from);
		return S_ISDIR(st.st_mode) ?
			       send_dir(t, fd, target, 0, fail) :
			       transfer_put(t, fd, (uint64_t)st.st_size, target, fail);
	}
}

/* Splits "ID:PATH"; a local path with a colon in it is written ./a:b. */
static const char *remote_path(const char *text, char *ret_id, size_t size)
{
	const char *colon = strchr(text, ':');

	if (!colon || memchr(text, '/', (size_t)(colon - text)) || (size_t)(colon - text) >= size)
		return NULL;
	(void)snprintf(ret_id, size, "%.*s", (int)(colon - text), text);
	return colon + 1;
}

int client_cp(int argc, char **argv)
{
	static const struct option options[] = {
		{ "user", required_argument, NULL, 'u' },
		{ "help", no_argument, NULL, 'h' },
		{ 0 },
	};
	_cleanup_(api_closep) struct api a = { 0 };
	struct transfer t = { .api = &a };
	struct fail fail = { 0 };
	const char *from, *to;
	char id[64];
	int c, r;

	while ((c = getopt_long(argc, argv, "u:h", options, NULL)) != -1) {
		if (c != 'u')
			return client_help(help, c == 'h');
		t.user = optarg;
	}
	if (argc - optind != 2)
		return client_help(help, false);
	from = remote_path(argv[optind], id, sizeof(id));
	to = from ? NULL : remote_path(argv[optind + 1], id, sizeof(id));
	if (!from && !to)
		return client_error(CLIENT_USAGE, "one side must be in a sandbox: ID:PATH");
	if (from && !*from)
		return client_error(CLIENT_USAGE, "say what to copy: %s:PATH", id);
	r = api_open(&a, &fail);
	if (r == 0)
		r = api_sandbox(&a, id, &t.sandbox, &fail);
	if (r == 0)
		r = from ? fetch(&t, from, argv[optind + 1], &fail) :
			   send_path(&t, argv[optind], to, &fail);
	return r < 0 ? client_error(CLIENT_FAILURE, "%s", fail.msg) : CLIENT_OK;
}
