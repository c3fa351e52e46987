/* SPDX-License-Identifier: Apache-2.0 */
#include "egress/parse/dns_message.h"

#include <ares.h>

#define FLAG_ANSWER 0x8000u
#define FLAG_TRUNCATED 0x0200u
#define FLAG_RECURSION_AVAILABLE 0x0080u
#define FLAGS_KEPT 0x7910u /* opcode, RD, CD */
#define OPCODE 0x7800u
#define CLASS_IN 1
#define POINTER 0xc0u            /* begins a name that goes on elsewhere */
#define HERE (POINTER << 8 | 12) /* the name of the question */
#define OPT_SIZE 11              /* without options */
#define ERROR_OPTION 15          /* an extended error, RFC 8914 */
#define ERROR_SIZE 6
#define ERROR_BLOCKED 15

static unsigned get16(const uint8_t *p)
{
	return (unsigned)p[0] << 8 | p[1];
}

/* --- reading -------------------------------------------------------------------------------- */

/*
 * The name of the question, at the beginning of the message behind its head; what follows it.
 * c-ares writes what is no plain text with a backslash, so that a label with a dot in it is not
 * taken for two: the grammar of names then refuses it.
 */
static const uint8_t *dns_read_name(const uint8_t *data, size_t len, struct dns_query *ret)
{
	const uint8_t *at = data + DNS_HEAD_SIZE;
	char *text = NULL;
	long used = 0;

	/* A question has nowhere to point to. */
	for (size_t i = DNS_HEAD_SIZE; i < len && data[i]; i += data[i] + 1u)
		if (data[i] & POINTER)
			return NULL;
	if (ares_expand_name(at, data, (int)len, &text, &used) != ARES_SUCCESS)
		return NULL;
	if (name_parse(text, strlen(text), ret->name) < 0)
		ret->name[0] = '\0';
	ares_free_string(text);
	return at + used;
}

static int read_question(const uint8_t *data, size_t len, struct dns_query *ret,
			 const uint8_t **ret_rest)
{
	const uint8_t *at = dns_read_name(data, len, ret), *end = data + len;

	if (!at || end - at < 4)
		return DNS_FORMERR;
	ret->type = (uint16_t)get16(at);
	ret->question_len = (size_t)(at + 4 - (data + DNS_HEAD_SIZE));
	if (ret->question_len > sizeof(ret->question))
		return DNS_FORMERR;
	memcpy(ret->question, data + DNS_HEAD_SIZE, ret->question_len);
	*ret_rest = at + 4;
	return get16(at + 2) == CLASS_IN ? DNS_NOERROR : DNS_REFUSED;
}

/* The one record that may follow: EDNS. What options it has does not matter. */
static int read_edns(const uint8_t *at, const uint8_t *end, struct dns_query *ret)
{
	if (end - at < OPT_SIZE || at[0] != 0 || get16(at + 1) != DNS_OPT ||
	    (size_t)(end - at) < OPT_SIZE + get16(at + 9))
		return DNS_FORMERR;
	ret->has_edns = true;
	ret->udp_size = (uint16_t)MIN(MAX(get16(at + 3), DNS_PLAIN_MAX), DNS_ANSWER_MAX);
	return at[6] == 0 ? DNS_NOERROR : DNS_BADVERS;
}

int dns_parse(const void *data, size_t len, struct dns_query *ret)
{
	const uint8_t *p = data, *rest;
	int r;

	*ret = (struct dns_query){ .udp_size = DNS_PLAIN_MAX };
	/* Answers are never answered: two who do that would never end. */
	if (len < DNS_HEAD_SIZE || len > DNS_QUERY_MAX || (get16(p + 2) & FLAG_ANSWER))
		return -EBADMSG;
	ret->id = (uint16_t)get16(p);
	ret->flags = get16(p + 2) & FLAGS_KEPT;
	if (ret->flags & OPCODE)
		return DNS_NOTIMP;
	if (get16(p + 4) != 1 || get16(p + 6) || get16(p + 8) || get16(p + 10) > 1)
		return DNS_FORMERR;
	r = read_question(p, len, ret, &rest);
	if (r != DNS_NOERROR) {
		if (r == DNS_FORMERR)
			ret->question_len = 0;
		return r;
	}
	return get16(p + 10) ? read_edns(rest, p + len, ret) : DNS_NOERROR;
}

/* --- writing -------------------------------------------------------------------------------- */

struct writer {
	uint8_t *at, *end;
};

static void put16(struct writer *w, unsigned value)
{
	*w->at++ = (uint8_t)(value >> 8);
	*w->at++ = (uint8_t)value;
}

static void put_bytes(struct writer *w, const void *data, size_t len)
{
	memcpy(w->at, data, len);
	w->at += len;
}

/* The records of the asked type that fit: how many; *truncated if there are more. */
static unsigned put_addresses(struct writer *w, const struct dns_query *q,
			      const struct dns_reply *r, bool *truncated)
{
	size_t size = q->type == DNS_A ? 4 : 16;
	unsigned n = 0;

	for (size_t i = 0; i < r->n_addresses; i++) {
		if (address_is_v4(&r->addresses[i]) != (q->type == DNS_A))
			continue;
		if ((size_t)(w->end - w->at) < 12 + size) {
			*truncated = true;
			break;
		}
		put16(w, HERE);
		put16(w, q->type);
		put16(w, CLASS_IN);
		put16(w, r->ttl_s >> 16);
		put16(w, r->ttl_s & 0xffff);
		put16(w, (unsigned)size);
		put_bytes(w, r->addresses[i].bytes + 16 - size, size);
		n++;
	}
	return n;
}

static void put_edns(struct writer *w, const struct dns_reply *r)
{
	put_bytes(w, "", 1); /* the root */
	put16(w, DNS_OPT);
	put16(w, DNS_ANSWER_MAX);
	put16(w, (unsigned)r->rcode >> 4 << 8);
	put16(w, 0);
	put16(w, r->blocked ? ERROR_SIZE : 0);
	if (r->blocked) {
		put16(w, ERROR_OPTION);
		put16(w, 2);
		put16(w, ERROR_BLOCKED);
	}
}

size_t dns_write(const struct dns_query *q, const struct dns_reply *r, uint8_t *ret, size_t size)
{
	size_t reserved = q->has_edns ? OPT_SIZE + ERROR_SIZE : 0;
	struct writer head = { ret, ret + DNS_HEAD_SIZE };
	struct writer w = { ret + DNS_HEAD_SIZE, ret + size - reserved };
	bool truncated = false;
	unsigned n = 0;

	put_bytes(&w, q->question, q->question_len);
	if (r->rcode == DNS_NOERROR && (q->type == DNS_A || q->type == DNS_AAAA))
		n = put_addresses(&w, q, r, &truncated);
	if (q->has_edns)
		put_edns(&w, r);
	put16(&head, q->id);
	put16(&head, FLAG_ANSWER | q->flags | (truncated ? FLAG_TRUNCATED : 0) |
			     FLAG_RECURSION_AVAILABLE | ((unsigned)r->rcode & 0xf));
	put16(&head, q->question_len ? 1 : 0);
	put16(&head, n);
	put16(&head, 0);
	put16(&head, q->has_edns ? 1 : 0);
	return (size_t)(w.at - ret);
}
