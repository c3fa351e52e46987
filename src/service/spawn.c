/* SPDX-License-Identifier: Apache-2.0 */
#include "service/spawn.h"

#include "base/termsafe.h"
#include "service/program.h"
#include "sys/proc.h"

#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <linux/capability.h>
#include <linux/close_range.h>
#include <linux/securebits.h>
#include <stdarg.h>
#include <sys/prctl.h>
#include <sys/stat.h>

#define ABOVE_FDS 16 /* out of the way of the numbers that are given out */

_Static_assert(SPAWN_FIRST_FD + SPAWN_FDS_MAX <= ABOVE_FDS, "they are out of the way");

static void _printf_(1, 2) say(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	termsafe_say(fmt, args);
	va_end(args);
}

int spawn_find(const char *dir, const char *name, const char *path, int *ret_fd, struct fail *fail)
{
	char found[PATH_MAX];
	int fd, r = path ? 0 : program_find(dir, name, found, sizeof(found));

	if (r < 0)
		return fail_set(fail, -r, dir,
				"there is no %s beside this program; is glovebox installed "
				"completely?",
				name);
	fd = open(path ? path : found, O_PATH | O_CLOEXEC);
	if (fd < 0)
		return fail_set(fail, errno, dir, "cannot use %.100s as the %s: %s",
				path ? path : found, dir, strerror(errno));
	*ret_fd = fd;
	return 0;
}

/* Puts the descriptors at their numbers; everything else closes with exec. */
static int give_fds(const struct spawn *s)
{
	int moved[SPAWN_FDS_MAX];

	if (s->n_fds > SPAWN_FDS_MAX)
		return -EINVAL;
	for (size_t i = 0; i < s->n_fds; i++) {
		moved[i] = s->fds[i] < 0 ? -EBADF : fcntl(s->fds[i], F_DUPFD_CLOEXEC, ABOVE_FDS);
		if (s->fds[i] >= 0 && moved[i] < 0)
			return -errno;
	}
	for (size_t i = 0; i < s->n_fds; i++)
		if (moved[i] >= 0 && dup2(moved[i], SPAWN_FIRST_FD + (int)i) < 0)
			return -errno;
	for (size_t i = 0; i < s->n_fds; i++)
		if (moved[i] < 0)
			(void)close(SPAWN_FIRST_FD + (int)i);
	return syscall(SYS_close_range, SPAWN_FIRST_FD + (unsigned)s->n_fds, ~0U,
		       CLOSE_RANGE_CLOEXEC) < 0 ?
		       -errno :
		       0;
}

static int be_silent(void)
{
	int fd = open("/dev/null", O_RDWR | O_CLOEXEC | O_NOCTTY);

	return fd < 0 || dup2(fd, STDIN_FILENO) < 0 || dup2(fd, STDOUT_FILENO) < 0 ? -errno : 0;
}

static int drop_bounding_set(void)
{
	for (unsigned long cap = 0; cap <= 63; cap++)
		if (prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) < 0)
			return errno == EINVAL && cap > CAP_SETFCAP ? 0 : -errno; /* the last one */
	return 0;
}

/* No user of power, no capability in any set, none to be had (AP-18). */
static int drop_privileges(uid_t uid, gid_t gid)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct none[2] = { 0 };
	const unsigned long bits = SECBIT_NOROOT | SECBIT_NOROOT_LOCKED |
				   SECBIT_NO_SETUID_FIXUP_LOCKED | SECBIT_KEEP_CAPS_LOCKED |
				   SECBIT_NO_CAP_AMBIENT_RAISE | SECBIT_NO_CAP_AMBIENT_RAISE_LOCKED;
	int r = 0;

	if (geteuid() == 0) {
		if (uid == 0 || gid == 0)
			return -EPERM;
		if (prctl(PR_SET_SECUREBITS, bits, 0, 0, 0) < 0)
			return -errno;
		r = drop_bounding_set();
		if (r == 0 && (setgroups(0, NULL) < 0 || setresgid(gid, gid, gid) < 0 ||
			       setresuid(uid, uid, uid) < 0))
			r = -errno;
	}
	if (r == 0 && syscall(SYS_capset, &head, none) < 0)
		r = -errno;
	if (r == 0 && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		r = -errno;
	return r;
}

static void reset_signals(void)
{
	sigset_t none;

	sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	(void)sigaction(SIGPIPE, &(struct sigaction){ .sa_handler = SIG_DFL }, NULL);
}

/* As many as there may be; fewer only mean fewer connections. */
static void raise_descriptors(rlim_t want)
{
	struct rlimit now, more;

	if (want == 0 || getrlimit(RLIMIT_NOFILE, &now) < 0)
		return;
	want = MAX(want, now.rlim_cur);
	more = (struct rlimit){ .rlim_cur = want, .rlim_max = MAX(want, now.rlim_max) };
	if (setrlimit(RLIMIT_NOFILE, &more) == 0)
		return;
	now.rlim_cur = MIN(want, now.rlim_max);
	(void)setrlimit(RLIMIT_NOFILE, &now);
}

static _noreturn_ void become(const struct spawn *s, pid_t parent)
{
	int program_fd = fcntl(s->program_fd, F_DUPFD_CLOEXEC, ABOVE_FDS);
	int r = program_fd < 0 ? -errno : give_fds(s);

	reset_signals();
	(void)setsid();
	(void)umask(077);
	(void)setrlimit(RLIMIT_CORE, &(struct rlimit){ 0 });
	raise_descriptors(s->descriptors);
	if (r == 0 && s->silent)
		r = be_silent();
	if (r == 0 && chdir("/") < 0)
		r = -errno;
	if (r == 0)
		r = drop_privileges(s->uid, s->gid);
	/* After the last change of user, which would undo it. */
	if (r == 0 && prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0)
		r = -errno;
	if (r == 0 && getppid() != parent)
		_exit(0);
	if (r == 0) {
		(void)syscall(SYS_execveat, program_fd, "", s->argv, s->env, AT_EMPTY_PATH);
		r = -errno;
	}
	say("cannot start %s: %s", s->name, strerror(-r));
	_exit(SPAWN_CAN_NOT_START);
}

int spawn_room(const struct spawn *s, pid_t *ret_pid, int *ret_pidfd, struct fail *fail)
{
	pid_t parent = getpid(), pid;
	int pidfd = -EBADF;

	pid = proc_clone(0, -EBADF, &pidfd);
	if (pid == 0)
		become(s, parent);
	if (pid < 0)
		return fail_set(fail, -pid, "start", "cannot start %s: %s", s->name,
				strerror(-pid));
	*ret_pid = pid;
	*ret_pidfd = pidfd;
	return 0;
}
