/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The agent's loop: before each wait every part says anew what it waits for, so there is no
 * registration to keep in step with the descriptors. A callback may close any other descriptor of
 * the round, so each looks first whether its own is still open.
 */
#pragma once

#include "base/util.h"

#define LOOP_WATCHES_MAX 5632 /* main.c counts them */

/* Waits for these events (and always for a hang-up); a negative descriptor is passed over. */
void loop_watch(int fd, short events, void (*ready)(void *object, short events), void *object);

/* Wakes at that time, of clock_boot_us(), at the latest. */
void loop_wake_at(uint64_t when_us);

/* The time of this round: looking at the clock for each of hundreds of ended commands took longer
 * than anything else. */
uint64_t loop_now(void);

/* One round: waits, then calls those that have something. */
void loop_wait(void);
