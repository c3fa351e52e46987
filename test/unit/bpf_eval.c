/* SPDX-License-Identifier: Apache-2.0 */
#include "bpf_eval.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

/* The instructions our programs are made of. Others are valid too, but a program that has one was
 * not made by our compiler, and the test should say so. */
enum {
	LOAD = BPF_LD | BPF_W | BPF_ABS,
	AND = BPF_ALU | BPF_AND | BPF_K,
	JUMP = BPF_JMP | BPF_JA,
	JUMP_EQ = BPF_JMP | BPF_JEQ | BPF_K,
	JUMP_GT = BPF_JMP | BPF_JGT | BPF_K,
	JUMP_GE = BPF_JMP | BPF_JGE | BPF_K,
	JUMP_SET = BPF_JMP | BPF_JSET | BPF_K,
	RETURN = BPF_RET | BPF_K,
};

bool bpf_is_conditional(const struct sock_filter *f)
{
	return BPF_CLASS(f->code) == BPF_JMP && f->code != JUMP;
}

static int load_word(const struct seccomp_data *data, uint32_t offset, uint32_t *ret)
{
	if (offset % sizeof(uint32_t) != 0 || offset > sizeof(*data) - sizeof(uint32_t))
		return -EINVAL;
	memcpy(ret, (const char *)data + offset, sizeof(*ret));
	return 0;
}

static int condition(const struct sock_filter *f, uint32_t acc, bool *ret)
{
	switch (f->code) {
	case JUMP_EQ:
		*ret = acc == f->k;
		return 0;
	case JUMP_GT:
		*ret = acc > f->k;
		return 0;
	case JUMP_GE:
		*ret = acc >= f->k;
		return 0;
	case JUMP_SET:
		*ret = (acc & f->k) != 0;
		return 0;
	default:
		return -EINVAL;
	}
}

static int jump(const struct sock_filter *f, uint32_t acc, uint8_t *mark, uint64_t *pc)
{
	bool holds = false;
	int r;

	if (f->code == JUMP) {
		*pc += f->k;
		return 0;
	}
	r = condition(f, acc, &holds);
	if (r < 0)
		return r;
	*mark |= holds ? BPF_JUMPED : BPF_PASSED;
	*pc += holds ? f->jt : f->jf;
	return 0;
}

int bpf_eval(const struct sock_filter *code, size_t len, const struct seccomp_data *data,
	     uint8_t *marks, struct bpf_run *ret)
{
	struct bpf_run run = { .constant = true };
	uint32_t acc = 0;
	uint8_t unused = 0;

	for (uint64_t pc = 0; pc < len;) {
		const struct sock_filter *f = &code[pc];
		uint8_t *mark = marks ? &marks[pc] : &unused;
		int r = 0;

		*mark |= BPF_RAN;
		run.steps++;
		pc++;
		if (f->code == RETURN) {
			run.verdict = f->k;
			*ret = run;
			return 0;
		}
		if (f->code == LOAD) {
			r = load_word(data, f->k, &acc);
			if (f->k >= offsetof(struct seccomp_data, instruction_pointer))
				run.constant = false;
		} else if (f->code == AND) {
			acc &= f->k;
		} else {
			r = jump(f, acc, mark, &pc);
		}
		if (r < 0)
			return r;
	}
	return -EINVAL;
}

uint32_t bpf_verdict(const struct sock_filter *code, size_t len, uint32_t arch, int nr, uint64_t a0,
		     uint64_t a1, uint64_t a2)
{
	struct seccomp_data data = { .nr = nr, .arch = arch, .args = { a0, a1, a2 } };
	struct bpf_run result = { 0 };

	assert_int_equal(bpf_eval(code, len, &data, NULL, &result), 0);
	return result.verdict;
}
