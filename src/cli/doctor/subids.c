/* SPDX-License-Identifier: Apache-2.0 */
/* /etc/subuid and /etc/subgid: who may map which ids, and where there is room for more. */
#include "base/buf.h"
#include "base/parse.h"
#include "cli/doctor/doctor.h"

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

int doctor_subids_read(const char *file, struct doctor_subids *ret)
{
	_cleanup_(fd_closep) int fd = open(file, O_RDONLY | O_CLOEXEC);
	_cleanup_(buf_done) struct buf text = BUF_INIT(FILE_MAX);
	char *save = NULL;
	int r;

	ret->n = 0;
	if (fd < 0)
		return errno == ENOENT ? 0 : -errno;
	r = buf_read_fd(&text, fd);
	if (r < 0)
		return r;
	for (char *line = strtok_r((char *)text.data, "\n", &save); line;
	     line = strtok_r(NULL, "\n", &save)) {
		if (ret->n == ARRAY_SIZE(ret->list))
			return -E2BIG;
		if (read_line(line, &ret->list[ret->n]))
			ret->n++;
	}
	return 0;
}

static bool has_enough(const struct doctor_subids *ids, const char *user, uid_t uid)
{
	char number[16];

	(void)snprintf(number, sizeof(number), "%u", uid);
	for (size_t i = 0; i < ids->n; i++) {
		const struct doctor_subid *id = &ids->list[i];

		if ((!strcmp(id->owner, user) || !strcmp(id->owner, number)) && id->first > 0 &&
		    id->count >= DOCTOR_SUBIDS_COUNT)
			return true;
	}
	return false;
}

/* Moves *first up past the first entry that a range there would touch; false when there is none. */
static bool move_past(const struct doctor_subids *ids, uint64_t *first)
{
	for (size_t i = 0; i < ids->n; i++) {
		uint64_t end = ids->list[i].first + ids->list[i].count;

		if (ids->list[i].first >= *first + DOCTOR_SUBIDS_COUNT || end <= *first)
			continue;
		*first = end;
		return true;
	}
	return false;
}

int doctor_subids_command(const char *user, uid_t uid, char *ret, size_t size)
{
	struct doctor_subids uids = { 0 }, gids = { 0 };
	char uid_part[64] = "", gid_part[64] = "";
	uint64_t first = FIRST_CANDIDATE;
	unsigned long long last;
	int r = doctor_subids_read("/etc/subuid", &uids);

	if (r == 0)
		r = doctor_subids_read("/etc/subgid", &gids);
	if (r < 0)
		return r;
	while (move_past(&uids, &first) || move_past(&gids, &first))
		;
	last = first + DOCTOR_SUBIDS_COUNT - 1;
	if (last > UINT32_MAX)
		return -ENOSPC;
	if (!has_enough(&uids, user, uid))
		(void)snprintf(uid_part, sizeof(uid_part), " --add-subuids %llu-%llu",
			       (unsigned long long)first, last);
	if (!has_enough(&gids, user, uid))
		(void)snprintf(gid_part, sizeof(gid_part), " --add-subgids %llu-%llu",
			       (unsigned long long)first, last);
	if (!*uid_part && !*gid_part)
		*ret = '\0';
	else if (snprintf(ret, size, "usermod%s%s %s", uid_part, gid_part, user) >= (int)size)
		return -ENAMETOOLONG;
	return 0;
}
