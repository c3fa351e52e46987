/* SPDX-License-Identifier: Apache-2.0 */
#include "template/bundle.h"

#include "base/io.h"
#include "sys/proc.h"
#include "template/template_priv.h"

#include <endian.h>
#include <fcntl.h>
#include <poll.h>
#include <sodium.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>

/*
 * Java trusts what is in a store of its own, which on Debian is /etc/ssl/certs/java/cacerts for
 * every JDK of the distribution. keytool adds to it; started once for each certificate it would
 * take a second each, so it gets them all in a store that is written here.
 */

#define KEYTOOL "/usr/bin/keytool"
#define STORE "etc/ssl/certs/java/cacerts"
#define STORE_PASSWORD "changeit" /* everybody's: it guards nothing */
#define KEYTOOL_MS 30000
#define SOURCE_FD 3

/* The format of `JKS`: all numbers big-endian, texts with their length before them. */
#define JKS_MAGIC 0xfeedfeedu
#define JKS_VERSION 2u
#define JKS_TRUSTED 2u
#define JKS_DIGEST_SIZE 20

static int add_u32(struct buf *b, uint32_t n)
{
	uint32_t big = htobe32(n);

	return buf_add(b, &big, sizeof(big));
}

static int java_add_text(struct buf *b, const char *text)
{
	uint16_t big = htobe16((uint16_t)strlen(text));
	int r = buf_add(b, &big, sizeof(big));

	return r < 0 ? r : buf_add(b, text, strlen(text));
}

static int add_certificate(struct buf *b, size_t number, const unsigned char *der, size_t len)
{
	const uint64_t when = 0; /* 1970: the same certificates give the same store */
	char alias[40];
	int r = add_u32(b, JKS_TRUSTED);

	(void)snprintf(alias, sizeof(alias), "glovebox-%zu", number);
	if (r == 0)
		r = java_add_text(b, alias);
	if (r == 0)
		r = buf_add(b, &when, sizeof(when));
	if (r == 0)
		r = java_add_text(b, "X.509");
	if (r == 0)
		r = add_u32(b, (uint32_t)len);
	return r < 0 ? r : buf_add(b, der, len);
}

/* Each certificate in turn: the text between its first and its last line. */
static bool next_certificate(const char **at, const char **ret_body, size_t *ret_len)
{
	const char *begin = strstr(*at, "-----BEGIN"), *body, *end;

	if (!begin || !(body = strchr(begin, '\n')) || !(end = strstr(body, "-----END")))
		return false;
	*ret_body = body;
	*ret_len = (size_t)(end - body);
	*at = end + strlen("-----END");
	return true;
}

int bundle_java_source(const struct buf *bundle, struct buf *ret)
{
	_cleanup_(freep) unsigned char *der = malloc(bundle->len + 1);
	const char *at = (const char *)bundle->data, *body;
	uint32_t n = 0;
	size_t body_len;
	int r = der ? add_u32(ret, JKS_MAGIC) : -ENOMEM;

	while (next_certificate(&at, &body, &body_len))
		n++;
	if (r == 0)
		r = add_u32(ret, JKS_VERSION);
	if (r == 0)
		r = add_u32(ret, n);
	at = (const char *)bundle->data;
	n = 0;
	while (r == 0 && next_certificate(&at, &body, &body_len)) {
		size_t len;

		if (sodium_base642bin(der, bundle->len, body, body_len, "\n", &len, NULL,
				      sodium_base64_VARIANT_ORIGINAL) < 0)
			return -EINVAL;
		r = add_certificate(ret, ++n, der, len);
	}
	return r < 0 ? r : buf_add(ret, (const char[JKS_DIGEST_SIZE]){ 0 }, JKS_DIGEST_SIZE);
}

/* A file of memory that the other program can read from its beginning. */
static int memory_file(const void *data, size_t len)
{
	_cleanup_(fd_closep) int fd = memfd_create("certificates", MFD_CLOEXEC);
	int r = fd < 0 ? -errno : io_write_all(fd, data, len);

	if (r == 0 && lseek(fd, 0, SEEK_SET) < 0)
		r = -errno;
	return r < 0 ? r : take_fd(&fd);
}

/* It asks for the source's password; none means that the checksum is not looked at. */
static _noreturn_ void keytool(int root_fd, int source_fd, int answer_fd, pid_t parent)
{
	static const char *const argv[] = {
		KEYTOOL, "-importkeystore", "-noprompt",       "-srcstoretype",
		"JKS",   "-srckeystore",    "/proc/self/fd/3", "-destkeystore",
		STORE,   "-deststorepass",  STORE_PASSWORD,    NULL,
	};
	static const char *const env[] = { "PATH=/usr/bin:/bin", "LANG=C.UTF-8", NULL };
	int null_fd = open("/dev/null", O_WRONLY | O_CLOEXEC);

	if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0 || getppid() != parent ||
	    fchdir(root_fd) < 0)
		_exit(125);
	/* Above what is put in place below, or one could close the other. */
	source_fd = fcntl(source_fd, F_DUPFD_CLOEXEC, SOURCE_FD + 1);
	if (null_fd < 0 || source_fd < 0 || dup2(answer_fd, 0) < 0 || dup2(null_fd, 1) < 0 ||
	    dup2(null_fd, 2) < 0 || dup2(source_fd, SOURCE_FD) < 0)
		_exit(125);
	(void)execve(KEYTOOL, (char *const *)(uintptr_t)argv, (char *const *)(uintptr_t)env);
	_exit(125);
}

/* 0: it said that it did. */
static int run_keytool(int root_fd, int source_fd, int answer_fd)
{
	_cleanup_(fd_closep) int pidfd = -EBADF;
	pid_t parent = getpid(), pid = proc_clone(0, -EBADF, &pidfd);
	struct pollfd p = { .events = POLLIN };
	siginfo_t info = { 0 };

	if (pid < 0)
		return (int)pid;
	if (pid == 0)
		keytool(root_fd, source_fd, answer_fd, parent);
	p.fd = pidfd;
	if (poll(&p, 1, KEYTOOL_MS) != 1)
		(void)proc_kill(pidfd, SIGKILL);
	while (waitid(P_PIDFD, (id_t)pidfd, &info, WEXITED) < 0 && errno == EINTR)
		;
	return info.si_code == CLD_EXITED && info.si_status == 0 ? 0 : -EIO;
}

static int bundle_write_java(int root_fd, const struct buf *bundle, struct fail *fail)
{
	_cleanup_(buf_done) struct buf source = BUF_INIT(BUNDLE_MAX * 2);
	_cleanup_(fd_closep) int source_fd = -EBADF;
	_cleanup_(fd_closep) int answer_fd = -EBADF;
	int r;

	if (access(KEYTOOL, X_OK) < 0 || faccessat(root_fd, STORE, F_OK, AT_SYMLINK_NOFOLLOW) < 0)
		return 0;
	r = bundle_java_source(bundle, &source);
	if (r == 0)
		r = source_fd = memory_file(source.data, source.len);
	if (r >= 0)
		r = answer_fd = memory_file("\n", 1);
	if (r >= 0)
		r = run_keytool(root_fd, source_fd, answer_fd);
	if (r < 0)
		return fail_set(fail, -r, "certificates",
				"cannot add the certificates of egress.ca_bundle to Java's: "
				"keytool does not take them (%s)",
				strerror(-r));
	return 0;
}

#define BEGIN "-----BEGIN CERTIFICATE-----"
#define END "-----END CERTIFICATE-----"
#define BASE64 "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/="
#define HOST_FILE "/etc/ssl/certs/ca-certificates.crt"
#define HOST_MAX ((size_t)8 << 20)

struct bundle_reader {
	struct buf *out;
	bool inside;
	size_t lines; /* of the certificate we are in */
	size_t certificates;
};

static bool starts_with(const char *line, size_t len, const char *with)
{
	return len >= strlen(with) && memcmp(line, with, strlen(with)) == 0;
}

static bool is_line(const char *line, size_t len, const char *text)
{
	return len == strlen(text) && memcmp(line, text, len) == 0;
}

static bool is_base64(const char *line, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (!line[i] || !strchr(BASE64, line[i]))
			return false;
	return len > 0;
}

static int keep_line(struct bundle_reader *r, const char *line, size_t len)
{
	int e = buf_add(r->out, line, len);

	return e < 0 ? e : buf_add(r->out, "\n", 1);
}

/* 0, -EINVAL, or what keep_line() says. Lines between certificates are comments. */
static int pem_read_line(struct bundle_reader *r, const char *line, size_t len)
{
	if (!r->inside && is_line(line, len, BEGIN)) {
		r->inside = true;
		r->lines = 0;
		return keep_line(r, line, len);
	}
	if (!r->inside)
		return starts_with(line, len, "-----") ? -EINVAL : 0;
	if (is_line(line, len, END) && r->lines) {
		r->inside = false;
		r->certificates++;
		return keep_line(r, line, len);
	}
	if (!is_base64(line, len))
		return -EINVAL;
	r->lines++;
	return keep_line(r, line, len);
}

int bundle_parse(const char *text, size_t len, struct buf *ret, struct fail *fail)
{
	struct bundle_reader r = { .out = ret };
	size_t number = 1;

	for (const char *at = text, *end = text + len; at < end; number++) {
		const char *newline = memchr(at, '\n', (size_t)(end - at));
		size_t n = (size_t)((newline ? newline : end) - at);
		int e;

		while (n && (at[n - 1] == ' ' || at[n - 1] == '\t' || at[n - 1] == '\r'))
			n--;
		e = pem_read_line(&r, at, n);
		if (e == -EINVAL)
			return fail_set(fail, EINVAL, "certificates",
					"line %zu is not part of a certificate (PEM), and nothing "
					"else may be in it",
					number);
		if (e < 0)
			return fail_set(fail, -e, "certificates", "it is too large");
		at = newline ? newline + 1 : end;
	}
	if (r.inside || !r.certificates)
		return fail_set(fail, EINVAL, "certificates",
				r.inside ? "its last certificate has no end" :
					   "there is no certificate (PEM) in it");
	return 0;
}

static int read_text(const char *path, struct buf *ret)
{
	_cleanup_(fd_closep) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	return S_ISREG(st.st_mode) ? buf_read_fd(ret, fd) : -EINVAL;
}

int bundle_read(const char *path, struct buf *ret, struct fail *fail)
{
	_cleanup_(buf_done) struct buf text = BUF_INIT(BUNDLE_MAX);
	struct fail why = { 0 };
	int r = read_text(path, &text);

	if (r == -EINVAL || r == -EFBIG)
		return fail_set(fail, -r, "certificates", "egress.ca_bundle: %.100s is %s", path,
				r == -EFBIG ? "larger than 1 MiB" : "not a file");
	if (r < 0)
		return fail_set(fail, -r, "certificates",
				"egress.ca_bundle: cannot read %.100s: %s", path, strerror(-r));
	r = bundle_parse(text.data ? (const char *)text.data : "", text.len, ret, &why);
	if (r < 0)
		return fail_set(fail, -r, "certificates", "egress.ca_bundle: %.80s: %.120s", path,
				why.msg);
	return 0;
}

/* etc/ssl/certs of the root. Some hosts have a link there, which leads to nothing in a box: then a
 * directory of our own. */
static int open_certs(int root_fd)
{
	int fd;

	if (mkdirat(root_fd, "etc/ssl", 0755) < 0 && errno != EEXIST)
		return -errno;
	fd = openat(root_fd, "etc/ssl/certs", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd >= 0)
		return fd;
	if ((unlinkat(root_fd, "etc/ssl/certs", 0) < 0 && errno != ENOENT) ||
	    mkdirat(root_fd, "etc/ssl/certs", 0755) < 0)
		return -errno;
	fd = openat(root_fd, "etc/ssl/certs", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

int bundle_write(int root_fd, const struct buf *bundle, struct fail *fail)
{
	_cleanup_(buf_done) struct buf all = BUF_INIT(HOST_MAX);
	_cleanup_(fd_closep) int certs_fd = open_certs(root_fd);
	int r = certs_fd < 0 ? certs_fd : read_text(HOST_FILE, &all);

	if (r == -ENOENT)
		r = 0;
	if (r == 0 && all.len && all.data[all.len - 1] != '\n')
		r = buf_add(&all, "\n", 1);
	if (r == 0)
		r = buf_add(&all, bundle->data, bundle->len);
	if (r == 0 && unlinkat(certs_fd, "ca-certificates.crt", 0) < 0 && errno != ENOENT)
		r = -errno;
	if (r == 0)
		r = template_write_file(certs_fd, "ca-certificates.crt", 0644, all.data, all.len);
	if (r == 0)
		r = template_write_file(root_fd, "opt/glovebox/ca-bundle.pem", 0644, bundle->data,
					bundle->len);
	if (r < 0)
		return fail_set(fail, -r, "certificates",
				"cannot write the certificates of egress.ca_bundle: %s",
				strerror(-r));
	return bundle_write_java(root_fd, bundle, fail);
}
