/* SPDX-License-Identifier: Apache-2.0 */
/* What egress tells of a box, for its sandbox's log. A box decides how much that is, so only so many lines of it are
 * written in a second; the rest is counted. */
#include "server/sandbox/outlet_priv.h"

#include "base/clock.h"
#include "server/sandbox/sandbox.h"

#define LINES_PER_SECOND 20

struct line {
	const char *level; /* NULL: there is nothing to say */
	char text[SANDBOX_LOG_LINE_MAX];
	uint64_t unlogged; /* events before this one without a line */
};

static bool is_worth_a_line(const struct net_connection *c)
{
	if (c->is_new)
		return true;
	/* What ends as it should was told when it began. */
	return c->is_over && !policy_reason_allows(c->reason) && c->reason != POLICY_ENDED;
}

static void describe(const struct net_connection *c, struct line *ret)
{
	const char *why = policy_reason_text(c->reason);
	bool is_lookup = c->how == EGRESS_HOW_DNS;
	char target[NET_TARGET_SIZE];

	net_target_text(c, target);
	if (!c->is_new) {
		ret->level = "warn";
		(void)snprintf(ret->text, sizeof(ret->text), "ended %s (%s)", target, why);
	} else if (c->verdict == NET_ALLOWED && is_lookup) {
		ret->level = "debug";
		(void)snprintf(ret->text, sizeof(ret->text), "looked up %s", target);
	} else if (c->verdict == NET_ALLOWED) {
		ret->level = "info";
		(void)snprintf(ret->text, sizeof(ret->text), "allowed %s (%s)", target,
			       net_how_word(c->how));
	} else {
		ret->level = "warn";
		(void)snprintf(ret->text, sizeof(ret->text), "%s %s%s (%s)",
			       net_verdict_word(c->verdict), is_lookup ? "lookup of " : "", target,
			       why);
	}
}

/* With the lock held: may another line be written in this second? */
static bool may_speak(struct outlet *o, uint64_t *ret_unlogged)
{
	uint64_t now = clock_boot_us() / 1000000;

	if (o->second != now) {
		o->second = now;
		o->lines = 0;
	}
	if (o->lines++ >= LINES_PER_SECOND) {
		o->unlogged++;
		return false;
	}
	*ret_unlogged = o->unlogged;
	o->unlogged = 0;
	return true;
}

static void note_locked(struct outlet *o, const struct egress_event *e, struct line *ret)
{
	const struct net_connection *c = net_log_add(&o->log, e);

	o->used_up = MAX(o->used_up, e->used_up);
	o->used_down = MAX(o->used_down, e->used_down);
	if (c && is_worth_a_line(c) && may_speak(o, &ret->unlogged))
		describe(c, ret);
	pthread_cond_broadcast(&o->changed);
}

void outlet_note(struct outlets *all, const struct egress_event *e)
{
	struct line line = { 0 };
	struct sandbox *b;
	struct outlet *o;

	pthread_mutex_lock(&all->lock);
	o = outlet_find(all, e->id);
	if (o)
		note_locked(o, e, &line);
	pthread_mutex_unlock(&all->lock);
	if (!line.level)
		return;
	b = sandbox_get(all->server, e->id);
	if (!b)
		return; /* a run of its own, whose result tells it */
	if (line.unlogged)
		sandbox_log_network(b, "warn", "%llu more were not written down",
				    (unsigned long long)line.unlogged);
	sandbox_log_network(b, line.level, "%s", line.text);
	sandbox_put(b);
}
