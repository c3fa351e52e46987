/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/repl/complete.h"

#include <ctype.h>

/* How the text of a language is written, as far as it matters here. */
struct syntax {
	const char *language;
	const char *quotes;      /* each ends a string that it began */
	const char *across;      /* those of them whose strings go on over line ends */
	const char *line_ending; /* what stands at the end of a line that calls for another */
	bool hash;               /* # begins a comment */
	bool slashes;            /* so do two slashes, and slash-star ends with star-slash */
	bool regex;              /* a slash where a value can stand begins a pattern */
	bool triple;             /* three quotes are one */
	bool blocks;             /* a line that ends with : begins one, an empty line ends it */
	bool shell;
};

static const struct syntax syntaxes[] = {
	{ .language = "python",
	  .quotes = "'\"",
	  .across = "",
	  .line_ending = "\\",
	  .hash = true,
	  .triple = true,
	  .blocks = true },
	{ .language = "javascript",
	  .quotes = "'\"`",
	  .across = "`",
	  .line_ending = "",
	  .slashes = true,
	  .regex = true },
	{ .language = "typescript",
	  .quotes = "'\"`",
	  .across = "`",
	  .line_ending = "",
	  .slashes = true,
	  .regex = true },
	{ .language = "java",
	  .quotes = "'\"",
	  .across = "",
	  .line_ending = "",
	  .slashes = true,
	  .triple = true },
	{ .language = "r",
	  .quotes = "'\"`",
	  .across = "'\"`",
	  .line_ending = "+-*/^<>=&|~,%",
	  .hash = true },
	{ .language = "bash",
	  .quotes = "'\"`",
	  .across = "'\"`",
	  .line_ending = "\\|&",
	  .hash = true,
	  .shell = true },
	/* Whatever else keeps state: brackets and strings. */
	{ .language = NULL, .quotes = "'\"", .across = "", .line_ending = "\\" },
};

struct scan {
	const struct syntax *syntax;
	const char *at, *end;
	int depth;    /* of brackets */
	int compound; /* of a shell's commands */
	bool in_string;
	bool block;
	bool command; /* a shell's next word is a command */
	/* the last character that is neither blank nor comment; 0 at the beginning of a line */
	char before;
	char any; /* the same, of earlier lines too */
};

static const struct syntax *find_syntax(const char *language)
{
	const struct syntax *s = syntaxes;

	while (s->language && strcmp(s->language, language) != 0)
		s++;
	return s;
}

static bool ahead(const struct scan *s, const char *text)
{
	size_t n = strlen(text);

	return (size_t)(s->end - s->at) >= n && memcmp(s->at, text, n) == 0;
}

static void skip_line(struct scan *s)
{
	while (s->at < s->end && *s->at != '\n')
		s->at++;
}

/* Stands behind the opening quote, which is `n` times the same. */
static void skip_string(struct scan *s, char quote, size_t n)
{
	const char closing[] = { quote, n == 3 ? quote : '\0', n == 3 ? quote : '\0', '\0' };
	bool escapes = !(s->syntax->shell && quote == '\'');
	bool across = n == 3 || strchr(s->syntax->across, quote);

	s->in_string = true;
	while (s->at < s->end) {
		if (ahead(s, closing)) {
			s->at += n;
			s->in_string = false;
			return;
		}
		if (*s->at == '\n' && !across) {
			s->in_string = false; /* an error that the language will name */
			return;
		}
		s->at += escapes && *s->at == '\\' && s->at + 1 < s->end ? 2 : 1;
	}
	/* Open at the very end: a plain string can only go on behind a backslash. */
	if (!across)
		s->in_string = s->end[-1] == '\\';
}

/* Behind the slash. A pattern does not go over a line end. */
static void skip_regex(struct scan *s)
{
	bool in_class = false;

	for (; s->at < s->end && *s->at != '\n'; s->at++) {
		if (*s->at == '\\' && s->at + 1 < s->end)
			s->at++;
		else if (*s->at == '[')
			in_class = true;
		else if (*s->at == ']')
			in_class = false;
		else if (*s->at == '/' && !in_class) {
			s->at++;
			return;
		}
	}
}

static void skip_comment(struct scan *s)
{
	s->in_string = true;
	while (s->at < s->end && !ahead(s, "*/"))
		s->at++;
	if (s->at < s->end) {
		s->at += 2;
		s->in_string = false;
	}
}

static bool one_of(const char *word, size_t len, const char *const *list)
{
	for (; *list; list++)
		if (strlen(*list) == len && memcmp(*list, word, len) == 0)
			return true;
	return false;
}

/* A word of a shell where a command can stand. */
static void shell_word(struct scan *s, const char *word, size_t len)
{
	static const char *const opens[] = {
		"if", "for", "while", "until", "case", "select", NULL
	};
	static const char *const closes[] = { "fi", "done", "esac", NULL };
	static const char *const then[] = { "if",   "while", "until", "do",   "then",
					    "else", "elif",  "!",     "time", NULL };

	if (!s->command)
		return;
	s->compound += one_of(word, len, opens) - one_of(word, len, closes);
	s->compound = MAX(s->compound, 0);
	s->command = one_of(word, len, then);
}

static bool syntax_is_word(char c)
{
	return isalnum((unsigned char)c) || c == '_' || c == '!' || c == '-';
}

static void line_end(struct scan *s)
{
	const char *line_ending = s->syntax->line_ending;

	if (s->depth == 0 && s->syntax->blocks && s->before == ':')
		s->block = true;
	if (s->before && !strchr(line_ending, s->before))
		s->before = '\0';
	s->command = true;
}

/* Comments, strings and patterns: true when one began here and was skipped. */
static bool skip_text(struct scan *s, char c, char last)
{
	const char triple[] = { c, c, c, '\0' };

	if (c == '#' && s->syntax->hash &&
	    (!s->syntax->shell || !last || isspace((unsigned char)last))) {
		skip_line(s);
		return true;
	}
	if (c == '/' && s->syntax->slashes && ahead(s, "//")) {
		skip_line(s);
		return true;
	}
	if (c == '/' && s->syntax->slashes && ahead(s, "/*")) {
		s->at += 2;
		skip_comment(s);
		return true;
	}
	if (c == '/' && s->syntax->regex && (!s->any || strchr("(,=:[!&|?{};+-*%~^<>", s->any))) {
		s->at++;
		skip_regex(s);
	} else if (c && strchr(s->syntax->quotes, c)) {
		size_t n = s->syntax->triple && ahead(s, triple) ? 3 : 1;

		s->at += n;
		skip_string(s, c, n);
	} else {
		return false;
	}
	s->before = s->any = c;
	s->command = false;
	return true;
}

/* Behind a backslash everything is a letter. */
static char escaped(struct scan *s)
{
	s->at++;
	return 'x';
}

static void scan_char(struct scan *s, char c)
{
	s->at++;
	if (c == '\n') {
		line_end(s);
		return;
	}
	if (isspace((unsigned char)c))
		return;
	if (strchr("([{", c))
		s->depth++;
	else if (strchr(")]}", c))
		s->depth = MAX(s->depth - 1, 0);
	else if (c == '@' && !s->before && s->syntax->blocks)
		s->block = true;
	else if (c == '\\' && s->syntax->shell && s->at < s->end && *s->at != '\n')
		c = escaped(s);
	s->command = strchr(";&|({", c) != NULL;
	/* One & of a shell ends a command, two call for another. */
	s->before = s->syntax->shell && c == '&' && s->any != '&' ? ';' : c;
	s->any = c;
}

static void scan_all(struct scan *s)
{
	char last = '\0';

	while (s->at < s->end) {
		const char *begin = s->at;

		if (skip_text(s, *s->at, last)) {
			last = s->at[-1];
			continue;
		}
		if (syntax_is_word(*s->at)) {
			while (s->at < s->end && syntax_is_word(*s->at))
				s->at++;
			if (s->syntax->shell)
				shell_word(s, begin, (size_t)(s->at - begin));
			s->before = s->any = s->at[-1];
		} else {
			scan_char(s, *s->at);
		}
		last = s->at[-1];
	}
	line_end(s);
}

enum repl_state repl_state(const char *language, const char *text, size_t len)
{
	struct scan s = {
		.syntax = find_syntax(language),
		.at = text,
		.end = text + len,
		.command = true,
	};

	if (s.syntax->blocks && len >= 2 && memcmp(text, "%%", 2) == 0)
		return REPL_BLOCK; /* IPython: the rest is for a program of another kind */
	if (len == 0)
		return REPL_COMPLETE;
	scan_all(&s);
	if (s.depth > 0 || s.compound > 0 || s.in_string || s.before)
		return REPL_OPEN;
	return s.block ? REPL_BLOCK : REPL_COMPLETE;
}

/* How many lines at the end have nothing in them. */
static unsigned empty_lines(const char *text, size_t len)
{
	unsigned n = 0;

	for (; len > 0 && isspace((unsigned char)text[len - 1]); len--)
		n += text[len - 1] == '\n';
	return n;
}

bool repl_is_whole(const char *language, const char *text, size_t len)
{
	enum repl_state state = repl_state(language, text, len);
	unsigned empty = empty_lines(text, len);

	return state == REPL_COMPLETE || empty >= 2 || (state == REPL_BLOCK && empty >= 1);
}
