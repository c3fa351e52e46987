/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stands in the server's place: the warden starts the server with an empty environment, and a sanitizer takes its
 * settings from nowhere else. PROGRAM and OPTIONS are given when it is built.
 */
#include <stdlib.h>
#include <sys/personality.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	(void)argc;
	/* Where addresses are very random, the sanitizer's own memory has no place. */
	(void)personality(ADDR_NO_RANDOMIZE);
	if (setenv("TSAN_OPTIONS", OPTIONS, 1) == 0)
		(void)execv(PROGRAM, argv);
	return 126;
}
