/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Frames made by hand and not by src/wire, so that anything at all can be sent.
 */
#pragma once

#include "attack.h"

#include <fcntl.h>
#include <stdint.h>
#include <sys/socket.h>

#define CONTROL_FD 3
#define PACKET_MAX 65536
#define EXEC_SIZE 72 /* of an EXEC's payload */

enum {
	EXEC = 1,
	PUT = 2,
	GET = 3,
	ARG = 11,
	IN = 14,
	STARTED = 20,
	FAILED = 21,
	OUT = 22,
	ERR = 23,
	EXIT = 24,
	SEVERAL = 28, /* what to run comes in one of them */
	ROOT = 30,
	DIR = 31,
	DIR_END = 32,
	FILE_ = 33,
	DATA = 34,
	FILE_END = 35,
	LINK = 36,
	REFUSED = 37,
	TREE_END = 38,
};

struct head {
	uint16_t type;
	uint16_t zero;
	uint32_t len;
};

static _Alignas(8) unsigned char packet[2 * PACKET_MAX];

static int raw(int sock, const void *data, size_t len)
{
	return send(sock, data, len, MSG_NOSIGNAL) < 0 ? -1 : 0;
}

/* A frame whose header says what it likes. */
static int frame_as(int sock, uint16_t type, uint16_t zero, uint32_t says, const void *data,
		    size_t len)
{
	struct head h = { .type = type, .zero = zero, .len = says };

	memcpy(packet, &h, sizeof(h));
	if (len)
		memcpy(packet + sizeof(h), data, len);
	return raw(sock, packet, sizeof(h) + len);
}

static int frame(int sock, uint16_t type, const void *data, size_t len)
{
	return frame_as(sock, type, 0, (uint32_t)(sizeof(struct head) + len), data, len);
}

static int say_started(int sock)
{
	uint32_t process[2] = { 2, 0 };

	return frame(sock, STARTED, process, sizeof(process));
}

static int say_exit(int sock, int32_t code, int32_t sig, uint32_t core, uint32_t zero)
{
	int32_t e[4] = { code, sig, (int32_t)core, (int32_t)zero };

	return frame(sock, EXIT, e, sizeof(e));
}

static int say_failed(int sock, uint32_t step, int32_t err)
{
	int32_t f[2] = { (int32_t)step, err };

	return frame(sock, FAILED, f, sizeof(f));
}

/* DIR, FILE and REFUSED: size, mode, zero, name. */
static int say_entry(int sock, uint16_t type, uint64_t size, uint32_t mode, const void *name,
		     size_t len)
{
	unsigned char data[16 + 4096] = { 0 };

	memcpy(data, &size, 8);
	memcpy(data + 8, &mode, 4);
	memcpy(data + 16, name, len);
	return frame(sock, type, data, 16 + len);
}

static int say_file(int sock, const char *name, uint32_t mode, const char *text)
{
	say_entry(sock, FILE_, strlen(text), mode, name, strlen(name));
	if (*text)
		frame(sock, DATA, text, strlen(text));
	return frame(sock, FILE_END, NULL, 0);
}

static int send_fds(int sock, uint16_t type, const void *data, size_t len, int n)
{
	char control[CMSG_SPACE(sizeof(int) * 64)] = { 0 };
	struct head h = { .type = type, .len = (uint32_t)(sizeof(h) + len) };
	struct iovec parts[] = { { &h, sizeof(h) }, { (void *)(uintptr_t)data, len } };
	struct msghdr msg = { .msg_iov = parts,
			      .msg_iovlen = 2,
			      .msg_control = control,
			      .msg_controllen = CMSG_SPACE(sizeof(int) * (size_t)n) };
	struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
	int null_fd = open("/dev/null", O_RDWR);

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(int) * (size_t)n);
	for (int i = 0; i < n; i++)
		memcpy(CMSG_DATA(c) + sizeof(int) * (size_t)i, &null_fd, sizeof(int));
	return sendmsg(sock, &msg, MSG_NOSIGNAL) < 0 ? -1 : 0;
}

static void silence(void)
{
	for (;;)
		pause();
}
