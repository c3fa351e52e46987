/* SPDX-License-Identifier: Apache-2.0 */
/* Single files into a sandbox and out of it, streamed. Paths are the sandbox's own; nothing here
 * resolves them. */
#pragma once

#include "client/api/api.h"

struct transfer {
	struct api *api;
	struct api_sandbox sandbox;
	const char *user; /* or NULL: the default one */
};

_must_check_ int transfer_get(struct transfer *t, const char *path, int to_fd, struct fail *fail);
_must_check_ int transfer_put(struct transfer *t, int from_fd, uint64_t size, const char *path,
			      struct fail *fail);
_must_check_ int transfer_mkdir(struct transfer *t, const char *path,
				struct fail *fail); /* there already is fine */
_must_check_ int transfer_list(struct transfer *t, const char *path, json_t **ret,
			       struct fail *fail);
_must_check_ int transfer_type(struct transfer *t, const char *path, char *ret, size_t size,
			       struct fail *fail);
