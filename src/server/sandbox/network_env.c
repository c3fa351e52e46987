/* SPDX-License-Identifier: Apache-2.0 */
/* What programs in a sandbox with a way out are told of it. */
#include "run/result.h"
#include "server/sandbox/sandbox.h"
#include "server/server.h"

#include <strings.h>

/* In either spelling: who sets HTTPS_PROXY means https_proxy too, which many programs look at first. */
static bool has_variable(const json_t *given, const char *name, size_t len)
{
	const char *key;
	json_t *value;

	json_object_foreach((json_t *)(uintptr_t)given, key, value)
		if (strlen(key) == len && strncasecmp(key, name, len) == 0)
			return true;
	return false;
}

int sandbox_network_variables(struct sandbox *b, const json_t *given,
			      int (*add)(void *arg, const char *name, const char *value), void *arg)
{
	const char *const *variables;
	int r = 0;

	if (!sandbox_outlet(b))
		return 0;
	variables = run_network_env(*b->server->config.egress_ca_bundle != '\0');
	for (; r == 0 && *variables; variables++) {
		size_t len = strcspn(*variables, "=");
		char name[64];

		if (len >= sizeof(name) || has_variable(given, *variables, len) ||
		    has_variable(b->info.env, *variables, len))
			continue;
		(void)snprintf(name, sizeof(name), "%.*s", (int)len, *variables);
		r = add(arg, name, *variables + len + 1);
	}
	return r;
}
