/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compiles a table of system calls (src/box/filter/syscalls.def; src/server/syscalls.def;
 * tools/zygote_filter.c) into a seccomp program and prints it as a C header. Runs at build time, so
 * that a box pays nothing for it and the product does not need libseccomp.
 *
 * Theory of operation libseccomp makes what is easy to get wrong: the tests of architecture and
 * x32, and which number gets which verdict. It cannot make our argument rules: it has one default
 * verdict for a filter (ours is ENOSYS), so a call that is allowed for some arguments and must
 * answer, say, EAFNOSUPPORT for all the others cannot be written down ("not in a list" has no form,
 * and a rule without arguments swallows the ones with). Stacking a second program does not help:
 * each errno would need a program of its own, all run for each call.
 *
 * So an argument-checked call gets a placeholder verdict in libseccomp, RET TRACE(n), which the
 * policy itself never uses. libseccomp's program has a test for each number; the kernel runs a
 * filter for every number there is when it is installed, so a box would pay for that. Its verdict
 * can change only at a number that one of its tests names, so it is run at each of those, and the
 * ranges between them become a tree that says the same in half of the instructions. Last, each
 * placeholder is replaced, instruction for instruction, by a jump to a block that we append: the
 * clauses of filter_args.c in order, each test jumping to the next clause when it does not hold. An
 * unconditional jump has 32 bits of range, and a block is too short to overflow a conditional one
 * (checked). What then stands there more than once is shared (mkfilter_shorten.c). The unit test
 * runs the result against the table and against the rules written a second time in plain C.
 */
#include <err.h>
#include <seccomp.h>
#include <stdarg.h>
#include <sys/mman.h>

#include <linux/audit.h>

#include "base/util.h"
#include "box/filter/filter_table.h"
#include "mkfilter.h"

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

/* What libseccomp makes of the table, with placeholders for the calls whose arguments matter. */
static void compile_numbers(const struct syscall_policy *table, size_t n, struct program *p)
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

/* What a program says of a number. Only the instructions that libseccomp needs for that. */
static uint32_t verdict_of(const struct program *p, uint32_t arch, uint32_t nr)
{
	uint32_t a = 0;

	for (size_t at = 0; at < p->len; at++) {
		const struct sock_filter *f = &p->code[at];
		bool holds;

		switch (f->code) {
		case BPF_LD | BPF_W | BPF_ABS:
			if (f->k != offsetof(struct seccomp_data, arch) &&
			    f->k != offsetof(struct seccomp_data, nr))
				errx(EXIT_FAILURE, "libseccomp looks at an argument");
			a = f->k == offsetof(struct seccomp_data, nr) ? nr : arch;
			continue;
		case BPF_JMP | BPF_JA:
			at += f->k;
			continue;
		case BPF_JMP | BPF_JEQ | BPF_K:
			holds = a == f->k;
			break;
		case BPF_JMP | BPF_JGT | BPF_K:
			holds = a > f->k;
			break;
		case BPF_JMP | BPF_JGE | BPF_K:
			holds = a >= f->k;
			break;
		case BPF_RET | BPF_K:
			return f->k;
		default:
			errx(EXIT_FAILURE, "libseccomp made an unknown instruction: 0x%x", f->code);
		}
		at += holds ? f->jt : f->jf;
	}
	errx(EXIT_FAILURE, "libseccomp's program has no end");
}

/* Numbers from here up to the next range's first get this verdict. */
struct range {
	uint32_t first;
	uint32_t verdict;
};

static int compare_numbers(const void *a, const void *b)
{
	const uint32_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

/* Where a test names k, the verdict can change at k and behind it, and nowhere else. */
static size_t find_ranges(const struct program *p, uint32_t arch, struct range *ret)
{
	static uint32_t number[2 * BPF_MAXINSNS + 1];
	size_t n_numbers = 1, n = 0;

	for (size_t i = 0; i < p->len; i++) {
		if (BPF_CLASS(p->code[i].code) != BPF_JMP || BPF_OP(p->code[i].code) == BPF_JA)
			continue;
		number[n_numbers++] = p->code[i].k;
		number[n_numbers++] = p->code[i].k + 1;
	}
	qsort(number, n_numbers, sizeof(number[0]), compare_numbers);
	for (size_t i = 0; i < n_numbers; i++) {
		uint32_t verdict = verdict_of(p, arch, number[i]);

		if (n == 0 || ret[n - 1].verdict != verdict)
			ret[n++] = (struct range){ number[i], verdict };
	}
	return n;
}

/* The number is in the accumulator. Half of the ranges follow at once, the other half behind
 * them. */
static void emit_ranges(struct program *p, const struct range *r, size_t n)
{
	size_t half = n / 2, test, hop;

	if (n == 1) {
		emit(p, BPF_RET | BPF_K, r[0].verdict);
		return;
	}
	test = emit(p, BPF_JMP | BPF_JGE | BPF_K, r[half].first);
	if (2 * half - 1 <= UINT8_MAX) {
		emit_ranges(p, r, half);
		p->code[test].jt = distance(test, p->len);
	} else {
		/* Too far for a conditional jump. */
		hop = emit(p, BPF_JMP | BPF_JA, 0);
		p->code[test].jf = 1;
		emit_ranges(p, r, half);
		p->code[hop].k = (uint32_t)(p->len - hop - 1);
	}
	emit_ranges(p, r + half, n - half);
}

static void compile_tree(const struct program *numbers, struct program *p)
{
	static struct range ranges[2 * BPF_MAXINSNS + 1];
	const uint32_t arch = seccomp_arch_native() == SCMP_ARCH_X86_64 ? AUDIT_ARCH_X86_64 :
									  AUDIT_ARCH_AARCH64;
	size_t n = find_ranges(numbers, arch, ranges), at;

	emit(p, BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch));
	at = emit(p, BPF_JMP | BPF_JEQ | BPF_K, arch);
	p->code[at].jt = 1;
	emit(p, BPF_RET | BPF_K, verdict_of(numbers, ~arch, 0));
	emit(p, BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
	emit_ranges(p, ranges, n);
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

static void print_header(FILE *f, const char *name, const struct program *p)
{
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
	    "static const struct sock_filter %s_filter_code[%zu] = {\n",
	    name, p->len);
	for (size_t i = 0; i < p->len; i++)
		put(f, "\t{ 0x%02x, %3u, %3u, 0x%08x }, /* %zu */\n", p->code[i].code,
		    p->code[i].jt, p->code[i].jf, p->code[i].k, i);
	put(f, "};\n");
}

int main(int argc, char *argv[])
{
	static struct program numbers, p;
	const struct syscall_policy *table;
	size_t n;
	FILE *f;

	if (argc != 3)
		errx(EXIT_FAILURE, "usage: mkfilter NAME HEADER");
	table = syscall_table(&n);
	compile_numbers(table, n, &numbers);
	compile_tree(&numbers, &p);
	append_rules(table, n, &p);
	program_shorten(&p);

	f = fopen(argv[2], "we");
	if (!f)
		err(EXIT_FAILURE, "%s", argv[2]);
	print_header(f, argv[1], &p);
	if (fclose(f) != 0)
		err(EXIT_FAILURE, "%s", argv[2]);
	return EXIT_SUCCESS;
}
