/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The log of what boxes wanted and got. A box can make decisions necessary faster than anybody can
 * write them down, so each has a share; what is over it, and what the server does not take in time,
 * is counted and told with the next.
 */
#include "egress/report/report.h"

#include "base/clock.h"

#define SECOND_US UINT64_C(1000000)
#define EVENTS_PER_SECOND 500
#define EVENTS_BURST 2000

bool share_take(struct egress_share *s, uint64_t per_second, uint64_t burst)
{
	uint64_t now = clock_boot_us(), seconds = (now - s->since_us) / SECOND_US;

	if (s->since_us == 0 || seconds >= burst / per_second) {
		s->left = burst;
		s->since_us = now;
	} else if (seconds > 0) {
		s->left = MIN(s->left + seconds * per_second, burst);
		s->since_us += seconds * SECOND_US;
	}
	if (s->left == 0)
		return false;
	s->left--;
	return true;
}

static int64_t wall_ms(void)
{
	struct timespec ts;

	(void)clock_gettime(CLOCK_REALTIME, &ts);
	return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

uint64_t report(struct egress *g, struct net *n, struct egress_event *e)
{
	if (e->number == 0)
		e->number = ++n->last_number;
	memcpy(e->id, n->id, sizeof(e->id));
	e->at_ms = wall_ms();
	e->missed = n->missed;
	e->used_up = n->bytes_up;
	e->used_down = n->bytes_down;
	if (share_take(&n->events, EVENTS_PER_SECOND, EVENTS_BURST) && say_event(g, e) == 0) {
		n->missed = 0;
		return e->number;
	}
	if (n->missed < UINT32_MAX)
		n->missed++;
	return 0;
}
