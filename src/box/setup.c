/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation. The child starts in fresh user, mount, pid, net, ipc and uts namespaces and
 * waits until its ids are mapped. Then it builds the box's tree in this order:
 *
 *	scratch   a tmpfs with a byte and an inode limit; everything writable lives on it
 *	root      overlay: the template's layer below, scratch/up above
 *	/usr      a second overlay when the template borrows the host's /usr
 *	/proc     a new procfs for the new pid namespace, masked, /proc/sys read-only
 *	/dev      a directory of scratch with six device nodes, devpts, shm
 *
 * All of it is attached by descriptor below directories that were made a moment ago and that no
 * foreign instruction has seen. Directories that mounts go onto are created in the upper layer, so a
 * template in which /proc or /dev is a symbolic link cannot lead them elsewhere (FS-13). Then the
 * root is changed, the old one detached, the process sealed and the agent executed.
 *
 * No malloc, no stdio, no return: every failure is reported as the step and the errno.
 */
#include "box/setup.h"

#include "base/clock.h"
#include "box/breakable.h"
#include "box/filter.h"
#include "box/ids.h"
#include "sys/landlock.h"
#include "sys/mnt.h"
#include "sys/netns.h"
#include "sys/proc.h"
#include "sys/sock.h"

#include <linux/capability.h>
#include <linux/keyctl.h>
#include <poll.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#define BOX_HOSTNAME "glovebox"
#define MACHINE_BOOT_ID "00000000-0000-4000-8000-000000000000\n"
#define OWN_INODES 128 /* directories, devices and work files that are ours, not the payload's */

struct state {
	const struct setup *setup;
	int sock;
	int layer_fd[SETUP_LAYERS_MAX];
	int scratch_fd;
	int root_fd; /* the new root, before and after the pivot */
	int proc_fd;
	int sys_user_fd;
	int dev_fd;
	int agent_fd;
	int control_fd;
	struct setup_report report;
};

/* Makes a mount from a file system type and its options ("key", "value" pairs; a NULL value is a
 * flag). */
struct option {
	const char *key;
	const char *value;
};

static int make_mount(const char *type, const struct option *options, size_t n, unsigned attrs)
{
	_cleanup_(fd_closep) int fs_fd = mnt_fsopen(type);
	int r;

	if (fs_fd < 0)
		return fs_fd;
	for (size_t i = 0; i < n; i++) {
		r = options[i].value ? mnt_fsconfig_string(fs_fd, options[i].key, options[i].value) :
				       mnt_fsconfig_flag(fs_fd, options[i].key);
		if (r < 0)
			return r;
	}
	r = mnt_fsconfig_create(fs_fd);
	return r < 0 ? r : mnt_fsmount(fs_fd, attrs);
}

/* The umask is 0 here. */
static int make_dir(int dir_fd, const char *name, mode_t mode)
{
	return mkdirat(dir_fd, name, mode) < 0 ? -errno : 0;
}

static int make_file(int dir_fd, const char *name, mode_t mode, const char *text)
{
	_cleanup_(fd_closep) int fd =
		openat(dir_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);

	if (fd < 0)
		return -errno;
	return write(fd, text, strlen(text)) == (ssize_t)strlen(text) ? 0 : -errno;
}

/* A second view of something that is mounted in this namespace, with further attributes. */
static int clone_mount(int dir_fd, const char *path, uint64_t attrs)
{
	struct mount_attr attr = { .attr_set = attrs };
	_cleanup_(fd_closep) int fd = mnt_open_tree(
		dir_fd, path, OPEN_TREE_CLONE | (*path ? 0u : (unsigned)AT_EMPTY_PATH));
	int r;

	if (fd < 0)
		return fd;
	r = attrs ? mnt_setattr(fd, 0, &attr) : 0;
	return r < 0 ? r : take_fd(&fd);
}

static int clone_onto(int from_fd, const char *from, uint64_t attrs, int to_fd, const char *to)
{
	_cleanup_(fd_closep) int fd = clone_mount(from_fd, from, attrs);

	return fd < 0 ? fd : mnt_move(fd, to_fd, to);
}

static int step_go(struct state *s)
{
	size_t n_fds = SETUP_LAYERS_MAX;
	char go;
	ssize_t n = sock_recv(s->sock, &go, sizeof(go), s->layer_fd, &n_fds);

	if (n < 0)
		return (int)n;
	if (n == 0)
		return -ECANCELED;
	if (s->setup->layers_follow && n_fds != s->setup->n_layers)
		return -EPROTO;
	return 0;
}

static int step_layers(struct state *s)
{
	if (s->setup->layers_follow) {
		s->report.features |= SETUP_HAS_IDMAP;
		return 0;
	}
	for (size_t i = 0; i < s->setup->n_layers; i++) {
		s->layer_fd[i] = clone_mount(AT_FDCWD, s->setup->layer_path[i],
					     MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID |
						     MOUNT_ATTR_NODEV);
		if (s->layer_fd[i] < 0)
			return s->layer_fd[i];
	}
	return 0;
}

static int step_become(struct state *s)
{
	uid_t id = s->setup->single_id ? IDS_BOX_USER : 0;
	struct pollfd hangup = { .fd = s->sock };

	if (!s->setup->single_id && syscall(SYS_setgroups, 0, NULL) < 0)
		return -errno;
	if (setresgid(id, id, id) < 0 || setresuid(id, id, id) < 0)
		return -errno;
	/* Should whoever builds us die now, so do we; later the end of the control socket does it. */
	if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0)
		return -errno;
	/* NS-08: it may have died before that. */
	return poll(&hangup, 1, 0) > 0 && (hangup.revents & POLLHUP) ? -ECANCELED : 0;
}

/* The box's clocks start at zero: how long the host is up is not its business (PR-11). */
static int step_time(struct state *s)
{
	char text[96];
	struct timespec mono, boot;
	_cleanup_(fd_closep) int fd = -EBADF;
	int n;

	if (!control_on("time") || unshare(CLONE_NEWTIME) < 0)
		return 0; /* a kernel without: the report says so */
	(void)clock_gettime(CLOCK_MONOTONIC, &mono);
	(void)clock_gettime(CLOCK_BOOTTIME, &boot);
	n = snprintf(text, sizeof(text), "monotonic -%lld 0\nboottime -%lld 0\n",
		     (long long)mono.tv_sec, (long long)boot.tv_sec);
	fd = open("/proc/self/timens_offsets", O_WRONLY | O_CLOEXEC);
	if (fd < 0 || write(fd, text, (size_t)n) != n)
		return -errno;
	s->report.features |= SETUP_HAS_TIME_NS;
	return 0;
}

static int step_private(struct state *s)
{
	(void)s;
	return mnt_make_private();
}

static int step_scratch(struct state *s)
{
	char size[24], inodes[24];
	const struct option options[] = {
		{ "size", size },
		{ "nr_inodes", inodes },
		{ "mode", "0755" },
	};

	if (!control_on("disk"))
		(void)snprintf(size, sizeof(size), "0");
	else
		(void)snprintf(size, sizeof(size), "%llu",
			       (unsigned long long)s->setup->disk_bytes);
	if (!control_on("inodes"))
		(void)snprintf(inodes, sizeof(inodes), "0");
	else
		(void)snprintf(inodes, sizeof(inodes), "%llu",
			       (unsigned long long)s->setup->files_max + OWN_INODES);
	s->scratch_fd = make_mount("tmpfs", options, ARRAY_SIZE(options),
				   MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
	if (s->scratch_fd < 0)
		return s->scratch_fd;
	/* Overlay layers must be attached somewhere. /usr exists on every machine, our view of it is
	 * private, and the layer that shows it was opened before. */
	return mnt_move(s->scratch_fd, AT_FDCWD, "/usr");
}

static int step_upper(struct state *s)
{
	static const struct {
		const char *path;
		mode_t mode;
	} dirs[] = {
		{ "low0", 0755 },      { "low1", 0755 },      { "up", 0755 },
		{ "work", 0755 },      { "usr-up", 0755 },    { "usr-work", 0755 },
		{ "root", 0755 },      { "dev", 0755 },       { "shm", 01777 },
		{ "mask", 0755 },      { "mask/dir", 0555 },  { "up/dev", 0755 },
		{ "up/proc", 0555 },
		{ "up/sys", 0555 },    { "up/tmp", 01777 },   { "up/run", 0755 },
		{ "up/var", 0755 },    { "up/var/tmp", 01777 }, { "up/home", 0755 },
		{ "up/home/user", 0755 },
	};
	int r = fchdir(s->scratch_fd) < 0 ? -errno : 0;

	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(dirs); i++)
		r = make_dir(s->scratch_fd, dirs[i].path, dirs[i].mode);
	if (r == 0 && s->setup->n_layers > 1)
		r = make_dir(s->scratch_fd, "up/usr", 0755);
	if (r == 0)
		r = make_file(s->scratch_fd, "mask/file", 0444, "");
	if (r == 0)
		r = make_file(s->scratch_fd, "boot-id", 0444, MACHINE_BOOT_ID);
	if (r == 0 && fchownat(s->scratch_fd, "up/home/user", IDS_BOX_USER, IDS_BOX_USER, 0) < 0)
		r = -errno;
	return r;
}

/* FS-26: layers are named relative to scratch, so mountinfo tells nothing about the host. userxattr
 * switches redirect_dir and metacopy off (FS-22). */
static int overlay(const char *lower, const char *upper, const char *work)
{
	const struct option options[] = {
		{ "lowerdir", lower },   { "upperdir", upper }, { "workdir", work },
		{ "userxattr", NULL },   { "volatile", NULL },  { "index", "off" },
	};

	return make_mount("overlay", options, ARRAY_SIZE(options),
			  MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
}

static int step_overlay(struct state *s)
{
	_cleanup_(fd_closep) int usr_fd = -EBADF;
	int r = mnt_move(s->layer_fd[0], s->scratch_fd, "low0");

	if (r < 0)
		return r;
	s->root_fd = overlay("low0", "up", "work");
	if (s->root_fd < 0)
		return s->root_fd;
	r = mnt_move(s->root_fd, s->scratch_fd, "root");
	if (r < 0 || s->setup->n_layers < 2)
		return r;
	r = mnt_move(s->layer_fd[1], s->scratch_fd, "low1");
	if (r < 0)
		return r;
	usr_fd = overlay("low1", "usr-up", "usr-work");
	return usr_fd < 0 ? usr_fd : mnt_move(usr_fd, s->root_fd, "usr");
}

static int step_proc(struct state *s)
{
	const struct option options[] = { { "hidepid", "invisible" } };

	s->proc_fd = make_mount("proc", options, control_on("hidepid") ? 1 : 0,
				MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC);
	if (s->proc_fd < 0)
		return s->proc_fd;
	s->sys_user_fd = openat(s->proc_fd, "sys/user", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (s->sys_user_fd < 0)
		return -errno;
	return mnt_move(s->proc_fd, s->root_fd, "proc");
}

static int step_proc_sys(struct state *s)
{
	int r = 0;

	if (control_on("proc-sys"))
		r = clone_onto(s->proc_fd, "sys", MOUNT_ATTR_RDONLY, s->proc_fd, "sys");
	if (r == 0)
		r = clone_onto(s->scratch_fd, "boot-id", MOUNT_ATTR_RDONLY, s->proc_fd,
			       "sys/kernel/random/boot_id");
	return r;
}

/* Paths are relative to scratch, where we stand: nothing on them was made by anybody else. */
static int step_masks(struct state *s)
{
	static const struct {
		const char *from, *to;
	} masks[] = {
#define MASK_FILE(path) { "mask/file", "root/proc/" path },
#define MASK_DIR(path) { "mask/dir", "root/proc/" path },
#include "box/masks.def"
#undef MASK_FILE
#undef MASK_DIR
	};
	/* The mask itself becomes a read-only mount; its copies inherit that. */
	int r = control_on("masks") ? clone_onto(s->scratch_fd, "mask",
						 MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOEXEC,
						 s->scratch_fd, "mask") :
				      0;

	for (size_t i = 0; r == 0 && control_on("masks") && i < ARRAY_SIZE(masks); i++) {
		r = mnt_bind(masks[i].from, masks[i].to);
		if (r == -ENOENT)
			r = 0;
		else
			s->report.masks++;
	}
	return r;
}

/* Shows a device of the host, after making sure that it is the one we mean (FS-14). */
static int bind_device(struct state *s, const char *name, unsigned minor_number, unsigned major_number)
{
	_cleanup_(fd_closep) int fd = -EBADF;
	char path[24];
	struct stat st;
	int r;

	(void)snprintf(path, sizeof(path), "/dev/%s", name);
	fd = clone_mount(AT_FDCWD, path, 0);
	if (fd < 0)
		return fd;
	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISCHR(st.st_mode) || st.st_rdev != makedev(major_number, minor_number))
		return -ENODEV;
	r = make_file(s->dev_fd, name, 0666, "");
	return r < 0 ? r : mnt_move(fd, s->dev_fd, name);
}

static int step_dev(struct state *s)
{
	static const struct {
		const char *name;
		unsigned major_number, minor_number;
	} devices[] = {
		{ "null", 1, 3 },   { "zero", 1, 5 },    { "full", 1, 7 },
		{ "random", 1, 8 }, { "urandom", 1, 9 }, { "tty", 5, 0 },
	};
	static const struct {
		const char *name, *target;
	} links[] = {
		{ "fd", "/proc/self/fd" },     { "stdin", "/proc/self/fd/0" },
		{ "stdout", "/proc/self/fd/1" }, { "stderr", "/proc/self/fd/2" },
		{ "ptmx", "pts/ptmx" },
	};
	const struct option pts_options[] = {
		{ "ptmxmode", "0666" }, { "mode", "0620" }, { "max", "64" },
	};
	_cleanup_(fd_closep) int pts_fd = -EBADF;
	int r;

	if (!control_on("dev"))
		return clone_onto(AT_FDCWD, "/dev", 0, s->root_fd, "dev");
	s->dev_fd = clone_mount(s->scratch_fd, "dev", MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC);
	if (s->dev_fd < 0)
		return s->dev_fd;
	r = mnt_move(s->dev_fd, s->root_fd, "dev");
	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(devices); i++)
		r = bind_device(s, devices[i].name, devices[i].minor_number,
				devices[i].major_number);
	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(links); i++)
		r = symlinkat(links[i].target, s->dev_fd, links[i].name) < 0 ? -errno : 0;
	if (r == 0)
		r = make_dir(s->dev_fd, "pts", 0755);
	if (r == 0)
		r = make_dir(s->dev_fd, "shm", 01777);
	if (r < 0)
		return r;
	pts_fd = make_mount("devpts", pts_options, ARRAY_SIZE(pts_options),
			    MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC);
	if (pts_fd < 0)
		return pts_fd;
	r = mnt_move(pts_fd, s->dev_fd, "pts");
	return r < 0 ? r : clone_onto(s->scratch_fd, "shm", MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV,
				      s->dev_fd, "shm");
}

static int step_hostname(struct state *s)
{
	(void)s;
	if (!control_on("uts"))
		return 0;
	if (sethostname(BOX_HOSTNAME, strlen(BOX_HOSTNAME)) < 0 || setdomainname("", 0) < 0)
		return -errno;
	return 0;
}

static int step_lo(struct state *s)
{
	(void)s;
	return control_on("net") ? netns_lo_up() : 0;
}

static int step_pivot(struct state *s)
{
	int r;

	if (fchdir(s->root_fd) < 0)
		return -errno;
	r = mnt_pivot_here();
	if (r == 0)
		r = mnt_detach("."); /* the old root lies on top of the new one */
	if (r == 0 && chdir("/") < 0)
		r = -errno;
	return r;
}

static int step_cgroup_ns(struct state *s)
{
	/* Only now: a namespace made by clone would have the parent's cgroup as its root. */
	if (control_on("cgroup-ns") && unshare(CLONE_NEWCGROUP) == 0)
		s->report.features |= SETUP_HAS_CGROUP_NS;
	return 0;
}

/*
 * A second lock behind the filter: even root of this box cannot make a namespace (FS-07). Late, because
 * a detached mount counts as one; through a descriptor from before /proc/sys became read-only.
 */
static int step_namespaces(struct state *s)
{
	static const char *const files[] = {
		"max_user_namespaces", "max_mnt_namespaces", "max_net_namespaces",
		"max_pid_namespaces",  "max_ipc_namespaces", "max_uts_namespaces",
		"max_cgroup_namespaces", "max_time_namespaces",
	};

	if (!control_on("max-namespaces"))
		return 0;
	for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
		_cleanup_(fd_closep) int fd = openat(s->sys_user_fd, files[i], O_WRONLY | O_CLOEXEC);

		if (fd < 0 && errno == ENOENT)
			continue;
		if (fd < 0 || write(fd, "0", 1) != 1)
			return -errno;
	}
	return 0;
}

static int step_keyring(struct state *s)
{
	/* NS-07. A kernel without keyrings has nothing to inherit. */
	if (syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, NULL) >= 0)
		s->report.features |= SETUP_HAS_KEYRING;
	else if (errno != ENOSYS)
		return -errno;
	return 0;
}

/* The agent finds its control socket at 3 and /dev/null below; everything else closes itself. */
static int step_stdio(struct state *s)
{
	_cleanup_(fd_closep) int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);

	/* Out of the way of the numbers that are given out below and in the last step. */
	s->agent_fd = fcntl(s->setup->agent_fd, F_DUPFD_CLOEXEC, 10);
	s->control_fd = fcntl(s->setup->control_fd, F_DUPFD_CLOEXEC, 10);
	s->sock = fcntl(s->sock, F_DUPFD_CLOEXEC, 10);
	s->scratch_fd = fcntl(s->scratch_fd, F_DUPFD_CLOEXEC, 10);
	if (null_fd < 0 || s->agent_fd < 0 || s->control_fd < 0 || s->sock < 0 || s->scratch_fd < 0)
		return -errno;
	for (int fd = 0; fd < 3; fd++)
		if (dup2(null_fd, fd) < 0)
			return -errno;
	if (!control_on("close-fds"))
		return 0;
	return syscall(SYS_close_range, 3, ~0U, CLOSE_RANGE_CLOEXEC) < 0 ? -errno : 0;
}

static int step_landlock(struct state *s)
{
	static const struct landlock_path paths[] = {
		{ "/", LANDLOCK_READ },
		{ "/home/user", LANDLOCK_CHANGE },
		{ "/tmp", LANDLOCK_CHANGE },
		{ "/var/tmp", LANDLOCK_CHANGE },
		{ "/dev/shm", LANDLOCK_CHANGE },
		{ "/dev", LANDLOCK_WRITE },
		{ "/dev/pts", LANDLOCK_WRITE | LANDLOCK_IOCTL },
		{ "/dev/tty", LANDLOCK_WRITE | LANDLOCK_IOCTL },
		{ "/proc", LANDLOCK_WRITE },
	};
	int r = 0;

	if (control_on("no-new-privs") && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return -errno;
	if (control_on("landlock"))
		r = landlock_restrict(paths, ARRAY_SIZE(paths), &s->report.landlock_abi);
	if (s->report.landlock_abi > 0)
		s->report.features |= SETUP_HAS_LANDLOCK;
	return r == -EOPNOTSUPP ? 0 : r;
}

/* What the agent keeps, and why: to start commands as the user (SETUID, SETGID), to empty their
 * bounding set (SETPCAP), to end them (KILL). */
static bool agent_keeps(unsigned long cap)
{
	return cap == CAP_SETUID || cap == CAP_SETGID || cap == CAP_SETPCAP || cap == CAP_KILL;
}

static int step_caps(struct state *s)
{
	if (!control_on("caps"))
		return 0;
	for (unsigned long cap = 0; cap <= 63; cap++) {
		if (agent_keeps(cap) && !s->setup->single_id)
			continue;
		if (prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) < 0)
			return errno == EINVAL && cap > CAP_SETFCAP ? 0 : -errno; /* the last one */
	}
	return 0;
}

static int step_seccomp(struct state *s)
{
	(void)s;
	return control_on("seccomp") ? box_filter_install() : 0;
}

static int send_report(struct state *s, int fd)
{
	struct iovec part = { .iov_base = &s->report, .iov_len = sizeof(s->report) };

	return sock_send(s->sock, &part, 1, &fd, fd >= 0 ? 1 : 0);
}

static int step_done(struct state *s)
{
	s->report.step = SETUP_DONE;
	return send_report(s, s->scratch_fd);
}

static int step_exec(struct state *s)
{
	char *const argv[] = { (char[]){ "glovebox-agent" }, NULL };
	char *const env[] = { NULL };

	if (dup2(s->control_fd, 3) < 0)
		return -errno;
	(void)syscall(SYS_execveat, s->agent_fd, "", argv, env, AT_EMPTY_PATH);
	return -errno;
}

void setup_child(const struct setup *setup, int sock)
{
	static int (*const steps[_SETUP_STEP_MAX])(struct state *) = {
		[SETUP_GO] = step_go,
		[SETUP_LAYERS] = step_layers,
		[SETUP_TIME] = step_time,
		[SETUP_BECOME] = step_become,
		[SETUP_PRIVATE] = step_private,
		[SETUP_SCRATCH] = step_scratch,
		[SETUP_UPPER] = step_upper,
		[SETUP_OVERLAY] = step_overlay,
		[SETUP_PROC] = step_proc,
		[SETUP_PROC_SYS] = step_proc_sys,
		[SETUP_MASKS] = step_masks,
		[SETUP_DEV] = step_dev,
		[SETUP_HOSTNAME] = step_hostname,
		[SETUP_LO] = step_lo,
		[SETUP_PIVOT] = step_pivot,
		[SETUP_CGROUP_NS] = step_cgroup_ns,
		[SETUP_NAMESPACES] = step_namespaces,
		[SETUP_KEYRING] = step_keyring,
		[SETUP_STDIO] = step_stdio,
		[SETUP_LANDLOCK] = step_landlock,
		[SETUP_CAPS] = step_caps,
		[SETUP_SECCOMP] = step_seccomp,
		[SETUP_DONE] = step_done,
		[SETUP_EXEC] = step_exec,
	};
	struct state s = {
		.setup = setup, .sock = sock,
		.layer_fd = { -EBADF, -EBADF }, .scratch_fd = -EBADF,
		.root_fd = -EBADF, .proc_fd = -EBADF, .dev_fd = -EBADF,
	};

	(void)umask(0);
	for (unsigned i = SETUP_GO; i < _SETUP_STEP_MAX; i++) {
		int r = steps[i](&s);

		if (r < 0) {
			s.report.step = i;
			s.report.err = -r;
			(void)!send_report(&s, -EBADF);
			break;
		}
	}
	_exit(1);
}

const char *setup_step_text(uint32_t step)
{
	static const char *const texts[_SETUP_STEP_MAX] = {
#define STEP(name, text) [SETUP_##name] = text,
#include "box/steps.def"
#undef STEP
	};

	return step < _SETUP_STEP_MAX ? texts[step] : "unknown step";
}
