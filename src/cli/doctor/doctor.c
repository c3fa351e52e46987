/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/doctor/doctor.h"

#include "cli/cli.h"
#include "cli/self.h"
#include "service/program.h"

#include <sched.h>
#include <stdarg.h>

/* --- what a check says ----------------------------------------------------------------------- */

/* Longer texts than these have no place in a table: they are cut. */
static __attribute__((format(printf, 3, 0))) void result_fill(char *text, size_t size,
							      const char *fmt, va_list args)
{
	(void)vsnprintf(text, size, fmt, args);
}

void doctor_summary(struct doctor_result *r, enum doctor_level level, const char *fmt, ...)
{
	va_list args;

	r->level = level;
	va_start(args, fmt);
	result_fill(r->summary, sizeof(r->summary), fmt, args);
	va_end(args);
}

void doctor_detail(struct doctor_result *r, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	result_fill(r->detail, sizeof(r->detail), fmt, args);
	va_end(args);
}

void doctor_cost(struct doctor_result *r, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	result_fill(r->cost, sizeof(r->cost), fmt, args);
	va_end(args);
}

void doctor_remedy(struct doctor_result *r, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	result_fill(r->fix, sizeof(r->fix), fmt, args);
	va_end(args);
}

const char *doctor_level_name(enum doctor_level level)
{
	static const char *const names[] = {
		[DOCTOR_OK] = "ok",
		[DOCTOR_NOTE] = "note",
		[DOCTOR_WARNING] = "warning",
		[DOCTOR_ERROR] = "error",
	};

	return names[level];
}

enum doctor_level doctor_needed(const struct doctor *d)
{
	return d->box_ok ? DOCTOR_WARNING : DOCTOR_ERROR;
}

bool doctor_is_blocked(const struct doctor *d, struct doctor_result *r)
{
	if (d->userns == 0)
		return false;
	doctor_summary(r, DOCTOR_NOTE, "not tried: it takes user namespaces");
	return true;
}

/* --- the verb -------------------------------------------------------------------------------- */

static const char help[] =
	"Usage: glovebox doctor [--fix] [--json]\n"
	"\n"
	"Tries everything boxes need on this machine and says what works, what is missing, what that\n"
	"costs and how to get it.\n"
	"\n"
	"      --fix    as root: repair what can safely be repaired, and say what was changed;\n"
	"               otherwise: list the commands\n"
	"      --json   one JSON object\n"
	"\n"
	"Levels: ok; note: worth knowing; warning: a protection is missing; error: boxes cannot run.\n"
	"Exit status: 0 when boxes can run, 1 when there was an error, 2 bad request.\n";

/* From the ground up: what stands below is explained by what failed above. */
static const struct doctor_check checks[] = {
	{ "kernel", "Kernel", doctor_check_kernel },
	{ "userns", "User namespaces", doctor_check_userns },
	{ "namespaces", "Other namespaces", doctor_check_namespaces },
	{ "time", "Own clocks", doctor_check_time },
	{ "ids", "User ids", doctor_check_ids },
	{ "id-overlap", "Nobody else's ids", doctor_check_id_overlap },
	{ "proc", "Private /proc", doctor_check_proc },
	{ "tmpfs", "tmpfs", doctor_check_tmpfs },
	{ "overlay", "overlayfs", doctor_check_overlay },
	{ "idmap", "Idmapped mounts", doctor_check_idmap },
	{ "seccomp", "seccomp", doctor_check_seccomp },
	{ "landlock", "Landlock", doctor_check_landlock },
	{ "memfd", "Sealed agent", doctor_check_memfd },
	{ "cgroup", "cgroups", doctor_check_cgroup },
	{ "limits", "Limits", doctor_check_limits },
	{ "swap", "Swap", doctor_check_swap },
	{ "egress", "Network", doctor_check_egress },
	{ "nftables", "Without a proxy", doctor_check_nftables },
	{ "core", "Core dumps", doctor_check_core },
	{ "ptrace", "Tracing", doctor_check_ptrace },
	{ "tiocsti", "Terminal input", doctor_check_tiocsti },
	{ "symlinks", "Links in /tmp", doctor_check_symlinks },
	{ "disk", "Disk", doctor_check_disk },
	{ "languages", "Languages", doctor_check_languages },
	{ "box", "A real box", doctor_check_box },
};

struct arguments {
	bool fix;
	bool json;
	bool help;
};

static int read_options(int argc, char **argv, struct arguments *ret)
{
	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "--fix"))
			ret->fix = true;
		else if (!strcmp(argv[i], "--json"))
			ret->json = true;
		else if (!strcmp(argv[i], "--help") || !strcmp(argv[i], "-h"))
			ret->help = true;
		else
			return cli_error(CLI_USAGE,
					 "doctor does not take '%s'; it takes --fix and --json",
					 argv[i]);
	}
	return CLI_OK;
}

static bool is_true(const json_t *object, const char *key)
{
	return json_is_true(json_object_get(object, key));
}

/* The judge of all other checks: does a box really work, with what must never be missing? */
static void try_box(struct doctor *d)
{
	static const char *const args[] = { "--timeout", "20s", "--", "/bin/true", NULL };
	const json_t *isolation;

	if (self_run(args, &d->box) < 0)
		return;
	isolation = json_object_get(d->box, "isolation");
	d->box_ok = !strcmp(self_text(d->box, "status"), "ok") && is_true(isolation, "seccomp") &&
		    is_true(isolation, "no_new_privs") &&
		    json_array_size(json_object_get(isolation, "namespaces")) >= 6;
}

/* Another file, which a security module may treat in another way. After try_box(), who made what it
 * needs. */
static void try_front(struct doctor *d)
{
	const char *const args[] = { d->front, "run", "--local",   "--timeout",
				     "20s",    "--",  "/bin/true", NULL };

	if (program_self(d->self) < 0)
		d->self[0] = '\0';
	if (program_front(d->front) < 0)
		d->front[0] = '\0';
	d->front_ok = d->front[0] && self_succeeds(args);
}

int cli_doctor(int argc, char **argv)
{
	struct doctor_result results[ARRAY_SIZE(checks)] = { 0 };
	struct doctor_report report = { checks, results, ARRAY_SIZE(checks), NULL };
	struct doctor d = { .root = geteuid() == 0 };
	struct arguments options = { 0 };
	int r = read_options(argc, argv, &options);

	if (r != CLI_OK)
		return r;
	if (options.help)
		return fputs(help, stdout) < 0 ? CLI_FAILURE : CLI_OK;
	if (options.fix && doctor_fix(&d, &report.changes) < 0)
		return cli_error(CLI_FAILURE, "out of memory");
	d.userns = doctor_probe(CLONE_NEWUSER | CLONE_NEWNS, doctor_try_tmpfs);
	try_box(&d);
	try_front(&d);
	(void)cgroup_host_open(&d.cgroups);
	for (size_t i = 0; i < ARRAY_SIZE(checks); i++)
		checks[i].check(&d, &results[i]);
	r = options.json ? doctor_print_json(&d, &report) : doctor_print_text(&d, &report);
	cgroup_host_close(&d.cgroups);
	json_decref(d.box);
	json_decref(report.changes);
	if (r < 0)
		return cli_error(CLI_FAILURE, "cannot write the result");
	return doctor_worst(&report) == DOCTOR_ERROR ? 1 : CLI_OK;
}
