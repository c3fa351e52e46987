/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What happens between clone3 and the agent: the child's side of building a box. Runs as the box's
 * root in the box's own namespaces, so whatever goes wrong here has no power over the host.
 */
#pragma once

#include "box/hidden.h"

#define SETUP_LAYERS_MAX 2

enum setup_step {
#define STEP(name, text) SETUP_##name,
#include "box/steps.def"
#undef STEP
	_SETUP_STEP_MAX,
};

/* Protections that depend on the kernel or the user; the rest is always on or the box is refused. */
enum setup_feature {
	SETUP_HAS_TIME_NS = 1 << 0,
	SETUP_HAS_CGROUP_NS = 1 << 1,
	SETUP_HAS_LANDLOCK = 1 << 2,
	SETUP_HAS_IDMAP = 1 << 3,
	SETUP_HAS_KEYRING = 1 << 4,
	SETUP_HAS_NO_NEW_PRIVS = 1 << 5,
	SETUP_HAS_SECCOMP = 1 << 6,
	SETUP_HAS_OWN_DEVICES = 1 << 7, /* nodes of the box's own, not views of the host's */
	SETUP_HAS_CORE_SCHEDULING = 1 << 8,
};

struct setup {
	/* The template: [0] is the root's lower layer, [1], if any, is the one for /usr. */
	const char *layer_path[SETUP_LAYERS_MAX];
	size_t n_layers;
	bool single_id;
	bool own_devices; /* a second message brings a file system with the device nodes */
	uint64_t disk_bytes;
	uint64_t files_max;
	int agent_fd;
	int control_fd;
};

/* The word to go: ids are mapped. Sent up to the last hidden path, with n_layers and n_join descriptors. */
struct setup_go {
	uint32_t n_layers; /* idmapped; 0: the child opens the paths itself */
	uint32_t n_join;   /* cgroups to enter */
	struct hidden hidden;
};

struct setup_report {
	uint32_t step; /* enum setup_step: the one that failed, or SETUP_DONE */
	int32_t err;
	uint32_t features;
	int32_t landlock_abi;
	uint32_t masks;
};

/* Never returns. Reports on sock: first SETUP_DONE with the writable layer's descriptor, or the step
 * that failed. */
_noreturn_ void setup_child(const struct setup *s, int sock);

const char *setup_step_text(uint32_t step);
