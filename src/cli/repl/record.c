/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What :save writes: the cells, each below a line that begins with "# %%", with what they printed
 * as comments. Editors know such files as notebooks, and `glovebox repl <FILE` runs them again.
 */
#include "cli/repl/repl.h"

#include "base/io.h"

#include <fcntl.h>

static const char *comment_of(const struct repl *r)
{
	const char *name = r->language.name;

	return !strcmp(name, "python") || !strcmp(name, "r") || !strcmp(name, "bash") ? "#" : "//";
}

/* A record that is full ends where it is. */
static void record_add(struct repl *r, const void *data, size_t len)
{
	if (r->terminal && buf_add(&r->record, data, len) < 0)
		r->record.max = r->record.len;
}

static void record_add_text(struct repl *r, const char *text)
{
	record_add(r, text, strlen(text));
}

static void end_line(struct repl *r)
{
	if (r->record_in_line)
		record_add_text(r, "\n");
	r->record_in_line = false;
}

void repl_record_cell(struct repl *r, const char *code, size_t len)
{
	end_line(r);
	if (r->record.len)
		record_add_text(r, "\n");
	record_add_text(r, comment_of(r));
	record_add_text(r, " %%\n");
	record_add(r, code, len);
	if (len && code[len - 1] != '\n')
		record_add_text(r, "\n");
}

void repl_record_output(struct repl *r, const void *data, size_t len)
{
	const char *at = data, *end = at + len;

	while (at < end) {
		const char *newline = memchr(at, '\n', (size_t)(end - at));
		size_t n = newline ? (size_t)(newline + 1 - at) : (size_t)(end - at);

		if (!r->record_in_line) {
			record_add_text(r, comment_of(r));
			record_add_text(r, "> ");
		}
		record_add(r, at, n);
		r->record_in_line = !newline;
		at += n;
	}
}

int repl_record_save(struct repl *r, const char *path, struct fail *fail)
{
	_cleanup_(fd_closep) int fd = -EBADF;
	int e;

	end_line(r);
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOCTTY, 0644);
	if (fd < 0 && errno == EEXIST)
		return fail_set(fail, EEXIST, "save", "%s is there already; name a new file", path);
	if (fd < 0)
		return fail_set(fail, errno, "save", "cannot write %s: %s", path, strerror(errno));
	e = io_write_all(fd, r->record.data, r->record.len);
	return e < 0 ? fail_set(fail, -e, "save", "cannot write %s: %s", path, strerror(-e)) : 0;
}

bool repl_is_marker(const struct repl *r, const char *line, size_t len)
{
	const char *comment = comment_of(r);
	size_t n = strlen(comment);

	return len >= n + 3 && memcmp(line, comment, n) == 0 && memcmp(line + n, " %%", 3) == 0;
}
