/* SPDX-License-Identifier: Apache-2.0 */
/* DNS messages: questions of boxes, and answers to them. Pure. */
#pragma once

#include "policy/policy.h"

#define DNS_QUERY_MAX 1024   /* longer than any question that is meant seriously */
#define DNS_ANSWER_MAX 1232  /* fits into a packet everywhere */
#define DNS_PLAIN_MAX 512    /* without EDNS over UDP */
#define DNS_QUESTION_MAX 259 /* 255 bytes of name, type and class */
#define DNS_HEAD_SIZE 12

enum dns_type { DNS_A = 1, DNS_AAAA = 28, DNS_OPT = 41 };

enum dns_rcode {
	DNS_NOERROR = 0,
	DNS_FORMERR = 1,
	DNS_SERVFAIL = 2,
	DNS_NXDOMAIN = 3,
	DNS_NOTIMP = 4,
	DNS_REFUSED = 5,
	DNS_BADVERS = 16, /* of EDNS; beyond the four bits of the head */
};

struct dns_query {
	uint16_t id;
	uint16_t flags; /* what is repeated in the answer: opcode, RD, CD */
	uint16_t type;
	bool has_edns;
	uint16_t udp_size;           /* what the asker can take in one packet */
	char name[POLICY_NAME_SIZE]; /* canonical; "": it is none that we know as one */
	size_t question_len;         /* 0: the answer repeats no question */
	uint8_t question[DNS_QUESTION_MAX];
};

/*
 * Reads a question. -EBADMSG: it is answered with nothing, as it is too short or an answer itself.
 * Otherwise what is wrong with it: 0 (DNS_NOERROR) if nothing is, and then there is exactly one
 * question, of class IN.
 */
_must_check_ int dns_parse(const void *data, size_t len, struct dns_query *ret);

struct dns_reply {
	enum dns_rcode rcode;
	const struct net_address *addresses; /* those of the question's type are put in */
	size_t n_addresses;
	uint32_t ttl_s;
	bool blocked; /* says so in an extended error (RFC 8914), for people who ask why */
};

/* Writes the answer, at most size (DNS_PLAIN_MAX or more) bytes: its length. What does not fit is
 * left out, and TC says so. */
size_t dns_write(const struct dns_query *q, const struct dns_reply *r, uint8_t *ret, size_t size);
