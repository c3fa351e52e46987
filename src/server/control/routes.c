/* SPDX-License-Identifier: Apache-2.0 */
/* The table behind routes.def. */
#include "server/control/control_priv.h"

#define OPEN .auth = HTTP_AUTH_NONE, .body = HTTP_BODY_NONE
#define READS                                                                                      \
	.auth = HTTP_AUTH_KEY, .body = HTTP_BODY_NONE,                                             \
	.scopes = STORE_SCOPE_READ | STORE_SCOPE_SANDBOXES | STORE_SCOPE_ADMIN
#define MAY_CHANGE .auth = HTTP_AUTH_KEY, .scopes = STORE_SCOPE_SANDBOXES | STORE_SCOPE_ADMIN
#define CHANGES MAY_CHANGE, .body = HTTP_BODY_NONE
#define TAKES_JSON MAY_CHANGE, .body = HTTP_BODY_JSON

const struct route control_routes[] = {
#define ROUTE(needs, name, handler) { .operation = #name, .handle = (handler), needs },
#include "server/control/routes.def"
#undef ROUTE
	{ .operation = NULL },
};
