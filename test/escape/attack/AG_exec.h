/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a hostile agent does wrong while a command runs: it has read the command and holds its socket.
 */
#pragma once

#include "AG_wire.h"

#include <sys/mman.h>
#include <sys/syscall.h>

static void do_polite(int sock)
{
	say_started(sock);
	frame(sock, OUT, "polite\n", 7);
	say_exit(sock, 0, 0, 0, 0);
}

static void do_len_zero(int sock)
{
	frame_as(sock, STARTED, 0, 0, NULL, 0);
}
static void do_len_huge(int sock)
{
	frame_as(sock, OUT, 0, UINT32_MAX, "x", 1);
}
static void do_len_lie(int sock)
{
	say_started(sock);
	frame_as(sock, OUT, 0, PACKET_MAX, "x", 1);
}
static void do_len_short(int sock)
{
	say_started(sock);
	frame_as(sock, OUT, 0, sizeof(struct head) + 1, "xyz", 3);
}
static void do_len_over(int sock)
{
	static const char big[PACKET_MAX + 1];

	say_started(sock);
	frame(sock, OUT, big, sizeof(big) - sizeof(struct head));
	frame_as(sock, OUT, 0, PACKET_MAX, big, sizeof(big) - sizeof(struct head));
}
static void do_empty(int sock)
{
	raw(sock, "", 0);
}
static void do_half(int sock)
{
	raw(sock, "\x14\0\0\0", 4);
}
static void do_half_later(int sock)
{
	say_started(sock);
	raw(sock, "\x16\0\0", 3);
}

static void do_type_none(int sock)
{
	frame(sock, 0, NULL, 0);
}
static void do_type_far(int sock)
{
	frame(sock, 0xffff, NULL, 0);
}
static void do_type_file(int sock)
{
	say_started(sock), frame(sock, TREE_END, NULL, 0);
}
static void do_type_ours(int sock)
{
	say_started(sock);
	frame(sock, IN, "x", 1);
}
static void do_type_exec(int sock)
{
	unsigned char exec[EXEC_SIZE] = { 0 };

	frame(sock, EXEC, exec, sizeof(exec));
}
static void do_reserved(int sock)
{
	frame_as(sock, STARTED, 1, sizeof(struct head) + 8, "\2\0\0\0\0\0\0", 8);
}
static void do_reserved_later(int sock)
{
	frame(sock, STARTED, "\2\0\0\0\1\0\0", 8);
}
static void do_size_off(int sock)
{
	frame(sock, STARTED, "x", 1);
}
static void do_out_empty(int sock)
{
	say_started(sock), frame(sock, OUT, NULL, 0);
}

static void do_exit_twice(int sock)
{
	say_started(sock);
	say_exit(sock, 0, 0, 0, 0);
	say_exit(sock, 7, 0, 0, 0);
}
static void do_out_after_exit(int sock)
{
	say_started(sock);
	say_exit(sock, 0, 0, 0, 0);
	frame(sock, OUT, "AFTERWARDS", 10);
	frame(sock, ERR, "AFTERWARDS", 10);
}

static void do_out_first(int sock)
{
	frame(sock, OUT, "EARLY", 5);
}
static void do_exit_first(int sock)
{
	say_exit(sock, 0, 0, 0, 0);
}
static void do_started_twice(int sock)
{
	say_started(sock), say_started(sock);
}
static void do_failed_late(int sock)
{
	say_started(sock), say_failed(sock, 6, ENOENT);
}
static void do_file_here(int sock)
{
	say_started(sock);
	say_file(sock, "planted", 0644, "x");
}

#define EXITS(name, code, sig, core, zero)                                                         \
	static void do_exit_##name(int sock)                                                       \
	{                                                                                          \
		say_started(sock);                                                                 \
		say_exit(sock, code, sig, core, zero);                                             \
	}
EXITS(256, 256, 0, 0, 0)
EXITS(min, INT32_MIN, 0, 0, 0)
EXITS(minus, -2, 0, 0, 0)
EXITS(both, 0, 9, 0, 0)
EXITS(none, -1, 0, 0, 0)
EXITS(sig65, -1, 65, 0, 0)
EXITS(sigminus, -1, -9, 0, 0)
EXITS(core2, -1, 11, 2, 0)
EXITS(zero, 0, 0, 0, 1)

static void do_failed_err0(int sock)
{
	say_failed(sock, 6, 0);
}
static void do_failed_errmin(int sock)
{
	say_failed(sock, 6, INT32_MIN);
}
static void do_failed_step(int sock)
{
	say_failed(sock, UINT32_MAX, EPERM);
}

static void do_flood(int sock)
{
	say_started(sock);
	while (frame(sock, OUT, "x", 1) == 0)
		;
}

static void do_binary(int sock)
{
	static char big[PACKET_MAX - sizeof(struct head)];

	for (size_t i = 0; i < sizeof(big); i++)
		big[i] = (char)(i * 7);
	say_started(sock);
	frame(sock, OUT, big, sizeof(big));
	frame(sock, ERR, "\0\r\n\x1b]0;owned\a\xff\xfe", 16);
	say_exit(sock, 0, 0, 0, 0);
}

static void do_deaf(int sock)
{
	say_started(sock); /* and never reads again */
	silence();
}

static void do_mute(int sock)
{
	(void)sock;
	silence();
}

static void do_fds(int sock)
{
	send_fds(sock, STARTED, "\2\0\0\0\0\0\0", 8, 3);
}
static void do_fds_later(int sock)
{
	say_started(sock);
	send_fds(sock, OUT, "x", 1, 60);
}
static void do_fds_control(int sock)
{
	for (int i = 0; i < 1000; i++)
		if (fcntl(CONTROL_FD, F_SETFL, O_NONBLOCK) < 0 ||
		    send_fds(CONTROL_FD, STARTED, "\2\0\0\0\0\0\0", 8, 10) < 0)
			break;
	do_polite(sock);
}

/* At most 700 MiB: more than the box may have, less than would hurt a machine without the control. */
static void do_memory(int sock)
{
	say_started(sock);
	for (int i = 0; i < 700; i++) {
		char *p = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			       -1, 0);

		if (p == MAP_FAILED)
			break;
		memset(p, 1, 1 << 20);
	}
	frame(sock, OUT, "HAD 700 MiB", 11);
	say_exit(sock, 0, 0, 0, 0);
}

/* At most 300 processes, likewise. */
static void do_forks(int sock)
{
	char text[32];
	int n = 0;

	say_started(sock);
	for (; n < 300; n++) {
		pid_t pid = fork();

		if (pid < 0)
			break;
		if (pid == 0)
			silence();
	}
	n = snprintf(text, sizeof(text), "forks=%d\n", n);
	frame(sock, OUT, text, (size_t)n);
	say_exit(sock, 0, 0, 0, 0);
}

static void do_burn(int sock)
{
	say_started(sock);
	for (volatile unsigned i = 0;; i++)
		;
}

static void do_random(int sock)
{
	unsigned seed;

	syscall(SYS_getrandom, &seed, sizeof(seed), 0);
	if (seed & 1)
		say_started(sock);
	for (int i = 0; i < 400; i++) {
		unsigned n = (unsigned)rand_r(&seed);
		size_t len = (n & 7) == 0 ? n % PACKET_MAX : n % 64;

		for (size_t k = 0; k < len; k++)
			packet[k] = (unsigned char)rand_r(&seed);
		if (len >= 8 && (n & 0x300)) { /* mostly a header that is nearly right */
			struct head h = { .type = (uint16_t)(rand_r(&seed) % 40),
					  .len = (uint32_t)len };

			memcpy(packet, &h, sizeof(h));
		}
		if (raw(sock, packet, len) < 0)
			break;
	}
}
