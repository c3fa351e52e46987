/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the attack programs share: a table of rows, a main that runs the one named on the command line.
 * A row prints what it saw and returns 0 when the outcome was safe, 1 when it got through.
 */
#pragma once

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct row {
	const char *id;
	int (*attack)(void);
};

#define SAFE(...) (printf("safe: " __VA_ARGS__), putchar('\n'), 0)
#define BREACH(...) (printf("BREACH: " __VA_ARGS__), putchar('\n'), 1)

/* `int main(int argc, char **argv) { return run_rows(rows, n, argc, argv); }` */
static inline int run_rows(const struct row *rows, size_t n, int argc, char **argv)
{
	setvbuf(stdout, NULL, _IONBF, 0);
	for (size_t i = 0; i < n; i++)
		if (argc == 2 && strcmp(argv[1], rows[i].id) == 0)
			return rows[i].attack();
	fprintf(stderr, "no such row\n");
	return 2;
}
