/* SPDX-License-Identifier: Apache-2.0 */
/*
 * AG-05: an event comes in pieces, and it may be large. What all of them together may take is bounded: beyond that a
 * large one is refused as too large. Small ones are not counted and always pass.
 */
#include "server/interp.h"

#define ALL_MAX ((size_t)512 << 20)

static size_t all; /* atomic */

/* Room for an event of this size, whose line, and what it is while it is made, are about as large again. */
static bool charge(struct interp_assembly *a, size_t size)
{
	size_t want = size > INTERP_EVENT_SMALL ? 3 * size : 0, more;

	if (want <= a->charged)
		return true;
	more = want - a->charged;
	if (__atomic_add_fetch(&all, more, __ATOMIC_RELAXED) > ALL_MAX) {
		(void)__atomic_sub_fetch(&all, more, __ATOMIC_RELAXED);
		return false;
	}
	a->charged += more;
	return true;
}

static void empty(struct interp_assembly *a)
{
	buf_done(&a->text);
	a->text = (struct buf)BUF_INIT(INTERP_EVENT_MAX);
}

int interp_assembly_add(struct interp_assembly *a, const void *data, size_t len)
{
	int r = a->too_large || !charge(a, a->text.len + len) ? -ENOBUFS :
								buf_add(&a->text, data, len);

	if (r != -ENOBUFS)
		return r;
	a->too_large = true; /* what there is of it is worth nothing */
	empty(a);
	return 0;
}

void interp_assembly_reset(struct interp_assembly *a)
{
	empty(a);
	a->too_large = false;
}

void interp_assembly_release(struct interp_assembly *a)
{
	(void)__atomic_sub_fetch(&all, a->charged, __ATOMIC_RELAXED);
	a->charged = 0;
}
