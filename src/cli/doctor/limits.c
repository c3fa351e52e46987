/* SPDX-License-Identifier: Apache-2.0 */
/* Limits: who could enforce them, and whether they are. */
#include "base/buf.h"
#include "cli/doctor/doctor.h"
#include "cli/self.h"

#include <fcntl.h>
#include <sys/stat.h>

static const struct {
	const char *name;
	unsigned feature;
} features[] = {
	{ "memory", CGROUP_MEMORY },    { "pids", CGROUP_PIDS }, { "cpu", CGROUP_CPU },
	{ "cpu-time", CGROUP_CPUACCT }, { "kill", CGROUP_KILL },
};

static void list_features(unsigned have, char *ret, size_t size)
{
	size_t len = 0;

	*ret = '\0';
	for (size_t i = 0; i < ARRAY_SIZE(features); i++)
		if (have & features[i].feature)
			len += (size_t)snprintf(ret + len, size - len, "%s%s", len ? ", " : "",
						features[i].name);
}

/* The command that gets a user their own cgroups depends on the version and on systemd. */
static void remedy_delegation(const struct doctor *d, struct doctor_result *r)
{
	bool systemd = access("/run/systemd/system", F_OK) == 0;
	bool v2 = access("/sys/fs/cgroup/cgroup.controllers", F_OK) == 0;

	if (d->root)
		doctor_remedy(
			r,
			"sudo mount -t cgroup2 none /sys/fs/cgroup, where nothing is mounted; in "
			"a container: docker run --cgroupns=private --privileged");
	else if (v2 && systemd)
		doctor_remedy(
			r, "systemd-run --user --scope -p Delegate=yes glovebox run …, or run as "
			   "root");
	else if (v2)
		doctor_remedy(r, "sudo mkdir /sys/fs/cgroup/mine && sudo chown -R $USER "
				 "/sys/fs/cgroup/mine && echo $$ | sudo tee "
				 "/sys/fs/cgroup/mine/cgroup.procs, or run as root");
	else
		doctor_remedy(
			r, "run as root: sudo glovebox …; or boot with "
			   "systemd.unified_cgroup_hierarchy=1 and use systemd-run --user --scope "
			   "-p Delegate=yes");
}

void doctor_check_cgroup(const struct doctor *d, struct doctor_result *r)
{
	unsigned have = d->cgroups.features, must = CGROUP_MEMORY | CGROUP_PIDS;
	char list[64];

	list_features(have, list, sizeof(list));
	if ((have & must) == must) {
		bool all = (have & CGROUP_CPU) && (have & CGROUP_CPUACCT);

		doctor_summary(r, all ? DOCTOR_OK : DOCTOR_WARNING, "%s: %s",
			       cgroup_mode_name(d->cgroups.mode), list);
		if (!all)
			doctor_cost(r, "CPU time is limited per process only, not for a whole box");
		if (!all)
			remedy_delegation(d, r);
		return;
	}
	doctor_summary(r, doctor_needed(d), "%s: %s",
		       d->cgroups.mode == CGROUP_NONE ? "none for us" :
							cgroup_mode_name(d->cgroups.mode),
		       *list ? list : "no limits for a whole box");
	doctor_detail(r, "%s.", d->cgroups.why_none);
	doctor_cost(
		r,
		"memory, process and CPU limits hold for single processes at best, not for a box: a fork bomb "
		"is stopped late");
	remedy_delegation(d, r);
}

/* A program that wants too much, and the status that says it was stopped for it. */
struct greedy {
	const char *limit;
	const char *status;
	double slowed; /* it must take so many times its CPU time */
	const char *args[12];
};

static const struct greedy greedy[] = {
	{ "memory",
	  "memory_limit",
	  0,
	  { "--memory", "32M", "--timeout", "10s", "--", "tail", "/dev/zero" } },
	{ "processes",
	  "pids_limit",
	  0,
	  { "--pids", "8", "--timeout", "10s", "--", "sh", "-c",
	    "for i in 1 2 3 4 5 6 7 8 9; do sleep 2 & done; wait" } },
	{ "CPU time",
	  "cpu_limit",
	  0,
	  { "--cpu-time", "50ms", "--timeout", "10s", "--", "sh", "-c", "while :; do :; done" } },
	{ "CPU share",
	  "cpu_limit",
	  2,
	  { "--cpus", "0.2", "--cpu-time", "50ms", "--timeout", "10s", "--", "sh", "-c",
	    "while :; do :; done" } },
	{ "disk",
	  "disk_limit",
	  0,
	  { "--disk", "1M", "--timeout", "10s", "--", "sh", "-c", "head -c 4M /dev/zero >f" } },
	{ "files",
	  "disk_limit",
	  0,
	  { "--files", "100", "--timeout", "10s", "--", "sh", "-c",
	    "i=0; while [ $i -lt 300 ]; do : >f$i || exit 1; i=$((i+1)); done" } },
	{ "output", "output_limit", 0, { "--output", "1K", "--timeout", "10s", "--", "yes" } },
	{ "wall clock", "timeout", 0, { "--timeout", "100ms", "--", "sleep", "9" } },
};

static double limits_usage(const json_t *result, const char *key)
{
	return json_number_value(json_object_get(json_object_get(result, "usage"), key));
}

static bool was_held(const struct greedy *g, const json_t *result)
{
	double cpu_ms = limits_usage(result, "cpu_user_ms") + limits_usage(result, "cpu_system_ms");

	return !strcmp(self_text(result, "status"), g->status) &&
	       limits_usage(result, "wall_ms") >= g->slowed * cpu_ms;
}

static void limits_add_word(char *text, size_t size, const char *word)
{
	size_t len = strlen(text);

	(void)snprintf(text + len, size - len, "%s%s", len ? ", " : "", word);
}

/* Two at a time: one is finished while the next one runs. */
static void run_greedy(char held[128], char loose[128])
{
	struct self_job jobs[ARRAY_SIZE(greedy)] = { 0 };
	int started[ARRAY_SIZE(greedy)] = { 0 };

	for (size_t i = 0; i <= ARRAY_SIZE(greedy); i++) {
		json_t *result = NULL;

		if (i < ARRAY_SIZE(greedy))
			started[i] = self_start(greedy[i].args, &jobs[i]);
		if (i == 0)
			continue;
		if (started[i - 1] == 0 && self_finish(&jobs[i - 1], &result) == 0 &&
		    was_held(&greedy[i - 1], result))
			limits_add_word(held, 128, greedy[i - 1].limit);
		else
			limits_add_word(loose, 128, greedy[i - 1].limit);
		json_decref(result);
	}
}

void doctor_check_limits(const struct doctor *d, struct doctor_result *r)
{
	char held[128] = "", loose[128] = "";

	if (!d->box_ok) {
		doctor_summary(r, DOCTOR_NOTE, "not tried: no box can be made");
		return;
	}
	run_greedy(held, loose);
	if (!*loose) {
		doctor_summary(r, DOCTOR_OK, "tried and hold: %s", held);
		return;
	}
	doctor_summary(r, DOCTOR_WARNING, "not enforced for a box: %s", loose);
	doctor_detail(r, "Tried in boxes: %s hold%s.", *held ? held : "none of the others",
		      *held ? "" : "s");
	doctor_cost(r, "a program can use more of these than it was given");
	doctor_remedy(r, "see cgroups above");
}

/* /proc/swaps has a title and a line for each area. */
static bool swap_is_on(void)
{
	_cleanup_(fd_closep) int fd = open("/proc/swaps", O_RDONLY | O_CLOEXEC);
	_cleanup_(buf_done) struct buf text = BUF_INIT(65536);
	const char *line;

	if (fd < 0 || buf_read_fd(&text, fd) < 0)
		return false;
	line = strchr((const char *)text.data, '\n');
	return line && line[1] != '\0';
}

static bool swap_is_limited(const struct doctor *d)
{
	if (d->cgroups.mode == CGROUP_V2)
		return d->cgroups.features & CGROUP_MEMORY;
	for (size_t i = 0; i < d->cgroups.n_hier; i++)
		if ((d->cgroups.hier[i].controllers & CGROUP_MEMORY) &&
		    faccessat(d->cgroups.hier[i].fd, "memory.memsw.limit_in_bytes", F_OK, 0) == 0)
			return true;
	return false;
}

void doctor_check_swap(const struct doctor *d, struct doctor_result *r)
{
	if (!swap_is_on()) {
		doctor_summary(r, DOCTOR_OK, "off");
		return;
	}
	if (swap_is_limited(d)) {
		doctor_summary(r, DOCTOR_OK, "on, but boxes get none of it");
		return;
	}
	doctor_summary(r, DOCTOR_NOTE, "on, and cgroups do not count it");
	doctor_cost(r, "a box's memory can be written to disk, and its limit is for RAM only");
	doctor_remedy(r, "sudo swapoff -a; or boot with swapaccount=1 (cgroup v1)");
}
