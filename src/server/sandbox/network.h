/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a sandbox may reach: settings of a sandbox and of the service as rules, and rules as
 * messages to egress. Pure. sandbox/outlet.h has the boxes that have a way out.
 */
#pragma once

#include "base/fail.h"
#include "service/config.h"
#include "wire/egress.h"

#include <jansson.h>

#define NETWORK_HEADER_HOSTS_MAX 10 /* as E2B has it, */
#define NETWORK_HEADERS_MAX 20      /* for each host */
#define NETWORK_VALUE_MAX 2048      /* of a header, before secrets are put in */

struct network_header {
	char host[POLICY_NAME_SIZE]; /* ".name": everything below it */
	char *name;
	char *value; /* with its placeholders: what they stand for is only ever in a message */
	bool tls;
};

/* One that allows nothing is all zero. */
struct network {
	bool base_allow;
	bool is_default; /* the client named nothing: these are the operator's sets */
	char use[POLICY_USES_MAX][POLICY_SET_NAME_SIZE];
	size_t n_uses;
	struct rule *rules;
	size_t n_rules;
	struct network_header *headers;
	size_t n_headers;
};

#define NETWORK_INTERNET_NAME "allow_internet_access"
/* What it says. */
enum network_internet { NETWORK_UNSAID, NETWORK_INTERNET, NETWORK_NO_INTERNET };

/*
 * Reads allowOut, denyOut and rules of a sandbox's network settings (NULL: it has none) under the
 * service's. -EINVAL: fail says which entry is wrong and why; -EOPNOTSUPP: this service gives no
 * network.
 *
 * E2B's rules: what is allowed beats what is denied; names may only be allowed where everything
 * else is denied; no internet is the same as to deny everything. Ours: as soon as a list is there,
 * only what it names is allowed (egress.internet = "listed"), and without lists the operator's
 * default sets are.
 */
_must_check_ int network_read(const json_t *settings, enum network_internet internet,
			      const struct config *c, struct network *ret, struct fail *fail);
void network_done(struct network *n);
/* Does it allow anything at all? */
bool network_allows(const struct network *n);
/* Does the text have a place for something that only egress is to know? */
bool network_has_placeholder(const char *text);
/* Has one of the headers a place for this secret? */
bool network_uses_secret(const struct network *n, const char *name);

/* Puts secrets into a header's value. Negative: one of them is not there. */
typedef int network_expand(void *arg, const char *value, char ret[static EGRESS_HEADER_VALUE_SIZE]);

/* The first header that says the same, perhaps this one itself: equal values are kept only once. */
size_t network_first_equal(const struct network *n, size_t i);

/*
 * All of it as messages to egress, which answers with one APPLIED. Negative: egress does not
 * listen. A header whose secret is not there, or too long beside the others, is sent without a
 * value, so that the host stays one that is spoken to with TLS; *ret_missing says how many.
 */
_must_check_ int network_send(int sock, const char id[static WARDEN_ID_SIZE],
			      const struct network *n, const struct egress_limits *limits,
			      network_expand *expand, void *arg, size_t *ret_missing);
