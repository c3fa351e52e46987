/* SPDX-License-Identifier: Apache-2.0 */
/* Which address is dialed, and what the proxy of the machine's network is asked for. All of it on loopback. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <poll.h>
#include <sys/socket.h>

#include "egress/flow/conn.h"

#define WAIT_MS 10000

static struct egress g;
static struct conn conn;
static struct net_address denied;
static enum policy_reason refused;
static bool is_connected;
static int host; /* that listens at 127.0.0.1, */
static uint16_t port;

/* --- instead of the other files -------------------------------------------------------------------------------- */

enum policy_reason conn_check(struct egress *e, struct conn *c, const struct net_address *a)
{
	(void)e;
	(void)c;
	return address_equal(a, &denied) ? POLICY_DENIED : POLICY_ALLOWED;
}

void conn_refuse(struct egress *e, struct conn *c, enum policy_reason reason)
{
	(void)e;
	(void)c;
	refused = reason;
}

void conn_drop_host(struct egress *e, struct conn *c)
{
	(void)e;
	c->host_fd = fd_close(c->host_fd);
}

void conn_want_client(struct egress *e, struct conn *c, uint32_t events)
{
	(void)e;
	(void)c;
	(void)events;
}

void conn_want_host(struct egress *e, struct conn *c, uint32_t events)
{
	(void)e;
	(void)c;
	(void)events;
}

void timer_set(struct loop *l, struct timer *t, uint64_t at_us)
{
	(void)l;
	t->at_us = at_us;
}

void step_connected(struct egress *e, struct conn *c)
{
	(void)e;
	(void)c;
	is_connected = true;
}

int tls_begin(struct egress *e, struct conn *c)
{
	(void)e;
	(void)c;
	return -EPROTO;
}

int tls_step(struct conn *c, uint32_t *ret_events)
{
	(void)c;
	*ret_events = 0;
	return -EPROTO;
}

/* --- helpers ------------------------------------------------------------------------------------------------- */

static struct net_address address(const char *text)
{
	struct net_address a;

	assert_int_equal(address_parse(text, strlen(text), &a), 0);
	return a;
}

static void listen_here(void)
{
	const struct net_address here = address("127.0.0.1");
	struct sockaddr_storage at;
	socklen_t len = address_to_sockaddr(&here, 0, &at);
	struct net_address a;

	host = socket(at.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(host, (struct sockaddr *)&at, len), 0);
	assert_int_equal(listen(host, 1), 0);
	assert_int_equal(getsockname(host, (struct sockaddr *)&at, &len), 0);
	assert_int_equal(address_from_sockaddr((struct sockaddr *)&at, &a, &port), 0);
}

static int set_up(void **state)
{
	(void)state;
	listen_here();
	g = (struct egress){ 0 };
	conn = (struct conn){ .host_fd = -EBADF };
	denied = (struct net_address){ { 0 } };
	refused = 0;
	is_connected = false;
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	fd_close(conn.host_fd);
	fd_close(host);
	return 0;
}

static void go_on(void)
{
	while (conn.step == STEP_DIAL && !refused && !is_connected) {
		struct pollfd p = { .fd = conn.host_fd, .events = POLLOUT };

		assert_int_equal(poll(&p, 1, WAIT_MS), 1);
		dial_ready(&g, &conn);
	}
}

static void dial(void)
{
	dial_begin(&g, &conn);
	go_on();
}

/* What comes from the proxy's client, up to an empty line. */
static void read_request(char *ret, size_t size)
{
	struct pollfd p = { .fd = host, .events = POLLIN };
	size_t len = 0;
	ssize_t n = 1;
	int fd;

	assert_int_equal(poll(&p, 1, WAIT_MS), 1);
	fd = accept4(host, NULL, NULL, SOCK_CLOEXEC);
	assert_true(fd >= 0);
	while (n > 0 && (len < 4 || memcmp(ret + len - 4, "\r\n\r\n", 4) != 0)) {
		n = recv(fd, ret + len, size - 1 - len, 0);
		len += (size_t)MAX(n, (ssize_t)0);
	}
	ret[len] = '\0';
	fd_close(fd);
}

static void use_proxy(bool resolves)
{
	const struct net_address here = address("127.0.0.1");

	(void)address_to_sockaddr(&here, port, &g.proxy);
	g.proxy_resolves = resolves;
	conn.target.port = 443;
	memcpy(conn.target.name, "web.example", sizeof("web.example"));
	conn.resolve.addresses[0] = address("45.67.90.10");
	conn.resolve.n_addresses = 1;
}

/* --- the tests ------------------------------------------------------------------------------------------------ */

/* The rules change while the first address does not answer: the second is no longer allowed. */
static void test_denied_meanwhile(void **state)
{
	(void)state;
	conn.target.port = port;
	conn.resolve.addresses[0] = address("127.0.0.2"); /* nobody listens there */
	conn.resolve.addresses[1] = denied = address("127.0.0.1");
	conn.resolve.n_addresses = 2;
	dial_begin(&g, &conn);
	if (!refused)
		dial_due(&g, &conn);
	assert_int_equal(refused, POLICY_DENIED);
	assert_int_equal(accept4(host, NULL, NULL, SOCK_CLOEXEC), -1);
	assert_int_equal(errno, EAGAIN);
}

static void test_next_address(void **state)
{
	(void)state;
	conn.target.port = port;
	conn.resolve.addresses[0] = address("127.0.0.2");
	conn.resolve.addresses[1] = address("127.0.0.1");
	conn.resolve.n_addresses = 2;
	dial();
	assert_true(is_connected);
	assert_int_equal(refused, 0);
	assert_true(address_equal(&conn.address, &conn.resolve.addresses[1]));
	assert_int_equal(conn.reason, POLICY_ALLOWED);
}

static void test_proxy_gets_address(void **state)
{
	char request[512];

	(void)state;
	use_proxy(false);
	dial();
	read_request(request, sizeof(request));
	assert_string_equal(request,
			    "CONNECT 45.67.90.10:443 HTTP/1.1\r\nHost: 45.67.90.10:443\r\n\r\n");
}

static void test_proxy_resolves(void **state)
{
	char request[512];

	(void)state;
	use_proxy(true);
	dial();
	read_request(request, sizeof(request));
	assert_string_equal(request,
			    "CONNECT web.example:443 HTTP/1.1\r\nHost: web.example:443\r\n\r\n");
}

/* The proxy says nothing about the first address: it is asked for the next one, while there is time. */
static void test_proxy_hangs(void **state)
{
	char request[512];

	(void)state;
	use_proxy(false);
	conn.resolve.addresses[1] = address("45.67.90.11");
	conn.resolve.n_addresses = 2;
	dial();
	read_request(request, sizeof(request));
	assert_memory_equal(request, "CONNECT 45.67.90.10:443 ", 24);
	assert_int_equal(conn.step, STEP_UPSTREAM);
	assert_true(conn.timer.at_us < conn.dial_until_us);
	dial_due(&g, &conn);
	assert_int_equal(refused, 0);
	go_on();
	read_request(request, sizeof(request));
	assert_memory_equal(request, "CONNECT 45.67.90.11:443 ", 24);
	assert_int_equal(conn.timer.at_us, conn.dial_until_us); /* it gets the rest */
	dial_due(&g, &conn);
	assert_int_equal(refused, POLICY_UPSTREAM);
}

/* A request in the clear. */
static void test_proxy_in_clear(void **state)
{
	static struct http_head head;
	char request[512];

	(void)state;
	conn.head = &head;
	use_proxy(true);
	dial();
	assert_true(is_connected); /* given to it as it is */
	conn_drop_host(&g, &conn);
	fd_close(accept4(host, NULL, NULL, SOCK_CLOEXEC));
	is_connected = false;
	use_proxy(false);
	dial();
	assert_false(is_connected);
	read_request(request, sizeof(request));
	assert_memory_equal(request, "CONNECT 45.67.90.10:443 ", 24);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_denied_meanwhile), TEST(test_next_address), TEST(test_proxy_gets_address),
		TEST(test_proxy_resolves),   TEST(test_proxy_hangs),  TEST(test_proxy_in_clear),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
