/* SPDX-License-Identifier: Apache-2.0 */
#include "client/client.h"

#include "client/api/api.h"

#include <getopt.h>

static double number_of(const json_t *o, const char *key)
{
	return json_number_value(json_object_get(o, key));
}

static int stats_table(const json_t *samples)
{
	static const char *const columns[] = { "TIME",  "CPU",  "MEMORY", "OF",
					       "CACHE", "DISK", "OF",     NULL };
	struct text_table t = { .columns = columns };
	size_t i;
	json_t *o;

	json_array_foreach(samples, i, o) {
		char used[16], total[16], cache[16], disk[16], disk_total[16];

		client_bytes(number_of(o, "memUsed"), used, sizeof(used));
		client_bytes(number_of(o, "memTotal"), total, sizeof(total));
		client_bytes(number_of(o, "memCache"), cache, sizeof(cache));
		client_bytes(number_of(o, "diskUsed"), disk, sizeof(disk));
		client_bytes(number_of(o, "diskTotal"), disk_total, sizeof(disk_total));
		table_add(&t, "%.19s", client_text(o, "timestamp"));
		table_add(&t, "%.1f%%", number_of(o, "cpuUsedPct"));
		table_add(&t, "%s", used);
		table_add(&t, "%s", total);
		table_add(&t, "%s", cache);
		table_add(&t, "%s", disk);
		table_add(&t, "%s", disk_total);
	}
	return table_print(&t);
}

int client_stats(int argc, char **argv)
{
	static const struct option options[] = {
		{ "all", no_argument, NULL, 'a' },
		{ "output", required_argument, NULL, 'o' },
		{ "help", no_argument, NULL, 'h' },
		{ 0 },
	};
	_cleanup_(json_decrefp) json_t *samples = NULL;
	bool json = false, all = false;
	int c, status;

	while ((c = getopt_long(argc, argv, "ao:h", options, NULL)) != -1) {
		if (c == 'a')
			all = true;
		else if (c != 'o')
			return client_help(
				"Usage: glovebox stats [-a] [-o json|table] ID\n\n"
				"Shows what a sandbox uses: the latest figures, or all that are kept (-a).\n",
				c == 'h');
		else if (client_output_format(optarg, &json) < 0)
			return client_error(CLIENT_USAGE, "-o %s: json or table", optarg);
	}
	status = client_ask("GET", optind, argc, argv, "/metrics", NULL, &samples);
	if (status != CLIENT_OK)
		return status;
	while (!all && json_array_size(samples) > 1)
		(void)json_array_remove(samples, 0);
	return json ? client_print_json(samples) : stats_table(samples);
}
