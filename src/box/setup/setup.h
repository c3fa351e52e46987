/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What happens between clone3 and the agent: the child's side of building a box. Runs as the box's
 * root in the box's own namespaces, so whatever goes wrong here has no power over the host.
 */
#pragma once

#include "box/box.h"

#define SETUP_TREES_MAX 2 /* /, and /usr where the template borrows it */
#define SETUP_LAYERS_MAX (SETUP_TREES_MAX * (1 + BOX_LAYERS_MAX))

enum setup_step {
#define STEP(name, text) SETUP_##name,
#include "box/setup/steps.def"
#undef STEP
	_SETUP_STEP_MAX,
};

struct setup {
	/* First the template: [0] is the root's lower layer, [1], if any, is the one for /usr. Then
	 * what other boxes have written, level by level, for the same trees. */
	const char *layer_path[SETUP_LAYERS_MAX];
	size_t n_layers;
	size_t n_trees; /* 1 or 2 */
	bool single_id;
	bool root;    /* commands may be the box's root: see setup/process.c for what that means */
	bool fixed;   /* only the user's own directories can be written to: see setup/tree.c */
	bool entered; /* interpreters will come in from outside: see seal.h */
	uint64_t disk_bytes;
	uint64_t files_max;
	int control_fd;
	bool one_command; /* no interpreter will be in it */
	bool given_nodes; /* the parent makes the device nodes */
	bool own_net;     /* makes its network namespace itself */
	int net_fd;       /* otherwise, where that comes from, or -EBADF: the host's */
};

/* The word to go: the ids are mapped. With it come the layers, idmapped, where that can be done. */
struct setup_go {
	uint32_t n_layers;
};

/*
 * What the parent makes while the child is at work on its tree. With it come the agent's image, a
 * file system with the device nodes where the parent makes them, and the cgroups to enter.
 */
struct setup_rest {
	uint32_t n_nodes; /* 0 or 1 */
	uint32_t n_join;
};

/* Never returns. Reports on sock: first SETUP_DONE with the writable layer's descriptor, or the
 * step that failed. */
_noreturn_ void setup_child(const struct setup *s, int sock);

const char *setup_step_text(uint32_t step);
