/* SPDX-License-Identifier: Apache-2.0 */
#include "client/cert_make.h"

#include <arpa/inet.h>
#include <gnutls/crypto.h>
#include <gnutls/gnutls.h>
#include <gnutls/x509.h>
#include <netinet/in.h>
#include <time.h>

#define DOMAIN_MAX 240 /* with "*." before it still a name */
#define SERIAL_BYTES 16
#define CLOCK_SLACK_S 3600 /* of machines whose clocks are behind ours */

bool cert_domain_ok(const char *domain)
{
	const char *label = domain;

	if (strlen(domain) > DOMAIN_MAX)
		return false;
	for (;;) {
		size_t n = strspn(label, "abcdefghijklmnopqrstuvwxyz0123456789-");

		if (n == 0 || n > 63 || label[0] == '-' || label[n - 1] == '-')
			return false;
		if (label[n] == '\0')
			return true;
		if (label[n] != '.')
			return false;
		label += n + 1;
	}
}

/* --- what the library's calls have in common ------------------------------------------------------------ */

static void key_freep(gnutls_x509_privkey_t *key)
{
	if (*key)
		gnutls_x509_privkey_deinit(*key);
}

static void crt_freep(gnutls_x509_crt_t *crt)
{
	if (*crt)
		gnutls_x509_crt_deinit(*crt);
}

static int new_key(gnutls_x509_privkey_t *ret)
{
	int r = gnutls_x509_privkey_init(ret);

	return r < 0 ? r :
		       gnutls_x509_privkey_generate(
			       *ret, GNUTLS_PK_ECDSA,
			       GNUTLS_CURVE_TO_BITS(GNUTLS_ECC_CURVE_SECP256R1), 0);
}

static int set_serial(gnutls_x509_crt_t crt)
{
	unsigned char serial[SERIAL_BYTES];
	int r = gnutls_rnd(GNUTLS_RND_NONCE, serial, sizeof(serial));

	serial[0] = (unsigned char)((serial[0] & 0x7f) | 0x40); /* positive, and of full length */
	return r < 0 ? r : gnutls_x509_crt_set_serial(crt, serial, sizeof(serial));
}

static int set_key(gnutls_x509_crt_t crt, gnutls_x509_privkey_t key)
{
	unsigned char id[32];
	size_t len = sizeof(id);
	int r = gnutls_x509_crt_set_key(crt, key);

	if (r == 0)
		r = gnutls_x509_crt_get_key_id(crt, 0, id, &len);
	return r == 0 ? gnutls_x509_crt_set_subject_key_id(crt, id, len) : r;
}

/* What every certificate has. */
static int new_certificate(gnutls_x509_crt_t *ret, gnutls_x509_privkey_t key, const char *name)
{
	time_t now = time(NULL);
	int r = gnutls_x509_crt_init(ret);

	if (r == 0)
		r = gnutls_x509_crt_set_version(*ret, 3);
	if (r == 0)
		r = set_serial(*ret);
	if (r == 0)
		r = gnutls_x509_crt_set_activation_time(*ret, now - CLOCK_SLACK_S);
	if (r == 0)
		r = gnutls_x509_crt_set_expiration_time(*ret, now + (time_t)CERT_DAYS * 86400);
	if (r == 0)
		r = gnutls_x509_crt_set_dn_by_oid(*ret, GNUTLS_OID_X520_COMMON_NAME, 0, name,
						  (unsigned)strnlen(name, 64));
	return r == 0 ? set_key(*ret, key) : r;
}

static int sign(gnutls_x509_crt_t crt, gnutls_x509_crt_t issuer, gnutls_x509_privkey_t key)
{
	return gnutls_x509_crt_sign2(crt, issuer, key, GNUTLS_DIG_SHA256, 0);
}

/* --- the two certificates ---------------------------------------------------------------------------------- */

static int make_authority(gnutls_x509_crt_t *ret, gnutls_x509_privkey_t key, const char *domain)
{
	char name[65];
	int r;

	(void)snprintf(name, sizeof(name), "glovebox: %.54s", domain);
	r = new_certificate(ret, key, name);
	if (r == 0)
		r = gnutls_x509_crt_set_basic_constraints(*ret, 1, 0);
	if (r == 0)
		r = gnutls_x509_crt_set_key_usage(*ret, GNUTLS_KEY_KEY_CERT_SIGN);
	return r == 0 ? sign(*ret, *ret, key) : r;
}

static int add_name(gnutls_x509_crt_t crt, const char *name)
{
	return gnutls_x509_crt_set_subject_alt_name(crt, GNUTLS_SAN_DNSNAME, name,
						    (unsigned)strlen(name), GNUTLS_FSAN_APPEND);
}

static int add_names(gnutls_x509_crt_t crt, const char *domain)
{
	static const unsigned char v4[4] = { 127, 0, 0, 1 };
	static const struct in6_addr v6 = IN6ADDR_LOOPBACK_INIT;
	char below[DOMAIN_MAX + 3];
	int r = add_name(crt, domain);

	(void)snprintf(below, sizeof(below), "*.%s", domain);
	if (r == 0)
		r = add_name(crt, below);
	if (r == 0 && strcmp(domain, "localhost") != 0) {
		r = add_name(crt, "localhost");
		if (r == 0)
			r = add_name(crt, "*.localhost");
	}
	if (r == 0)
		r = gnutls_x509_crt_set_subject_alt_name(crt, GNUTLS_SAN_IPADDRESS, v4, sizeof(v4),
							 GNUTLS_FSAN_APPEND);
	return r == 0 ? gnutls_x509_crt_set_subject_alt_name(crt, GNUTLS_SAN_IPADDRESS, &v6,
							     sizeof(v6), GNUTLS_FSAN_APPEND) :
			r;
}

static int make_server(gnutls_x509_crt_t *ret, gnutls_x509_privkey_t key, const char *domain,
		       gnutls_x509_crt_t issuer, gnutls_x509_privkey_t issuer_key)
{
	unsigned char id[64];
	size_t len = sizeof(id);
	int r = new_certificate(ret, key, domain);

	if (r == 0)
		r = add_names(*ret, domain);
	if (r == 0)
		r = gnutls_x509_crt_set_basic_constraints(*ret, 0, -1);
	if (r == 0)
		r = gnutls_x509_crt_set_key_usage(*ret, GNUTLS_KEY_DIGITAL_SIGNATURE);
	if (r == 0)
		r = gnutls_x509_crt_set_key_purpose_oid(*ret, GNUTLS_KP_TLS_WWW_SERVER, 0);
	if (r == 0)
		r = gnutls_x509_crt_get_subject_key_id(issuer, id, &len, NULL);
	if (r == 0)
		r = gnutls_x509_crt_set_authority_key_id(*ret, id, len);
	return r == 0 ? sign(*ret, issuer, issuer_key) : r;
}

static int export_all(gnutls_x509_crt_t ca, gnutls_x509_crt_t cert, gnutls_x509_privkey_t key,
		      struct cert_files *ret)
{
	size_t len = sizeof(ret->ca);
	int r = gnutls_x509_crt_export(ca, GNUTLS_X509_FMT_PEM, ret->ca, &len);

	len = sizeof(ret->cert);
	if (r == 0)
		r = gnutls_x509_crt_export(cert, GNUTLS_X509_FMT_PEM, ret->cert, &len);
	len = sizeof(ret->key);
	return r == 0 ? gnutls_x509_privkey_export(key, GNUTLS_X509_FMT_PEM, ret->key, &len) : r;
}

int cert_make(const char *domain, struct cert_files *ret, struct fail *fail)
{
	_cleanup_(key_freep) gnutls_x509_privkey_t ca_key = NULL;
	_cleanup_(key_freep) gnutls_x509_privkey_t key = NULL;
	_cleanup_(crt_freep) gnutls_x509_crt_t ca = NULL;
	_cleanup_(crt_freep) gnutls_x509_crt_t cert = NULL;
	int r = new_key(&ca_key);

	if (r == 0)
		r = new_key(&key);
	if (r == 0)
		r = make_authority(&ca, ca_key, domain);
	if (r == 0)
		r = make_server(&cert, key, domain, ca, ca_key);
	if (r == 0)
		r = export_all(ca, cert, key, ret);
	return r < 0 ? fail_set(fail, EIO, "certificate", "cannot make a certificate: %s",
				gnutls_strerror(r)) :
		       0;
}
