/* SPDX-License-Identifier: Apache-2.0 */
/* Between main.c and the files that it sets up, and between those. What connections use is in egress_priv.h. */
#pragma once

#include "egress/egress_priv.h"
#include "service/config.h"

/* --- settings.c ------------------------------------------------------------------------------------ */

/* --egress.KEY=VALUE and --learn, and GLOVEBOX_EGRESS_PROXY. */
_must_check_ int settings_read(int argc, char **argv, struct egress *g, struct config *ret,
			       struct fail *fail);
/* egress.proxy, "http://[USER:PASSWORD@]HOST:PORT": looks up the host and fills in g's proxy. */
_must_check_ int settings_proxy(struct egress *g, const char *url, struct fail *fail);

/* --- seal.c ---------------------------------------------------------------------------------------- */

/* Shuts the room, for good: no file can be opened from here on, and only the system calls of syscalls.def are left. */
_must_check_ int seal(struct fail *fail);
bool seal_has_filter(void); /* not in builds with sanitizers */

/* --- talk.c ---------------------------------------------------------------------------------------- */

_must_check_ int talk_open(struct egress *g, int warden_fd);
/* An event for the server; -EAGAIN, -ENOTCONN. */
_must_check_ int talk_event(struct egress *g, const struct egress_event *e);
/* One line on standard error: for what the operator should know. Never of anything a box said. */
void talk_log(const char *fmt, ...) _printf_(1, 2);

/* --- rules/nets.c ---------------------------------------------------------------------------------------- */

_must_check_ int nets_open(struct egress *g);
struct net *net_find(struct egress *g, const char *id);
/* Takes the descriptors, whatever it returns. A box that is known already is closed before. */
_must_check_ int net_open(struct egress *g, const struct egress_open *o, const int *fds);
void net_close(struct egress *g, const char *id);
void nets_each(struct egress *g, void (*f)(struct egress *g, struct net *n));

/* --- rules/apply.c --------------------------------------------------------------------------------------- */

void apply_begin(struct net *n, const struct egress_policy *p);
void apply_use(struct net *n, const struct egress_use *u);
void apply_rule(struct net *n, const struct egress_rule *r);
void apply_header(struct net *n, const struct egress_header *h);
/* errno value for APPLIED; *ret_cut: the connections that it ended. */
int apply_commit(struct egress *g, struct net *n, uint32_t *ret_cut);
/* The operator's sets anew, for all boxes. fd: a file. -EINVAL …: the old ones stay. */
_must_check_ int apply_operator(struct egress *g, int fd, struct fail *fail);
void apply_done(struct net *n);

/* rules/rulesets.c: a list of rules that is the same for all who have it. */
struct ruleset {
	struct ruleset *next;
	uint32_t hash;
	size_t users;
	size_t n;
	struct rule rules[];
};

/* One more who uses this list; NULL: there is no memory. */
const struct ruleset *ruleset_get(const struct rule *rules, size_t n);
/* One less; NULL is nobody. Returns NULL. */
const struct ruleset *ruleset_put(const struct ruleset *s);

/* rules/spec.c: what a server asks for. */
struct spec {
	int err; /* errno value: it cannot be used */
	bool base_allow;
	struct egress_limits limits;
	char use[POLICY_USES_MAX][POLICY_SET_NAME_SIZE];
	size_t n_uses;
	struct rule *rules; /* while they come */
	size_t n_rules;
	const struct ruleset *settled; /* when all have come */
	struct net_header *headers;
	size_t n_headers;
	char *secrets; /* the headers' values, one after the other, each with its NUL; NULL: none yet */
	size_t n_secret_bytes;
};

void spec_add_use(struct spec *s, const char set[static POLICY_SET_NAME_SIZE]);
void spec_add_rule(struct spec *s, const struct rule *r);
void spec_add_header(struct spec *s, const struct egress_header *h);
/* No more will come. -ENOMEM, or what was wrong with what came. */
_must_check_ int spec_settle(struct spec *s);
struct spec *spec_free(struct spec *s);

/* Its rules, those of the sets it uses and the operator's, as one. -ESRCH: there is no such set; -ENOMEM. */
_must_check_ int spec_expand(const struct spec *s, const struct policy_sets *sets,
			     const struct ruleset **ret);

/* --- own.c ----------------------------------------------------------------------------------------- */

_must_check_ int own_open(struct egress *g);
/* Is it an address of this machine? Looks again at most every ten seconds, and sets has_ipv6. */
bool own_has(struct egress *g, const struct net_address *a);

/* --- flow/resolve.c, flow/lookup.c, told.c --------------------------------------------------------------------- */

/* What is known of a name, for whichever box. */
struct lookup {
	struct egress *egress;
	char name[POLICY_NAME_SIZE];
	struct lookup *next; /* in its bucket */
	struct lookup *newer, *older;
	struct resolve *askers;
	struct net *
		owner; /* while it is under way: the box that it was begun for, if that is still there */
	unsigned waiting; /* answers that have not come */
	unsigned held;    /* must not go away */
	bool ready;       /* there is a result, good until then: */
	uint64_t until_us;
	enum policy_reason reason; /* ALLOWED: there are addresses. Else NO_ADDRESS, RESOLVE */
	bool not_there;
	struct net_address addresses[EGRESS_ADDRESSES_MAX];
	size_t n_addresses;
	uint32_t ttl_s;
};

/* The box is gone, and asks for nothing any more. */
void resolve_disown(const struct net *n);
_must_check_ int resolve_open(struct egress *g, const char *servers, struct fail *fail);

bool resolve_is_local(const char *name); /* localhost, or below it */

/* Asks the resolver for the addresses; calls lookup_ended() once, perhaps before it returns. */
void lookup_start(struct egress *g, struct lookup *l);
/* flow/resolve.c: the result is in it. */
void lookup_ended(struct egress *g, struct lookup *l);
_must_check_ int lookup_open(struct egress *g, const char *servers, struct fail *fail);

/* Its DNS was given these addresses for the name. */
void told_add(struct net *n, const char *name, const struct net_address *a, size_t n_addresses);
void told_done(struct net *n);

/* --- door/dns.c, door/dns_udp.c, door/dns_tcp.c ------------------------------------------------------------------------ */

/* Something can be read from a UDP door. */
void dns_udp_ready(struct egress *g, struct net *n, int fd);
/* A connection came through a TCP door: owns fd. */
void dns_tcp_accepted(struct egress *g, struct net *n, int fd);
/* The box is gone. */
void dns_done(struct egress *g, struct net *n);
