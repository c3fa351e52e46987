/* SPDX-License-Identifier: Apache-2.0 */
/* The zygote's loop, when its children end faster than it can wait for them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "sys/sock.h"
#include "wire/zygote.h"
#include "zygote/zygote.h"
#include "zygote/zygote_priv.h"

#define ENDLESS 100000
#define BETWEEN_ORDERS 64
#define ORDERS 3

static long n_waited;

int __wrap_waitid(idtype_t type, id_t id, siginfo_t *info, int options);
int __real_waitid(idtype_t type, id_t id, siginfo_t *info, int options);

/* There is always one more. */
int __wrap_waitid(idtype_t type, id_t id, siginfo_t *info, int options)
{
	if (type != P_ALL)
		return __real_waitid(type, id, info, options);
	if (++n_waited == ENDLESS)
		_exit(2);
	info->si_pid = 1;
	info->si_code = CLD_EXITED;
	return 0;
}

int __wrap_signalfd(int fd, const sigset_t *mask, int flags);
int __real_signalfd(int fd, const sigset_t *mask, int flags);

/* Somebody ends when the loop begins. */
int __wrap_signalfd(int fd, const sigset_t *mask, int flags)
{
	if (raise(SIGCHLD) != 0)
		_exit(7);
	return __real_signalfd(fd, mask, flags);
}

/* No order here is one that is obeyed. */
bool zygote_walk(struct walk *w)
{
	(void)w;
	_exit(3);
}

static _noreturn_ void serve(int sock)
{
	struct sigaction chld;

	if (zygote_serve(sock) != 1)
		_exit(4);
	/* A context that stops and goes on all the time does not wake anybody. */
	if (sigaction(SIGCHLD, NULL, &chld) < 0 || !(chld.sa_flags & SA_NOCLDSTOP))
		_exit(5);
	_exit(n_waited > 0 && n_waited <= (ORDERS + 1) * BETWEEN_ORDERS ? 0 : 6);
}

static void heard(int sock, uint32_t what)
{
	struct zygote_said said;

	assert_int_equal(sock_recv(sock, &said, sizeof(said), NULL, NULL), sizeof(said));
	assert_int_equal(said.what, what);
}

static void test_orders_between_ends(void **state)
{
	int pair[2], status;
	pid_t pid;

	(void)state;
	assert_int_equal(sock_pair(pair), 0);
	for (int i = 0; i < ORDERS; i++)
		assert_int_equal(send(pair[0], "nonsense", 8, MSG_NOSIGNAL), 8);
	assert_int_equal(shutdown(pair[0], SHUT_WR), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0)
		serve(pair[1]);
	assert_int_equal(close(pair[1]), 0);
	heard(pair[0], ZYGOTE_READY);
	for (int i = 0; i < ORDERS; i++)
		heard(pair[0], ZYGOTE_FAILED);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	assert_int_equal(close(pair[0]), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_orders_between_ends),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
