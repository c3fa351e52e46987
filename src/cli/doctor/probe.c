/* SPDX-License-Identifier: Apache-2.0 */
/* Trying things out where they can do no harm: in a child, in namespaces of its own. */
#include "base/parse.h"
#include "cli/doctor/doctor.h"
#include "sys/mnt.h"
#include "sys/proc.h"
#include "sys/user.h"

#include <grp.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/wait.h>

int doctor_write(const char *path, const char *text)
{
	_cleanup_(fd_closep) int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	return write(fd, text, strlen(text)) == (ssize_t)strlen(text) ? 0 : -errno;
}

/* Every user may map the own id, so this needs neither root nor newuidmap. */
static int become_root(uid_t uid, gid_t gid)
{
	char uid_map[32], gid_map[32];
	int r;

	(void)snprintf(uid_map, sizeof(uid_map), "0 %u 1\n", uid);
	(void)snprintf(gid_map, sizeof(gid_map), "0 %u 1\n", gid);
	r = doctor_write("/proc/self/setgroups", "deny");
	if (r == 0)
		r = doctor_write("/proc/self/gid_map", gid_map);
	if (r == 0)
		r = doctor_write("/proc/self/uid_map", uid_map);
	return r;
}

/* An errno fits in an exit status. */
static int wait_errno(pid_t pid)
{
	int status;

	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return -errno;
	return WIFEXITED(status) ? -WEXITSTATUS(status) : -ECHILD;
}

int doctor_probe(uint64_t namespaces, int (*attempt)(void))
{
	_cleanup_(fd_closep) int pidfd = -EBADF;
	uid_t uid = geteuid();
	gid_t gid = getegid();
	pid_t pid = proc_clone(namespaces, -EBADF, &pidfd);
	int r = 0;

	if (pid < 0)
		return pid;
	if (pid > 0)
		return wait_errno(pid);
	pidfd = -EBADF; /* the parent's */
	if (namespaces & CLONE_NEWUSER)
		r = become_root(uid, gid);
	if (r == 0 && (namespaces & CLONE_NEWNS))
		r = mnt_make_private();
	if (r == 0)
		r = attempt();
	_exit(-r);
}

int doctor_probe_as(uid_t uid, gid_t gid, uint64_t namespaces, int (*attempt)(void))
{
	pid_t pid = fork();

	if (pid < 0)
		return -errno;
	if (pid > 0)
		return wait_errno(pid);
	if (setgroups(0, NULL) < 0 || setresgid(gid, gid, gid) < 0 || setresuid(uid, uid, uid) < 0)
		_exit(errno);
	/* A process that changed its ids does not own its files in /proc until it is dumpable
	 * again. */
	if (prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) < 0)
		_exit(errno);
	_exit(-doctor_probe(namespaces, attempt));
}

int doctor_try_nothing(void)
{
	return 0;
}

int doctor_try_tmpfs(void)
{
	_cleanup_(fd_closep) int fs_fd = mnt_fsopen("tmpfs");
	_cleanup_(fd_closep) int mount_fd = -EBADF;
	int r = fs_fd < 0 ? fs_fd : mnt_fsconfig_create(fs_fd);

	if (r < 0)
		return r;
	mount_fd = mnt_fsmount(fs_fd, MOUNT_ATTR_NOSUID);
	return mount_fd < 0 ? mount_fd : 0;
}

int doctor_probe_unprivileged(const struct doctor *d)
{
	const char *name = getenv("SUDO_USER");
	const struct passwd *pw = name ? user_by_name(name) : NULL;

	if (!d->root)
		return doctor_probe(CLONE_NEWUSER | CLONE_NEWNS, doctor_try_tmpfs);
	if (pw && pw->pw_uid != 0)
		return doctor_probe_as(pw->pw_uid, pw->pw_gid, CLONE_NEWUSER | CLONE_NEWNS,
				       doctor_try_tmpfs);
	pw = user_by_name("nobody");
	return doctor_probe_as(pw ? pw->pw_uid : 65534, pw ? pw->pw_gid : 65534,
			       CLONE_NEWUSER | CLONE_NEWNS, doctor_try_tmpfs);
}

int doctor_sysctl_text(const char *name, char *ret, size_t size)
{
	_cleanup_(fd_closep) int fd = -EBADF;
	char path[128];
	ssize_t n;

	if (snprintf(path, sizeof(path), "/proc/sys/%s", name) >= (int)sizeof(path))
		return -ENAMETOOLONG;
	for (char *p = path; (p = strchr(p, '.'));)
		*p = '/';
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	n = read(fd, ret, size - 1);
	if (n < 0)
		return -errno;
	ret[n] = '\0';
	ret[strcspn(ret, "\n")] = '\0';
	return 0;
}

int doctor_sysctl(const char *name, uint64_t *ret)
{
	char text[32];
	int r = doctor_sysctl_text(name, text, sizeof(text));

	return r < 0 ? r : parse_u64(text, ret);
}
