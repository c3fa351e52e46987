/* SPDX-License-Identifier: Apache-2.0 */
/* Becoming somebody else, or somewhere else. */
#include "probe.h"

#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/nsfs.h>
#include <sched.h>
#include <sys/fsuid.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <time.h>

static int status_line(const char *name, char *ret, size_t size)
{
	FILE *f = fopen("/proc/self/status", "re");
	size_t len = strlen(name);
	char line[512];

	while (f && fgets(line, sizeof(line), f)) {
		if (strncmp(line, name, len) != 0 || line[len] != ':')
			continue;
		line[strcspn(line, "\n")] = '\0';
		snprintf(ret, size, "%s", line + len + 1 + strspn(line + len + 1, "\t "));
		fclose(f);
		return 0;
	}
	return BREACH("no %s in /proc/self/status", name);
}

static int no_capabilities(void)
{
	static const char *const sets[] = { "CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb" };
	char text[128];
	int bad = 0;

	for (size_t i = 0; i < N_ELEM(sets); i++)
		if (status_line(sets[i], text, sizeof(text)) || strspn(text, "0") != strlen(text))
			bad |= BREACH("%s %s", sets[i], text);
	return bad;
}

static int denied(const char *what, long r)
{
	return r == -1 && (errno == EPERM || errno == EINVAL || errno == EACCES) ?
		       0 :
		       BREACH("%s: %ld, %m", what, r);
}

static int ns01(void)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct all[2] = { { ~0u, ~0u, ~0u }, { 0x1ff, 0x1ff, 0x1ff } };
	struct __user_cap_data_struct inheritable[2] = { { 0, 0, ~0u }, { 0, 0, 0 } };
	int bad = no_capabilities();

	bad |= denied("setuid", setuid(0)) | denied("seteuid", seteuid(0));
	bad |= denied("setresuid", setresuid(0, 0, 0)) | denied("setreuid", setreuid(-1, 0));
	bad |= denied("setresgid", setresgid(0, 0, 0));
	bad |= denied("capset", syscall(SYS_capset, &head, all));
	bad |= denied("capset inheritable", syscall(SYS_capset, &head, inheritable));
	for (unsigned long cap = 0; cap < 64; cap++) {
		if (prctl(PR_CAPBSET_READ, cap, 0, 0, 0) == 1)
			bad |= BREACH("capability %lu is in the bounding set", cap);
		bad |= denied("ambient", prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, cap, 0, 0));
	}
	bad |= denied("securebits", prctl(PR_SET_SECUREBITS, 0, 0, 0, 0));
	(void)setfsuid(0);
	if (setfsuid(-1) == 0)
		bad |= BREACH("setfsuid(0) worked");
	bad |= no_capabilities();
	if (getuid() == 0 || geteuid() == 0)
		bad |= BREACH("uid 0");
	return bad ? 1 : SAFE("no capability, none to be had");
}

/* Waits until it is told to end, while the host looks; one child, one file of its own. */
static int hold(void)
{
	char line[8];

	if (fork() == 0)
		for (;;)
			pause();
	puts("ready");
	(void)!read(0, line, sizeof(line));
	return SAFE("end");
}

static int try_ns(const char *path, unsigned long kind)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC), bad, up;

	if (fd < 0)
		return errno == EACCES || errno == ENOENT || errno == EPERM ?
			       0 :
			       BREACH("%s: %m", path);
	{
		struct call calls[] = {
			CALL(setns, EPERM, (unsigned long)fd, 0),
			CALL(setns, EPERM, (unsigned long)fd, kind),
		};

		bad = all_refused(calls, N_ELEM(calls));
	}
	/* Whose parent is it? The answer would be a way up. */
	up = ioctl(fd, NS_GET_PARENT);
	if (up >= 0)
		bad |= BREACH("%s: got the namespace above", path);
	up = ioctl(fd, NS_GET_USERNS);
	if (up >= 0 && ioctl(up, NS_GET_PARENT) >= 0)
		bad |= BREACH("%s: got the user namespace above", path);
	close(fd);
	return bad;
}

static int ns04(void)
{
	static const struct {
		const char *name;
		unsigned long kind;
	} kinds[] = {
		{ "user", CLONE_NEWUSER }, { "mnt", CLONE_NEWNS },        { "pid", CLONE_NEWPID },
		{ "net", CLONE_NEWNET },   { "ipc", CLONE_NEWIPC },       { "uts", CLONE_NEWUTS },
		{ "time", 0x80 },          { "cgroup", CLONE_NEWCGROUP },
	};
	unsigned long init = (unsigned long)syscall(SYS_pidfd_open, 1, 0);
	struct call enter = CALL(setns, EPERM, init, CLONE_NEWNS | CLONE_NEWUSER | CLONE_NEWPID);
	int bad = all_refused(&enter, 1);
	char path[64];

	for (size_t i = 0; i < N_ELEM(kinds); i++) {
		for (int pid = 0; pid < 4; pid++) {
			if (pid == 0)
				snprintf(path, sizeof(path), "/proc/self/ns/%s", kinds[i].name);
			else
				snprintf(path, sizeof(path), "/proc/%d/ns/%s", pid, kinds[i].name);
			bad |= try_ns(path, kinds[i].kind);
		}
		snprintf(path, sizeof(path), "/proc/1/ns/%s", kinds[i].name);
		if (open(path, O_RDONLY) >= 0)
			bad |= BREACH("%s can be opened", path);
	}
	return bad ? 1 : SAFE("no way into another namespace");
}

/* Prints what names the machine; the host compares. */
static int ns05(void)
{
	struct utsname u;
	char host[128] = "";

	if (uname(&u) < 0 || gethostname(host, sizeof(host)) < 0)
		return BREACH("uname: %m");
	printf("nodename=%s\ndomainname=%s\nhostname=%s\nhostid=%lx\n", u.nodename, u.domainname,
	       host, gethostid());
	return 0;
}

static int ns06(void)
{
	static const struct {
		const char *name, *want;
	} lines[] = { { "NoNewPrivs", "1" }, { "Seccomp", "2" }, { "Groups", "" } };
	char text[512];
	int bad = 0;

	for (size_t i = 0; i < N_ELEM(lines); i++)
		if (status_line(lines[i].name, text, sizeof(text)) ||
		    strcmp(text, lines[i].want) != 0)
			bad |= BREACH("%s is '%s', want '%s'", lines[i].name, text, lines[i].want);
	if (prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 1)
		bad |= BREACH("prctl says no_new_privs is off");
	if (prctl(PR_SET_NO_NEW_PRIVS, 0, 0, 0, 0) == 0)
		bad |= BREACH("no_new_privs can be taken back");
	return bad ? 1 : SAFE("as it must be");
}

#define KEY "glovebox-escape-NS-07"

/* In the box: is the key that the host's session has in ours, too? */
static int ns07(void)
{
	long session = syscall(SYS_keyctl, 0 /* GET_KEYRING_ID */, -3, 0);
	int refused = session == -1 && errno == ENOSYS;
	long key = syscall(SYS_request_key, "user", KEY, NULL, 0);

	if (key >= 0 || syscall(SYS_keyctl, 10 /* SEARCH */, -3, "user", KEY, 0) >= 0)
		return BREACH("the key of the host's session");
	printf("keyring calls: %s\n", refused ? "refused" : "allowed");
	return refused && errno == ENOSYS ? SAFE("no key, no keyring") : BREACH("keyctl: %m");
}

/* On the host: a session with a key that only it has, and in it the command. */
static int with_key(char **argv)
{
	if (syscall(SYS_keyctl, 1 /* JOIN_SESSION_KEYRING */, "glovebox-escape") < 0)
		return 77;
	if (syscall(SYS_add_key, "user", KEY, "secret", 6, -3) < 0 ||
	    syscall(SYS_request_key, "user", KEY, NULL, 0) < 0)
		return 77;
	/* Everybody may search it: only another session keyring can hide it. */
	syscall(SYS_keyctl, 5 /* SETPERM */, syscall(SYS_request_key, "user", KEY, NULL, 0),
		0x3f3f3f3f);
	syscall(SYS_keyctl, 5 /* SETPERM */, syscall(SYS_keyctl, 0, -3, 0), 0x3f3f3f3f);
	execvp(argv[0], argv);
	return 2;
}

/*
 * On the host: starts the command again and again, kills it ever later while it builds its box, and
 * waits for what it leaves behind, which comes to us as the nearest subreaper.
 */
static int orphans_end(int round)
{
	for (int i = 0; i < 500; i++) {
		pid_t pid = waitpid(-1, NULL, WNOHANG);

		if (pid < 0)
			return 0;
		if (pid == 0)
			usleep(10000);
	}
	return BREACH("round %d: a process of the box outlives whoever made it", round);
}

static int kill_early(char **argv)
{
	int bad = 0, fd = open("/dev/null", O_RDWR);

	if (prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) < 0)
		return BREACH("cannot try: %m");
	for (int round = 0; round < 60 && !bad; round++) {
		pid_t pid = fork();

		if (pid == 0) {
			dup2(fd, 0);
			dup2(fd, 1);
			dup2(fd, 2);
			execvp(argv[0], argv);
			_exit(2);
		}
		usleep((useconds_t)round * 200);
		kill(pid, SIGKILL);
		bad = orphans_end(round);
	}
	return bad ? 1 : SAFE("60 times nothing was left");
}

static int ns09(void)
{
	gid_t groups[64] = { 0 };
	int fd = open("/tmp/mine", O_CREAT | O_WRONLY, 0600), bad = 0;

	if (getgroups(64, groups) != 0)
		bad |= BREACH("there are groups");
	groups[0] = 0;
	bad |= denied("setgroups", setgroups(1, groups)) | denied("no groups", setgroups(0, NULL));
	bad |= denied("setgid", setgid(0)) | denied("setegid", setegid(0));
	bad |= denied("setregid", setregid(-1, 0)) | denied("chgrp", fchown(fd, -1, 0));
	bad |= denied("chown", fchown(fd, 0, -1)) | denied("chgrp 4", fchown(fd, -1, 4));
	(void)setfsgid(0);
	if (setfsgid(-1) == 0)
		bad |= BREACH("setfsgid(0) worked");
	/* A directory that hands on its group does not help either. */
	if (getgid() == 0 || getegid() == 0)
		bad |= BREACH("gid 0");
	return bad ? 1 : SAFE("no other group");
}

int main(int argc, char **argv)
{
	static const struct row rows[] = {
		{ "NS-01", ns01 }, { "hold", hold },  { "NS-04", ns04 }, { "NS-05", ns05 },
		{ "NS-06", ns06 }, { "NS-07", ns07 }, { "NS-09", ns09 },
	};

	setvbuf(stdout, NULL, _IONBF, 0);
	if (argc > 2 && !strcmp(argv[1], "with-key"))
		return with_key(argv + 2);
	if (argc > 2 && !strcmp(argv[1], "kill-early"))
		return kill_early(argv + 2);
	return run_rows(rows, N_ELEM(rows), argc, argv);
}
