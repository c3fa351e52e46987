/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a hostile agent does wrong while files come out: names, order, modes, amounts.
 */
#pragma once

#include "AG_wire.h"

#include <sys/stat.h>

/* Rewritten in the agent's copy of this program, in place: "DO=" and a name padded with dots. */
static volatile const char misdeed[] = "DO=polite..............";
#define DEED_SIZE (sizeof(misdeed) - 1)

static void get_names(int sock)
{
	static const struct {
		const char *name;
		size_t len;
	} bad[] = {
		{ "../escaped", 10 }, { "/tmp/escaped", 12 }, { "..", 2 }, { ".", 1 },
		{ "a/b", 3 },         { "nul\0name", 8 },     { "", 0 },
	};
	unsigned pick = (unsigned char)misdeed[DEED_SIZE - 1] - '0';

	say_file(sock, "before", 0644, "x");
	if (pick < sizeof(bad) / sizeof(bad[0]))
		say_entry(sock, FILE_, 1, 0644, bad[pick].name, bad[pick].len);
	else
		say_entry(sock, DIR, 0, 0755, "..", 2);
	frame(sock, DATA, "x", 1);
	frame(sock, FILE_END, NULL, 0);
	frame(sock, TREE_END, NULL, 0);
}

static void get_long_name(int sock)
{
	char name[300];

	memset(name, 'a', sizeof(name));
	say_entry(sock, FILE_, 0, 0644, name, sizeof(name));
}

static void get_modes(int sock)
{
	say_file(sock, "setuid", 07777, "x");
	say_entry(sock, DIR, UINT64_MAX, 07777, "dir", 3);
	frame(sock, DIR_END, NULL, 0);
	say_entry(sock, FILE_, UINT64_MAX, 0100644, "liar", 4);
	frame(sock, DATA, "four", 4);
	frame(sock, FILE_END, NULL, 0);
	frame(sock, TREE_END, NULL, 0);
}

static void get_link(int sock)
{
	frame(sock, LINK, "l\0/etc/passwd", 13);
	frame(sock, TREE_END, NULL, 0);
}

static void get_twice(int sock)
{
	say_file(sock, "same", 0644, "first");
	say_file(sock, "same", 0644, "second");
	frame(sock, TREE_END, NULL, 0);
}

static void get_up(int sock)
{
	frame(sock, DIR_END, NULL, 0);
	say_file(sock, "escaped", 0644, "x");
	frame(sock, TREE_END, NULL, 0);
}

static void get_inside_file(int sock)
{
	say_entry(sock, FILE_, 9, 0644, "open", 4);
	say_entry(sock, DIR, 0, 0755, "dir", 3);
	frame(sock, TREE_END, NULL, 0);
}

static void get_data_alone(int sock)
{
	frame(sock, DATA, "x", 1), frame(sock, TREE_END, NULL, 0);
}
static void get_out_frame(int sock)
{
	frame(sock, OUT, "x", 1), frame(sock, TREE_END, NULL, 0);
}
static void get_early_end(int sock)
{
	say_entry(sock, DIR, 0, 0755, "dir", 3);
	frame(sock, TREE_END, NULL, 0);
}
static void get_err_min(int sock)
{
	say_failed(sock, 1, INT32_MIN);
}
static void get_fds(int sock)
{
	send_fds(sock, TREE_END, NULL, 0, 3);
}
static void get_hangup(int sock)
{
	say_entry(sock, FILE_, 9, 0644, "part", 4);
	frame(sock, DATA, "part", 4);
}

/* Names that would speak to a terminal or forge a line of ours. */
static void get_control(int sock)
{
	static const char name[] = "a\r\nglovebox: ok: forged\x1b[2J\x1b]0;owned\a";

	say_entry(sock, REFUSED, 0, S_IFLNK, name, sizeof(name) - 1);
	say_file(sock, name, 0644, "x");
	frame(sock, TREE_END, NULL, 0);
}

static void get_deep(int sock)
{
	for (int i = 0; i < 5000; i++)
		if (say_entry(sock, DIR, 0, 0755, "d", 1) < 0)
			break;
	frame(sock, TREE_END, NULL, 0);
}

static void get_many_refused(int sock)
{
	char name[16];

	for (int i = 0; i < 10000000; i++) {
		int n = snprintf(name, sizeof(name), "%d", i);

		if (say_entry(sock, REFUSED, 0, S_IFLNK, name, (size_t)n) < 0)
			return;
	}
}

static void get_endless(int sock)
{
	static const char zeros[PACKET_MAX - sizeof(struct head)];

	say_entry(sock, FILE_, 1, 0644, "endless", 7);
	while (frame(sock, DATA, zeros, sizeof(zeros)) == 0)
		;
}
