/* SPDX-License-Identifier: Apache-2.0 */
/* The prompt: cells from somebody who types. */
#include "cli/repl/repl.h"

#include "base/parse.h"
#include "cli/cli.h"
#include "cli/repl/complete.h"
#include "cli/repl/edit.h"

#include <sys/signalfd.h>

#define INDENT_MAX 64

static const char commands[] =
	"  :help       this text\n"
	"  :restart    forgets all variables\n"
	"  :save FILE  writes the cells, and what they printed as comments, to a new file\n"
	"  :quit       ends, as Ctrl-D does; the box and its files are gone then\n"
	"Ctrl-C interrupts a cell, or drops what is being typed. A cell goes on while a bracket or a\n"
	"string is open; in Python an empty line ends a block. Two empty lines end any cell.\n";

enum outcome { OUTCOME_MORE, OUTCOME_QUIT };

struct prompt {
	struct repl *repl;
	struct edit edit;
	struct buf cell; /* what has been typed of it */
};

static void start_line(struct repl *r)
{
	if (r->in_line)
		(void)!write(STDOUT_FILENO, "\n", 1);
	r->in_line = false;
}

static void prompt_save(struct repl *r, const char *path)
{
	struct fail fail = { 0 };

	if (!*path)
		repl_say(r, ":save needs the name of a file");
	else if (repl_record_save(r, path, &fail) < 0)
		repl_say(r, "%s", fail.msg);
	else
		repl_say(r, "saved: %s", path);
}

static int on_command(struct repl *r, char *line, struct fail *fail)
{
	char *argument = line + strcspn(line, " \t");
	int e;

	if (*argument)
		*argument++ = '\0';
	argument = parse_trim(argument);
	if (!strcmp(line, ":help")) {
		(void)fputs(commands, stdout);
		(void)fflush(stdout);
	} else if (!strcmp(line, ":quit")) {
		return OUTCOME_QUIT;
	} else if (!strcmp(line, ":save")) {
		prompt_save(r, argument);
	} else if (!strcmp(line, ":restart")) {
		e = r->place->restart(r, fail);
		if (e < 0)
			return e;
		r->count = 0;
		repl_say(r, "all variables are gone");
	} else {
		repl_say(r, "there is no %s; :help shows what there is", line);
	}
	return OUTCOME_MORE;
}

/* The line above says where the next one begins: deeper behind what opens a block. */
static void propose_indent(const struct prompt *p, char *ret, size_t size)
{
	const char *text = (const char *)p->cell.data, *line;
	size_t end = p->cell.len, blanks;

	*ret = '\0';
	if (!text)
		return;
	while (end > 0 && text[end - 1] == '\n')
		end--;
	if (end == 0 || p->cell.len - end > 1)
		return;
	line = memrchr(text, '\n', end);
	line = line ? line + 1 : text;
	blanks = strspn(line, " ");
	if (strchr(":{[(", text[end - 1]))
		blanks += 4;
	(void)snprintf(ret, size, "%*s", (int)MIN(blanks, (size_t)INDENT_MAX), "");
}

static bool is_command(const struct prompt *p)
{
	const unsigned char *line = p->edit.line.data;

	return p->cell.len == 0 && p->edit.line.len > 1 && line[0] == ':' && line[1] >= 'a' &&
	       line[1] <= 'z';
}

static int prompt_run_cell(struct prompt *p, struct fail *fail)
{
	size_t len = p->cell.len;
	int e;

	while (len > 0 && strchr(" \n", p->cell.data[len - 1]))
		len--;
	p->cell.data[len] = '\0';
	e = len ? repl_run(p->repl, (const char *)p->cell.data, len, fail) : 0;
	p->cell.len = 0;
	start_line(p->repl);
	return e;
}

/* A line that was typed, or pasted with more to come. */
static int on_line(struct prompt *p, bool more_comes, struct fail *fail)
{
	int e;

	edit_remember(&p->edit, (const char *)p->edit.line.data);
	if (is_command(p))
		return on_command(p->repl, (char *)p->edit.line.data, fail);
	if (buf_add(&p->cell, p->edit.line.data, p->edit.line.len) < 0 ||
	    buf_add(&p->cell, "\n", 1) < 0) {
		p->cell.len = 0;
		repl_say(p->repl, "a cell has at most %zu KiB", REPL_CODE_MAX >> 10);
		return OUTCOME_MORE;
	}
	/* The last line end is not an empty line. */
	if (more_comes ||
	    !repl_is_whole(p->repl->language.name, (const char *)p->cell.data, p->cell.len - 1))
		return OUTCOME_MORE;
	e = prompt_run_cell(p, fail);
	return e < 0 ? e : OUTCOME_MORE;
}

static int prompt_on_end(struct prompt *p, enum edit_end end, struct fail *fail)
{
	struct signalfd_siginfo info;

	switch (end) {
	case EDIT_LINE:
	case EDIT_PASTED:
		return on_line(p, end == EDIT_PASTED, fail);
	case EDIT_INTERRUPT:
		p->cell.len = 0;
		return OUTCOME_MORE;
	case EDIT_SIGNAL:
		if (read(p->repl->q.signal_fd, &info, sizeof(info)) != sizeof(info) ||
		    info.ssi_signo == SIGINT)
			return OUTCOME_MORE;
		p->repl->ended_by = (int)info.ssi_signo;
		return -EINTR;
	case EDIT_EOF:
		break;
	}
	return OUTCOME_QUIT;
}

static int prompt_ask(struct prompt *p, struct fail *fail)
{
	char prompt[48], indent[INDENT_MAX + 1];
	int n = snprintf(prompt, sizeof(prompt), "In [%lld]: ", (long long)p->repl->count + 1);
	int end;

	propose_indent(p, indent, sizeof(indent));
	if (p->cell.len)
		(void)snprintf(prompt, sizeof(prompt), "%*s", n, "...: ");
	end = edit_line(&p->edit, prompt, indent);
	if (end < 0)
		return fail_set(fail, -end, "repl", "cannot use the terminal: %s", strerror(-end));
	return prompt_on_end(p, (enum edit_end)end, fail);
}

int repl_prompt(struct repl *r)
{
	struct prompt p = {
		.repl = r,
		.edit = EDIT_INIT,
		.cell = BUF_INIT(REPL_CODE_MAX),
	};
	struct fail fail = { 0 };
	int e = OUTCOME_MORE;

	p.edit.signal_fd = r->q.signal_fd;
	(void)printf("%s in a sealed box. :help tells what there is, Ctrl-D ends.\n",
		     r->language.title);
	(void)fflush(stdout);
	while (e == OUTCOME_MORE)
		e = prompt_ask(&p, &fail);
	edit_done(&p.edit);
	buf_done(&p.cell);
	if (e == -EPIPE && !fail.msg[0])
		return 128 + SIGHUP;
	if (e < 0 && !r->ended_by)
		return cli_error(CLI_FAILURE, "%s", fail.msg[0] ? fail.msg : strerror(-e));
	return CLI_OK;
}
