/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The messages of egress, over SEQPACKET sockets. A box is known by its doors, which the warden
 * opened in the box's own network namespace: whatever comes through them is that box's, whatever it
 * says. The server is not trusted with more than rules: what the operator denies, and which private
 * ranges are opened, egress has from the warden.
 *
 * A policy for a box that egress does not know yet: the warden's OPEN was sent before the server
 * heard of the box's doors, so it is in the other socket already. Egress reads that one first, then
 * answers ENOENT.
 */
#pragma once

#include "policy/policy.h"
#include "wire/warden.h"

#define EGRESS_WARDEN_FD 3 /* egress finds its socket to the warden here */

/* Where they are in the box. */
#define EGRESS_PROXY_PORT 3128 /* HTTP, CONNECT, SOCKS5; 127.0.0.1 and ::1 */
#define EGRESS_CATCH_PORT                                                                          \
	3129 /* what is led here has the address it wanted to go to as our end's: getsockname() */
#define EGRESS_DNS_PORT 3153            /* where DNS that was meant for others is redirected to */
#define EGRESS_DNS_ADDRESS "127.0.0.53" /* port 53; what resolv.conf says */

enum egress_door {
	EGRESS_DOOR_PROXY = 1, /* listening TCP sockets */
	EGRESS_DOOR_CATCH,
	EGRESS_DOOR_DNS_TCP,
	EGRESS_DOOR_DNS_UDP,
	_EGRESS_DOOR_MAX,
};

#define EGRESS_DOORS_MAX 10

struct egress_operator {
	uint64_t zero;
};

struct egress_open {
	char id[WARDEN_ID_SIZE];
	uint32_t n_doors;
	uint32_t zero;
	uint32_t door[EGRESS_DOORS_MAX]; /* enum egress_door of each descriptor; 0 beyond n_doors */
};

struct egress_target {
	char id[WARDEN_ID_SIZE];
};

/* 0: no limit of that kind. */
struct egress_limits {
	uint32_t connections; /* at once */
	uint32_t lookups;     /* names looked up in a minute */
	uint64_t bytes_up;    /* in the box's life */
	uint64_t bytes_down;
	uint64_t used_up; /* of them, as far as the server knows; egress may know of more */
	uint64_t used_down;
};

struct egress_policy {
	char id[WARDEN_ID_SIZE];
	uint32_t base_allow; /* 0 or 1: what holds where no rule says anything */
	uint32_t zero;
	struct egress_limits limits;
};

struct egress_use {
	char id[WARDEN_ID_SIZE];
	char set[POLICY_SET_NAME_SIZE];
};

struct egress_rule {
	char id[WARDEN_ID_SIZE];
	struct rule rule; /* flags: RULE_DENY or none */
};

#define EGRESS_HEADERS_MAX 200 /* 10 hosts with 20 headers each, as E2B has it */
#define EGRESS_HEADER_NAME_SIZE 128
#define EGRESS_HEADER_VALUE_SIZE 8192
#define EGRESS_HEADER_VALUES_MAX                                                                   \
	((size_t)65536) /* bytes of all different values of one box, with their NULs */

/* Put into HTTP requests that the box makes to this host in the clear; a header of that name which
 * the box sent itself is replaced. The value may be secret: it is told to nobody, in no message, no
 * log and no error page. */
struct egress_header {
	char id[WARDEN_ID_SIZE];
	char host[POLICY_NAME_SIZE]; /* canonical; "*.name" is written as ".name" */
	/* a token of RFC 9110, not one of framing or of the connection */
	char name[EGRESS_HEADER_NAME_SIZE];
	char value[EGRESS_HEADER_VALUE_SIZE]; /* no control characters */
	/* 1: the host is then spoken to with verified TLS, at port 443 where the box said 80 */
	uint32_t tls;
	uint32_t zero;
};

struct egress_applied {
	char id[WARDEN_ID_SIZE];
	/* errno value; 0: it holds. ENOENT: no such box. ESRCH: no such set. EINVAL, E2BIG */
	int32_t err;
	uint32_t cut; /* connections that were ended by it */
};

enum egress_how {
	EGRESS_HOW_HTTP = 1, /* a request in the clear */
	EGRESS_HOW_CONNECT,
	EGRESS_HOW_SOCKS,
	EGRESS_HOW_CATCH, /* a connection of a program that knows of no proxy */
	EGRESS_HOW_DNS,
	_EGRESS_HOW_MAX,
};

#define EGRESS_EVENT_END                                                                           \
	1u /* the connection is over: bytes and duration are set. Otherwise: the decision */

struct egress_event {
	char id[WARDEN_ID_SIZE];
	/* Of the connection, lookup or request: its two events have the same. No other one of a box
	 * of this id ever has it, of whichever egress. */
	uint64_t number;
	int64_t at_ms;               /* by the clock on the wall */
	uint32_t how;                /* enum egress_how */
	uint32_t reason;             /* enum policy_reason */
	uint32_t flags;              /* EGRESS_EVENT_* */
	uint32_t missed;             /* events before this one that could not be told */
	char name[POLICY_NAME_SIZE]; /* "": an address was asked for */
	struct net_address address;  /* zero: not known, nobody was dialed */
	uint16_t port;
	uint16_t zero[3];
	uint64_t bytes_up;
	uint64_t bytes_down;
	uint64_t duration_us;
	uint64_t used_up; /* by all connections of the box until now, open ones too */
	uint64_t used_down;
};

enum egress_type {
#define MESSAGE(name, number, channel, payload) EGRESS_##name = (number),
#include "wire/egress.def"
#undef MESSAGE
};

enum egress_channel { EGRESS_FROM_WARDEN = 1, EGRESS_FROM_SERVER = 2, EGRESS_FROM_EGRESS = 3 };

struct egress_frame {
	struct warden_head head; /* request is 0 */
	union {
#define MESSAGE(name, number, channel, payload) payload as_##name;
#include "wire/egress.def"
#undef MESSAGE
	};
};

/* Of a header rule: is it a token that is not about framing or the connection; has it no control
 * characters? Both must be ended, with NULs behind. */
bool egress_header_name_ok(const char name[static EGRESS_HEADER_NAME_SIZE]);
bool egress_header_value_ok(const char value[static EGRESS_HEADER_VALUE_SIZE]);

/* Is what arrived (n bytes) a message of this channel with every field in its bounds? 0, or
 * -EPROTO. */
_must_check_ int egress_check(const struct egress_frame *f, size_t n, enum egress_channel channel);
/* Fills in the header and sends. -EAGAIN on a socket that does not wait. */
_must_check_ int egress_send(int sock, enum egress_type type, struct egress_frame *f,
			     const int *fds, size_t n_fds);
/* Receives and checks: 1, 0 at the end, -EPROTO, -EAGAIN. fds has space for EGRESS_DOORS_MAX and
 * *ret_n_fds says how many came, which is as many as the message has; NULL: none may come. -EMFILE:
 * the message is there and in order, but its descriptors are lost. */
_must_check_ int egress_recv(int sock, struct egress_frame *ret, enum egress_channel channel,
			     int *fds, size_t *ret_n_fds);
