/* SPDX-License-Identifier: Apache-2.0 */
/* How a run ended, for people and for shells. */
#include "cli/run/run.h"

#include "cli/cli.h"

void run_tell(const struct run_request *q, const struct run_result *r)
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
}

void run_tell_usage(const struct run_request *q, const struct run_result *r)
{
	const struct run_usage *u = &r->usage;

	if (!q->verbose)
		return;
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

int run_exit_status(const struct run_result *r)
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
