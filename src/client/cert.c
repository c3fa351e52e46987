/* SPDX-License-Identifier: Apache-2.0 */
/* glovebox cert: a certificate for the service and its sandboxes' addresses, without asking
 * anybody. */
#include "client/client.h"

#include "base/fail.h"

#include <arpa/inet.h>
#include <assert.h>
#include <fcntl.h>
#include <getopt.h>
#include <gnutls/crypto.h>
#include <gnutls/gnutls.h>
#include <gnutls/x509.h>
#include <limits.h>
#include <netinet/in.h>
#include <sys/stat.h>
#include <time.h>

#define CERT_DAYS 820 /* the longest that all browsers take from an authority that a person added */
#define CERT_PEM_MAX 8192

/* What `glovebox cert` writes, PEM. */
struct cert_files {
	char ca[CERT_PEM_MAX];
	char cert[CERT_PEM_MAX];
	char key[CERT_PEM_MAX];
};

#define DOMAIN_MAX 240 /* with "*." before it still a name */
#define SERIAL_BYTES 16
#define CLOCK_SLACK_S 3600 /* of machines whose clocks are behind ours */

static bool cert_domain_ok(const char *domain)
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

/* --- what the library's calls have in common -------------------------------------------------- */

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
	int r;

	assert(name);
	r = gnutls_x509_crt_init(ret);

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

/* --- the two certificates --------------------------------------------------------------------- */

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

static int cert_make(const char *domain, struct cert_files *ret, struct fail *fail)
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

static const char help[] =
	"Usage: glovebox cert DOMAIN [--out DIR]\n"
	"\n"
	"Makes a certificate for DOMAIN, *.DOMAIN and this machine, so that the service can be reached\n"
	"as https://DOMAIN and a program in a sandbox as https://PORT-ID.DOMAIN. It writes\n"
	"\n"
	"  cert.pem   the certificate            (serve --tls-cert)\n"
	"  key.pem    its key, for you alone     (serve --tls-key)\n"
	"  ca.pem     what clients have to trust\n"
	"\n"
	"and says what to do with them. The key that signed is not kept, so a client of ca.pem trusts\n"
	"this one certificate and nothing else. Files that are there already are never overwritten.\n"
	"\n"
	"      --out DIR   where to; made if need be (default: the current directory)\n"
	"\n"
	"Example:\n"
	"  glovebox cert sbx.test --out tls\n";

struct arguments {
	const char *domain;
	const char *out;
	bool help;
};

/* One file of the three. */
struct file {
	const char *name;
	const char *text;
	mode_t mode;
};

static int read_options(struct arguments *q, int argc, char **argv)
{
	static const struct option options[] = {
		{ "out", required_argument, NULL, 'o' },
		{ "help", no_argument, NULL, 'h' },
		{ NULL, 0, NULL, 0 },
	};
	int id;

	opterr = 0;
	while ((id = getopt_long(argc, argv, ":h", options, NULL)) != -1) {
		if (id == '?' || id == ':')
			return client_bad_option("cert", id, argv);
		if (id == 'o')
			q->out = optarg;
		else
			q->help = true;
	}
	if (q->help)
		return CLIENT_OK;
	if (optind >= argc)
		return client_error(CLIENT_USAGE, "for which domain? glovebox cert DOMAIN");
	q->domain = argv[optind++];
	if (optind < argc)
		return client_error(CLIENT_USAGE,
				    "cert does not take '%s'; see 'glovebox cert --help'",
				    argv[optind]);
	if (!cert_domain_ok(q->domain))
		return client_error(CLIENT_USAGE,
				    "'%s' is not a domain: lower-case letters, digits and '-' "
				    "between dots, without a port",
				    q->domain);
	return CLIENT_OK;
}

static int write_file(int dir_fd, const struct file *f)
{
	size_t left = strlen(f->text);
	const char *text = f->text;
	_cleanup_(fd_closep) int fd = openat(
		dir_fd, f->name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, f->mode);

	if (fd < 0)
		return -errno;
	while (left > 0) {
		ssize_t n = write(fd, text, left);

		if (n < 0)
			return -errno;
		text += n;
		left -= (size_t)n;
	}
	return fsync(fd) < 0 ? -errno : 0;
}

/* All of them or none. */
static int write_all(int dir_fd, const struct file *files, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		int r = write_file(dir_fd, &files[i]);

		if (r == 0)
			continue;
		/* One that was there before stays; one that we began does not. */
		for (size_t k = 0; k < i + (r != -EEXIST); k++)
			(void)unlinkat(dir_fd, files[k].name, 0);
		if (r == -EEXIST)
			return client_error(CLIENT_FAILURE,
					    "%s is there already; move it away, or choose another "
					    "directory with --out",
					    files[i].name);
		return client_error(CLIENT_FAILURE, "cannot write %s: %s", files[i].name,
				    strerror(-r));
	}
	return CLIENT_OK;
}

static int cert_explain(const struct arguments *q)
{
	char dir[PATH_MAX], until[16] = "";
	time_t end = time(NULL) + (time_t)CERT_DAYS * 86400;
	const char *d = q->domain;
	struct tm tm;

	if (!realpath(q->out, dir))
		(void)snprintf(dir, sizeof(dir), "%s", q->out);
	if (gmtime_r(&end, &tm))
		(void)strftime(until, sizeof(until), "%Y-%m-%d", &tm);
	(void)printf("%s has cert.pem, key.pem and ca.pem, good until %s for\n"
		     "%s, *.%s, localhost, *.localhost, 127.0.0.1 and ::1.\n\n",
		     dir, until, d, d);
	(void)printf("The service:\n"
		     "  glovebox serve --listen 127.0.0.1:8443 --domain %s:8443 \\\n"
		     "    --tls-cert %s/cert.pem --tls-key %s/key.pem\n\n",
		     d, dir, dir);
	(void)printf("Its clients trust ca.pem with one of\n"
		     "  NODE_EXTRA_CA_CERTS=%s/ca.pem   Node.js\n"
		     "  SSL_CERT_FILE=%s/ca.pem         Python, curl and what else uses OpenSSL\n"
		     "or, for all programs of a machine (Debian), as root:\n"
		     "  cp %s/ca.pem /usr/local/share/ca-certificates/glovebox-%s.crt\n"
		     "  update-ca-certificates\n\n",
		     dir, dir, dir, d);
	(void)printf("E2B's SDKs find it with\n"
		     "  E2B_DOMAIN=%s:8443\n"
		     "where all names below %s must lead to the service: one DNS entry, *.%s.\n",
		     d, d, d);
	return fflush(stdout) == 0 ? CLIENT_OK : CLIENT_FAILURE;
}

static int cert_make_files(const struct arguments *q)
{
	struct cert_files files = { 0 };
	const struct file all[] = { { "key.pem", files.key, 0600 },
				    { "cert.pem", files.cert, 0644 },
				    { "ca.pem", files.ca, 0644 } };
	struct fail fail = { 0 };
	_cleanup_(fd_closep) int dir_fd = -EBADF;
	int r;

	if (mkdir(q->out, 0755) < 0 && errno != EEXIST)
		return client_error(CLIENT_FAILURE, "cannot make the directory %s: %s", q->out,
				    strerror(errno));
	dir_fd = open(q->out, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir_fd < 0)
		return client_error(CLIENT_FAILURE, "%s: %s", q->out, strerror(errno));
	r = cert_make(q->domain, &files, &fail);
	r = r < 0 ? client_error(CLIENT_FAILURE, "%s", fail.msg) :
		    write_all(dir_fd, all, ARRAY_SIZE(all));
	explicit_bzero(&files, sizeof(files));
	return r;
}

int client_cert(int argc, char **argv)
{
	struct arguments q = { .out = "." };
	int r = read_options(&q, argc, argv);

	if (r != CLIENT_OK)
		return r;
	if (q.help)
		return client_help(help, true);
	r = cert_make_files(&q);
	return r == CLIENT_OK ? cert_explain(&q) : r;
}
