/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/run/learn.h"

#include <string.h>

static int compare_places(const void *a, const void *b)
{
	const struct learned_place *x = a, *y = b;
	int order;

	/* Names first, then addresses. */
	if (!x->name[0] != !y->name[0])
		return x->name[0] ? -1 : 1;
	order = strcmp(x->name, y->name);
	if (order == 0)
		order = memcmp(&x->address, &y->address, sizeof(x->address));
	return order ? order : (x->port > y->port) - (x->port < y->port);
}

static int compare_addresses(const void *a, const void *b)
{
	return memcmp(a, b, sizeof(struct net_address));
}

/* Puts an item into a sorted array, unless it is there. */
static void learned_keep(struct learned *l, void *array_, size_t *n, const void *item, size_t size,
			 int (*compare)(const void *, const void *))
{
	void **array = array_;
	char *grown;
	size_t at = 0;

	while (at < *n && compare((char *)*array + at * size, item) < 0)
		at++;
	if (at < *n && compare((char *)*array + at * size, item) == 0)
		return;
	grown = *n < LEARN_PLACES_MAX ? reallocarray(*array, *n + 1, size) : NULL;
	if (!grown) {
		l->is_partial = true;
		return;
	}
	memmove(grown + (at + 1) * size, grown + at * size, (*n - at) * size);
	memcpy(grown + at * size, item, size);
	*array = grown;
	(*n)++;
}

void learn(struct learned *l, const struct net_connection *c)
{
	static const struct net_address unknown;
	bool has_address = !address_equal(&c->address, &unknown);
	struct learned_place place = { .port = c->port };

	if (c->verdict != NET_ALLOWED || c->how == EGRESS_HOW_DNS || !c->port)
		return;
	if (c->name)
		(void)snprintf(place.name, sizeof(place.name), "%s", c->name);
	else if (has_address)
		place.address = c->address;
	else
		return;
	learned_keep(l, &l->places, &l->n_places, &place, sizeof(place), compare_places);
	if (has_address && address_special(&c->address))
		learned_keep(l, &l->special, &l->n_special, &c->address, sizeof(c->address),
			     compare_addresses);
}

void learned_done(struct learned *l)
{
	free(l->places);
	free(l->special);
	*l = (struct learned){ 0 };
}

static bool same_host(const struct learned_place *a, const struct learned_place *b)
{
	return strcmp(a->name, b->name) == 0 && address_equal(&a->address, &b->address);
}

/* The rule of a host's ports, as many as go into one; how many did. */
static size_t rule_of(const struct learned *l, size_t first, struct rule *ret)
{
	const struct learned_place *p = &l->places[first];
	size_t n = 0;

	*ret = (struct rule){ .kind = p->name[0] ? RULE_NAME : RULE_RANGE };
	if (p->name[0]) {
		memcpy(ret->name, p->name, sizeof(ret->name));
	} else {
		ret->address = p->address;
		ret->prefix = 128;
	}
	while (n < POLICY_PORTS_MAX && first + n < l->n_places && same_host(p, p + n)) {
		ret->ports[n] = (struct rule_ports){ .from = p[n].port, .to = p[n].port };
		n++;
	}
	ret->n_ports = (uint8_t)n;
	return n;
}

/* A name that passed the grammar is a rule; should something not be one, it is better left out
 * than saved. */
static json_t *learned_rules_json(const struct learned *l)
{
	char text[POLICY_RULE_TEXT_SIZE];
	json_t *list = json_array();
	struct rule rule;

	for (size_t i = 0; i < l->n_places;) {
		i += rule_of(l, i, &rule);
		if (!rule_ok(&rule))
			continue;
		rule_text(&rule, text);
		(void)json_array_append_new(list, json_string(text));
	}
	return list;
}

static json_t *ranges_json(const struct learned *l)
{
	json_t *list = json_array();

	for (size_t i = 0; i < l->n_special; i++) {
		char address[NET_ADDRESS_TEXT_SIZE], range[NET_ADDRESS_TEXT_SIZE + 8];

		address_text(&l->special[i], address);
		(void)snprintf(range, sizeof(range), "%s/%s", address,
			       address_is_v4(&l->special[i]) ? "32" : "128");
		(void)json_array_append_new(list, json_string(range));
	}
	return list;
}

json_t *learned_json(const struct learned *l)
{
	return json_pack("{so so sb}", "rules", learned_rules_json(l), "private", ranges_json(l),
			 "complete", !l->is_partial);
}
