/* SPDX-License-Identifier: Apache-2.0 */
/* Which templates there are and where; building one is build.c's. */
#include "template/template_priv.h"

#include <fcntl.h>
#include <sys/stat.h>

bool template_is_builtin(const char *name)
{
	return strcmp(name, "base") == 0 || strcmp(name, "code-interpreter-v1") == 0;
}

int template_check(const char *name, struct fail *fail)
{
	struct stat st;

	if (template_is_builtin(name))
		return 0;
	if (!strchr(name, '/'))
		return fail_set(
			fail, ENOENT, "template",
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

int template_state_path(char *ret, size_t size, struct fail *fail)
{
	const char *home = getenv("HOME"), *data = getenv("XDG_DATA_HOME");
	int n;

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
	return 0;
}

static int find_directory(const char *name, struct template *ret, struct fail *fail)
{
	ret->usr = NULL;
	if (!realpath(name, ret->root))
		return fail_set(fail, errno, "template", "cannot resolve %s: %s", name,
				strerror(errno));
	return 0;
}

/* Not at each run: that would be a write to the disk. */
static void note_use(const char *root, const struct stat *st)
{
	if (st->st_mtime < time(NULL) - TEMPLATE_KEEP_SECONDS / 2)
		(void)utimensat(AT_FDCWD, root, NULL, AT_SYMLINK_NOFOLLOW);
}

static int find_builtin(const char *ca_bundle, struct template *ret, struct fail *fail)
{
	char dir[TEMPLATE_STATE_SIZE];
	struct stat st;
	uint64_t key;
	int r = template_state_path(dir, sizeof(dir), fail);

	if (r < 0)
		return r;
	r = template_base_key(ca_bundle, &key);
	if (r < 0)
		return fail_set(fail, -r, "template", "cannot look at %.150s: %s",
				*ca_bundle ? ca_bundle : "/etc", strerror(-r));
	ret->usr = "/usr";
	(void)snprintf(ret->root, sizeof(ret->root), "%s/base-%016llx", dir,
		       (unsigned long long)key);
	if (stat(ret->root, &st) < 0)
		return TEMPLATE_UNBUILT;
	note_use(ret->root, &st);
	return 0;
}

int template_find(const char *name, const char *ca_bundle, struct template *ret, struct fail *fail)
{
	int r = template_check(name, fail);

	if (r < 0)
		return r;
	(void)snprintf(ret->name, sizeof(ret->name), "%s", name);
	return template_is_builtin(name) ? find_builtin(ca_bundle, ret, fail) :
					   find_directory(name, ret, fail);
}
