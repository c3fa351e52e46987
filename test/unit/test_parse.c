/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/parse.h"

/* A refused text gives the error and leaves the output alone. */
#define REFUSED(parse, type, text, error)                                                          \
	do {                                                                                       \
		type untouched = 77;                                                               \
                                                                                                   \
		assert_int_equal(parse(text, &untouched), (error));                                \
		assert_int_equal(untouched, 77);                                                   \
	} while (0)

#define READ(parse, type, text, want)                                                              \
	do {                                                                                       \
		type value = 77;                                                                   \
                                                                                                   \
		assert_int_equal(parse(text, &value), 0);                                          \
		assert_true(value == (want));                                                      \
	} while (0)

static void test_u64(void **state)
{
	(void)state;
	READ(parse_u64, uint64_t, "0", 0);
	READ(parse_u64, uint64_t, "0042", 42);
	READ(parse_u64, uint64_t, "18446744073709551615", UINT64_MAX);
	REFUSED(parse_u64, uint64_t, "18446744073709551616", -ERANGE);
	REFUSED(parse_u64, uint64_t, "99999999999999999999999", -ERANGE);
	REFUSED(parse_u64, uint64_t, "", -EINVAL);
	REFUSED(parse_u64, uint64_t, "-1", -EINVAL);
	REFUSED(parse_u64, uint64_t, "+1", -EINVAL);
	REFUSED(parse_u64, uint64_t, " 1", -EINVAL);
	REFUSED(parse_u64, uint64_t, "1 ", -EINVAL);
	REFUSED(parse_u64, uint64_t, "0x10", -EINVAL);
}

static void test_bytes(void **state)
{
	(void)state;
	READ(parse_bytes, uint64_t, "4096", 4096);
	READ(parse_bytes, uint64_t, "64K", 64 << 10);
	READ(parse_bytes, uint64_t, "256M", 256 << 20);
	READ(parse_bytes, uint64_t, "2G", UINT64_C(2) << 30);
	READ(parse_bytes, uint64_t, "16777215T", UINT64_C(16777215) << 40);
	REFUSED(parse_bytes, uint64_t, "16777216T", -ERANGE);
	REFUSED(parse_bytes, uint64_t, "M", -EINVAL);
	REFUSED(parse_bytes, uint64_t, "1m", -EINVAL);
	REFUSED(parse_bytes, uint64_t, "1MB", -EINVAL);
	REFUSED(parse_bytes, uint64_t, "1.5G", -EINVAL);
	REFUSED(parse_bytes, uint64_t, "-1M", -EINVAL);
}

static void test_duration(void **state)
{
	(void)state;
	READ(parse_duration_us, uint64_t, "3", 3000000);
	READ(parse_duration_us, uint64_t, "250ms", 250000);
	READ(parse_duration_us, uint64_t, "30s", 30000000);
	READ(parse_duration_us, uint64_t, "2m", 120000000);
	READ(parse_duration_us, uint64_t, "1h", UINT64_C(3600000000));
	REFUSED(parse_duration_us, uint64_t, "18446744073709551615h", -ERANGE);
	REFUSED(parse_duration_us, uint64_t, "5d", -EINVAL);
	REFUSED(parse_duration_us, uint64_t, "5 s", -EINVAL);
	REFUSED(parse_duration_us, uint64_t, "", -EINVAL);
	REFUSED(parse_duration_us, uint64_t, "-5s", -EINVAL);
}

static void test_cpus(void **state)
{
	(void)state;
	READ(parse_cpus_milli, uint32_t, "1", 1000);
	READ(parse_cpus_milli, uint32_t, "0.5", 500);
	READ(parse_cpus_milli, uint32_t, "2.25", 2250);
	READ(parse_cpus_milli, uint32_t, "0.001", 1);
	READ(parse_cpus_milli, uint32_t, "100000.999", 100000999);
	REFUSED(parse_cpus_milli, uint32_t, "100001", -ERANGE);
	REFUSED(parse_cpus_milli, uint32_t, "18446744073709551616", -ERANGE);
	REFUSED(parse_cpus_milli, uint32_t, "0.0001", -EINVAL);
	REFUSED(parse_cpus_milli, uint32_t, "1.", -EINVAL);
	REFUSED(parse_cpus_milli, uint32_t, ".5", -EINVAL);
	REFUSED(parse_cpus_milli, uint32_t, "1.5x", -EINVAL);
	REFUSED(parse_cpus_milli, uint32_t, "-1", -EINVAL);
}

static void test_buf_add(void **state)
{
	(void)state;
	_cleanup_(buf_done) struct buf b = BUF_INIT(1000);

	assert_int_equal(buf_add(&b, "", 0), 0);
	assert_string_equal((const char *)b.data, "");
	for (int i = 0; i < 100; i++)
		assert_int_equal(buf_add(&b, "0123456789", 10), 0);
	assert_int_equal(b.len, 1000);
	assert_int_equal(b.data[999], '9');
	assert_int_equal(b.data[1000], '\0');
	/* Full: refused as a whole, and what was there stays. */
	assert_int_equal(buf_add(&b, "x", 1), -ENOBUFS);
	assert_int_equal(buf_add(&b, "", 0), 0);
	assert_int_equal(b.len, 1000);
	assert_true(b.size <= b.max + 1);
	assert_int_equal(buf_add(&b, "x", SIZE_MAX), -ENOBUFS);
	buf_done(&b);
	assert_null(b.data);
	assert_int_equal(b.max, 1000);
	assert_int_equal(buf_add(&b, "again", 5), 0);
	assert_string_equal((const char *)b.data, "again");
}

/* Writes n bytes into a pipe (they fit) and reads them back through a buffer. */
static int read_back(struct buf *b, size_t n)
{
	static const char bytes[40000] = { 'a', 'b', 'c' };
	int fds[2], r;

	assert_int_equal(pipe(fds), 0);
	assert_int_equal(write(fds[1], bytes, n), n);
	(void)fd_close(fds[1]);
	r = buf_read_fd(b, fds[0]);
	(void)fd_close(fds[0]);
	return r;
}

static void test_buf_read(void **state)
{
	(void)state;
	_cleanup_(buf_done) struct buf b = BUF_INIT(40000);
	_cleanup_(buf_done) struct buf empty = BUF_INIT(0);
	_cleanup_(buf_done) struct buf small = BUF_INIT(39999);

	assert_int_equal(read_back(&b, 40000), 0);
	assert_int_equal(b.len, 40000);
	assert_memory_equal(b.data, "abc", 4);
	assert_int_equal(read_back(&empty, 0), 0);
	assert_string_equal((const char *)empty.data, "");
	assert_int_equal(read_back(&small, 40000), -EFBIG);
	assert_int_equal(buf_read_fd(&b, -EBADF), -EBADF);
}

static void test_trim(void **state)
{
	static const char *const rows[][2] = {
		{ "", "" }, { " \t ", "" }, { "a", "a" }, { "\t a b \t", "a b" }, { "a\n ", "a\n" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		char text[16];

		(void)snprintf(text, sizeof(text), "%s", rows[i][0]);
		assert_string_equal(parse_trim(text), rows[i][1]);
	}
}

/* The smaller of what a pipe holds and of a buffer's size was once asked for twice, and the pipe had filled between:
 * more was read than the buffer could take. */
static size_t grows(size_t *held)
{
	size_t now = *held;

	*held += 65536;
	return now;
}

static void test_asked_once(void **state)
{
	size_t held = 0;

	(void)state;
	assert_int_equal(MIN(grows(&held), (size_t)16384), 0);
	assert_int_equal(held, 65536);
	assert_int_equal(MAX((size_t)16384, grows(&held)), 65536);
	assert_int_equal(held, 131072);
	assert_int_equal(MIN(MAX(grows(&held), 1), 65536), 65536);
	assert_int_equal(held, 196608);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_u64),      cmocka_unit_test(test_bytes),
		cmocka_unit_test(test_duration), cmocka_unit_test(test_cpus),
		cmocka_unit_test(test_buf_add),  cmocka_unit_test(test_buf_read),
		cmocka_unit_test(test_trim),     cmocka_unit_test(test_asked_once),
	};

	return cmocka_run_group_tests_name("parse", tests, NULL, NULL);
}
