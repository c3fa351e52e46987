/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Between the files that carry a connection of a box from its door to a host.
 *
 * Through the proxy's door, and for what is caught and tunnels to port 80:
 *	FIRST → REQUEST → RESOLVE → DIAL → (UPSTREAM) → (TLS) → RELAY → (LINGER)
 *	NAMING → RESOLVE → DIAL → …
 *
 * Each step ends in a call of the next one, as the last thing it does: the connection may be gone
 * when it returns. No byte of a client reaches a host before everything that is known about it has
 * been held against the policy.
 *
 * The log has one event for a connection that is refused, and two for one that is let out: when its
 * first byte may go, and at its end.
 */
#pragma once

#include "egress/names/names.h"
#include "egress/parse/request.h"
#include "egress/report/report.h"
#include "egress/rules/rules.h"

#define CONN_REQUEST_US (10 * 1000000ull) /* for a request to come */
#define CONN_HELLO_US (5 * 1000000ull)    /* for a TLS handshake, when the host is connected */
#define CONN_RESOLVE_US (15 * 1000000ull) /* the resolver has its own, shorter limit */
#define CONN_DIAL_US (10 * 1000000ull)    /* for all addresses of a host */
#define CONN_DIAL_ONE_US (3 * 1000000ull) /* for one, when there are others */
#define CONN_IDLE_US (600 * 1000000ull)
#define CONN_LINGER_US (2 * 1000000ull)

enum conn_step {
	STEP_FIRST,    /* the first byte says which protocol it is */
	STEP_REQUEST,  /* SOCKS5, or the head of a request to a proxy */
	STEP_NAMING,   /* the handshake or the request must say a name before anything is decided */
	STEP_RESOLVE,  /* names/resolve.c is at work */
	STEP_DIAL,     /* connecting */
	STEP_UPSTREAM, /* asking the proxy of this machine's network to let us through */
	STEP_TLS,      /* our handshake with the host */
	STEP_RELAY,
	/* all is said; what still comes is thrown away, so that our last words are read */
	STEP_LINGER,
};

/* What is done with what the client sends. */
enum conn_up {
	UP_NONE,  /* not read: a request is over, or not wanted any more */
	UP_PROOF, /* read and kept, until it is known to be what was allowed */
	UP_BODY,  /* the body of a request */
	UP_WAIT,  /* the host must agree to the upgrade first */
	UP_RAW,
};

/* One direction. Never more than one of data and pipe is in use, and nothing is read while there is
 * something in them. */
struct flow {
	unsigned char
		*data; /* at to len are still to be sent; wiped when done, it may hold secrets */
	size_t at, len;
	int pipe[2];
	size_t in_pipe;
	bool is_large;            /* the pipe */
	bool is_stalled;          /* and counted as such in the box */
	bool is_ended;            /* there comes no more */
	bool is_passed;           /* and the other side knows */
	bool is_gathering;        /* we are told of much at once: relay.c */
	uint64_t gather_until_us; /* but not later than this; 0: we wait for something else */
	uint64_t bytes;
};

struct conn {
	struct net *net;
	struct conn *next, **link; /* in the box's list */
	enum egress_door door;
	enum egress_how how;
	enum conn_step step;
	struct source client, host;
	int client_fd, host_fd;
	struct timer timer;
	uint64_t since_us, active_us;

	struct target target;
	bool name_is_hint; /* it was allowed by its address; the name is only told to people */
	/* only requests to hosts that headers are added for are looked into */
	bool name_is_optional;
	bool is_told_address;      /* our DNS gave the box this address: it is dialed as it is */
	bool by_name;              /* a rule names it: what it says must name the same */
	bool is_proved;            /* it does */
	bool is_answered;          /* the client of a tunnel was told that it is open */
	bool is_told;              /* the log has it as let out, under this number: */
	uint64_t number;           /* 0: nobody could be told: its end gets one of its own */
	enum first saw;            /* what it spoke in the tunnel: how to tell it something */
	enum policy_reason reason; /* why it is let out */
	enum socks_code
		socks_code; /* with a refusal: what SOCKS calls it, where the reason does not say */
	enum policy_reason verdict; /* with -EPERM: why it is not */
	struct net_address address; /* that is dialed */
	struct resolve resolve;     /* the addresses too when no name was looked up */
	size_t next_address;
	bool is_tunneled;   /* through that proxy, with CONNECT */
	bool only_by_proxy; /* the name is left to the proxy, since it could not be resolved here */
	uint64_t dial_until_us;

	struct buf in;          /* what was read and not yet used */
	struct http_head *head; /* in the first bytes of `in` */
	bool is_http;           /* one request, and then nothing */
	bool is_unnamed;        /* to which no rule adds anything */
	bool use_tls;
	http_parser body_parser;
	enum http_body body;
	enum conn_up up_mode;
	unsigned char
		status[sizeof("HTTP/1.1 101") - 1]; /* UP_WAIT: the first bytes of the answer */
	size_t status_len;
	bool up_is_cut;          /* the host did not want all of the request */
	uint64_t proof_until_us; /* 0: none */
	void *tls;               /* tls.c's */
	struct flow up, down;
};

/* --- conn.c --------------------------------------------------------------------------------- */

/* A connection was accepted: owns fd. door: EGRESS_DOOR_PROXY or _CATCH. */
void conn_accepted(struct egress *g, struct net *n, enum egress_door door, int fd);
/* The policy has changed: ends those that it no longer allows (POLICY_CUT); how many. */
size_t conn_recheck(struct egress *g, struct net *n);
/* The box is gone: ends all (POLICY_ENDED). */
void conn_end_all(struct egress *g, struct net *n);
/* Not let out, or no longer: tells the log, and the client in its language. The connection may be
 * gone. */
void conn_refuse(struct egress *g, struct conn *c, enum policy_reason reason);
/* It is over. reset: both sides see that it broke. The connection is gone. */
void conn_end(struct egress *g, struct conn *c, enum policy_reason reason, bool reset);
/* Says it is let out, once. */
void conn_tell(struct egress *g, struct conn *c);
/* Our last words (NULL: none), then closes. */
void conn_linger(struct egress *g, struct conn *c, const void *text, size_t len);
/* What its descriptors are waited for; 0: only that they break. */
void conn_want_client(struct egress *g, struct conn *c, uint32_t events);
void conn_want_host(struct egress *g, struct conn *c, uint32_t events);
void conn_drop_host(struct egress *g, struct conn *c);
/* Reads what the client has sent into c->in, up to REQUEST_MAX in all. 1: something came; 0:
 * nothing; -ECONNRESET …; -ENODATA: it has ended. */
_must_check_ int conn_read(struct conn *c);
/* May it go to this address, as the policy is now? */
enum policy_reason conn_check(struct egress *g, struct conn *c, const struct net_address *a);

/* --- steps.c: from the first byte to a host ------------------------------------------------- */

void step_begin(struct egress *g, struct conn *c);
/* Something came from the client, before the relay. */
void step_more(struct egress *g, struct conn *c);
/* Resolves, checks, dials c->target. */
void step_decide(struct egress *g, struct conn *c);
/* dial.c: the host is there. */
void step_connected(struct egress *g, struct conn *c);

/* --- http.c, proof.c ------------------------------------------------------------------------ */

/* The request in c->head may be sent when the host is there. */
void http_begin(struct egress *g, struct conn *c);
void http_send(struct egress *g, struct conn *c);
/* The same for a tunnel that no rule names, which is there already: nothing is added to its one
 * request. */
void http_pass(struct egress *g, struct conn *c);
/* Do rules add headers to requests to this host? */
bool http_has_headers(const struct net *n, const char *name);
/* The head of a request in the clear, to the host of a tunnel or of a caught connection. ALLOWED:
 * c->head has it; 0: more must come. */
enum policy_reason http_read_origin(struct conn *c);
void http_refusal(const struct conn *c, enum policy_reason reason, char *ret, size_t size);
/* Holds what the client said against the name. 1: it is what was allowed, go on; 0: more must come;
 * -EPERM: c->verdict; -EINPROGRESS: c is at another step. */
_must_check_ int proof_look(struct egress *g, struct conn *c, bool is_ended);
/* Must it begin with a TLS handshake? */
bool proof_needs_tls(const struct conn *c);
/* The same for a handshake only. 0: more must come. */
enum policy_reason proof_hello(struct conn *c, char ret_name[static POLICY_NAME_SIZE]);

/* --- dial.c --------------------------------------------------------------------------------- */

void dial_begin(struct egress *g, struct conn *c);
/* The host's descriptor has something, before the relay. */
void dial_ready(struct egress *g, struct conn *c);
/* The time for this address is over. */
void dial_due(struct egress *g, struct conn *c);

/* --- relay.c, flow.c ------------------------------------------------------------------------ */

void relay_begin(struct egress *g, struct conn *c);
void relay_client_ready(struct egress *g, struct conn *c, uint32_t events);
void relay_host_ready(struct egress *g, struct conn *c, uint32_t events);
void relay_due(struct egress *g, struct conn *c);

struct flow *flow_of(struct conn *c, bool up);
/* These bytes are sent next; takes them. Nothing else must be waiting. */
void flow_put(struct conn *c, struct flow *f, unsigned char *data, size_t len);
bool flow_waits(const struct flow *f);
void flow_done(struct conn *c, struct flow *f);
/* For `return`: -EPERM, with c->verdict. */
int flow_refuse(struct conn *c, enum policy_reason reason);
/* Sends what waits. 1: nothing does any more; 0: the other side must read first. */
_must_check_ int flow_settle(struct conn *c, bool up);
/* Read once and pass on: through our memory; through a pipe; up to the end of a request's body. 1:
 * go on; 0: wait. */
_must_check_ int flow_copy(struct conn *c, bool up);
_must_check_ int flow_move(struct conn *c, bool up);
_must_check_ int flow_body(struct conn *c);

/* --- tls.c ---------------------------------------------------------------------------------- */

/* Before the room is shut: the certificates that hosts are held against, the machine's and those of
 * ca_bundle ("": none). */
_must_check_ int tls_open(struct egress *g, const char *ca_bundle, struct fail *fail);
/* Begins the handshake for c->target.name. -EPROTO, -ENOMEM. */
_must_check_ int tls_begin(struct egress *g, struct conn *c);
/* 1: done; 0: wait, for *ret_events; -EPROTO. */
_must_check_ int tls_step(struct conn *c, uint32_t *ret_events);
/* As recv() and send(), with negative errno; -EAGAIN. */
_must_check_ ssize_t tls_recv(struct conn *c, void *data, size_t size);
_must_check_ ssize_t tls_send(struct conn *c, const void *data, size_t len);
bool tls_has_more(struct conn *c); /* that was read from the socket already */
void tls_done(struct conn *c);
