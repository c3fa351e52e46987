/* SPDX-License-Identifier: Apache-2.0 */
/* The steps of building a box, between the files of the set-up. */
#pragma once

#include "box/setup/hidden.h"
#include "box/setup/setup.h"

#include <sys/types.h>

struct setup_state {
	const struct setup *setup;
	int sock;
	int layer_fd[SETUP_LAYERS_MAX];
	int scratch_fd;
	int root_fd; /* the new root, before and after the pivot */
	int proc_fd;
	int pids_fd; /* the agent's own view of it; negative: none */
	int sys_user_fd;
	int dev_fd;
	int pts_fd; /* what goes into /dev, until it does */
	int shm_fd;
	int agent_fd;
	int control_fd;
	struct hidden hidden;
	size_t n_join;
	int join_fd[8];
	struct setup_report report;
};

/* setup/tree.c: the file system */
int setup_do_find(struct setup_state *s);
int setup_do_layers(struct setup_state *s);
int setup_do_private(struct setup_state *s);
int setup_do_scratch(struct setup_state *s);
int setup_do_upper(struct setup_state *s);
int setup_do_overlay(struct setup_state *s);
int setup_do_pivot(struct setup_state *s);

/* A second view of something that is mounted in this namespace, with further attributes; and
 * attached. */
_must_check_ int setup_clone(int dir_fd, const char *path, uint64_t attrs);
_must_check_ int setup_clone_onto(int from_fd, const char *from, uint64_t attrs, int to_fd,
				  const char *to);
_must_check_ int setup_make_file(int dir_fd, const char *name, mode_t mode, const char *text);

/* setup/proc.c */
int setup_do_proc(struct setup_state *s);
int setup_do_proc_sys(struct setup_state *s);
int setup_do_masks(struct setup_state *s);
int setup_do_hidden(struct setup_state *s);

/* setup/dev.c */
int setup_do_dev(struct setup_state *s);
int setup_do_nodes(struct setup_state *s);

/* setup/process.c: everything else */
int setup_do_cgroup(struct setup_state *s);
int setup_do_become(struct setup_state *s);
int setup_do_time(struct setup_state *s);
int setup_do_hostname(struct setup_state *s);
int setup_do_net(struct setup_state *s);
int setup_do_cgroup_ns(struct setup_state *s);
int setup_do_namespaces(struct setup_state *s);
int setup_do_core_scheduling(struct setup_state *s);
int setup_do_keyring(struct setup_state *s);
int setup_do_stdio(struct setup_state *s);
int setup_do_landlock(struct setup_state *s);
int setup_do_caps(struct setup_state *s);
int setup_do_seccomp(struct setup_state *s);
