/* SPDX-License-Identifier: Apache-2.0 */
#include "server/sandbox/network.h"

#include <assert.h>

static int send_uses(int sock, const char *id, const struct network *n)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < n->n_uses; i++) {
		struct egress_frame f = { 0 };

		memcpy(f.as_USE.id, id, WARDEN_ID_SIZE);
		memcpy(f.as_USE.set, n->use[i], sizeof(f.as_USE.set));
		r = egress_send(sock, EGRESS_USE, &f, NULL, 0);
	}
	return r;
}

static int send_rules(int sock, const char *id, const struct network *n)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < n->n_rules; i++) {
		struct egress_frame f = { 0 };

		memcpy(f.as_RULE.id, id, WARDEN_ID_SIZE);
		f.as_RULE.rule = n->rules[i];
		r = egress_send(sock, EGRESS_RULE, &f, NULL, 0);
	}
	return r;
}

/* --- headers ------------------------------------------------------------------------------------------------ */

static_assert(NETWORK_HEADER_HOSTS_MAX * NETWORK_HEADERS_MAX <= EGRESS_HEADERS_MAX, "one each");

struct values {
	size_t left;                   /* bytes that egress has room for */
	bool fits[EGRESS_HEADERS_MAX]; /* those that were given some */
	size_t missing;
};

size_t network_first_equal(const struct network *n, size_t i)
{
	size_t k = 0;

	while (strcmp(n->headers[k].value, n->headers[i].value) != 0)
		k++;
	return k;
}

/* A secret can grow after it was looked at. Egress would refuse all of it, and go on with the old value. */
static bool find_room(struct values *v, const struct network *n, size_t i, const char *value)
{
	size_t first = network_first_equal(n, i), size = strlen(value) + 1;

	if (first < i)
		return v->fits[first];
	v->fits[i] = size <= v->left;
	if (v->fits[i])
		v->left -= size;
	return v->fits[i];
}

static int send_header(int sock, const char *id, const struct network *n, size_t i,
		       network_expand *expand, void *arg, struct values *v)
{
	const struct network_header *h = &n->headers[i];
	struct egress_frame f = { 0 };
	struct egress_header *to = &f.as_HEADER;
	int r;

	memcpy(to->id, id, WARDEN_ID_SIZE);
	memcpy(to->host, h->host, sizeof(to->host));
	(void)snprintf(to->name, sizeof(to->name), "%s", h->name);
	to->tls = h->tls;
	/* A secret that came with control characters is as good as none. */
	if (expand(arg, h->value, to->value) < 0 || !egress_header_value_ok(to->value) ||
	    !find_room(v, n, i, to->value)) {
		explicit_bzero(to->value, sizeof(to->value));
		v->missing++;
	}
	r = egress_send(sock, EGRESS_HEADER, &f, NULL, 0);
	explicit_bzero(&f, sizeof(f));
	return r;
}

/* --- all of it ---------------------------------------------------------------------------------------------- */

int network_send(int sock, const char id[static WARDEN_ID_SIZE], const struct network *n,
		 const struct egress_limits *limits, network_expand *expand, void *arg,
		 size_t *ret_missing)
{
	struct egress_frame f = { .as_POLICY = { .base_allow = n->base_allow, .limits = *limits } };
	struct values values = { .left = EGRESS_HEADER_VALUES_MAX - 1 }; /* without the empty one */
	int r;

	memcpy(f.as_POLICY.id, id, WARDEN_ID_SIZE);
	r = egress_send(sock, EGRESS_POLICY, &f, NULL, 0);
	if (r == 0)
		r = send_uses(sock, id, n);
	if (r == 0)
		r = send_rules(sock, id, n);
	for (size_t i = 0; r == 0 && i < n->n_headers; i++)
		r = send_header(sock, id, n, i, expand, arg, &values);
	if (r < 0)
		return r;
	memset(&f, 0, sizeof(f));
	memcpy(f.as_COMMIT.id, id, WARDEN_ID_SIZE);
	r = egress_send(sock, EGRESS_COMMIT, &f, NULL, 0);
	if (r == 0)
		*ret_missing = values.missing;
	return r;
}
