/* SPDX-License-Identifier: Apache-2.0 */
/* A box that asks its DNS more than anybody can answer: it has its share of our time, and no more. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/clock.h"
#include "egress/door/dns.h"

#define MANY 5000
#define TURN 8 /* questions of one door before it is others' turn */
#define PER_SECOND 250
#define BURST 1000

static struct egress g;
static struct net box;
static int door, program;
static size_t n_resolved, n_events;
static struct egress_event last_event;

/* --- instead of the other files -------------------------------------------------------------------------------- */

void resolve_start(struct egress *e, struct net *n, const char *name, uint16_t port,
		   struct resolve *q, void (*done)(struct egress *g, struct resolve *self))
{
	(void)n;
	(void)name;
	(void)port;
	*q = (struct resolve){ .reason = POLICY_ALLOWED, .n_addresses = 1 };
	n_resolved++;
	done(e, q);
}

void resolve_cancel(struct egress *e, struct resolve *q)
{
	(void)e;
	(void)q;
}

bool resolve_is_local(const char *name)
{
	(void)name;
	return false;
}

void told_add(struct net *n, const char *name, const struct net_address *a, size_t n_addresses)
{
	(void)n;
	(void)name;
	(void)a;
	(void)n_addresses;
}

int say_event(const struct egress *e, const struct egress_event *event)
{
	(void)e;
	n_events++;
	last_event = *event;
	return 0;
}

void dns_tcp_send(struct egress *e, struct client *c, const uint8_t *data, size_t len)
{
	(void)e;
	(void)c;
	(void)data;
	(void)len;
}

void dns_tcp_close_all(struct egress *e, struct net *n)
{
	(void)e;
	(void)n;
}

/* ----------------------------------------------------------------------------------------------------------------- */

static int bound(struct sockaddr_in *ret)
{
	socklen_t len = sizeof(*ret);
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	*ret = (struct sockaddr_in){ .sin_family = AF_INET,
				     .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	assert_int_equal(bind(fd, (struct sockaddr *)ret, len), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)ret, &len), 0);
	return fd;
}

static int set_up(void **state)
{
	struct sockaddr_in at;

	(void)state;
	program = bound(&at);
	door = bound(&at);
	assert_int_equal(connect(program, (struct sockaddr *)&at, sizeof(at)), 0);
	box = (struct net){ .id = "box" };
	n_resolved = n_events = 0;
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	dns_done(&g, &box);
	fd_close(program);
	fd_close(door);
	return 0;
}

/* web.example, type A */
static void ask(void)
{
	static const uint8_t query[] = "\x42\x42\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00"
				       "\x03web\x07"
				       "example\x00\x00\x01\x00\x01";

	assert_int_equal(send(program, query, sizeof(query) - 1, 0), sizeof(query) - 1);
}

static void test_turn(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 2 * TURN; i++)
		ask();
	dns_udp_ready(&g, &box, door);
	assert_int_equal(n_resolved, TURN);
	dns_udp_ready(&g, &box, door);
	assert_int_equal(n_resolved, 2 * TURN);
}

static void test_flood(void **state)
{
	uint64_t began = clock_boot_us(), seconds;

	(void)state;
	for (unsigned i = 0; i < MANY; i++) {
		ask();
		dns_udp_ready(&g, &box, door);
	}
	seconds = (clock_boot_us() - began) / 1000000 + 1;
	assert_in_range(n_resolved, BURST, BURST + seconds * PER_SECOND);
	assert_int_equal(last_event.reason, POLICY_LOOKUPS); /* the log says why */
	assert_in_range(n_events, 2, 4 + 4 * seconds);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = { TEST(test_turn), TEST(test_flood) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
