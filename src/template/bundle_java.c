/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Java trusts what is in a store of its own, which on Debian is /etc/ssl/certs/java/cacerts for every JDK of the
 * distribution. keytool adds to it; started once for each certificate it would take a second each, so it gets them
 * all in a store that is written here.
 */
#include "template/bundle.h"

#include "base/io.h"
#include "sys/proc.h"

#include <endian.h>
#include <fcntl.h>
#include <poll.h>
#include <sodium.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>

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

static int add_text(struct buf *b, const char *text)
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
		r = add_text(b, alias);
	if (r == 0)
		r = buf_add(b, &when, sizeof(when));
	if (r == 0)
		r = add_text(b, "X.509");
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

int bundle_write_java(int root_fd, const struct buf *bundle, struct fail *fail)
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
