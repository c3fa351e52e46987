/* SPDX-License-Identifier: Apache-2.0 */
#include "client/client.h"

#include "base/termsafe.h"

#include <math.h>
#include <stdarg.h>
#include <time.h>

int client_error(int status, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	termsafe_say(fmt, args);
	va_end(args);
	return status;
}

int client_output_format(const char *text, bool *ret_json)
{
	*ret_json = !strcmp(text, "json");
	return *ret_json || !strcmp(text, "table") ? 0 : -EINVAL;
}

int client_print_json(const json_t *o)
{
	if (json_dumpf(o, stdout, JSON_INDENT(2) | JSON_ENSURE_ASCII) < 0 || putchar('\n') == EOF ||
	    fflush(stdout) == EOF)
		return client_error(CLIENT_FAILURE, "cannot write the result");
	return CLIENT_OK;
}

void table_add(struct text_table *t, const char *fmt, ...)
{
	char text[256], shown[512];
	char **cells = reallocarray(t->cells, t->n_cells + 1, sizeof(*cells));
	va_list args;

	if (!cells)
		return;
	t->cells = cells;
	va_start(args, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	termsafe_line(text, shown, sizeof(shown));
	cells[t->n_cells] = strdup(*shown ? shown : "-");
	if (cells[t->n_cells])
		t->n_cells++;
}

int table_print(struct text_table *t)
{
	size_t n = 0;

	while (t->columns[n])
		n++;
	for (size_t row = 0; n > 0 && row <= t->n_cells / n; row++) {
		for (size_t c = 0; c < n; c++) {
			int width = (int)strlen(t->columns[c]);

			if (row && (row - 1) * n + c >= t->n_cells)
				break;
			for (size_t i = c; i < t->n_cells; i += n)
				width = MAX(width, (int)strlen(t->cells[i]));
			(void)printf("%-*s%s", c + 1 < n ? width : 0,
				     row ? t->cells[(row - 1) * n + c] : t->columns[c],
				     c + 1 < n ? "  " : "\n");
		}
	}
	for (size_t i = 0; i < t->n_cells; i++)
		free(t->cells[i]);
	free(t->cells);
	t->cells = NULL;
	t->n_cells = 0;
	return fflush(stdout) == EOF || ferror(stdout) ?
		       client_error(CLIENT_FAILURE, "cannot write the result") :
		       CLIENT_OK;
}

void client_bytes(double bytes, char *ret, size_t size)
{
	static const char units[] = "BKMGT";
	size_t unit = 0;

	while (bytes >= 1024 && unit + 2 < sizeof(units)) {
		bytes /= 1024;
		unit++;
	}
	(void)snprintf(ret, size, unit ? "%.1f%c" : "%.0f%c", bytes, units[unit]);
}

void client_age(const char *text, bool until, char *ret, size_t size)
{
	struct tm tm = { 0 };
	double seconds;

	if (!text || !strptime(text, "%Y-%m-%dT%H:%M:%S", &tm)) {
		(void)snprintf(ret, size, "-");
		return;
	}
	seconds = difftime(timegm(&tm), time(NULL)) * (until ? 1 : -1);
	seconds = fmax(seconds, 0);
	if (seconds < 120)
		(void)snprintf(ret, size, "%.0fs", seconds);
	else if (seconds < 7200)
		(void)snprintf(ret, size, "%.0fm", seconds / 60);
	else
		(void)snprintf(ret, size, "%.0fh", seconds / 3600);
}
