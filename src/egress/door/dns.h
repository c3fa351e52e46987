/* SPDX-License-Identifier: Apache-2.0 */
/* Between door/dns.c and door/dns_tcp.c. */
#pragma once

#include "egress/door/door.h"
#include "egress/names/names.h"
#include "egress/parse/dns_message.h"
#include "egress/report/report.h"

#include <sys/socket.h>

struct client;

/* A box's DNS. */
struct asked {
	struct question *questions; /* under way */
	size_t n_questions;
	struct client *clients; /* over TCP */
	size_t n_clients;
	/* what was told last, so that the two questions that programs ask for each name are one
	 * line of the log */
	char last_name[POLICY_NAME_SIZE];
	enum policy_reason last_reason;
	uint64_t last_us;
};

/* One question, from its bytes to the answer's. */
struct question {
	struct question *next;
	struct net *net;
	struct resolve resolve;
	struct dns_query query;
	struct client *client; /* over TCP: who asked. Otherwise: */
	int udp_fd;            /* the door, which lives as long as the box */
	struct sockaddr_storage from;
	socklen_t from_len;
};

/* NULL: there is no memory. */
struct asked *dns_of(struct net *n);

/* Answers a message of len bytes, now or later, through the UDP door or dns_tcp_send(). where: what
 * identifies the asker (client, or udp_fd and from), copied. False: it gets no answer. */
bool dns_ask(struct egress *g, struct net *n, const struct question *where, const void *data,
	     size_t len);
/* Forgets the questions of a client that is gone; NULL: all. */
void dns_forget(struct egress *g, struct net *n, const struct client *c);

void dns_tcp_send(struct egress *g, struct client *c, const uint8_t *data, size_t len);
void dns_tcp_close_all(struct egress *g, struct net *n);
