/* SPDX-License-Identifier: Apache-2.0 */
/* glovebox cert: a certificate for the service and its sandboxes' addresses, without asking anybody. */
#include "client/client.h"

#include "client/cert_make.h"

#include <fcntl.h>
#include <getopt.h>
#include <limits.h>
#include <sys/stat.h>
#include <time.h>

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
	"and says what to do with them. The key that signed is not kept, so whoever trusts ca.pem trusts\n"
	"this one certificate and nothing else. Files that are there already are never overwritten.\n"
	"\n"
	"      --out DIR   where to; made if need be (default: the current directory)\n"
	"\n"
	"Example:\n"
	"  glovebox cert sbx.test --out tls\n";

struct request {
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

static int read_options(struct request *q, int argc, char **argv)
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

static int explain(const struct request *q)
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

static int make(const struct request *q)
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
	struct request q = { .out = "." };
	int r = read_options(&q, argc, argv);

	if (r != CLIENT_OK)
		return r;
	if (q.help)
		return client_help(help, true);
	r = make(&q);
	return r == CLIENT_OK ? explain(&q) : r;
}
