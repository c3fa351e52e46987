/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernel checks, converts and compiles a filter whenever one is installed, and what that takes
 * grows with its length. Most of what mkfilter.c makes are ends that say the same as others. So a
 * conditional jump goes
 *
 *	past a jump, to where that goes
 *	instead of to an end, to the last one in its reach that says the same
 *
 * and what nobody comes by any more is left out. That brings other ends into reach: the same again,
 * until nothing changes.
 */
#include "mkfilter.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

static bool is_jump(const struct sock_filter *f)
{
	return f->code == (BPF_JMP | BPF_JA);
}

static bool is_end(const struct sock_filter *f)
{
	return f->code == (BPF_RET | BPF_K);
}

static bool is_test(const struct sock_filter *f)
{
	return BPF_CLASS(f->code) == BPF_JMP && !is_jump(f);
}

/* Where it goes when it is not at an end: one way, or the two of a test. */
static size_t ways(const struct program *p, size_t at, size_t to[2])
{
	const struct sock_filter *f = &p->code[at];

	to[0] = at + 1;
	if (is_end(f))
		return 0;
	if (is_jump(f))
		to[0] += f->k;
	if (!is_test(f))
		return 1;
	to[1] = to[0] + f->jf;
	to[0] += f->jt;
	return 2;
}

static size_t better(const struct program *p, size_t at, size_t to)
{
	const size_t reach = at + 1 + UINT8_MAX;
	const struct sock_filter *f = &p->code[to];

	while (is_jump(f) && to + 1 + f->k <= reach) {
		to += 1 + f->k;
		f = &p->code[to];
	}
	for (size_t i = p->len; is_end(f) && i-- > to + 1;)
		if (i <= reach && is_end(&p->code[i]) && p->code[i].k == f->k)
			return i;
	return to;
}

static bool retarget(struct program *p)
{
	bool changed = false;

	for (size_t at = 0; at < p->len; at++) {
		struct sock_filter *f = &p->code[at];
		struct sock_filter old = *f;

		if (!is_test(f))
			continue;
		f->jt = (uint8_t)(better(p, at, at + 1 + old.jt) - at - 1);
		f->jf = (uint8_t)(better(p, at, at + 1 + old.jf) - at - 1);
		changed = changed || f->jt != old.jt || f->jf != old.jf;
	}
	return changed;
}

/* All ways lead forward, so one pass sees everything. */
static void leave_out_unused(struct program *p)
{
	static bool used[BPF_MAXINSNS];
	static size_t new_at[BPF_MAXINSNS];
	struct program old = *p;
	size_t to[2];

	memset(used, 0, sizeof(used));
	used[0] = true;
	p->len = 0;
	for (size_t at = 0; at < old.len; at++) {
		if (!used[at])
			continue;
		new_at[at] = p->len++;
		for (size_t i = ways(&old, at, to); i-- > 0;)
			used[to[i]] = true;
	}
	for (size_t at = 0; at < old.len; at++) {
		struct sock_filter *f = &p->code[new_at[at]];
		size_t n = ways(&old, at, to);

		if (!used[at])
			continue;
		*f = old.code[at];
		if (is_jump(f))
			f->k = (uint32_t)(new_at[to[0]] - new_at[at] - 1);
		if (n < 2)
			continue;
		f->jt = (uint8_t)(new_at[to[0]] - new_at[at] - 1);
		f->jf = (uint8_t)(new_at[to[1]] - new_at[at] - 1);
	}
}

void program_shorten(struct program *p)
{
	size_t len;

	do {
		len = p->len;
		while (retarget(p))
			;
		leave_out_unused(p);
	} while (p->len < len);
}
