/* SPDX-License-Identifier: Apache-2.0 */
/* Building the built-in root where it is kept, on first use. */
#include "template/template_priv.h"

#include "base/dir.h"
#include "template/bundle.h"
#include "template/embedded.h"
#include "template/template.h"
#include "wire/wire.h"

#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <sys/file.h>
#include <sys/stat.h>

/*
 * The root of the built-in templates. /etc is made here, not borrowed: its users, hosts and machine
 * id are invented. What runtimes need of the host's configuration is copied from a short list, and
 * of that only what every user of the host may read anyway.
 */

#define COPY_MAX (UINT64_C(64) << 20)
#define DEPTH_MAX 8

/* The agent's executable, carried in this one by src/box: in a box it is also sudo. */
extern const unsigned char agent_image[], agent_image_end[];

static const struct {
	const char *name;
	mode_t mode;
} dirs[] = {
	{ "etc", 0755 },
	{ "etc/pam.d", 0755 },
	{ "root", 0700 },
	{ "usr", 0755 },
	{ "opt", 0755 },
	{ "opt/glovebox", 0755 },
	{ "opt/glovebox/bin", 0755 },
	{ "mnt", 0755 },
	{ "srv", 0755 },
	{ "media", 0755 },
	{ "var", 0755 },
	{ "var/lib", 0755 },
	{ "var/cache", 0755 },
	{ "var/log", 0755 },
};

static const struct {
	const char *name, *target;
} links[] = {
	{ "bin", "usr/bin" },     { "sbin", "usr/sbin" },   { "lib", "usr/lib" },
	{ "lib64", "usr/lib64" }, { "lib32", "usr/lib32" }, { "etc/mtab", "/proc/self/mounts" },
	{ "var/run", "/run" },
};

/* Root becomes anybody; nobody else does, as nobody has a password. */
#define ROOT_MAY                                                                                   \
	"auth sufficient pam_rootok.so\nauth required pam_deny.so\n"                               \
	"account required pam_permit.so\nsession required pam_permit.so\n"

static const struct {
	const char *name, *text;
} files[] = {
	/* The fixed ids are Debian's, so that its packages find the users they expect. */
	{ "etc/passwd", "root:x:0:0:root:/root:/bin/bash\n"
			"daemon:x:1:1:daemon:/usr/sbin:/usr/sbin/nologin\n"
			"bin:x:2:2:bin:/bin:/usr/sbin/nologin\n"
			"sys:x:3:3:sys:/dev:/usr/sbin/nologin\n"
			"mail:x:8:8:mail:/var/mail:/usr/sbin/nologin\n"
			"www-data:x:33:33:www-data:/var/www:/usr/sbin/nologin\n"
			"_apt:x:42:65534::/nonexistent:/usr/sbin/nologin\n"
			"user:x:1000:1000:user:/home/user:/bin/bash\n"
			"nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n" },
	{ "etc/group", "root:x:0:\ndaemon:x:1:\nbin:x:2:\nsys:x:3:\nadm:x:4:\ntty:x:5:\nmail:x:8:\n"
		       "www-data:x:33:\nshadow:x:42:\nutmp:x:43:\nstaff:x:50:\nusers:x:100:\n"
		       "user:x:1000:\nnogroup:x:65534:\n" },
	/* useradd gives each user a group of its own. */
	{ "etc/login.defs",
	  "UID_MIN 1000\nUID_MAX 60000\nSYS_UID_MIN 100\nSYS_UID_MAX 999\n"
	  "GID_MIN 1000\nGID_MAX 60000\nSYS_GID_MIN 100\nSYS_GID_MAX 999\n"
	  "UMASK 022\nHOME_MODE 0755\nUSERGROUPS_ENAB yes\nENCRYPT_METHOD SHA512\n" },
	{ "etc/pam.d/su", ROOT_MAY },
	{ "etc/pam.d/su-l", ROOT_MAY },
	{ "etc/pam.d/runuser", ROOT_MAY },
	{ "etc/pam.d/runuser-l", ROOT_MAY },
	{ "etc/pam.d/other", "auth required pam_deny.so\naccount required pam_deny.so\n"
			     "password required pam_deny.so\nsession required pam_deny.so\n" },
	{ "etc/hosts", "127.0.0.1 localhost glovebox\n::1 localhost glovebox\n" },
	{ "etc/hostname", "glovebox\n" },
	/* Where egress answers when the box has network. When it has none, nobody is there, and the
	 * kernel says so at once. The comment is for a reader of the file. */
	{ "etc/resolv.conf", "# answered for a sandbox that has network, by its rules\n"
			     "nameserver 127.0.0.53\noptions timeout:2 attempts:1\n" },
	{ "etc/nsswitch.conf", "passwd: files\ngroup: files\nhosts: files dns\n" },
	{ "etc/machine-id", "00000000000000000000000000000001\n" },
	{ "etc/shells", "/bin/sh\n/bin/bash\n" },
	/* `bash -l -c` reads it before each command, so it says nothing and starts nothing. A PATH
	 * that was given stays. */
	{ "etc/profile",
	  ": \"${PATH:=" WIRE_BOX_PATH "}\"\n"
	  "export PATH\n"
	  "umask 022\n"
	  "if [ -n \"${BASH_VERSION-}\" ] && [ -n \"${PS1-}\" ]; then . /etc/bash.bashrc; fi\n" },
	{ "etc/bash.bashrc", "[ -n \"${PS1-}\" ] || return\n"
			     "shopt -s checkwinsize\n"
			     "PS1='\\u@\\h:\\w\\$ '\n"
			     "alias ls='ls --color=auto' grep='grep --color=auto'\n" },
};

/* Below /etc; a name that the host does not have is passed over. */
static const char *const copied[] = {
	"alternatives",
	"ld.so.cache",
	"ld.so.conf",
	"ld.so.conf.d",
	"ssl/certs",
	"ssl/openssl.cnf",
	"ca-certificates",
	"java-11-openjdk",
	"java-17-openjdk",
	"java-21-openjdk",
	"java-25-openjdk",
	"R",
	"perl",
	"php",
	"python3",
	"python3.11",
	"python3.12",
	"python3.13",
	"matplotlibrc",
	"mime.types",
	"localtime",
	"timezone",
	"protocols",
	"services",
	"magic",
	"fonts",
	"os-release",
	"debian_version",
	"lsb-release",
	"inputrc",
	"terminfo",
	"locale.alias",
	"gitconfig",
};

struct file_copy {
	uint64_t bytes;
};

static int copy_name(struct file_copy *c, int from_fd, int to_fd, const char *name, unsigned depth);

static int copy_file(struct file_copy *c, int from_fd, int to_fd, const char *name,
		     const struct stat *st)
{
	_cleanup_(fd_closep) int out =
		openat(to_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, st->st_mode & 0755);
	char chunk[16384];
	ssize_t n;

	if (out < 0)
		return -errno;
	while ((n = read(from_fd, chunk, sizeof(chunk))) > 0) {
		c->bytes += (uint64_t)n;
		if (c->bytes > COPY_MAX)
			return -EFBIG;
		if (write(out, chunk, (size_t)n) != n)
			return -EIO;
	}
	if (n < 0)
		return -errno;
	/* Compiled Python files remember their source's time. */
	return futimens(out, (const struct timespec[]){ st->st_atim, st->st_mtim }) < 0 ? -errno :
											  0;
}

static int copy_dir(struct file_copy *c, int *from_fd, int to_fd, const char *name, unsigned depth)
{
	_cleanup_(dir_closep) DIR *dir = NULL;
	_cleanup_(fd_closep) int sub_fd = -EBADF;
	struct dirent *entry;

	if (mkdirat(to_fd, name, 0755) < 0 && errno != EEXIST)
		return -errno;
	sub_fd = openat(to_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	dir = fdopendir(*from_fd);
	if (sub_fd < 0 || !dir)
		return -errno;
	(void)take_fd(from_fd);
	while ((entry = readdir(dir))) {
		int r;

		if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, ".."))
			continue;
		r = copy_name(c, dirfd(dir), sub_fd, entry->d_name, depth + 1);
		if (r < 0)
			return r;
	}
	return 0;
}

static int copy_name(struct file_copy *c, int from_fd, int to_fd, const char *name, unsigned depth)
{
	_cleanup_(fd_closep) int fd = -EBADF;
	struct stat st;

	if (fstatat(from_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : -errno;
	if (S_ISLNK(st.st_mode)) {
		char target[PATH_MAX];
		ssize_t n = readlinkat(from_fd, name, target, sizeof(target) - 1);

		if (n < 0)
			return -errno;
		target[n] = '\0';
		return symlinkat(target, to_fd, name) < 0 && errno != EEXIST ? -errno : 0;
	}
	/* What only some users of the host may read stays out. */
	if (!(st.st_mode & S_IROTH) || (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode)) ||
	    depth > DEPTH_MAX)
		return 0;
	fd = openat(from_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT || errno == EACCES ? 0 : -errno;
	return S_ISDIR(st.st_mode) ? copy_dir(c, &fd, to_fd, name, depth) :
				     copy_file(c, fd, to_fd, name, &st);
}

/* "ssl/certs": makes ssl, then copies certs into it. */
static int copy_path(struct file_copy *c, int from_fd, int to_fd, const char *path)
{
	const char *slash = strchr(path, '/');
	_cleanup_(fd_closep) int from_sub = -EBADF;
	_cleanup_(fd_closep) int to_sub = -EBADF;
	char first[64];

	if (!slash)
		return copy_name(c, from_fd, to_fd, path, 0);
	(void)snprintf(first, sizeof(first), "%.*s", (int)(slash - path), path);
	from_sub = openat(from_fd, first, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (from_sub < 0)
		return errno == ENOENT ? 0 : -errno;
	if (mkdirat(to_fd, first, 0755) < 0 && errno != EEXIST)
		return -errno;
	to_sub = openat(to_fd, first, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return to_sub < 0 ? -errno : copy_path(c, from_sub, to_sub, slash + 1);
}

/* What is ours: *ret_what is the name that failed. */
static int build_own(int dir_fd, const char **ret_what)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(dirs); i++)
		r = mkdirat(dir_fd, *ret_what = dirs[i].name, dirs[i].mode) < 0 ? -errno : 0;
	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(links); i++)
		r = symlinkat(links[i].target, dir_fd, *ret_what = links[i].name) < 0 ? -errno : 0;
	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(files); i++)
		r = template_write_file(dir_fd, *ret_what = files[i].name, 0644, files[i].text,
					strlen(files[i].text));
	if (r == 0)
		r = template_write_file(dir_fd, *ret_what = "opt/glovebox/bin/sudo", 0755,
					agent_image,
					(uintptr_t)agent_image_end - (uintptr_t)agent_image);
	return r < 0 ? r : embedded_write(dir_fd, ret_what);
}

static int add_bundle(int dir_fd, const char *ca_bundle, struct fail *fail)
{
	_cleanup_(buf_done) struct buf bundle = BUF_INIT(BUNDLE_MAX);
	int r = bundle_read(ca_bundle, &bundle, fail);

	return r < 0 ? r : bundle_write(dir_fd, &bundle, fail);
}

int template_build_base(int dir_fd, const char *ca_bundle, struct fail *fail)
{
	_cleanup_(fd_closep) int from_fd = -EBADF;
	_cleanup_(fd_closep) int etc_fd = -EBADF;
	mode_t mask = umask(022);
	struct file_copy c = { 0 };
	const char *what = "";
	int r = build_own(dir_fd, &what);

	if (r == 0) {
		from_fd = open("/etc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		etc_fd = openat(dir_fd, "etc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		r = from_fd < 0 || etc_fd < 0 ? -errno : 0;
	}
	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(copied); i++)
		r = copy_path(&c, from_fd, etc_fd, what = copied[i]);
	if (r < 0)
		r = fail_set(fail, -r, "template", "cannot write %s of the base template: %s", what,
			     strerror(-r));
	else if (*ca_bundle)
		r = add_bundle(dir_fd, ca_bundle, fail);
	(void)umask(mask);
	return r;
}

/* mkdir -p for a path that is ours. It is there but for the first time. */
static int make_dirs(char *path)
{
	if (access(path, F_OK) == 0)
		return 0;
	for (char *p = path + 1; *p; p++) {
		if (*p != '/')
			continue;
		*p = '\0';
		if (mkdir(path, 0755) < 0 && errno != EEXIST) {
			*p = '/';
			return -errno;
		}
		*p = '/';
	}
	return mkdir(path, 0700) < 0 && errno != EEXIST ? -errno : 0;
}

int template_state_dir(char *ret, size_t size, struct fail *fail)
{
	int r = template_state_path(ret, size, fail);

	if (r < 0)
		return r;
	r = make_dirs(ret);
	if (r < 0)
		return fail_set(fail, -r, "template", "cannot make %s: %s", ret, strerror(-r));
	return 0;
}

static int remove_entry(const char *path, const struct stat *st, int kind, struct FTW *ftw)
{
	(void)st;
	(void)kind;
	(void)ftw;
	(void)remove(path);
	return 0;
}

/* Only directories that we made: nothing of a box is ever below them. */
static void remove_tree(const char *path)
{
	(void)nftw(path, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

/* Roots of earlier states of this host that no box can use any more, and what broken-off builds
 * left: the caller holds the lock, so nobody is building now. */
static void prune(const char *dir)
{
	time_t long_ago = time(NULL) - TEMPLATE_KEEP_SECONDS;
	struct dirent *entry;
	DIR *d = opendir(dir);

	while (d && (entry = readdir(d))) {
		char path[PATH_MAX];
		struct stat st;

		if (entry->d_name[0] == '.' ||
		    snprintf(path, sizeof(path), "%s/%s", dir, entry->d_name) >= (int)sizeof(path))
			continue;
		if (strncmp(entry->d_name, "new-", 4) == 0 ||
		    (stat(path, &st) == 0 && st.st_mtime < long_ago))
			remove_tree(path);
	}
	if (d)
		(void)closedir(d);
}

static int build_in(const char *temporary, const char *final, const char *ca_bundle,
		    struct fail *fail)
{
	_cleanup_(fd_closep) int dir_fd = open(temporary, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int r;

	if (dir_fd < 0 || fchmod(dir_fd, 0755) < 0)
		return fail_set(fail, errno, "template", "cannot use %s: %s", temporary,
				strerror(errno));
	r = template_build_base(dir_fd, ca_bundle, fail);
	if (r < 0)
		return r;
	if (rename(temporary, final) < 0)
		return fail_set(fail, errno, "template", "cannot rename %s: %s", temporary,
				strerror(errno));
	return 0;
}

/* Builds beside the final name and renames: nobody ever sees half a root. One at a time. */
static int build(const char *dir, const char *final, const char *ca_bundle, struct fail *fail)
{
	_cleanup_(fd_closep) int lock_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	char temporary[PATH_MAX];
	int r;

	if (lock_fd < 0 || flock(lock_fd, LOCK_EX) < 0)
		return fail_set(fail, errno, "template", "cannot lock %s: %s", dir,
				strerror(errno));
	if (access(final, F_OK) == 0)
		return 0; /* somebody else was faster */
	prune(dir);
	if (snprintf(temporary, sizeof(temporary), "%s/new-XXXXXX", dir) >= (int)sizeof(temporary))
		return fail_set(fail, ENAMETOOLONG, "template", "HOME is too long");
	if (!mkdtemp(temporary))
		return fail_set(fail, errno, "template", "cannot write to %s: %s", dir,
				strerror(errno));
	r = build_in(temporary, final, ca_bundle, fail);
	if (r < 0)
		remove_tree(temporary);
	return r;
}

int template_open(const char *name, const char *ca_bundle, struct template *ret, struct fail *fail)
{
	char dir[TEMPLATE_STATE_SIZE];
	int r = template_find(name, ca_bundle, ret, fail);

	if (r != TEMPLATE_UNBUILT)
		return r;
	r = template_state_dir(dir, sizeof(dir), fail);
	return r < 0 ? r : build(dir, ret->root, ca_bundle, fail);
}
