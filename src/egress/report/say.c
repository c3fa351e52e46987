/* SPDX-License-Identifier: Apache-2.0 */
#include "egress/report/report.h"

#include <poll.h>
#include <stdarg.h>

#define LINE_MAX_BYTES 1024 /* less than a pipe takes without blocking */

/* A line that would wait, because nobody reads the other end, is dropped: a full log must not stop
 * the boxes' network. */
void say_log(const char *fmt, ...)
{
	struct pollfd p = { .fd = STDERR_FILENO, .events = POLLOUT };
	char text[LINE_MAX_BYTES / 2], line[LINE_MAX_BYTES];
	va_list args;
	int n;

	va_start(args, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	n = snprintf(line, sizeof(line), "glovebox-egress: %s\n", text);
	if (poll(&p, 1, 0) == 1 && (p.revents & POLLOUT))
		(void)!write(STDERR_FILENO, line, (size_t)n);
}

int say_event(const struct egress *g, const struct egress_event *e)
{
	struct egress_frame f = { .as_EVENT = *e };

	return g->server_fd < 0 ? -ENOTCONN : egress_send(g->server_fd, EGRESS_EVENT, &f, NULL, 0);
}
