/* SPDX-License-Identifier: Apache-2.0 */
#include "fault.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

size_t read_path(const char *path, char *buf, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, buf, size - 1);

	if (fd >= 0)
		(void)close(fd);
	buf[n > 0 ? n : 0] = '\0';
	return n > 0 ? (size_t)n : 0;
}

static void seal_add(struct run *r, const char *name, const char *text)
{
	size_t at = strlen(r->seal);

	(void)snprintf(r->seal + at, sizeof(r->seal) - at, "%s: %s\n", name, text);
}

/* A cgroup's number differs from run to run; the directory below ".../glovebox" is the same name. */
static void seal_cgroup(struct run *r, const char *controller, const char *cgroups,
			const char *file)
{
	char key[32], path[512], text[128];
	const char *line, *ours;

	(void)snprintf(key, sizeof(key), ":%s:", controller);
	line = strstr(cgroups, key);
	ours = line ? strstr(line, "/glovebox/box-") : NULL;
	if (!ours)
		return;
	(void)snprintf(path, sizeof(path), "/sys/fs/cgroup/%s%.*s/%s", controller,
		       (int)strcspn(ours, "\n"), ours, file);
	(void)read_path(path, text, sizeof(text));
	seal_add(r, file, text);
}

static void seal_namespaces(struct run *r, pid_t pid)
{
	static const char *const kinds[] = { "user", "mnt", "pid",    "net",
					     "ipc",  "uts", "cgroup", "time" };

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		char path[64];
		struct stat box, host;

		(void)snprintf(path, sizeof(path), "/proc/%d/ns/%s", pid, kinds[i]);
		if (stat(path, &box) < 0)
			continue;
		(void)snprintf(path, sizeof(path), "/proc/self/ns/%s", kinds[i]);
		if (stat(path, &host) < 0)
			continue;
		seal_add(r, kinds[i], box.st_ino == host.st_ino ? "the host's" : "own");
	}
}

/* What the host sees of the command at the moment it is executed. */
void seal_take(struct run *r, pid_t pid)
{
	static const char *const wanted[] = { "Groups:", "CapInh:", "CapPrm:",     "CapEff:",
					      "CapBnd:", "CapAmb:", "NoNewPrivs:", "Seccomp:" };
	char path[64], text[8192];

	(void)snprintf(path, sizeof(path), "/proc/%d/status", pid);
	(void)read_path(path, text, sizeof(text));
	for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
		const char *line = strstr(text, wanted[i]);
		char one[128];

		if (!line)
			continue;
		(void)snprintf(one, sizeof(one), "%.*s", (int)strcspn(line, "\n"), line);
		seal_add(r, "status", one);
	}
	(void)snprintf(path, sizeof(path), "/proc/%d/limits", pid);
	(void)read_path(path, text, sizeof(text));
	seal_add(r, "limits", text);
	(void)snprintf(path, sizeof(path), "/proc/%d/oom_score_adj", pid);
	(void)read_path(path, text, sizeof(text));
	seal_add(r, "oom", text);
	seal_namespaces(r, pid);
	(void)snprintf(path, sizeof(path), "/proc/%d/cgroup", pid);
	(void)read_path(path, text, sizeof(text));
	seal_cgroup(r, "memory", text, "memory.limit_in_bytes");
	seal_cgroup(r, "memory", text, "memory.memsw.limit_in_bytes");
	seal_cgroup(r, "memory", text, "memory.swappiness");
	seal_cgroup(r, "pids", text, "pids.max");
	seal_cgroup(r, "cpu", text, "cpu.cfs_quota_us");
}
