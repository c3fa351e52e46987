/* SPDX-License-Identifier: Apache-2.0 */
/* Runs with GLOVEBOX_LANGUAGES naming the tree's own languages/. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <sys/stat.h>

#include "language/language.h"

#define GOOD                                                                                       \
	"# a comment\n"                                                                            \
	"name = toy\n"                                                                             \
	"title = A Toy = fun\n"                                                                    \
	"file = main.toy\n"                                                                        \
	"run = toy {file}\n"                                                                       \
	"version = toy -v\n"

static struct fail why;

static int parse(const char *text, struct language *ret)
{
	why = (struct fail){ 0 };
	return language_parse("toy.lang", text, strlen(text), ret, &why);
}

static void test_parse(void **state)
{
	(void)state;
	_cleanup_(language_done) struct language l = { 0 };

	assert_int_equal(parse(GOOD
			       "aliases = t  t2\nextensions=toy\tTOY\n\n  compile = cc {file}  \n"
			       "kernel = toy -i {heap_mb}\n"
			       "compile-memory = 512M\ncompile-timeout = 1m\n"
			       "compile-cpu-time = 90s\ncompile-pids = 100\n"
			       "compile-disk = 1G\nmemory = 300M\npids = 80\n"
			       "env.A_1 = x y={cpus}\nenv.B = 2",
			       &l),
			 0);
	assert_string_equal(l.name, "toy");
	assert_string_equal(l.title, "A Toy = fun");
	assert_string_equal(l.aliases[0], "t");
	assert_string_equal(l.aliases[1], "t2");
	assert_null(l.aliases[2]);
	assert_string_equal(l.extensions[1], "TOY");
	assert_null(l.extensions[2]);
	assert_string_equal(l.compile, "cc {file}");
	assert_string_equal(l.kernel, "toy -i {heap_mb}");
	assert_int_equal(l.compile_limits.memory_bytes, 512 << 20);
	assert_int_equal(l.compile_limits.timeout_us, 60000000);
	assert_int_equal(l.compile_limits.cpu_time_us, 90000000);
	assert_int_equal(l.compile_limits.pids, 100);
	assert_int_equal(l.compile_limits.disk_bytes, 1 << 30);
	assert_int_equal(l.run_limits.memory_bytes, 300 << 20);
	assert_int_equal(l.run_limits.pids, 80);
	assert_int_equal(l.run_limits.timeout_us, 0);
	assert_string_equal(l.env[0], "A_1=x y={cpus}");
	assert_string_equal(l.env[1], "B=2");
	assert_null(l.env[2]);
}

static void test_parse_refuses(void **state)
{
	(void)state;
	static const struct {
		const char *text, *message;
	} cases[] = {
		{ GOOD "colour = red\n", "toy.lang:7: unknown key colour" },
		{ GOOD "env = red\n", "toy.lang:7: unknown key env" },
		{ GOOD "just words\n", "toy.lang:7: expected key = value" },
		{ GOOD "= x\n", "toy.lang:7: unknown key " },
		{ GOOD "aliases =\n", "toy.lang:7: aliases has no value" },
		{ GOOD "run = again\n", "toy.lang:7: run is there twice" },
		{ GOOD "kernel = a\nkernel = b\n", "toy.lang:8: kernel is there twice" },
		{ GOOD "kernel = a {port}\n", "toy.lang:7: kernel must be a command" },
		{ GOOD "pids = 1\npids = 2\n", "toy.lang:8: pids is there twice" },
		{ GOOD "env.A = 1\nenv.A = 1\n", "toy.lang:8: env.A is there twice" },
		{ GOOD "env.1A = 1\n", "toy.lang:7: env.1A must be NAME = VALUE" },
		{ GOOD "env.A = {cpu}\n", "toy.lang:7: env.A must be NAME = VALUE" },
		{ GOOD "aliases = Toy\n", "toy.lang:7: aliases must be up to 16 different names" },
		{ GOOD "aliases = t t\n", "toy.lang:7: aliases must be up to 16 different names" },
		{ GOOD "aliases = a b c d e f g h i j k l m n o p q\n",
		  "toy.lang:7: aliases must be" },
		{ GOOD "extensions = .t\n", "toy.lang:7: extensions must be" },
		{ GOOD "compile = cc {code}\n", "toy.lang:7: compile must be a command" },
		{ GOOD "compile-memory = lots\n", "toy.lang:7: compile-memory must be a size" },
		{ GOOD "memory = 0\n", "toy.lang:7: memory must be a size" },
		{ GOOD "compile-timeout = 5d\n", "toy.lang:7: compile-timeout must be a duration" },
		{ GOOD "pids = -1\n", "toy.lang:7: pids must be a number" },
		{ "name = toy\n", "toy.lang: title is missing" },
		{ "file = ../x\n", "toy.lang:1: file must be a plain file name" },
		{ "file = -x\n", "toy.lang:1: file must be a plain file name" },
		{ "file = .x\n", "toy.lang:1: file must be a plain file name" },
		{ "name = a/b\n", "toy.lang:1: name must be 1 to 24" },
		{ "name = abcdefghijklmnopqrstuvwxy\n", "toy.lang:1: name must be 1 to 24" },
		{ "name = x\ntitle = X\nfile = x\nrun = x\nversion = x\n",
		  "toy.lang: its name is x, so the file must be x.lang" },
		{ "name = c++\ntitle = X\nfile = x\nrun = x\nversion = x\nkernel = x\n",
		  "toy.lang: with a kernel its name must be 1 to 23 characters of a-z 0-9 -" },
		{ "name = abcdefghijklmnopqrstuvwx\ntitle = X\nfile = x\nrun = x\nversion = x\n"
		  "kernel = x\n",
		  "toy.lang: with a kernel its name must be 1 to 23 characters of a-z 0-9 -" },
		{ GOOD "title2 = \xff\n", "toy.lang: not plain text in UTF-8" },
		{ GOOD "aliases = x\r\n", "toy.lang: not plain text" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct language l = { .name = &(char){ 'x' } };
		struct language untouched = l;

		assert_true(parse(cases[i].text, &l) < 0);
		if (strncmp(why.msg, cases[i].message, strlen(cases[i].message)) != 0)
			fail_msg("\"%s\" instead of \"%s\"", why.msg, cases[i].message);
		assert_memory_equal(&l, &untouched, sizeof(l));
	}
	assert_true(language_parse("toy.lang", GOOD "\0", sizeof(GOOD), &(struct language){ 0 },
				   &why) < 0);
}

static void test_argv(void **state)
{
	(void)state;
	static const struct language_vars vars = { .file = "my file", .memory_mb = 254, .cpus = 3 };
	_cleanup_(freep) char **argv = NULL;
	char **refused = NULL, many[4 * (LANGUAGE_ARGV_MAX + 1)];

	assert_int_equal(language_argv("  run -m={memory_mb}m,{heap_mb}  {file}\t-j{cpus} x} ",
				       &vars, &argv, &why),
			 0);
	assert_string_equal(argv[0], "run");
	assert_string_equal(argv[1], "-m=254m,191");
	assert_string_equal(argv[2], "my file");
	assert_string_equal(argv[3], "-j3");
	assert_string_equal(argv[4], "x}");
	assert_null(argv[5]);

	assert_int_equal(language_argv("a {files}", &vars, &refused, &why), -EINVAL);
	assert_int_equal(language_argv("a {fi le}", &vars, &refused, &why), -EINVAL);
	assert_int_equal(language_argv("a {", &vars, &refused, &why), -EINVAL);
	assert_int_equal(language_argv(" \t", &vars, &refused, &why), -EINVAL);
	memset(many, 0, sizeof(many));
	for (size_t i = 0; i <= LANGUAGE_ARGV_MAX; i++)
		memcpy(many + 2 * i, "a ", 2);
	assert_int_equal(language_argv(many, &vars, &refused, &why), -E2BIG);
	assert_null(refused);
	many[2 * LANGUAGE_ARGV_MAX] = '\0';
	assert_int_equal(language_argv(many, &vars, &refused, &why), 0);
	free(refused);
}

static void test_env(void **state)
{
	(void)state;
	static const struct language_vars vars = { .file = "f", .memory_mb = 100, .cpus = 2 };
	_cleanup_(language_done) struct language l = { 0 };
	_cleanup_(freep) char **env = NULL, **none = NULL;

	assert_int_equal(parse(GOOD "env.A = a b{cpus}\nenv.B = {memory_mb}\n", &l), 0);
	assert_int_equal(language_env(&l, &vars, &env, &why), 0);
	assert_string_equal(env[0], "A=a b2");
	assert_string_equal(env[1], "B=100");
	assert_null(env[2]);
	assert_int_equal(language_env(&(struct language){ 0 }, &vars, &none, &why), 0);
	assert_null(none[0]);
}

static void test_check_code(void **state)
{
	(void)state;

	assert_int_equal(language_check_code("", 0, 10, &why), 0);
	assert_int_equal(language_check_code(NULL, 0, 10, &why), 0);
	assert_int_equal(language_check_code("0123456789", 10, 10, &why), 0);
	assert_int_equal(language_check_code("01234567890", 11, 10, &why), -EFBIG);
	assert_string_equal(why.msg, "the code has 11 bytes, the limit is 10");
	assert_int_equal(language_check_code("a\nb\0", 4, 10, &why), -EILSEQ);
	assert_string_equal(why.msg, "the code has a NUL byte at offset 3 (line 2)");
	assert_int_equal(language_check_code("\n\nx = \xed\xa0\x80", 9, 10, &why), -EILSEQ);
	assert_string_equal(why.msg, "the code is not valid UTF-8 at byte offset 6 (line 3)");
}

static bool word_in(char *const *words, const char *word)
{
	for (; *words; words++)
		if (strcmp(*words, word) == 0)
			return true;
	return false;
}

/* No two shipped languages answer to the same name or ending. */
static void assert_distinct(const struct language *a, const struct language *b)
{
	for (char *const *alias = a->aliases; *alias; alias++)
		if (word_in(b->aliases, *alias) || strcmp(b->name, *alias) == 0)
			fail_msg("%s is %s and %s", *alias, a->name, b->name);
	for (char *const *ending = a->extensions; *ending; ending++)
		if (word_in(b->extensions, *ending))
			fail_msg(".%s is %s and %s", *ending, a->name, b->name);
}

static void test_shipped(void **state)
{
	(void)state;
	static const char *const names[] = {
		"bash", "c",   "cpp",    "go", "java", "javascript", "lua",
		"perl", "php", "python", "r",  "ruby", "rust",       "typescript",
	};
	struct language *list;
	size_t n;

	assert_int_equal(language_list(&list, &n, &why), 0);
	assert_int_equal(n, ARRAY_SIZE(names));
	for (size_t i = 0; i < n; i++) {
		assert_string_equal(list[i].name, names[i]);
		assert_non_null(list[i].extensions[0]);
		/* What only the compile step makes needs a compile step. */
		assert_true(strncmp(list[i].run, "./", 2) != 0 || list[i].compile);
		for (size_t j = 0; j < n; j++)
			if (i != j)
				assert_distinct(&list[i], &list[j]);
	}
	language_list_free(list, n);
}

static void assert_loads(int (*load)(const char *, struct language *, struct fail *),
			 const char *text, const char *want)
{
	_cleanup_(language_done) struct language l = { 0 };

	if (load(text, &l, &why) < 0)
		fail_msg("%s: %s", text, why.msg);
	assert_string_equal(l.name, want);
}

static void assert_refused(int (*load)(const char *, struct language *, struct fail *),
			   const char *text, const char *message)
{
	struct language l = { 0 };

	assert_int_equal(load(text, &l, &why), -ENOENT);
	assert_null(l.name);
	if (!strstr(why.msg, message))
		fail_msg("\"%s\" does not have \"%s\"", why.msg, message);
}

static void test_load(void **state)
{
	(void)state;
	assert_loads(language_load, "python", "python");
	assert_loads(language_load, "c++", "cpp");
	assert_loads(language_load, "js", "javascript");
	assert_refused(language_load, "pythen",
		       "\"pythen\", did you mean python? known: bash c cpp");
	assert_refused(language_load, "Golang", "did you mean go?");
	assert_refused(language_load, "cobol-2023", "\"cobol-2023\"; known: bash");
	assert_refused(language_load, "../languages/c", "; known:");
	assert_refused(language_load, "", "unknown language \"\"");
	assert_refused(language_load, "a\x1b[2J\nb", "\"a?[2J?b\"");
	assert_refused(language_load, "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyz",
		       "known:");
	assert_non_null(strstr(why.msg, "typescript"));
}

static void test_for_file(void **state)
{
	(void)state;
	assert_loads(language_for_file, "dir.c/a.b.py", "python");
	assert_loads(language_for_file, "x.R", "r");
	assert_loads(language_for_file, "/tmp/x.c", "c");
	assert_refused(language_for_file, "dir.c/Makefile", "\"Makefile\" does not tell");
	assert_refused(language_for_file, "x.C", "-l");
	assert_refused(language_for_file, ".c", "-l");
	assert_refused(language_for_file, "c.", "-l");
	assert_refused(language_for_file, "py", "-l");
	assert_refused(language_for_file, "", "-l");
}

/* A directory of our own, searched instead of the shipped one. */
struct fixture {
	char dir[64];
	char *saved;
};

static int make_dir(void **state)
{
	static struct fixture f;
	const char *shipped = getenv("GLOVEBOX_LANGUAGES");

	f = (struct fixture){ .dir = "/tmp/test_language.XXXXXX" };
	if (!shipped || !(f.saved = strdup(shipped)))
		return -1;
	*state = &f;
	return mkdtemp(f.dir) ? setenv("GLOVEBOX_LANGUAGES", f.dir, 1) : -1;
}

static int remove_dir(void **state)
{
	static const char *const files[] = { "toy.lang", "bad.lang", "fifo.lang", "notes.txt" };
	struct fixture *f = *state;
	char path[128];

	for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
		(void)snprintf(path, sizeof(path), "%s/%s", f->dir, files[i]);
		(void)unlink(path);
	}
	(void)setenv("GLOVEBOX_LANGUAGES", f->saved, 1);
	freep(&f->saved);
	return rmdir(f->dir);
}

static void write_file(const struct fixture *f, const char *name, const char *text, size_t len)
{
	_cleanup_(fd_closep) int fd = -EBADF;
	char path[128];

	(void)snprintf(path, sizeof(path), "%s/%s", f->dir, name);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, len), len);
}

static void test_directory(void **state)
{
	const struct fixture *f = *state;
	struct language l = { 0 }, *list = NULL;
	size_t n = 99;

	assert_int_equal(language_list(&list, &n, &why), 0);
	assert_int_equal(n, 0);
	language_list_free(list, n);
	assert_refused(language_load, "toy", "unknown language \"toy\"; known:");
	write_file(f, "toy.lang", GOOD "aliases = t\n", strlen(GOOD "aliases = t\n"));
	write_file(f, "notes.txt", "not a language", 14);
	assert_loads(language_load, "t", "toy");

	/* A broken file stops whoever has to look at all of them, and only those. */
	write_file(f, "bad.lang", "what\n", 5);
	assert_loads(language_load, "toy", "toy");
	assert_int_equal(language_load("t", &l, &why), -EINVAL);
	assert_string_equal(why.msg, "bad.lang:1: expected key = value");
	assert_int_equal(language_list(&list, &n, &why), -EINVAL);
}

static void test_directory_odd_files(void **state)
{
	const struct fixture *f = *state;
	static char big[LANGUAGE_FILE_MAX + 1];
	struct language l = { 0 };
	char path[128];

	memset(big, '\n', sizeof(big));
	write_file(f, "bad.lang", big, sizeof(big));
	assert_int_equal(language_load("bad", &l, &why), -EFBIG);
	(void)snprintf(path, sizeof(path), "%s/fifo.lang", f->dir);
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_int_equal(language_load("fifo", &l, &why), -EINVAL);
	assert_string_equal(why.msg, "fifo.lang: not a regular file");
	assert_int_equal(setenv("GLOVEBOX_LANGUAGES", "/nonexistent/languages", 1), 0);
	assert_int_equal(language_load("toy", &l, &why), -ENOENT);
	assert_non_null(strstr(why.msg, "GLOVEBOX_LANGUAGES=/nonexistent/languages"));
}

static void test_present(void **state)
{
	(void)state;
	char sh[] = "sh x", built[] = "./main", absent[] = "no-such-program-here x";
	char outside[] = "/etc/passwd", absolute[] = "/usr/bin/env x",
	     gone[] = "/usr/bin/no-such x";

	assert_true(language_present(&(struct language){ .run = sh, .version = sh }));
	assert_true(
		language_present(&(struct language){ .compile = sh, .run = built, .version = sh }));
	assert_true(language_present(&(struct language){ .run = absolute, .version = sh }));
	assert_false(language_present(&(struct language){ .run = absent, .version = sh }));
	assert_false(language_present(&(struct language){ .run = sh, .version = absent }));
	assert_false(language_present(
		&(struct language){ .compile = absent, .run = built, .version = sh }));
	assert_false(language_present(&(struct language){ .run = outside, .version = sh }));
	assert_false(language_present(&(struct language){ .run = gone, .version = sh }));
}

static void test_stateful(void **state)
{
	(void)state;
	char sh[] = "sh -i", absent[] = "no-such-program-here",
	     ours[] = "/opt/glovebox/kernels/x/y";

	assert_true(language_stateful(&(struct language){ .kernel = sh }));
	assert_true(language_stateful(&(struct language){ .kernel = ours }));
	assert_false(language_stateful(&(struct language){ .kernel = absent }));
	assert_false(language_stateful(&(struct language){ .run = sh }));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_parse),
		cmocka_unit_test(test_parse_refuses),
		cmocka_unit_test(test_argv),
		cmocka_unit_test(test_env),
		cmocka_unit_test(test_check_code),
		cmocka_unit_test(test_shipped),
		cmocka_unit_test(test_load),
		cmocka_unit_test(test_for_file),
		cmocka_unit_test_setup_teardown(test_directory, make_dir, remove_dir),
		cmocka_unit_test_setup_teardown(test_directory_odd_files, make_dir, remove_dir),
		cmocka_unit_test(test_present),
		cmocka_unit_test(test_stateful),
	};

	return cmocka_run_group_tests_name("language", tests, NULL, NULL);
}
