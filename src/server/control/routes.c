/* SPDX-License-Identifier: Apache-2.0 */
/* Which function answers which operation of openapi.json, and what a key must be good for. */
#include "server/control/control_priv.h"

#include "server/run/route.h"
#include "server/control/system.h"

#define LOOK (STORE_SCOPE_READ | STORE_SCOPE_SANDBOXES | STORE_SCOPE_ADMIN)
#define CHANGE (STORE_SCOPE_SANDBOXES | STORE_SCOPE_ADMIN)

#define READS(name, handler)                                                                       \
	{                                                                                          \
		.operation = (name), .auth = HTTP_AUTH_KEY, .body = HTTP_BODY_NONE,                \
		.scopes = LOOK, .handle = (handler),                                               \
	}
#define CHANGES(name, handler)                                                                     \
	{                                                                                          \
		.operation = (name), .auth = HTTP_AUTH_KEY, .body = HTTP_BODY_NONE,                \
		.scopes = CHANGE, .handle = (handler),                                             \
	}
#define TAKES_JSON(name, handler)                                                                  \
	{                                                                                          \
		.operation = (name), .auth = HTTP_AUTH_KEY, .body = HTTP_BODY_JSON,                \
		.scopes = CHANGE, .handle = (handler),                                             \
	}
#define OPEN(name, handler)                                                                        \
	{                                                                                          \
		.operation = (name), .auth = HTTP_AUTH_NONE, .body = HTTP_BODY_NONE,               \
		.handle = (handler),                                                               \
	}

const struct route control_routes[] = {
	TAKES_JSON("createSandbox", handle_create_v1),
	TAKES_JSON("createSandboxV2", handle_create_v2),
	READS("listSandboxes", handle_list_v1),
	READS("listSandboxesV2", handle_list_v2),
	READS("getSandbox", handle_get),
	CHANGES("killSandbox", handle_kill),
	TAKES_JSON("setSandboxTimeout", handle_timeout),
	TAKES_JSON("connectSandbox", handle_connect_v1),
	TAKES_JSON("connectSandboxV2", handle_connect_v2),
	TAKES_JSON("resumeSandbox", handle_resume),
	TAKES_JSON("pauseSandbox", handle_pause),
	TAKES_JSON("refreshSandbox", handle_refresh),
	TAKES_JSON("updateSandboxNetwork", handle_network),
	READS("listSandboxConnections", handle_connections),
	READS("getSandboxMetrics", handle_metrics),
	READS("getSandboxesMetrics", handle_metrics_many),
	READS("getSandboxLogs", handle_logs_v1),
	READS("getSandboxLogsV2", handle_logs_v2),
	TAKES_JSON("createSnapshot", handle_snapshot),
	READS("listSnapshots", handle_snapshots),
	TAKES_JSON("forkSandbox", handle_fork),
	READS("listTemplates", handle_templates),
	READS("listTemplatesV2", handle_templates_v2),
	READS("getTemplateAlias", handle_template_alias),
	CHANGES("deleteTemplate", handle_template_delete),
	READS("listTeams", handle_teams),
	READS("listEvents", handle_events),
	READS("listSandboxEvents", handle_sandbox_events),
	READS("listWebhooks", handle_webhooks),
	TAKES_JSON("createWebhook", handle_webhook_create),
	READS("getWebhook", handle_webhook_get),
	TAKES_JSON("updateWebhook", handle_webhook_update),
	CHANGES("deleteWebhook", handle_webhook_delete),
	READS("listSecrets", handle_secrets),
	TAKES_JSON("createSecret", handle_secret_create),
	READS("getSecret", handle_secret_get),
	TAKES_JSON("updateSecret", handle_secret_update),
	CHANGES("deleteSecret", handle_secret_delete),
	TAKES_JSON("runOnce", control_run),
	READS("listLanguages", control_languages),
	OPEN("getHealth", system_health),
	OPEN("getLivez", system_livez),
	OPEN("getReadyz", system_readyz),
	OPEN("getVersion", system_version),
	OPEN("getCapabilities", system_capabilities),
	OPEN("getOpenapi", system_openapi),
	{ .operation = NULL },
};

int control_start(struct server *s, struct fail *fail)
{
	int r = finish_changes(s);

	if (r == 0)
		r = worker_start(s);
	if (r == 0)
		r = deliver_start(s);
	return r < 0 ? fail_set(fail, -r, "control plane", "cannot start: %s", strerror(-r)) : 0;
}

void control_stop(struct server *s)
{
	(void)s;
	deliver_stop();
	worker_stop();
	once_stop();
}
