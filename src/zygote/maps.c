/* SPDX-License-Identifier: Apache-2.0 */
#include "zygote/maps.h"

static const char *read_hex(const char *at, uint64_t *ret)
{
	static const char digits[] = "0123456789abcdef";
	const char *digit;

	for (*ret = 0; *at && (digit = strchr(digits, *at)); at++)
		*ret = *ret << 4 | (uint64_t)(digit - digits);
	return at;
}

static const char *next_field(const char *at)
{
	at += strcspn(at, " \n");
	return at + strspn(at, " ");
}

bool maps_is_own(const char *line, struct maps_range *ret)
{
	const char *at = read_hex(line, &ret->from), *mode, *inode, *name;

	if (*at != '-')
		return false;
	mode = next_field(read_hex(at + 1, &ret->to));
	inode = next_field(next_field(next_field(mode)));
	name = next_field(inode);
	ret->of_file = strncmp(inode, "0 ", 2) != 0;
	return strncmp(mode, "rw-p ", 5) == 0 && strncmp(name, "[stack", 6) != 0;
}
