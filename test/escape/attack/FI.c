/* SPDX-License-Identifier: Apache-2.0 */
/*
 * FI: what a payload can put into /home/user/out, so that copying it out would take something else
 * along, never end, or cost the host more than the box's limits. `FI listxattr PATH` is the host's view.
 */
#include "attack.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/xattr.h>

#define OUT "/home/user/out"

static int put_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);

	if (fd < 0 || write(fd, text, strlen(text)) < 0)
		return -1;
	return close(fd);
}

/* Swaps a file, a link to a file and a directory under one name for as long as it lives. */
static int fi_03(void)
{
	mkdir(OUT, 0755);
	if (chdir(OUT) < 0 || put_file("file", "the box's own\n") < 0)
		return 2;
	mkdir("dir", 0755);
	if (put_file("dir/inner", "the box's own\n") < 0 || symlink("/etc/passwd", "link") < 0 ||
	    symlink("/etc", "dirlink") < 0)
		return 2;
	/* A process of its own, with every signal ignored: it must end with the command all the same. */
	for (int i = 0; i < 2; i++) {
		if (fork() != 0)
			continue;
		setsid();
		for (int sig = 1; sig < 65; sig++)
			signal(sig, SIG_IGN);
		for (;;) {
			syscall(SYS_renameat2, AT_FDCWD, "file", AT_FDCWD, "link", RENAME_EXCHANGE);
			syscall(SYS_renameat2, AT_FDCWD, "dir", AT_FDCWD, "dirlink",
				RENAME_EXCHANGE);
		}
	}
	usleep(20000);
	return SAFE("two processes swap");
}

static int fi_05(void)
{
	struct sockaddr_un sun = { .sun_family = AF_UNIX, .sun_path = OUT "/socket" };
	int s = socket(AF_UNIX, SOCK_STREAM, 0);

	mkdir(OUT, 0755);
	mkdir(OUT "/empty", 0755);
	if (mkfifo(OUT "/fifo", 0666) < 0 || put_file(OUT "/file", "x") < 0)
		return 2;
	if (s < 0 || bind(s, (struct sockaddr *)&sun, sizeof(sun)) < 0)
		return 2;
	if (symlink("fifo", OUT "/link") < 0)
		return 2;
	if (mknod(OUT "/zero", S_IFCHR | 0666, makedev(1, 5)) == 0)
		return BREACH("made /dev/zero");
	if (mknod(OUT "/disk", S_IFBLK | 0666, makedev(8, 0)) == 0)
		return BREACH("made a disk");
	return SAFE("a FIFO, a socket, a link, a file and a directory");
}

static int fi_08(void)
{
	char path[64];
	int fd;

	signal(SIGXFSZ, SIG_IGN);
	mkdir(OUT, 0755);
	fd = open(OUT "/huge", O_WRONLY | O_CREAT, 0644);
	if (fd < 0)
		return 2;
	if (ftruncate(fd, (off_t)1 << 40) == 0)
		return BREACH("a file of 1 TiB");
	if (lseek(fd, ((off_t)1 << 40) - 1, SEEK_SET) < 0 || write(fd, "x", 1) == 1)
		return BREACH("a byte at 1 TiB");
	close(fd);
	unlink(OUT "/huge");
	/* Each within the limit of a file, together far beyond the limit of all. */
	for (int i = 0; i < 20; i++) {
		snprintf(path, sizeof(path), OUT "/sparse-%02d", i);
		fd = open(path, O_WRONLY | O_CREAT, 0644);
		if (fd < 0 || ftruncate(fd, 7 << 20) < 0)
			return 2;
		close(fd);
	}
	return SAFE("20 sparse files");
}

/* Names as long as they can be, as many as there can be: what the host keeps of them is its memory. */
static int fi_11(void)
{
	char name[256], link[16];
	int n;

	mkdir(OUT, 0755);
	if (chdir(OUT) < 0)
		return 2;
	memset(name, 0xff, 255);
	name[255] = '\0';
	for (int depth = 0; depth < 15; depth++)
		if (mkdir(name, 0755) < 0 || chdir(name) < 0)
			return 2;
	if (symlink(".", "cycle") < 0 || symlink("..", "up") < 0)
		return 2;
	for (n = 0; n < 1000000; n++) {
		snprintf(link, sizeof(link), "%d", n);
		if (symlink("x", link) < 0)
			break;
	}
	if (n == 1000000)
		return BREACH("a million links");
	return SAFE("%d links", n);
}

/* What would mean something on another file system: whiteouts, overlay's marks, capabilities. */
static int fi_14(void)
{
	static const char caps[20] = { 1, 0, 0, 2, (char)0xff };

	mkdir(OUT, 0755);
	mkdir(OUT "/dir", 0755);
	if (put_file(OUT "/tool", "#!/bin/sh\n") < 0 || chmod(OUT "/tool", 06755) < 0)
		return 2;
	if (mknod(OUT "/whiteout", S_IFCHR, makedev(0, 0)) == 0)
		printf("made a whiteout\n"); /* any user may, on some kernels; it must not come out */
	if (setxattr(OUT "/dir", "trusted.overlay.opaque", "y", 1, 0) == 0)
		return BREACH("an opaque mark");
	if (setxattr(OUT "/tool", "security.capability", caps, sizeof(caps), 0) == 0)
		return BREACH("a file with capabilities");
	(void)!setxattr(OUT "/tool", "user.note", "x", 1, 0);
	(void)!setxattr(OUT "/dir", "user.overlay.opaque", "y", 1, 0);
	return SAFE("no marks but our own");
}

static int try_link(const char *from)
{
	int fd = open(from, O_RDONLY | O_PATH);

	if (linkat(AT_FDCWD, from, AT_FDCWD, OUT "/stolen", AT_SYMLINK_FOLLOW) == 0)
		return BREACH("linked %s", from);
	if (fd >= 0 && linkat(fd, "", AT_FDCWD, OUT "/stolen", AT_EMPTY_PATH) == 0)
		return BREACH("linked %s by descriptor", from);
	return 0;
}

static int fi_15(void)
{
	static const char *const secrets[] = {
		"/proc/1/exe", "/proc/1/environ", "/proc/1/fd/3", "/proc/1/root/etc/passwd",
		"/etc/shadow", "/etc/passwd",     "/usr/bin/env", "/dev/null",
	};

	mkdir(OUT, 0755);
	for (size_t i = 0; i < sizeof(secrets) / sizeof(secrets[0]); i++)
		if (try_link(secrets[i]))
			return 1;
	return SAFE("nothing to link to");
}

int main(int argc, char **argv)
{
	static const struct row rows[] = {
		{ "FI-03", fi_03 }, { "FI-05", fi_05 }, { "FI-08", fi_08 },
		{ "FI-11", fi_11 }, { "FI-14", fi_14 }, { "FI-15", fi_15 },
	};
	char list[4096];

	if (argc == 3 && !strcmp(argv[1], "listxattr")) {
		ssize_t n = llistxattr(argv[2], list, sizeof(list));

		for (ssize_t at = 0; at < n; at += (ssize_t)strlen(list + at) + 1)
			puts(list + at);
		return n < 0 && errno != ENOTSUP;
	}
	return run_rows(rows, sizeof(rows) / sizeof(rows[0]), argc, argv);
}
