/* SPDX-License-Identifier: Apache-2.0 */
/* Between cgroup.c and its two drivers; nobody else includes this. */
#pragma once

#include "sys/cgroup.h"

#define CGROUP_MOUNT "/sys/fs/cgroup"
#define CGROUP_DIR "glovebox"

/* What both versions do differently. On failure a step leaves nothing of its own behind. */
struct cgroup_driver {
	int (*box_create)(struct cgroup_box *b);
	int (*box_finish)(struct cgroup_box *b);
	int (*exec_create)(const struct cgroup_box *b, const struct cgroup_limits *limits,
			   struct cgroup_exec *e);
	int (*exec_sample)(const struct cgroup_box *b, struct cgroup_exec *e,
			   struct cgroup_usage *u);
	int (*exec_weigh)(const struct cgroup_box *b, const struct cgroup_exec *e, uint32_t milli);
	/* One attempt: 0, or -EBUSY when something still runs there. What is gone is no error. */
	int (*exec_rmdir)(const struct cgroup_box *b, unsigned n);
	int (*box_rmdir)(const struct cgroup_box *b);
};

extern const struct cgroup_driver cgroup_v1_driver;
extern const struct cgroup_driver cgroup_v2_driver;

/* Fill hier, n_hier, mode and features; leave them alone where nothing is usable. */
_must_check_ int cgroup_v1_host_open(struct cgroup_host *h);
_must_check_ int cgroup_v2_host_open(struct cgroup_host *h);

/* An error that says nothing about whether cgroups can be used here: never a reason to go
 * without. */
bool cgroup_is_passing(int r);
void cgroup_host_add(struct cgroup_host *h, unsigned controllers, int fd);
unsigned cgroup_unified_features(int dir);

/* What all boxes together may have of this machine. */
struct cgroup_limits cgroup_all_boxes(void);

/* Files and directories, all relative to a descriptor. -errno. */
_must_check_ int cgroup_mkdir(int at, const char *name, int *ret_fd);
int cgroup_rmdir(int at, const char *name);
_must_check_ int cgroup_write(int at, const char *file, const char *text);
_must_check_ int cgroup_write_u64(int at, const char *file, uint64_t value);
_must_check_ int cgroup_write_optional(int at, const char *file, const char *text);
_must_check_ int cgroup_read(int at, const char *file, char *buf, size_t size);
_must_check_ int cgroup_read_fd(int fd, char *buf, size_t size);
/* To the end of the file, of which one read gives a page at most; of one that does not fit, whole
 * lines only. */
_must_check_ int cgroup_read_lines(int at, const char *file, char *buf, size_t size);
bool cgroup_may_write(int at, const char *file);
/* A limit that the kernel does not begin with; UINT64_MAX: there is none, or no such file. */
uint64_t cgroup_limit(int at, const char *file);

/* What a command has used so far, in cgroup_usage.c. */
_must_check_ int cgroup_v1_exec_sample(const struct cgroup_box *b, struct cgroup_exec *e,
				       struct cgroup_usage *u);
_must_check_ int cgroup_v2_exec_sample(const struct cgroup_box *b, struct cgroup_exec *e,
				       struct cgroup_usage *u);
_must_check_ int cgroup_v1_cpu_before(const struct cgroup_box *b, struct cgroup_exec *e);
void cgroup_split_cpu(uint64_t all, uint64_t *user, uint64_t *system_time);

/* "exec-<n>", optionally behind "<prefix>." (a leaf beside boxes) or "<box>/" (one in a box, by a
 * path that needs no descriptor of the box); big enough for every name and number. */
struct cgroup_name {
	char text[48];
};
struct cgroup_name cgroup_exec_name(const char *prefix, unsigned n);
struct cgroup_name cgroup_exec_path(const char *box, unsigned n);

/* Whether the box has a directory of its own in that hierarchy, be it open or settled. */
bool cgroup_box_has_dir(const struct cgroup_box *b, size_t i);

/* Pure readers of kernel text. The keyed one returns false when the key is not there. */
bool cgroup_keyed_u64(const char *text, const char *key, uint64_t *ret);
bool cgroup_has_word(const char *text, const char *word);
_must_check_ int cgroup_own_path(const char *text, const char *controller, char *ret, size_t size);
_must_check_ int cgroup_read_own_path(const char *controller, char *ret, size_t size);
