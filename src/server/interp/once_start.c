/* SPDX-License-Identifier: Apache-2.0 */
/* A run that is a cell: its file and its commands. */
#include "server/interp/once.h"

#include <poll.h>

#define NOFILE_MAX 4096
#define OOM_SCORE_COMMAND 800
#define BOX_USER 1000
#define REMOVE_MS 2000
#define FILE_SIZE 320

/* --- the file --------------------------------------------------------------------------------------------- */

static void code_path(const struct once *o, char ret[static FILE_SIZE])
{
	(void)snprintf(ret, FILE_SIZE, "%s/%s", o->dir, o->language->file);
}

static int send_code(struct talk *t, const struct interp_execute *x)
{
	int r = talk_send(t, WIRE_GO, NULL, 0);

	for (size_t at = 0; r == 0 && at < x->code_len;) {
		size_t n = MIN(x->code_len - at, (size_t)WIRE_DATA_MAX);

		r = talk_send(t, WIRE_DATA, x->code + at, n);
		at += n;
	}
	return r < 0 ? r : talk_send(t, WIRE_FILE_END, NULL, 0);
}

int once_write_code(struct once *o, struct rpc_error *e)
{
	const struct wire_fs q = { .op = WIRE_FS_WRITE };
	_cleanup_(talk_freep) struct talk *t = talk_new(o->request);
	char path[FILE_SIZE];
	const char *paths[] = { path };
	struct wire_failed failed;
	int r;

	code_path(o, path);
	r = t ? envd_fs_open(t, &q, "user", paths, 1) : -ENOMEM;
	if (r == 0)
		r = send_code(t, &o->what);
	if (r == 0)
		r = talk_recv(t);
	if (r < 0 || t->frame.head.type == WIRE_ENTRY)
		return r < 0 ? r : 0;
	if (talk_failed(&t->frame, &failed) < 0)
		return envd_broken(o->sandbox, "about a file");
	return rpc_fail(e, RPC_INTERNAL, "the code cannot be written to a file: %s",
			strerror(failed.err));
}

/* The client is gone by now, and with it the request: nobody else is asked, and nobody waits for long. */
void once_remove_directory(struct once *o)
{
	const struct wire_fs q = { .op = WIRE_FS_REMOVE };
	struct op op = OP_INIT;
	struct pollfd p = { .events = POLLIN };

	if (op_open(o->sandbox, WIRE_FS, &q, sizeof(q), &op) < 0)
		return;
	p.fd = op.sock;
	if (wire_send(op.sock, WIRE_USER, "user", 4) == 0 &&
	    wire_send(op.sock, WIRE_PATH, o->dir, strlen(o->dir)) == 0 &&
	    wire_send(op.sock, WIRE_GO, NULL, 0) == 0)
		(void)poll(&p, 1, REMOVE_MS); /* until it is done: hanging up would stop it */
	op_close(&op);
}

/* --- commands ---------------------------------------------------------------------------------------------- */

static int send_variable(void *arg, const char *name, const char *value)
{
	return talk_env(arg, name, value);
}

/* Later ones win: the service's, the language's, the sandbox's, the client's own. */
static int send_environment(struct once *o, const struct language_vars *vars)
{
	_cleanup_(freep) char **env = NULL;
	struct fail fail;
	const char *name;
	json_t *value;
	int r = language_env(o->language, vars, &env, &fail);

	for (size_t i = 0; r == 0 && env[i]; i++)
		r = talk_text(o->talk, WIRE_ENV, env[i]);
	if (r == 0)
		r = interp_variables(o->sandbox, send_variable, o->talk);
	json_object_foreach((json_t *)(uintptr_t)o->what.env, name, value) {
		if (r == 0)
			r = talk_env(o->talk, name, json_string_value(value));
	}
	return r;
}

/*
 * Programs expect their data in the home, so that is where they run. A command that is found by the directory it runs
 * in ("./main") is named from the root instead; one that has such names elsewhere runs beside its files.
 */
static int send_command(struct once *o, const struct language_vars *vars)
{
	const char *command = o->compiling ? o->language->compile : o->language->run;
	_cleanup_(freep) char **argv = NULL;
	char program[2 * FILE_SIZE];
	struct fail fail;
	bool is_built, at_home;
	int r = language_argv(command, vars, &argv, &fail);

	if (r < 0)
		return r;
	is_built = !o->compiling && strncmp(argv[0], "./", 2) == 0;
	at_home = is_built || (!o->compiling && !o->language->compile);
	(void)snprintf(program, sizeof(program), "%s%s", is_built ? o->dir : "",
		       argv[0] + (is_built ? 1 : 0));
	r = talk_text(o->talk, WIRE_USER, "user");
	if (r == 0)
		r = talk_text(o->talk, WIRE_CWD, at_home ? INTERP_HOME : o->dir);
	if (r == 0)
		r = talk_text(o->talk, WIRE_ARG, program);
	for (size_t i = 1; r == 0 && argv[i]; i++)
		r = talk_text(o->talk, WIRE_ARG, argv[i]);
	return r;
}

int once_start(struct once *o)
{
	struct sandbox *b = o->sandbox;
	char path[FILE_SIZE];
	const struct language_vars vars = {
		.file = path,
		.memory_mb = b->limits.memory_bytes >> 20,
		.cpus = MAX(b->limits.cpu_milli / 1000, 1u),
	};
	const struct interp_limits *limits = &o->what.limits;
	struct wire_exec q = {
		.uid = BOX_USER,
		.gid = BOX_USER,
		.oom_score_adj = OOM_SCORE_COMMAND,
		.fsize_max = b->limits.disk_bytes,
		.nofile_max = NOFILE_MAX,
		.timeout_ms = limits->wall_ms,
		.cpu_max_s = (limits->cpu_ms + 999) / 1000,
		.data_max = limits->memory_bytes,
	};
	int r;

	code_path(o, path);
	sandbox_exec_limits(b, &q);
	op_close(&o->talk->op);
	o->started = false;
	r = talk_open(o->talk, WIRE_EXEC, &q, sizeof(q));
	if (r == 0)
		r = send_command(o, &vars);
	if (r == 0)
		r = send_environment(o, &vars);
	if (r == 0)
		r = talk_send(o->talk, WIRE_GO, NULL, 0);
	return r < 0 ? r : talk_no_wait(o->talk);
}
