/* SPDX-License-Identifier: Apache-2.0 */
/* The sandbox of a `glovebox repl` lives for as long as it is used. The test is the service, and the one who types. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "client/repl_request_priv.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define CELLS 20
#define CELL_S 600 /* what each takes, with the thinking before it */

static time_t passed_s;
static time_t ends_s; /* when the service would end it */
static bool made, lost, removed;
static unsigned n_cells;

/* In the place of libc's. */
int clock_gettime(clockid_t clock, struct timespec *ret)
{
	long r = syscall(SYS_clock_gettime, clock, ret);

	ret->tv_sec += passed_s;
	return (int)r;
}

/* --- the service ------------------------------------------------------------------------------------------- */

int api_open(struct api *a, struct fail *fail)
{
	(void)a;
	(void)fail;
	return 0;
}

void api_close(struct api *a)
{
	(void)a;
}

char *api_escape(const char *text)
{
	return strdup(text);
}

int api_call(struct api *a, const char *method, const char *path, json_t *body, json_t **ret,
	     struct fail *fail)
{
	(void)a;
	(void)fail;
	if (strcmp(path, "/v2/sandboxes") == 0) {
		assert_false(made);
		made = true;
		assert_string_equal(json_string_value(json_object_get(body, "templateID")), "base");
		*ret = json_pack("{ss ss}", "sandboxID", "i1", "envdAccessToken", "t");
	}
	if (strcmp(method, "DELETE") == 0) {
		assert_string_equal(path, "/sandboxes/i1");
		removed = true;
	} else {
		ends_s = passed_s + json_integer_value(json_object_get(body, "timeout"));
	}
	json_decref(body);
	return 0;
}

int api_sandbox_call(struct api *a, const struct api_sandbox *b, const char *method,
		     const char *path, json_t *body, json_t **ret, struct fail *fail)
{
	(void)a;
	(void)b;
	(void)method;
	(void)path;
	(void)ret;
	(void)fail;
	json_decref(body);
	return 0;
}

int talk_cell(struct repl_talk *t, const json_t *code, struct fail *fail)
{
	(void)t;
	(void)code;
	(void)fail;
	n_cells++;
	passed_s += CELL_S;
	lost |= passed_s >= ends_s;
	return 0;
}

int client_error(int status, const char *fmt, ...)
{
	(void)fmt;
	return status;
}

/* --- who types ---------------------------------------------------------------------------------------------- */

static void type(int fd)
{
	static const char first[] = "{\"template\":\"base\",\"language\":\"python\",\"env\":{}}\n";
	static const char cell[] = "{\"code\":\"1\"}\n";

	assert_int_equal(write(fd, first, sizeof(first) - 1), sizeof(first) - 1);
	for (int i = 0; i < CELLS; i++)
		assert_int_equal(write(fd, cell, sizeof(cell) - 1), sizeof(cell) - 1);
	assert_int_equal(close(fd), 0);
}

static void test_used(void **state)
{
	int pipes[2], out = dup(STDOUT_FILENO), null = open("/dev/null", O_WRONLY | O_CLOEXEC);
	int status;

	(void)state;
	assert_int_equal(pipe(pipes), 0);
	type(pipes[1]);
	assert_true(dup2(pipes[0], STDIN_FILENO) == STDIN_FILENO);
	(void)fflush(stdout);
	assert_true(dup2(null, STDOUT_FILENO) == STDOUT_FILENO); /* its answers are not TAP */
	status = client_repl_request(0, NULL);
	(void)fflush(stdout);
	assert_true(dup2(out, STDOUT_FILENO) == STDOUT_FILENO);
	assert_int_equal(status, CLIENT_OK);
	assert_int_equal(n_cells, CELLS);
	assert_false(lost);
	assert_true(removed);
	(void)close(pipes[0]);
	(void)close(null);
	(void)close(out);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_used) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
