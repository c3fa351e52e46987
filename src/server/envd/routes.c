/* SPDX-License-Identifier: Apache-2.0 */
#include "server/envd/envd.h"

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
