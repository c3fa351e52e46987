/* SPDX-License-Identifier: Apache-2.0 */
#include "sys/user.h"

#include "base/util.h"

static void file_closep(FILE **f)
{
	if (*f)
		(void)fclose(*f);
}

/* By name, or by uid when name is NULL. */
static const struct passwd *passwd_find(const char *name, uid_t uid)
{
	_cleanup_(file_closep) FILE *f = fopen("/etc/passwd", "re");
	const struct passwd *pw = NULL;

	while (f && (pw = fgetpwent(f)))
		if (name ? strcmp(pw->pw_name, name) == 0 : pw->pw_uid == uid)
			return pw;
	return NULL;
}

const struct passwd *user_by_id(uid_t uid)
{
	return passwd_find(NULL, uid);
}

const struct passwd *user_by_name(const char *name)
{
	return passwd_find(name, 0);
}
