/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From a cell's socket to its kernel. What the cell brings is put down as the kernel will read it,
 * and not a byte of it is written before GO has come.
 *
 * Memory: each kernel may hold HELD_MAX of this at a time, and one of them more, up to what a cell
 * may bring. Who needs more while another has it waits; the other has it until its kernel has taken
 * it, and has a deadline for that.
 */
#include "agent/kernel/kernel.h"

#include <stdio.h>

#define HELD_MAX (128u << 10)
#define FRAMES_PER_TURN 32
#define TAKE_US 60000000 /* how long a kernel may take to read a cell */
#define LINE_MAX_BYTES 32

static const struct kernel *holds_more;

/* The order in which the kinds come. */
enum { STAGE_BASE, STAGE_ENV, STAGE_CWD, STAGE_CODE };

void kernel_request_free(struct kernel *k)
{
	freep(&k->request);
	k->request_at = k->request_len = k->request_size = 0;
	if (holds_more == k)
		holds_more = NULL;
}

/* Is there space for one more frame, whatever its size, with its line and the one that ends the
 * request? */
bool kernel_may_gather(const struct kernel *k)
{
	return k->request_len + WIRE_MAX + (size_t)2 * LINE_MAX_BYTES <= HELD_MAX || !holds_more ||
	       holds_more == k;
}

static int request_reserve(struct kernel *k, size_t more)
{
	size_t need = k->request_len + more, size = MAX(k->request_size, 1024);
	unsigned char *request;

	if (need > HELD_MAX && holds_more && holds_more != k)
		return -EBUSY; /* nobody gets here who has asked kernel_may_gather() */
	if (need > HELD_MAX)
		holds_more = k;
	if (need <= k->request_size)
		return 0;
	while (size < need)
		size *= 2;
	request = realloc(k->request, size);
	if (!request)
		return -ENOMEM;
	k->request = request;
	k->request_size = size;
	return 0;
}

static int request_add(struct kernel *k, const char *word, const void *data, size_t len)
{
	char line[LINE_MAX_BYTES];
	int n = snprintf(line, sizeof(line), "%s %zu\n", word, len), r;

	if (k->request_len + (size_t)n + len > CELL_BYTES_MAX)
		return -E2BIG;
	r = request_reserve(k, (size_t)n + len);
	if (r < 0)
		return r;
	memcpy(k->request + k->request_len, line, (size_t)n);
	if (len)
		memcpy(k->request + k->request_len + n, data, len);
	k->request_len += (size_t)n + len;
	return 0;
}

static bool variable_ok(const unsigned char *data, size_t len)
{
	const unsigned char *equals = memchr(data, '=', len);

	return equals && equals > data && !memchr(data, '\0', len);
}

/* A context is listed with the directory that its first cell goes to. */
static int keep_cwd(struct kernel *k, const void *path, size_t len)
{
	if (k->begun)
		return 0;
	freep(&k->cwd);
	k->cwd = strndup(path, len);
	return k->cwd ? 0 : -ENOMEM;
}

static int on_cwd(struct kernel *k, const unsigned char *data, size_t len)
{
	int r;

	if (data[0] != '/' || memchr(data, '\0', len))
		return -EINVAL;
	r = keep_cwd(k, data, len);
	return r < 0 ? r : request_add(k, "cwd", data, len);
}

static int gather_frame(struct kernel *k, const struct wire_frame *f)
{
	struct cell *c = k->cell;
	unsigned stage = c->stage;
	size_t len = wire_len(f);

	switch (f->head.type) {
	case WIRE_BASE:
		c->stage = STAGE_BASE;
		break;
	case WIRE_ENV:
		c->stage = STAGE_ENV;
		break;
	case WIRE_CWD:
		c->stage = STAGE_CODE; /* nothing but code behind it */
		return stage > STAGE_CWD ? -EPROTO : on_cwd(k, f->data, len);
	case WIRE_CODE:
		c->stage = STAGE_CODE;
		return request_add(k, "code", f->data, len);
	default:
		return -EPROTO;
	}
	if (c->stage < stage)
		return -EPROTO;
	if (!variable_ok(f->data, len))
		return -EINVAL;
	return request_add(k, f->head.type == WIRE_BASE ? "base" : "env", f->data, len);
}

/* Everything is there: from here on the kernel is told of it, whole. */
static void feed_begin(struct kernel *k)
{
	const struct wire_process process = { .pid = (uint32_t)k->pid };
	int r = request_add(k, "run", NULL, 0);

	if (r < 0) {
		cell_fail(k->cell, WIRE_STEP_REQUEST, r);
		return;
	}
	k->begun = true;
	k->deadline_us = kernel_now_us() + TAKE_US;
	k->cell->state = CELL_FEEDING;
	k->cell->begun_us = kernel_now_us();
	kernel_usage_begin(k);
	kernel_say(k, WIRE_STARTED, &process, sizeof(process));
	kernel_feed(k);
}

/* One frame: false when there is no other to be read now. */
static bool gather_one(struct kernel *k)
{
	static struct wire_frame f;
	int r = wire_recv(k->cell->sock, &f, WIRE_ON_TO_OP);

	if (r == -EAGAIN)
		return false;
	if (r == 0) {
		cell_hung_up(k->cell);
		return false;
	}
	if (r == 1 && f.head.type == WIRE_GO) {
		feed_begin(k);
		return false;
	}
	if (r == 1)
		r = gather_frame(k, &f);
	if (r < 0)
		cell_fail(k->cell, WIRE_STEP_REQUEST, r);
	return r == 0;
}

void kernel_gather(struct kernel *k)
{
	for (int i = 0; i < FRAMES_PER_TURN && kernel_may_gather(k); i++)
		if (!gather_one(k))
			return;
}

void kernel_feed(struct kernel *k)
{
	if (!k->cell || k->cell->state != CELL_FEEDING || k->requests_fd < 0)
		return;
	while (k->request_at < k->request_len) {
		ssize_t n = write(k->requests_fd, k->request + k->request_at,
				  k->request_len - k->request_at);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return;
		if (n < 0) {
			kernel_broken(k); /* it does not listen any more */
			return;
		}
		k->request_at += (size_t)n;
	}
	kernel_request_free(k);
	k->deadline_us = 0;
	k->cell->state = CELL_RUNNING;
}
