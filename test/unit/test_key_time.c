/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "client/key_time.h"

#define NOW_S INT64_C(1793448000) /* 2026-10-31T12:00:00Z */
#define NOW_MS (NOW_S * 1000)

static int64_t until(const char *text)
{
	int64_t ms = 77;

	assert_int_equal(key_time_read(text, NOW_MS, &ms), 0);
	assert_int_equal(ms % 1000, 0);
	return ms / 1000 - NOW_S;
}

static void refused(const char *text, int error)
{
	int64_t ms = 77;

	assert_int_equal(key_time_read(text, NOW_MS, &ms), error);
	assert_int_equal(ms, 77);
}

static void test_durations(void **state)
{
	(void)state;
	assert_int_equal(until("1s"), 1);
	assert_int_equal(until("90m"), 5400);
	assert_int_equal(until("12h"), 43200);
	assert_int_equal(until("30d"), 30 * 86400);
	assert_int_equal(until("36500d"), INT64_C(36500) * 86400);
	refused("30", -EINVAL);
	refused("d", -EINVAL);
	refused("", -EINVAL);
	refused("-1d", -EINVAL);
	refused("1.5d", -EINVAL);
	refused("1w", -EINVAL);
	refused("1 d", -EINVAL);
	refused("0d", -ERANGE);
	refused("0s", -ERANGE);
	refused("36601d", -ERANGE);
	refused("999999999999999d", -ERANGE);
	refused("213503982334602d", -ERANGE); /* seconds beyond 64 bits */
	refused("99999999999999999999d", -ERANGE);
	refused("11111111111111111111111111d", -EINVAL);
}

static void test_dates(void **state)
{
	(void)state;
	assert_int_equal(until("2026-11-01"), 43200);
	assert_int_equal(until("2026-10-31T12:00:01Z"), 1);
	assert_int_equal(until("2028-02-29"), 41947200); /* a leap year */
	refused("2026-10-31T12:00:00Z", -ERANGE);
	refused("2026-10-31", -ERANGE);
	refused("1999-01-01", -ERANGE);
	refused("9999-01-01", -ERANGE);
	refused("2027-02-29", -EINVAL);
	refused("2027-02-30", -EINVAL);
	refused("2027-13-01", -EINVAL);
	refused("2027-01-01T12:00:00", -EINVAL);
	refused("2027-01-01T12:00:00+01:00", -EINVAL);
	refused("2027-01-01 ", -EINVAL);
	refused(" 2027-01-01", -EINVAL);
	refused("+2027-01-01", -EINVAL);
	refused("2027- 1-01", -EINVAL);
}

static void test_text(void **state)
{
	char text[KEY_TIME_SIZE];

	(void)state;
	key_time_text(NOW_MS + 999, text);
	assert_string_equal(text, "2026-10-31T12:00:00Z");
	key_time_text(INT64_MAX, text);
	assert_true(strlen(text) < sizeof(text));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_durations),
		cmocka_unit_test(test_dates),
		cmocka_unit_test(test_text),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
