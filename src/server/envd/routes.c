/* SPDX-License-Identifier: Apache-2.0 */
/* The routes of port 49983, and the small things behind them. */
#include "server/envd/envd.h"

#include "server/control/control.h"

/* --- what is neither a command nor a file ---------------------------------------------------- */

static json_t *in_mib(const json_t *sample, const char *name)
{
	return json_integer(json_integer_value(json_object_get(sample, name)) >> 20);
}

static int envd_health(struct request *r)
{
	return reply_empty(r, 204); /* a sandbox that is gone has been answered for before */
}

static int envd_envs(struct request *r)
{
	json_t *env = r->sandbox->info.env;

	return reply_json(r, 200, env ? json_incref(env) : json_object());
}

/* The same sample as the control plane's, under the names that are used here. */
static int envd_metrics(struct request *r)
{
	static const struct {
		const char *name, *from;
	} members[] = {
		{ "ts", "timestampUnix" },        { "cpu_count", "cpuCount" },
		{ "cpu_used_pct", "cpuUsedPct" }, { "mem_total", "memTotal" },
		{ "mem_used", "memUsed" },        { "mem_cache", "memCache" },
		{ "disk_used", "diskUsed" },      { "disk_total", "diskTotal" },
	};
	json_t *sample = control_newest_sample(r->sandbox), *metrics = json_object();
	int n = sample && metrics ? 0 : -1;

	for (size_t i = 0; n == 0 && i < ARRAY_SIZE(members); i++)
		n = json_object_set(metrics, members[i].name,
				    json_object_get(sample, members[i].from));
	if (n == 0)
		n = json_object_set_new(metrics, "mem_total_mib", in_mib(sample, "memTotal"));
	if (n == 0)
		n = json_object_set_new(metrics, "mem_used_mib", in_mib(sample, "memUsed"));
	json_decref(sample);
	if (n < 0) {
		json_decref(metrics);
		return reply_error(r, 503, "what the sandbox uses is not known yet");
	}
	return reply_json(r, 200, metrics);
}

static int send_paths(struct talk *t, const json_t *body, const char *destination)
{
	json_t *sources = json_object_get(body, "source_paths"), *source;
	size_t i;
	int r = talk_text(t, WIRE_PATH, destination);

	json_array_foreach(sources, i, source) {
		if (r == 0)
			r = talk_text(t, WIRE_PATH, json_string_value(source));
	}
	return r < 0 ? r : talk_send(t, WIRE_GO, NULL, 0);
}

static int reply_composed(struct request *r, struct talk *t, const char *user, const char *path)
{
	struct wire_failed failed;
	struct envd_entry entry;
	json_t *info, *file;
	int n = talk_recv(t);

	if (n < 0)
		return rpc_reply_gone(r, n);
	if (talk_failed(&t->frame, &failed) == 0)
		return envd_files_failed(r, &failed, user, path);
	if (t->frame.head.type != WIRE_ENTRY ||
	    envd_entry_read(t->frame.data, wire_len(&t->frame), &entry) < 0)
		return rpc_reply_gone(r, envd_broken(r->sandbox, "about a file"));
	info = envd_entry_json(&entry);
	file = json_pack("{s:O, s:O, s:s}", "name", json_object_get(info, "name"), "path",
			 json_object_get(info, "path"), "type", "file");
	json_decref(info);
	return file ? reply_json(r, 200, file) : -ENOMEM;
}

/* The body was checked against openapi.json. */
static int envd_files_compose(struct request *r)
{
	const struct wire_fs request = { .op = WIRE_FS_JOIN };
	_cleanup_(talk_freep) struct talk *t = talk_new(r);
	const char *name = json_string_value(json_object_get(r->body, "username"));
	const char *path = json_string_value(json_object_get(r->body, "destination"));
	char user[RPC_USER_SIZE];
	struct rpc_error e;
	int n;

	if (!name || !*name)
		name = "user";
	if (rpc_user_check(name, strlen(name), user, &e) < 0)
		return reply_error(r, 401, "%s", e.message);
	if (json_array_size(json_object_get(r->body, "source_paths")) == 0)
		return reply_error(r, 400, "source_paths: is empty");
	n = t ? envd_fs_open(t, &request, user, NULL, 0) : -ENOMEM;
	if (n == 0)
		n = send_paths(t, r->body, path);
	return n < 0 ? rpc_reply_gone(r, n) : reply_composed(r, t, user, path);
}

/* --- the routes ------------------------------------------------------------------------------ */

#define UNARY(name, function)                                                                      \
	{                                                                                          \
		.operation = (name), .auth = HTTP_AUTH_TOKEN, .body = HTTP_BODY_STREAM,            \
		.begin = rpc_begin_unary, .data = rpc_data, .handle = (function),                  \
		.done = rpc_done,                                                                  \
	}
#define STREAM(name, function)                                                                     \
	{                                                                                          \
		.operation = (name), .auth = HTTP_AUTH_TOKEN, .body = HTTP_BODY_STREAM,            \
		.begin = rpc_begin_stream, .data = rpc_data, .handle = (function),                 \
		.done = rpc_done,                                                                  \
	}

const struct route envd_routes[] = {
	STREAM("envdProcessStart", envd_process_start),
	STREAM("envdProcessConnect", envd_process_connect),
	UNARY("envdProcessList", envd_process_list),
	UNARY("envdProcessUpdate", envd_process_update),
	UNARY("envdProcessSendInput", envd_process_send_input),
	UNARY("envdProcessSendSignal", envd_process_send_signal),
	UNARY("envdProcessCloseStdin", envd_process_close_stdin),
	{
		.operation = "envdProcessStreamInput",
		.auth = HTTP_AUTH_TOKEN,
		.body = HTTP_BODY_STREAM,
		.begin = envd_input_begin,
		.data = envd_input_data,
		.handle = envd_input_handle,
		.done = envd_input_done,
	},
	UNARY("envdFilesystemStat", envd_fs_stat),
	UNARY("envdFilesystemMakeDir", envd_fs_make_dir),
	UNARY("envdFilesystemMove", envd_fs_move),
	UNARY("envdFilesystemListDir", envd_fs_list_dir),
	UNARY("envdFilesystemRemove", envd_fs_remove),
	STREAM("envdFilesystemWatchDir", envd_fs_watch_dir),
	UNARY("envdFilesystemCreateWatcher", envd_watcher_create),
	UNARY("envdFilesystemGetWatcherEvents", envd_watcher_events),
	UNARY("envdFilesystemRemoveWatcher", envd_watcher_remove),
	{
		.operation = "envdFilesRead",
		.auth = HTTP_AUTH_FILES,
		.body = HTTP_BODY_NONE,
		.handle = envd_files_read,
	},
	{
		.operation = "envdFilesWrite",
		.auth = HTTP_AUTH_FILES,
		.body = HTTP_BODY_STREAM,
		.begin = envd_upload_begin,
		.data = envd_upload_data,
		.handle = envd_upload_handle,
		.done = envd_upload_done,
	},
	{
		.operation = "envdFilesCompose",
		.auth = HTTP_AUTH_TOKEN,
		.body = HTTP_BODY_JSON,
		.handle = envd_files_compose,
	},
	{
		.operation = "envdHealth",
		.auth = HTTP_AUTH_NONE,
		.body = HTTP_BODY_NONE,
		.handle = envd_health,
	},
	{
		.operation = "envdMetrics",
		.auth = HTTP_AUTH_TOKEN,
		.body = HTTP_BODY_NONE,
		.handle = envd_metrics,
	},
	{
		.operation = "envdEnvs",
		.auth = HTTP_AUTH_TOKEN,
		.body = HTTP_BODY_NONE,
		.handle = envd_envs,
	},
	{ .operation = NULL },
};
