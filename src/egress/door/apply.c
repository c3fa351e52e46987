/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Policies: gathered beside the one that holds, and put in its place as a whole or not at all
 * (NW-15). What the server asked for is kept, so that it can be put together anew when the
 * operator's sets change.
 */
#include "egress/door/door.h"
#include "egress/flow/conn.h"

#define OPERATOR_MAX ((size_t)1 << 22) /* bytes of all sets together */

/* --- the server's part ---------------------------------------------------------------------- */

void apply_begin(struct net *n, const struct egress_policy *p)
{
	n->draft = spec_free(n->draft);
	n->draft = calloc(1, sizeof(*n->draft));
	if (!n->draft)
		return; /* COMMIT will find none */
	n->draft->base_allow = p->base_allow;
	n->draft->limits = p->limits;
}

void apply_use(struct net *n, const struct egress_use *u)
{
	if (n->draft)
		spec_add_use(n->draft, u->set);
}

void apply_rule(struct net *n, const struct egress_rule *r)
{
	if (n->draft)
		spec_add_rule(n->draft, &r->rule);
}

void apply_header(struct net *n, const struct egress_header *h)
{
	if (n->draft)
		spec_add_header(n->draft, h);
}

/* Everything is refused from here on. */
static void drop_policy(struct net *n)
{
	n->has_policy = false;
	n->policy = (struct policy){ 0 };
	n->rules = ruleset_put(n->rules);
}

/* Takes over the user of the rules. */
static void hold(struct egress *g, struct net *n, const struct ruleset *rules)
{
	drop_policy(n);
	n->rules = rules;
	n->policy = (struct policy){
		.rules = rules->rules,
		.n_rules = rules->n,
		.base_allow = n->spec->base_allow,
		.learn = g->learn,
	};
	n->denies_names = policy_denies_names(&n->policy);
	n->headers = n->spec->headers;
	n->n_headers = n->spec->n_headers;
	n->limits = n->spec->limits;
	n->has_policy = true;
}

/* Makes the draft what holds; it is gone afterwards in either case. */
static int take_draft(struct egress *g, struct net *n)
{
	const struct ruleset *rules = NULL;
	struct spec *draft = take_ptr(n->draft);
	int r = draft ? spec_settle(draft) : -EINVAL;

	if (r == 0)
		r = spec_expand(draft, &g->sets, &rules);
	if (!rules) {
		(void)spec_free(draft);
		return r;
	}
	(void)spec_free(n->spec);
	n->spec = draft;
	hold(g, n, rules);
	return 0;
}

int apply_commit(struct egress *g, struct net *n, uint32_t *ret_cut)
{
	int r = take_draft(g, n);

	if (r < 0)
		return -r;
	*ret_cut = (uint32_t)conn_recheck(g, n);
	return 0;
}

void apply_done(struct net *n)
{
	drop_policy(n);
	n->draft = spec_free(n->draft);
	n->spec = spec_free(n->spec);
	n->headers = NULL;
	n->n_headers = 0;
}

/* --- the operator's part -------------------------------------------------------------------- */

/* A set that a box uses and that is gone may have denied something: such a box has no policy until
 * a new one comes. */
static void expand_again(struct egress *g, struct net *n)
{
	const struct ruleset *rules = NULL;
	int r;

	if (!n->spec)
		return;
	r = spec_expand(n->spec, &g->sets, &rules);
	if (!rules) {
		say_log("sandbox %s has no network any more: %s", n->id,
			r == -ESRCH ? "a rule set that it uses is gone" : strerror(-r));
		drop_policy(n);
	} else {
		hold(g, n, rules);
	}
	(void)conn_recheck(g, n);
}

/* From the beginning: its position is where the writer left it. */
static int operator_read(int fd, struct buf *ret)
{
	char piece[16384];

	for (;;) {
		ssize_t n = pread(fd, piece, sizeof(piece), (off_t)ret->len);
		int r;

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : 0;
		r = buf_add(ret, piece, (size_t)n);
		if (r < 0)
			return r;
	}
}

int apply_operator(struct egress *g, int fd, struct fail *fail)
{
	_cleanup_(buf_done) struct buf text = BUF_INIT(OPERATOR_MAX);
	struct policy_sets sets;
	int r = operator_read(fd, &text);

	if (r < 0)
		return fail_set(fail, -r, "sets", "cannot read them: %s", strerror(-r));
	r = sets_parse((const char *)text.data, text.len, &sets, fail);
	if (r < 0)
		return r;
	sets_done(&g->sets);
	g->sets = sets;
	nets_each(g, expand_again);
	return 0;
}
