/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/loop.h"

#include "base/clock.h"

#include <poll.h>

#define WAIT_MAX_MS 600000

static struct pollfd polls[LOOP_WATCHES_MAX];
static struct {
	void (*ready)(void *object, short events);
	void *object;
} watches[LOOP_WATCHES_MAX];
static size_t n_watches;
static uint64_t wake_us = UINT64_MAX;
static uint64_t now_us; /* 0: before the first round */

void loop_watch(int fd, short events, void (*ready)(void *object, short events), void *object)
{
	if (fd < 0)
		return;
	if (n_watches == LOOP_WATCHES_MAX)
		abort(); /* main.c counts them */
	polls[n_watches] = (struct pollfd){ .fd = fd, .events = events };
	watches[n_watches].ready = ready;
	watches[n_watches].object = object;
	n_watches++;
}

void loop_wake_at(uint64_t when_us)
{
	wake_us = MIN(wake_us, when_us);
}

uint64_t loop_now(void)
{
	if (now_us == 0)
		now_us = clock_boot_us();
	return now_us;
}

static int loop_wait_ms(void)
{
	uint64_t now = clock_boot_us();

	if (wake_us == UINT64_MAX)
		return -1;
	return wake_us <= now ? 0 : (int)MIN((wake_us - now + 999) / 1000, WAIT_MAX_MS);
}

void loop_wait(void)
{
	int n = poll(polls, n_watches, loop_wait_ms());

	if (n < 0 && errno != EINTR)
		_exit(1);
	now_us = clock_boot_us();
	for (size_t i = 0; n > 0 && i < n_watches; i++)
		if (polls[i].revents)
			watches[i].ready(watches[i].object, polls[i].revents);
	n_watches = 0;
	wake_us = UINT64_MAX;
}
