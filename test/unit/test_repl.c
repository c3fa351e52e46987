/* SPDX-License-Identifier: Apache-2.0 */
/* When a cell that is being typed is whole. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cli/repl/complete.h"

struct example {
	const char *text;
	enum repl_state state;
};

static void check(const char *language, const struct example *list, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		enum repl_state found = repl_state(language, list[i].text, strlen(list[i].text));

		if (found != list[i].state)
			fail_msg("%s: \"%s\" is %d, not %d", language, list[i].text, found,
				 list[i].state);
	}
}

static void test_python(void **state)
{
	(void)state;
	static const struct example list[] = {
		{ "", REPL_COMPLETE },
		{ "x = 1", REPL_COMPLETE },
		{ "f(1,", REPL_OPEN },
		{ "f(1,\n  2)", REPL_COMPLETE },
		{ "x = [{'a': (1", REPL_OPEN },
		{ "x = [{'a': (1)}]", REPL_COMPLETE },
		{ "def f():", REPL_BLOCK },
		{ "def f():  # why", REPL_BLOCK },
		{ "def f():\n    return 1", REPL_BLOCK },
		{ "if x: print(1)", REPL_COMPLETE },
		{ "@wraps", REPL_BLOCK },
		{ "a @ b", REPL_COMPLETE },
		{ "x[1:]", REPL_COMPLETE },
		{ "d = {1:", REPL_OPEN },
		{ "'(' + \"[\"", REPL_COMPLETE },
		{ "'it\\'s ('", REPL_COMPLETE },
		{ "x = 'open", REPL_COMPLETE }, /* an error that Python will name */
		{ "x = 'goes on \\", REPL_OPEN },
		{ "x = 1 + \\", REPL_OPEN },
		{ "x = 1 + \\\n  2", REPL_COMPLETE },
		{ "'''one\n'two' (", REPL_OPEN },
		{ "'''one\n'two' ('''", REPL_COMPLETE },
		{ "\"\"\"'''\"\"\"", REPL_COMPLETE },
		{ "# (", REPL_COMPLETE },
		{ "x = 1  # it's", REPL_COMPLETE },
		{ ")", REPL_COMPLETE },
		{ "%%bash", REPL_BLOCK },
		{ "%timeit f()", REPL_COMPLETE },
		{ "!echo it's", REPL_COMPLETE },
		{ "f'{x:", REPL_COMPLETE },
		{ "\xc3\xa9 = '\xe2\x82\xac'", REPL_COMPLETE },
	};

	check("python", list, ARRAY_SIZE(list));
}

static void test_javascript(void **state)
{
	(void)state;
	static const struct example list[] = {
		{ "const x = 1", REPL_COMPLETE },
		{ "function f() {", REPL_OPEN },
		{ "function f() {\n}", REPL_COMPLETE },
		{ "`one", REPL_OPEN },
		{ "`one\n(two`", REPL_COMPLETE },
		{ "'(' // {", REPL_COMPLETE },
		{ "/* (", REPL_OPEN },
		{ "/* ( */", REPL_COMPLETE },
		{ "x = /[(\"]/.test(y)", REPL_COMPLETE },
		{ "x = a / (b", REPL_OPEN },
		{ "x = (a) / b", REPL_COMPLETE },
		{ "return /'/", REPL_COMPLETE },
		{ "label:", REPL_COMPLETE },
	};

	check("javascript", list, ARRAY_SIZE(list));
	check("typescript", list, ARRAY_SIZE(list));
}

static void test_shell(void **state)
{
	(void)state;
	static const struct example list[] = {
		{ "echo a", REPL_COMPLETE },
		{ "echo 'a", REPL_OPEN },
		{ "echo 'a\\'", REPL_COMPLETE },
		{ "echo \"a\nb\"", REPL_COMPLETE },
		{ "if true; then", REPL_OPEN },
		{ "if true; then\necho done\nfi", REPL_COMPLETE },
		{ "for i in 1 2; do echo $i; done", REPL_COMPLETE },
		{ "for i in 1 2; do", REPL_OPEN },
		{ "while read x; do if a; then b; fi", REPL_OPEN },
		{ "case $x in\na) echo;;", REPL_OPEN },
		{ "case $x in\na) echo;;\nesac", REPL_COMPLETE },
		{ "echo if for while", REPL_COMPLETE },
		{ "f() {", REPL_OPEN },
		{ "f() { echo; }", REPL_COMPLETE },
		{ "a |", REPL_OPEN },
		{ "a &&", REPL_OPEN },
		{ "sleep 1 &", REPL_COMPLETE },
		{ "echo $# ${#x} # (", REPL_COMPLETE },
		{ "echo \\(", REPL_COMPLETE },
		{ "echo a \\", REPL_OPEN },
		{ "for-each x", REPL_COMPLETE },
	};

	check("bash", list, ARRAY_SIZE(list));
}

static void test_others(void **state)
{
	(void)state;
	static const struct example r[] = {
		{ "x <- 1", REPL_COMPLETE }, { "x <-", REPL_OPEN },
		{ "df %>%", REPL_OPEN },     { "f(function(x) {", REPL_OPEN },
		{ "'a\nb'", REPL_COMPLETE }, { "x # (", REPL_COMPLETE },
	};
	static const struct example java[] = {
		{ "int x = 1;", REPL_COMPLETE },
		{ "class A {", REPL_OPEN },
		{ "char c = '{';", REPL_COMPLETE },
		{ "\"\"\"\n{", REPL_OPEN },
	};
	static const struct example unknown[] = {
		{ "x", REPL_COMPLETE },
		{ "(", REPL_OPEN },
		{ "x:", REPL_COMPLETE },
	};

	check("r", r, ARRAY_SIZE(r));
	check("java", java, ARRAY_SIZE(java));
	check("of tomorrow", unknown, ARRAY_SIZE(unknown));
}

static bool whole(const char *language, const char *text)
{
	return repl_is_whole(language, text, strlen(text));
}

static void test_empty_lines(void **state)
{
	(void)state;

	assert_true(whole("python", "x"));
	assert_false(whole("python", "def f():\n    x"));
	assert_true(whole("python", "def f():\n    x\n"));
	assert_true(whole("python", "def f():\n    x\n    "));
	assert_false(whole("python", "f(\n"));
	assert_true(whole("python", "f(\n\n"));
	assert_false(whole("python", "f(\n\n1"));
	assert_false(whole("javascript", "x = {\n"));
	assert_true(whole("javascript", "x = /* {\n \n"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_python),      cmocka_unit_test(test_javascript),
		cmocka_unit_test(test_shell),       cmocka_unit_test(test_others),
		cmocka_unit_test(test_empty_lines),
	};

	return cmocka_run_group_tests_name("repl", tests, NULL, NULL);
}
