/* SPDX-License-Identifier: Apache-2.0 */
/* What is copied into a box: opened while the request is checked, so what was checked is what is sent. */
#include "cli/run/args_priv.h"

#include "wire/wire.h"

#include <fcntl.h>
#include <sys/stat.h>

#define INPUTS_MAX 256

/* Where an input goes in the box: absolute, without . and .. */
static int input_dest(const char *source, const char *dest, char **ret, struct fail *fail)
{
	_cleanup_(freep) char *path = NULL;
	const char *slash = strrchr(source, '/');
	const char *base = slash ? slash + 1 : source;
	size_t len = dest ? strlen(dest) : 0;
	int n;

	if (!dest || !len)
		n = asprintf(&path, RUN_HOME "/%s", base);
	else
		n = asprintf(&path, "%s%s%s", dest[0] == '/' ? "" : RUN_HOME "/", dest,
			     dest[len - 1] == '/' ? base : "");
	if (n < 0) {
		path = NULL;
		return -ENOMEM;
	}
	for (const char *p = path; *p; p += strcspn(p, "/")) {
		size_t part;

		p += strspn(p, "/");
		part = strcspn(p, "/");
		if (part && !wire_name_ok((const unsigned char *)p, part))
			return fail_set(fail, EINVAL, "--in",
					"--in %s: the destination may not have . or .. in it (add "
					":NAME)",
					source);
	}
	if (strlen(path) > WIRE_PATH_MAX || !*base)
		return fail_set(fail, EINVAL, "--in", "--in %s: name the destination (add :NAME)",
				source);
	*ret = take_ptr(path);
	return 0;
}

static int open_input(const char *path, bool *ret_is_dir)
{
	struct stat st;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) < 0 || (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode))) {
		fd_close(fd);
		return -EINVAL;
	}
	*ret_is_dir = S_ISDIR(st.st_mode);
	return fd;
}

/* PATH[:DEST]. A path that exists with its colon is taken as it is. */
int run_args_input(struct run_request *q, const char *text, struct fail *fail)
{
	_cleanup_(freep) char *source = strdup(text);
	struct run_input in = { .fd = -EBADF };
	struct run_input *grown;
	char *colon = source ? strrchr(source, ':') : NULL;
	const char *dest = NULL;
	int r;

	if (!source)
		return -ENOMEM;
	if (q->n_inputs >= INPUTS_MAX)
		return fail_set(fail, E2BIG, "--in", "more than %d inputs", INPUTS_MAX);
	if (colon && access(source, F_OK) < 0) {
		*colon = '\0';
		dest = colon + 1;
	}
	/* "dir/" means dir */
	for (size_t n = strlen(source); n > 1 && source[n - 1] == '/'; n--)
		source[n - 1] = '\0';
	in.fd = open_input(source, &in.is_dir);
	if (in.fd == -EINVAL)
		return fail_set(fail, EINVAL, "--in", "--in %s: neither a file nor a directory",
				source);
	if (in.fd < 0)
		return fail_set(fail, -in.fd, "--in", "cannot read --in %s: %s", source,
				strerror(-in.fd));
	r = input_dest(source, dest, &in.dest, fail);
	if (r == 0) {
		grown = reallocarray(q->inputs, q->n_inputs + 1, sizeof(in));
		if (grown) {
			q->inputs = grown;
			q->inputs[q->n_inputs++] = in;
			return 0;
		}
		r = -ENOMEM;
		free(in.dest);
	}
	fd_close(in.fd);
	return r;
}
