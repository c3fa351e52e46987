/* SPDX-License-Identifier: Apache-2.0 */
/* What no request may be. */
#include "cases.h"

int case_setup(void **state)
{
	(void)state;
	drive->sh("chmod -R u+rwx . 2>/dev/null; find . -mindepth 1 -delete");
	return 0;
}

int cases_run(const struct case_list *lists, size_t n_lists)
{
	static struct CMUnitTest all[128];
	size_t n = 0;

	for (size_t i = 0; i < n_lists; i++)
		for (size_t k = 0; k < lists[i].n && n < ARRAY_SIZE(all); k++)
			all[n++] = lists[i].cases[k];
	return _cmocka_run_group_tests("file operations", all, n, NULL, NULL);
}

static void refused_requests(void **state)
{
	static const struct {
		struct wire_fs fs;
		int n_paths, err;
	} cases[] = {
		{ { .op = WIRE_FS_STAT, .flags = WIRE_FS_RECURSIVE }, 1, EINVAL },
		{ { .op = WIRE_FS_STAT, .depth = 1 }, 1, EINVAL },
		{ { .op = WIRE_FS_STAT, .offset = 1 }, 1, EINVAL },
		{ { .op = WIRE_FS_WRITE, .length = 1 }, 1, EINVAL },
		{ { .op = WIRE_FS_LIST }, 1, EINVAL },
		{ { .op = WIRE_FS_STAT }, 0, EINVAL },
		{ { .op = WIRE_FS_STAT }, 2, E2BIG },
		{ { .op = WIRE_FS_MOVE }, 1, EINVAL },
		{ { .op = WIRE_FS_MOVE }, 3, E2BIG },
		{ { .op = WIRE_FS_JOIN }, 1, EINVAL },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const char *paths[4] = { 0 };

		for (int n = 0; n < cases[i].n_paths; n++)
			paths[n] = "x";
		want_failed(begin_request(&cases[i].fs, NULL, paths), WIRE_STEP_REQUEST,
			    cases[i].err);
	}
}

static void refused_frames(void **state)
{
	static const struct {
		enum wire_type type;
		const char *data;
		size_t len;
		int err;
	} cases[] = {
		{ WIRE_PATH, "a\0b", 3, EINVAL },     { WIRE_USER, "a\0b", 3, EINVAL },
		{ WIRE_ATTR, "key\0val", 7, EINVAL }, /* STAT takes none */
		{ WIRE_DATA, "x", 1, EPROTO },        { WIRE_CWD, "/", 1, EPROTO },
		{ WIRE_FILE_END, "", 0, EPROTO },
	};
	const struct wire_fs fs = { .op = WIRE_FS_STAT };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		int sock = drive->open(&fs);

		assert_int_equal(wire_send(sock, cases[i].type, cases[i].data, cases[i].len), 0);
		want_failed(sock, WIRE_STEP_REQUEST, cases[i].err);
	}
}

static void refused_attributes(void **state)
{
	static const struct {
		const char *data;
		size_t len;
		int err;
	} cases[] = {
		{ "\0value", 6, EINVAL }, { "novalue", 7, EINVAL },      { "k\0a\0b", 5, EINVAL },
		{ "k\0\n", 3, EINVAL },   { "k\xc3\xa9\0v", 5, EINVAL },
	};
	const struct wire_fs fs = { .op = WIRE_FS_WRITE };
	static char long_key[300];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		int sock = drive->open(&fs);

		assert_int_equal(wire_send(sock, WIRE_ATTR, cases[i].data, cases[i].len), 0);
		assert_int_equal(wire_send(sock, WIRE_GO, NULL, 0), 0);
		assert_int_equal(wire_send(sock, WIRE_FILE_END, NULL, 0), 0);
		want_failed(sock, WIRE_STEP_REQUEST, cases[i].err);
	}
	memset(long_key, 'k', sizeof(long_key));
	long_key[247] = '\0';
	{
		int sock = drive->open(&fs);

		assert_int_equal(wire_send(sock, WIRE_ATTR, long_key, 249), 0);
		want_failed(sock, WIRE_STEP_REQUEST, EINVAL);
	}
}

static void unknown_user(void **state)
{
	const struct wire_fs fs = { .op = WIRE_FS_STAT };
	const char *const paths[] = { "/", NULL };

	(void)state;
	want_failed(begin_request(&fs, "nobody-at-all", paths), WIRE_STEP_USER, ENOENT);
}

#define CASE(name) cmocka_unit_test_setup(name, case_setup)

const struct CMUnitTest cases_request[] = {
	CASE(refused_requests),
	CASE(refused_frames),
	CASE(refused_attributes),
	CASE(unknown_user),
};
const size_t n_cases_request = ARRAY_SIZE(cases_request);
