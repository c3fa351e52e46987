/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/repl/repl.h"

#include "cli/cli.h"
#include "cli/run/args.h"

#include <signal.h>

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
	e = r.place->open(&r, &fail);
	if (e < 0)
		return r.ended_by ? 128 + r.ended_by : cli_error(CLI_FAILURE, "%s", fail.msg);
	status = r.terminal ? repl_prompt(&r) : repl_pipe(&r);
	return r.ended_by ? 128 + r.ended_by : status;
}
