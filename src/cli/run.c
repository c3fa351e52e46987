/* SPDX-License-Identifier: Apache-2.0 */
/*
 * glovebox run: reads the command line, checks everything that can be checked without a box, then runs.
 * Whatever is wrong up to there is one line, status 2, and nothing created.
 */
#include "cli/run.h"

#include "base/parse.h"
#include "box/breakable.h"
#include "cli/cli.h"
#include "language/language.h"
#include "cli/run_args.h"
#include "cli/run_service.h"
#include "template/template.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/stat.h>

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

static void print_usage(const struct run_request *q, const struct run_result *r)
{
	const struct run_usage *u = &r->usage;

	(void)fprintf(stderr,
		      "glovebox: %s after %.1f ms (box ready in %.1f ms): CPU %.1f ms, memory "
		      "%.1f MiB, %llu processes at most\n",
		      run_status_name(r->status), (double)u->wall_us / 1e3,
		      (double)r->setup_us / 1e3, (double)(u->cpu_user_us + u->cpu_system_us) / 1e3,
		      (double)u->memory_peak / 1048576.0, (unsigned long long)u->processes_peak);
	if (!r->isolated) {
		(void)fprintf(stderr, "glovebox: template %s, %s\n", q->template_name,
			      r->service ? "in the service: its protections are in --json" :
					   "no box was made");
		return;
	}
	(void)fprintf(stderr,
		      "glovebox: template %s, user ids %s, cgroups %s, Landlock ABI %d, %u masks, "
		      "%s%s\n",
		      q->template_name, ids_kind_name(r->isolation.ids_kind),
		      cgroup_mode_name((enum cgroup_mode)r->isolation.cgroup_mode),
		      r->isolation.landlock_abi, r->isolation.masks,
		      r->isolation.features & SETUP_HAS_TIME_NS ? "own clock" : "host's clock",
		      r->isolation.features & SETUP_HAS_IDMAP ? ", idmapped layers" : "");
}

/* What a person should know that the program's own output does not say. */
static void print_notes(const struct run_request *q, const struct run_result *r)
{
	if (r->message[0] || r->n_refused || q->verbose)
		run_emit_break();
	if (r->message[0] && !r->cancelled_by)
		(void)cli_error(0, "%s%s%s", run_status_name(r->status),
				r->step && !strcmp(r->step, "compile") ? " while compiling: " :
									 ": ",
				r->message);
	for (size_t i = 0; i < r->n_refused; i++) {
		char shown[512];

		/* A name is the box's words: it goes to the terminal defused, on one line. */
		termsafe_line(r->refused[i].path, shown, sizeof(shown));
		(void)fprintf(stderr, "glovebox: not copied out, not a file or directory: %s\n",
			      shown);
	}
	if (r->refused_more)
		(void)fprintf(stderr, "glovebox: and %zu more of them\n", r->refused_more);
	if (r->isolated && !(r->isolation.cgroup_features & CGROUP_MEMORY))
		(void)fprintf(stderr, "glovebox: warning: no memory cgroup here, limits are per "
				      "process only (see 'glovebox doctor')\n");
	run_net_notes(q, r);
	if (q->verbose)
		print_usage(q, r);
}

static int exit_status(const struct run_result *r)
{
	if (r->cancelled_by)
		return 128 + r->cancelled_by;
	switch (r->status) {
	case RUN_OK:
	case RUN_ERROR:
		return r->exit_code;
	case RUN_TIMEOUT:
	case RUN_CPU_LIMIT:
		return CLI_TIME;
	case RUN_MEMORY_LIMIT:
	case RUN_DISK_LIMIT:
	case RUN_PIDS_LIMIT:
	case RUN_OUTPUT_LIMIT:
		return CLI_KILLED;
	case RUN_SIGNAL:
		return 128 + r->signal;
	case RUN_SETUP_ERROR:
	case _RUN_STATUS_MAX:
		break;
	}
	return CLI_FAILURE;
}

int cli_hold_signals(void)
{
	struct sigaction ignore = { .sa_handler = SIG_IGN };
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	(void)sigprocmask(SIG_BLOCK, &set, NULL);
	(void)sigaction(SIGPIPE, &ignore, NULL);
	return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
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
	int e = run_args_read(argc, argv, &q, &fail);

	if (e == RUN_ARGS_HELP)
		return fputs(help, stdout) < 0 ? CLI_FAILURE : CLI_OK;
	if (e == 0)
		e = template_check(q.template_name, &fail);
	if (e == 0 && q.out_dir)
		e = prepare_out_dir(q.out_dir, &out, &fail);
	if (e < 0)
		return cli_error(CLI_USAGE, "%s", fail.msg);
#ifdef GLOVEBOX_BREAKABLE
	(void)fprintf(stderr,
		      "glovebox: warning: a test build whose protections can be switched off\n");
#endif
	q.signal_fd = cli_hold_signals();
	e = q.in_service ? run_in_service(&q, &r) : run_in_box(&q, &r);
	if (e < 0 && out.made)
		(void)rmdir(out.path);
	if (run_net_save(&q, &r, &fail) < 0)
		(void)cli_error(0, "%s", fail.msg);
	if (q.json && run_print_json(&q, &r) < 0)
		return cli_error(CLI_FAILURE, "cannot write the result");
	if (!q.json)
		print_notes(&q, &r);
	return exit_status(&r);
}
