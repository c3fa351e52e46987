/* SPDX-License-Identifier: Apache-2.0 */
/*
 * long zygote_clone(const struct clone_args *args, size_t size)
 *
 * The child runs on our own stack, below the caller's frame, and overwrites the word that holds our
 * return address as soon as it calls anything. So that address waits in a register while the system
 * call is made.
 */
#define CLONE3 435

	.text
	.globl zygote_clone
	.hidden zygote_clone
	.type zygote_clone, %function
zygote_clone:
#if defined(__x86_64__)
	endbr64
	popq %r8
	movl $CLONE3, %eax
	syscall
	pushq %r8
	ret
#elif defined(__aarch64__)
	hint #34 /* bti c */
	mov x8, #CLONE3
	svc #0
	ret
#else
#error "no clone for this architecture"
#endif
	.size zygote_clone, . - zygote_clone
	.section .note.GNU-stack, "", %progbits
