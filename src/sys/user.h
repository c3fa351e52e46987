/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <pwd.h>

/*
 * The entry of /etc/passwd with that uid or name, or NULL; the next call overwrites it. Read
 * directly, because the C library's own look-up loads plug-ins, which a static program must not: a
 * user from elsewhere (LDAP) is not found.
 */
const struct passwd *user_by_id(uid_t uid);
const struct passwd *user_by_name(const char *name);
