/* SPDX-License-Identifier: Apache-2.0 */
#include "server/network.h"

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

static int send_header(int sock, const char *id, const struct network_header *h,
		       network_expand *expand, void *arg, size_t *missing)
{
	struct egress_frame f = { 0 };
	struct egress_header *to = &f.as_HEADER;
	int r;

	memcpy(to->id, id, WARDEN_ID_SIZE);
	memcpy(to->host, h->host, sizeof(to->host));
	(void)snprintf(to->name, sizeof(to->name), "%s", h->name);
	to->tls = h->tls;
	/* A secret that came with control characters is as good as none. */
	if (expand(arg, h->value, to->value) < 0 || !egress_header_value_ok(to->value)) {
		explicit_bzero(to->value, sizeof(to->value));
		(*missing)++;
	}
	r = egress_send(sock, EGRESS_HEADER, &f, NULL, 0);
	explicit_bzero(&f, sizeof(f));
	return r;
}

int network_send(int sock, const char id[static WARDEN_ID_SIZE], const struct network *n,
		 const struct egress_limits *limits, network_expand *expand, void *arg,
		 size_t *ret_missing)
{
	struct egress_frame f = { .as_POLICY = { .base_allow = n->base_allow, .limits = *limits } };
	size_t missing = 0;
	int r;

	memcpy(f.as_POLICY.id, id, WARDEN_ID_SIZE);
	r = egress_send(sock, EGRESS_POLICY, &f, NULL, 0);
	if (r == 0)
		r = send_uses(sock, id, n);
	if (r == 0)
		r = send_rules(sock, id, n);
	for (size_t i = 0; r == 0 && i < n->n_headers; i++)
		r = send_header(sock, id, &n->headers[i], expand, arg, &missing);
	if (r < 0)
		return r;
	memset(&f, 0, sizeof(f));
	memcpy(f.as_COMMIT.id, id, WARDEN_ID_SIZE);
	r = egress_send(sock, EGRESS_COMMIT, &f, NULL, 0);
	if (r == 0)
		*ret_missing = missing;
	return r;
}
