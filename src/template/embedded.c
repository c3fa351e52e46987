/* SPDX-License-Identifier: Apache-2.0 */
#include "template/embedded.h"

#include "template/template_priv.h"

#include <limits.h>
#include <string.h>
#include <sys/stat.h>

/* The directories above a name, which may be there already: nobody else has ever been in this tree.
 */
static int make_parents(int dir_fd, const char *name)
{
	char path[PATH_MAX];
	size_t n = strlen(name);

	if (n >= sizeof(path))
		return -ENAMETOOLONG;
	memcpy(path, name, n + 1);
	for (char *slash = strchr(path, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		if (mkdirat(dir_fd, path, 0755) < 0 && errno != EEXIST)
			return -errno;
		*slash = '/';
	}
	return 0;
}

int embedded_write(int dir_fd, const char **ret_what)
{
	int r = 0;

	for (const struct embedded_file *f = embedded_files; r == 0 && f->name; f++) {
		*ret_what = f->name;
		r = make_parents(dir_fd, f->name);
		if (r == 0)
			r = template_write_file(dir_fd, f->name, f->mode, f->data,
						(uintptr_t)f->end - (uintptr_t)f->data);
	}
	return r;
}
