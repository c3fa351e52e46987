/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a zygote's process comes to be: a fork of the warden that makes itself a root of read-only
 * views of the template, network, ipc and host name of its own, becomes a user that owns nothing
 * but the boxes' user namespaces, gives up all capabilities, goes under a filter and a Landlock
 * domain, and executes the template's interpreter. It stays in our pid namespace: only from above
 * can one get into a box's.
 *
 * What it may not be able to do, even taken over: touch a file that is not the template's or in its
 * own /tmp; reach any process by its pid but its own contexts; talk to anybody but us; gain
 * anything by executing.
 */
#include "warden/zygote/zygote.h"

#include "box/breakable.h"
#include "box/setup/dev.h"
#include "sys/landlock.h"
#include "sys/mnt.h"
#include "sys/proc.h"
#include "sys/sock.h"
#include "wire/script.h"
#include "wire/zygote.h"

#include <linux/close_range.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "zygote_filter_data.h"

#define PYTHON "/usr/bin/python3"
#define PROGRAM "/opt/glovebox/kernels/python/zygote.py"
#define PRELOAD_MAX 64
#define CAN_NOT_START 127
#define SCRIPT_ROOM 16384 /* for a script's own variables, in the place of these */
#define ABOVE_FDS 16      /* out of the way of the numbers that are given out */

#define READ_ONLY (MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV)

/* A read-only view of a directory, without what is mounted inside it. */
static int root_view(const char *path, const char *below)
{
	struct mount_attr attr = { .attr_set = READ_ONLY };
	_cleanup_(fd_closep) int fd = -EBADF;
	char whole[PATH_MAX];
	int r;

	if (snprintf(whole, sizeof(whole), "%s%s", path, below) >= (int)sizeof(whole))
		return -ENAMETOOLONG;
	fd = mnt_open_tree(AT_FDCWD, whole, OPEN_TREE_CLONE);
	if (fd < 0)
		return fd;
	r = mnt_setattr(fd, 0, &attr);
	return r < 0 ? r : take_fd(&fd);
}

/* "lib" and its like, as the template has them. */
static int copy_links(const char *root, int to_fd)
{
	static const char *const names[] = { "bin", "sbin", "lib", "lib32", "lib64" };
	_cleanup_(fd_closep) int from_fd = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);

	if (from_fd < 0)
		return -errno;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		char target[64];
		ssize_t n = readlinkat(from_fd, names[i], target, sizeof(target) - 1);

		if (n < 0)
			continue;
		target[n] = '\0';
		if (symlinkat(target, to_fd, names[i]) < 0)
			return -errno;
	}
	return 0;
}

static int make_tmpfs(const char *size, const char *mode)
{
	const struct mnt_option options[] = {
		{ "size", size },
		{ "nr_inodes", "1024" },
		{ "mode", mode },
	};

	return mnt_make("tmpfs", options, ARRAY_SIZE(options),
			MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC);
}

static int fill_root(int root_fd, const int *parts)
{
	static const char *const names[] = { "usr", "etc", "opt", "dev", "tmp" };
	int r = 0;

	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(names); i++) {
		r = mkdirat(root_fd, names[i], 0755) < 0 ? -errno : 0;
		if (r == 0)
			r = mnt_move(parts[i], root_fd, names[i]);
	}
	return r;
}

static int enter_root(int root_fd)
{
	struct mount_attr read_only = { .attr_set = MOUNT_ATTR_RDONLY };
	int r = mnt_setattr(root_fd, 0, &read_only);

	if (r == 0 && fchdir(root_fd) < 0)
		r = -errno;
	if (r == 0)
		r = mnt_pivot_here();
	if (r == 0)
		r = mnt_detach("."); /* the old root lies on top of the new one */
	return r < 0 ? r : chdir("/") < 0 ? -errno : 0;
}

/* SCRIPT_HOME and SCRIPT_FILE in it. */
static int make_script_home(int root_fd)
{
	_cleanup_(fd_closep) int fd = -EBADF;

	_Static_assert(sizeof(SCRIPT_HOME) == sizeof("/home/user"), "made one by one");
	if (mkdirat(root_fd, "home", 0755) < 0 || mkdirat(root_fd, "home/user", 0755) < 0)
		return -errno;
	fd = openat(root_fd, "home/user/" SCRIPT_FILE, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC,
		    0644);
	return fd < 0 ? -errno : 0;
}

static int build_root(const struct template *t, enum warden_zygote kind)
{
	/* All are opened before one of them is covered. */
	const int parts[] = {
		root_view(t->usr ? t->usr : t->root, t->usr ? "" : "/usr"),
		root_view(t->root, "/etc"),
		root_view(t->root, "/opt"),
		devices_make(0, 0),
		make_tmpfs("67108864", "1777"),
	};
	int root_fd = make_tmpfs("1048576", "0755");
	int r = root_fd < 0 ? root_fd : mnt_make_private();

	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(parts); i++)
		r = parts[i] < 0 ? parts[i] : 0;
	if (r == 0) /* somewhere: our view of it is our own */
		r = mnt_move(root_fd, AT_FDCWD, "/usr");
	if (r == 0)
		r = copy_links(t->root, root_fd);
	if (r == 0)
		r = fill_root(root_fd, parts);
	if (r == 0 && kind == ZYGOTE_SCRIPT)
		r = make_script_home(root_fd);
	return r < 0 ? r : enter_root(root_fd);
}

/* A /proc that shows one nothing but oneself, not mounted anywhere. */
static int make_proc(void)
{
	const struct mnt_option options[] = { { "hidepid", "invisible" }, { "subset", "pid" } };

	return mnt_make("proc", options, ARRAY_SIZE(options),
			MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV |
				MOUNT_ATTR_NOEXEC);
}

/* The zygote closes it once it has been of use. */
static int open_own_proc(int proc_fd)
{
	char name[16];
	int fd;

	(void)snprintf(name, sizeof(name), "%d", getpid());
	fd = openat(proc_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

/* Nothing to read, its output to us, the two it knows of, and nothing else. */
static int give_zygote_fds(int sock, int out_fd, int proc_fd)
{
	const int fds[] = { open("/dev/null", O_RDONLY | O_CLOEXEC), out_fd, out_fd, sock,
			    proc_fd };
	int moved[ARRAY_SIZE(fds)];

	_Static_assert(ZYGOTE_SOCK_FD == 3 && ZYGOTE_PROC_FD == 4, "by number");
	for (size_t i = 0; i < ARRAY_SIZE(fds); i++) {
		moved[i] = fcntl(fds[i], F_DUPFD_CLOEXEC, ABOVE_FDS);
		if (moved[i] < 0)
			return -errno;
	}
	for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
		if (dup2(moved[i], (int)i) < 0)
			return -errno;
	return syscall(SYS_close_range, (unsigned)ARRAY_SIZE(fds), ~0U, CLOSE_RANGE_CLOEXEC) < 0 ?
		       -errno :
		       0;
}

static int install_zygote_filter(void)
{
	const struct sock_fprog program = {
		.len = ARRAY_SIZE(zygote_filter_code),
		.filter = (struct sock_filter *)(uintptr_t)zygote_filter_code,
	};

	if (!control_on("zygote-seccomp"))
		return 0;
	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) < 0 ? -errno : 0;
}

/* No user of power, no capability in any set, none to be had. */
static int become_owner(uid_t owner)
{
	const struct payload_user user = {
		.uid = owner,
		.gid = (gid_t)owner,
		.securebits = payload_locked_bits,
	};
	uint64_t bounding;
	int r = payload_bounding_set(&bounding);

	if (r == 0)
		r = payload_become(&user, bounding);
	if (r == 0 && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		r = -errno;
	if (r == 0)
		r = landlock_keep_apart();
	return r == -EOPNOTSUPP ? 0 : r;
}

/* The settings' list of packages, for the kind that has them. */
static void zygote_argv(const struct warden *w, enum warden_zygote kind, char *packages,
			char **argv, size_t size)
{
	static char name_word[] = "python3", isolated[] = "-I", program[] = PROGRAM;
	char *save = NULL;
	size_t n = 0;

	argv[n++] = name_word;
	argv[n++] = isolated;
	argv[n++] = program;
	(void)snprintf(packages, CONFIG_TEXT_SIZE, "%s",
		       kind == WARDEN_ZYGOTE_SCIENCE ? w->config->interpreter_preload : "");
	for (char *name = strtok_r(packages, " ", &save); name && n + 1 < size;
	     name = strtok_r(NULL, " ", &save))
		argv[n++] = name;
	argv[n] = NULL;
}

/* In a breakable build, the controls that contexts are to do without. */
static const char *broken_controls(void)
{
#ifdef GLOVEBOX_BREAKABLE
	static char text[512];

	if (getenv("GLOVEBOX_BREAK"))
		(void)snprintf(text, sizeof(text), "GLOVEBOX_BREAK=%s", getenv("GLOVEBOX_BREAK"));
	return text[0] ? text : NULL;
#else
	return NULL;
#endif
}

static int execute_kernel(const struct warden *w, enum warden_zygote kind)
{
	/* Numeric libraries start threads as soon as they are loaded, if nobody keeps them from
	 * it. */
	const char *const env[] = {
		"PATH=/usr/bin:/bin",     "HOME=/home/user",
		"LANG=C.UTF-8",           "TMPDIR=/tmp",
		"MPLCONFIGDIR=/tmp",      "XDG_CACHE_HOME=/tmp",
		"OPENBLAS_NUM_THREADS=1", "OMP_NUM_THREADS=1",
		"MKL_NUM_THREADS=1",      "NUMEXPR_NUM_THREADS=1",
		broken_controls(),        NULL,
	};
	char packages[CONFIG_TEXT_SIZE];
	char *argv[PRELOAD_MAX + 4];

	zygote_argv(w, kind, packages, argv, ARRAY_SIZE(argv));
	execve(PYTHON, argv, (char *const *)(uintptr_t)env);
	return -errno;
}

/*
 * The zygote that scripts are forked from: the template's Python, started exactly as a run starts
 * it, with its arguments, its variables and its directory, and stopped by a library of ours when it
 * is about to open its script. The script that it sees while it starts is empty; the one that a
 * fork opens is its box's.
 */
static int execute_script(void)
{
	static char room[SCRIPT_ROOM] = "GLOVEBOX_ROOM=";
	/* Those of a run that an interpreter looks at while it starts: see src/zygote/command.c. */
	const char *const env[] = {
		"PATH=" SCRIPT_PATH,
		"HOME=" SCRIPT_HOME,
		"LANG=" SCRIPT_LANG,
		"PYTHONUNBUFFERED=1",
		"LD_PRELOAD=" SCRIPT_LIBRARY,
		room,
		broken_controls(),
		NULL,
	};
	static char program[] = SCRIPT_PROGRAM, file[] = SCRIPT_FILE;
	char *const argv[] = { program, file, NULL };

	memset(room + strlen(room), '.', sizeof(room) - strlen(room) - 1);
	/* Found as the agent finds it: by the PATH that it will have. */
	if (chdir(SCRIPT_HOME) < 0 || setenv("PATH", SCRIPT_PATH, 1) < 0)
		return -errno;
	execvpe(program, argv, (char *const *)(uintptr_t)env);
	return -errno;
}

static _noreturn_ void execute_zygote(const struct warden *w, enum warden_zygote kind)
{
	int r = kind == ZYGOTE_SCRIPT ? execute_script() : execute_kernel(w, kind);

	(void)dprintf(2, "cannot execute python3: %s\n", strerror(-r));
	_exit(r == -ENOENT ? ZYGOTE_EXIT_CANNOT : CAN_NOT_START);
}

/*
 * Between us and a zygote stands its keeper, a process that does nothing but wait. A box does not
 * end before somebody has waited for each of its processes; for contexts that is their zygote, and
 * when it has died, its keeper. It ends with the last of them, as the zygote did.
 */
static _noreturn_ void keep_zygote(pid_t zygote, const sigset_t *signals)
{
	int status = 0, s;
	pid_t pid;

	(void)prctl(PR_SET_NAME, "glovebox-keeper", 0, 0, 0);
	(void)syscall(SYS_close_range, 0, ~0U, 0);
	for (;;) {
		if (sigwaitinfo(signals, NULL) == SIGTERM)
			(void)kill(zygote, SIGKILL);
		while ((pid = waitpid(-1, &s, WNOHANG)) > 0)
			if (pid == zygote)
				status = s;
		if (pid < 0 && errno == ECHILD)
			_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
	}
}

/* When one dies, those below die with it; after the last change of user, which would undo it. */
static int die_with(pid_t parent)
{
	if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0)
		return -errno;
	if (getppid() != parent)
		_exit(0);
	return 0;
}

static int seal_zygote(const struct warden *w)
{
	int r = become_owner(w->host.owner);

	if (r == 0)
		r = die_with(w->pid);
	if (r == 0 && prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) < 0)
		r = -errno;
	if (r == 0 && prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
		r = -errno;
	return r < 0 ? r : install_zygote_filter();
}

/* Returns in the zygote's own process, which is sealed and has its descriptors. */
static int fork_keeper(void)
{
	pid_t keeper = getpid(), pid;
	sigset_t signals, none;

	sigemptyset(&none);
	sigemptyset(&signals);
	sigaddset(&signals, SIGCHLD);
	sigaddset(&signals, SIGTERM);
	if (sigprocmask(SIG_SETMASK, &signals, NULL) < 0)
		return -errno;
	pid = fork();
	if (pid < 0)
		return -errno;
	if (pid > 0)
		keep_zygote(pid, &signals);
	(void)setsid();
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	return die_with(keeper);
}

static _noreturn_ void become_zygote(const struct warden *w, const struct zygote *z, int sock,
				     int out_fd)
{
	int r = build_root(&w->template, z->kind);
	int proc_fd = r < 0 ? r : make_proc();

	(void)setsid();
	(void)umask(022);
	(void)setrlimit(RLIMIT_CORE, &(struct rlimit){ 1, 1 });
	proc_reset_signals();
	if (r == 0)
		r = proc_fd < 0 ? proc_fd : seal_zygote(w);
	if (r == 0)
		r = fork_keeper();
	if (r == 0)
		r = give_zygote_fds(sock, out_fd, open_own_proc(proc_fd));
	if (r == 0)
		execute_zygote(w, z->kind);
	(void)dprintf(out_fd, "cannot start it: %s\n", strerror(-r));
	_exit(CAN_NOT_START);
}

int zygote_spawn(struct warden *w, struct zygote *z)
{
	_cleanup_(fd_closep) int sock = -EBADF;
	_cleanup_(fd_closep) int out_fd = -EBADF;
	int pair[2], out[2];
	pid_t pid;
	int r = sock_pair(pair);

	if (r < 0)
		return r;
	z->sock = pair[0];
	sock = pair[1];
	if (pipe2(out, O_CLOEXEC) < 0)
		return -errno;
	z->out_fd = out[0];
	out_fd = out[1];
	(void)fcntl(z->out_fd, F_SETFL, O_NONBLOCK);
	pid = proc_clone(CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS,
			 w->zygote_cgroup_fd, &z->pidfd);
	if (pid == 0)
		become_zygote(w, z, sock, out_fd);
	return pid < 0 ? (int)pid : 0;
}
