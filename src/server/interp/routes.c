/* SPDX-License-Identifier: Apache-2.0 */
#include "server/interp/interp.h"

/* Clients show the sandbox's token for cells only; who knows the sandbox's id may list and make contexts. */
const struct route interp_routes[] = {
	{
		.operation = "interpreterHealth",
		.auth = HTTP_AUTH_NONE,
		.body = HTTP_BODY_NONE,
		.handle = interp_health,
	},
	{
		.operation = "interpreterExecute",
		.auth = HTTP_AUTH_TOKEN,
		.body = HTTP_BODY_JSON,
		.body_max = INTERP_BODY_MAX,
		.handle = interp_execute_handle,
	},
	{
		.operation = "interpreterListContexts",
		.auth = HTTP_AUTH_NONE,
		.body = HTTP_BODY_NONE,
		.handle = interp_contexts_list,
	},
	{
		.operation = "interpreterCreateContext",
		.auth = HTTP_AUTH_NONE,
		.body = HTTP_BODY_JSON,
		.handle = interp_contexts_create,
	},
	{
		.operation = "interpreterRemoveContext",
		.auth = HTTP_AUTH_NONE,
		.body = HTTP_BODY_NONE,
		.handle = interp_contexts_remove,
	},
	{
		.operation = "interpreterRestartContext",
		.auth = HTTP_AUTH_NONE,
		.body = HTTP_BODY_NONE,
		.handle = interp_contexts_restart,
	},
	{ .operation = NULL },
};
