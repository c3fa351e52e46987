/* SPDX-License-Identifier: Apache-2.0 */
/*
 * glovebox run: reads the command line, checks everything that can be checked without a box, then
 * runs. Whatever is wrong up to there is one line, status 2, and nothing created.
 */
#include "cli/run/run.h"

#include "cli/cli.h"
#include "cli/run/args.h"
#include "cli/run/service.h"

#include <dirent.h>
#include <sys/stat.h>

#define JSON_OUTPUT_MAX ((size_t)256 << 20)

static const char help[] =
	"Usage: glovebox run [OPTION]… [-l LANG] [-c CODE | FILE | -]\n"
	"       glovebox run [OPTION]… -- COMMAND [ARGUMENT]…\n"
	"\n"
	"Runs code in a sealed box: no network unless it is allowed, no host files, nothing kept.\n"
	"\n"
	"What to run\n"
	"  -l, --language LANG   language of the code (default: from FILE's name)\n"
	"  -c, --code CODE       the code itself; or FILE, or - for standard input\n"
	"  -t, --template NAME   file system to start from: base (default) or a root directory\n"
	"      --stdin FILE      standard input of the program, - for ours (default: empty)\n"
	"      --in PATH[:DEST]  copy a file or directory in, to " RUN_HOME " or DEST\n"
	"      --out DIR         afterwards, copy " RUN_OUT " to DIR (new or empty)\n"
	"      --env NAME=VALUE  set a variable (nothing of our own environment gets in)\n"
	"      --service         in the running service; for an ordinary user, where there is one,\n"
	"                        that is the default, for it makes the better boxes\n"
	"      --local           in this process\n"
	"      --no-zygote       in the service, start Python anew instead of forking a loaded one\n"
	"\n"
	"Network (none, unless one of these is given)\n"
	"      --allow RULE      let it reach HOST, *.DOMAIN, an address or a range, each with :PORTS;\n"
	"                        HOST alone is its ports 80 and 443. Can be given again\n"
	"      --allow-set NAME  what a rule set of this machine allows; see 'glovebox egress --help'\n"
	"      --allow-private RANGE  let rules reach into a private or reserved range\n"
	"      --net learn       let everything through and tell the rules that would have done\n"
	"      --learn-to FILE   ... writing them there\n"
	"\n"
	"Limits (reaching one ends the run and is named)\n"
	"      --timeout 30s     wall clock          --memory 256M   memory\n"
	"      --cpu-time 10s    CPU time            --disk 256M     files it writes\n"
	"      --cpus 1          CPU share           --files 65536   number of files\n"
	"      --pids 64         processes           --output 1M     what it prints\n"
	"\n"
	"Result\n"
	"      --json            one JSON object: status, output, usage, limits, isolation\n"
	"      --raw             do not defuse control characters on a terminal\n"
	"  -v, --verbose         say what was used and which protections were on\n"
	"\n"
	"Exit status: the program's own; 2 bad request, 124 out of time, 125 we failed, 126 cannot\n"
	"execute, 127 not found, 137 ended by memory or another limit, 128+N ended by signal N.\n"
	"\n"
	"Examples\n"
	"  glovebox run -l python -c 'print(6 * 7)'\n"
	"  glovebox run script.js --memory 512M --timeout 5s\n"
	"  glovebox run --in data.csv --out results -l python analyse.py\n"
	"  glovebox run --json -- sh -c 'id; cat /etc/passwd'\n"
	"  glovebox run --allow example.com -- curl -s https://example.com/\n"
	"  glovebox run --net learn -- pip download six\n";

/* Descriptors of the result directory: made by us or found empty. */
struct out_dir {
	const char *path;
	bool made;
};

static int prepare_out_dir(const char *path, struct out_dir *ret, struct fail *fail)
{
	DIR *dir;
	struct dirent *entry;
	bool empty = true;

	ret->path = path;
	if (mkdir(path, 0755) == 0) {
		ret->made = true;
		return 0;
	}
	if (errno != EEXIST)
		return fail_set(fail, errno, "--out", "cannot make --out %s: %s", path,
				strerror(errno));
	dir = opendir(path);
	if (!dir)
		return fail_set(fail, errno, "--out", "cannot use --out %s: %s", path,
				strerror(errno));
	while (empty && (entry = readdir(dir)))
		empty = !strcmp(entry->d_name, ".") || !strcmp(entry->d_name, "..");
	(void)closedir(dir);
	if (!empty)
		return fail_set(fail, ENOTEMPTY, "--out",
				"--out %s is not empty: name a new or empty directory", path);
	if (access(path, W_OK | X_OK) < 0)
		return fail_set(fail, errno, "--out", "cannot write to --out %s: %s", path,
				strerror(errno));
	return 0;
}

/* Of a local run: the service has its own. A root directory that somebody else made has no
 * certificates of ours. */
static const char *const *network_variables(const struct run_request *q)
{
	if (!run_net_wanted(&q->net))
		return NULL;
	return run_network_env(*run_net_ca_bundle(&q->net) &&
			       template_is_builtin(q->template_name));
}

/* All of it: what run/args.c does, and what only we do. */
static int run_read_args(int argc, char **argv, struct run_request *q, struct fail *fail)
{
	_cleanup_(run_args_done) struct run_args a = { 0 };
	int r = run_args_options(argc, argv, &a, q, fail);

	if (r != 0)
		return r;
	r = run_net_options(&q->net, &a, fail);
	if (r == 0)
		r = run_args_open(&a, q, fail);
	if (r == 0 && q->json && q->run.limits.output_bytes > JSON_OUTPUT_MAX)
		r = fail_set(fail, EINVAL, "limits",
			     "--output: with --json, which keeps it all in memory, at most %zuM",
			     JSON_OUTPUT_MAX >> 20);
	if (r == 0)
		r = run_net_wish_check(&q->net, fail);
	if (r == 0)
		r = run_service_choose(q, &q->in_service, fail);
	/* Settings, rule sets and certificates of a service are its own. */
	if (r == 0 && !q->in_service)
		r = run_net_settings(&q->net, fail);
	if (r == 0)
		r = run_args_env(&a, network_variables(q), q, fail);
	return run_args_reason(r, fail);
}

static int print_json(const struct run_request *q, const struct run_result *r)
{
	json_t *o = run_result_json(r, &q->run.limits, r->compiled ? &q->compile.limits : NULL);
	const char *name;
	json_t *value;
	int e;

	/* What the service knows better; the output went by before. */
	json_object_foreach(r->service, name, value)
		if (strcmp(name, "stdout") != 0 && strcmp(name, "stderr") != 0 &&
		    strcmp(name, "message") != 0 && strcmp(name, "outputs") != 0)
			(void)json_object_set(o, name, value);
	e = json_dumpf(o, stdout, JSON_INDENT(2) | JSON_ENSURE_ASCII | JSON_REAL_PRECISION(9));

	json_decref(o);
	if (e < 0 || putchar('\n') == EOF || fflush(stdout) == EOF)
		return -EIO;
	return 0;
}

int cli_run(int argc, char **argv)
{
	_cleanup_(run_request_done) struct run_request q = RUN_REQUEST_INIT;
	_cleanup_(run_result_done) struct run_result r = {
		.out = BUF_INIT(SIZE_MAX / 8),
		.err = BUF_INIT(SIZE_MAX / 8),
	};
	struct out_dir out = { 0 };
	struct fail fail = { 0 };
	int e = run_read_args(argc, argv, &q, &fail);

	if (e == RUN_ARGS_HELP)
		return fputs(help, stdout) < 0 ? CLI_FAILURE : CLI_OK;
	if (e == 0)
		e = template_check(q.template_name, &fail);
	if (e == 0 && q.out_dir)
		e = prepare_out_dir(q.out_dir, &out, &fail);
	if (e < 0)
		return cli_error(CLI_USAGE, "%s", fail.msg);
	run_begin(&q);
	e = q.in_service ? run_in_service(&q, &r) : run_local(&q, &r);
	if (e < 0 && out.made)
		(void)rmdir(out.path);
	if (run_net_save(&q, &r, &fail) < 0)
		(void)cli_error(0, "%s", fail.msg);
	if (q.json)
		return print_json(&q, &r) < 0 ? cli_error(CLI_FAILURE, "cannot write the result") :
						run_exit_status(&r);
	run_tell(&q, &r);
	run_net_notes(&q, &r);
	run_tell_usage(&q, &r);
	return run_exit_status(&r);
}
