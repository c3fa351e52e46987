/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For attacks that try many ways in: each way is judged as it is tried, and one that got through
 * fails the row without hiding what the others did.
 */
#pragma once

#include "attack.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

static int breaches;

static inline bool want(bool safe, const char *format, ...)
{
	va_list args;

	if (!safe)
		breaches++;
	fputs(safe ? "safe: " : "BREACH: ", stdout);
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	putchar('\n');
	return safe;
}

/* The call must have failed, with this errno and no other: another one comes from another lock. */
static inline bool want_errno(long r, int wanted, const char *what)
{
	int err = r < 0 ? errno : 0;

	return want(r < 0 && err == wanted, "%s: %s (wanted %s)", what,
		    r < 0 ? strerror(err) : "done", strerror(wanted));
}

/* The call must have failed, no matter how. */
static inline bool want_refused(long r, const char *what)
{
	return want(r < 0, "%s: %s", what, r < 0 ? strerror(errno) : "done");
}

static inline int verdict(void)
{
	return breaches ? 1 : 0;
}

/* What the test told us about the host; a row that is run without it proves nothing. */
static inline const char *told(const char *name)
{
	const char *value = getenv(name);

	if (!value) {
		printf("BREACH: the test did not set %s\n", name);
		exit(2);
	}
	return value;
}

/* The start of a file as text: its length, or -1 with errno. */
static inline ssize_t slurp(const char *path, char *text, size_t size)
{
	int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	ssize_t n, len = 0;

	if (fd < 0)
		return -1;
	while ((size_t)len < size - 1 && (n = read(fd, text + len, size - 1 - (size_t)len)) > 0)
		len += n;
	text[len] = '\0';
	close(fd);
	return len;
}

/* A file whose content must not be seen: it is not there, or cannot be opened, or is empty. */
static inline void want_hidden(const char *path)
{
	char text[64];
	ssize_t n = slurp(path, text, sizeof(text));

	want(n <= 0, "%s: %s", path, n < 0 ? strerror(errno) : n == 0 ? "empty" : "has content");
}

/* The rest of the row happens outside: stay until the test lets go of our standard input. */
static inline void hold(void)
{
	char c;

	puts("ready");
	while (read(0, &c, 1) > 0)
		;
}
