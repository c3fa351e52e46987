/* SPDX-License-Identifier: Apache-2.0 */
/* What the agent holds for its interpreters: what cells bring, and the one frame that waits for a reader. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <poll.h>

#include "agent/helper.h"
#include "agent/kernel/kernel.h"
#include "agent/loop.h"
#include "sys/sock.h"

#define LINE_LEN 11 /* "code 65528\n" */

/* --- the rest of the agent ---------------------------------------------------------------------- */

static unsigned n_said, n_failed;
static struct {
	void (*ready)(void *object, short events);
	void *object;
} watches[2];
static size_t n_watches;

void kernel_say(struct kernel *k, enum wire_type type, const void *data, size_t len)
{
	(void)k;
	(void)type;
	(void)data;
	(void)len;
	n_said++;
}

void loop_watch(int fd, short events, void (*ready)(void *object, short events), void *object)
{
	(void)events;
	if (fd < 0)
		return;
	assert_true(n_watches < ARRAY_SIZE(watches));
	watches[n_watches].ready = ready;
	watches[n_watches++].object = object;
}

void cell_fail(struct cell *c, enum wire_step step, int err)
{
	(void)c;
	(void)step;
	(void)err;
	n_failed++;
}

void cell_hung_up(struct cell *c)
{
	(void)c;
	n_failed++;
}

void kernel_broken(struct kernel *k)
{
	(void)k;
	n_failed++;
}

void kernel_wait_drop(struct kernel *k)
{
	k->wait_fd = NULL;
}

void kernel_usage_begin(struct kernel *k)
{
	(void)k;
}

uint64_t kernel_now_us(void)
{
	return 1;
}

pid_t helper_fork(enum helper_kind kind)
{
	(void)kind;
	return -EAGAIN;
}

int helper_confine(int sock)
{
	(void)sock;
	return -EPERM;
}

int agent_become_user(const struct agent_user *user)
{
	(void)user;
	return -EPERM;
}

/* --- the cases ---------------------------------------------------------------------------------- */

static struct kernel kernels[2];
static struct cell cells[2];
static int peers[2];

static int setup(void **state)
{
	(void)state;
	n_said = n_failed = 0;
	for (size_t i = 0; i < ARRAY_SIZE(kernels); i++) {
		int pair[2];

		assert_int_equal(sock_pair(pair), 0);
		assert_int_equal(fcntl(pair[0], F_SETFL, O_NONBLOCK), 0);
		cells[i] = (struct cell){ .state = CELL_GATHERING,
					  .kernel = &kernels[i],
					  .sock = pair[0],
					  .spill = { { .sock = -EBADF }, { .sock = -EBADF } } };
		kernels[i] = (struct kernel){ .cell = &cells[i], .requests_fd = -EBADF };
		peers[i] = pair[1];
	}
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(kernels); i++) {
		kernel_request_free(&kernels[i]);
		fd_close(cells[i].sock);
		fd_close(peers[i]);
	}
	return 0;
}

static void bring(size_t i, size_t len)
{
	static const unsigned char code[WIRE_DATA_MAX];

	assert_int_equal(wire_send(peers[i], WIRE_CODE, code, len), 0);
	kernel_gather(&kernels[i]);
}

/* One kernel holds more than its share; nobody else does, not even by the line before a frame's bytes. */
static void test_one_holds_more(void **state)
{
	const size_t half = 65536;

	(void)state;
	for (size_t i = 0; i < 3; i++)
		bring(0, WIRE_DATA_MAX);
	assert_int_equal(kernels[0].request_len, 3 * (WIRE_DATA_MAX + LINE_LEN));
	bring(1, half - LINE_LEN);
	assert_int_equal(kernels[1].request_len, half);
	bring(1, WIRE_DATA_MAX);
	assert_int_equal(kernels[1].request_len, half);
	bring(0, WIRE_DATA_MAX);
	assert_int_equal(kernels[0].request_len, 4 * (WIRE_DATA_MAX + LINE_LEN));
	/* What waited comes when the other has given up its own. */
	kernel_request_free(&kernels[0]);
	kernel_gather(&kernels[1]);
	assert_int_equal(kernels[1].request_len, half + WIRE_DATA_MAX + LINE_LEN);
	assert_false(kernel_may_gather(&(struct kernel){ .request_len = half }));
	assert_int_equal(n_failed, 0);
}

static void run_watches(struct cell *c)
{
	n_watches = 0;
	spills_watch(c);
	for (size_t i = 0; i < n_watches; i++)
		watches[i].ready(watches[i].object, POLLIN);
}

/* While a frame waits for the cell's reader, what a helper has to tell waits with the helper, unwatched. */
static void test_spill_waits(void **state)
{
	const struct wire_spilled spilled = { .stream = 1 };
	struct cell *c = &cells[0];
	int pair[2];

	(void)state;
	assert_int_equal(sock_pair(pair), 0);
	assert_int_equal(fcntl(pair[0], F_SETFL, O_NONBLOCK), 0);
	c->spill[CELL_OUT] = (struct spill){ .state = SPILL_OPENING, .sock = pair[0] };
	assert_int_equal(wire_send2(pair[1], WIRE_SPILLED, &spilled, sizeof(spilled), "/x", 2), 0);
	kernels[0].wait_fd = &c->sock;
	run_watches(c);
	assert_int_equal(n_watches, 0);
	assert_int_equal(n_said, 0);
	kernels[0].wait_fd = NULL;
	n_watches = 0;
	spills_watch(c);
	assert_int_equal(n_watches, 1);
	/* It may have begun to wait in the same round. */
	kernels[0].wait_fd = &c->sock;
	watches[0].ready(watches[0].object, POLLIN);
	assert_int_equal(n_said, 0);
	kernels[0].wait_fd = NULL;
	run_watches(c);
	assert_int_equal(n_said, 1);
	assert_int_equal(c->spill[CELL_OUT].state, SPILL_OPEN);
	fd_close(pair[0]);
	fd_close(pair[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_one_holds_more, setup, teardown),
		cmocka_unit_test_setup_teardown(test_spill_waits, setup, teardown),
	};

	return cmocka_run_group_tests_name("kernel-memory", tests, NULL, NULL);
}
