/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Templates: what a box's file system starts from. The built-in ones, `base` and
 * `code-interpreter-v1`, borrow the host's /usr read-only and add a small root of their own: an
 * /etc with invented users and the few configuration files that language runtimes look for. A
 * directory (a name with a slash in it) is used as the whole root file system.
 */
#pragma once

#include "base/fail.h"

#include <limits.h>

struct template
{
	char name[64];
	char root[PATH_MAX]; /* lower layer of / */
	const char *usr;     /* lower layer of /usr, or NULL */
};

/* Finds a template, building the built-in root on first use. ca_bundle: a file with certificates
 * that programs in a built-in one shall trust besides the host's (bundle.h), or "". -ENOENT when
 * there is no such template. */
_must_check_ int template_open(const char *name, const char *ca_bundle, struct template *ret,
			       struct fail *fail);

/* The same, but builds nothing and makes nothing: TEMPLATE_UNBUILT when it is a built-in one whose
 * root is still to be made. */
#define TEMPLATE_UNBUILT 1
_must_check_ int template_find(const char *name, const char *ca_bundle, struct template *ret,
			       struct fail *fail);

/* Is there such a template? For refusing a bad name before anything is made. */
_must_check_ int template_check(const char *name, struct fail *fail);

/* The directory of built template roots of this user. */
_must_check_ int template_state_dir(char *ret, size_t size, struct fail *fail);

/* Builds the built-in root below dir_fd: used by template_open(). */
_must_check_ int template_build_base(int dir_fd, const char *ca_bundle, struct fail *fail);

/* Is it one of the built-in ones, with the certificates? */
bool template_is_builtin(const char *name);

/* Changes whenever the built-in root would come out differently on this host. */
_must_check_ int template_base_key(const char *ca_bundle, uint64_t *ret);
