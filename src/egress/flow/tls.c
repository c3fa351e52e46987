/* SPDX-License-Identifier: Apache-2.0 */
/*
 * TLS towards a host, for requests that rules add headers to: the certificate must be good for the
 * name, or nothing is sent. The certificates that are trusted are read as text while there are
 * files; they become real, and cost memory, when the first such request comes.
 */
#include "egress/flow/conn.h"

#include <fcntl.h>
#include <gnutls/gnutls.h>
#include <sys/epoll.h>

#define BUNDLE_MAX ((size_t)4 << 20)
#define NOISE_MAX                                                                                  \
	16 /* in one go; a host that has so much to say beside its data holds up all boxes */
#define PRIORITIES "SECURE128:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2"

struct trust {
	struct buf text; /* PEM */
	gnutls_certificate_credentials_t credentials;
	gnutls_priority_t priorities;
};

static const char *const bundles[] = {
	"/etc/ssl/certs/ca-certificates.crt", /* Debian and its kin, Arch, Alpine */
	"/etc/pki/tls/certs/ca-bundle.crt",   /* Fedora */
	"/etc/ssl/ca-bundle.pem",             /* SUSE */
};

static int add_file(struct trust *t, const char *path)
{
	_cleanup_(fd_closep) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);

	if (fd < 0)
		return -errno;
	return buf_read_fd(&t->text, fd);
}

int tls_open(struct egress *g, const char *ca_bundle, struct fail *fail)
{
	struct trust *t = calloc(1, sizeof(*t));
	int r = t ? 0 : -ENOMEM;

	if (!t)
		return fail_set(fail, -r, "certificates", "no memory");
	t->text.max = BUNDLE_MAX;
	g->tls = t;
	/* Without the machine's own, only what the operator adds is trusted, and perhaps nobody. */
	for (size_t i = 0; i < ARRAY_SIZE(bundles); i++)
		if (add_file(t, bundles[i]) == 0)
			break;
	if (ca_bundle[0])
		r = buf_add(&t->text, "\n", 1);
	if (r == 0 && ca_bundle[0])
		r = add_file(t, ca_bundle);
	if (r < 0)
		return fail_set(fail, -r, "certificates", "egress.ca_bundle: cannot read %s: %s",
				ca_bundle, strerror(-r));
	return 0;
}

static int tls_prepare(struct trust *t)
{
	gnutls_datum_t text = { .data = t->text.data, .size = (unsigned)t->text.len };

	if (t->credentials)
		return 0;
	if (gnutls_priority_init(&t->priorities, PRIORITIES, NULL) < 0)
		return -ENOMEM;
	if (gnutls_certificate_allocate_credentials(&t->credentials) < 0) {
		gnutls_priority_deinit(t->priorities);
		t->credentials = NULL;
		return -ENOMEM;
	}
	/* A certificate in the middle that cannot be read does not take the others with it. */
	if (text.size)
		(void)gnutls_certificate_set_x509_trust_mem(t->credentials, &text,
							    GNUTLS_X509_FMT_PEM);
	return 0;
}

static int set_up(gnutls_session_t s, const struct trust *t, struct conn *c)
{
	const gnutls_datum_t protocol = { .data = (unsigned char[]){ "http/1.1" },
					  .size = sizeof("http/1.1") - 1 };
	const char *name = c->target.name;

	if (gnutls_priority_set(s, t->priorities) < 0 ||
	    gnutls_credentials_set(s, GNUTLS_CRD_CERTIFICATE, t->credentials) < 0 ||
	    gnutls_server_name_set(s, GNUTLS_NAME_DNS, name, strlen(name)) < 0 ||
	    gnutls_alpn_set_protocols(s, &protocol, 1, 0) < 0)
		return -EPROTO;
	gnutls_session_set_verify_cert(s, name, 0);
	gnutls_transport_set_int(s, c->host_fd);
	gnutls_handshake_set_timeout(s, GNUTLS_INDEFINITE_TIMEOUT); /* the connection has a timer */
	return 0;
}

int tls_begin(struct egress *g, struct conn *c)
{
	struct trust *t = g->tls;
	gnutls_session_t s;
	int r = tls_prepare(t);

	if (r < 0)
		return r;
	if (gnutls_init(&s, GNUTLS_CLIENT | GNUTLS_NONBLOCK | GNUTLS_NO_SIGNAL) < 0)
		return -ENOMEM;
	r = set_up(s, t, c);
	if (r < 0)
		gnutls_deinit(s);
	else
		c->tls = s;
	return r;
}

/* Warnings, wishes for new keys: neither data, nor the end, nor that there is no more. */
static bool is_noise(ssize_t r)
{
	return r < 0 && r != GNUTLS_E_AGAIN && !gnutls_error_is_fatal((int)r);
}

int tls_step(struct conn *c, uint32_t *ret_events)
{
	unsigned n = 0;
	int r;

	do
		r = gnutls_handshake(c->tls);
	while (is_noise(r) && ++n < NOISE_MAX);
	if (r == GNUTLS_E_AGAIN) {
		*ret_events = gnutls_record_get_direction(c->tls) ? EPOLLOUT : EPOLLIN;
		return 0;
	}
	return r < 0 ? -EPROTO : 1;
}

static ssize_t error_of(ssize_t r)
{
	if (r == GNUTLS_E_AGAIN || r == GNUTLS_E_INTERRUPTED)
		return -EAGAIN;
	return gnutls_error_is_fatal((int)r) ? -ECONNRESET : -EAGAIN;
}

ssize_t tls_recv(struct conn *c, void *data, size_t size)
{
	unsigned n = 0;
	ssize_t r;

	/* Keys may change and tickets may come at any time: they are not data. */
	do
		r = gnutls_record_recv(c->tls, data, size);
	while (is_noise(r) && ++n < NOISE_MAX);
	if (is_noise(r))
		return -ECONNRESET;
	/* Many servers leave without a word; the answer's own framing says whether it is whole. */
	if (r == GNUTLS_E_PREMATURE_TERMINATION)
		return 0;
	return r < 0 ? error_of(r) : r;
}

ssize_t tls_send(struct conn *c, const void *data, size_t len)
{
	ssize_t r = gnutls_record_send(c->tls, data, len);

	return r < 0 ? error_of(r) : r;
}

bool tls_has_more(struct conn *c)
{
	return c->tls && gnutls_record_check_pending(c->tls) > 0;
}

void tls_done(struct conn *c)
{
	if (c->tls)
		gnutls_deinit(c->tls);
	c->tls = NULL;
}
