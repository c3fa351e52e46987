/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/fail.h"

#define CERT_DAYS 820 /* the longest that all browsers take from an authority that a person added */
#define CERT_PEM_MAX 8192

/* What `glovebox cert` writes, PEM. */
struct cert_files {
	char ca[CERT_PEM_MAX];
	char cert[CERT_PEM_MAX];
	char key[CERT_PEM_MAX];
};

/*
 * An authority of its own and a certificate for the domain, all names below it, and this machine. The authority's key is
 * not kept: whoever trusts it trusts this one certificate.
 */
_must_check_ int cert_make(const char *domain, struct cert_files *ret, struct fail *fail);

/* A name in lower case that can be looked up, without a port; labels of 1 to 63 of [a-z0-9-]. */
bool cert_domain_ok(const char *domain);
