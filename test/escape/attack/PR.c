/* SPDX-License-Identifier: Apache-2.0 */
/* PR: attacks through /proc, /sys and cgroups. What the host sees of them is in rows/PR.sh. */
#include "look.h"
#include "probe.h"

#include <ctype.h>
#include <sched.h>
#include <sys/klog.h>
#include <sys/mman.h>
#include <sys/sysinfo.h>
#include <time.h>

int mount(const char *source, const char *target, const char *type, unsigned long flags,
	  const void *data);

#define MANY_PIDS 64
#define BOMB_BYTES (300UL << 20) /* bounded, so that the test can be run without the limit */
#define YOUNG 300                /* seconds that no box of this suite lives */

static char text[256 << 10];

/*
 * Opening with O_TRUNC asks the mount first and the file's owner second, so EROFS means that the
 * mount is read-only, whoever we are.
 */
static void want_read_only(const char *path)
{
	want_errno(open(path, O_WRONLY | O_TRUNC), EROFS, path);
	want_refused(open(path, O_RDWR), path);
}

static int pr_01(void)
{
	want_read_only("/proc/sys/kernel/core_pattern");
	want_read_only("/proc/sys/kernel/core_uses_pid");
	want_read_only("/proc/sys/kernel/hostname");
	want_read_only("/proc/sys/vm/overcommit_memory");
	return verdict();
}

/* Never written to: a test must not reboot the machine that it finds to be open. */
static int pr_02(void)
{
	want_refused(open("/proc/sysrq-trigger", O_WRONLY), "/proc/sysrq-trigger");
	want_refused(open("/proc/sysrq-trigger", O_RDWR), "/proc/sysrq-trigger");
	if (access("/proc/sys/kernel/sysrq", F_OK) == 0)
		want_read_only("/proc/sys/kernel/sysrq");
	want_read_only("/proc/sys/kernel/panic");
	return verdict();
}

static int pr_03(void)
{
	static const char *const paths[] = {
		"/proc/kcore",     "/proc/kallsyms",    "/proc/kmsg",         "/proc/modules",
		"/proc/config.gz", "/proc/kpagecount",  "/proc/kpageflags",   "/proc/kpagecgroup",
		"/proc/slabinfo",  "/proc/vmallocinfo", "/proc/pagetypeinfo", "/proc/zoneinfo",
		"/proc/cmdline",   "/proc/iomem",       "/proc/ioports",      "/dev/mem",
		"/dev/kmem",       "/dev/kmsg",         "/dev/port",
	};

	for (size_t i = 0; i < ARRAY_SIZE(paths); i++) {
		want_hidden(paths[i]);
		want_refused(open(paths[i], O_WRONLY), paths[i]);
	}
	want_errno(klogctl(3 /* read all */, text, sizeof(text)), EPERM, "the kernel's log");
	return verdict();
}

static int pr_04(void)
{
	want_refused(open("/proc/sys/fs/binfmt_misc/register", O_WRONLY), "register");
	want_refused(open("/proc/sys/fs/binfmt_misc/status", O_WRONLY), "status");
	want_refused(mkdir("/proc/sys/fs/binfmt_misc/x", 0755), "/proc/sys/fs/binfmt_misc");
	want_errno(mount("none", "/mnt", "binfmt_misc", 0, NULL), EPERM, "mount binfmt_misc");
	want(slurp("/proc/self/mountinfo", text, sizeof(text)) > 0 && !strstr(text, "binfmt_misc"),
	     "it is not mounted");
	return verdict();
}

static void mount_cgroups(void)
{
	static const char *const options[] = { "memory", "devices", "freezer", "rdma",
					       "none,name=x" };

	if (unshare(CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWCGROUP) == 0)
		want(false, "got namespaces to mount cgroups in");
	for (size_t i = 0; i < ARRAY_SIZE(options); i++)
		want_refused(mount("none", "/tmp", "cgroup", 0, options[i]), options[i]);
	want_refused(mount("none", "/tmp", "cgroup2", 0, NULL), "cgroup2");
	want_refused(open("/tmp/release_agent", O_WRONLY), "release_agent");
}

static int pr_05(void)
{
	want(slurp("/proc/self/mountinfo", text, sizeof(text)) > 0 && !strstr(text, " - cgroup"),
	     "no cgroup file system in the box");
	want_errno(unshare(CLONE_NEWUSER | CLONE_NEWCGROUP), EPERM, "namespaces for release_agent");
	mount_cgroups();
	return verdict();
}

static int entries(const char *path)
{
	DIR *dir = opendir(path);
	int n = 0;

	for (struct dirent *e; dir && (e = readdir(dir));)
		n += strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0;
	return dir ? n : -1;
}

static int pr_06(void)
{
	static const char *const paths[] = {
		"/sys/kernel/uevent_helper",
		"/sys/kernel/mm/ksm/run",
		"/sys/kernel/debug/tracing/trace",
		"/sys/fs/cgroup/release_agent",
		"/sys/fs/bpf/x",
		"/sys/module/x",
		"/sys/power/state",
		"/sys/kernel/security/x",
		"/sys/block/x",
		"/sys/fs/selinux/enforce",
	};

	want(entries("/sys") == 0, "/sys has %d entries", entries("/sys"));
	for (size_t i = 0; i < ARRAY_SIZE(paths); i++)
		want_refused(open(paths[i], O_WRONLY), paths[i]);
	want_refused(mkdir("/sys/x", 0755), "a directory in /sys");
	want_errno(mount("none", "/mnt", "sysfs", 0, NULL), EPERM, "mount sysfs");
	breaches += ALL_REFUSED(CALL(mount, EPERM, NOWHERE, NOWHERE, NOWHERE, 0, NOWHERE));
	return verdict();
}

/* The runtime's own program, through every process that may be running it. */
static int pr_07(void)
{
	char path[64], again[64];

	for (int pid = 1; pid < MANY_PIDS; pid++) {
		int fd;

		if (pid == getpid())
			continue;
		snprintf(path, sizeof(path), "/proc/%d/exe", pid);
		if (open(path, O_WRONLY) >= 0 || open(path, O_RDWR) >= 0)
			want(false, "%s can be written", path);
		fd = open(path, O_PATH);
		snprintf(again, sizeof(again), "/proc/self/fd/%d", fd);
		if (fd >= 0 && open(again, O_WRONLY) >= 0)
			want(false, "%s can be written after O_PATH", path);
	}
	want_errno(open("/proc/self/exe", O_WRONLY), ETXTBSY, "our own program while it runs");
	want_refused(open("/proc/1/exe", O_RDONLY), "/proc/1/exe");
	return verdict();
}

static int pr_08(void)
{
	static const char *const files[] = {
		"mem",     "environ", "maps",       "fd",         "fdinfo",        "fd/3",
		"root",    "cwd",     "exe",        "auxv",       "cmdline",       "status",
		"stat",    "ns/user", "task/1/mem", "map_files",  "mountinfo",     "io",
		"pagemap", "syscall", "stack",      "clear_refs", "oom_score_adj",
	};
	char path[64];

	for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
		snprintf(path, sizeof(path), "/proc/1/%s", files[i]);
		want_errno(open(path, O_RDONLY), ENOENT, path);
		want_errno(open(path, O_WRONLY), ENOENT, path);
	}
	want_errno(chdir("/proc/1/root"), ENOENT, "/proc/1/root");
	return verdict();
}

static int pr_09(void)
{
	static const char *const files[] = {
		"/proc/keys",       "/proc/key-users",  "/proc/timer_list",    "/proc/sched_debug",
		"/proc/interrupts", "/proc/softirqs",   "/proc/latency_stats", "/proc/locks",
		"/proc/diskstats",  "/proc/partitions", "/proc/swaps",         "/proc/schedstat",
		"/proc/mtrr",       "/proc/consoles",   "/proc/crypto",
	};
	static const char *const dirs[] = {
		"/proc/scsi", "/proc/acpi", "/proc/asound",   "/proc/bus",           "/proc/driver",
		"/proc/fs",   "/proc/irq",  "/proc/pressure", "/proc/dynamic_debug",
	};

	for (size_t i = 0; i < ARRAY_SIZE(files); i++)
		want_hidden(files[i]);
	for (size_t i = 0; i < ARRAY_SIZE(dirs); i++)
		want(entries(dirs[i]) <= 0, "%s: %d entries", dirs[i], entries(dirs[i]));
	return verdict();
}

static int pr_10(void)
{
	static const char *const paths[] = {
		"/sys/class/powercap",
		"/sys/devices/virtual/powercap/intel-rapl",
		"/sys/devices/system/cpu/cpu0/thermal_throttle/core_throttle_count",
		"/sys/firmware",
		"/sys/firmware/dmi/tables/DMI",
		"/sys/class/thermal",
		"/sys/class/hwmon",
		"/sys/class/dmi/id/product_uuid",
		"/sys/devices",
		"/sys/bus/event_source",
		"/dev/cpu/0/msr",
	};

	for (size_t i = 0; i < ARRAY_SIZE(paths); i++)
		want_errno(access(paths[i], F_OK), ENOENT, paths[i]);
	return verdict();
}

static long seconds(clockid_t clock)
{
	struct timespec now;

	return clock_gettime(clock, &now) < 0 ? -1 : (long)now.tv_sec;
}

static int pr_11(void)
{
	long host_boot = atol(told("HOST_BTIME")), boot = 0;
	struct sysinfo info;
	char *found;

	want(seconds(CLOCK_BOOTTIME) < YOUNG, "boot clock: %ld s", seconds(CLOCK_BOOTTIME));
	want(seconds(CLOCK_MONOTONIC) < YOUNG, "monotonic clock: %ld s", seconds(CLOCK_MONOTONIC));
	want(seconds(CLOCK_MONOTONIC_RAW) < YOUNG, "raw clock: %ld s",
	     seconds(CLOCK_MONOTONIC_RAW));
	want(sysinfo(&info) == 0 && info.uptime < YOUNG, "sysinfo: %ld s", info.uptime);
	want(slurp("/proc/uptime", text, sizeof(text)) > 0 && atol(text) < YOUNG,
	     "/proc/uptime: %s", text);
	found = slurp("/proc/stat", text, sizeof(text)) > 0 ? strstr(text, "\nbtime ") : NULL;
	if (found)
		boot = atol(found + 7);
	want(boot > host_boot + YOUNG, "btime %ld, the host's %ld", boot, host_boot);
	want(slurp("/proc/sys/kernel/random/boot_id", text, sizeof(text)) > 0 &&
		     !strstr(text, told("HOST_BOOT_ID")),
	     "boot id: %s", text);
	return verdict();
}

static int pr_12(void)
{
	static const char *const paths[] = {
		"/sys/fs/cgroup/memory.max",    "/sys/fs/cgroup/cgroup.freeze",
		"/sys/fs/cgroup/cpu.max",       "/sys/fs/cgroup/memory/memory.limit_in_bytes",
		"/sys/fs/cgroup/pids/pids.max", "/sys/fs/cgroup/freezer/freezer.state",
		"/sys/fs/cgroup/cgroup.procs",
	};
	static const char *const hidden[] = { ":memory:", ":pids:", "0::" };

	for (size_t i = 0; i < ARRAY_SIZE(paths); i++)
		want_refused(open(paths[i], O_WRONLY), paths[i]);
	want(slurp("/proc/self/mountinfo", text, sizeof(text)) > 0 && !strstr(text, " - cgroup"),
	     "no cgroup file system in the box");
	want(slurp("/proc/self/cgroup", text, sizeof(text)) > 0, "own cgroups:\n%s", text);
	for (char *save, *line = strtok_r(text, "\n", &save); line;
	     line = strtok_r(NULL, "\n", &save))
		for (size_t i = 0; i < ARRAY_SIZE(hidden); i++)
			if (strstr(line, hidden[i]))
				want(!strstr(line, "glovebox"), "no name of the host's in %s",
				     line);
	return verdict();
}

static int set_oom_score(const char *score)
{
	int fd = open("/proc/self/oom_score_adj", O_WRONLY);

	return fd < 0 ? -1 : (int)write(fd, score, strlen(score));
}

static int pr_13(void)
{
	want_errno(set_oom_score("-1000"), EACCES, "never to be killed");
	want_errno(set_oom_score("-1"), EACCES, "to be killed after others");
	want(slurp("/proc/self/oom_score_adj", text, sizeof(text)) > 0 && atoi(text) >= 0,
	     "the score is %s", text);
	return verdict();
}

static int pr_13_bomb(void)
{
	char *p =
		mmap(NULL, BOMB_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED) /* where there is no cgroup, the address space is what is limited */
		return 3;
	(void)!set_oom_score("-1000");
	(void)!set_oom_score("0");
	for (size_t i = 0; i < BOMB_BYTES; i += 4096)
		p[i] = 1;
	puts("took it all");
	return 0;
}

static int pr_14(void)
{
	unsigned long inside, outside, count;
	static const struct {
		const char *path, *text;
	} maps[] = {
		{ "/proc/self/uid_map", "0 0 4294967295\n" },
		{ "/proc/self/uid_map", "0 0 1\n" },
		{ "/proc/self/gid_map", "0 0 1\n" },
		{ "/proc/self/setgroups", "allow" },
		{ "/proc/self/timens_offsets", "boottime 1000000 0\n" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(maps); i++) {
		int fd = open(maps[i].path, O_WRONLY);

		want_refused(fd < 0 ? -1 : write(fd, maps[i].text, strlen(maps[i].text)),
			     maps[i].path);
	}
	want(slurp("/proc/self/uid_map", text, sizeof(text)) > 0 &&
		     sscanf(text, "%lu %lu %lu", &inside, &outside, &count) == 3 && outside > 0 &&
		     (count == 1 || outside > 65535),
	     "no other user of the host is mapped: %s", text);
	return verdict();
}

static int pr_15(void)
{
	static const char *const paths[] = {
		"/proc/sys/net/ipv4/ip_forward",
		"/proc/sys/net/ipv4/conf/all/route_localnet",
		"/proc/sys/net/ipv4/conf/lo/rp_filter",
		"/proc/sys/net/ipv4/ip_unprivileged_port_start",
		"/proc/sys/net/ipv4/ping_group_range",
		"/proc/sys/net/core/somaxconn",
	};

	for (size_t i = 0; i < ARRAY_SIZE(paths); i++)
		if (access(paths[i], F_OK) == 0)
			want_read_only(paths[i]);
	want(access(paths[0], F_OK) == 0, "there is a network to tune");
	return verdict();
}

/* Is this number a process of ours, and not the host's that was named to us? */
static int pr_17(void)
{
	const char *needle = told("HOST_ARGUMENT");
	pid_t host = (pid_t)atol(told("HOST_PID"));
	DIR *dir = opendir("/proc");

	for (struct dirent *e; dir && (e = readdir(dir));) {
		char path[300];

		if (!isdigit((unsigned char)e->d_name[0]))
			continue;
		want(atol(e->d_name) < MANY_PIDS, "process %s is a young one's", e->d_name);
		snprintf(path, sizeof(path), "/proc/%s/cmdline", e->d_name);
		if (slurp(path, text, sizeof(text)) <= 0)
			continue;
		for (size_t i = 0; i < sizeof(text) - 1 && (text[i] || text[i + 1]); i++)
			if (!text[i])
				text[i] = ' ';
		want(!strstr(text, needle), "%s is %s", path, text);
	}
	want_errno(kill(host, 0), ESRCH, "signal to the host's process");
	want_errno(syscall(SYS_pidfd_open, host, 0), ESRCH, "pidfd of the host's process");
	want_errno(getpgid(host) < 0 ? -1 : 0, ESRCH, "its process group");
	want_errno(sched_getscheduler(host) < 0 ? -1 : 0, ESRCH, "its scheduler");
	return verdict();
}

static const struct row rows[] = {
	{ "PR-01", pr_01 }, { "PR-02", pr_02 },           { "PR-03", pr_03 }, { "PR-04", pr_04 },
	{ "PR-05", pr_05 }, { "PR-06", pr_06 },           { "PR-07", pr_07 }, { "PR-08", pr_08 },
	{ "PR-09", pr_09 }, { "PR-10", pr_10 },           { "PR-11", pr_11 }, { "PR-12", pr_12 },
	{ "PR-13", pr_13 }, { "PR-13-bomb", pr_13_bomb }, { "PR-14", pr_14 }, { "PR-15", pr_15 },
	{ "PR-17", pr_17 },
};

int main(int argc, char **argv)
{
	return run_rows(rows, ARRAY_SIZE(rows), argc, argv);
}
