/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/run/run.h"

int run_print_json(const struct run_request *q, const struct run_result *r)
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
