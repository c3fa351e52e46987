/* SPDX-License-Identifier: Apache-2.0 */
/* What people and shells get of a run: its output, kept for the JSON result or written on at
 * once, and how it ended. */
#include "cli/run/run.h"

#include "box/breakable.h"
#include "cli/cli.h"

#include <poll.h>

/* --- what the program prints ----------------------------------------------------------------- */

static struct termsafe safe[2];
static signed char is_terminal[2] = { -1, -1 };
static bool err_in_line; /* the program's last error line has no end yet */

/* Blocking whatever the descriptor's flags are: somebody else may have set O_NONBLOCK on it. */
static int output_write(int fd, const char *data, size_t len)
{
	while (len) {
		ssize_t n = write(fd, data, len);

		if (n < 0 && errno == EAGAIN) {
			struct pollfd p = { .fd = fd, .events = POLLOUT };

			(void)poll(&p, 1, 1000);
			continue;
		}
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		data += n;
		len -= (size_t)n;
	}
	return 0;
}

static bool defuse(const struct run_request *q, bool is_err)
{
	if (q->raw || !control_on("termsafe"))
		return false;
	if (is_terminal[is_err] < 0) {
		is_terminal[is_err] = (signed char)isatty(is_err ? 2 : 1);
		termsafe_init(&safe[is_err]);
	}
	return is_terminal[is_err];
}

int run_emit(const struct run_request *q, struct run_result *r, bool is_err, const void *data,
	     size_t len)
{
	const unsigned char *p = data;

	if (q->json)
		return buf_add(is_err ? &r->err : &r->out, data, len);
	if (is_err && len)
		err_in_line = p[len - 1] != '\n';
	if (!defuse(q, is_err))
		return output_write(is_err ? 2 : 1, data, len);
	while (len) {
		static char shown[16384];
		size_t n = MIN(len, (size_t)1024);
		size_t out = termsafe_feed(&safe[is_err], p, n, shown, sizeof(shown));
		int e = output_write(is_err ? 2 : 1, shown, out);

		if (e < 0)
			return e;
		p += n;
		len -= n;
	}
	return 0;
}

int run_emit_end(const struct run_request *q)
{
	int r = 0;

	for (int is_err = 0; r == 0 && !q->json && is_err < 2; is_err++) {
		char shown[512];

		if (is_terminal[is_err] > 0)
			r = output_write(is_err ? 2 : 1, shown,
					 termsafe_flush(&safe[is_err], shown, sizeof(shown)));
	}
	return r;
}

/* What we say ourselves starts on a line of its own. */
void run_emit_break(void)
{
	if (err_in_line)
		(void)!write(2, "\n", 1);
	err_in_line = false;
}

/* --- how it ended ---------------------------------------------------------------------------- */

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
