/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Crash, restart, leaks. CR-03 is not an attack but a look around: one line with everything a box can see
 * of its own seals. It is compared between a run in which some step failed and one in which none did.
 */
#include "attack.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/utsname.h>

static void status_line(const char *name)
{
	char line[256];
	FILE *f = fopen("/proc/self/status", "re");

	while (f && fgets(line, sizeof(line), f))
		if (strncmp(line, name, strlen(name)) == 0) {
			line[strcspn(line, "\n")] = '\0';
			printf("%s; ", line);
		}
	if (f)
		(void)fclose(f);
}

/* Mounts below a directory, all of them or the read-only ones. */
static int count_mounts(const char *below, const char *how)
{
	char line[1024], point[512], options[256];
	FILE *f = fopen("/proc/self/mountinfo", "re");
	int n = 0;

	while (f && fgets(line, sizeof(line), f))
		n += sscanf(line, "%*s %*s %*s %*s %511s %255s", point, options) == 2 &&
		     strncmp(point, below, strlen(below)) == 0 && strstr(options, how);
	if (f)
		(void)fclose(f);
	return n;
}

static const char *error_of(long r)
{
	return r < 0 ? strerror(errno) : "done";
}

static int look_around(void)
{
	struct utsname u;
	struct statfs disk;
	char window[64];

	status_line("NoNewPrivs");
	status_line("Seccomp:");
	status_line("Cap");
	status_line("Uid");
	status_line("Groups");
	printf("masks %d; mounts %d, %d nosuid, %d nodev, %d read-only; ",
	       count_mounts("/proc/", "ro"), count_mounts("/", ""), count_mounts("/", "nosuid"),
	       count_mounts("/", "nodev"), count_mounts("/", "ro"));
	printf("/proc/sys %d; ", count_mounts("/proc/sys", "ro"));
	printf("kcore %s; ", error_of(open("/proc/kcore", O_WRONLY)));
	/* A right that only Landlock denies: an ordinary user would be told "not a terminal". */
	printf("landlock %s; ", error_of(ioctl(open("/dev/zero", O_RDWR), TIOCGWINSZ, window)));
	/* Two calls of the filter's: one refused by name, one that only pretends. */
	printf("keyctl %s, syncfs %s; ", error_of(syscall(SYS_keyctl, 0, 0, 0)),
	       error_of(syscall(SYS_syncfs, -1)));
	(void)uname(&u);
	printf("host %s; parent %d; ", u.nodename, getppid());
	(void)statfs("/tmp", &disk);
	printf("disk %lu files %lu; ", (unsigned long)(disk.f_blocks * (unsigned long)disk.f_bsize),
	       (unsigned long)disk.f_files);
	printf("cwd %s; umask %o; root %s; net %d\n", getcwd(window, sizeof(window)), umask(0),
	       error_of(open("/root/x", O_CREAT | O_WRONLY, 0600)),
	       access("/sys/class/net", F_OK) == 0);
	return 0;
}

static const struct row rows[] = {
	{ "CR-03", look_around },
};

int main(int argc, char **argv)
{
	return run_rows(rows, sizeof(rows) / sizeof(rows[0]), argc, argv);
}
