/* SPDX-License-Identifier: Apache-2.0 */
/* Samples of usage while somebody sets the clock on the wall. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "server/control/control_priv.h"

static long wall_s = 1800000000, boot_s = 1000;
static int asked;
static struct warden_usage usage;

/* In the place of libc's. */
int clock_gettime(clockid_t clock, struct timespec *ret)
{
	(void)clock;
	*ret = (struct timespec){ .tv_sec = boot_s };
	return 0;
}

/* --- the rest of the server ------------------------------------------------------------------------- */

int64_t clock_wall_ms(void)
{
	return wall_s * 1000;
}

int sandbox_usage(struct sandbox *b, struct warden_usage *ret)
{
	(void)b;
	asked++;
	*ret = usage;
	return 0;
}

json_t *clock_json(int64_t ms)
{
	return json_integer(ms);
}

int64_t limits_cpus(const struct warden_limits *l)
{
	return l->cpu_milli / 1000;
}

int sandbox_list(struct server *s, const char *key_id, struct sandbox ***ret, size_t *ret_n)
{
	(void)s;
	(void)key_id;
	(void)ret;
	(void)ret_n;
	return -ENOSYS;
}

struct sandbox *sandbox_get(struct server *s, const char *id)
{
	(void)s;
	(void)id;
	return NULL;
}

void sandbox_put(struct sandbox *b)
{
	(void)b;
}

void sandbox_putp(struct sandbox **b)
{
	*b = NULL;
}

struct sandbox *request_sandbox(struct request *r)
{
	(void)r;
	return NULL;
}

bool request_owns(const struct request *r, const char *key_id)
{
	(void)r;
	(void)key_id;
	return false;
}

uint64_t request_number(const struct request *r, const char *name, uint64_t def)
{
	(void)r;
	(void)name;
	return def;
}

const char *request_query(const struct request *r, const char *name)
{
	(void)r;
	(void)name;
	return NULL;
}

int reply_json(struct request *r, unsigned status, json_t *body)
{
	(void)r;
	(void)status;
	json_decref(body);
	return 0;
}

int reply_error(struct request *r, unsigned status, const char *fmt, ...)
{
	(void)r;
	(void)status;
	(void)fmt;
	return 0;
}

/* --- the test's own --------------------------------------------------------------------------------- */

static double newest(struct sandbox *b, const char *name)
{
	json_t *sample = control_newest_sample(b);
	double value = json_number_value(json_object_get(sample, name));

	assert_non_null(sample);
	json_decref(sample);
	return value;
}

static void test_clock_set_back(void **state)
{
	struct sandbox b = { .limits.cpu_milli = 1000 };

	(void)state;
	assert_int_equal(pthread_mutex_init(&b.lock, NULL), 0);
	b.info.state = STORE_RUNNING;
	b.info.started_ms = (wall_s - 10) * 1000;
	usage.cpu_us = 1000000;
	assert_true(newest(&b, "cpuUsedPct") > 9.9 && newest(&b, "cpuUsedPct") < 10.1);
	assert_int_equal(asked, 1);
	wall_s -= 3600;
	boot_s += 5;
	usage.cpu_us += 1000000;
	assert_true(newest(&b, "cpuUsedPct") > 19.9 && newest(&b, "cpuUsedPct") < 20.1);
	assert_int_equal(asked, 2);
	assert_true(newest(&b, "timestampUnix") == (double)wall_s);
	wall_s += 7200; /* which does not make it older */
	(void)newest(&b, "cpuUsedPct");
	assert_int_equal(asked, 2);
	free(b.metrics);
	(void)pthread_mutex_destroy(&b.lock);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_clock_set_back) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
