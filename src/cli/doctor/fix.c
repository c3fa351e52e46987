/* SPDX-License-Identifier: Apache-2.0 */
/*
 * doctor --fix. Changes only what keeps boxes from running and can be taken back by removing one
 * file or one line; settings that merely harden the host stay its owner's business. What is fine
 * already is not touched, so a second run changes nothing.
 */
#include "base/buf.h"
#include "cli/doctor/doctor.h"
#include "sys/user.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/wait.h>

#define SYSCTL_DIR "/etc/sysctl.d"
#define SYSCTL_NAME "60-glovebox.conf"
#define SYSCTL_FILE_MAX ((size_t)64 << 10)

static const struct fix_sysctl {
	const char *name;
	uint64_t min, max; /* values that are fine */
	const char *want;
	bool for_users; /* fine too when ordinary users get along regardless */
} sysctls[] = {
	{ "user.max_user_namespaces", 1, UINT64_MAX, "65536", false },
	{ "kernel.unprivileged_userns_clone", 1, UINT64_MAX, "1", true },
	{ "kernel.apparmor_restrict_unprivileged_userns", 0, 0, "0", true },
	{ "vm.memfd_noexec", 0, 1, "1", false },
};

static bool sysctl_is_fine(const struct doctor *d, const struct fix_sysctl *s)
{
	uint64_t now;

	if (doctor_sysctl(s->name, &now) < 0 || (now >= s->min && now <= s->max))
		return true;
	return s->for_users && doctor_probe_unprivileged(d) == 0;
}

static int write_all(int fd, const char *text, size_t len)
{
	ssize_t n = write(fd, text, len);

	return n < 0 ? -errno : (size_t)n == len ? 0 : -EIO;
}

static int sysctl_apply(const struct fix_sysctl *s)
{
	char path[128] = "/proc/sys/";
	size_t len = strlen(path);

	(void)snprintf(path + len, sizeof(path) - len, "%s", s->name);
	for (char *p = path; (p = strchr(p, '.'));)
		*p = '/';
	return doctor_write(path, s->want);
}

/* The file's lines without the one for this name. */
static int sysctl_keep_others(int dir_fd, const struct fix_sysctl *s, struct buf *out)
{
	_cleanup_(fd_closep) int fd = openat(dir_fd, SYSCTL_NAME, O_RDONLY | O_CLOEXEC);
	_cleanup_(buf_done) struct buf old = BUF_INIT(SYSCTL_FILE_MAX);
	int r = 0;

	if (fd < 0)
		return errno == ENOENT ? 0 : -errno;
	r = buf_read_fd(&old, fd);
	for (char *line = (char *)old.data; r == 0 && *line;) {
		size_t len = strcspn(line, "\n"), name = strlen(s->name);
		bool same = !strncmp(line, s->name, name) &&
			    (line[name] == ' ' || line[name] == '=');

		len += line[len] == '\n';
		if (!same)
			r = buf_add(out, line, len);
		line += len;
	}
	return r;
}

/* Written beside and renamed, so that a boot in between finds the old file or the new one. */
static int sysctl_store(const struct fix_sysctl *s)
{
	_cleanup_(fd_closep) int dir_fd = -EBADF;
	_cleanup_(fd_closep) int fd = -EBADF;
	_cleanup_(buf_done) struct buf text = BUF_INIT(SYSCTL_FILE_MAX + 256);
	char line[128];
	int r;

	if (mkdir(SYSCTL_DIR, 0755) < 0 && errno != EEXIST)
		return -errno;
	dir_fd = open(SYSCTL_DIR, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir_fd < 0)
		return -errno;
	r = sysctl_keep_others(dir_fd, s, &text);
	if (r == 0 && text.len == 0)
		r = buf_add(&text, "# Written by glovebox doctor --fix.\n", 36);
	(void)snprintf(line, sizeof(line), "%s = %s\n", s->name, s->want);
	if (r == 0)
		r = buf_add(&text, line, strlen(line));
	if (r < 0)
		return r;
	fd = openat(dir_fd, "." SYSCTL_NAME ".new",
		    O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0644);
	if (fd < 0)
		return -errno;
	r = write_all(fd, (const char *)text.data, text.len);
	if (r == 0 &&
	    (fsync(fd) < 0 || renameat(dir_fd, "." SYSCTL_NAME ".new", dir_fd, SYSCTL_NAME) < 0))
		r = -errno;
	if (r < 0)
		(void)unlinkat(dir_fd, "." SYSCTL_NAME ".new", 0);
	return r;
}

/* Adds a change to the list; it is done when r is 0 and somebody with the right to did it. */
static int note_change(json_t *list, bool tried, int r, const char *command, const char *change)
{
	json_t *c = json_pack("{ss ss sb ss}", "change", change, "command", command, "done",
			      tried && r == 0, "error", tried && r < 0 ? strerror(-r) : "");

	return c && json_array_append_new(list, c) == 0 ? 0 : -ENOMEM;
}

static int fix_sysctls(const struct doctor *d, json_t *list)
{
	for (size_t i = 0; i < ARRAY_SIZE(sysctls); i++) {
		const struct fix_sysctl *s = &sysctls[i];
		char command[128], change[192];
		int r = 0;

		if (sysctl_is_fine(d, s))
			continue;
		(void)snprintf(command, sizeof(command), "sysctl -w %s=%s", s->name, s->want);
		(void)snprintf(change, sizeof(change),
			       "set %s = %s, now and in " SYSCTL_DIR "/" SYSCTL_NAME, s->name,
			       s->want);
		if (d->root)
			r = sysctl_apply(s);
		if (d->root && r == 0)
			r = sysctl_store(s);
		if (note_change(list, d->root, r, command, change) < 0)
			return -ENOMEM;
	}
	return 0;
}

/* The command is ours and has no quoting in it, so it is split on blanks. */
static int run_command(const char *command)
{
	char text[256], *argv[16], *save = NULL;
	size_t n = 0;
	pid_t pid;
	int status;

	(void)snprintf(text, sizeof(text), "%s", command);
	for (char *word = strtok_r(text, " ", &save); word && n + 1 < ARRAY_SIZE(argv);
	     word = strtok_r(NULL, " ", &save))
		argv[n++] = word;
	argv[n] = NULL;
	if (n == 0)
		return -EINVAL;
	pid = fork();
	if (pid < 0)
		return -errno;
	if (pid == 0) {
		char *env[] = { (char[]){ "PATH=/usr/sbin:/usr/bin:/sbin:/bin" }, NULL };

		(void)dup2(STDERR_FILENO, STDOUT_FILENO); /* ours may have to be JSON */
		(void)execvpe(argv[0], argv, env);
		_exit(127);
	}
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return -errno;
	if (WIFEXITED(status) && WEXITSTATUS(status) == 127)
		return -ENOENT;
	return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : -EIO;
}

/* For the user behind sudo, or the one we are. */
static int fix_subids(const struct doctor *d, json_t *list)
{
	const char *sudo_user = getenv("SUDO_USER");
	const struct passwd *pw = !d->root  ? user_by_id(geteuid()) :
				  sudo_user ? user_by_name(sudo_user) :
					      NULL;
	char command[256], change[288];
	int r;

	if (!pw || pw->pw_uid == 0 || strchr(pw->pw_name, ' '))
		return 0;
	r = doctor_subids_command(pw->pw_name, pw->pw_uid, command, sizeof(command));
	if (r < 0 || !*command)
		return 0;
	(void)snprintf(change, sizeof(change), "gave %s ids for boxes: %s", pw->pw_name, command);
	if (d->root)
		r = run_command(command);
	return note_change(list, d->root, r, command, change);
}

static bool is_cgroup(const char *dir)
{
	struct statfs fs;

	return statfs(dir, &fs) == 0 &&
	       (fs.f_type == CGROUP_SUPER_MAGIC || fs.f_type == CGROUP2_SUPER_MAGIC);
}

/* What every box of root hangs from; the first box would make it too. */
static int fix_cgroups(const struct doctor *d, json_t *list)
{
	static const char *const dirs[] = {
		"/sys/fs/cgroup",     "/sys/fs/cgroup/memory",  "/sys/fs/cgroup/pids",
		"/sys/fs/cgroup/cpu", "/sys/fs/cgroup/cpuacct", "/sys/fs/cgroup/unified",
	};

	for (size_t i = 0; d->root && i < ARRAY_SIZE(dirs); i++) {
		char path[64], command[80], change[80];
		int r;

		(void)snprintf(path, sizeof(path), "%s/glovebox", dirs[i]);
		if (!is_cgroup(dirs[i]) || access(path, F_OK) == 0)
			continue;
		r = mkdir(path, 0755) < 0 ? -errno : 0;
		(void)snprintf(command, sizeof(command), "mkdir %s", path);
		(void)snprintf(change, sizeof(change), "made %s", path);
		if (note_change(list, true, r, command, change) < 0)
			return -ENOMEM;
		if (i == 0)
			break; /* version 2 has one tree; what is below are cgroups, not trees */
	}
	return 0;
}

int doctor_fix(const struct doctor *d, json_t **ret_changes)
{
	json_t *list = json_array();
	int r = list ? fix_sysctls(d, list) : -ENOMEM;

	if (r == 0)
		r = fix_subids(d, list);
	if (r == 0)
		r = fix_cgroups(d, list);
	if (r < 0) {
		json_decref(list);
		return r;
	}
	*ret_changes = list;
	return 0;
}
