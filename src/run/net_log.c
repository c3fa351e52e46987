/* SPDX-License-Identifier: Apache-2.0 */
#include "run/net_log.h"

#define ROOM_FIRST 16

/* Why something went wrong beyond this machine: those reasons of reason.def are numbered 40 to
 * 59. */
static bool is_beyond_us(unsigned reason)
{
	return reason >= POLICY_RESOLVE && reason < POLICY_CONNECTIONS;
}

enum net_verdict net_verdict(unsigned reason)
{
	if (policy_reason_allows(reason))
		return NET_ALLOWED;
	return is_beyond_us(reason) ? NET_FAILED : NET_REFUSED;
}

const char *net_verdict_word(enum net_verdict v)
{
	static const char *const words[_NET_VERDICT_MAX] = {
		[NET_ALLOWED] = "allowed",
		[NET_REFUSED] = "refused",
		[NET_FAILED] = "failed",
	};

	return v < _NET_VERDICT_MAX && words[v] ? words[v] : "unknown";
}

const char *net_how_word(unsigned how)
{
	static const char *const words[_EGRESS_HOW_MAX] = {
		[EGRESS_HOW_HTTP] = "http",   [EGRESS_HOW_CONNECT] = "connect",
		[EGRESS_HOW_SOCKS] = "socks", [EGRESS_HOW_CATCH] = "direct",
		[EGRESS_HOW_DNS] = "dns",
	};

	return how < _EGRESS_HOW_MAX && words[how] ? words[how] : "unknown";
}

/* --- the ring -------------------------------------------------------------------------------- */

static struct net_connection *nth(const struct net_log *l, size_t i)
{
	return &l->ring[(l->first + i) % l->room];
}

/* The two events of a connection are seldom far apart: from the newest backwards. */
static struct net_connection *log_find(const struct net_log *l, uint64_t log_number)
{
	for (size_t i = l->n; i > 0; i--)
		if (nth(l, i - 1)->number == log_number)
			return nth(l, i - 1);
	return NULL;
}

/* Only before the ring has gone round: it is as large as it gets by then. */
static bool log_grow(struct net_log *l)
{
	size_t room = MIN(l->room ? l->room * 2 : (size_t)ROOM_FIRST, l->max);
	struct net_connection *ring = reallocarray(l->ring, room, sizeof(*ring));

	if (!ring)
		return false;
	memset(ring + l->room, 0, (room - l->room) * sizeof(*ring));
	l->ring = ring;
	l->room = room;
	return true;
}

static struct net_connection *log_push(struct net_log *l)
{
	struct net_connection *c;

	if (l->n == l->room && l->room < l->max && !log_grow(l))
		return NULL;
	if (l->room == 0)
		return NULL;
	if (l->n < l->room) {
		c = nth(l, l->n++);
	} else {
		c = nth(l, 0);
		l->first = (l->first + 1) % l->room;
	}
	free(c->name);
	*c = (struct net_connection){ 0 };
	return c;
}

/* --- events ---------------------------------------------------------------------------------- */

/* What has an end was let out, whatever ended it. */
static enum net_verdict first_verdict(const struct egress_event *e)
{
	return e->flags & EGRESS_EVENT_END ? NET_ALLOWED : net_verdict(e->reason);
}

static void log_count(struct net_totals *t, const struct egress_event *e)
{
	enum net_verdict v = first_verdict(e);

	if (e->how == EGRESS_HOW_DNS) {
		t->lookups++;
		t->lookups_refused += v == NET_REFUSED;
		return;
	}
	t->allowed += v == NET_ALLOWED;
	t->refused += v == NET_REFUSED;
	t->failed += v == NET_FAILED;
}

static bool is_known(const struct net_address *a)
{
	static const struct net_address none;

	return memcmp(a, &none, sizeof(none)) != 0;
}

/*
 * Egress counts upwards: whatever ends and has a log_number between the first and the newest was
 * told when it began. Lower ones were open when this log began; higher ones are those that egress
 * can only tell the end of, with a new log_number.
 */
static bool was_begun(const struct net_log *l, uint64_t log_number)
{
	return l->begun_first && log_number >= l->begun_first && log_number <= l->begun_last;
}

static void note_begun(struct net_log *l, const struct egress_event *e)
{
	if (!l->begun_first && !(e->flags & EGRESS_EVENT_END))
		l->begun_first = e->number;
	l->begun_last = MAX(l->begun_last, e->number);
}

static struct net_connection *log_begin(struct net_log *l, const struct egress_event *e)
{
	struct net_connection *c;

	note_begun(l, e);
	log_count(&l->totals, e);
	c = log_push(l);
	if (!c)
		return NULL;
	c->number = e->number;
	c->is_new = true;
	c->at_ms = e->at_ms;
	c->how = e->how;
	c->port = e->port;
	c->verdict = (uint8_t)first_verdict(e);
	if (e->name[0])
		c->name = strndup(e->name, sizeof(e->name));
	return c;
}

const struct net_connection *net_log_add(struct net_log *l, const struct egress_event *e)
{
	struct net_connection *c = log_find(l, e->number);

	l->totals.missed += e->missed;
	if (e->flags & EGRESS_EVENT_END) {
		l->totals.bytes_up += e->bytes_up;
		l->totals.bytes_down += e->bytes_down;
	}
	if (c)
		c->is_new = false;
	else if (!(e->flags & EGRESS_EVENT_END) || !was_begun(l, e->number))
		c = log_begin(l, e);
	if (!c)
		return NULL;
	c->reason = e->reason;
	if (is_known(&e->address))
		c->address = e->address;
	c->is_over = (e->flags & EGRESS_EVENT_END) || c->verdict != NET_ALLOWED ||
		     c->how == EGRESS_HOW_DNS;
	c->bytes_up = e->bytes_up;
	c->bytes_down = e->bytes_down;
	c->duration_us = e->duration_us;
	return c;
}

void net_log_cut(struct net_log *l)
{
	for (size_t i = 0; i < l->n; i++)
		nth(l, i)->is_over = true;
}

void net_log_done(struct net_log *l)
{
	for (size_t i = 0; i < l->room; i++)
		free(l->ring[i].name);
	free(l->ring);
	*l = (struct net_log){ .max = l->max };
}

/* --- as text and JSON ------------------------------------------------------------------------ */

void net_target_text(const struct net_connection *c, char ret[static NET_TARGET_SIZE])
{
	char address[NET_ADDRESS_TEXT_SIZE] = "?", port[8] = "";
	bool brackets = false;

	if (c->port && c->how != EGRESS_HOW_DNS)
		(void)snprintf(port, sizeof(port), ":%u", c->port);
	if (!c->name && is_known(&c->address)) {
		address_text(&c->address, address);
		brackets = c->port && strchr(address, ':');
	}
	if (c->name)
		(void)snprintf(ret, NET_TARGET_SIZE, "%s%s", c->name, port);
	else
		(void)snprintf(ret, NET_TARGET_SIZE, brackets ? "[%s]%s" : "%s%s", address, port);
}

static json_t *log_number(uint64_t value)
{
	return json_integer((json_int_t)MIN(value, (uint64_t)INT64_MAX));
}

json_t *net_totals_json(const struct net_totals *t)
{
	return json_pack("{so so so so so so so so}", "allowed", log_number(t->allowed), "refused",
			 log_number(t->refused), "failed", log_number(t->failed), "lookups",
			 log_number(t->lookups), "lookups_refused", log_number(t->lookups_refused),
			 "bytes_up", log_number(t->bytes_up), "bytes_down",
			 log_number(t->bytes_down), "missed", log_number(t->missed));
}

static json_t *address_json(const struct net_address *a)
{
	char text[NET_ADDRESS_TEXT_SIZE];

	if (!is_known(a))
		return json_null();
	address_text(a, text);
	return json_string(text);
}

static json_t *connection_json(const struct net_connection *c)
{
	return json_pack("{so so so so ss ss ss so so so sb}", "at_ms", json_integer(c->at_ms),
			 "name", c->name ? json_string(c->name) : json_null(), "address",
			 address_json(&c->address), "port",
			 c->port ? json_integer(c->port) : json_null(), "how", net_how_word(c->how),
			 "verdict", net_verdict_word(c->verdict), "reason",
			 policy_reason_word(c->reason), "bytes_up", log_number(c->bytes_up),
			 "bytes_down", log_number(c->bytes_down), "duration_ms",
			 json_real((double)c->duration_us / 1000.0), "open", !c->is_over);
}

json_t *net_connections_json(const struct net_log *l, size_t limit)
{
	json_t *list = json_array();

	for (size_t i = l->n - MIN(l->n, limit); i < l->n; i++)
		(void)json_array_append_new(list, connection_json(nth(l, i)));
	return list;
}
