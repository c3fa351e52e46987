/* SPDX-License-Identifier: Apache-2.0 */
#include "template/bundle.h"

#include "template/template_priv.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#define BEGIN "-----BEGIN CERTIFICATE-----"
#define END "-----END CERTIFICATE-----"
#define BASE64 "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/="
#define HOST_FILE "/etc/ssl/certs/ca-certificates.crt"
#define HOST_MAX ((size_t)8 << 20)

struct reader {
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

static int keep_line(struct reader *r, const char *line, size_t len)
{
	int e = buf_add(r->out, line, len);

	return e < 0 ? e : buf_add(r->out, "\n", 1);
}

/* 0, -EINVAL, or what keep_line() says. Lines between certificates are comments. */
static int read_line(struct reader *r, const char *line, size_t len)
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
	struct reader r = { .out = ret };
	size_t number = 1;

	for (const char *at = text, *end = text + len; at < end; number++) {
		const char *newline = memchr(at, '\n', (size_t)(end - at));
		size_t n = (size_t)((newline ? newline : end) - at);
		int e;

		while (n && (at[n - 1] == ' ' || at[n - 1] == '\t' || at[n - 1] == '\r'))
			n--;
		e = read_line(&r, at, n);
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

/* etc/ssl/certs of the root. Some hosts have a link there, which leads to nothing in a box: then a directory of our
 * own. */
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
