/* SPDX-License-Identifier: Apache-2.0 */
/*
 * glovebox doctor: what this machine offers boxes. doctor.c reads the command line and has the
 * table of checks, print.c shows what they found, fix.c repairs, the others hold the checks by
 * subject. A check tries the thing itself wherever it can; sysctls only explain why it did not
 * work.
 */
#pragma once

#include "base/util.h"
#include "sys/cgroup.h"

#include <jansson.h>
#include <limits.h>
#include <sys/types.h>

enum doctor_level {
	DOCTOR_OK,
	DOCTOR_NOTE,    /* worth knowing, costs boxes nothing that they need */
	DOCTOR_WARNING, /* a protection is missing */
	DOCTOR_ERROR,   /* boxes cannot run */
};

/* What one check found, for people. Texts are empty where there is nothing to say. */
struct doctor_result {
	enum doctor_level level;
	char summary[160];
	char detail[320];
	char cost[240]; /* which protection or feature is lost */
	char fix[320];  /* commands */
};

/* What checks share. */
struct doctor {
	bool root;
	int userns;  /* 0, or the error of making a user namespace */
	json_t *box; /* what `glovebox run --json -- /bin/true` said, or NULL */
	bool box_ok;
	char self[PATH_MAX];  /* we, who made that box; */
	char front[PATH_MAX]; /* and who makes those of plain runs, "": we too */
	bool front_ok;
	struct cgroup_host cgroups;
};

struct doctor_check {
	const char *id;
	const char *title;
	void (*check)(const struct doctor *d, struct doctor_result *r);
};

/* Fill the texts; a summary comes with the level. */
void doctor_summary(struct doctor_result *r, enum doctor_level level, const char *fmt, ...)
	_printf_(3, 4);
void doctor_detail(struct doctor_result *r, const char *fmt, ...) _printf_(2, 3);
void doctor_cost(struct doctor_result *r, const char *fmt, ...) _printf_(2, 3);
void doctor_remedy(struct doctor_result *r, const char *fmt, ...) _printf_(2, 3);
const char *doctor_level_name(enum doctor_level level);

/* For something that boxes need: since they are the judge, a warning should they run without. */
enum doctor_level doctor_needed(const struct doctor *d);

/* Without user namespaces most attempts fail for that reason alone: says so and returns true. */
bool doctor_is_blocked(const struct doctor *d, struct doctor_result *r);

/* probe.c: tries something in a child in new namespaces, as the root of the user namespace if
 * that is one of them. 0 or the error of making them or of the attempt; -ECHILD when it was killed.
 */
int doctor_probe(uint64_t namespaces, int (*attempt)(void));

/* The same as another user, which takes root. */
int doctor_probe_as(uid_t uid, gid_t gid, uint64_t namespaces, int (*attempt)(void));

/* Attempts for these. */
int doctor_try_nothing(void);
int doctor_try_tmpfs(void);

/* Can an ordinary user, who is not root, make a user namespace and have power in it? */
int doctor_probe_unprivileged(const struct doctor *d);

/* Reads /proc/sys for a name with dots; only numbers and the first line of texts. */
_must_check_ int doctor_sysctl_text(const char *name, char *ret, size_t size);
_must_check_ int doctor_sysctl(const char *name, uint64_t *ret);

/* Writes a file of /proc, in one go as the kernel wants it. */
_must_check_ int doctor_write(const char *path, const char *text);

/* namespaces.c: a line of /etc/subuid or /etc/subgid. */
struct doctor_subid {
	char owner[64];
	uint64_t first;
	uint64_t count;
};

#define DOCTOR_SUBIDS_MAX 1024
#define DOCTOR_SUBIDS_COUNT 65536u

struct doctor_subids {
	size_t n;
	struct doctor_subid list[DOCTOR_SUBIDS_MAX];
};

/* Without such a file there are none. */
_must_check_ int doctor_subids_read(const char *file, struct doctor_subids *ret);

/* The command that gives a user the ids that are missing; "" when none are. */
_must_check_ int doctor_subids_command(const char *user, uid_t uid, char *ret, size_t size);

/* fix.c: does, or, without root, lists what would repair this machine. The array has an object
 * {change, command, done, error} for each. */
_must_check_ int doctor_fix(const struct doctor *d, json_t **ret_changes);

/* print.c */
struct doctor_report {
	const struct doctor_check *checks;
	const struct doctor_result *results;
	size_t n;
	json_t *changes; /* NULL without --fix */
};

enum doctor_level doctor_worst(const struct doctor_report *report);
int doctor_print_json(const struct doctor *d, const struct doctor_report *report);
int doctor_print_text(const struct doctor *d, const struct doctor_report *report);

/* namespaces.c */
void doctor_check_userns(const struct doctor *d, struct doctor_result *r);
void doctor_check_namespaces(const struct doctor *d, struct doctor_result *r);
void doctor_check_time(const struct doctor *d, struct doctor_result *r);
void doctor_check_ids(const struct doctor *d, struct doctor_result *r);
void doctor_check_id_overlap(const struct doctor *d, struct doctor_result *r);

/* mounts.c */
void doctor_check_proc(const struct doctor *d, struct doctor_result *r);
void doctor_check_tmpfs(const struct doctor *d, struct doctor_result *r);
void doctor_check_overlay(const struct doctor *d, struct doctor_result *r);
void doctor_check_idmap(const struct doctor *d, struct doctor_result *r);
void doctor_check_disk(const struct doctor *d, struct doctor_result *r);

/* limits.c */
void doctor_check_cgroup(const struct doctor *d, struct doctor_result *r);
void doctor_check_limits(const struct doctor *d, struct doctor_result *r);
void doctor_check_swap(const struct doctor *d, struct doctor_result *r);

/* host.c */
void doctor_check_kernel(const struct doctor *d, struct doctor_result *r);
void doctor_check_seccomp(const struct doctor *d, struct doctor_result *r);
void doctor_check_landlock(const struct doctor *d, struct doctor_result *r);
void doctor_check_memfd(const struct doctor *d, struct doctor_result *r);
void doctor_check_nftables(const struct doctor *d, struct doctor_result *r);
void doctor_check_egress(const struct doctor *d, struct doctor_result *r);
void doctor_check_core(const struct doctor *d, struct doctor_result *r);
void doctor_check_ptrace(const struct doctor *d, struct doctor_result *r);
void doctor_check_tiocsti(const struct doctor *d, struct doctor_result *r);
void doctor_check_symlinks(const struct doctor *d, struct doctor_result *r);
void doctor_check_languages(const struct doctor *d, struct doctor_result *r);
void doctor_check_box(const struct doctor *d, struct doctor_result *r);
