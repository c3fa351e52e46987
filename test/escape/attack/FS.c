/* SPDX-License-Identifier: Apache-2.0 */
/* FS: attacks on the box's file system and mounts. What the host sees of them is in rows/FS.sh. */
#include "look.h"
#include "probe.h"

#include <linux/mount.h>
#include <poll.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <sys/vfs.h>
#include <sys/xattr.h>

#ifndef SYS_open_tree_attr
#define SYS_open_tree_attr 467
#endif
#ifndef SYS_statmount
#define SYS_statmount 457
#define SYS_listmount 458
#endif
/* <sys/mount.h> and <linux/mount.h> cannot be included together. */
int mount(const char *source, const char *target, const char *type, unsigned long flags,
	  const void *data);
int umount2(const char *target, int flags);

#define PROC_MAGIC 0x9fa0
#define ROOT_INODE 2
#define FDS_SEEN 256
#define MOUNTS_SIZE (256 << 10)

static char mounts[MOUNTS_SIZE];

static void read_mounts(void)
{
	if (slurp("/proc/self/mountinfo", mounts, sizeof(mounts)) <= 0)
		want(false, "cannot read mountinfo");
}

static bool same_file(const char *a, const char *b)
{
	struct stat x, y;

	return stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

/* Goes up as far as it gets, then looks whether that is still the box. */
static void climb(const char *how)
{
	const char *mark = told("HOST_MARK");
	char cwd[512] = "";

	for (int i = 0; i < 64; i++)
		if (chdir("..") < 0)
			break;
	want(same_file(".", "/") && getcwd(cwd, sizeof(cwd)) && strcmp(cwd, "/") == 0,
	     "%s: .. ends at %s", how, cwd);
	want_refused(access(mark + 1, F_OK), how);
}

static int in_child(void (*piece)(void))
{
	pid_t pid = fork();

	if (pid == 0) {
		breaches = 0;
		piece();
		_exit(verdict());
	}
	return ended(pid);
}

static void chroot_as_nested_root(void)
{
	int root = open("/", O_RDONLY | O_DIRECTORY);

	if (!want_refused(unshare(CLONE_NEWUSER), "a user namespace to chroot in") &&
	    chroot("deeper") == 0 && fchdir(root) == 0)
		climb("nested chroot");
}

static int fs_01(void)
{
	int root = open("/", O_RDONLY | O_DIRECTORY);

	want(mkdir("deeper", 0755) == 0 && root >= 0, "a directory to hide in");
	want_errno(chroot("deeper"), EPERM, "chroot");
	breaches += in_child(chroot_as_nested_root);
	want(fchdir(root) == 0, "back to /");
	climb("own descriptor of /");
	for (int fd = 3; fd < FDS_SEEN; fd++)
		if (fd != root && fchdir(fd) == 0) {
			want(false, "descriptor %d is a directory nobody gave us", fd);
			climb("inherited descriptor");
		}
	want(chdir("/proc/self/root") == 0, "/proc/self/root");
	climb("/proc/self/root");
	want_refused(access(told("HOST_MARK"), F_OK), "the host's file by its path");
	return verdict();
}

static int fs_02(void)
{
	char cwd[512] = "", link[512] = "";

	want(getcwd(cwd, sizeof(cwd)) && strcmp(cwd, "/home/user") == 0, "started in %s", cwd);
	want(readlink("/proc/self/cwd", link, sizeof(link) - 1) > 0 && strcmp(link, cwd) == 0,
	     "/proc/self/cwd is %s", link);
	for (int fd = 3; fd < FDS_SEEN; fd++) {
		char path[32];

		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		if (chdir(path) == 0)
			want(false, "%s leads to %s", path, getcwd(cwd, sizeof(cwd)) ? cwd : "?");
	}
	return verdict();
}

/* Every way to change a file: by bytes, by name, by mode, by length. */
static void change(const char *path)
{
	int fd = open(path, O_WRONLY);

	if (fd >= 0 && write(fd, "CHANGED\n", 8) == 8)
		printf("written: %s\n", path);
	printf("truncate %s: %d\n", path, truncate(path, 8));
	printf("chmod %s: %d\n", path, chmod(path, 0777));
	fd = open("other", O_WRONLY | O_CREAT, 0755);
	printf("replace %s: %d\n", path, fd < 0 ? -1 : rename("other", path));
	fd = open(path, O_RDONLY);
	if (fd >= 0) {
		void *map = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

		printf("map %s shared: %d\n", path, map != MAP_FAILED);
	}
}

static int fs_03(void)
{
	char text[64] = "";

	/* A template of our own has a tool that we may change: the change must stay here. */
	if (getenv("TEMPLATE")) {
		want(slurp("/home/user/tool", text, sizeof(text)) > 0 &&
			     strcmp(text, "original\n") == 0,
		     "the tool is as it was made: %s", text);
		change("/home/user/tool");
		want(slurp("/home/user/tool", text, sizeof(text)) >= 0 &&
			     strcmp(text, "original\n") != 0,
		     "changed it here");
	}
	change("/usr/bin/env");
	change("/etc/passwd");
	return verdict();
}

static void remount_as_nested_root(void)
{
	if (want_refused(unshare(CLONE_NEWUSER | CLONE_NEWNS), "namespaces to mount in"))
		return;
	want_refused(mount("none", "/mnt", "tmpfs", 0, NULL), "tmpfs in them");
	want_refused(mount(NULL, "/proc/sys", NULL, MS_REMOUNT | MS_BIND, NULL), "remount in them");
}

static int fs_04(void)
{
	want_errno(mount(NULL, "/", NULL, MS_REMOUNT, NULL), EPERM, "remount /");
	want_errno(mount(NULL, "/usr", NULL, MS_REMOUNT | MS_BIND, NULL), EPERM, "remount /usr");
	want_errno(mount(NULL, "/proc/sys", NULL, MS_REMOUNT | MS_BIND, NULL), EPERM,
		   "remount /proc/sys");
	want_errno(mount("/usr", "/mnt", NULL, MS_BIND, NULL), EPERM, "bind /usr");
	want_errno(open("/proc/sys/kernel/hostname", O_WRONLY | O_TRUNC), EROFS,
		   "write below /proc/sys");
	breaches += in_child(remount_as_nested_root);
	breaches += ALL_REFUSED(CALL(mount, EPERM, NOWHERE, NOWHERE, NOWHERE, MS_REMOUNT, NOWHERE),
				CALL(mount, EPERM, NOWHERE, NOWHERE, NOWHERE, MS_BIND, NOWHERE),
				CALL(pivot_root, EPERM, NOWHERE, NOWHERE));
	return verdict();
}

static int fs_05(void)
{
	static const char *const masked[] = {
		"/proc/kcore", "/proc/kallsyms",   "/proc/timer_list",
		"/proc/keys",  "/proc/interrupts",
	};
	int masks = 0;

	read_mounts();
	for (char *save, *line = strtok_r(mounts, "\n", &save); line;
	     line = strtok_r(NULL, "\n", &save)) {
		char path[256];

		if (sscanf(line, "%*s %*s %*s %*s %255s", path) != 1 ||
		    strncmp(path, "/proc/", 6) != 0)
			continue;
		masks++;
		want_errno(umount2(path, 0), EPERM, path);
		want_errno(umount2(path, 2 /* MNT_DETACH */), EPERM, path);
	}
	want(masks >= 10, "%d masks to take away", masks);
	for (size_t i = 0; i < ARRAY_SIZE(masked); i++)
		want_hidden(masked[i]);
	breaches += ALL_REFUSED(CALL(umount2, EPERM, NOWHERE, 0), CALL(umount2, EPERM, NOWHERE, 2));
	return verdict();
}

static int fs_06(void)
{
	return ALL_REFUSED(CALL(fsopen, ENOSYS, NOWHERE, 0),
			   CALL(fsconfig, ENOSYS, (unsigned long)-1, 1, NOWHERE, NOWHERE, 0),
			   CALL(fsmount, ENOSYS, (unsigned long)-1, 0, 0),
			   CALL(fspick, ENOSYS, (unsigned long)AT_FDCWD, NOWHERE, 0),
			   CALL(open_tree, ENOSYS, (unsigned long)AT_FDCWD, NOWHERE, 1),
			   CALL(open_tree_attr, ENOSYS, (unsigned long)AT_FDCWD, NOWHERE, 1, 0, 0),
			   CALL(move_mount, ENOSYS, (unsigned long)-1, NOWHERE, (unsigned long)-1,
				NOWHERE, 0),
			   CALL(mount_setattr, ENOSYS, (unsigned long)-1, NOWHERE, 0, NOWHERE, 32),
			   CALL(statmount, ENOSYS, NOWHERE, NOWHERE, 512, 0),
			   CALL(listmount, ENOSYS, NOWHERE, NOWHERE, 1, 0));
}

/* Every file system that an unprivileged namespace may mount, had one got that far. */
static void mount_as_nested_root(void)
{
	static const char *const types[] = {
		"tmpfs", "overlay", "fuse", "proc", "cgroup2", "mqueue"
	};

	if (want_refused(unshare(CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWNET),
			 "namespaces of one's own"))
		return;
	for (size_t i = 0; i < ARRAY_SIZE(types); i++)
		want_refused(mount("none", "/mnt", types[i], 0, "lowerdir=/usr:/etc"), types[i]);
}

static int fs_07(void)
{
	static const char *const kinds[] = {
		"user", "mnt", "net", "pid", "ipc", "uts", "cgroup", "time",
	};

	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		char path[64], text[32];

		snprintf(path, sizeof(path), "/proc/sys/user/max_%s_namespaces", kinds[i]);
		if (slurp(path, text, sizeof(text)) > 0)
			want(strcmp(text, "0\n") == 0, "%s: %s", path, text);
	}
	breaches += in_child(mount_as_nested_root);
	breaches += ALL_REFUSED(
		CALL(unshare, EPERM, CLONE_NEWUSER),
		CALL(unshare, EPERM, CLONE_NEWUSER | CLONE_NEWNS),
		CALL(unshare, EPERM, CLONE_NEWNET), CALL(unshare, EPERM, CLONE_NEWCGROUP),
		CALL(clone, EPERM, CLONE_NEWUSER | SIGCHLD),
		CALL(clone, EPERM, CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWNET | SIGCHLD),
		CALL(clone3, ENOSYS, NOWHERE, 88), CALL(setns, EPERM, (unsigned long)-1, 0));
	return verdict();
}

static int copy_self(const char *to, mode_t mode)
{
	static char image[4 << 20];
	ssize_t n = slurp("/proc/self/exe", image, sizeof(image));
	int fd = open(to, O_WRONLY | O_CREAT | O_TRUNC, 0755);

	if (n <= 0 || fd < 0 || write(fd, image, (size_t)n) != n || close(fd) < 0)
		return -1;
	return chmod(to, mode);
}

static int fs_08(void)
{
	(void)mkdir("out", 0755);
	want(copy_self("suid", 06755) == 0, "a set-uid program in the workspace");
	want(copy_self("/tmp/suid", 06755) == 0, "a set-uid program in /tmp");
	want(copy_self("out/suid", 06755) == 0, "a set-uid program among the outputs");
	hold();
	return verdict();
}

/* Run by the host's user, as a victim of FS-08 would. */
static int print_euid(void)
{
	printf("%d %d\n", (int)geteuid(), (int)getegid());
	return 0;
}

static void want_status(const char *key, const char *value)
{
	char text[8192], wanted[64];

	snprintf(wanted, sizeof(wanted), "\n%s:\t%s\n", key, value);
	want(slurp("/proc/self/status", text, sizeof(text)) > 0 && strstr(text, wanted), "%s is %s",
	     key, value);
}

static int fs_09(void)
{
	static const char *const dirs[] = { "/", "/home/user", "/tmp", "/dev/shm", "/bin" };
	/* Version 2, effective, everything permitted. */
	static const unsigned char all_caps[20] = { 1,   0, 0, 2, 255, 255, 255,
						    255, 0, 0, 0, 0,   255, 1 };
	int fd = open("/home/user/mine", O_WRONLY | O_CREAT, 0755);

	want(getuid() == 1000 && geteuid() == 1000 && getegid() == 1000, "euid is %d",
	     (int)geteuid());
	want_status("CapPrm", "0000000000000000");
	want_status("CapEff", "0000000000000000");
	want_status("CapBnd", "0000000000000000");
	want_status("NoNewPrivs", "1");
	want_refused(fsetxattr(fd, "security.capability", all_caps, sizeof(all_caps), 0),
		     "file capabilities of one's own");
	for (size_t i = 0; i < ARRAY_SIZE(dirs); i++) {
		struct statvfs fs;

		want(statvfs(dirs[i], &fs) == 0 && (fs.f_flag & ST_NOSUID), "%s is nosuid",
		     dirs[i]);
	}
	return verdict();
}

static int fs_10(void)
{
	static const char *const shipped[] = { "/nodes/null", "/nodes/zero", "/home/user/node" };
	unsigned long mem = makedev(1, 1), null = makedev(1, 3), disk = makedev(8, 0);

	want_refused(mknod("mem", S_IFCHR | 0666, mem), "mknod of memory");
	want_refused(mknod("disk", S_IFBLK | 0666, disk), "mknod of a disk");
	want_refused(mknod("null", S_IFCHR | 0666, null), "mknod of null");
	want_refused(mknod("whiteout", S_IFCHR | 0666, 0), "mknod of a whiteout");
	for (size_t i = 0; i < ARRAY_SIZE(shipped); i++) {
		struct stat st;

		want(stat(shipped[i], &st) == 0 && S_ISCHR(st.st_mode), "%s is shipped",
		     shipped[i]);
		want_errno(open(shipped[i], O_RDONLY), EACCES, shipped[i]);
		want_errno(open(shipped[i], O_RDWR), EACCES, shipped[i]);
	}
#ifdef SYS_mknod
	breaches += ALL_REFUSED(CALL(mknod, EPERM, NOWHERE, S_IFCHR | 0600, 0x103),
				CALL(mknod, EPERM, NOWHERE, S_IFBLK | 0600, 0x800));
#endif
	breaches +=
		ALL_REFUSED(CALL(mknodat, EPERM, (unsigned long)AT_FDCWD, NOWHERE, S_IFCHR, 0x103),
			    CALL(mknodat, EPERM, (unsigned long)AT_FDCWD, NOWHERE, S_IFBLK, 0x800));
	return verdict();
}

static int fs_11(void)
{
	static const char *const targets[] = { "/shared/file", "/etc/passwd", "/usr/bin/env" };

	for (size_t i = 0; i < ARRAY_SIZE(targets); i++) {
		char by_fd[32];
		int fd = open(targets[i], O_RDONLY | O_CLOEXEC);

		if (!want(fd >= 0, "%s is there", targets[i]))
			continue;
		snprintf(by_fd, sizeof(by_fd), "/proc/self/fd/%d", fd);
		want_refused(link(targets[i], "/home/user/link"), "link by name");
		want_refused(linkat(AT_FDCWD, by_fd, AT_FDCWD, "/tmp/link", AT_SYMLINK_FOLLOW),
			     "link through /proc/self/fd");
		want_refused(linkat(fd, "", AT_FDCWD, "/tmp/link", AT_EMPTY_PATH),
			     "link by descriptor");
		close(fd);
	}
	return verdict();
}

static int fs_12(void)
{
	/* "Shocker": the handle of a root directory is its inode number, and can be guessed. */
	struct {
		struct file_handle head;
		uint32_t inode[2];
	} root = { .head = { .handle_bytes = 8, .handle_type = 1 }, .inode = { ROOT_INODE, 0 } };
	int mount_id, dir = open("/", O_RDONLY | O_DIRECTORY);

	want_errno(open_by_handle_at(dir, &root.head, O_RDONLY), EPERM, "open by guessed handle");
	want_errno(name_to_handle_at(AT_FDCWD, "/usr", &root.head, &mount_id, 0), EPERM,
		   "ask for a handle");
	breaches +=
		ALL_REFUSED(CALL(open_by_handle_at, EPERM, (unsigned long)-1, NOWHERE, O_RDONLY),
			    CALL(name_to_handle_at, EPERM, (unsigned long)AT_FDCWD, NOWHERE,
				 NOWHERE, NOWHERE, 0));
	return verdict();
}

/* The template's own /proc, /dev, /tmp … are links out of it. We must be somewhere else. */
static int fs_13(void)
{
	static const char *const plants[] = {
		"/tmp/planted",
		"/home/user/planted",
		"/var/tmp/planted",
		"/dev/shm/planted",
	};
	struct statfs fs;
	struct stat st;

	want(statfs("/proc", &fs) == 0 && fs.f_type == PROC_MAGIC, "/proc is one");
	want(stat("/dev/null", &st) == 0 && S_ISCHR(st.st_mode) && st.st_rdev == makedev(1, 3),
	     "/dev/null is one");
	for (size_t i = 0; i < ARRAY_SIZE(plants); i++) {
		int fd = open(plants[i], O_WRONLY | O_CREAT | O_EXCL, 0644);

		want(fd >= 0 && write(fd, "x", 1) == 1, "wrote %s here", plants[i]);
	}
	want_hidden(told("HOST_MARK"));
	want_hidden("/etc/mark");
	want_hidden("/tmp/mark");
	want_hidden("/proc/mark");
	return verdict();
}

static int fs_14(void)
{
	struct stat st;
	int fd = open("/dev/null", O_WRONLY | O_TRUNC);
	char c;

	want(fd >= 0 && fstat(fd, &st) == 0 && S_ISCHR(st.st_mode) && st.st_rdev == makedev(1, 3),
	     "/dev/null is the device");
	want(write(fd, "gone", 4) == 4 && open("/dev/null", O_RDONLY) >= 0 &&
		     read(open("/dev/null", O_RDONLY), &c, 1) == 0,
	     "and swallows");
	want_hidden("/proc/kallsyms");
	want_hidden("/proc/timer_list");
	want_refused(open("/proc/kallsyms", O_WRONLY), "write to a mask");
	return verdict();
}

static int fs_15(void)
{
	struct stat st;
	int fd = open("/dev/ptmx", O_RDWR | O_NOCTTY);
	char *name = fd < 0 ? NULL : ptsname(fd);

	want_errno(open("/dev/console", O_RDWR | O_NOCTTY), ENOENT, "/dev/console");
	want(fd >= 0 && name && strcmp(name, "/dev/pts/0") == 0, "first terminal: %s",
	     name ? name : "none");
	want(stat("/dev/pts/0", &st) == 0 && S_ISCHR(st.st_mode) && major(st.st_rdev) == 136,
	     "/dev/pts/0 is one");
	want(lstat("/dev/tty", &st) == 0 && S_ISCHR(st.st_mode) && st.st_rdev == makedev(5, 0),
	     "/dev/tty is the device");
	return verdict();
}

/* On the host: exchanges NAME and NAME.evil of a template for as long as it is let. */
static int swap(void)
{
	static const char *const names[] = { "proc", "dev", "tmp", "home", "var", "sys", "run" };
	int dir = open(told("SWAP"), O_RDONLY | O_DIRECTORY);

	alarm(60);
	for (unsigned long n = 0;; n++)
		for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
			char evil[32];

			snprintf(evil, sizeof(evil), "%s.evil", names[i]);
			if (renameat2(dir, names[i], dir, evil, RENAME_EXCHANGE) < 0)
				return BREACH("cannot exchange: %m");
		}
}

static int fs_19(void)
{
	want_hidden("/hidden/secret");
	want_refused(access("/hidden/secret", F_OK), "what lies below the host's mount");
	return verdict();
}

static int fs_20(void)
{
	read_mounts();
	want(!strstr(mounts, " shared:") && !strstr(mounts, " master:") &&
		     !strstr(mounts, " propagate_from:"),
	     "no mount of the box has a peer");
	hold();
	want_refused(access("/data/new", F_OK), "a mount that the host made meanwhile");
	read_mounts();
	want(!strstr(mounts, "/data"), "nothing came");
	return verdict();
}

static const char *const common[] = {
	"/tmp/glovebox-fs21",
	"/var/tmp/glovebox-fs21",
	"/dev/shm/glovebox-fs21",
};

static int fs_21(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(common); i++) {
		int fd = open(common[i], O_RDWR | O_CREAT | O_EXCL, 0666);

		want(fd >= 0 && fchmod(fd, 0666) == 0, "left %s", common[i]);
	}
	hold();
	return verdict();
}

static int fs_21_peer(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(common); i++)
		want_errno(access(common[i], F_OK), ENOENT, common[i]);
	return verdict();
}

/* Overlay's own attributes, set through the overlay, must not steer it. */
static int fs_22(void)
{
	static const struct {
		const char *name, *value;
	} attrs[] = {
		{ "user.overlay.opaque", "y" },   { "user.overlay.redirect", "/secret" },
		{ "user.overlay.whiteout", "y" }, { "user.overlay.metacopy", "" },
		{ "user.overlay.upper", "x" },    { "user.overlay.origin", "x" },
	};
	char text[32] = "";

	for (size_t i = 0; i < ARRAY_SIZE(attrs); i++) {
		printf("%s on a lower directory: %d\n", attrs[i].name,
		       setxattr("merged", attrs[i].name, attrs[i].value, strlen(attrs[i].value),
				0));
		printf("%s on a lower file: %d\n", attrs[i].name,
		       setxattr("merged/file", attrs[i].name, attrs[i].value,
				strlen(attrs[i].value), 0));
	}
	want_refused(setxattr("merged", "trusted.overlay.opaque", "y", 1, 0),
		     "trusted.overlay.opaque");
	want_refused(setxattr("merged", "trusted.overlay.redirect", "/secret", 7, 0),
		     "trusted.overlay.redirect");
	want_refused(mknod("merged/white", S_IFCHR | 0666, 0), "a whiteout");
	/* A directory of our own that claims to continue where we may not look. */
	want(mkdir("bait", 0755) == 0, "bait");
	(void)setxattr("bait", "user.overlay.redirect", "/secret", 7, 0);
	want(rename("bait", "moved") == 0, "moved");
	want_refused(access("moved/hidden", F_OK), "what the redirect names");
	want(slurp("merged/file", text, sizeof(text)) > 0 && strcmp(text, "lower\n") == 0,
	     "the merged file still reads: %s", text);
	want_refused(open("/secret/hidden", O_RDONLY), "the forbidden directory by name");
	return verdict();
}

static int fs_23(void)
{
	static const char *const points[] = {
		"/proc", "/dev", "/usr", "/dev/pts", "/dev/shm", "/dev/null", "/proc/sys", "/sys",
	};

	for (size_t i = 0; i < ARRAY_SIZE(points); i++) {
		struct stat st;

		want_refused(rename(points[i], "/home/user/p"), points[i]);
		want_refused(syscall(SYS_renameat2, AT_FDCWD, points[i], AT_FDCWD, "/home/user",
				     RENAME_EXCHANGE),
			     points[i]);
		want_refused(unlink(points[i]), points[i]);
		want_refused(rmdir(points[i]), points[i]);
		want(stat(points[i], &st) == 0, "%s is still there", points[i]);
	}
	want_hidden("/proc/kallsyms");
	return verdict();
}

static int run(const char *const argv[])
{
	pid_t pid = fork();

	if (pid == 0) {
		execv(argv[0], (char *const *)argv);
		_exit(127);
	}
	return ended(pid);
}

static int fs_24(void)
{
	static const char *const absent[] = {
		"/dev/fuse",           "/dev/loop-control", "/dev/loop0",         "/dev/loop7",
		"/dev/mapper/control", "/dev/nbd0",         "/dev/sda",           "/dev/vda",
		"/dev/nvme0n1",        "/dev/root",         "/dev/btrfs-control",
	};
	static const char *const helpers[][6] = {
		{ "/usr/bin/mount", "-t", "tmpfs", "none", "/mnt" },
		{ "/usr/bin/mount", "-o", "remount,rw", "/" },
		{ "/usr/bin/umount", "/proc" },
		{ "/usr/bin/fusermount3", "-u", "/proc" },
		{ "/usr/bin/fusermount", "-u", "/proc" },
		{ "/usr/bin/su", "-c", "true" },
		{ "/usr/bin/newuidmap", "1", "0", "0", "1" },
	};
	struct statvfs fs;

	for (size_t i = 0; i < ARRAY_SIZE(absent); i++)
		want_errno(access(absent[i], F_OK), ENOENT, absent[i]);
	for (size_t i = 0; i < ARRAY_SIZE(helpers); i++) {
		int status = run(helpers[i]);

		want(status != 0, "%s %s: %d", helpers[i][0], helpers[i][1], status);
	}
	want(statvfs("/usr", &fs) == 0 && (fs.f_flag & ST_NOSUID), "/usr is nosuid");
	return verdict();
}

static struct sockaddr_un address(const char *path)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };

	snprintf(a.sun_path, sizeof(a.sun_path), "%s", path);
	return a;
}

/* On the host: a service at a path that the box can see. 0 when nobody came. */
static int listen_here(void)
{
	struct sockaddr_un a = address(told("LISTEN"));
	struct pollfd p = { .fd = socket(AF_UNIX, SOCK_STREAM, 0), .events = POLLIN };

	if (bind(p.fd, (struct sockaddr *)&a, sizeof(a)) < 0 || chmod(a.sun_path, 0777) < 0 ||
	    listen(p.fd, 8) < 0)
		return BREACH("cannot listen: %m");
	puts("listening");
	return poll(&p, 1, 30000) > 0 ? BREACH("the box connected to us") : 0;
}

static int fs_25(void)
{
	static const char *const paths[] = { "/srv/api.sock", "/run/api.sock",
					     "/home/user/api.sock" };

	for (size_t i = 0; i < ARRAY_SIZE(paths); i++) {
		struct sockaddr_un a = address(paths[i]);
		struct stat st;

		printf("%s: %s\n", paths[i], stat(paths[i], &st) == 0 ? "visible" : "absent");
		want_refused(connect(socket(AF_UNIX, SOCK_STREAM, 0), (struct sockaddr *)&a,
				     sizeof(a)),
			     paths[i]);
	}
	return verdict();
}

static int fs_26(void)
{
	static const char *const files[] = {
		"/proc/self/mountinfo",
		"/proc/self/mounts",
		"/proc/self/mountstats",
	};
	static const char *const leaks[] = {
		"dir=/", "/var/lib", "/tmp/glovebox", "/root", "glovebox/roots", "base-",
	};

	for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
		want(slurp(files[i], mounts, sizeof(mounts)) > 0, "%s can be read", files[i]);
		want(!strstr(mounts, told("TENANT")), "%s does not name the tenant", files[i]);
		for (size_t k = 0; k < ARRAY_SIZE(leaks); k++)
			want(!strstr(mounts, leaks[k]), "%s has no %s", files[i], leaks[k]);
	}
	return verdict();
}

static const struct row rows[] = {
	{ "FS-01", fs_01 },           { "FS-02", fs_02 }, { "FS-03", fs_03 },
	{ "FS-04", fs_04 },           { "FS-05", fs_05 }, { "FS-06", fs_06 },
	{ "FS-07", fs_07 },           { "FS-08", fs_08 }, { "FS-09", fs_09 },
	{ "FS-10", fs_10 },           { "FS-11", fs_11 }, { "FS-12", fs_12 },
	{ "FS-13", fs_13 },           { "FS-14", fs_14 }, { "FS-15", fs_15 },
	{ "FS-19", fs_19 },           { "FS-20", fs_20 }, { "FS-21", fs_21 },
	{ "FS-21-peer", fs_21_peer }, { "FS-22", fs_22 }, { "FS-23", fs_23 },
	{ "FS-24", fs_24 },           { "FS-25", fs_25 }, { "FS-26", fs_26 },
	{ "euid", print_euid },       { "swap", swap },   { "listen", listen_here },
};

int main(int argc, char **argv)
{
	return run_rows(rows, ARRAY_SIZE(rows), argc, argv);
}
