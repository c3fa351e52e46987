/* SPDX-License-Identifier: Apache-2.0 */
/*
 * AG-05: an event comes in pieces, and it may be large. What all of them together may take is bounded, and so is a
 * key's share of it, whose client perhaps does not read: beyond that a large one is refused as too large. Small ones
 * are not counted and always pass.
 */
#include "server/interp/interp.h"

#include "base/budget.h"

#define ALL_MAX ((size_t)512 << 20)
#define KEY_MAX (ALL_MAX / 2) /* more than the largest event takes */

static size_t all; /* atomic */

/* Room for an event of this size, whose line, and what it is while it is made, are about as large again. */
static bool charge(struct interp_assembly *a, size_t size)
{
	size_t want = size > INTERP_EVENT_SMALL ? 3 * size : 0, more;

	if (want <= a->charged)
		return true;
	more = want - a->charged;
	if (!budget_take(a->of_key, more, KEY_MAX))
		return false;
	if (!budget_take(&all, more, ALL_MAX)) {
		budget_give_back(a->of_key, more);
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

void interp_assembly_init(struct interp_assembly *a, size_t *of_key)
{
	*a = (struct interp_assembly){ .text = BUF_INIT(INTERP_EVENT_MAX), .of_key = of_key };
}

int interp_assembly_add(struct interp_assembly *a, const void *data, size_t len)
{
	int r;

	a->came += len;
	if (a->came > INTERP_EVENT_MAX)
		return -EPROTO;
	r = a->too_large || !charge(a, a->came) ? -ENOBUFS : buf_add(&a->text, data, len);
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
	a->came = 0;
}

void interp_assembly_release(struct interp_assembly *a)
{
	budget_give_back(&all, a->charged);
	budget_give_back(a->of_key, a->charged);
	a->charged = 0;
}
