/* SPDX-License-Identifier: Apache-2.0 */
/* The program's output on its way out: kept for the JSON result, or written on at once. */
#include "cli/run/run.h"

#include "box/breakable.h"
#include <poll.h>

static struct termsafe safe[2];
static signed char is_terminal[2] = { -1, -1 };
static bool err_in_line; /* the program's last error line has no end yet */

/* Blocking whatever the descriptor's flags are: somebody else may have set O_NONBLOCK on it. */
static int write_all(int fd, const char *data, size_t len)
{
	while (len) {
		ssize_t n = write(fd, data, len);

		if (n < 0 && errno == EAGAIN) {
			struct pollfd p = { .fd = fd, .events = POLLOUT };

			(void)poll(&p, 1, 1000);
			continue;
		}
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		data += n;
		len -= (size_t)n;
	}
	return 0;
}

static bool defuse(const struct run_request *q, bool is_err)
{
	if (q->raw || !control_on("termsafe"))
		return false;
	if (is_terminal[is_err] < 0) {
		is_terminal[is_err] = (signed char)isatty(is_err ? 2 : 1);
		termsafe_init(&safe[is_err]);
	}
	return is_terminal[is_err];
}

int run_emit(const struct run_request *q, struct run_result *r, bool is_err, const void *data,
	     size_t len)
{
	const unsigned char *p = data;

	if (q->json)
		return buf_add(is_err ? &r->err : &r->out, data, len);
	if (is_err && len)
		err_in_line = p[len - 1] != '\n';
	if (!defuse(q, is_err))
		return write_all(is_err ? 2 : 1, data, len);
	while (len) {
		static char shown[16384];
		size_t n = MIN(len, (size_t)1024);
		size_t out = termsafe_feed(&safe[is_err], p, n, shown, sizeof(shown));
		int e = write_all(is_err ? 2 : 1, shown, out);

		if (e < 0)
			return e;
		p += n;
		len -= n;
	}
	return 0;
}

int run_emit_end(const struct run_request *q)
{
	int r = 0;

	for (int is_err = 0; r == 0 && !q->json && is_err < 2; is_err++) {
		char shown[512];

		if (is_terminal[is_err] > 0)
			r = write_all(is_err ? 2 : 1, shown,
				      termsafe_flush(&safe[is_err], shown, sizeof(shown)));
	}
	return r;
}

/* What we say ourselves starts on a line of its own. */
void run_emit_break(void)
{
	if (err_in_line)
		(void)!write(2, "\n", 1);
	err_in_line = false;
}
