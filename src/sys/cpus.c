/* SPDX-License-Identifier: Apache-2.0 */
#include "sys/cpus.h"

#include "base/parse.h"

#include <fcntl.h>
#include <string.h>
#include <sys/sysinfo.h>

#define ONLINE "/sys/devices/system/cpu/online"
#define CPU_MAX 65535 /* more than any kernel has */

/* "3" or "0-3"; 0 when it is neither. */
static unsigned range_count(char *range)
{
	char *dash = strchr(range, '-');
	uint64_t first, last;

	if (dash)
		*dash = '\0';
	if (parse_u64(range, &first) < 0 || parse_u64(dash ? dash + 1 : range, &last) < 0)
		return 0;
	return first <= last && last <= CPU_MAX ? (unsigned)(last - first) + 1 : 0;
}

unsigned cpus_in_list(const char *text)
{
	char list[4096], *save = NULL;
	unsigned sum = 0;

	if (snprintf(list, sizeof(list), "%s", text) >= (int)sizeof(list))
		return 0;
	for (char *range = strtok_r(list, ",\n", &save); range;
	     range = strtok_r(NULL, ",\n", &save)) {
		unsigned n = range_count(range);

		if (n == 0)
			return 0;
		sum += n;
	}
	return sum;
}

unsigned cpus_online(void)
{
	_cleanup_(fd_closep) int fd = open(ONLINE, O_RDONLY | O_CLOEXEC);
	char text[4096];
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	unsigned cpus;

	text[MAX(n, 0)] = '\0';
	cpus = cpus_in_list(text);
	return cpus ? cpus : (unsigned)MAX(get_nprocs(), 1);
}
