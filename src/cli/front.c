/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The front: the program that people start. It does one thing itself, a plain `glovebox run`;
 * everything else it leaves to the whole program (main.c), which it becomes before anything is
 * opened or made.
 *
 * It is there because starting is a good part of a short run: it is small, and its C library, musl,
 * does not ask the processor what it is, which costs a trap per question in a virtual machine. It
 * is made of the same files as the whole program, and does nothing that the whole program would do
 * in another way.
 */
#include "cli/cli.h"
#include "cli/run/args.h"
#include "cli/run/service.h"
#include "service/discovery.h"
#include "service/program.h"

#include <limits.h>
#include <link.h>
#include <sys/mman.h>

#define NOT_PLAIN (-1)

/* The linker's: where we begin, wherever that has come to be. */
extern const ElfW(Ehdr) __ehdr_start __attribute__((visibility("hidden")));

/* What is only written while a program is put in its place: musl leaves it writable in a static
 * one. */
static int seal_relocated(void)
{
	const char *base = (const char *)&__ehdr_start;
	const ElfW(Phdr) *headers = (const ElfW(Phdr) *)(base + __ehdr_start.e_phoff);
	uintptr_t page = (uintptr_t)getpagesize() - 1;

	for (size_t i = 0; i < __ehdr_start.e_phnum; i++) {
		uintptr_t from = (uintptr_t)base + headers[i].p_vaddr;
		uintptr_t to = (from + headers[i].p_memsz) & ~page;

		from &= ~page;
		if (headers[i].p_type == PT_GNU_RELRO &&
		    mprotect((void *)from, to - from, PROT_READ) < 0)
			return -errno;
	}
	return 0;
}

/* The whole program would look for a service, and go there. */
static bool may_go_to_service(const struct run_request *q)
{
	return q->where == RUN_WHERE_SERVICE ||
	       (q->where == RUN_WHERE_BEST && geteuid() != 0 && discovery_left());
}

/* Can we do it? Then *ret is its template. Looks at what was asked for, and whether the template is
 * ready. */
static bool run_is_plain(const struct run_args *a, const struct run_request *q,
			 struct template *ret)
{
	struct fail why_not = { 0 };

	return !q->json && !q->out_dir && !run_args_network(a) && !may_go_to_service(q) &&
	       template_find(q->template_name, "", ret, &why_not) == 0;
}

/* As cli_run() does it, without what run_is_plain() has ruled out. */
static int run_plain(struct run_args *a, struct run_request *q, const struct template *t)
{
	struct run_result r = { 0 }; /* owns nothing: that would be JSON, and what is for it */
	struct fail fail = { 0 };
	int e = run_args_open(a, q, &fail);

	if (e == 0)
		e = run_args_env(a, NULL, q, &fail);
	if (e < 0)
		return cli_error(CLI_USAGE, "%s", fail.msg);
	run_begin(q);
	(void)run_in_box(q, t, NULL, &r);
	run_tell(q, &r);
	run_tell_usage(q, &r);
	return run_exit_status(&r);
}

/* An exit status, or NOT_PLAIN. What is wrong with the options the whole program finds out and
 * says. */
static int run_if_plain(int argc, char **argv)
{
	_cleanup_(run_request_done) struct run_request q = RUN_REQUEST_INIT;
	_cleanup_(run_args_done) struct run_args a = { 0 };
	struct fail why_not = { 0 };
	struct template t;

	if (run_args_options(argc, argv, &a, &q, &why_not) != 0 || !run_is_plain(&a, &q, &t))
		return NOT_PLAIN;
	return run_plain(&a, &q, &t);
}

static int become_all_verbs(char **argv)
{
	char path[PATH_MAX];

	if (program_find("all_verbs", "glovebox", path, sizeof(path)) == 0)
		(void)execv(path, argv);
	else
		errno = ENOENT;
	return cli_error(CLI_FAILURE, "cannot start %s, which does all but plain runs: %s", path,
			 strerror(errno));
}

int main(int argc, char **argv)
{
	_cleanup_(freep) char **sorted = NULL;
	int status = NOT_PLAIN;

	if (cli_ensure_stdio() < 0)
		return CLI_FAILURE;
	if (seal_relocated() < 0)
		return cli_error(CLI_FAILURE, "cannot make our own tables read-only: %s",
				 strerror(errno));
	if (argc > 2 && strcmp(argv[1], "run") == 0) {
		/* Reading options puts them in another order: the whole program is to get them as
		 * we did. */
		sorted = calloc((size_t)argc, sizeof(char *));
		if (!sorted)
			return cli_error(CLI_FAILURE, "out of memory");
		memcpy(sorted, argv + 1, (size_t)argc * sizeof(char *));
		status = run_if_plain(argc - 1, sorted);
	}
	return status == NOT_PLAIN ? become_all_verbs(argv) : status;
}
