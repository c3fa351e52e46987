/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The agent's file operations without a box: in processes forked from here, below a directory of
 * their own. Fast, and under the sanitizers. test/agentfs runs the same cases in a real box.
 */
#include "../agentfs/cases.h"

#include "agent/fs/fs_priv.h"
#include "sys/sock.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/wait.h>

static char home[64];

/* In place of the agent's own: there is one user, ourselves. */
int agent_user_lookup(const char *name, struct agent_user *ret)
{
	if (strcmp(name, "user") != 0)
		return -ENOENT;
	(void)snprintf(ret->name, sizeof(ret->name), "user");
	(void)snprintf(ret->home, sizeof(ret->home), "%s", home);
	return 0;
}

int agent_become_user(const struct agent_user *user)
{
	(void)user;
	return 0;
}

static void reap(void)
{
	while (waitpid(-1, NULL, WNOHANG) > 0)
		;
}

static int open_op(const struct wire_fs *request)
{
	const struct timeval patience = { .tv_sec = 20 };
	int pair[2];
	pid_t pid;

	reap();
	assert_int_equal(sock_pair(pair), 0);
	assert_int_equal(setsockopt(pair[0], SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)),
			 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		fd_close(pair[0]);
		agent_fs_run(request, pair[1]);
	}
	fd_close(pair[1]);
	return pair[0];
}

static void sh(const char *script)
{
	int status;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		if (chdir(home) == 0)
			execl("/bin/sh", "sh", "-c", script, NULL);
		_exit(127);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (status != 0)
		fail_msg("status %d of: %s", status, script);
}

/* What the decoder of the control socket already refuses is refused here too. */
static void impossible_requests(void **state)
{
	static const struct wire_fs requests[] = {
		{ .op = 0 },
		{ .op = _WIRE_FS_MAX },
		{ .op = UINT32_MAX },
		{ .op = WIRE_FS_STAT, .zero = 1 },
		{ .op = WIRE_FS_WATCH, .flags = 4 },
	};
	const char *const paths[] = { "x", NULL };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(requests); i++)
		want_failed(begin_request(&requests[i], NULL, paths), WIRE_STEP_REQUEST, EINVAL);
}

static void resolve(void **state)
{
	static const struct {
		const char *home, *text, *want;
	} cases[] = {
		{ "/home/user", "x", "/home/user/x" },
		{ "/home/user", "~", "/home/user" },
		{ "/home/user", "~/", "/home/user" },
		{ "/home/user", "~/x", "/home/user/x" },
		{ "/home/user", "/x", "/x" },
		{ "/home/user", "//x///y//", "/x/y" },
		{ "/home/user", ".", "/home/user" },
		{ "/home/user", "..", "/home" },
		{ "/home/user", "../../..", "/" },
		{ "/home/user", "/..", "/" },
		{ "/home/user", "/a/../../b", "/b" },
		{ "/home/user", "...", "/home/user/..." },
		{ "/home/user", "a~", "/home/user/a~" },
		{ "/home/user", "./~", "/home/user/~" },
		{ "home", "x", "/home/x" },
		{ "", "x", "/x" },
		{ "/a/./../b/", "x", "/b/x" },
		{ "/home/user", "~x", NULL },
		{ "/home/user", "~~", NULL },
	};
	char path[FS_PATH_SIZE];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		int r = fs_path_resolve(cases[i].home, cases[i].text, path);

		assert_int_equal(r, cases[i].want ? 0 : -EINVAL);
		if (cases[i].want)
			assert_string_equal(path, cases[i].want);
	}
}

static void longest_path(void **state)
{
	static char text[FS_PATH_SIZE + 1];
	char path[FS_PATH_SIZE];

	(void)state;
	memset(text, 'x', sizeof(text));
	text[0] = '/';
	text[WIRE_PATH_MAX] = '\0';
	assert_int_equal(fs_path_resolve("/", text, path), 0);
	assert_int_equal(strlen(path), WIRE_PATH_MAX);
	assert_int_equal(fs_path_resolve("/h", text + 1, path), -ENAMETOOLONG);
	assert_int_equal(fs_path_join("/h", text + 1, path), -ENAMETOOLONG);
	assert_int_equal(fs_path_join("/", text + 1, path), 0);
}

static void owner_names(void **state)
{
	static const char text[] = "root:x:0:0:root:/root:/bin/sh\n"
				   "broken\n"
				   "half:x\n"
				   ":x:5:5::/:/\n"
				   "short:x:7\n"
				   "a-name-that-is-longer-than-any-may-be:x:8:8::/:/\n"
				   "user:x:1000:1000::/home/user:/bin/bash\n"
				   "again:x:1000:1000::/:/\n"
				   "hex:x:0x9:9::/:/\n"
				   "last:x:11:";
	char name[FS_OWNER_SIZE];

	(void)state;
	assert_true(fs_names_find(text, sizeof(text) - 1, 0, name));
	assert_string_equal(name, "root");
	assert_true(fs_names_find(text, sizeof(text) - 1, 1000, name));
	assert_string_equal(name, "user");
	assert_true(fs_names_find(text, sizeof(text) - 1, 11, name));
	assert_string_equal(name, "last");
	for (uint32_t id = 5; id < 10; id++)
		assert_false(fs_names_find(text, sizeof(text) - 1, id, name));
	assert_false(fs_names_find("user\0x:x:3:", 11, 3, name));
	assert_false(fs_names_find("", 0, 3, name));
}

static void temp_names(void **state)
{
	char one[64], two[64];
	bool replaces;

	(void)state;
	assert_int_equal(fs_temp_name(false, one, sizeof(one)), 0);
	assert_int_equal(fs_temp_name(true, two, sizeof(two)), 0);
	assert_true(fs_is_temp_name(one, &replaces) && !replaces);
	assert_true(fs_is_temp_name(two, &replaces) && replaces);
	assert_false(fs_is_temp_name(".glovebox-upload", &replaces));
	assert_false(fs_is_temp_name("x.glovebox-upload-", &replaces));
	assert_int_equal(fs_temp_name(true, two, 20), -ENAMETOOLONG);
}

int main(int argc, char **argv)
{
	static const struct drive here = {
		.open = open_op, .sh = sh, .home = home, .far = "/var/tmp"
	};
	static const struct CMUnitTest pure[] = {
		cmocka_unit_test(impossible_requests), cmocka_unit_test(resolve),
		cmocka_unit_test(longest_path),        cmocka_unit_test(owner_names),
		cmocka_unit_test(temp_names),
	};
	const struct case_list lists[] = {
		{ pure, ARRAY_SIZE(pure) },     { cases_request, n_cases_request },
		{ cases_names, n_cases_names }, { cases_bytes, n_cases_bytes },
		{ cases_pipe, n_cases_pipe },   { cases_watch, n_cases_watch },
	};
	int failed;

	(void)snprintf(home, sizeof(home), "/dev/shm/agentfs-XXXXXX");
	if (!mkdtemp(home))
		return 1;
	drive = &here;
	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	failed = cases_run(lists, ARRAY_SIZE(lists));
	reap();
	(void)case_setup(NULL);
	(void)rmdir(home);
	return failed != 0;
}
