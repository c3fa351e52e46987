/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/repl/repl.h"

#include "cli/cli.h"
#include "cli/run/args.h"
#include "cli/run/service.h"
#include "service/discovery.h"
#include "template/template.h"
#include "wire/wire.h"

#include <assert.h>
#include <getopt.h>
#include <signal.h>

/* --- the command line: options of `glovebox run` that make sense for a prompt ---------------- */

#define ENV_MAX 256
#define MEMORY_DEFAULT (UINT64_C(512) << 20) /* a scientific stack does not fit into a run's */
#define PIDS_DEFAULT 256
#define OUTPUT_DEFAULT (UINT64_C(8) << 20)

enum { OPT_PICTURES = OPT_SERVICE + 1 };

static const struct option options[] = {
	{ "language", required_argument, NULL, 'l' },
	{ "template", required_argument, NULL, 't' },
	{ "in", required_argument, NULL, OPT_IN },
	{ "env", required_argument, NULL, OPT_ENV },
	{ "pictures", required_argument, NULL, OPT_PICTURES },
	{ "timeout", required_argument, NULL, OPT_TIMEOUT },
	{ "cpu-time", required_argument, NULL, OPT_CPU_TIME },
	{ "cpus", required_argument, NULL, OPT_CPUS },
	{ "memory", required_argument, NULL, OPT_MEMORY },
	{ "disk", required_argument, NULL, OPT_DISK },
	{ "files", required_argument, NULL, OPT_FILES },
	{ "pids", required_argument, NULL, OPT_PIDS },
	{ "output", required_argument, NULL, OPT_OUTPUT },
	{ "json", no_argument, NULL, OPT_JSON },
	{ "raw", no_argument, NULL, OPT_RAW },
	{ "local", no_argument, NULL, OPT_LOCAL },
	{ "service", no_argument, NULL, OPT_SERVICE },
	{ "verbose", no_argument, NULL, 'v' },
	{ "help", no_argument, NULL, 'h' },
	{ NULL, 0, NULL, 0 },
};

static int add_env(struct run_request *q, size_t *n, char *text, struct fail *fail)
{
	const char *equals = strchr(text, '=');

	if (!equals || equals == text)
		return fail_set(fail, EINVAL, "--env", "--env %.100s: write NAME=VALUE", text);
	if (*n >= ENV_MAX || strlen(text) > WIRE_DATA_MAX)
		return fail_set(fail, E2BIG, "--env",
				"--env: at most %d variables of at most 64 KiB", ENV_MAX);
	q->given_env[(*n)++] = text;
	return 0;
}

static int read_option(int id, struct repl *r, const char **language, size_t *n_env,
		       struct fail *fail)
{
	struct run_request *q = &r->q;

	switch (id) {
	case 'l':
		*language = optarg;
		return 0;
	case 't':
		q->template_name = optarg;
		return 0;
	case 'v':
		q->verbose++;
		return 0;
	case OPT_JSON:
		q->json = true;
		return 0;
	case OPT_RAW:
		q->raw = true;
		return 0;
	case OPT_LOCAL:
		q->where = RUN_WHERE_LOCAL;
		return 0;
	case OPT_SERVICE:
		q->where = RUN_WHERE_SERVICE;
		return 0;
	case OPT_PICTURES:
		r->pictures = optarg;
		return 0;
	case OPT_IN:
		return run_args_input(q, optarg, fail);
	case OPT_ENV:
		return add_env(q, n_env, optarg, fail);
	default:
		return run_args_limit(id, optarg, &q->given, fail);
	}
}

static int read_options(int argc, char **argv, struct repl *r, const char **language,
			struct fail *fail)
{
	size_t n_env = 0;

	optind = 1;
	opterr = 0;
	for (;;) {
		int id = getopt_long(argc, argv, ":l:t:vh", options, NULL), e;

		if (id == -1)
			break;
		if (id == 'h')
			return RUN_ARGS_HELP;
		if (id == '?' || id == ':')
			return fail_set(fail, EINVAL, "options",
					"%s %s; see 'glovebox repl --help'",
					id == '?' ? "unknown option" : "a value is missing for",
					argv[optind - 1]);
		e = read_option(id, r, language, &n_env, fail);
		if (e < 0)
			return e;
	}
	return optind == argc ?
		       0 :
		       fail_set(fail, EINVAL, "options",
				"unexpected '%s': cells come from standard input", argv[optind]);
}

static int refuse_language(const struct language *l, struct fail *fail)
{
	struct language *list;
	char names[256] = "";
	size_t n, len = 0;

	if (language_list(&list, &n, fail) < 0)
		return -EINVAL;
	for (size_t i = 0; i < n && len < sizeof(names); i++)
		if (language_stateful(&list[i]))
			len += (size_t)snprintf(names + len, sizeof(names) - len, " %s",
						list[i].name);
	language_list_free(list, n);
	return fail_set(fail, ENOTSUP, "language",
			"%s keeps nothing from cell to cell here: use 'glovebox run'; with a "
			"prompt there are:%s",
			l->title, names);
}

static int use_language(struct repl *r, const char *name, struct fail *fail)
{
	struct run_limits wanted = r->q.given, *limits = &r->q.run.limits;
	_cleanup_(freep) char **language = NULL;
	struct language_vars vars;
	int e = language_load(name, &r->language, fail);

	if (e < 0)
		return e;
	if (!language_stateful(&r->language))
		return refuse_language(&r->language, fail);
	wanted.memory_bytes = wanted.memory_bytes ? wanted.memory_bytes : MEMORY_DEFAULT;
	wanted.pids = wanted.pids ? wanted.pids : PIDS_DEFAULT;
	wanted.output_bytes = wanted.output_bytes ? wanted.output_bytes : OUTPUT_DEFAULT;
	*limits = run_step_limits(&wanted, &r->language.run_limits);
	/* People think between cells, and some cells take long: no time limit unless one is given.
	 */
	limits->timeout_us = r->q.given.timeout_us;
	limits->cpu_time_us = r->q.given.cpu_time_us;
	vars = (struct language_vars){
		.file = r->language.file,
		.memory_mb = limits->memory_bytes >> 20,
		.cpus = MAX(limits->cpu_milli / 1000, 1u),
	};
	e = language_argv(r->language.kernel, &vars, &r->q.run.argv, fail);
	if (e == 0)
		e = language_env(&r->language, &vars, &language, fail);
	if (e == 0)
		e = run_env(limits, (const char *const *)language, NULL,
			    (const char *const *)r->q.given_env, &r->q.env);
	return e;
}

/* What a sandbox of a service has is the service's to say. */
static const char *needs_local(const struct run_request *q)
{
	if (q->n_inputs)
		return "--in";
	if (strchr(q->template_name, '/'))
		return "--template DIR";
	if (q->given.disk_bytes || q->given.files || q->given.pids || q->given.cpu_milli)
		return "--disk, --files, --pids or --cpus";
	return NULL;
}

static int choose_place(struct repl *r, struct fail *fail)
{
	const char *local = needs_local(&r->q);
	struct fail why = { 0 };
	int e;

	r->place = &repl_local;
	if (r->q.where == RUN_WHERE_LOCAL || (local && r->q.where != RUN_WHERE_SERVICE))
		return template_check(r->q.template_name, fail);
	if (local)
		return fail_set(fail, ENOTSUP, "service", "%s works only with --local", local);
	e = run_service_possible(&r->q, &why);
	if (e == 0) {
		r->place = &repl_service;
		return 0;
	}
	if (r->q.where == RUN_WHERE_SERVICE) {
		*fail = why;
		return e;
	}
	return template_check(r->q.template_name, fail);
}

static int repl_args_read(int argc, char **argv, struct repl *r, struct fail *fail)
{
	const char *language = "python";
	int e;

	r->q.given_env = calloc(ENV_MAX + 1, sizeof(char *));
	if (!r->q.given_env)
		return fail_set(fail, ENOMEM, "options", "out of memory");
	e = read_options(argc, argv, r, &language, fail);
	if (e == 0)
		e = use_language(r, language, fail);
	if (e == 0)
		e = choose_place(r, fail);
	if (e == -ENOMEM && !fail->msg[0])
		e = fail_set(fail, ENOMEM, "options", "out of memory");
	return e;
}

/* --- the verb -------------------------------------------------------------------------------- */

static const char help[] =
	"Usage: glovebox repl [OPTION]… [-l LANG]\n"
	"\n"
	"A notebook prompt on a sealed box: what one cell defines, the next one knows. With a running\n"
	"service the box is a sandbox of it, which is there at once; otherwise one of our own.\n"
	"\n"
	"  -l, --language LANG   python (default), or another that keeps state ('glovebox languages')\n"
	"  -t, --template NAME   file system to start from: base (default) or a root directory\n"
	"      --in PATH[:DEST]  copy a file or directory in, to " RUN_HOME " or DEST\n"
	"      --env NAME=VALUE  set a variable (nothing of our own environment gets in)\n"
	"      --pictures DIR    where pictures are saved (default: here)\n"
	"      --service         in the running service, or not at all\n"
	"      --local           in a box of our own\n"
	"\n"
	"At a terminal: Enter runs a cell that is complete. While a bracket or a string is open it goes\n"
	"on; a Python block ends with an empty line; two empty lines end anything. Ctrl-C interrupts\n"
	"the cell, Ctrl-D ends it all, :help tells the rest.\n"
	"From a pipe: all of it is one cell, or several, divided by comments: lines that begin with\n"
	"'# %%' (or '// %%'). The first that fails is the last.\n"
	"\n"
	"Limits of a cell\n"
	"      --timeout 30s     wall clock (default: none)   --cpu-time 10s  CPU time (default: none)\n"
	"      --output 8M       output that is shown; the rest goes into a file in the box\n"
	"Limits of the box, with --local\n"
	"      --memory 512M     memory              --disk 256M     files it writes\n"
	"      --cpus 1          CPU share           --files 65536   number of files\n"
	"      --pids 256        processes\n"
	"\n"
	"      --json            for programs: standard input has a JSON object per line, {\"code\": …} or\n"
	"                        {\"restart\": true}; standard output has events, one per line\n"
	"      --raw             do not defuse control characters on a terminal\n"
	"  -v, --verbose         say what each cell used\n"
	"\n"
	"Exit status: 0; from a pipe 1 when a cell failed; 2 bad request, 125 we failed.\n"
	"\n"
	"Examples\n"
	"  glovebox repl\n"
	"  glovebox repl -l javascript --memory 1G\n"
	"  echo 'sum(range(10))' | glovebox repl\n"
	"  printf '%s\\n' '{\"code\": \"x = 6\"}' '{\"code\": \"x * 7\"}' | glovebox repl --json\n";

int repl_run(struct repl *r, const char *code, size_t len, struct fail *fail)
{
	int e = language_check_code(code, len, REPL_CODE_MAX, fail);

	r->failed = false;
	r->over = false;
	r->n_pictures = 0;
	if (e < 0) {
		r->failed = true;
		repl_say(r, "%s", fail->msg);
		return 0;
	}
	repl_record_cell(r, code, len);
	e = r->place->cell(r, code, len, fail);
	if (!r->q.json)
		(void)run_emit_end(&r->q);
	return e;
}

static void close_place(struct repl *r)
{
	if (r->place)
		r->place->close(r);
}

static void repl_done(struct repl *r)
{
	close_place(r);
	language_done(&r->language);
	run_request_done(&r->q);
	buf_done(&r->record);
}

int cli_repl(int argc, char **argv)
{
	_cleanup_(repl_done) struct repl r = {
		.q = RUN_REQUEST_INIT,
		.pictures = ".",
		.record = BUF_INIT(REPL_RECORD_MAX),
	};
	struct fail fail = { 0 };
	int e = repl_args_read(argc, argv, &r, &fail), status;

	if (e == RUN_ARGS_HELP)
		return fputs(help, stdout) < 0 ? CLI_FAILURE : CLI_OK;
	if (e < 0)
		return cli_error(CLI_USAGE, "%s", fail.msg);
#ifdef GLOVEBOX_BREAKABLE
	(void)fprintf(stderr,
		      "glovebox: warning: a test build whose protections can be switched off\n");
#endif
	r.terminal = !r.q.json && isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);
	r.colour = !r.q.json && isatty(STDERR_FILENO) && !getenv("NO_COLOR");
	r.q.signal_fd = cli_hold_signals(); /* Ctrl-C is for the cell */
	assert(r.place);                    /* the arguments say which */
	e = r.place->open(&r, &fail);
	if (e < 0)
		return r.ended_by ? 128 + r.ended_by : cli_error(CLI_FAILURE, "%s", fail.msg);
	status = r.terminal ? repl_prompt(&r) : repl_pipe(&r);
	return r.ended_by ? 128 + r.ended_by : status;
}
