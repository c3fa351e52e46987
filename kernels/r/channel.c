/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The R kernel's end of kernels/PROTOCOL.md, for what R cannot do itself: keep descriptors from the programs
 * it starts, and from cells that close all connections. Loaded with dyn.load() and called with .C(), which
 * passes every argument as a pointer. Linked against nothing: the symbols are those of the C library that R
 * has loaded, whichever that is.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

enum {
	REQUESTS_FD = 3,
	EVENTS_FD = 4,
	PRIVATE_FD_FIRST = 240,
};

static int requests_fd = -1;
static int events_fd = -1;

void gb_channel_open(int *ret_good);
void gb_channel_line(unsigned char *buffer, const int *size, int *ret_length);
void gb_channel_read(unsigned char *buffer, const int *size, int *ret_length);
void gb_channel_write(const unsigned char *bytes, const int *size, int *ret_good);

/* Moves a descriptor to where nothing expects one and programs do not inherit it. */
static int make_private(int fd)
{
	int moved = fcntl(fd, F_DUPFD_CLOEXEC, PRIVATE_FD_FIRST);

	(void)close(fd);
	return moved;
}

void gb_channel_open(int *ret_good)
{
	requests_fd = make_private(REQUESTS_FD);
	events_fd = make_private(EVENTS_FD);
	*ret_good = requests_fd >= 0 && events_fd >= 0;
}

/* Reads `size` bytes; fewer only at the end of file. An interrupt is R's to remember, the reading goes on. */
void gb_channel_read(unsigned char *buffer, const int *size, int *ret_length)
{
	int length = 0;

	while (length < *size) {
		ssize_t n = read(requests_fd, buffer + length, (size_t)(*size - length));

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		length += (int)n;
	}
	*ret_length = length;
}

/* Reads up to a newline, which is not counted; a line that is too long has the length `size`. */
void gb_channel_line(unsigned char *buffer, const int *size, int *ret_length)
{
	const int one = 1;
	int length = 0, got = 0;

	for (; length < *size; length++) {
		gb_channel_read(buffer + length, &one, &got);
		if (got == 0 || buffer[length] == '\n')
			break;
	}
	*ret_length = length;
}

/* What C code of a cell left in the buffers of stdio was printed before this is said. */
void gb_channel_write(const unsigned char *bytes, const int *size, int *ret_good)
{
	int done = 0;

	(void)fflush(NULL);
	while (done < *size) {
		ssize_t n = write(events_fd, bytes + done, (size_t)(*size - done));

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		done += (int)n;
	}
	*ret_good = done == *size;
}
