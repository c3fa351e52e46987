/* SPDX-License-Identifier: Apache-2.0 */
/* What a host says in TLS beside its data: a little is passed over, a flood of it ends the connection. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <gnutls/gnutls.h>
#include <sys/socket.h>

#include "egress/flow/conn.h"

#define PRIORITIES "NORMAL:-VERS-ALL:+VERS-TLS1.2:-KX-ALL:+ANON-ECDH"
#define FEW 8
#define MANY 100

static struct conn conn; /* has the client's side */
static gnutls_session_t host;
static int host_fd;
static gnutls_anon_client_credentials_t client_credentials;
static gnutls_anon_server_credentials_t host_credentials;

static gnutls_session_t session(unsigned side, void *credentials, int fd)
{
	gnutls_session_t s;

	assert_int_equal(gnutls_init(&s, side | GNUTLS_NONBLOCK | GNUTLS_NO_SIGNAL), 0);
	assert_int_equal(gnutls_priority_set_direct(s, PRIORITIES, NULL), 0);
	assert_int_equal(gnutls_credentials_set(s, GNUTLS_CRD_ANON, credentials), 0);
	gnutls_transport_set_int(s, fd);
	return s;
}

static int set_up(void **state)
{
	int pair[2];

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair),
			 0);
	assert_int_equal(gnutls_anon_allocate_client_credentials(&client_credentials), 0);
	assert_int_equal(gnutls_anon_allocate_server_credentials(&host_credentials), 0);
	host_fd = pair[1];
	host = session(GNUTLS_SERVER, host_credentials, host_fd);
	conn = (struct conn){ .host_fd = pair[0],
			      .tls = session(GNUTLS_CLIENT, client_credentials, pair[0]) };
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	tls_done(&conn);
	gnutls_deinit(host);
	gnutls_anon_free_client_credentials(client_credentials);
	gnutls_anon_free_server_credentials(host_credentials);
	fd_close(conn.host_fd);
	fd_close(host_fd);
	return 0;
}

static void shake_hands(void)
{
	int client = 0, server = GNUTLS_E_AGAIN;
	uint32_t events;

	for (unsigned i = 0; i < 20 && (client == 0 || server != 0); i++) {
		if (client == 0)
			client = tls_step(&conn, &events);
		if (server != 0)
			server = gnutls_handshake(host);
	}
	assert_int_equal(client, 1);
	assert_int_equal(server, 0);
}

static void warn(unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		assert_int_equal(
			gnutls_alert_send(host, GNUTLS_AL_WARNING, GNUTLS_A_UNRECOGNIZED_NAME), 0);
}

/* Before there are keys an alert is what it looks like. */
static void warn_in_clear(unsigned n)
{
	static const unsigned char alert[] = {
		21, 3, 3, 0, 2, GNUTLS_AL_WARNING, GNUTLS_A_UNRECOGNIZED_NAME
	};

	for (unsigned i = 0; i < n; i++)
		assert_int_equal(write(host_fd, alert, sizeof(alert)), sizeof(alert));
}

static void test_few(void **state)
{
	uint32_t events;
	char data[8];

	(void)state;
	assert_int_equal(tls_step(&conn, &events), 0);
	warn_in_clear(FEW);
	shake_hands();
	warn(FEW);
	assert_int_equal(tls_recv(&conn, data, sizeof(data)), -EAGAIN);
	warn(FEW);
	assert_int_equal(gnutls_record_send(host, "hello", 5), 5);
	assert_int_equal(tls_recv(&conn, data, sizeof(data)), 5);
	assert_memory_equal(data, "hello", 5);
}

static void test_warnings(void **state)
{
	char data[8];

	(void)state;
	shake_hands();
	warn(MANY);
	assert_int_equal(tls_recv(&conn, data, sizeof(data)), -ECONNRESET);
}

static void test_new_handshakes(void **state)
{
	char data[8];

	(void)state;
	shake_hands();
	for (unsigned i = 0; i < MANY; i++)
		assert_int_equal(gnutls_rehandshake(host), 0);
	assert_int_equal(tls_recv(&conn, data, sizeof(data)), -ECONNRESET);
}

static void test_warnings_in_handshake(void **state)
{
	uint32_t events;

	(void)state;
	assert_int_equal(tls_step(&conn, &events), 0);
	warn_in_clear(MANY);
	assert_int_equal(tls_step(&conn, &events), -EPROTO);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_few, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_warnings, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_new_handshakes, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_warnings_in_handshake, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
