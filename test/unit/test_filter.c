/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The compiled filter says what the table says: for each number, architecture and a great many
 * arguments (AB-06, AB-10), on every branch of the program; and the kernel takes it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <linux/audit.h>
#include <linux/sched.h>
#include <netinet/in.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/util.h"
#include "box/filter/filter.h"
#include "box/filter/filter_table.h"
#include "box_filter_data.h"
#include "bpf_eval.h"
#include "filter_expect.h"

#ifdef __x86_64__
#define X32_BIT 0x40000000u
#endif
#define NOISE 0xa5c35a3cu

/* argv[1]: what the preprocessor knows after <asm/unistd.h>. */
static const char *header_dump;
static uint8_t marks[ARRAY_SIZE(box_filter_code)];

static struct bpf_run run(uint32_t arch, uint32_t nr, const uint64_t args[6])
{
	struct seccomp_data data = { .nr = (int)nr, .arch = arch, .instruction_pointer = NOISE };
	struct bpf_run ret = { 0 };

	memcpy(data.args, args, sizeof(data.args));
	assert_int_equal(bpf_eval(box_filter_code, ARRAY_SIZE(box_filter_code), &data, marks, &ret),
			 0);
	return ret;
}

static const struct syscall_policy *policy_of(uint32_t nr)
{
	size_t n;
	const struct syscall_policy *table = syscall_table(&n);

	for (size_t i = 0; i < n; i++)
		if ((uint32_t)table[i].nr == nr)
			return &table[i];
	return NULL;
}

/* What the table says about a number, before any argument is looked at. */
static void check_number(uint32_t arch, uint32_t nr)
{
	static const uint64_t noise[6] = { NOISE, NOISE, NOISE, NOISE, NOISE, NOISE };
	const struct syscall_policy *policy = policy_of(nr);
	struct bpf_run got = run(arch, nr, noise);
	uint32_t want = SECCOMP_RET_ERRNO | ENOSYS;

	if (arch != BPF_NATIVE)
		want = SECCOMP_RET_KILL_PROCESS;
#ifdef X32_BIT
	else if (nr >= X32_BIT && nr != UINT32_MAX)
		want = SECCOMP_RET_KILL_PROCESS;
#endif
	else if (policy && policy->rule) {
		/* Its verdict is check_arguments()' business; that it has one, is ours. */
		assert_false(got.constant);
		return;
	} else if (policy)
		want = policy->verdict;
	if (got.verdict != want)
		fail_msg("arch %#x nr %u: %#x, not %#x", arch, nr, got.verdict, want);
	/* Hot calls must be served from the kernel's bitmap. */
	assert_true(got.constant);
}

/* All numbers within sight, and the neighbours of each constant in the program: between two
 * neighbouring constants the program cannot tell one number from another. */
static void check_numbers(uint32_t arch)
{
	static const uint32_t high[] = { 0x3fffffff, 0x40000000, 0x40000001, 0x7fffffff, 0x80000000,
					 0xbfffffff, 0xc0000000, 0xfffffffe, 0xffffffff };

	for (uint32_t nr = 0; nr < 1024; nr++) {
		check_number(arch, nr);
		check_number(arch, nr | 0x40000000);
		check_number(arch, nr | 0x80000000);
	}
	for (size_t i = 0; i < ARRAY_SIZE(high); i++)
		check_number(arch, high[i]);
	for (size_t i = 0; i < ARRAY_SIZE(box_filter_code); i++) {
		check_number(arch, box_filter_code[i].k - 1);
		check_number(arch, box_filter_code[i].k);
		check_number(arch, box_filter_code[i].k + 1);
	}
}

static void check_all_architectures(void)
{
	static const uint32_t archs[] = {
		AUDIT_ARCH_X86_64,
		AUDIT_ARCH_I386,
		AUDIT_ARCH_AARCH64,
		AUDIT_ARCH_ARM,
		AUDIT_ARCH_ARMEB,
		AUDIT_ARCH_PPC64LE,
		AUDIT_ARCH_S390X,
		AUDIT_ARCH_RISCV64,
		AUDIT_ARCH_MIPS64,
		AUDIT_ARCH_SPARC64,
		0,
		UINT32_MAX,
		BPF_NATIVE - 1,
		BPF_NATIVE + 1,
	};

	for (size_t i = 0; i < ARRAY_SIZE(archs); i++)
		check_numbers(archs[i]);
}

struct values {
	uint32_t v[0x10000 + 256];
	size_t n;
};

static void add_around(struct values *vals, uint32_t v)
{
	assert_true(vals->n + 3 <= ARRAY_SIZE(vals->v));
	vals->v[vals->n++] = v - 1;
	vals->v[vals->n++] = v;
	vals->v[vals->n++] = v + 1;
}

static void values_of(const struct expect_arg *arg, struct values *vals)
{
	vals->n = 0;
	assert_true(arg->below <= 0x10000);
	for (uint32_t v = 0; v < arg->below; v++)
		vals->v[vals->n++] = v;
	for (unsigned bit = 0; arg->bits && bit < 32; bit++)
		add_around(vals, 1u << bit);
	for (size_t i = 0; i < arg->n_extra; i++)
		add_around(vals, arg->extra[i]);
}

/* The upper halves must never matter. */
static void check_vector(const struct expect_call *call, uint32_t nr, const uint32_t low[6])
{
	static const uint64_t upper[] = { 0, 1, 0x80000000, 0xffffffff };
	uint32_t want = call->verdict(low);

	for (size_t u = 0; u < ARRAY_SIZE(upper); u++) {
		uint64_t args[6];
		struct bpf_run got;

		for (size_t i = 0; i < 6; i++)
			args[i] = upper[u] << 32 | low[i];
		got = run(BPF_NATIVE, nr, args);
		if (got.verdict != want)
			fail_msg("%s(%#llx, %#llx, %#llx): %#x, not %#x", call->name,
				 (unsigned long long)args[0], (unsigned long long)args[1],
				 (unsigned long long)args[2], got.verdict, want);
	}
}

static void check_combinations(const struct expect_call *call, uint32_t nr, size_t depth,
			       uint32_t low[6])
{
	static struct values vals[EXPECT_ARGS_MAX];

	if (depth == call->n_args) {
		check_vector(call, nr, low);
		return;
	}
	values_of(&call->args[depth], &vals[depth]);
	for (size_t i = 0; i < vals[depth].n; i++) {
		low[call->args[depth].index] = vals[depth].v[i];
		check_combinations(call, nr, depth + 1, low);
	}
}

static const struct syscall_policy *policy_named(const char *name)
{
	size_t n;
	const struct syscall_policy *table = syscall_table(&n);

	for (size_t i = 0; i < n; i++)
		if (strcmp(table[i].name, name) == 0)
			return &table[i];
	return NULL;
}

static void check_arguments(void)
{
	for (size_t i = 0; i < n_expect_calls; i++) {
		const struct syscall_policy *policy = policy_named(expect_calls[i].name);
		uint32_t low[6] = { NOISE, NOISE, NOISE, NOISE, NOISE, NOISE };

		assert_non_null(policy);
		assert_non_null(policy->rule);
		check_combinations(&expect_calls[i], (uint32_t)policy->nr, 0, low);
	}
}

static void test_numbers(void **state)
{
	(void)state;
	check_all_architectures();
}

static void test_arguments(void **state)
{
	(void)state;
	check_arguments();
}

/* No rule without its second statement. */
static void test_each_rule_is_stated_twice(void **state)
{
	size_t n;
	const struct syscall_policy *table = syscall_table(&n);

	(void)state;
	for (size_t i = 0; i < n; i++) {
		bool found = !table[i].rule;

		for (size_t k = 0; k < n_expect_calls; k++)
			found = found || strcmp(expect_calls[k].name, table[i].name) == 0;
		if (!found)
			fail_msg("%s: not in filter_expect.c", table[i].name);
	}
}

/*
 * Every instruction runs and every conditional jump goes both ways.
 * check_numbers() has tried a number from each interval that the program can tell apart, so an edge
 * of the tree that it did not reach is out of reach.
 */
static void test_every_branch_is_reached(void **state)
{
	unsigned missing = 0;

	(void)state;
	memset(marks, 0, sizeof(marks));
	check_all_architectures();
	check_arguments();
	for (size_t i = 0; i < ARRAY_SIZE(marks); i++) {
		bool branches = bpf_is_conditional(&box_filter_code[i]);
		uint8_t want = branches ? BPF_RAN | BPF_JUMPED | BPF_PASSED : BPF_RAN;

		if (marks[i] == want)
			continue;
		print_error("instruction %zu: marks %#x, not %#x\n", i, marks[i], want);
		missing++;
	}
	assert_int_equal(missing, 0);
}

static void test_no_number_twice(void **state)
{
	size_t n;
	const struct syscall_policy *table = syscall_table(&n);

	(void)state;
	for (size_t i = 0; i < n; i++)
		assert_ptr_equal(policy_of((uint32_t)table[i].nr), &table[i]);
}

#ifdef __x86_64__
/* Linux 6.18 ends at 469; 337 to 423 were never given out. */
static void test_no_gaps(void **state)
{
	(void)state;
	for (uint32_t nr = 0; nr <= 471; nr++)
		if (!policy_of(nr) != (nr > 336 && nr < 424))
			fail_msg("number %u: in the table, or missing, by mistake", nr);
}
#endif

/* When this fails, the build machine's kernel headers know a call that nobody judged yet: add it
 * to src/box/filter/syscalls.def. */
static void test_headers_name_no_other_call(void **state)
{
	static const char prefix[] = "#define __NR_";
	_cleanup_(freep) char *line = NULL;
	unsigned seen = 0;
	size_t size = 0;
	FILE *f = fopen(header_dump, "re");

	(void)state;
	assert_non_null(f);
	while (getline(&line, &size, f) > 0) {
		char *name = line + sizeof(prefix) - 1;

		if (strncmp(line, prefix, sizeof(prefix) - 1) != 0)
			continue;
		name[strcspn(name, " (\n")] = '\0';
		/* The generic header's count and its hole for architectures. */
		if (strcmp(name, "syscalls") == 0 || strcmp(name, "arch_specific_syscall") == 0)
			continue;
		seen++;
		if (!policy_named(name))
			fail_msg("%s is in the kernel headers, not in syscalls.def", name);
	}
	(void)fclose(f);
	assert_true(seen > 250);
}

static void test_program_is_what_is_installed(void **state)
{
	size_t len = 0;
	const struct sock_filter *code = box_filter_program(&len);

	(void)state;
	assert_int_equal(len, ARRAY_SIZE(box_filter_code));
	assert_memory_equal(code, box_filter_code, sizeof(box_filter_code));
}

/* Runs fn in a child and returns its wait status. */
static int in_child(int (*fn)(void))
{
	int status = 0;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0)
		_exit(fn());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

static int install(void)
{
	if (prctl(PR_SET_NO_NEW_PRIVS, 1UL, 0UL, 0UL, 0UL) < 0)
		return -errno;
	return box_filter_install();
}

static bool answers(long r, int err)
{
	return r == -1 && errno == err;
}

/* Returns the number of the line that went wrong: the exit status of the child. */
static int kernel_agrees(void)
{
	int status = 0;
	pid_t pid;

	if (install() != 0)
		return 1;
	if (!answers(syscall(SYS_bpf, 0, NULL, 0), EPERM))
		return 2;
	if (!answers(socket(38 /* ALG */, SOCK_SEQPACKET, 0), EAFNOSUPPORT))
		return 3;
	if (!answers(syscall(SYS_clone3, NULL, 0UL), ENOSYS))
		return 4;
	if (!answers(syscall(SYS_splice, -1, NULL, -1, NULL, 0UL, 0U), EINVAL))
		return 5;
	if (!answers(syscall(SYS_unshare, 1UL << 32 | CLONE_NEWUSER), EPERM))
		return 6;
	if (!answers(syscall(1000), ENOSYS))
		return 7;
	if (syscall(SYS_syncfs, -1) != 0)
		return 8;
	pid = fork();
	if (pid == 0)
		_exit(install() == 0 ? 42 : 43); /* a filter on the filter */
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return 9;
	return WIFEXITED(status) && WEXITSTATUS(status) == 42 ? 0 : 10;
}

static void test_kernel_agrees(void **state)
{
	int status;

	(void)state;
	status = in_child(kernel_agrees);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

static int install_without_no_new_privs(void)
{
	/* The kernel lets an administrator do without. */
	if (geteuid() == 0 &&
	    (setresgid(65534, 65534, 65534) < 0 || setresuid(65534, 65534, 65534) < 0))
		return 1;
	return box_filter_install() == -EACCES ? 0 : 2;
}

static void test_needs_no_new_privs(void **state)
{
	int status;

	(void)state;
	if (prctl(PR_GET_NO_NEW_PRIVS, 0UL, 0UL, 0UL, 0UL) == 1)
		skip();
	status = in_child(install_without_no_new_privs);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

#ifdef __x86_64__
static int call_i386(void)
{
	long r = 20; /* getpid on i386, writev on x86_64 */

	if (install() != 0)
		return 1;
	__asm__ volatile("int $0x80" : "+a"(r) : : "memory", "r8", "r9", "r10", "r11");
	return 2;
}

static int call_x32(void)
{
	if (install() != 0)
		return 1;
	(void)syscall(X32_BIT | SYS_getpid);
	return 2;
}

static void test_kernel_kills_other_abis(void **state)
{
	int status;

	(void)state;
	status = in_child(call_i386);
	/* A kernel without 32-bit support faults instead. */
	assert_true(WIFSIGNALED(status));
	assert_true(WTERMSIG(status) == SIGSYS || WTERMSIG(status) == SIGSEGV);
	status = in_child(call_x32);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGSYS);
}
#endif

int main(int argc, char *argv[])
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_numbers),
		cmocka_unit_test(test_arguments),
		cmocka_unit_test(test_each_rule_is_stated_twice),
		cmocka_unit_test(test_every_branch_is_reached),
		cmocka_unit_test(test_no_number_twice),
		cmocka_unit_test(test_headers_name_no_other_call),
		cmocka_unit_test(test_program_is_what_is_installed),
		cmocka_unit_test(test_kernel_agrees),
		cmocka_unit_test(test_needs_no_new_privs),
#ifdef __x86_64__
		cmocka_unit_test(test_no_gaps),
		cmocka_unit_test(test_kernel_kills_other_abis),
#endif
	};

	if (argc != 2) {
		(void)fprintf(stderr, "usage: test_filter UNISTD-DUMP\n");
		return 2;
	}
	header_dump = argv[1];
	return cmocka_run_group_tests_name("filter", tests, NULL, NULL);
}
