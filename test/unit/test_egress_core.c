/* SPDX-License-Identifier: Apache-2.0 */
/* egress without sockets: timers, policies as they come and go, the cache of names. What they call is here. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "base/clock.h"
#include "egress/door/door.h"
#include "egress/flow/conn.h"

static struct egress g;
static struct net box;

/* --- instead of the other files -------------------------------------------------------------------------------- */

static size_t n_rechecks, n_started, n_events, n_ended;
static struct lookup *started;
static struct net_address own_address;
static struct egress_event last_event;
static int event_result;

size_t conn_recheck(struct egress *e, struct net *n)
{
	(void)e;
	(void)n;
	n_rechecks++;
	return 3;
}

bool own_has(struct egress *e, const struct net_address *a)
{
	(void)e;
	return address_equal(a, &own_address);
}

void nets_each(struct egress *e, void (*f)(struct egress *g, struct net *n))
{
	f(e, &box);
}

void say_log(const char *fmt, ...)
{
	(void)fmt;
}

int say_event(const struct egress *e, const struct egress_event *event)
{
	(void)e;
	n_events++;
	last_event = *event;
	return event_result;
}

void lookup_start(struct egress *e, struct lookup *l)
{
	(void)e;
	n_started++;
	started = l;
	l->waiting = 1;
	l->n_addresses = 0;
	l->reason = POLICY_NO_ADDRESS;
}

int lookup_open(struct egress *e, const char *servers, struct fail *fail)
{
	(void)e;
	(void)servers;
	(void)fail;
	return 0;
}

/* The real one, counted: a policy can be long. */
static size_t n_judged;
enum policy_reason __real_policy_name(const struct policy *p, const char *name, uint16_t port,
				      bool *ret_by_name);
enum policy_reason __wrap_policy_name(const struct policy *p, const char *name, uint16_t port,
				      bool *ret_by_name);

enum policy_reason __wrap_policy_name(const struct policy *p, const char *name, uint16_t port,
				      bool *ret_by_name)
{
	n_judged++;
	return __real_policy_name(p, name, port, ret_by_name);
}

/* --- helpers ------------------------------------------------------------------------------------------------- */

static struct net_address address(const char *text)
{
	struct net_address a;

	assert_int_equal(address_parse(text, strlen(text), &a), 0);
	return a;
}

static void rule(const char *text, uint8_t flags)
{
	struct egress_rule r = { 0 };
	struct fail fail;

	assert_int_equal(rule_parse(text, strlen(text), &r.rule, &fail), 0);
	r.rule.flags = flags;
	apply_rule(&box, &r);
}

static void begin(bool base_allow)
{
	apply_begin(&box, &(struct egress_policy){ .base_allow = base_allow });
}

static void use(const char *set)
{
	struct egress_use u = { 0 };

	memcpy(u.set, set, strlen(set));
	apply_use(&box, &u);
}

static int commit(void)
{
	uint32_t cut;

	return apply_commit(&g, &box, &cut);
}

static int operator_says(const char *text)
{
	int fd = memfd_create("sets", MFD_CLOEXEC), r;
	struct fail fail;

	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	r = apply_operator(&g, fd, &fail); /* its position is at the end */
	fd_close(fd);
	return r;
}

static enum policy_reason check(const char *text, uint16_t port)
{
	struct net_address a = address(text);

	return net_check_address(&g, &box, &a, port, false);
}

static int set_up(void **state)
{
	(void)state;
	g = (struct egress){ 0 };
	box = (struct net){ .id = "box" };
	own_address = (struct net_address){ { 0 } };
	n_rechecks = n_started = n_events = n_ended = 0;
	event_result = 0;
	return loop_open(&g.loop, 1);
}

static int tear_down(void **state)
{
	(void)state;
	apply_done(&box);
	told_done(&box);
	sets_done(&g.sets);
	loop_close(&g.loop);
	return 0;
}

/* --- policies -------------------------------------------------------------------------------------------------- */

static void test_no_policy(void **state)
{
	(void)state;
	assert_int_equal(check("192.0.2.1", 443), POLICY_NO_POLICY);
	assert_int_equal(commit(), EINVAL); /* nothing was begun */
	begin(true);
	assert_int_equal(check("8.8.8.8", 443), POLICY_NO_POLICY); /* not before it is committed */
	assert_int_equal(commit(), 0);
	assert_int_equal(check("8.8.8.8", 443), POLICY_ALLOWED);
	assert_int_equal(n_rechecks, 1);
}

/* Boxes with the same rules have them once. */
static void test_rulesets(void **state)
{
	static struct rule rules[2] = {
		{ .kind = RULE_RANGE, .n_ports = 1, .ports = { { 1, 2 } } },
		{ .kind = RULE_RANGE, .n_ports = 1, .ports = { { 3, 4 } } }
	};
	const struct ruleset *a = ruleset_get(rules, 2), *b = ruleset_get(rules, 2);
	const struct ruleset *one = ruleset_get(rules, 1), *none = ruleset_get(NULL, 0);

	(void)state;
	assert_ptr_equal(a, b);
	assert_ptr_not_equal(a, one);
	assert_int_equal(one->n, 1);
	assert_int_equal(none->n, 0);
	assert_ptr_equal(ruleset_get(NULL, 0), none);
	rules[1].flags = RULE_DENY;
	b = ruleset_get(rules, 2);
	assert_ptr_not_equal(a, b);
	assert_int_equal(a->rules[1].flags, 0); /* a copy */
	assert_int_equal(a->users, 2);
	assert_null(ruleset_put(a));
	assert_int_equal(a->users, 1);
	(void)ruleset_put(a);
	(void)ruleset_put(b);
	(void)ruleset_put(one);
	(void)ruleset_put(none);
	(void)ruleset_put(none);
	assert_null(ruleset_put(NULL));
}

/* NW-15: what cannot be used changes nothing. */
static void test_old_stays(void **state)
{
	(void)state;
	begin(false);
	rule("8.8.8.0/24", 0);
	assert_int_equal(commit(), 0);
	begin(true);
	use("nosuch");
	assert_int_equal(commit(), ESRCH);
	assert_int_equal(check("8.8.8.8", 1), POLICY_ALLOWED);
	assert_int_equal(check("9.9.9.9", 1), POLICY_ADDRESS);
	begin(true);
	for (size_t i = 0; i <= POLICY_RULES_MAX; i++)
		rule("9.9.9.9", 0);
	assert_int_equal(commit(), E2BIG);
	begin(true);
	for (size_t i = 0; i <= POLICY_USES_MAX; i++)
		use("a");
	assert_int_equal(commit(), E2BIG);
	assert_int_equal(check("9.9.9.9", 1), POLICY_ADDRESS);
	assert_int_equal(n_rechecks, 1);
	assert_int_equal(commit(), EINVAL); /* a draft is tried once */
	begin(false);                       /* an empty one denies */
	assert_int_equal(commit(), 0);
	assert_int_equal(check("8.8.8.8", 1), POLICY_ADDRESS);
}

static void test_operator(void **state)
{
	(void)state;
	assert_int_equal(operator_says("deny 8.8.4.0/24\nprivate 10.1.0.0/16\n[a]\n10.1.0.0/16\n"),
			 0);
	begin(true);
	rule("8.8.4.4", 0);
	rule("10.2.0.0/16", 0);
	use("a");
	assert_int_equal(commit(), 0);
	assert_int_equal(check("8.8.4.4", 1), POLICY_OPERATOR);
	assert_int_equal(check("10.1.0.1", 1), POLICY_ALLOWED);
	assert_int_equal(check("10.2.0.1", 1), POLICY_PRIVATE);
	/* It changes under boxes that hold a policy. */
	assert_int_equal(operator_says("deny 9.9.9.9\n[a]\n"), 0);
	assert_int_equal(n_rechecks, 2);
	assert_int_equal(check("8.8.4.4", 1), POLICY_ALLOWED);
	assert_int_equal(check("9.9.9.9", 1), POLICY_OPERATOR);
	assert_int_equal(check("10.1.0.1", 1), POLICY_PRIVATE);
	assert_false(box.denies_names);
	assert_int_equal(operator_says("deny 9.9.9.9\ndeny *.example.com:443\n[a]\n"), 0);
	assert_true(box.denies_names);
	/* What cannot be read changes nothing. */
	assert_true(operator_says("this is no rule\n") < 0);
	assert_int_equal(check("9.9.9.9", 1), POLICY_OPERATOR);
	/* A set that is gone might have denied something. */
	assert_int_equal(operator_says("[b]\n"), 0);
	assert_int_equal(check("8.8.8.8", 1), POLICY_NO_POLICY);
	assert_int_equal(operator_says("[a]\n"), 0);
	assert_int_equal(check("8.8.8.8", 1), POLICY_ALLOWED);
}

/* The machine's own addresses, in whatever form. */
static void test_own_addresses(void **state)
{
	(void)state;
	own_address = address("8.8.8.8");
	begin(true);
	rule("8.8.8.8", 0);
	assert_int_equal(commit(), 0);
	assert_int_equal(check("8.8.8.8", 1), POLICY_PRIVATE);
	assert_int_equal(check("64:ff9b::808:808", 1), POLICY_PRIVATE);
	assert_int_equal(check("8.8.8.9", 1), POLICY_ALLOWED);
	assert_int_equal(operator_says("private 8.8.8.8\n"), 0);
	assert_int_equal(check("8.8.8.8", 1), POLICY_ALLOWED);
}

static void count_header(const struct net_header *h, void *arg)
{
	unsigned *n = arg;

	assert_string_equal(h->value, "secret");
	*n += 1;
}

static unsigned headers_for(const char *host)
{
	unsigned n = 0;

	net_headers_for(&box, host, count_header, &n);
	return n;
}

static void test_headers(void **state)
{
	static struct egress_header h = { .name = "X", .value = "secret" };

	(void)state;
	begin(false);
	memcpy(h.host, ".example.com", 13);
	apply_header(&box, &h);
	memcpy(h.host, "a.example.com", 14);
	apply_header(&box, &h);
	assert_int_equal(headers_for("a.example.com"), 0); /* not yet */
	assert_int_equal(commit(), 0);
	/* its own, not also those of all below the domain */
	assert_int_equal(headers_for("a.example.com"), 1);
	assert_int_equal(headers_for("b.a.example.com"), 1);
	assert_int_equal(headers_for("b.example.com"), 1);
	assert_int_equal(headers_for("example.com"), 0);
	assert_int_equal(headers_for("evilexample.com"), 0);
	begin(false);
	for (size_t i = 0; i <= EGRESS_HEADERS_MAX; i++)
		apply_header(&box, &h);
	assert_int_equal(commit(), E2BIG);
	assert_int_equal(headers_for("b.example.com"), 1);
	begin(false);
	assert_int_equal(commit(), 0);
	assert_int_equal(headers_for("b.example.com"), 0);
}

static void add_header(const char *host, const char *value)
{
	static struct egress_header h;

	h = (struct egress_header){ .name = "X" };
	(void)snprintf(h.host, sizeof(h.host), "%s", host);
	(void)snprintf(h.value, sizeof(h.value), "%s", value);
	apply_header(&box, &h);
}

/* A box's values are together, each of them once, and there is an end to them. */
static void test_header_values(void **state)
{
	char value[EGRESS_HEADER_VALUE_SIZE];

	(void)state;
	memset(value, 'x', sizeof(value));
	value[8000] = '\0';
	begin(false);
	for (size_t i = 0; i < EGRESS_HEADERS_MAX; i++)
		add_header(i % 2 ? "a.example" : "b.example", i % 2 ? value : "y");
	assert_int_equal(commit(), 0);
	assert_ptr_equal(box.headers[0].value, box.headers[198].value);
	assert_ptr_equal(box.headers[1].value, box.headers[199].value);
	assert_string_equal(box.headers[0].value, "y");
	assert_string_equal(box.headers[199].value, value);
	assert_in_range(box.headers[1].value - box.headers[0].value, 1, EGRESS_HEADER_VALUES_MAX);
	begin(false);
	for (size_t i = 0; i < 9; i++) { /* different ones */
		value[0] = (char)('a' + i);
		add_header("a.example", value);
	}
	add_header("b.example", "y");
	assert_int_equal(commit(), E2BIG);
	assert_int_equal(box.n_headers, EGRESS_HEADERS_MAX);
}

/* --- names ----------------------------------------------------------------------------------------------------- */

static void ended(struct egress *e, struct resolve *q)
{
	(void)e;
	(void)q;
	n_ended++;
}

static void allow_example(void)
{
	begin(false);
	rule("*.example.com", 0);
	assert_int_equal(commit(), 0);
}

static void arrive(struct lookup *l, const char *text)
{
	l->addresses[0] = text ? address(text) : (struct net_address){ { 0 } };
	l->n_addresses = text ? 1 : 0;
	l->reason = text ? POLICY_ALLOWED : POLICY_RESOLVE;
	l->ttl_s = 60;
	l->waiting = 0;
	lookup_ended(&g, l);
}

static void ask(struct resolve *q, const char *name, uint16_t port)
{
	resolve_start(&g, &box, name, port, q, ended);
}

/* NW-16: a name that no rule names is never looked up. */
static void test_not_asked(void **state)
{
	struct resolve q;

	(void)state;
	ask(&q, "a.example.com", 443);
	assert_int_equal(q.reason, POLICY_NO_POLICY);
	allow_example();
	ask(&q, "example.org", 443);
	assert_int_equal(q.reason, POLICY_NOT_ALLOWED);
	ask(&q, "a.example.com", 22);
	assert_int_equal(q.reason, POLICY_PORT_NOT_ALLOWED);
	begin(true);
	assert_int_equal(commit(), 0);
	ask(&q, "localhost", 443); /* NW-04 */
	assert_int_equal(q.reason, POLICY_PRIVATE);
	ask(&q, "a.localhost", 443);
	assert_int_equal(q.reason, POLICY_PRIVATE);
	assert_int_equal(n_started, 0);
	assert_int_equal(n_ended, 5);
}

static void test_cache(void **state)
{
	struct resolve a, b, c;

	(void)state;
	allow_example();
	ask(&a, "c1.example.com", 443);
	ask(&b, "c1.example.com", 443);
	ask(&c, "c1.example.com", 443);
	assert_int_equal(n_started, 1); /* one lookup for all */
	resolve_cancel(&g, &b);
	resolve_cancel(&g, &b);
	arrive(started, "8.8.8.8");
	assert_int_equal(n_ended, 2);
	assert_int_equal(a.reason, POLICY_ALLOWED);
	assert_true(a.by_name);
	assert_int_equal(c.n_addresses, 1);
	ask(&b, "c1.example.com", 80); /* from the cache */
	assert_int_equal(b.reason, POLICY_ALLOWED);
	assert_in_range(b.ttl_s, 1, 60);
	assert_int_equal(n_started, 1);
	started->until_us = 1; /* its time is over */
	ask(&b, "c1.example.com", 80);
	assert_int_equal(n_started, 2);
	arrive(started, NULL);
	assert_int_equal(b.reason, POLICY_RESOLVE);
	assert_int_equal(b.n_addresses, 0);
	ask(&b, "c1.example.com", 80); /* failures are believed for a moment */
	assert_int_equal(n_started, 2);
	assert_int_equal(b.reason, POLICY_RESOLVE);
}

/* What was allowed when it was asked is not, when the answer comes. */
static void test_change_under_way(void **state)
{
	struct resolve q;

	(void)state;
	allow_example();
	ask(&q, "u1.example.com", 443);
	begin(false);
	assert_int_equal(commit(), 0);
	arrive(started, "8.8.8.8");
	assert_int_equal(q.reason, POLICY_NOT_ALLOWED);
	assert_int_equal(q.n_addresses, 0);
}

static void test_private_answer(void **state)
{
	struct resolve q;

	(void)state;
	allow_example();
	ask(&q, "p1.example.com", 443);
	arrive(started, "127.0.0.1");
	assert_int_equal(q.reason, POLICY_PRIVATE);
	ask(&q, "p2.example.com", 443);
	started->n_addresses = 1; /* NW-08: one good, one bad */
	started->addresses[1] = address("10.0.0.1");
	started->addresses[0] = address("8.8.8.8");
	started->n_addresses = 2;
	started->reason = POLICY_ALLOWED;
	started->waiting = 0;
	lookup_ended(&g, started);
	assert_int_equal(q.reason, POLICY_PRIVATE);
	assert_int_equal(q.n_addresses, 0);
}

/* NW-17 */
static void test_budget(void **state)
{
	char name[POLICY_NAME_SIZE];
	struct resolve q;

	(void)state;
	allow_example();
	box.limits.lookups = 10;
	for (unsigned i = 0; i < 20; i++) {
		(void)snprintf(name, sizeof(name), "b%u.example.com", i);
		ask(&q, name, 443);
		if (i < 10)
			arrive(started, "8.8.8.8");
		assert_int_equal(q.reason, i < 10 ? POLICY_ALLOWED : POLICY_LOOKUPS);
	}
	ask(&q, "b3.example.com", 443); /* what is known costs nothing */
	assert_int_equal(q.reason, POLICY_ALLOWED);
	box.minute_us -= 61 * 1000000ull;
	ask(&q, "b15.example.com", 443);
	arrive(started, "8.8.8.8");
	assert_int_equal(q.reason, POLICY_ALLOWED);
}

/* A box whose names are never answered has few of them under way, and none when it is gone. */
static void test_under_way(void **state)
{
	static struct resolve q[100];
	char name[POLICY_NAME_SIZE];
	size_t refused = 0;

	(void)state;
	allow_example();
	for (size_t i = 0; i < ARRAY_SIZE(q); i++) {
		(void)snprintf(name, sizeof(name), "w%zu.example.com", i);
		ask(&q[i], name, 443);
		refused += q[i].reason == POLICY_LOOKUPS;
		if (i == 0)
			arrive(started, "8.8.8.8"); /* this one does not count any more */
	}
	assert_int_equal(refused, ARRAY_SIZE(q) - 65);
	assert_int_equal(box.n_lookups, 64);
	for (size_t i = 0; i < ARRAY_SIZE(q); i++)
		resolve_cancel(&g, &q[i]);
	assert_int_equal(box.n_lookups, 64); /* nobody waits, but they are under way */
	resolve_disown(&box);
	assert_int_equal(box.n_lookups, 0);
	arrive(started, "8.8.8.8"); /* of a box that is gone */
	assert_int_equal(box.n_lookups, 0);
}

/* The others have taken every place: a box still has two lookups, one after the other, and what is too much goes again. */
static void share_full_cache(void)
{
	struct resolve q[3];
	struct lookup *l[2];

	resolve_disown(&box);
	ask(&q[0], "s0.example.com", 443);
	l[0] = started;
	ask(&q[1], "s1.example.com", 443);
	l[1] = started;
	ask(&q[2], "s2.example.com", 443);
	assert_int_equal(q[0].reason, 0);
	assert_int_equal(q[1].reason, 0);
	assert_int_equal(q[2].reason, POLICY_BUSY);
	arrive(l[0], "8.8.8.8");
	arrive(l[1], "8.8.8.8");
	assert_int_equal(q[1].reason, POLICY_ALLOWED);
	ask(&q[2], "s2.example.com", 443);
	assert_int_equal(q[2].reason, 0);
	n_started = 0;
	ask(&q[1], "s1.example.com", 443); /* both were forgotten for it */
	assert_int_equal(n_started, 1);
	resolve_cancel(&g, &q[1]);
	resolve_cancel(&g, &q[2]);
}

/* However many names there are, the memory for them is bounded; those under way are not thrown away. */
static void test_full_cache(void **state)
{
	static struct resolve q[5000];
	char name[POLICY_NAME_SIZE];
	size_t busy = 0;
	struct lookup *first;

	(void)state;
	allow_example();
	ask(&q[0], "first.example.com", 443);
	first = started;
	for (size_t i = 1; i < ARRAY_SIZE(q); i++) {
		(void)snprintf(name, sizeof(name), "f%zu.example.com", i);
		resolve_disown(&box); /* as if they were many boxes */
		box.n_lookups = 2;    /* that have some under way already */
		ask(&q[i], name, 443);
		box.n_lookups -= 2;
		busy += q[i].reason == POLICY_BUSY;
	}
	assert_in_range(busy, ARRAY_SIZE(q) - 4096, ARRAY_SIZE(q) - 3900);
	arrive(first, "8.8.8.8");
	assert_int_equal(q[0].reason, POLICY_ALLOWED);
	ask(&q[0], "late.example.com", 443); /* has the place of the first */
	assert_int_equal(q[0].reason, 0);
	share_full_cache();
	resolve_cancel(&g, &q[0]);
	for (size_t i = 1; i < ARRAY_SIZE(q); i++)
		resolve_cancel(&g, &q[i]);
}

static void test_told(void **state)
{
	struct net_address a = address("8.8.8.8"), b = address("9.9.9.9");
	char name[POLICY_NAME_SIZE];

	(void)state;
	begin(false);
	rule("git.example.com:22", 0);
	rule("*.example.com:443", 0);
	assert_int_equal(commit(), 0);
	assert_false(told_name(&box, &a, 22, true, name));
	told_add(&box, "git.example.com", &a, 1);
	told_add(&box, "www.example.com", &a, 1);
	assert_true(told_name(&box, &a, 22, true, name));
	assert_string_equal(name, "git.example.com");
	assert_true(name_ok(name)); /* NULs behind */
	assert_true(told_name(&box, &a, 443, true, name));
	assert_false(told_name(&box, &a, 25, true, name));
	assert_false(told_name(&box, &b, 22, true, name));
	for (unsigned i = 0; i < 2000; i++) {
		b.bytes[14] = (uint8_t)(i >> 8);
		b.bytes[15] = (uint8_t)i;
		told_add(&box, "www.example.com", &b, 1);
	}
	assert_false(told_name(&box, &a, 22, true, name)); /* the oldest are forgotten */
	assert_true(told_name(&box, &b, 443, true, name));
	begin(false);
	assert_int_equal(commit(), 0);
	assert_false(told_name(&box, &b, 443, true, name)); /* not allowed any more */
}

/* Where everything is allowed, a name that no rule names opens no address that is denied. */
static void test_told_by_rule(void **state)
{
	struct net_address a = address("45.67.90.20");
	char name[POLICY_NAME_SIZE];

	(void)state;
	begin(true);
	rule("45.67.90.20:22", RULE_DENY);
	rule("git.example.com:22", 0);
	assert_int_equal(commit(), 0);
	told_add(&box, "git.example.com", &a, 1);
	told_add(&box, "mine.example.org", &a, 1);
	assert_true(told_name(&box, &a, 22, false, name)); /* for people */
	assert_string_equal(name, "mine.example.org");
	assert_true(told_name(&box, &a, 22, true, name));
	assert_string_equal(name, "git.example.com");
	assert_false(told_name(&box, &a, 80, true, name));
	assert_true(told_as(&box, &a, 22, "git.example.com"));
	assert_false(told_as(&box, &a, 22, "mine.example.org"));
}

/* Many names with one address: the newest that is allowed is found without asking about the older ones. */
static void test_told_newest(void **state)
{
	struct net_address a = address("8.8.8.8");
	char name[POLICY_NAME_SIZE];

	(void)state;
	begin(false);
	rule("*.example.com:443", 0);
	rule("n7.example.com:22", 0);
	assert_int_equal(commit(), 0);
	for (unsigned i = 0; i < 1500; i++) { /* more than are remembered */
		(void)snprintf(name, sizeof(name), "n%u.example.com", i);
		told_add(&box, name, &a, 1);
	}
	n_judged = 0;
	assert_true(told_name(&box, &a, 443, true, name));
	assert_string_equal(name, "n1499.example.com");
	assert_int_equal(n_judged, 1);
	told_add(&box, "n700.example.com", &a, 1); /* once more */
	told_add(&box, "n7.example.com", &a, 1);
	told_add(&box, "n8.example.org", &a, 1); /* not allowed */
	n_judged = 0;
	assert_true(told_name(&box, &a, 443, true, name));
	assert_string_equal(name, "n7.example.com");
	assert_int_equal(n_judged, 2);
	told_add(&box, "n700.example.com", &a, 1);
	assert_true(told_name(&box, &a, 443, true, name));
	assert_string_equal(name, "n700.example.com");
	assert_true(told_name(&box, &a, 22, true, name));
	assert_string_equal(name, "n7.example.com");
}

/* --- the log ----------------------------------------------------------------------------------------------------- */

static void test_report(void **state)
{
	struct egress_event e = { .how = EGRESS_HOW_DNS, .reason = POLICY_ALLOWED };

	(void)state;
	assert_int_equal(report(&g, &box, &e), 1);
	assert_string_equal(last_event.id, "box");
	assert_true(last_event.at_ms > 0);
	assert_int_equal(report(&g, &box, &e), 1); /* has its number already */
	e.number = 0;
	event_result = -EAGAIN;
	assert_int_equal(report(&g, &box, &e), 0); /* nobody knows of number 2 */
	e.number = 0;
	event_result = 0;
	assert_int_equal(report(&g, &box, &e), 3);
	assert_int_equal(last_event.missed, 1);
	for (unsigned i = 0; i < 10000; i++)
		(void)report(&g, &box, &e);
	assert_in_range(n_events, 1990, 5000); /* of one box */
	assert_true(box.missed > 4000);
}

static int open_cache(void **state)
{
	struct fail fail;

	(void)state;
	return resolve_open(&g, "", &fail);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_no_policy),      TEST(test_rulesets),
		TEST(test_old_stays),      TEST(test_operator),
		TEST(test_own_addresses),  TEST(test_headers),
		TEST(test_header_values),  TEST(test_not_asked),
		TEST(test_cache),          TEST(test_change_under_way),
		TEST(test_private_answer), TEST(test_budget),
		TEST(test_told),           TEST(test_told_newest),
		TEST(test_told_by_rule),   TEST(test_report),
		TEST(test_under_way),      TEST(test_full_cache),
	};

	return cmocka_run_group_tests(tests, open_cache, NULL);
}
