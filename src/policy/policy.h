/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a box may reach: rules about names, addresses and ports, and the decision. Pure: no lookup,
 * no clock, no file. What a box says is held against the grammar here before anything else is done
 * with it.
 *
 *	name.c     host names              address.c    addresses
 *	special.c  addresses that are nobody's, everybody's or not for the public
 *	rule.c     a rule, its text, and whether it is one
 *	policy.c   the decision            sets.c       the operator's rule sets as one text
 */
#pragma once

#include "base/fail.h"

#include <netinet/in.h>

#define POLICY_NAME_SIZE 256 /* a name in its canonical form (at most 253 bytes), then NULs */
#define POLICY_NAME_MAX 253
#define POLICY_LABEL_MAX 63
#define POLICY_PORTS_MAX 4
#define POLICY_RULES_MAX 256 /* of one box, those of its sets not counted */
#define POLICY_SET_RULES_MAX 512
#define POLICY_SETS_MAX 64      /* of the operator */
#define POLICY_USES_MAX 8       /* sets that one box uses */
#define POLICY_SET_NAME_SIZE 32 /* [a-z0-9][a-z0-9-]*, then NULs */
#define POLICY_RULE_TEXT_SIZE 384

enum policy_reason {
#define REASON(name, number, word, text) POLICY_##name = (number),
#include "policy/reason.def"
#undef REASON
};

/* "allowed" …; "unknown" for a number that is none. */
const char *policy_reason_word(unsigned reason);
const char *policy_reason_text(unsigned reason);
bool policy_reason_is(unsigned reason);     /* is there one of that number? */
bool policy_reason_allows(unsigned reason); /* ALLOWED, LEARNING */

/* --- names ---------------------------------------------------------------------------------- */

/*
 * The one grammar (NW-09, NW-10): labels of letters, digits, '-' and '_' (not '-' at either end), 1
 * to 63 bytes each, at most 253 in all, one dot at the end is taken off, upper case becomes lower.
 * The last label is no number (digits, or 0x with hexadecimal ones), so that nothing that could be
 * an address is a name. Names beyond ASCII must come as A-labels. The bytes need not end with a
 * NUL; a NUL among them is as wrong as a space. -EINVAL: ret is all NULs.
 */
_must_check_ int name_parse(const void *text, size_t len, char ret[static POLICY_NAME_SIZE]);
/* Is it in that form, with NULs behind? */
bool name_ok(const char name[static POLICY_NAME_SIZE]);
/* Is it below suffix ("example.com"), at a border of labels? Not equal to it. Both canonical. */
bool name_is_below(const char *name, const char *suffix);

/* --- addresses ------------------------------------------------------------------------------ */

/* All of them as IPv6; IPv4 as ::ffff:a.b.c.d. */
struct net_address {
	uint8_t bytes[16];
};

#define NET_ADDRESS_TEXT_SIZE 46

/* Only the full forms: four decimal numbers without leading zeros, or IPv6 without a zone, without
 * brackets. */
_must_check_ int address_parse(const void *text, size_t len, struct net_address *ret);
void address_text(const struct net_address *a, char ret[static NET_ADDRESS_TEXT_SIZE]);
bool address_is_v4(const struct net_address *a);
bool address_equal(const struct net_address *a, const struct net_address *b);
/* From and to what the kernel takes; port in host order. -EAFNOSUPPORT. */
_must_check_ int address_from_sockaddr(const struct sockaddr *sa, struct net_address *ret,
				       uint16_t *ret_port);
socklen_t address_to_sockaddr(const struct net_address *a, uint16_t port,
			      struct sockaddr_storage *ret);
/* The address that a transition form carries (::ffff:0:0/96, ::/96, 64:ff9b::/96, 64:ff9b:1::/48,
 * 2002::/16, 2001::/32 Teredo's client, obfuscated), or the address itself. */
struct net_address address_unwrap(const struct net_address *a);
/* Why no box gets there unless the operator names the range ("loopback", "private", "link-local"
 * …): for the address or what it carries; a transition form is special by itself. NULL: it is an
 * ordinary public address. */
const char *address_special(const struct net_address *a);

/* --- rules ---------------------------------------------------------------------------------- */

enum rule_kind {
	RULE_NAME = 1, /* this name */
	RULE_BELOW,    /* everything below this name: "*.name" */
	RULE_RANGE,    /* addresses */
	_RULE_KIND_MAX,
};

#define RULE_DENY 1u     /* otherwise it allows */
#define RULE_OPERATOR 2u /* with RULE_DENY: nothing outweighs it. Only egress itself sets it. */
#define RULE_PRIVATE                                                                               \
	4u /* this range counts as ordinary although it is special. Only egress itself sets it. */
#define RULE_FLAGS (RULE_DENY | RULE_OPERATOR | RULE_PRIVATE)

struct rule_ports {
	uint16_t from, to; /* inclusive */
};

/* It travels between rooms: whatever is not used is zero. */
struct rule {
	uint8_t kind;    /* enum rule_kind */
	uint8_t flags;   /* RULE_* */
	uint8_t prefix;  /* of RULE_RANGE: 0 to 128 bits of the IPv6 form */
	uint8_t n_ports; /* at least 1 */
	struct rule_ports ports[POLICY_PORTS_MAX];
	struct net_address address; /* bits behind the prefix are zero */
	char name[POLICY_NAME_SIZE];
};

bool rule_ok(const struct rule *r);

/*
 * "example.com", "*.example.com", "192.0.2.1", "192.0.2.0/24", "2001:db8::/32", "[2001:db8::1]",
 * each with ":PORTS" if wanted, where ports are "443", "80,443", "8000-8010" or "*" (an IPv6
 * address with ports needs the brackets: "[2001:db8::]/32:443"). Without ports: a name has 80 and
 * 443, an address all. "*" alone is no rule; "0.0.0.0/0" is every address of either family.
 * -EINVAL, and fail says what is wrong with it.
 */
_must_check_ int rule_parse(const char *text, size_t len, struct rule *ret, struct fail *fail);
/* The shortest text that parses to the same rule. */
void rule_text(const struct rule *r, char ret[static POLICY_RULE_TEXT_SIZE]);
bool rule_has_port(const struct rule *r, uint16_t port); /* 0: any port at all */
bool rule_has_all_ports(const struct rule *r);
bool rule_is_everything(const struct rule *r); /* 0.0.0.0/0, at whatever ports */

/* --- the decision --------------------------------------------------------------------------- */

struct policy {
	const struct rule *rules;
	size_t n_rules;
	bool base_allow; /* what holds where no rule says anything */
	bool learn;      /* everything but what is always closed; only the local operator's */
};

/*
 * May this (canonical) name be looked up for this port? Order: an operator's denial; a rule that
 * allows the name; else everything is allowed (base_allow, or a rule for every address). ALLOWED:
 * yes, and its addresses need only be ordinary or the operator's. LEARNING. DENIED … : no. port 0
 * (DNS, where the port is not known yet): any port of the rule. *ret_by_name: a rule names it, so
 * policy_address() need not find one.
 */
enum policy_reason policy_name(const struct policy *p, const char *name, uint16_t port,
			       bool *ret_by_name);

/*
 * May this address be connected to? Order: an operator's denial; special and not named by the
 * operator; by_name; a rule that allows the range; one that denies it; the base. E2B's order: what
 * is allowed beats what is denied. port 0: as above.
 */
enum policy_reason policy_address(const struct policy *p, const struct net_address *a,
				  uint16_t port, bool by_name);
/* Does the operator deny any name? Then even what needs no name must not say one of those. */
bool policy_denies_names(const struct policy *p);
/* Has the operator named a range with this address as open ("private")? */
bool policy_opens(const struct policy *p, const struct net_address *a, uint16_t port);

/* --- the operator's sets -------------------------------------------------------------------- */

/*
 * One text: "[name]" begins a set; then a line for each rule, "deny RULE", "private RANGE"; '#'
 * begins a comment. Lines before the first set hold for every box: only "deny" and "private". What
 * they deny is the operator's denial (RULE_OPERATOR), of all ports unless it names some; what they
 * open ("private") is not allowed by that alone.
 */
struct policy_set {
	char name[POLICY_SET_NAME_SIZE]; /* "": what holds for every box */
	struct rule *rules;
	size_t n_rules;
};

struct policy_sets {
	struct policy_set
		set[POLICY_SETS_MAX + 1]; /* the first is the nameless one, always there */
	size_t n;
};

bool set_name_ok(const char name[static POLICY_SET_NAME_SIZE]);
/* The lines of one set, without "[name]"; ret's name is left empty. Errors begin with "line N:
 * ". */
_must_check_ int set_parse(const char *text, size_t len, struct policy_set *ret, struct fail *fail);
void set_done(struct policy_set *s);
/* All of them. Errors begin with "line N: ". */
_must_check_ int sets_parse(const char *text, size_t len, struct policy_sets *ret,
			    struct fail *fail);
void sets_done(struct policy_sets *s);
const struct policy_set *sets_find(const struct policy_sets *s, const char *name);
