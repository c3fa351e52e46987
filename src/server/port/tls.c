/* SPDX-License-Identifier: Apache-2.0 */
/*
 * TLS to a program in a box (httpsPorts). Its certificate is not looked at: whom we talk with is known from where the
 * socket is, and whoever could be in between could be the program itself.
 */
#include "server/port/port.h"

#include <fcntl.h>
#include <gnutls/gnutls.h>
#include <poll.h>

#define HANDSHAKE_MS 5000 /* between two steps of it */

static gnutls_certificate_credentials_t credentials;

static void make_credentials(void)
{
	if (gnutls_certificate_allocate_credentials(&credentials) < 0)
		credentials = NULL;
}

bool port_speaks_tls(struct sandbox *b, uint32_t port)
{
	const json_t *value;
	bool found = false;
	size_t i;

	pthread_mutex_lock(&b->lock);
	json_array_foreach(
		json_object_get(json_object_get(b->info.config, "network"), "httpsPorts"), i, value)
		found = found || json_integer_value(value) == (json_int_t)port;
	pthread_mutex_unlock(&b->lock);
	return found;
}

static int set_up(struct port_link *l)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	gnutls_session_t session;
	int r;

	(void)pthread_once(&once, make_credentials);
	if (!credentials ||
	    gnutls_init(&session, GNUTLS_CLIENT | GNUTLS_NONBLOCK | GNUTLS_NO_SIGNAL) < 0)
		return -ENOMEM;
	l->tls = session;
	if (fcntl(l->op.sock, F_SETFL, O_NONBLOCK) < 0)
		return -errno;
	r = gnutls_set_default_priority(session);
	if (r == 0)
		r = gnutls_credentials_set(session, GNUTLS_CRD_CERTIFICATE, credentials);
	gnutls_transport_set_int(session, l->op.sock);
	return r < 0 ? -ENOMEM : 0;
}

short port_tls_events(const struct port_link *l)
{
	return gnutls_record_get_direction(l->tls) == 1 ? POLLOUT : POLLIN;
}

int port_tls_start(struct request *r, struct port_link *l)
{
	int n = set_up(l);

	if (n < 0)
		return n;
	for (;;) {
		n = gnutls_handshake(l->tls);
		if (n == 0)
			return 0;
		if (gnutls_error_is_fatal(n))
			return -EPROTO;
		n = port_link_wait(r, l->op.sock, port_tls_events(l), HANDSHAKE_MS);
		if (n <= 0)
			return n < 0 ? n : -ETIMEDOUT;
	}
}

void port_tls_end(struct port_link *l)
{
	if (l->tls)
		gnutls_deinit(l->tls);
	l->tls = NULL;
}

ssize_t port_tls_result(ssize_t n)
{
	if (n >= 0)
		return n;
	if (n == GNUTLS_E_PREMATURE_TERMINATION)
		return 0; /* whether that is an end, HTTP knows */
	return n == GNUTLS_E_AGAIN || n == GNUTLS_E_INTERRUPTED ? -EAGAIN : -EPIPE;
}

ssize_t port_tls_recv(struct port_link *l, char *data, size_t max)
{
	return port_tls_result(gnutls_record_recv(l->tls, data, max));
}

ssize_t port_tls_send(struct port_link *l, const char *data, size_t len)
{
	return port_tls_result(gnutls_record_send(l->tls, data, len));
}
