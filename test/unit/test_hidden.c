/* SPDX-License-Identifier: Apache-2.0 */
/* Mounts inside a template. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "box/setup/hidden.h"

static void test_below(void **state)
{
	(void)state;
	assert_string_equal(hidden_below("/srv/tpl/data", "/srv/tpl"), "data");
	assert_string_equal(hidden_below("/srv/tpl/a/b", "/srv/tpl"), "a/b");
	assert_null(hidden_below("/srv/tpl", "/srv/tpl"));
	assert_null(hidden_below("/srv/tpl2", "/srv/tpl"));
	assert_null(hidden_below("/srv", "/srv/tpl"));
	assert_string_equal(hidden_below("/boot", "/"), "boot");
	assert_string_equal(hidden_below("/home/user", "/"), "home/user");
	assert_null(hidden_below("/", "/"));
}

static void test_mount_point(void **state)
{
	char line[] = "36 35 98:0 /mnt1 /mnt\\0402\\134 rw,noatime master:1 - ext3 /dev/root rw";
	char shorter[] = "36 35 98:0";

	(void)state;
	assert_string_equal(hidden_mount_point(line), "/mnt 2\\");
	assert_null(hidden_mount_point(shorter));
}

/* The box has a /proc of its own, which must not be covered. */
static void test_own_proc(void **state)
{
	static struct hidden h;
	const char *const root[] = { "/" };

	(void)state;
	if (hidden_find(root, 1, &h) < 0)
		skip(); /* a machine with very many mounts */
	for (size_t i = 0; i < h.n; i++)
		assert_true(strcmp(h.path[i], "proc") != 0 && strncmp(h.path[i], "proc/", 5) != 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_below),
		cmocka_unit_test(test_mount_point),
		cmocka_unit_test(test_own_proc),
	};

	return cmocka_run_group_tests_name("hidden", tests, NULL, NULL);
}
