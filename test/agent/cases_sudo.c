/* SPDX-License-Identifier: Apache-2.0 */
/* sudo in a box, and what hostile programs send to its socket. */
#include "drive.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>

static struct outcome o;

static void sudo_is(const char *script, const char *want)
{
	static char both[4096];

	/* One pipe for both streams, so that their order is certain. */
	(void)snprintf(both, sizeof(both), "exec 2>&1; %s", script);
	run_sh(&(struct spec){ 0 }, both, &o);
	assert_string_equal(o.text, want);
}

static void test_sudo(void **state)
{
	(void)state;
	sudo_is("sudo id -u", "0\n");
	sudo_is("sudo grep CapEff /proc/self/status", "CapEff:\t00000000000004fb\n");
	sudo_is("sudo sh -c 'exit 7'; echo $?", "7\n");
	sudo_is("exec 2>/dev/null; sudo sh -c 'kill -TERM $$'; echo $?", "143\n");
	sudo_is("sudo no-such-program; echo $?", "sudo: no-such-program: command not found\n1\n");
	sudo_is("echo in | sudo cat", "in\n");
	sudo_is("sudo sh -c 'echo out; echo err >&2' 2>/dev/null | tr o O", "Out\n");
	sudo_is("cd /tmp; sudo pwd", "/tmp\n");
	sudo_is("sudo -i pwd", "/root\n");
	sudo_is("sudo -i 'a b' 2>&1 | grep -c 'a b'", "1\n");
	sudo_is("sudo -s echo 'x  y' '$HOME;'", "x  y /root;\n");
	sudo_is("sudo sudo id -u", "0\n");
	sudo_is("sudo -v && sudo -k && sudo -n -S true && echo ok", "ok\n");
	sudo_is("sudo touch /etc/made && stat -c %U /etc/made", "root\n");
	run_sh(&(struct spec){ .user = "root" }, "sudo id -u", &o);
	assert_string_equal(o.text, "0\n");
}

static void test_environment(void **state)
{
	(void)state;
	sudo_is("sudo sh -c 'echo $HOME $USER $LOGNAME $SUDO_USER $SUDO_UID'",
		"/root root root user 1000\n");
	sudo_is("A=1 sudo sh -c 'echo [$A]'", "[]\n");
	sudo_is("A=1 sudo -E sh -c 'echo [$A] $HOME'", "[1] /home/user\n");
	sudo_is("A=1 sudo -EH sh -c 'echo [$A] $HOME'", "[1] /root\n");
	sudo_is("A=1 B=2 C=3 sudo --preserve-env=A,C sh -c 'echo [$A$B$C]'", "[13]\n");
	sudo_is("sudo A=1 B='x y' sh -c 'echo [$A$B]'", "[1x y]\n");
	sudo_is("http_proxy=p sudo sh -c 'echo $http_proxy'", "p\n");
	sudo_is("sudo sh -c 'echo $PATH' | cut -d: -f1", "/opt/glovebox/bin\n");
}

static void test_options(void **state)
{
	(void)state;
	sudo_is("sudo -u user id -un", "user\n");
	sudo_is("sudo -u user grep CapBnd /proc/self/status", "CapBnd:\t0000000000000000\n");
	sudo_is("sudo --user=nobody id -un", "nobody\n");
	sudo_is("sudo -u nobody-here id; echo $?", "sudo: unknown user nobody-here\n1\n");
	sudo_is("sudo -- id -u", "0\n");
	sudo_is("sudo ls -d /", "/\n");
	sudo_is("sudo --frobnicate 2>&1 | head -n 1 | grep -c frobnicate", "1\n");
	sudo_is("sudo 2>/dev/null; echo $?", "1\n");
	sudo_is("sudo --help | head -n 1 | cut -d ' ' -f 1", "usage:\n");
	/* 64 KiB in one argument is more than fits. */
	sudo_is("sudo echo $(head -c 70000 /dev/zero | tr '\\0' x) 2>&1 | grep -c 'too long'",
		"1\n");
	sudo_is("sudo echo $(head -c 60000 /dev/zero | tr '\\0' x) | wc -c", "60001\n");
}

/* The signals that sudo gets are the command's; when it is killed, so is the command. */
static void test_signals(void **state)
{
	int sock = sh_start(
		&(struct spec){ 0 },
		"exec sudo sh -c 'trap \"echo caught; exit 9\" TERM; echo up; while :; do sleep 0.1; done'");
	uint32_t pid = expect_started(sock);

	(void)state;
	assert_int_equal(next_frame(sock), WIRE_OUT);
	assert_int_equal(tell(pid, WIRE_TELL_SIGNAL, 15, 0, 0), WIRE_DONE);
	follow(sock, &o);
	assert_non_null(strstr(o.text, "caught\n"));
	assert_int_equal(o.exit.code, 9);

	sock = sh_start(&(struct spec){ 0 }, "sudo sh -c 'echo up; exec sleep 4711'");
	pid = expect_started(sock);
	assert_int_equal(next_frame(sock), WIRE_OUT);
	assert_int_equal(tell(pid, WIRE_TELL_SIGNAL, 9, 0, 0), WIRE_DONE);
	follow(sock, &o);
	run_sh(&(struct spec){ .user = "root" },
	       "for i in $(seq 300); do pgrep -f 'sleep 471[1]' >/dev/null || exit 0; sleep 0.1; done; exit 1",
	       &o);
	assert_int_equal(o.exit.code, 0);
}

/* On a terminal: ^C, job control in a root shell, its own size, the outer one as before afterwards. */
static void test_terminal(void **state)
{
	const struct spec s = { .flags = WIRE_EXEC_PTY, .rows = 30, .cols = 90 };
	int sock = exec_start(&s, (const char *const[]){ "/bin/bash", "-i", NULL });
	uint32_t pid = expect_started(sock);

	(void)state;
	send_input(
		pid,
		"PS1='READY> '; stty -g >/tmp/before; sudo sh -c 'echo go''ing; exec sleep 300'\n");
	await_text(sock, "going\r\n");
	assert_true(quiet(sock, 300));
	send_input(pid, "\003");
	await_text(sock, "READY> ");
	send_input(pid, "echo status $?\n");
	await_text(sock, "status 130\r\n");
	send_input(pid, "sudo bash -i\n");
	await_text(sock, "root@");
	send_input(pid, "PS1='INNER> '; stty size; id -u; tty\n");
	await_text(sock, "30 90\r\n0\r\n");
	assert_int_equal(tell(pid, WIRE_TELL_RESIZE, 0, 40, 100), WIRE_DONE);
	send_input(pid, "until stty size | command grep -x '4[0] 100'; do sleep 0.1; done\n");
	await_text(sock, "40 100\r\n");
	send_input(pid, "sleep 300 & jobs; fg\n");
	await_text(sock, "Running");
	while (!quiet(sock, 300)) /* the shell has to bring it to the front first */
		assert_int_equal(next_frame(sock), WIRE_PTY);
	send_input(pid, "\003");
	await_text(sock, "INNER> ");
	send_input(pid, "echo inner $?\n");
	await_text(sock, "inner 130\r\n");
	send_input(pid, "exit 5\n");
	await_text(sock, "READY> ");
	send_input(pid, "echo outer $?; stty -g | cmp - /tmp/before && echo as before\n");
	await_text(sock, "outer 5\r\n");
	await_text(sock, "as before\r\n");
	send_input(pid, "exit\n");
	follow(sock, &o);
}

/* Everything in one Python program, because it has to run in the box. */
static const char hostile[] =
	"import array, os, random, socket, struct, sys\n"
	"def conn():\n"
	"    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)\n"
	"    s.connect('/run/glovebox/sudo.sock')\n"
	"    s.settimeout(20)\n"
	"    return s\n"
	"def frame(kind, data=b''):\n"
	"    return struct.pack('=HHI', kind, 0, 8 + len(data)) + data\n"
	"def send(s, data, fds=()):\n"
	"    anc = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array('i', fds))] if fds else []\n"
	"    try: s.sendmsg([data], anc)\n"
	"    except OSError: pass\n"
	"def answer(s):\n"
	"    try: d = s.recv(65536)\n"
	"    except OSError: return 0\n"
	"    return struct.unpack('=H', d[:2])[0] if len(d) >= 8 else 0\n"
	"SUDO, SIGNAL, USER, ARG, GO, ENV, EXEC = 50, 51, 16, 11, 13, 12, 1\n"
	"ok = frame(SUDO, bytes(8))\n"
	"null = os.open('/dev/null', os.O_RDWR)\n"
	"three = [null] * 3\n"
	"def refused(*packets):\n"
	"    s = conn()\n"
	"    for p in packets: send(s, *p)\n"
	"    kind = answer(s)\n"
	"    if kind == 20: sys.exit('started: %r' % (packets,))\n"
	"refused((b'',)), refused((b'x',)), refused((b'x' * 70000,))\n"
	"refused((ok, three[:2])), refused((ok, three + [null])), refused((ok, [null] * 8))\n"
	"refused((frame(EXEC, bytes(80)), three)), refused((frame(GO), three))\n"
	"refused((frame(SUDO, struct.pack('=II', 2, 0)), three))\n"
	"refused((frame(SUDO, struct.pack('=II', 0, 1)), three))\n"
	"refused((ok, three), (frame(GO),))\n"
	"refused((ok, three), (frame(USER, b'root'),), (frame(GO),))\n"
	"refused((ok, three), (frame(USER, b'r' * 33),), (frame(ARG, b'id'),), (frame(GO),))\n"
	"refused((ok, three), (frame(USER, b'ro\\0ot'),), (frame(ARG, b'id'),), (frame(GO),))\n"
	"refused((ok, three), (frame(ARG, b'id'),), (frame(GO),))\n"
	"refused((ok, three), (frame(USER, b'root'),), (frame(ARG, b'id'), [null]), (frame(GO),))\n"
	"refused((ok, three), (frame(USER, b'root'),), (frame(ENV, b'=x'),), (frame(ARG, b'id'),), (frame(GO),))\n"
	"s = conn(); send(s, ok, three); send(s, frame(USER, b'root'))\n"
	"for i in range(5000): send(s, frame(ARG, b'x'))\n"
	"send(s, frame(GO))\n"
	"if answer(s) == 20: sys.exit('5000 arguments')\n"
	"# A terminal that is none.\n"
	"refused((frame(SUDO, struct.pack('=II', 1, 0)), three), (frame(USER, b'root'),), (frame(ARG, b'id'),), (frame(GO),))\n"
	"# Nonsense instead of a signal ends the command.\n"
	"s = conn(); send(s, ok, three); send(s, frame(USER, b'root'))\n"
	"for a in (b'sleep', b'4712'): send(s, frame(ARG, a))\n"
	"send(s, frame(ENV, b'PATH=/usr/bin')); send(s, frame(GO))\n"
	"if answer(s) != 20: sys.exit('an honest one was refused')\n"
	"send(s, frame(SIGNAL, struct.pack('=II', 99, 0)))\n"
	"if answer(s) != 24: sys.exit('no exit after nonsense')\n"
	"random.seed(7)\n"
	"for i in range(300):\n"
	"    s = conn()\n"
	"    for k in range(random.randrange(5)):\n"
	"        kind = random.choice([SUDO, SIGNAL, USER, ARG, GO, ENV, 10, 17, 14, 0, 65535])\n"
	"        data = random.randbytes(random.choice([0, 1, 4, 8, 32, 33, 500]))\n"
	"        send(s, random.choice([frame(kind, data), data, ok]), random.choice([three, three, (), [null]]))\n"
	"# As many as there may be say nothing; the next one is told so at once, and it is over when they go.\n"
	"idle = []\n"
	"for i in range(5): # those of before may still be on their way out\n"
	"    idle += [conn() for i in range(40)]\n"
	"    if os.system('sudo true 2>/dev/null') != 0: sys.exit(0)\n"
	"sys.exit('no bound')\n";

static void test_hostile(void **state)
{
	const char *const argv[] = { "/usr/bin/python3", "-c", hostile, NULL };
	int sock = exec_start(&(struct spec){ 0 }, argv);

	(void)state;
	(void)expect_started(sock);
	follow(sock, &o);
	if (o.exit.code != 0)
		fail_msg("%s", o.text);
	run_sh(&(struct spec){ 0 },
	       "for i in $(seq 100); do sudo true 2>/dev/null && ! pgrep -f 'sleep 471[2]' >/dev/null && break;"
	       " sleep 0.1; done; sudo id -u; pgrep -f 'sleep 471[2]'",
	       &o);
	assert_string_equal(o.text, "0\n");
	/* Other users may connect and are told no. */
	run_sh(&(struct spec){ .user = "nobody" }, "sudo id -u", &o);
	assert_string_equal(o.text, "sudo: this user may not use sudo\n");
}

/* The number that the agent's next descriptor would have. */
static rlim_t agents_next_fd(void)
{
	char path[64];
	rlim_t n = 0;

	do
		(void)snprintf(path, sizeof(path), "/proc/%d/fd/%llu", box.pid,
			       (unsigned long long)n++);
	while (faccessat(AT_FDCWD, path, F_OK, AT_SYMLINK_NOFOLLOW) == 0);
	return n - 1;
}

/* While the agent can take no descriptor, sudo waits; then it goes on. */
static void test_no_descriptor(void **state)
{
	int sock = sh_start(&(struct spec){ 0 }, "while sudo true; do echo on; done; exit 1");
	struct rlimit before, now;

	(void)state;
	(void)expect_started(sock);
	assert_int_equal(next_frame(sock), WIRE_OUT);
	assert_int_equal(prlimit(box.pid, RLIMIT_NOFILE, NULL, &before), 0);
	now = before;
	do {
		now.rlim_cur = agents_next_fd();
		assert_int_equal(prlimit(box.pid, RLIMIT_NOFILE, &now, NULL), 0);
		while (!quiet(sock, 200))
			assert_int_equal(next_frame(sock), WIRE_OUT);
	} while (agents_next_fd() < now.rlim_cur);
	assert_int_equal(prlimit(box.pid, RLIMIT_NOFILE, &before, NULL), 0);
	assert_int_equal(next_frame(sock), WIRE_OUT);
	fd_close(sock);
	run_sh(&(struct spec){ 0 }, "pkill -f 'while sudo tru[e]'; sudo id -u", &o);
	assert_string_equal(o.text, "0\n");
}

int cases_sudo(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sudo),          cmocka_unit_test(test_environment),
		cmocka_unit_test(test_options),       cmocka_unit_test(test_signals),
		cmocka_unit_test(test_terminal),      cmocka_unit_test(test_hostile),
		cmocka_unit_test(test_no_descriptor),
	};

	return cmocka_run_group_tests_name("sudo", tests, drive_open, drive_close);
}
