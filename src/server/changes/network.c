/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A sandbox's network: kept as its client said it, together with allow_internet_access; read as
 * rules whenever egress is to be told. A box gets doors when its rules first allow anything, and
 * keeps them.
 */
#include "server/changes/changes.h"

#include "server/sandbox/link.h"
#include "server/sandbox/outlet.h"
#include "server/sandbox/secret.h"

#define NET_TIMEOUT_MS 20000 /* the first one may have to wait until egress has started */

/* --- settings --------------------------------------------------------------------------------- */

json_t *network_settings(const json_t *network, const json_t *internet)
{
	json_t *o = json_is_object(network) ? json_deep_copy(network) : json_object();

	if (json_is_boolean(internet))
		(void)json_object_set_new(o, NETWORK_INTERNET_NAME,
					  json_boolean(json_is_true(internet)));
	return o;
}

static enum network_internet internet_of(const json_t *settings)
{
	const json_t *said = json_object_get(settings, NETWORK_INTERNET_NAME);

	if (!json_is_boolean(said))
		return NETWORK_UNSAID;
	return json_is_true(said) ? NETWORK_INTERNET : NETWORK_NO_INTERNET;
}

json_t *network_settings_of(struct sandbox *b)
{
	json_t *settings;

	pthread_mutex_lock(&b->lock);
	settings = json_deep_copy(json_object_get(b->info.config, "network"));
	pthread_mutex_unlock(&b->lock);
	return settings;
}

static int compile(struct server *s, const json_t *settings, struct network *ret, struct problem *p)
{
	struct fail fail = { 0 };
	int r = network_read(settings, internet_of(settings), &s->config, ret, &fail);

	if (r == -ENOMEM)
		return problem_internal(p, r, "read the network settings");
	if (r < 0)
		return problem_set(p, 400, r == -EOPNOTSUPP ? "not_supported" : NULL, "%s",
				   fail.msg);
	return 0;
}

/* What placeholders stand for must be there now, and all values must fit; that one goes away
 * or grows later is not an error. */
static int check_values(struct server *s, const char *key_id, const struct network *n,
			struct problem *p)
{
	size_t total = 1; /* the empty one, which stands for those that are missing */
	char value[EGRESS_HEADER_VALUE_SIZE];
	struct fail fail = { 0 };
	int r = 0;

	for (size_t i = 0; r == 0 && i < n->n_headers; i++) {
		r = secret_expand(s, key_id, n->headers[i].value, value, sizeof(value), &fail);
		if (r == 0 && network_first_equal(n, i) == i)
			total += strlen(value) + 1;
	}
	explicit_bzero(value, sizeof(value));
	if (r < 0)
		return problem_set(p, 400, NULL, "network.rules: %s", fail.msg);
	if (total > EGRESS_HEADER_VALUES_MAX)
		return problem_set(
			p, 400, NULL,
			"network.rules: the values of all headers may have %zu bytes together",
			EGRESS_HEADER_VALUES_MAX);
	return 0;
}

int network_compile(struct server *s, const char *key_id, const json_t *settings,
		    struct network *ret, struct problem *p)
{
	int r = compile(s, settings, ret, p);

	if (r == 0) {
		r = check_values(s, key_id, ret, p);
		if (r < 0)
			network_done(ret);
	}
	return r;
}

int network_settings_check(struct server *s, const char *key_id, const json_t *settings,
			   struct problem *p)
{
	struct network n = { 0 };
	int r = network_compile(s, key_id, settings, &n, p);

	network_done(&n);
	return r;
}

/* --- a box gets its rules --------------------------------------------------------------------- */

int network_open_doors(struct server *s, const char *id, bool *ret_catches, struct problem *p)
{
	struct warden_frame f = { 0 };
	struct warden_reply reply;
	int r;

	(void)snprintf(f.as_NET.id, sizeof(f.as_NET.id), "%s", id);
	r = link_ask(s->link, WARDEN_NET, &f, NET_TIMEOUT_MS, &reply, NULL);
	if (r < 0)
		return problem_internal(p, r, "give the sandbox network");
	if (reply.err == EOPNOTSUPP)
		return problem_set(p, 400, "not_supported",
				   "this service cannot give sandboxes network: %s", reply.msg);
	if (reply.err == EADDRINUSE)
		return problem_set(p, 409, "busy", "the sandbox cannot get network: %s", reply.msg);
	if (reply.err == EAGAIN)
		return problem_set(p, 503, "busy",
				   "the sandbox cannot get network now: try again in a moment");
	if (reply.err)
		return problem_warden(p, &reply, "get network");
	*ret_catches = reply.flags & WARDEN_NET_CATCHES;
	return 0;
}

static int no_such_set(const struct network *n, struct problem *p)
{
	if (n->is_default)
		return problem_set(p, 503, "no_rule_set",
				   "a rule set that this service gives to sandboxes is not there: "
				   "its operator has to look at egress.default");
	return problem_set(p, 400, "no_rule_set",
			   "network.allowOut: there is no such rule set: '%s'%s", n->use[0],
			   n->n_uses > 1 ? ", or another one of those that are named" : "");
}

int network_apply(struct outlet *o, struct network *n, bool insist, struct problem *p)
{
	struct network names = { .is_default = n->is_default, .n_uses = n->n_uses };
	int r;

	memcpy(names.use, n->use, sizeof(names.use));
	r = outlet_apply(o, n, insist);
	switch (r) {
	case 0:
		return 0;
	case -ESRCH:
		return no_such_set(&names, p);
	case -E2BIG:
		return problem_set(p, 400, NULL, "network: these are more rules than there may be");
	case -ENOENT:
		return problem_set(p, 404, NULL, "the sandbox ended while it was to get network");
	default:
		return problem_internal(p, r, "change the sandbox's network");
	}
}

static int give_outlet(struct sandbox *b, bool catches, struct problem *p)
{
	struct outlet *o = sandbox_outlet(b);

	if (o) {
		outlet_reopened(o, catches);
		return 0;
	}
	o = outlet_open(b->server->outlets, b->info.id, b->info.key_id, catches);
	if (!o)
		return problem_internal(p, -ENOMEM, "give the sandbox network");
	pthread_mutex_lock(&b->lock);
	b->outlet = o;
	pthread_mutex_unlock(&b->lock);
	return 0;
}

/* Takes over the rules. A box that never was allowed anything costs nothing here. taking_up: it is
 * not new, and these are on record. The last server may have died between a change and its record,
 * so egress is told of a box that has doors even when it may reach nothing. The same for a change
 * that comes before the box was taken up, or after that failed: egress has the last server's rules
 * yet. */
static int attach(struct sandbox *b, struct network *n, bool taking_up, struct problem *p)
{
	bool catches;
	int r = 0;

	if ((b->had_doors && (taking_up || !sandbox_outlet(b))) || network_allows(n)) {
		r = network_open_doors(b->server, b->info.id, &catches, p);
		if (r == 0)
			r = give_outlet(b, catches, p);
	}
	if (r == 0 && sandbox_outlet(b))
		r = network_apply(sandbox_outlet(b), n, taking_up, p);
	network_done(n);
	return r;
}

static int attach_recorded(struct sandbox *b, bool taking_up, struct problem *p)
{
	_cleanup_(json_decrefp) json_t *settings = network_settings_of(b);
	struct network n = { 0 };
	int r = compile(b->server, settings, &n, p);

	return r < 0 ? r : attach(b, &n, taking_up, p);
}

int network_attach(struct sandbox *b, struct problem *p)
{
	return attach_recorded(b, false, p);
}

void network_take_up(struct sandbox *b)
{
	struct problem p = { 0 };

	if (change_begin(b) < 0)
		return;
	if (attach_recorded(b, true, &p) < 0)
		sandbox_log(b, "error", "its network could not be taken up again: %s", p.message);
	change_end(b);
}

static int record_network(struct sandbox *b, json_t *settings)
{
	int r = sandbox_config_replace_network(b, settings);

	return r < 0 ? r : sandbox_save(b);
}

/* It holds before it is on record: a client that is told that it failed keeps the old rules. */
int change_network(struct sandbox *b, json_t *settings, struct problem *p)
{
	json_t *old;
	struct network n = { 0 };
	struct problem ignored;
	struct sandbox_config c;
	int r = network_compile(b->server, b->info.key_id, settings, &n, p);

	sandbox_config_of(b, &c);
	if (r == 0 && !c.cold) /* without a box, it gets its rules when it is resumed */
		r = attach(b, &n, false, p);
	network_done(&n);
	if (r < 0) {
		json_decref(settings);
		return r;
	}
	old = network_settings_of(b);
	r = record_network(b, settings);
	if (r == 0) {
		json_decref(old);
		return 0;
	}
	(void)!sandbox_config_replace_network(b, old);
	if (!c.cold)
		(void)!network_attach(b, &ignored);
	return problem_internal(p, r, "save the network settings");
}

void network_show(struct sandbox *b, json_t *to)
{
	json_t *settings = network_settings_of(b);
	struct network n = { 0 };
	struct problem p;

	/* The truth, whatever was asked for: may it reach anything? */
	(void)!compile(b->server, settings, &n, &p);
	(void)json_object_set_new(to, "allowInternetAccess", json_boolean(network_allows(&n)));
	network_done(&n);
	(void)json_object_del(settings, NETWORK_INTERNET_NAME);
	if (json_object_size(settings) > 0)
		(void)json_object_set(to, "network", settings);
	json_decref(settings);
}
