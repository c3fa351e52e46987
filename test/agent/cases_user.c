/* SPDX-License-Identifier: Apache-2.0 */
/* Who a command is, where it stands, what it may do. */
#include "drive.h"

#include <fcntl.h>

static struct outcome o;

static void test_defaults(void **state)
{
	static const char *const env[] = { "A=1", "B=2", "A=3", "USER=me", NULL };

	(void)state;
	run_sh(&(struct spec){ 0 }, "pwd; echo $HOME $USER $LOGNAME $SHELL; id -u; id -G", &o);
	assert_string_equal(o.text, "/home/user\n/home/user user user /bin/bash\n1000\n1000\n");
	run_sh(&(struct spec){ .env = env }, "echo $A $B $USER; env | grep -c ^A=", &o);
	assert_string_equal(o.text, "3 2 me\n1\n");
	run_sh(&(struct spec){ .cwd = "~" }, "pwd", &o);
	assert_string_equal(o.text, "/home/user\n");
	run_sh(&(struct spec){ 0 }, "mkdir -p sub/dir", &o);
	run_sh(&(struct spec){ .cwd = "~/sub/dir" }, "pwd", &o);
	assert_string_equal(o.text, "/home/user/sub/dir\n");
	run_sh(&(struct spec){ .cwd = "sub" }, "pwd", &o);
	assert_string_equal(o.text, "/home/user/sub\n");
	run_sh(&(struct spec){ .cwd = "/usr" }, "pwd", &o);
	assert_string_equal(o.text, "/usr\n");
	expect_failed(sh_start(&(struct spec){ .cwd = "sub/none" }, "pwd"), WIRE_STEP_CWD, ENOENT);
	expect_failed(sh_start(&(struct spec){ .cwd = "/etc/passwd" }, "pwd"), WIRE_STEP_CWD,
		      ENOTDIR);
	expect_failed(sh_start(&(struct spec){ .user = "nobody-here" }, "pwd"), WIRE_STEP_USER,
		      ENOENT);
	expect_failed(sh_start(&(struct spec){ .user = "1000" }, "pwd"), WIRE_STEP_USER, ENOENT);
	expect_failed(sh_start(&(struct spec){ .env = (const char *const[]){ "=x", NULL } }, "pwd"),
		      WIRE_STEP_REQUEST, EINVAL);
}

#define CAPS "grep -E '^(Cap|NoNewPrivs|Seccomp:)' /proc/self/status"

/* CHOWN 0, DAC_OVERRIDE 1, FOWNER 3, FSETID 4, KILL 5, SETGID 6, SETUID 7,
 * NET_BIND_SERVICE 10. */
#define SHORT_LIST "00000000000004fb"
#define NOTHING "0000000000000000"

/* A line of the agent's own status, as the host sees it. */
static void agent_status_is(const struct box *b, const char *line)
{
	char path[40], text[8192];
	int fd;
	ssize_t n;

	(void)snprintf(path, sizeof(path), "/proc/%d/status", b->pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = read(fd, text, sizeof(text) - 1);
	assert_true(n > 0);
	text[n] = '\0';
	fd_close(fd);
	if (!strstr(text, line))
		fail_msg("'%s' is not in %s", line, text);
}

/* What it may hand on it does not use itself: SETUID, SETGID, SETPCAP and KILL. */
static void test_agent(void **state)
{
	(void)state;
	run_sh(&(struct spec){ .flags = WIRE_EXEC_STDIN }, "true", &o);
	run_sh(&(struct spec){ .box = &plain_box }, "true", &o);
	agent_status_is(&box, "CapEff:\t00000000000001e0\n");
	agent_status_is(&box, "CapPrm:\t00000000000005fb\n");
	agent_status_is(&box, "CapBnd:\t00000000000005fb\n");
	agent_status_is(&plain_box, "CapPrm:\t00000000000001e0\n");
	agent_status_is(&plain_box, "CapBnd:\t00000000000001e0\n");
}

static void test_root(void **state)
{
	(void)state;
	run_sh(&(struct spec){ .user = "root" }, CAPS, &o);
	assert_string_equal(o.text, "CapInh:\t" NOTHING "\nCapPrm:\t" SHORT_LIST
				    "\nCapEff:\t" SHORT_LIST "\nCapBnd:\t" SHORT_LIST
				    "\nCapAmb:\t" NOTHING "\nNoNewPrivs:\t1\nSeccomp:\t2\n");
	run_sh(&(struct spec){ 0 }, CAPS, &o);
	assert_string_equal(o.text, "CapInh:\t" NOTHING "\nCapPrm:\t" NOTHING "\nCapEff:\t" NOTHING
				    "\nCapBnd:\t" NOTHING "\nCapAmb:\t" NOTHING
				    "\nNoNewPrivs:\t1\nSeccomp:\t2\n");
	run_sh(&(struct spec){ .user = "root" },
	       "pwd; id -u; echo $HOME; touch /etc/x /usr/bin/x /opt/x && chown 33:33 /etc/x && chmod 4755 /etc/x"
	       " && chown 65534:65534 /opt/x && stat -c %u:%a /etc/x",
	       &o);
	assert_string_equal(o.text, "/root\n0\n/root\n33:4755\n");
	assert_int_equal(o.exit.code, 0);
	/* What it must not be able to do. */
	run_sh(&(struct spec){ .user = "root" },
	       "mknod /tmp/null c 1 3 && exit 1; mount -t tmpfs x /mnt && exit 2; unshare -n true && exit 3;"
	       " chroot / true && exit 4; hostname other && exit 5; echo 1 >/proc/sys/kernel/panic && exit 6;"
	       " cat /proc/1/environ && exit 7; ls -l /proc/1/fd/3 && exit 8; kill -9 1; exit 0",
	       &o);
	assert_int_equal(o.exit.code, 0);
	run_sh(&(struct spec){ .user = "root" }, "echo still here", &o);
	assert_string_equal(o.text, "still here\n");
	/* A file with the setuid bit gives nothing. */
	run_sh(&(struct spec){ .user = "root" },
	       "cp /usr/bin/id /usr/bin/suid && chmod 4755 /usr/bin/suid", &o);
	run_sh(&(struct spec){ 0 }, "suid -u", &o);
	assert_string_equal(o.text, "1000\n");
}

/* The user of a box with a root can change what modes let it change, and no more. */
static void test_user_beside_root(void **state)
{
	(void)state;
	run_sh(&(struct spec){ 0 },
	       "touch /etc/y 2>/dev/null && exit 1; ls /root 2>/dev/null && exit 2; touch /tmp/y || exit 3;"
	       " kill -9 1 2>/dev/null && exit 4; echo x >/usr/bin/env 2>/dev/null && exit 5; exit 0",
	       &o);
	assert_int_equal(o.exit.code, 0);
}

static void test_no_root(void **state)
{
	const struct spec root = { .box = &plain_box, .user = "root" };

	(void)state;
	expect_failed(sh_start(&root, "id"), WIRE_STEP_USER, EPERM);
	run_sh(&(struct spec){ .box = &plain_box }, "id -u; sudo true", &o);
	assert_non_null(strstr(o.text, "without a root"));
	run_sh(&(struct spec){ .box = &plain_box }, CAPS, &o);
	assert_non_null(strstr(o.text, "CapPrm:\t" NOTHING));
}

/* Others of /etc/passwd, with their groups, and files that are none. */
static void test_other_users(void **state)
{
	(void)state;
	run_sh(&(struct spec){ .user = "root" },
	       "echo 'svc:x:500:500::/srv:/bin/sh' >>/etc/passwd;"
	       "printf 'svc:x:500:\\nmore:x:501:a,svc\\nless:x:502:svcx\\nhuge:x:70000:svc\\n' >>/etc/group;"
	       "echo 'far:x:70000:1::/:/bin/sh' >>/etc/passwd; printf 'cut:x:600:600::/nowhere:' >>/etc/passwd",
	       &o);
	run_sh(&(struct spec){ .user = "svc" }, "id -u; id -G; pwd; echo x >/dev/stdout", &o);
	assert_string_equal(o.text, "500\n500 501\n/srv\nx\n");
	expect_failed(sh_start(&(struct spec){ .user = "far" }, "id"), WIRE_STEP_USER, EINVAL);
	run_sh(&(struct spec){ .user = "cut" }, "id -u; pwd; echo $SHELL", &o);
	assert_string_equal(o.text, "600\n/\n/bin/sh\n");
	run_sh(&(struct spec){ .user = "root" },
	       "cp /etc/passwd /tmp/passwd; rm /etc/passwd; mkfifo /etc/passwd", &o);
	expect_failed(sh_start(&(struct spec){ .user = "root" }, "id"), WIRE_STEP_USER, EINVAL);
	{ /* without a name the ids of the request hold, and the box can be repaired */
		const struct wire_exec q = { .flags = WIRE_EXEC_KEEP,
					     .fsize_max = 1 << 20,
					     .nofile_max = 64 };
		int sock = op_open(&box, WIRE_EXEC, &q, sizeof(q));

		assert_int_equal(wire_send(sock, WIRE_ARG, "/bin/mv", 7), 0);
		assert_int_equal(wire_send(sock, WIRE_ARG, "/tmp/passwd", 11), 0);
		assert_int_equal(wire_send(sock, WIRE_ARG, "/etc/passwd", 11), 0);
		assert_int_equal(wire_send(sock, WIRE_GO, NULL, 0), 0);
		(void)expect_started(sock);
		follow(sock, &o);
		assert_int_equal(o.exit.code, 0);
	}
	run_sh(&(struct spec){ .user = "root" }, "id -un", &o);
	assert_string_equal(o.text, "root\n");
}

int cases_user(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_defaults), cmocka_unit_test(test_agent),
		cmocka_unit_test(test_root),     cmocka_unit_test(test_user_beside_root),
		cmocka_unit_test(test_no_root),  cmocka_unit_test(test_other_users),
	};

	return cmocka_run_group_tests_name("user", tests, drive_open, drive_close);
}
