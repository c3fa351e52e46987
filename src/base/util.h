/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The few macros everybody uses. Ownership: a variable marked _cleanup_ frees itself when it goes
 * out of scope; take_fd() and take_ptr() hand it to somebody else. An invalid descriptor is -EBADF.
 */
#pragma once

#include "base/banned.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#define _cleanup_(f) __attribute__((cleanup(f)))
#define _printf_(fmt, args) __attribute__((format(printf, fmt, args)))
#define _noreturn_ __attribute__((noreturn))
#define _must_check_ __attribute__((warn_unused_result))

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

/* What has that member at that address. */
#define container_of(pointer, type, member)                                                        \
	((type *)(void *)((char *)(pointer)-offsetof(type, member)))

/*
 * Each argument is evaluated once: what is asked twice may answer otherwise the second time. One
 * inside of another needs names of its own. Signed and unsigned do not go together, unless one of
 * them is a constant.
 */
#ifdef __CPPCHECK__ /* which cannot read a statement expression in an initializer */
#define MIN(a, b) ((a) < (b) ? (a) : (b))
#define MAX(a, b) ((a) > (b) ? (a) : (b))
#else
#define MIN(a, b) CHOOSE_(a, b, <, __COUNTER__)
#define MAX(a, b) CHOOSE_(a, b, >, __COUNTER__)
#endif
#define CHOOSE_(a, b, op, n) CHOOSE_NAMED_(a, b, op, n)
#define CHOOSE_NAMED_(a, b, op, n)                                                                 \
	({                                                                                         \
		_Static_assert(IS_SIGNED_(a) == IS_SIGNED_(b) || __builtin_constant_p(a) ||        \
				       __builtin_constant_p(b),                                    \
			       "one is signed, the other is not");                                 \
		__typeof__(1 ? (a) : (b)) first_##n = (a);                                         \
		__typeof__(first_##n) second_##n = (b);                                            \
		first_##n op second_##n ? first_##n : second_##n;                                  \
	})
#define IS_SIGNED_(x) ((__typeof__(x))-1 < 1)

/* Closes a descriptor, keeps errno, returns the invalid descriptor to assign. */
static inline int fd_close(int fd)
{
	if (fd >= 0) {
		int saved = errno;

		(void)close(fd);
		errno = saved;
	}
	return -EBADF;
}

static inline void fd_closep(int *fd)
{
	*fd = fd_close(*fd);
}

static inline int take_fd(int *fd)
{
	int taken = *fd;

	*fd = -EBADF;
	return taken;
}

static inline void freep(void *p)
{
	void **pp = p;

	free(*pp);
	*pp = NULL;
}

#define take_ptr(p)                                                                                \
	({                                                                                         \
		__typeof__(p) *take_from_ = &(p);                                                  \
		__typeof__(p) taken_ = *take_from_;                                                \
		*take_from_ = NULL;                                                                \
		taken_;                                                                            \
	})
