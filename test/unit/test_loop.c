/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>

#include "base/clock.h"
#include "sys/loop.h"

static struct loop loop;
static uint64_t last_due;
static size_t n_due, n_ready;

static int set_up(void **state)
{
	(void)state;
	last_due = n_due = n_ready = 0;
	return loop_open(&loop, 1);
}

static int tear_down(void **state)
{
	(void)state;
	loop_close(&loop);
	return 0;
}

static void due(struct loop *l, struct timer *t)
{
	assert_ptr_equal(l, &loop);
	assert_true(t->at_us >= last_due);
	assert_true(t->at_us <= clock_boot_us());
	assert_int_equal(t->place, 0);
	last_due = t->at_us;
	n_due++;
}

static void turn_until(size_t n)
{
	while (n_due < n)
		assert_int_equal(loop_turn(&loop), 0);
	assert_int_equal(n_due, n);
}

/* More than there was place for. */
static void test_timers(void **state)
{
	static struct timer t[1000];
	uint64_t now = clock_boot_us();
	unsigned seed = 1;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(t); i++) {
		t[i] = (struct timer){ .due = due };
		timer_set(&loop, &t[i], now + (unsigned)rand_r(&seed) % 20000);
	}
	for (size_t i = 0; i < ARRAY_SIZE(t); i += 2) /* moved, some of them twice */
		timer_set(&loop, &t[i], now + (unsigned)rand_r(&seed) % 20000);
	for (size_t i = 0; i < ARRAY_SIZE(t); i += 2)
		timer_clear(&loop, &t[i]);
	timer_clear(&loop, &t[0]);
	turn_until(500);
	assert_int_equal(loop.n_heap, 0);
}

static struct source sources[4];
static int pipes[4][2];

static void open_pipes(void (*ready)(struct loop *l, struct source *self))
{
	for (size_t i = 0; i < ARRAY_SIZE(pipes); i++) {
		assert_int_equal(pipe2(pipes[i], O_CLOEXEC | O_NONBLOCK), 0);
		assert_int_equal(source_add(&loop, &sources[i], pipes[i][0], EPOLLIN, ready), 0);
		assert_int_equal(write(pipes[i][1], "x", 1), 1);
	}
}

static void close_pipes(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(pipes); i++) {
		fd_close(pipes[i][0]);
		fd_close(pipes[i][1]);
	}
}

/* The first that is called removes all the others: they must not be called, although their events are there. */
static void remove_all(struct loop *l, struct source *self)
{
	assert_int_equal(self->came, EPOLLIN);
	for (size_t i = 0; i < ARRAY_SIZE(sources); i++)
		source_remove(l, &sources[i]);
	assert_int_equal(self->fd, -EBADF);
	memset(sources, 0xff, sizeof(sources)); /* as if it were freed */
	n_ready++;
}

static void test_removed(void **state)
{
	struct timer end = { .due = due };

	(void)state;
	open_pipes(remove_all);
	timer_set(&loop, &end, clock_boot_us() + 20000);
	turn_until(1);
	assert_int_equal(n_ready, 1);
	close_pipes();
}

static size_t calls[ARRAY_SIZE(sources)];

static void count(struct loop *l, struct source *self)
{
	(void)l;
	calls[self - sources]++;
}

/* Each turn is one descriptor's, and what is always ready does not keep the others, or a timer, from theirs. */
static void test_in_turn(void **state)
{
	struct timer soon = { .due = due };

	(void)state;
	open_pipes(count);
	timer_set(&loop, &soon, clock_boot_us());
	for (size_t i = 0; i < 3 * ARRAY_SIZE(sources); i++)
		assert_int_equal(loop_turn(&loop), 0);
	for (size_t i = 0; i < ARRAY_SIZE(sources); i++)
		assert_int_equal(calls[i], 3);
	assert_int_equal(n_due, 1);
	source_change(&loop, &sources[0], 0);
	source_change(&loop, &sources[1], 0);
	for (size_t i = 0; i < 2; i++)
		assert_int_equal(loop_turn(&loop), 0);
	assert_int_equal(calls[0] + calls[1], 6);
	assert_int_equal(calls[2] + calls[3], 8);
	close_pipes();
}

static struct timer again;

static void set_again(struct loop *l, struct timer *t)
{
	n_due++;
	timer_set(l, t, t->at_us);
}

/* One that sets itself for now leaves the others their turn. */
static void test_again(void **state)
{
	(void)state;
	again = (struct timer){ .due = set_again };
	timer_set(&loop, &again, clock_boot_us());
	for (size_t i = 1; i <= 3; i++) {
		assert_int_equal(loop_turn(&loop), 0);
		assert_int_equal(n_due, i);
	}
}

/* Less than a millisecond is waited for as well, and an event in the meantime is told. */
static void test_short(void **state)
{
	struct timer soon = { .due = due }, later = { .due = due };
	uint64_t began, best_us = UINT64_MAX;

	(void)state;
	for (size_t i = 1; i <= 50; i++) { /* somebody else may have the processor */
		began = clock_boot_us();
		timer_set(&loop, &soon, began + 300);
		turn_until(i);
		best_us = MIN(best_us, clock_boot_us() - began);
	}
	assert_in_range(best_us, 300, 900);
	open_pipes(remove_all);
	timer_set(&loop, &later, clock_boot_us() + 999);
	turn_until(51);
	assert_int_equal(n_ready, 1);
	close_pipes();
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_timers), TEST(test_removed), TEST(test_in_turn),
		TEST(test_again),  TEST(test_short),
	};

	return cmocka_run_group_tests_name("loop", tests, NULL, NULL);
}
