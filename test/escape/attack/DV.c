/* SPDX-License-Identifier: Apache-2.0 */
/* DV: attacks on devices and terminals. What the host sees of them is in rows/DV.sh. */
#include "look.h"
#include "probe.h"

#include <sys/ioctl.h>
#include <sys/sysmacros.h>
#include <termios.h>

#define HIGH_BITS 0xdeadbeef00000000UL
#define PTYS_TRIED 300
#define PTYS_MAX 64
#define PASTE_TRIED (16UL << 20)
#define PASTE_MAX (1UL << 20)
#define FLOOD 20000

struct terminal {
	int master, slave;
};

/* A terminal of our own, made our controlling one, so that the kernel has no reason to refuse. */
static struct terminal own_terminal(void)
{
	struct terminal t = { .master = posix_openpt(O_RDWR | O_NOCTTY), .slave = -1 };
	char *name = t.master < 0 || unlockpt(t.master) < 0 ? NULL : ptsname(t.master);

	if (name)
		t.slave = open(name, O_RDWR | O_NOCTTY);
	want(t.slave >= 0, "a terminal of our own: %s", name ? name : strerror(errno));
	(void)setsid();
	(void)ioctl(t.slave, TIOCSCTTY, 0);
	return t;
}

/* The command's leader cannot start a session: a child does it. */
static int with_terminal(void (*piece)(struct terminal t))
{
	pid_t pid = fork();

	if (pid == 0) {
		breaches = 0;
		piece(own_terminal());
		_exit(verdict());
	}
	return ended(pid);
}

static void type_into(struct terminal t)
{
	int tty = open("/dev/tty", O_RDWR);
	int fds[] = { t.slave, t.master, tty, 0, 1, 2 };
	char c = 'x';

	for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
		want_errno(ioctl(fds[i], TIOCSTI, &c), EPERM, "TIOCSTI");
}

static int dv_01(void)
{
	const char *typed = "typed-by-the-box\n";

	want_refused(open("/dev/tty", O_RDWR), "a controlling terminal");
	for (int fd = 0; fd < 3; fd++) {
		want(!isatty(fd), "descriptor %d is no terminal", fd);
		for (const char *c = typed; *c; c++)
			(void)ioctl(fd, TIOCSTI, c);
	}
	breaches += with_terminal(type_into);
	breaches += ALL_REFUSED(CALL(ioctl, EPERM, (unsigned long)-1, TIOCSTI, NOWHERE));
	return verdict();
}

static void paste(struct terminal t)
{
	char paste_selection[2] = { 3 };

	want_errno(ioctl(t.slave, TIOCLINUX, paste_selection), EPERM, "TIOCLINUX");
	want_errno(ioctl(t.slave, TIOCCONS, 0), EPERM, "TIOCCONS");
}

static int dv_02(void)
{
	breaches += with_terminal(paste);
	breaches += ALL_REFUSED(CALL(ioctl, EPERM, (unsigned long)-1, TIOCLINUX, NOWHERE),
				CALL(ioctl, EPERM, (unsigned long)-1, TIOCCONS, 0));
	return verdict();
}

static void set_discipline(struct terminal t)
{
	for (int discipline = 0; discipline < 32; discipline++)
		want_errno(ioctl(t.slave, TIOCSETD, &discipline), EPERM, "TIOCSETD");
}

static int dv_03(void)
{
	breaches += with_terminal(set_discipline);
	breaches += ALL_REFUSED(CALL(ioctl, EPERM, (unsigned long)-1, TIOCSETD, NOWHERE));
	return verdict();
}

static void type_around(struct terminal t)
{
	char c = 'x';

	want_errno(syscall(SYS_ioctl, t.slave, HIGH_BITS | TIOCSTI, &c), EPERM,
		   "TIOCSTI, high bits set");
	want_errno(syscall(SYS_ioctl, HIGH_BITS | (unsigned)t.slave, TIOCSTI, &c), EPERM,
		   "TIOCSTI, high bits in the descriptor");
}

static int dv_04(void)
{
	breaches += with_terminal(type_around);
	breaches +=
		ALL_REFUSED(CALL(ioctl, EPERM, (unsigned long)-1, HIGH_BITS | TIOCSTI, NOWHERE),
			    CALL(ioctl, EPERM, (unsigned long)-1, HIGH_BITS | TIOCLINUX, NOWHERE),
			    CALL(ioctl, EPERM, (unsigned long)-1, HIGH_BITS | TIOCSETD, NOWHERE),
			    CALL(ioctl, EPERM, (unsigned long)-1, 1UL << 32 | TIOCSTI, NOWHERE),
			    CALL(ioctl, EPERM, (unsigned long)-1, 1UL << 63 | TIOCSTI, NOWHERE));
	return verdict();
}

static int dv_05(void)
{
	struct terminal t = own_terminal();

	want(chmod("/dev/pts/0", 0666) == 0 && write(t.slave, "secret", 6) == 6,
	     "everybody may use it");
	hold();
	return verdict();
}

static int dv_05_peer(void)
{
	DIR *dir = opendir("/dev/pts");

	for (struct dirent *e; dir && (e = readdir(dir));)
		want(e->d_name[0] == '.' || strcmp(e->d_name, "ptmx") == 0, "/dev/pts has %s",
		     e->d_name);
	want(dir != NULL, "/dev/pts can be listed");
	for (int i = 0; i < 8; i++) {
		char path[32];

		snprintf(path, sizeof(path), "/dev/pts/%d", i);
		want_errno(open(path, O_RDWR | O_NOCTTY), ENOENT, path);
	}
	return verdict();
}

static int dv_06(void)
{
	static const char *const absent[] = {
		"kvm",           "net/tun",
		"fuse",          "vhost-net",
		"vhost-vsock",   "vsock",
		"loop-control",  "loop0",
		"mem",           "kmem",
		"port",          "kmsg",
		"dri/card0",     "dri/renderD128",
		"snd/seq",       "input/event0",
		"uinput",        "uhid",
		"rtc0",          "hpet",
		"ppp",           "userfaultfd",
		"hwrng",         "console",
		"tty0",          "tty1",
		"ttyS0",         "vcs",
		"fb0",           "mapper/control",
		"nvram",         "cpu/0/msr",
		"ptp0",          "sda",
		"vda",           "nvidia0",
		"sgx_enclave",   "vfio/vfio",
		"btrfs-control", "autofs",
		"snapshot",
	};
	static const char present[] =
		" fd full null ptmx pts random shm stderr stdin stdout tty urandom zero ";
	DIR *dir = opendir("/dev");

	for (size_t i = 0; i < ARRAY_SIZE(absent); i++) {
		char path[64];

		snprintf(path, sizeof(path), "/dev/%s", absent[i]);
		want_errno(open(path, O_RDONLY | O_NONBLOCK), ENOENT, path);
	}
	for (struct dirent *e; dir && (e = readdir(dir));) {
		char name[300];

		snprintf(name, sizeof(name), " %s ", e->d_name);
		want(e->d_name[0] == '.' || strstr(present, name), "/dev has %s", e->d_name);
	}
	want(dir != NULL, "/dev can be listed");
	want_refused(mknod("kvm", S_IFCHR | 0666, makedev(10, 232)), "mknod of kvm");
	want_refused(mknod("/dev/kvm", S_IFCHR | 0666, makedev(10, 232)), "mknod of /dev/kvm");
	want_refused(symlink("/x", "/dev/x"), "another name in /dev");
	breaches +=
		ALL_REFUSED(CALL(mknodat, EPERM, (unsigned long)AT_FDCWD, NOWHERE, S_IFCHR, 0xae8));
	return verdict();
}

/* Each of these has driven somebody's terminal. Colours may pass. */
static int dv_07(void)
{
	static const char nasty[] =
		"\033]0;title\007"              /* the window's title */
		"\033]52;c;ZXZpbA==\007"        /* the clipboard */
		"\033]8;;http://evil\033\\x"    /* a link */
		"\033[6n\033[c\033[>c\033[21t"  /* questions that the terminal answers as input */
		"\033P$q\"p\033\\\033_x\033\\"  /* device control, application command */
		"\033[2J\033[H\033[1A\033[999D" /* other people's lines */
		"\033c\033(0\033#8\033[?1049h\033[?1000h\033[4i"
		"\233"
		"6n\235"
		"0;x\234" /* the same in eight bits */
		"\302\233"
		"6n\302\235"
		"0;x\007"                          /* and in UTF-8 */
		"\342\200\256desrever\342\200\254" /* right to left */
		"over\rwritten\b\b\b\016\017\005\177"
		"\033[31mred\033[0m\033[38;5;1m\033[0m\n";
	char path[] = "out/\033]0;name\007";

	if (write(1, nasty, sizeof(nasty) - 1) < 0 || write(2, nasty, sizeof(nasty) - 1) < 0)
		return 3;
	(void)mkdir("out", 0755);
	return mkfifo(path, 0644) < 0 ? 3 : 0; /* a name that glovebox will talk about */
}

static int dv_08(void)
{
	struct terminal t = own_terminal();
	static char page[4096];
	size_t pasted = 0;
	int ptys = 1;

	memset(page, 'x', sizeof(page));
	(void)fcntl(t.master, F_SETFL, O_NONBLOCK);
	for (ssize_t n; pasted < PASTE_TRIED && (n = write(t.master, page, sizeof(page))) > 0;)
		pasted += (size_t)n;
	want(pasted <= PASTE_MAX, "%zu bytes pasted that nobody reads", pasted);
	for (int i = 0; i < FLOOD; i++) {
		struct winsize size = { .ws_row = (unsigned short)i, .ws_col = (unsigned short)~i };
		struct termios mode;

		(void)ioctl(t.master, TIOCSWINSZ, &size);
		if (tcgetattr(t.slave, &mode) == 0) {
			mode.c_lflag ^= ICANON | ECHO;
			(void)tcsetattr(t.slave, TCSANOW, &mode);
		}
	}
	for (; ptys < PTYS_TRIED && posix_openpt(O_RDWR | O_NOCTTY) >= 0; ptys++)
		;
	want(ptys > 0 && ptys <= PTYS_MAX, "%d terminals", ptys);
	hold();
	return verdict();
}

static const struct row rows[] = {
	{ "DV-01", dv_01 }, { "DV-02", dv_02 }, { "DV-03", dv_03 },
	{ "DV-04", dv_04 }, { "DV-05", dv_05 }, { "DV-05-peer", dv_05_peer },
	{ "DV-06", dv_06 }, { "DV-07", dv_07 }, { "DV-08", dv_08 },
};

int main(int argc, char **argv)
{
	return run_rows(rows, ARRAY_SIZE(rows), argc, argv);
}
