/* SPDX-License-Identifier: Apache-2.0 */
#include "template/template.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

static bool is_builtin(const char *name)
{
	return strcmp(name, "base") == 0 || strcmp(name, "code-interpreter-v1") == 0;
}

int template_check(const char *name, struct fail *fail)
{
	struct stat st;

	if (is_builtin(name))
		return 0;
	if (!strchr(name, '/'))
		return fail_set(fail, ENOENT, "template",
				"there is no template '%s'; known: base, code-interpreter-v1, or the "
				"path of a root directory (with a slash in it)",
				name);
	if (stat(name, &st) < 0)
		return fail_set(fail, errno, "template", "cannot use %s as a template: %s", name,
				strerror(errno));
	if (!S_ISDIR(st.st_mode))
		return fail_set(fail, ENOTDIR, "template",
				"%s is not a directory; a template is a root directory", name);
	return 0;
}

/* mkdir -p for a path that is ours. */
static int make_dirs(char *path)
{
	for (char *p = path + 1; *p; p++) {
		if (*p != '/')
			continue;
		*p = '\0';
		if (mkdir(path, 0755) < 0 && errno != EEXIST) {
			*p = '/';
			return -errno;
		}
		*p = '/';
	}
	return mkdir(path, 0700) < 0 && errno != EEXIST ? -errno : 0;
}

int template_state_dir(char *ret, size_t size, struct fail *fail)
{
	const char *home = getenv("HOME"), *data = getenv("XDG_DATA_HOME");
	int n, r;

	if (geteuid() == 0)
		n = snprintf(ret, size, "/var/lib/glovebox/roots");
	else if (data && data[0] == '/')
		n = snprintf(ret, size, "%s/glovebox/roots", data);
	else if (home && home[0] == '/')
		n = snprintf(ret, size, "%s/.local/share/glovebox/roots", home);
	else
		return fail_set(fail, ENOENT, "template",
				"neither HOME nor XDG_DATA_HOME says where to keep template files");
	if (n < 0 || (size_t)n >= size)
		return fail_set(fail, ENAMETOOLONG, "template", "HOME is too long");
	r = make_dirs(ret);
	if (r < 0)
		return fail_set(fail, -r, "template", "cannot make %s: %s", ret, strerror(-r));
	return 0;
}

/* Builds beside the final name and renames: whoever comes second finds it or replaces nothing. */
static int build(const char *dir, const char *final, struct fail *fail)
{
	_cleanup_(fd_closep) int dir_fd = -EBADF;
	char temporary[PATH_MAX];
	int r;

	if (snprintf(temporary, sizeof(temporary), "%s/new-XXXXXX", dir) >= (int)sizeof(temporary))
		return fail_set(fail, ENAMETOOLONG, "template", "HOME is too long");
	if (!mkdtemp(temporary))
		return fail_set(fail, errno, "template", "cannot write to %s: %s", dir,
				strerror(errno));
	dir_fd = open(temporary, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir_fd < 0 || fchmod(dir_fd, 0755) < 0)
		return fail_set(fail, errno, "template", "cannot use %s: %s", temporary,
				strerror(errno));
	r = template_build_base(dir_fd, fail);
	if (r < 0)
		return r;
	if (rename(temporary, final) < 0 && errno != ENOTEMPTY && errno != EEXIST)
		return fail_set(fail, errno, "template", "cannot rename %s: %s", temporary,
				strerror(errno));
	return 0;
}

int template_open(const char *name, struct template *ret, struct fail *fail)
{
	char dir[PATH_MAX - 64];
	int r = template_check(name, fail);

	if (r < 0)
		return r;
	(void)snprintf(ret->name, sizeof(ret->name), "%s", name);
	if (!is_builtin(name)) {
		ret->usr = NULL;
		if (!realpath(name, ret->root))
			return fail_set(fail, errno, "template", "cannot resolve %s: %s", name,
					strerror(errno));
		return 0;
	}
	r = template_state_dir(dir, sizeof(dir), fail);
	if (r < 0)
		return r;
	ret->usr = "/usr";
	(void)snprintf(ret->root, sizeof(ret->root), "%s/base-%016llx", dir,
		       (unsigned long long)template_base_key());
	return access(ret->root, F_OK) == 0 ? 0 : build(dir, ret->root, fail);
}
