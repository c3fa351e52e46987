/* SPDX-License-Identifier: Apache-2.0 */
/* Files that boxes stand on: snapshots and the template's root, and processes that work on them. */
#pragma once

#include "warden/warden_priv.h"

/* layers/layer.c */
_must_check_ int layer_open_dir(struct warden *w, struct fail *fail);
bool layer_exists(const struct warden *w, const char *name);
_must_check_ int layer_drop(struct warden *w, const char *name);
/* The layer whose name follows in byte order (after "": the first). -ENOENT; -EOVERFLOW: there is
 * more in the directory than is read for one request. */
_must_check_ int layer_next(const struct warden *w, const char *after,
			    char ret[static WARDEN_ID_SIZE]);
/* Deletes an entry of STATE/layers, in a while. */
_must_check_ int layer_throw_away(struct warden *w, const char *entry);
struct layer_name {
	char text[WARDEN_ID_SIZE + 8];
};
struct layer_name layer_tmp_name(const char *name);
/* NAME.tmp becomes NAME, for good when the process that is started for that has ended with 0, or
 * with an errno. */
_must_check_ int layer_keep(struct warden *w, const char *name, int *ret_pidfd);
struct layer_paths {
	char root[CONFIG_TEXT_SIZE + 64];
	char usr[CONFIG_TEXT_SIZE + 64];
};
_must_check_ int layer_paths(const struct warden *w, const char *name, struct layer_paths *ret);

/* layers/root.c: finds what boxes are made from. Cheap unless the host's /etc has changed. */
_must_check_ int root_find(struct warden *w, struct fail *fail);

/* layers/helper.c: what a forked helper does first. Keeps these descriptors only: the number of the
 * first one. */
_must_check_ int helper_begin(const int *fds, size_t n_fds, pid_t parent);
