/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The escape suite's attacks again, as the root of a box: whatever does not rest on who one is must hold.
 * Rows that it may do by right (chown, setuid, files in /etc) are not among them.
 */
#include "drive.h"

#include <fcntl.h>

static struct outcome o;

/* Copies a program of the host into the box. */
static void put(const char *dir, const char *name)
{
	static unsigned char chunk[32768];
	char path[4096], script[128];
	int sock, fd;
	ssize_t n;

	(void)snprintf(path, sizeof(path), "%s/%s", dir, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		fail_msg("no %s", path);
	(void)snprintf(script, sizeof(script), "cat >%s; chmod 755 %s", name, name);
	sock = sh_start(&(struct spec){ .flags = WIRE_EXEC_STDIN, .cwd = "/tmp" }, script);
	(void)expect_started(sock);
	while ((n = read(fd, chunk, sizeof(chunk))) > 0)
		assert_int_equal(wire_send(sock, WIRE_IN, chunk, (size_t)n), 0);
	assert_int_equal(wire_send(sock, WIRE_IN_END, NULL, 0), 0);
	follow(sock, &o);
	assert_int_equal(o.exit.code, 0);
	fd_close(fd);
}

static void attacks(const char *group, const char *const *rows, size_t n)
{
	const char *dir = getenv("ATTACKS");
	char program[16], script[96];

	if (!dir)
		skip();
	(void)snprintf(program, sizeof(program), "attack-%s", group);
	put(dir, program);
	for (size_t i = 0; i < n; i++) {
		(void)snprintf(script, sizeof(script), "timeout -s KILL 8 ./%s %s-%s 2>&1", program,
			       group, rows[i]);
		run_sh(&(struct spec){ .user = "root", .cwd = "/tmp" }, script, &o);
		if (o.exit.code != 0)
			fail_msg("%s-%s: status %d: %s", group, rows[i], o.exit.code, o.text);
	}
}

#define ATTACKS(group, ...)                                                                        \
	static void test_##group(void **state)                                                     \
	{                                                                                          \
		static const char *const rows[] = { __VA_ARGS__ };                                 \
                                                                                                   \
		(void)state;                                                                       \
		attacks(#group, rows, ARRAY_SIZE(rows));                                           \
	}

/* clang-format off */
ATTACKS(SC, "01", "02", "03", "04", "05", "06", "07", "08", "09", "10", "11", "12", "13", "14", "15", "16", "17",
	"18", "19", "20", "21", "22", "23", "24", "25", "26", "27")
ATTACKS(AB, "01", "02", "04", "05", "06", "07", "10")
ATTACKS(DV, "01", "02", "03", "04", "05", "07", "08")
ATTACKS(FS, "04", "05", "06", "07", "08", "12", "14", "15", "19", "20", "21")
ATTACKS(NS, "04", "05", "06", "07")
ATTACKS(PR, "01", "02", "03", "04", "05", "07", "08", "09", "10", "12", "13", "14", "15")
ATTACKS(FD, "02", "03", "05", "06", "08", "09", "10")
/* clang-format on */

/* A box for each group: some attacks break what they can. */
#define FRESH(test) cmocka_unit_test_setup_teardown(test, drive_open, drive_close)

int cases_root(void)
{
	const struct CMUnitTest tests[] = {
		FRESH(test_SC), FRESH(test_AB), FRESH(test_DV), FRESH(test_FS),
		FRESH(test_NS), FRESH(test_PR), FRESH(test_FD),
	};

	return cmocka_run_group_tests_name("root", tests, NULL, NULL);
}
