/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the Host header says. A browser that was led here under a name of somebody else's (AP-07,
 * DNS rebinding) sends that name: names that are not ours are refused.
 */
#pragma once

#include "base/util.h"

#define HOST_ID_SIZE 32 /* of a sandbox */

enum host_kind {
	HOST_FOREIGN, /* not a name of ours */
	HOST_SELF,    /* an address, localhost, the domain, or api. and sandbox. of it */
	HOST_SANDBOX, /* PORT-ID.DOMAIN */
	HOST_BAD,     /* below our domain, but not PORT-ID */
};

struct host {
	enum host_kind kind;
	uint32_t port; /* of the sandbox */
	char id[HOST_ID_SIZE];
};

/* domain: the configured one ("" for none), possibly with a port, which does not matter here. */
struct host host_parse(const char *text, const char *domain);

/* A sandbox id: [a-z0-9]{1,31}. */
bool host_id_ok(const char *id);
/* 1 to 65535, decimal, without zeros in front. */
_must_check_ int host_parse_port(const char *text, size_t len, uint32_t *ret);

#define HOST_MASKED_SIZE 300

/* maskRequestHost as a program in a sandbox gets it, with the port for ${PORT}. -EINVAL: that is no
 * host. */
_must_check_ int host_mask(const char *mask, uint32_t port, char *ret, size_t size);
bool host_mask_ok(const char *mask);
