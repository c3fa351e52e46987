/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fails, or kills at, every system call of a run, one after the other.
 *
 *	fault [-e ERRNO | -k] [-r ROLES] [-s STEP] [-o FIRST] [-d DIR] -- GLOVEBOX run --json … -- COMMAND
 *
 * Theory of operation. The run is traced. Its processes have numbers that are the same in every run: 0 is
 * glovebox, 9 a helper of it that stays outside, the others their pids in the box: 1 is set up and becomes
 * the agent, what follows are forks of the agent. A first run without a fault counts the system calls of
 * each and remembers what COMMAND printed, the isolation glovebox reported, and what the host sees of
 * COMMAND when it starts: its credentials, limits, namespaces and cgroup files. Then, for each process and
 * each of its calls up to COMMAND's own start, a run in which that call fails with ERRNO (or the process
 * is killed there). Such a run must end, and either say cleanly that it failed, or have been exactly as
 * sealed as the first. What differs in what glovebox itself reports is left in DIR for somebody else to
 * judge. Afterwards nothing may be left.
 *
 * Meant to run in test/crash/alone: every process and every box it can see is its own.
 */
#include "fault.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <seccomp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static int fault_errno = ENOMEM;
static const char *odd_dir;
static int failures, points, left_behind;
static struct run base, now;

static _Noreturn void die(const char *what)
{
	perror(what);
	exit(2);
}

/* "key": up to the end of the line, or of the whole object for the last one. */
static void json_part(const char *out, const char *key, bool to_end, char *ret, size_t size)
{
	const char *at = strstr(out, key);

	(void)snprintf(ret, size, "%.*s", at ? (int)(to_end ? strlen(at) : strcspn(at, "\n")) : 0,
		       at ? at : "");
}

static bool same_part(const char *key, bool to_end)
{
	static char a[TEXT_MAX], b[TEXT_MAX];

	json_part(base.out, key, to_end, a, sizeof(a));
	json_part(now.out, key, to_end, b, sizeof(b));
	return strcmp(a, b) == 0;
}

static void write_text(const char *name, const char *ending, const char *text)
{
	char path[512];
	FILE *f;

	(void)snprintf(path, sizeof(path), "%s/%s%s", odd_dir, name, ending);
	f = fopen(path, "w");
	if (!f)
		die(path);
	(void)fputs(text, f);
	(void)fclose(f);
}

/* What glovebox reported and what the host saw, for somebody else to compare. */
static void keep(const char *name, const struct run *r)
{
	if (!odd_dir)
		return;
	write_text(name, ".json", r->out);
	write_text(name, ".seal", r->seal);
}

static void keep_odd(void)
{
	char name[64];

	(void)snprintf(name, sizeof(name), "%d-%d-%d", now.role, now.call, now.err);
	keep(name, &now);
}

static bool one_line(const char *text)
{
	const char *end = strchr(text, '\n');

	return strncmp(text, "glovebox: ", 10) == 0 && end && end[1] == '\0';
}

/* NULL when the run ended as it may. */
static const char *verdict(void)
{
	int code = WIFEXITED(now.status) ? WEXITSTATUS(now.status) : -1;

	if (now.hung)
		return "it hung";
	if (now.err == 0 && now.role == 0)
		return WIFSIGNALED(now.status) ? NULL : "it was not killed";
	if (code < 0)
		return "ended by a signal";
	if (code == 125 && strstr(now.out, "\"status\": \"setup_error\"") &&
	    !strstr(now.out, "\"message\": \"\""))
		return NULL;
	if (code == 125 && now.role == 0 && now.hit == SCMP_SYS(fcntl) && !now.err_text[0])
		return NULL; /* it looks for its standard descriptors: there is nowhere to say it */
	if ((code == 125 || code == 2) && !now.out[0])
		return one_line(now.err_text) ? NULL : "did not say in one line what is wrong";
	if (code == 128 + SIGKILL && now.err == 0 && now.role >= 2)
		return NULL; /* the command's own process was killed, and that is what is said */
	if (code == 126 && now.role >= 2)
		return NULL; /* the command could not be executed */
	if (code != 0)
		return now.err == 0 ? "not the status of our own failure" :
				      "neither done nor cleanly refused";
	if (strcmp(now.seal, base.seal) != 0) {
		/* Less than it should be; only right if glovebox says so itself. */
		if (same_part("\"isolation\"", true))
			return "ran, with something silently missing (as the host sees it)";
		keep_odd();
	} else if (!same_part("\"stdout\": ", false)) {
		if (same_part("\"isolation\"", true))
			return "ran, with something silently missing (as the box sees it)";
		keep_odd();
	} else if (!same_part("\"isolation\"", true)) {
		keep_odd();
	}
	return NULL;
}

/* Directories of boxes in any hierarchy. */
static int count_boxes(void)
{
	static const char *const trees[] = { "memory", "pids", "cpu", "cpuacct", "unified", "." };
	int n = 0;

	for (size_t i = 0; i < sizeof(trees) / sizeof(trees[0]); i++) {
		char path[64];
		struct dirent *de;
		DIR *d;

		(void)snprintf(path, sizeof(path), "/sys/fs/cgroup/%s/glovebox", trees[i]);
		d = opendir(path);
		while (d && (de = readdir(d)))
			n += strncmp(de->d_name, "box-", 4) == 0;
		if (d)
			(void)closedir(d);
	}
	return n;
}

/* Living processes of this pid namespace beside those that were there before. */
static int count_processes(void)
{
	struct dirent *de;
	DIR *d = opendir("/proc");
	int n = 0;

	while (d && (de = readdir(d))) {
		char path[300], text[256];
		const char *state;

		if (de->d_name[0] < '0' || de->d_name[0] > '9')
			continue;
		(void)snprintf(path, sizeof(path), "/proc/%s/stat", de->d_name);
		if (!read_path(path, text, sizeof(text)))
			continue;
		state = strrchr(text, ')');
		n += state && state[1] && state[2] != 'Z';
	}
	if (d)
		(void)closedir(d);
	return n;
}

static void run_plain(char **argv)
{
	pid_t pid = fork();
	int status = -1;

	if (pid == 0) {
		int null_fd = open("/dev/null", O_RDWR);
		char *clean[] = { argv[0], (char[]){ "run" }, (char[]){ "--" },
				  (char[]){ "/bin/true" }, NULL };

		(void)dup2(null_fd, 0);
		(void)dup2(null_fd, 1);
		execvp(clean[0], clean);
		_exit(126);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0)
		(void)printf("FAIL a run after that ended with status %x\n", status), failures++;
}

static const char *leftovers(char **argv, int processes)
{
	for (int i = 0; i < 40 && count_processes() > processes; i++)
		(void)usleep(50000);
	if (count_processes() > processes)
		return "a process is still there after 2 s";
	if (count_boxes() == 0)
		return NULL;
	left_behind++;
	run_plain(argv);
	return count_boxes() == 0 ? NULL : "its cgroups are still there after the next start";
}

/* The first line in which the two seals differ, for whoever has to find out why. */
static void name_difference(void)
{
	size_t at = 0, line = 0;

	while (base.seal[at] && base.seal[at] == now.seal[at]) {
		if (base.seal[at] == '\n')
			line = at + 1;
		at++;
	}
	if (now.seal[0] && base.seal[at] != now.seal[at])
		(void)printf("  was '%.*s', is '%.*s'\n", (int)strcspn(base.seal + line, "\n"),
			     base.seal + line, (int)strcspn(now.seal + line, "\n"),
			     now.seal + line);
}

static void try_point(char **argv, int role, int call, int processes)
{
	const char *why, *left;
	char *name;

	run_start(&now, role, call, fault_errno);
	run_traced(&now, argv);
	if (now.hit < 0 && !now.hung)
		return; /* this time it did not get that far */
	points++;
	why = verdict();
	left = leftovers(argv, processes);
	if (!why && !left)
		return;
	failures++;
	name = seccomp_syscall_resolve_num_arch(SCMP_ARCH_NATIVE, now.hit);
	(void)printf("FAIL process %d call %d (%s) %s: %s%s%s\n", role, call, name ? name : "?",
		     fault_errno ? strerror(fault_errno) : "killed", why ? why : "",
		     why && left ? "; " : "", left ? left : "");
	if (why)
		(void)printf("  status %x, stdout %.1500s, stderr %.300s\n", now.status, now.out,
			     now.err_text);
	free(name);
	name_difference();
}

static int errno_of(const char *name)
{
	static const struct {
		const char *name;
		int value;
	} known[] = { { "ENOMEM", ENOMEM }, { "EMFILE", EMFILE }, { "EPERM", EPERM },
		      { "EINTR", EINTR },   { "EIO", EIO },       { "EAGAIN", EAGAIN } };

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (strcmp(name, known[i].name) == 0)
			return known[i].value;
	(void)fprintf(stderr, "unknown error %s\n", name);
	exit(2);
}

int main(int argc, char **argv)
{
	int step = 1, first = 1, processes, option;
	const char *roles = "0123456789";

	while ((option = getopt(argc, argv, "+e:kr:s:o:d:")) > 0)
		switch (option) {
		case 'e':
			fault_errno = errno_of(optarg);
			break;
		case 'k':
			fault_errno = 0;
			break;
		case 'r':
			roles = optarg;
			break;
		case 's':
			step = atoi(optarg);
			break;
		case 'o':
			first = atoi(optarg);
			break;
		case 'd':
			odd_dir = optarg;
			break;
		default:
			return 2;
		}
	argv += optind;
	(void)setvbuf(stdout, NULL, _IOLBF, 0);
	run_start(&base, -1, 0, 0);
	run_traced(&base, argv);
	if (base.status != 0 || !base.seal[0]) {
		(void)printf("the run without a fault failed: status %x\n%s%s", base.status,
			     base.out, base.err_text);
		return 2;
	}
	keep("whole", &base);
	processes = count_processes();
	for (const char *c = roles; *c; c++)
		for (int role = *c - '0', call = first + (role == 0 ? base.own_code - 1 : 0);
		     call <= base.calls[role]; call += step)
			try_point(argv, role, call, processes);
	(void)printf("%d points, %d failed, %d left cgroups to the next start\n", points, failures,
		     left_behind);
	return failures > 0 || points == 0;
}
