/* SPDX-License-Identifier: Apache-2.0 */
/* What egress tells of a box, as sums and as a list. */
#include "run/net_log.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static struct egress_event event(uint64_t number, unsigned how, unsigned reason, const char *name)
{
	struct egress_event e = { .id = "i1",
				  .number = number,
				  .at_ms = 1000,
				  .how = how,
				  .reason = reason,
				  .port = 443 };

	(void)snprintf(e.name, sizeof(e.name), "%s", name);
	return e;
}

static void test_two_events_are_one_connection(void **state)
{
	struct net_log l = NET_LOG_INIT(10);
	struct egress_event e = event(1, EGRESS_HOW_CONNECT, POLICY_ALLOWED, "a.test");
	const struct net_connection *c = net_log_add(&l, &e);

	(void)state;
	assert_non_null(c);
	assert_true(c->is_new && !c->is_over);
	e.flags = EGRESS_EVENT_END;
	e.bytes_up = 3;
	e.bytes_down = 4;
	c = net_log_add(&l, &e);
	assert_true(!c->is_new && c->is_over);
	assert_int_equal(l.n, 1);
	assert_int_equal(l.totals.allowed, 1);
	assert_int_equal(l.totals.bytes_up, 3);
	assert_int_equal(l.totals.bytes_down, 4);
	net_log_done(&l);
}

/* The end of one that the ring has no room for any more adds its bytes, and is no second connection. */
static void test_end_of_a_forgotten_one(void **state)
{
	enum { MAX_KEPT = 4 };
	struct net_log l = NET_LOG_INIT(MAX_KEPT);
	struct egress_event e = event(1, EGRESS_HOW_CONNECT, POLICY_ALLOWED, "a.test");

	(void)state;
	assert_non_null(net_log_add(&l, &e));
	for (unsigned n = 2; n < 2 + MAX_KEPT; n++) {
		struct egress_event other =
			event(n, EGRESS_HOW_CONNECT, POLICY_NOT_ALLOWED, "b.test");

		assert_non_null(net_log_add(&l, &other));
	}
	e.flags = EGRESS_EVENT_END;
	e.bytes_up = 3;
	assert_null(net_log_add(&l, &e));
	assert_int_equal(l.totals.allowed, 1);
	assert_int_equal(l.totals.bytes_up, 3);
	net_log_done(&l);
}

/* Its beginning could not be told, or was told to a server before: its end is all that is known, and is kept, whatever
 * came and went in between. */
static void test_end_without_beginning(void **state)
{
	enum { MAX_KEPT = 4, FLOOD = 10 };
	struct net_log l = NET_LOG_INIT(MAX_KEPT);
	struct egress_event before = event(3, EGRESS_HOW_CONNECT, POLICY_CUT, "before.test"),
			    missed = event(100, EGRESS_HOW_SOCKS, POLICY_ALLOWED, "missed.test");
	const struct net_connection *c;

	(void)state;
	before.flags = missed.flags = EGRESS_EVENT_END;
	for (unsigned n = 10; n < 10 + FLOOD; n++) {
		struct egress_event e = event(n, EGRESS_HOW_CONNECT, POLICY_NOT_ALLOWED, "b.test");

		assert_non_null(net_log_add(&l, &e));
	}
	c = net_log_add(&l, &before);
	assert_non_null(c);
	assert_true(c->is_new && c->is_over);
	assert_string_equal(c->name, "before.test");
	assert_int_equal(c->verdict, NET_ALLOWED);
	assert_int_equal(c->reason, POLICY_CUT);
	c = net_log_add(&l, &missed);
	assert_non_null(c);
	assert_true(c->is_new && c->is_over);
	assert_string_equal(c->name, "missed.test");
	assert_int_equal(l.totals.allowed, 2);
	assert_int_equal(l.totals.refused, FLOOD);
	net_log_done(&l);
}

static void test_verdicts(void **state)
{
	struct net_log l = NET_LOG_INIT(10);
	const struct egress_event events[] = {
		event(1, EGRESS_HOW_HTTP, POLICY_ALLOWED, "a.test"),
		event(2, EGRESS_HOW_HTTP, POLICY_NOT_ALLOWED, "b.test"),
		event(3, EGRESS_HOW_CATCH, POLICY_CONNECT, "c.test"),
		event(4, EGRESS_HOW_SOCKS, POLICY_CONNECTIONS, "d.test"),
		event(5, EGRESS_HOW_DNS, POLICY_ALLOWED, "e.test"),
		event(6, EGRESS_HOW_DNS, POLICY_NOT_ALLOWED, "f.test"),
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(events); i++)
		assert_non_null(net_log_add(&l, &events[i]));
	assert_int_equal(l.totals.allowed, 1);
	assert_int_equal(l.totals.refused, 2);
	assert_int_equal(l.totals.failed, 1);
	assert_int_equal(l.totals.lookups, 2);
	assert_int_equal(l.totals.lookups_refused, 1);
	net_log_done(&l);
}

/* The newest stay, in their order, however many there were. */
static void test_ring(void **state)
{
	enum { MAX_KEPT = 50, TOLD = 333 };
	struct net_log l = NET_LOG_INIT(MAX_KEPT);
	json_t *list, *c;
	size_t i;

	(void)state;
	for (unsigned n = 1; n <= TOLD; n++) {
		struct egress_event e = event(n, EGRESS_HOW_CONNECT, POLICY_NOT_ALLOWED, "a.test");

		e.at_ms = n;
		assert_non_null(net_log_add(&l, &e));
	}
	list = net_connections_json(&l, 1000);
	assert_int_equal(json_array_size(list), MAX_KEPT);
	json_array_foreach(list, i, c)
		assert_int_equal(json_integer_value(json_object_get(c, "at_ms")),
				 TOLD - MAX_KEPT + 1 + i);
	json_decref(list);
	list = net_connections_json(&l, 2);
	assert_int_equal(json_array_size(list), 2);
	assert_int_equal(json_integer_value(json_object_get(json_array_get(list, 1), "at_ms")),
			 TOLD);
	json_decref(list);
	assert_int_equal(l.totals.refused, TOLD);
	net_log_done(&l);
}

static void check_target(const char *name, const char *address, uint16_t port, const char *want)
{
	struct net_connection c = { .port = port, .name = name ? strdup(name) : NULL };
	char text[NET_TARGET_SIZE];

	if (address)
		assert_int_equal(address_parse(address, strlen(address), &c.address), 0);
	net_target_text(&c, text);
	assert_string_equal(text, want);
	free(c.name);
}

static void test_targets(void **state)
{
	(void)state;
	check_target("a.test", NULL, 443, "a.test:443");
	check_target("a.test", "192.0.2.1", 443, "a.test:443");
	check_target("a.test", NULL, 0, "a.test");
	check_target(NULL, "192.0.2.1", 22, "192.0.2.1:22");
	check_target(NULL, "2001:db8::1", 22, "[2001:db8::1]:22");
	check_target(NULL, "2001:db8::1", 0, "2001:db8::1");
}

/* Every field that openapi.json promises. */
static void test_fields(void **state)
{
	static const char *const fields[] = { "at_ms",      "name",        "address", "port",
					      "how",        "verdict",     "reason",  "bytes_up",
					      "bytes_down", "duration_ms", "open" };
	struct net_log l = NET_LOG_INIT(4);
	struct egress_event e = event(9, EGRESS_HOW_CATCH, POLICY_NO_SNI, "");
	json_t *list, *c;

	(void)state;
	assert_int_equal(address_parse("192.0.2.7", 9, &e.address), 0);
	assert_non_null(net_log_add(&l, &e));
	list = net_connections_json(&l, 10);
	c = json_array_get(list, 0);
	for (size_t i = 0; i < ARRAY_SIZE(fields); i++)
		assert_non_null(json_object_get(c, fields[i]));
	assert_true(json_is_null(json_object_get(c, "name")));
	assert_string_equal(json_string_value(json_object_get(c, "address")), "192.0.2.7");
	assert_string_equal(json_string_value(json_object_get(c, "verdict")), "refused");
	assert_string_equal(json_string_value(json_object_get(c, "reason")), "no_sni");
	assert_string_equal(json_string_value(json_object_get(c, "how")), "direct");
	json_decref(list);
	net_log_done(&l);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_two_events_are_one_connection),
		cmocka_unit_test(test_end_of_a_forgotten_one),
		cmocka_unit_test(test_end_without_beginning),
		cmocka_unit_test(test_verdicts),
		cmocka_unit_test(test_ring),
		cmocka_unit_test(test_targets),
		cmocka_unit_test(test_fields),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
