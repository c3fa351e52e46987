/* SPDX-License-Identifier: Apache-2.0 */
/* /etc/subuid and /etc/subgid: who may map which ids, and where there is room for more. */
#include "base/buf.h"
#include "base/parse.h"
#include "cli/doctor.h"

#include <fcntl.h>

#define FIRST_CANDIDATE 100000u /* where useradd starts */
#define FILE_MAX ((size_t)1 << 20)

static bool read_line(char *line, struct doctor_subid *ret)
{
	char *save = NULL, *owner = strtok_r(line, ":", &save);
	char *first = strtok_r(NULL, ":", &save), *count = strtok_r(NULL, ":", &save);

	if (!owner || !first || !count || strlen(owner) >= sizeof(ret->owner))
		return false;
	if (parse_u64(first, &ret->first) < 0 || parse_u64(count, &ret->count) < 0 ||
	    ret->first > UINT32_MAX || ret->count > UINT32_MAX)
		return false;
	(void)snprintf(ret->owner, sizeof(ret->owner), "%s", owner);
	return true;
}

int doctor_subids_read(const char *file, struct doctor_subid *ret, size_t max)
{
	_cleanup_(fd_closep) int fd = open(file, O_RDONLY | O_CLOEXEC);
	_cleanup_(buf_done) struct buf text = BUF_INIT(FILE_MAX);
	char *save = NULL;
	size_t n = 0;
	int r;

	if (fd < 0)
		return errno == ENOENT ? 0 : -errno;
	r = buf_read_fd(&text, fd);
	if (r < 0)
		return r;
	for (char *line = strtok_r((char *)text.data, "\n", &save); line;
	     line = strtok_r(NULL, "\n", &save)) {
		if (n == max)
			return -E2BIG;
		if (read_line(line, &ret[n]))
			n++;
	}
	return (int)n;
}

static bool has_enough(const struct doctor_subid *list, size_t n, const char *user, uid_t uid)
{
	char number[16];

	(void)snprintf(number, sizeof(number), "%u", uid);
	for (size_t i = 0; i < n; i++)
		if ((!strcmp(list[i].owner, user) || !strcmp(list[i].owner, number)) &&
		    list[i].first > 0 && list[i].count >= DOCTOR_SUBIDS_COUNT)
			return true;
	return false;
}

/* The lowest range that touches nobody's; each entry passed moves it up, so this ends. */
static uint64_t find_room(const struct doctor_subid *list, size_t n)
{
	uint64_t first = FIRST_CANDIDATE;

	for (size_t i = 0; i < n; i++) {
		uint64_t end = list[i].first + list[i].count;

		if (list[i].first >= first + DOCTOR_SUBIDS_COUNT || end <= first)
			continue;
		first = end;
		i = (size_t)-1; /* it may touch one that was passed before */
	}
	return first;
}

int doctor_subids_command(const char *user, uid_t uid, char *ret, size_t size)
{
	struct doctor_subid list[2 * DOCTOR_SUBIDS_MAX];
	int uids = doctor_subids_read("/etc/subuid", list, DOCTOR_SUBIDS_MAX);
	int gids = uids < 0 ? uids :
			      doctor_subids_read("/etc/subgid", list + uids, DOCTOR_SUBIDS_MAX);
	bool no_uids, no_gids;
	char uid_part[64] = "", gid_part[64] = "";
	unsigned long long first, last;

	if (gids < 0)
		return gids;
	no_uids = !has_enough(list, (size_t)uids, user, uid);
	no_gids = !has_enough(list + uids, (size_t)gids, user, uid);
	first = find_room(list, (size_t)(uids + gids));
	last = first + DOCTOR_SUBIDS_COUNT - 1;
	if (last > UINT32_MAX)
		return -ENOSPC;
	if (no_uids)
		(void)snprintf(uid_part, sizeof(uid_part), " --add-subuids %llu-%llu", first, last);
	if (no_gids)
		(void)snprintf(gid_part, sizeof(gid_part), " --add-subgids %llu-%llu", first, last);
	if (!no_uids && !no_gids)
		*ret = '\0';
	else if (snprintf(ret, size, "usermod%s%s %s", uid_part, gid_part, user) >= (int)size)
		return -ENAMETOOLONG;
	return 0;
}
