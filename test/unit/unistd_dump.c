/* SPDX-License-Identifier: Apache-2.0 */
/* Only preprocessed: `cc -E -dM` makes of it the list of calls the kernel headers know. */
#include <asm/unistd.h>
