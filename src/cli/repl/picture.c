/* SPDX-License-Identifier: Apache-2.0 */
/* Pictures of a result become files: a terminal cannot show them. */
#include "cli/repl/repl.h"

#include "base/io.h"

#include <fcntl.h>
#include <limits.h>
#include <sodium.h>

#define SAME_NAME_MAX 1000

/* A new file, named after the cell; one that is there is never touched. */
static int new_file(struct repl *r, const char *ending, char *path, size_t size)
{
	for (int i = 0; i < SAME_NAME_MAX; i++) {
		char number[16] = "";
		int fd;

		r->n_pictures++;
		if (r->n_pictures > 1)
			(void)snprintf(number, sizeof(number), "-%u", r->n_pictures);
		if (snprintf(path, size, "%s/cell-%lld%s.%s", r->pictures, (long long)r->count,
			     number, ending) >= (int)size)
			return -ENAMETOOLONG;
		fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
		if (fd >= 0)
			return fd;
		if (errno != EEXIST)
			return -errno;
	}
	return -EEXIST;
}

static int decode(const char *text, size_t len, unsigned char **ret, size_t *ret_len)
{
	size_t size = len / 4 * 3 + 3;
	_cleanup_(freep) unsigned char *data = malloc(size);

	if (!data)
		return -ENOMEM;
	if (sodium_base642bin(data, size, text, len, "\n", ret_len, NULL,
			      sodium_base64_VARIANT_ORIGINAL) < 0)
		return -EBADMSG;
	*ret = take_ptr(data);
	return 0;
}

static int save(struct repl *r, const char *ending, const void *data, size_t len)
{
	_cleanup_(fd_closep) int fd = -EBADF;
	char path[PATH_MAX];
	int e;

	fd = new_file(r, ending, path, sizeof(path));
	e = fd < 0 ? fd : io_write_all(fd, data, len);
	if (e < 0)
		repl_say(r, "cannot save a picture in %s: %s", r->pictures, strerror(-e));
	else
		repl_say(r, "picture: %s", path);
	return e;
}

int repl_pictures(struct repl *r, const json_t *result)
{
	static const struct {
		const char *key, *ending;
		bool base64;
	} kinds[] = {
		{ "png", "png", true },
		{ "jpeg", "jpg", true },
		{ "svg", "svg", false },
		{ "pdf", "pdf", true },
	};
	int n = 0;

	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		const json_t *value = json_object_get(result, kinds[i].key);
		_cleanup_(freep) unsigned char *data = NULL;
		size_t len = json_string_length(value);

		if (!json_is_string(value))
			continue;
		n++;
		if (!kinds[i].base64)
			(void)save(r, kinds[i].ending, json_string_value(value), len);
		else if (decode(json_string_value(value), len, &data, &len) == 0)
			(void)save(r, kinds[i].ending, data, len);
		else
			repl_say(r, "a picture that cannot be read (%s)", kinds[i].key);
	}
	return n;
}
