/* SPDX-License-Identifier: Apache-2.0 */
/* What the agent reads before a command exists: users of a box, and what to run. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "agent/agent.h"
#include "wire/request.h"
#include "sys/sock.h"

/* A file with this text, as a path. */
static const char *file(int *fd, const void *text, size_t len)
{
	static char paths[2][32];
	static unsigned next;
	char *path = paths[next++ % 2];

	*fd = memfd_create("file", MFD_CLOEXEC);
	assert_true(*fd >= 0);
	assert_int_equal(write(*fd, text, len), len);
	(void)snprintf(path, sizeof(paths[0]), "/proc/self/fd/%d", *fd);
	return path;
}

static int find(const char *passwd, const char *group, const char *name, struct agent_user *ret)
{
	int fds[2];
	int r = agent_user_find(file(&fds[0], passwd, strlen(passwd)),
				file(&fds[1], group, strlen(group)), name, ret);

	fd_close(fds[0]);
	fd_close(fds[1]);
	return r;
}

#define LINE "user:x:1000:1001:A User,,,:/home/user:/bin/bash\n"

static void test_user(void **state)
{
	struct agent_user u;

	(void)state;
	assert_int_equal(find("root:x:0:0:::\n" LINE, "", "user", &u), 0);
	assert_int_equal(u.uid, 1000);
	assert_int_equal(u.gid, 1001);
	assert_string_equal(u.name, "user");
	assert_string_equal(u.home, "/home/user");
	assert_string_equal(u.shell, "/bin/bash");
	assert_int_equal(u.n_groups, 0);
	assert_int_equal(find("root:x:0:0:::\n", "", "root", &u), 0);
	assert_string_equal(u.home, "/");
	assert_string_equal(u.shell, "/bin/sh");
	/* The first of a name, and no part of one; the last line may lack its end. */
	assert_int_equal(find("a:x:1:1::/1:/s\na:x:2:2::/2:/s", "", "a", &u), 0);
	assert_int_equal(u.uid, 1);
	assert_int_equal(find("b:x:1:1::/1:/s\na:x:2:2::/2:/s", "", "a", &u), 0);
	assert_int_equal(u.uid, 2);
	assert_int_equal(find(LINE, "", "use", &u), -ENOENT);
	assert_int_equal(find(LINE, "", "users", &u), -ENOENT);
	assert_int_equal(find(LINE, "", "", &u), -ENOENT);
	assert_int_equal(find("", "", "user", &u), -ENOENT);
	assert_int_equal(agent_user_find("/nonexistent", "/nonexistent", "user", &u), -ENOENT);
	assert_int_equal(agent_user_find("/proc/self", "/nonexistent", "user", &u), -EINVAL);
}

static void test_bad_users(void **state)
{
	static const char *const bad[] = {
		"user:x:-1:0::/:/bin/sh\n",    "user:x:65535:0::/:/bin/sh\n",
		"user:x:0:65535::/:/bin/sh\n", "user:x:0x0:0::/:/bin/sh\n",
		"user:x::0::/:/bin/sh\n",      "user:x:4294967296:0::/:/bin/sh\n",
		"user:x: 0:0::/:/bin/sh\n",
	};
	static const char *const none[] = {
		"user:x:1:1::/\n",     "user:x:1:1::/:/bin/sh:more\n", "user\n",
		":x:1:1::/:/bin/sh\n", "user :x:1:1::/:/bin/sh\n",
	};
	static char text[300 << 10];
	struct agent_user u = { .uid = 7 };
	int fd;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_int_equal(find(bad[i], "", "user", &u), -EINVAL);
	for (size_t i = 0; i < ARRAY_SIZE(none); i++)
		assert_int_equal(find(none[i], "", "user", &u), -ENOENT);
	assert_int_equal(u.uid, 7); /* untouched */
	/* A home that is too long, a line that is too long, a NUL, and a file that is too long. */
	(void)snprintf(text, sizeof(text), "user:x:1:1::/%0*d:/bin/sh\n", 300, 0);
	assert_int_equal(find(text, "", "user", &u), -ENAMETOOLONG);
	(void)snprintf(text, sizeof(text), "user:x:1:1:%0*d:/:/bin/sh\n" LINE, 2000, 0);
	assert_int_equal(find(text, "", "user", &u), 0);
	assert_int_equal(u.uid, 1000);
	assert_int_equal(agent_user_find(file(&fd, "user\0:x:1:1::/:/s\n", 18), "/nonexistent",
					 "user", &u),
			 -ENOENT);
	fd_close(fd);
	memset(text, '\n', sizeof(text));
	memcpy(text + sizeof(text) - 64, LINE, strlen(LINE) + 1);
	assert_int_equal(find(text, "", "user", &u), -ENOENT);
}

static void test_groups(void **state)
{
	char many[2048] = "";
	struct agent_user u;

	(void)state;
	assert_int_equal(
		find(LINE,
		     "a:x:1:user\nb:x:2:x,user,y\nc:x:3:users,use\nuser:x:1001:user\nfar:x:70000:user\n"
		     "f:x:5\ng:x:6:user:more\nh:x:7:,,user",
		     "user", &u),
		0);
	assert_int_equal(u.n_groups, 3);
	assert_int_equal(u.groups[0], 1);
	assert_int_equal(u.groups[1], 2);
	assert_int_equal(u.groups[2], 7);
	for (int i = 0; i < 60; i++)
		(void)snprintf(many + strlen(many), sizeof(many) - strlen(many), "g:x:%d:user\n",
			       i);
	assert_int_equal(find(LINE, many, "user", &u), 0);
	assert_int_equal(u.n_groups, AGENT_GROUPS_MAX);
}

static struct agent_request q;

static void request_init(void)
{
	for (size_t i = 0; i < q.n_args; i++)
		free(q.args[i]);
	for (size_t i = 0; i < q.n_envs; i++)
		free(q.envs[i]);
	memset(&q, 0, sizeof(q));
	q.label_fd = -EBADF;
}

static void say(int sock, enum wire_type type, const char *text)
{
	assert_int_equal(wire_send(sock, type, text, strlen(text)), 0);
}

static void test_request(void **state)
{
	int pair[2];

	(void)state;
	request_init();
	assert_int_equal(sock_pair(pair), 0);
	say(pair[0], WIRE_USER, "user");
	say(pair[0], WIRE_CWD, "/tmp");
	say(pair[0], WIRE_ARG, "a");
	say(pair[0], WIRE_ARG, "");
	say(pair[0], WIRE_LABEL, "label");
	say(pair[0], WIRE_ENV, "A=1");
	say(pair[0], WIRE_GO, "");
	assert_int_equal(agent_request_read(pair[1], &q), 0);
	assert_string_equal(q.user, "user");
	assert_string_equal(q.cwd, "/tmp");
	assert_int_equal(q.n_args, 2);
	assert_string_equal(q.args[1], "");
	assert_null(q.args[2]);
	fd_close(pair[0]);
	fd_close(pair[1]);
}

/* Packs messages; returns how much of to is used. */
static size_t pack(unsigned char *to, size_t at, enum wire_type type, const char *text)
{
	size_t len = strlen(text);
	struct wire_head head = { .type = (uint16_t)type, .len = (uint32_t)(sizeof(head) + len) };

	memcpy(to + at, &head, sizeof(head));
	at += sizeof(head);
	for (size_t i = 0; i < len; i++)
		to[at + i] = (unsigned char)text[i]; /* without its NUL */
	return at + len;
}

static int read_several(const unsigned char *data, size_t len)
{
	int pair[2], r;

	request_init();
	assert_int_equal(sock_pair(pair), 0);
	assert_int_equal(wire_send(pair[0], WIRE_SEVERAL, data, len), 0);
	fd_close(pair[0]);
	r = agent_request_read(pair[1], &q);
	fd_close(pair[1]);
	return r;
}

static void test_several(void **state)
{
	unsigned char data[256];
	size_t n = pack(data, 0, WIRE_CWD, "/tmp"), whole;

	(void)state;
	n = pack(data, n, WIRE_ARG, "a");
	n = pack(data, n, WIRE_ARG, "");
	n = pack(data, n, WIRE_ENV, "A=1");
	assert_int_equal(read_several(data, n), -ECANCELED); /* hung up before GO */
	whole = pack(data, n, WIRE_GO, "");
	assert_int_equal(read_several(data, whole), 0);
	assert_string_equal(q.cwd, "/tmp");
	assert_int_equal(q.n_args, 2);
	assert_string_equal(q.args[0], "a");
	assert_string_equal(q.envs[0], "A=1");
	/* Cut off anywhere it is nonsense, or not yet complete. */
	for (size_t i = sizeof(struct wire_head); i < whole; i++)
		assert_true(read_several(data, i) < 0);
	assert_int_equal(read_several(data, pack(data, whole, WIRE_ARG, "b")), -EPROTO);
	assert_int_equal(read_several(data, pack(data, n, WIRE_SEVERAL, "12345678")), -EPROTO);
	assert_int_equal(read_several(data, pack(data, n, WIRE_OUT, "x")), -EPROTO);
	assert_int_equal(read_several(data, pack(data, n, WIRE_IN, "x")), -EPROTO);
	/* A length that leads out of the packet, and one that leads nowhere. */
	(void)pack(data, n, WIRE_GO, "");
	data[n + offsetof(struct wire_head, len)]++;
	assert_int_equal(read_several(data, whole), -EPROTO);
	data[n + offsetof(struct wire_head, len)] = 0;
	assert_int_equal(read_several(data, whole), -EPROTO);
}

static int read_one(enum wire_type type, const void *data, size_t len)
{
	int pair[2], r;

	request_init();
	assert_int_equal(sock_pair(pair), 0);
	say(pair[0], WIRE_ARG, "a");
	assert_int_equal(wire_send(pair[0], type, data, len), 0);
	fd_close(pair[0]);
	r = agent_request_read(pair[1], &q);
	fd_close(pair[1]);
	return r;
}

static void test_bad_requests(void **state)
{
	static char big[60000];
	int pair[2];

	(void)state;
	assert_int_equal(read_one(WIRE_GO, "", 0), 0);
	assert_int_equal(read_one(WIRE_ARG, "x", 1), -ECANCELED); /* hung up before GO */
	assert_int_equal(read_one(WIRE_ARG, "a\0b", 3), -EINVAL);
	assert_int_equal(read_one(WIRE_ENV, "a\0=b", 4), -EINVAL);
	assert_int_equal(read_one(WIRE_ENV, "AB", 2), -EINVAL);
	assert_int_equal(read_one(WIRE_ENV, "=B", 2), -EINVAL);
	assert_int_equal(read_one(WIRE_CWD, "/\0", 2), -EINVAL);
	assert_int_equal(read_one(WIRE_USER, "\0", 1), -EINVAL);
	assert_int_equal(read_one(WIRE_IN, "x", 1), -EPROTO);
	assert_int_equal(read_one(WIRE_PATH, "x", 1), -EPROTO);
	/* Without anything to run. */
	request_init();
	assert_int_equal(sock_pair(pair), 0);
	say(pair[0], WIRE_GO, "");
	assert_int_equal(agent_request_read(pair[1], &q), -EINVAL);
	/* A megabyte in all, however it is cut. */
	memset(big, 'x', sizeof(big));
	request_init();
	for (int i = 0; i < 18; i++) {
		assert_int_equal(wire_send(pair[0], WIRE_ARG, big, sizeof(big)), 0);
		say(pair[0], WIRE_GO, "");
		assert_int_equal(agent_request_read(pair[1], &q), i < 17 ? 0 : -E2BIG);
	}
	request_init();
	fd_close(pair[0]);
	fd_close(pair[1]);
}

static const char *variable(const char *name)
{
	size_t len = strlen(name);
	const char *found = NULL;

	for (size_t i = 0; q.envs[i]; i++) {
		if (strncmp(q.envs[i], name, len) != 0 || q.envs[i][len] != '=')
			continue;
		assert_null(found); /* once */
		found = q.envs[i] + len + 1;
	}
	return found;
}

static void add_env(const char *text)
{
	q.envs[q.n_envs++] = strdup(text);
}

static void test_environment(void **state)
{
	const struct agent_user user = { .name = "u", .home = "/h", .shell = "/s" }, nobody = { 0 };

	(void)state;
	request_init();
	add_env("A=1");
	add_env("HOME=/mine");
	add_env("AB=2");
	add_env("A=3");
	add_env("A=4=5");
	assert_int_equal(agent_user_environment(&q, &user, false), 0);
	assert_string_equal(variable("A"), "4=5");
	assert_string_equal(variable("AB"), "2");
	assert_string_equal(variable("HOME"), "/mine");
	assert_string_equal(variable("USER"), "u");
	assert_string_equal(variable("LOGNAME"), "u");
	assert_string_equal(variable("SHELL"), "/s");
	assert_null(variable("TERM"));
	request_init();
	add_env("TERM=dumb");
	assert_int_equal(agent_user_environment(&q, &nobody, true), 0);
	assert_string_equal(variable("TERM"), "dumb");
	assert_null(variable("HOME"));
	/* As many as there may be, and the defaults beside them. */
	request_init();
	for (int i = 0; i < REQUEST_ENVS_MAX; i++) {
		char text[16];

		(void)snprintf(text, sizeof(text), "V%d=%d", i, i);
		add_env(text);
	}
	assert_int_equal(agent_user_environment(&q, &user, true), 0);
	assert_int_equal(q.n_envs, REQUEST_ENVS_MAX + REQUEST_DEFAULTS_MAX);
	assert_string_equal(variable("V1023"), "1023");
	assert_string_equal(variable("TERM"), "xterm-256color");
	request_init();
}

static int enter(const char *cwd, const struct agent_user *user)
{
	(void)snprintf(q.cwd, sizeof(q.cwd), "%s", cwd);
	return agent_user_enter(&q, user);
}

static void is_here(const char *path)
{
	char here[4096];

	assert_non_null(getcwd(here, sizeof(here)));
	assert_string_equal(here, path);
}

static void test_enter(void **state)
{
	const struct agent_user proc = { .name = "u", .home = "/proc" },
				homeless = { .name = "u", .home = "/nonexistent" }, unnamed = { 0 };
	int before = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	(void)state;
	assert_int_equal(enter("", &proc), 0);
	is_here("/proc");
	assert_int_equal(enter("~", &proc), 0);
	is_here("/proc");
	assert_int_equal(enter("~/sys", &proc), 0);
	is_here("/proc/sys");
	assert_int_equal(enter("sys/..//sys", &proc), 0);
	is_here("/proc/sys");
	assert_int_equal(enter("/usr", &proc), 0);
	is_here("/usr");
	assert_int_equal(enter("~nobody", &proc), -ENOENT);
	assert_int_equal(enter("none", &proc), -ENOENT);
	assert_int_equal(enter("/proc/version", &proc), -ENOTDIR);
	assert_int_equal(enter("", &homeless), 0);
	is_here("/");
	assert_int_equal(enter("x", &homeless), -ENOENT);
	assert_int_equal(enter("", &unnamed), 0);
	is_here("/");
	assert_int_equal(fchdir(before), 0);
	fd_close(before);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_user),        cmocka_unit_test(test_bad_users),
		cmocka_unit_test(test_groups),      cmocka_unit_test(test_request),
		cmocka_unit_test(test_several),     cmocka_unit_test(test_bad_requests),
		cmocka_unit_test(test_environment), cmocka_unit_test(test_enter),
	};

	return cmocka_run_group_tests_name("agent", tests, NULL, NULL);
}
