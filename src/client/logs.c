/* SPDX-License-Identifier: Apache-2.0 */
/* glovebox logs: what happened in a sandbox, and with -f what is happening. */
#include "client/client.h"

#include "base/termsafe.h"
#include "client/api/api.h"

#include <getopt.h>
#include <time.h>

#define FOLLOW_MS 500
#define PAGE 1000

static const char help[] =
	"Usage: glovebox logs [-f] [--network] [-o json|table] ID\n"
	"\n"
	"Shows a sandbox's log: its life, the commands that ran in it, and what it asked of the\n"
	"network.\n"
	"\n"
	"  -f, --follow             go on until the sandbox ends\n"
	"      --network            only what it asked of the network\n"
	"  -o, --output json|table  one JSON object per line, or text\n";

static void print_entry(const json_t *e, bool json)
{
	if (json) {
		(void)json_dumpf(e, stdout, JSON_COMPACT | JSON_ENSURE_ASCII);
		(void)putchar('\n');
	} else {
		const char *time = json_string_value(json_object_get(e, "timestamp"));
		const char *level = json_string_value(json_object_get(e, "level"));
		const char *message = json_string_value(json_object_get(e, "message"));
		char shown[2048];

		termsafe_line(message ? message : "", shown, sizeof(shown));
		(void)printf("%.19s %-5.5s %s\n", time ? time : "", level ? level : "", shown);
	}
}

/* Milliseconds of an RFC 3339 time in UTC; 0 when it is none. */
static int64_t time_ms(const char *text)
{
	struct tm tm = { 0 };
	const char *rest = text ? strptime(text, "%Y-%m-%dT%H:%M:%S", &tm) : NULL;
	int64_t ms = 0, unit = 100;

	if (!rest)
		return 0;
	if (*rest == '.')
		for (rest++; *rest >= '0' && *rest <= '9' && unit; rest++, unit /= 10)
			ms += (*rest - '0') * unit;
	return (int64_t)timegm(&tm) * 1000 + ms;
}

/* What is shown. */
struct logs_wanted {
	const char *id; /* escaped */
	bool json, network, on_and_on;
};

static bool is_wanted(const struct logs_wanted *w, const json_t *e)
{
	return !w->network ||
	       strcmp(client_text(json_object_get(e, "fields"), "logger"), "network") == 0;
}

struct seen {
	int64_t ms;   /* of the newest entry that was shown */
	size_t count; /* how many of that very millisecond were */
};

/* Shows what is new. Entries of one millisecond may come in two answers, so they are counted. */
static int show_new(struct api *a, const struct logs_wanted *w, struct seen *seen,
		    struct fail *fail)
{
	char path[256];
	json_t *answer = NULL, *e;
	size_t i, same = 0;
	int r;

	(void)snprintf(path, sizeof(path),
		       "/v2/sandboxes/%s/logs?cursor=%lld&limit=%d&direction=forward", w->id,
		       (long long)seen->ms, PAGE);
	r = api_call(a, "GET", path, NULL, &answer, fail);
	if (r < 0)
		return r;
	json_array_foreach(json_object_get(answer, "logs"), i, e) {
		int64_t ms = time_ms(json_string_value(json_object_get(e, "timestamp")));

		if (ms < seen->ms || (ms == seen->ms && same++ < seen->count))
			continue;
		seen->count = ms == seen->ms ? seen->count + 1 : 1;
		same = ms == seen->ms ? same : 1;
		seen->ms = ms;
		if (is_wanted(w, e))
			print_entry(e, w->json);
	}
	json_decref(answer);
	return fflush(stdout) == EOF ? fail_set(fail, EIO, "logs", "cannot write the log") : 0;
}

static int logs_follow(struct api *a, const struct logs_wanted *w)
{
	const struct timespec pause = { .tv_nsec = FOLLOW_MS * 1000000L };
	struct seen seen = { 0 };
	struct fail fail = { 0 };
	bool first = true;

	for (;;) {
		int r = show_new(a, w, &seen, &fail);

		if (r == -ENOENT && !first)
			return CLIENT_OK; /* it has ended: that is all there is */
		if (r < 0)
			return client_error(CLIENT_FAILURE, "%s", fail.msg);
		if (!w->on_and_on)
			return CLIENT_OK;
		first = false;
		(void)nanosleep(&pause, NULL);
	}
}

int client_logs(int argc, char **argv)
{
	enum { NETWORK = 256 };
	static const struct option options[] = {
		{ "network", no_argument, NULL, NETWORK },
		{ "follow", no_argument, NULL, 'f' },
		{ "output", required_argument, NULL, 'o' },
		{ "help", no_argument, NULL, 'h' },
		{ 0 },
	};
	_cleanup_(freep) char *id = NULL;
	struct logs_wanted wanted = { 0 };
	struct fail fail = { 0 };
	struct api a = { 0 };
	int c, status;

	while ((c = getopt_long(argc, argv, "fo:h", options, NULL)) != -1) {
		if (c == 'f')
			wanted.on_and_on = true;
		else if (c == NETWORK)
			wanted.network = true;
		else if (c != 'o') {
			(void)fputs(help, c == 'h' ? stdout : stderr);
			return c == 'h' ? CLIENT_OK : CLIENT_USAGE;
		} else if (client_output_format(optarg, &wanted.json) < 0)
			return client_error(CLIENT_USAGE, "-o %s: json or table", optarg);
	}
	if (argc - optind != 1)
		return client_error(CLIENT_USAGE, "name one sandbox; 'glovebox ls' shows them");
	id = api_escape(argv[optind]);
	if (!id || strlen(id) > 100)
		return client_error(CLIENT_FAILURE, "there is no sandbox of that name");
	if (api_open(&a, &fail) < 0)
		return client_error(CLIENT_FAILURE, "%s", fail.msg);
	wanted.id = id;
	status = logs_follow(&a, &wanted);
	api_close(&a);
	return status;
}
