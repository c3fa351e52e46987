/* SPDX-License-Identifier: Apache-2.0 */
/* What the checks found: a table for people, in colour on a terminal, or JSON. */
#include "cli/doctor/doctor.h"
#include "cli/self.h"

#include <sys/ioctl.h>

#define INDENT 29 /* where summaries start */
#define WIDTH_MIN 60u

struct style {
	bool colour;
	size_t width; /* 0: lines are not broken, for grep */
};

static struct style choose_style(void)
{
	const char *term = getenv("TERM"), *no_colour = getenv("NO_COLOR");
	struct winsize size = { 0 };
	struct style s = { 0 };

	if (!isatty(STDOUT_FILENO))
		return s;
	s.colour = term && strcmp(term, "dumb") != 0 && !(no_colour && *no_colour);
	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col)
		s.width = MAX((size_t)size.ws_col, (size_t)WIDTH_MIN);
	return s;
}

enum doctor_level doctor_worst(const struct doctor_report *report)
{
	enum doctor_level worst = DOCTOR_OK;

	for (size_t i = 0; i < report->n; i++)
		worst = MAX(worst, report->results[i].level);
	return worst;
}

static size_t count_level(const struct doctor_report *report, enum doctor_level level)
{
	size_t n = 0;

	for (size_t i = 0; i < report->n; i++)
		n += report->results[i].level == level;
	return n;
}

static const char *level_colour(enum doctor_level level)
{
	static const char *const colours[] = {
		[DOCTOR_OK] = "32",
		[DOCTOR_NOTE] = "36",
		[DOCTOR_WARNING] = "33",
		[DOCTOR_ERROR] = "1;31",
	};

	return colours[level];
}

static void print_coloured(const struct style *s, const char *colour, int width, const char *text)
{
	if (s->colour)
		(void)printf("\033[%sm%-*s\033[0m", colour, width, text);
	else
		(void)printf("%-*s", width, text);
}

/* Prints text from column `at` on, breaking it between words where the terminal ends. */
static void print_wrapped(const struct style *s, size_t at, const char *text)
{
	size_t column = at;

	while (*text) {
		size_t word = strcspn(text, " "), gap = column > at ? 1 : 0;

		if (s->width && gap && column + gap + word > s->width) {
			(void)printf("\n%*s", (int)at, "");
			column = at;
			gap = 0;
		}
		(void)printf("%*s%.*s", (int)gap, "", (int)word, text);
		column += gap + word;
		text += word;
		text += strspn(text, " ");
	}
	(void)putchar('\n');
}

static void print_more(const struct style *s, const char *label, const char *text)
{
	if (!*text)
		return;
	(void)printf("%*s", INDENT, "");
	print_coloured(s, "2", 7, label);
	print_wrapped(s, INDENT + 7, text);
}

static void print_check(const struct style *s, const struct doctor_check *check,
			const struct doctor_result *r)
{
	print_coloured(s, level_colour(r->level), 9, doctor_level_name(r->level));
	(void)printf("%-20s", check->title);
	print_wrapped(s, INDENT, r->summary);
	print_more(s, "", r->detail);
	print_more(s, "costs", r->cost);
	print_more(s, "fix", r->fix);
}

static void print_changes(const struct style *s, const struct doctor *d, json_t *changes)
{
	size_t i;
	json_t *c;

	json_array_foreach(changes, i, c) {
		const char *error = self_text(c, "error");
		bool done = json_is_true(json_object_get(c, "done"));

		print_coloured(s, done ? "32" : "33", 9,
			       done   ? "fixed" :
			       *error ? "failed" :
					"to do");
		(void)printf("%s%s%s%s\n", d->root ? self_text(c, "change") : "sudo ",
			     d->root ? "" : self_text(c, "command"), *error ? ": " : "", error);
	}
	if (json_array_size(changes) == 0)
		(void)puts("Nothing that --fix could repair.");
	else if (!d->root)
		(void)puts("'sudo glovebox doctor --fix' does all of it and makes it last.");
	(void)putchar('\n');
}

/* Any JSON value in words. */
static void write_value(FILE *to, const json_t *value)
{
	size_t i;
	const char *key;
	json_t *part;

	if (json_is_string(value))
		(void)fputs(json_string_value(value), to);
	else if (json_is_number(value))
		(void)fprintf(to, "%g", json_number_value(value));
	else if (json_is_boolean(value))
		(void)fputs(json_is_true(value) ? "yes" : "no", to);
	else if (json_is_array(value) && json_array_size(value) == 0)
		(void)fputs("none", to);
	json_array_foreach(value, i, part) {
		(void)fputs(i ? " " : "", to);
		write_value(to, part);
	}
	i = 0;
	json_object_foreach((json_t *)(uintptr_t)value, key, part) {
		(void)fprintf(to, "%s%s ", i++ ? ", " : "", key);
		write_value(to, part);
	}
}

static void print_isolation(const struct style *s, const json_t *isolation)
{
	const char *key;
	json_t *value;

	(void)putchar('\n');
	print_coloured(s, "1", 0, "Protections of that box");
	(void)putchar('\n');
	json_object_foreach((json_t *)(uintptr_t)isolation, key, value) {
		char text[512];
		FILE *to = fmemopen(text, sizeof(text), "w");

		if (!to)
			continue;
		write_value(to, value);
		(void)fclose(to);
		(void)printf("%9s%-20s", "", key);
		print_wrapped(s, INDENT, text);
	}
}

static void print_verdict(const struct style *s, const struct doctor_report *report)
{
	enum doctor_level worst = doctor_worst(report);
	size_t warnings = count_level(report, DOCTOR_WARNING);
	char text[128];

	if (worst == DOCTOR_ERROR)
		(void)snprintf(text, sizeof(text), "Boxes cannot run here yet.");
	else if (worst == DOCTOR_WARNING)
		(void)snprintf(text, sizeof(text), "Boxes run here, but %zu protection%s missing.",
			       warnings, warnings == 1 ? " is" : "s are");
	else
		(void)snprintf(text, sizeof(text), "Boxes run here with every protection.");
	(void)putchar('\n');
	print_coloured(s, level_colour(worst == DOCTOR_NOTE ? DOCTOR_OK : worst), 0, text);
	(void)putchar('\n');
}

int doctor_print_text(const struct doctor *d, const struct doctor_report *report)
{
	struct style s = choose_style();

	if (report->changes)
		print_changes(&s, d, report->changes);
	for (size_t i = 0; i < report->n; i++)
		print_check(&s, &report->checks[i], &report->results[i]);
	if (d->box_ok)
		print_isolation(&s, json_object_get(d->box, "isolation"));
	print_verdict(&s, report);
	return fflush(stdout) == EOF || ferror(stdout) ? -EIO : 0;
}

/* Texts that are empty are null. */
static json_t *text_or_null(const char *text)
{
	return *text ? json_string(text) : json_null();
}

int doctor_print_json(const struct doctor *d, const struct doctor_report *report)
{
	json_t *list = json_array(), *o;
	json_t *isolation = d->box_ok ? json_object_get(d->box, "isolation") : NULL;
	int r;

	for (size_t i = 0; i < report->n; i++) {
		const struct doctor_result *c = &report->results[i];

		(void)json_array_append_new(
			list,
			json_pack("{ss ss ss so so so so}", "id", report->checks[i].id, "title",
				  report->checks[i].title, "level", doctor_level_name(c->level),
				  "summary", text_or_null(c->summary), "detail",
				  text_or_null(c->detail), "cost", text_or_null(c->cost), "fix",
				  text_or_null(c->fix)));
	}
	o = json_pack("{ss sb so sO?}", "level", doctor_level_name(doctor_worst(report)),
		      "boxes_run", d->box_ok, "checks", list, "isolation", isolation);
	if (o && isolation == NULL)
		(void)json_object_set_new(o, "isolation", json_null());
	if (o && report->changes)
		(void)json_object_set(o, "changes", report->changes);
	r = o ? json_dumpf(o, stdout, JSON_INDENT(2) | JSON_ENSURE_ASCII) : -1;
	json_decref(o);
	if (r < 0 || putchar('\n') == EOF || fflush(stdout) == EOF)
		return -EIO;
	return 0;
}
