/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compiles a table of system calls (src/box/syscalls.def; src/server/syscalls.def; tools/zygote_filter.c) into a seccomp
 * program and prints it as a C header. Runs at build time, so that a box pays nothing for it and the product does
 * not need libseccomp.
 *
 * Theory of operation
 * libseccomp makes what is easy to get wrong: the tests of architecture and x32, the search tree
 * over the numbers, the long jumps. It cannot make our argument rules: it has one default verdict
 * for a filter (ours is ENOSYS), so a call that is allowed for some arguments and must answer, say,
 * EAFNOSUPPORT for all the others cannot be written down ("not in a list" has no form, and a rule
 * without arguments swallows the ones with). Stacking a second program does not help: each errno
 * would need a program of its own, all run for each call.
 *
 * So an argument-checked call gets a placeholder verdict in libseccomp, RET TRACE(n), which the
 * policy itself never uses. In the finished program each placeholder is replaced, instruction for
 * instruction, by a jump to a block that we append: the clauses of filter_args.c in order, each
 * test jumping to the next clause when it does not hold. No jump that libseccomp computed moves,
 * an unconditional jump has 32 bits of range, and a block is too short to overflow a conditional
 * one (checked). The unit test runs the result against the table and against the rules written
 * a second time in plain C.
 */
#include <ctype.h>
#include <err.h>
#include <seccomp.h>
#include <stdarg.h>
#include <sys/mman.h>

#include <linux/audit.h>
#include <linux/filter.h>

#include "base/util.h"
#include "box/filter_table.h"

struct program {
	struct sock_filter code[BPF_MAXINSNS];
	size_t len;
};

/* Where a conditional jump of the clause at hand goes when the test does not hold: filled in when
 * the end of the clause is known. */
struct fixup {
	size_t at;
	bool on_true;
};

struct clause_state {
	struct fixup fixups[64];
	size_t n_fixups;
	int held; /* the argument that is in the accumulator, unmasked, or -1 */
};

static size_t emit(struct program *p, uint16_t code, uint32_t k)
{
	if (p->len >= ARRAY_SIZE(p->code))
		errx(EXIT_FAILURE, "the program is longer than the kernel takes");
	p->code[p->len] = (struct sock_filter){ .code = code, .k = k };
	return p->len++;
}

static uint8_t distance(size_t from, size_t to)
{
	size_t d = to - from - 1;

	if (to <= from || d > UINT8_MAX)
		errx(EXIT_FAILURE, "a jump from %zu to %zu does not fit", from, to);
	return (uint8_t)d;
}

static void fail_from(struct clause_state *st, size_t at, bool on_true)
{
	if (st->n_fixups >= ARRAY_SIZE(st->fixups))
		errx(EXIT_FAILURE, "a clause has too many tests");
	st->fixups[st->n_fixups++] = (struct fixup){ at, on_true };
}

/* AB-06: only the low half of an argument is ever looked at. */
static void load_arg(struct program *p, struct clause_state *st, unsigned arg)
{
	size_t low = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? 0 : sizeof(uint32_t);

	if (st->held == (int)arg)
		return;
	emit(p, BPF_LD | BPF_W | BPF_ABS,
	     (uint32_t)(offsetof(struct seccomp_data, args) + arg * sizeof(uint64_t) + low));
	st->held = (int)arg;
}

/* Falls through when the value is in the list; the jumps of all but the last hop over the rest. */
static void emit_in(struct program *p, struct clause_state *st, const struct arg_test *t)
{
	size_t end = p->len + t->n_values;

	for (size_t i = 0; i < t->n_values; i++) {
		size_t at = emit(p, BPF_JMP | BPF_JEQ | BPF_K, t->values[i]);

		if (i + 1 < t->n_values)
			p->code[at].jt = distance(at, end);
		else
			fail_from(st, at, false);
	}
}

static void emit_not_in(struct program *p, struct clause_state *st, const struct arg_test *t)
{
	for (size_t i = 0; i < t->n_values; i++)
		fail_from(st, emit(p, BPF_JMP | BPF_JEQ | BPF_K, t->values[i]), true);
}

static void emit_test(struct program *p, struct clause_state *st, const struct arg_test *t)
{
	load_arg(p, st, t->arg);
	switch (t->op) {
	case ARG_IN:
	case ARG_NOT_IN:
		if (t->n_values == 0)
			errx(EXIT_FAILURE, "a test has an empty list");
		if (t->mask != UINT32_MAX) {
			emit(p, BPF_ALU | BPF_AND | BPF_K, t->mask);
			st->held = -1;
		}
		(t->op == ARG_IN ? emit_in : emit_not_in)(p, st, t);
		break;
	case ARG_ANY_BIT:
		fail_from(st, emit(p, BPF_JMP | BPF_JSET | BPF_K, t->mask), false);
		break;
	case ARG_AT_LEAST:
		fail_from(st, emit(p, BPF_JMP | BPF_JGE | BPF_K, t->mask), false);
		break;
	case ARG_DONE:
	default:
		errx(EXIT_FAILURE, "a test without a meaning");
	}
}

/* Returns whether the clause had a test, that is, whether anything can come after it. */
static bool emit_clause(struct program *p, const struct arg_clause *c, int *held)
{
	struct clause_state st = { .held = *held };
	bool one_arg = true;
	size_t n = 0;

	while (n < ARG_TESTS_MAX && c->when[n].op != ARG_DONE) {
		one_arg = one_arg && c->when[n].arg == c->when[0].arg;
		emit_test(p, &st, &c->when[n++]);
	}
	emit(p, BPF_RET | BPF_K, c->verdict);
	for (size_t i = 0; i < st.n_fixups; i++) {
		struct sock_filter *jump = &p->code[st.fixups[i].at];

		*(st.fixups[i].on_true ? &jump->jt : &jump->jf) = distance(st.fixups[i].at, p->len);
	}
	/* The next clause is reached from any of these tests: what it finds in the accumulator
	 * is known only if all left the same there. */
	*held = one_arg ? st.held : -1;
	return n > 0;
}

static void emit_rule(struct program *p, const struct syscall_policy *call)
{
	int held = -1;

	for (size_t i = 0; i < call->rule->n_clauses; i++) {
		bool last = i + 1 == call->rule->n_clauses;
		bool has_test = emit_clause(p, &call->rule->clauses[i], &held);

		if (has_test == last)
			errx(EXIT_FAILURE, "%s: only the last clause is without a test",
			     call->name);
	}
}

static void check(int r, const char *what)
{
	if (r < 0) {
		errno = -r;
		err(EXIT_FAILURE, "%s", what);
	}
}

static void read_back(scmp_filter_ctx ctx, struct program *p)
{
	_cleanup_(fd_closep) int fd = memfd_create("filter", MFD_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		err(EXIT_FAILURE, "memfd_create");
	check(seccomp_export_bpf(ctx, fd), "seccomp_export_bpf");
	n = pread(fd, p->code, sizeof(p->code), 0);
	if (n <= 0 || (size_t)n % sizeof(p->code[0]) != 0)
		errx(EXIT_FAILURE, "libseccomp exported %zd bytes", n);
	p->len = (size_t)n / sizeof(p->code[0]);
}

/* The tree over the numbers, with placeholders for the calls whose arguments matter. */
static void compile_tree(const struct syscall_policy *table, size_t n, struct program *p)
{
	const uint32_t unknown = SCMP_ACT_ERRNO(ENOSYS);
	scmp_filter_ctx ctx = seccomp_init(unknown);

	if (!ctx)
		errx(EXIT_FAILURE, "seccomp_init failed");
	check(seccomp_attr_set(ctx, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS), "badarch");
	check(seccomp_attr_set(ctx, SCMP_FLTATR_CTL_TSYNC, 0), "tsync");
	check(seccomp_attr_set(ctx, SCMP_FLTATR_CTL_OPTIMIZE, 2), "optimize");
	for (size_t i = 0; i < n; i++) {
		uint32_t verdict = table[i].rule ? SCMP_ACT_TRACE(i) : table[i].verdict;

		/* libseccomp takes no rule that says what the default says. */
		if (verdict == unknown)
			continue;
		check(seccomp_rule_add_exact(ctx, verdict, table[i].nr, 0), table[i].name);
	}
	read_back(ctx, p);
	seccomp_release(ctx);
}

static void append_rules(const struct syscall_policy *table, size_t n, struct program *p)
{
	size_t tree_len = p->len;

	for (size_t i = 0; i < n; i++) {
		size_t block = p->len, uses = 0;

		if (!table[i].rule)
			continue;
		for (size_t at = 0; at < tree_len; at++) {
			struct sock_filter *f = &p->code[at];

			if (f->code != (BPF_RET | BPF_K) || f->k != SCMP_ACT_TRACE(i))
				continue;
			*f = (struct sock_filter){ .code = BPF_JMP | BPF_JA,
						   .k = (uint32_t)(block - at - 1) };
			uses++;
		}
		if (uses == 0)
			errx(EXIT_FAILURE, "%s: libseccomp lost the placeholder", table[i].name);
		emit_rule(p, &table[i]);
	}
}

static void put(FILE *f, const char *fmt, ...) _printf_(2, 3);
static void put(FILE *f, const char *fmt, ...)
{
	va_list ap;
	int r;

	va_start(ap, fmt);
	r = vfprintf(f, fmt, ap);
	va_end(ap);
	if (r < 0)
		err(EXIT_FAILURE, "write");
}

static void print_header(FILE *f, const char *name, const struct program *p, size_t tree_len)
{
	char upper[16] = "";

	for (size_t i = 0; name[i] && i + 1 < sizeof(upper); i++)
		upper[i] = (char)toupper((unsigned char)name[i]);
	put(f,
	    "/* Made by tools/mkfilter.c, the policy of the %s: do not edit. */\n"
	    "#pragma once\n\n#include <linux/filter.h>\n\n",
	    name);
	/* Numbers are the architecture's: a cross build must not take the build machine's. */
#if defined(__x86_64__)
	put(f, "#ifndef __x86_64__\n");
#elif defined(__aarch64__)
	put(f, "#ifndef __aarch64__\n");
#else
#error "no system-call table for this architecture"
#endif
	put(f,
	    "#error \"this filter was made on, and for, another architecture\"\n#endif\n\n"
	    "/* From here on the blocks of the argument rules; before it, the tree. */\n"
	    "#define %s_FILTER_TREE_LEN %zu\n\n"
	    "static const struct sock_filter %s_filter_code[%zu] = {\n",
	    upper, tree_len, name, p->len);
	for (size_t i = 0; i < p->len; i++)
		put(f, "\t{ 0x%02x, %3u, %3u, 0x%08x }, /* %zu */\n", p->code[i].code,
		    p->code[i].jt, p->code[i].jf, p->code[i].k, i);
	put(f, "};\n");
}

int main(int argc, char *argv[])
{
	static struct program p;
	const struct syscall_policy *table;
	size_t n, tree_len;
	FILE *f;

	if (argc != 3)
		errx(EXIT_FAILURE, "usage: mkfilter NAME HEADER");
	table = syscall_table(&n);
	compile_tree(table, n, &p);
	tree_len = p.len;
	append_rules(table, n, &p);

	f = fopen(argv[2], "we");
	if (!f)
		err(EXIT_FAILURE, "%s", argv[2]);
	print_header(f, argv[1], &p, tree_len);
	if (fclose(f) != 0)
		err(EXIT_FAILURE, "%s", argv[2]);
	return EXIT_SUCCESS;
}
