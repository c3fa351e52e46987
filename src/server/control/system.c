/* SPDX-License-Identifier: Apache-2.0 */
/* The service about itself. Open to anybody, so nothing of any key's is told here (AP-15). */
#include "server/control/control_priv.h"

#include "run/result.h"
#include "server/sandbox/link.h"
#include "server/server.h"

int system_health(struct request *r)
{
	return reply_json(r, 200, json_pack("{s:s}", "status", "ok"));
}

int system_livez(struct request *r)
{
	return reply_json(r, 200, json_pack("{s:s}", "status", "ok"));
}

/* Ready: the store answers, and the warden is there (without it this program would have ended). */
int system_readyz(struct request *r)
{
	size_t n;

	if (store_key_count(r->server->store, &n) < 0)
		return reply_error(r, 503, "the store does not answer");
	if (sandbox_count(r->server, NULL) >= r->server->config.limits_sandboxes)
		return reply_error(r, 503, "there are as many sandboxes as there may be");
	return reply_json(r, 200, json_pack("{s:s}", "status", "ready"));
}

int system_version(struct request *r)
{
	return reply_json(r, 200,
			  json_pack("{s:s, s:s}", "name", "glovebox", "version", GLOVEBOX_VERSION));
}

static json_t *limits_json(const struct config *c)
{
	return json_pack("{s:I, s:I, s:I, s:I, s:I, s:I}", "timeout_s",
			 (json_int_t)(c->limits_timeout / 1000), "memory_bytes",
			 (json_int_t)c->sandbox_memory, "disk_bytes", (json_int_t)c->sandbox_disk,
			 "files", (json_int_t)c->sandbox_files, "pids", (json_int_t)c->sandbox_pids,
			 "cpu_milli", (json_int_t)c->sandbox_cpus);
}

/* What boxes can be given; what one has, its own connections say. */
static json_t *network_json(const struct server *s)
{
	return json_pack("{s:b, s:s, s:b}", "enabled", s->config.egress_enabled, "internet",
			 s->config.egress_internet, "catches",
			 (link_flags(s->link) & WARDEN_NET_CATCHES) != 0);
}

int system_capabilities(struct request *r)
{
	const struct config *c = &r->server->config;
	struct isolation isolation;
	json_t *server = json_pack("{s:b, s:b, s:i}", "root", geteuid() == 0, "seccomp",
				   r->server->has_filter, "landlock_abi", r->server->landlock_abi);

	return reply_json(r, 200,
			  json_pack("{s:o, s:o, s:o, s:o, s:b}", "limits", limits_json(c),
				    "network", network_json(r->server), "server", server, "sandbox",
				    sandbox_isolation(r->server, &isolation) ?
					    run_isolation_json(&isolation) :
					    json_null(),
				    "sandbox_root", c->sandbox_root));
}

int system_openapi(struct request *r)
{
	reply_header(r, "Cache-Control", "max-age=60");
	return reply_text(r, 200, "application/json", openapi_json);
}
