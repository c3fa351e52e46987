/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a box asked of the network and what came of it, as egress tells it: sums for its whole life,
 * and the newest connections one by one. For all that listen to egress (`glovebox run`, the
 * server), so that both tell it in the same words. Does no locking.
 */
#pragma once

#include "wire/egress.h"

#include <jansson.h>

struct net_connection {
	uint64_t number; /* egress gave it; 0: there is nothing here */
	int64_t at_ms;
	uint32_t how;    /* enum egress_how */
	uint32_t reason; /* enum policy_reason: the newest that was told */
	uint8_t verdict; /* enum net_verdict: the first one counts */
	bool is_new;     /* nothing was told of it before the newest event */
	bool is_over;
	uint16_t port;
	struct net_address address; /* zero: nobody was dialed */
	char *name;                 /* NULL: an address was asked for */
	uint64_t bytes_up, bytes_down, duration_us;
};

enum net_verdict {
	NET_ALLOWED = 1,
	NET_REFUSED, /* the rules or a limit say no */
	NET_FAILED,  /* it was allowed, but the other side could not be reached */
	_NET_VERDICT_MAX,
};

struct net_totals {
	uint64_t allowed, refused, failed; /* connections and requests */
	uint64_t lookups, lookups_refused; /* DNS questions */
	uint64_t bytes_up, bytes_down;     /* of those that are over */
	uint64_t missed;                   /* events that egress could not tell */
};

struct net_log {
	struct net_connection *ring; /* as large as it had to be, at most max */
	size_t n, room, first, max;
	uint64_t begun_first, begun_last; /* numbers: beginnings were told from here to there */
	struct net_totals totals;
};

#define NET_LOG_INIT(max_)                                                                         \
	{                                                                                          \
		.max = (max_)                                                                      \
	}

/* Takes an event into the log. The connection it is about, as it is now known: good until the
 * next call; NULL: only the sums know of it, because there is no memory, or it is the end of one
 * that is not remembered any more. An end whose beginning was never told here is a connection
 * like others: it was counted nowhere yet. */
const struct net_connection *net_log_add(struct net_log *l, const struct egress_event *e);
/* Egress is gone, and connections with it; one that is told of all the same is taken up again. */
void net_log_cut(struct net_log *l);
void net_log_done(struct net_log *l);

enum net_verdict net_verdict(unsigned reason);
const char *net_verdict_word(enum net_verdict v); /* "allowed", "refused", "failed" */
/* "http", "connect", "socks", "direct" (it knew of no proxy), "dns". */
const char *net_how_word(unsigned how);

#define NET_TARGET_SIZE (POLICY_NAME_SIZE + 8)

/* "example.com:443", "192.0.2.1:22", "[2001:db8::1]:22"; without a port where there is none, and
 * for a lookup. */
void net_target_text(const struct net_connection *c, char ret[static NET_TARGET_SIZE]);

/* The sums, and the newest connections (at most limit), the oldest of these first. NULL: no
 * memory. */
json_t *net_totals_json(const struct net_totals *t);
json_t *net_connections_json(const struct net_log *l, size_t limit);
