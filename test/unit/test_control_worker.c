/* SPDX-License-Identifier: Apache-2.0 */
/* AP-06: work that nobody waits for, when that of one key does not end. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "server/changes/changes.h"

#include <poll.h>
#include <semaphore.h>

#define KEYS 6
#define EACH 3

static struct server server;
static struct sandbox boxes[KEYS];
static sem_t let_go[KEYS];
static int begun[KEYS], ended, ticks; /* atomic */

/* --- the rest of the server ------------------------------------------------------------------------- */

void sandbox_ref(struct sandbox *b)
{
	(void)__atomic_add_fetch(&b->refs, 1, __ATOMIC_SEQ_CST);
}

void sandbox_put(struct sandbox *b)
{
	if (b)
		(void)__atomic_sub_fetch(&b->refs, 1, __ATOMIC_SEQ_CST);
}

void server_log(struct server *s, const char *level, const char *event, json_t *fields)
{
	(void)s;
	(void)level;
	(void)event;
	json_decref(fields);
}

int store_sandbox_prune(struct store *s, size_t keep)
{
	(void)s;
	(void)keep;
	return 0;
}

int store_event_prune(struct store *s, size_t keep)
{
	(void)s;
	(void)keep;
	return 0;
}

void layers_release(struct server *s, const struct sandbox_config *c)
{
	(void)s;
	(void)c;
}

/* --- the test's own --------------------------------------------------------------------------------- */

static void tick(struct server *s)
{
	(void)s;
	(void)__atomic_add_fetch(&ticks, 1, __ATOMIC_SEQ_CST);
}

static void stop(void)
{
}

static const struct chore chores[] = { { tick, stop }, { 0 } };

static bool reaches(const int *count, int value)
{
	for (int ms = 10000; ms > 0 && __atomic_load_n(count, __ATOMIC_SEQ_CST) < value; ms -= 10)
		(void)poll(NULL, 0, 10);
	return __atomic_load_n(count, __ATOMIC_SEQ_CST) >= value;
}

/* Takes until the test says so. */
static void job(struct sandbox *b)
{
	size_t i = (size_t)(b - boxes);

	(void)__atomic_add_fetch(&begun[i], 1, __ATOMIC_SEQ_CST);
	while (sem_wait(&let_go[i]) < 0)
		;
	(void)__atomic_add_fetch(&ended, 1, __ATOMIC_SEQ_CST);
}

static int start(void **state)
{
	(void)state;
	for (size_t i = 0; i < KEYS; i++) {
		(void)snprintf(boxes[i].info.key_id, sizeof(boxes[i].info.key_id), "key_%zu", i);
		if (sem_init(&let_go[i], 0, 0) < 0)
			return -1;
	}
	return worker_start(&server, chores);
}

/* One key's work does not end: another's is begun all the same, and so is the housekeeping. */
static void test_others(void **state)
{
	int before;

	(void)state;
	for (int i = 0; i < EACH; i++)
		worker_add(&boxes[0], job);
	assert_true(reaches(&begun[0], 1));
	worker_add(&boxes[1], job);
	assert_true(reaches(&begun[1], 1));
	before = __atomic_load_n(&ticks, __ATOMIC_SEQ_CST);
	assert_true(reaches(&ticks, before + 2));
}

/* With as many at it as there are threads, it is the turn of those that had none yet. */
static void test_turns(void **state)
{
	(void)state;
	for (size_t i = 1; i < 4; i++)
		for (int j = i == 1 ? 1 : 0; j < EACH; j++)
			worker_add(&boxes[i], job);
	for (size_t i = 0; i < 4; i++)
		assert_true(reaches(&begun[i], 1));
	worker_add(&boxes[4], job);
	(void)sem_post(&let_go[0]);
	assert_true(reaches(&begun[4], 1));
	worker_add(&boxes[5], job);
	(void)sem_post(&let_go[1]);
	/* Of key 0 there is one that has waited since its last ended; key 5 has just come. */
	assert_true(reaches(&begun[0], 2));
	for (size_t i = 0; i < 4; i++)
		assert_int_equal(__atomic_load_n(&begun[i], __ATOMIC_SEQ_CST), i == 0 ? 2 : 1);
	assert_int_equal(__atomic_load_n(&begun[5], __ATOMIC_SEQ_CST), 0);
	for (size_t i = 0; i < KEYS; i++)
		for (int j = 0; j < EACH; j++)
			(void)sem_post(&let_go[i]);
	assert_true(reaches(&ended, 4 * EACH + 2));
	worker_stop();
	for (size_t i = 0; i < KEYS; i++)
		assert_int_equal(boxes[i].refs, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_others),
					    cmocka_unit_test(test_turns) };

	return cmocka_run_group_tests(tests, start, NULL);
}
