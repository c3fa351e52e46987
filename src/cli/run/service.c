/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: the request becomes the JSON that POST /v1/run takes and goes through a pipe to glovebox-client,
 * which speaks HTTP. From another pipe come its answers, one JSON object per line: output as it is printed, at the
 * end the result. Two pipes and one poll loop; nothing is believed before it has been parsed.
 */
#include "cli/run/service_priv.h"

#include "cli/client.h"
#include "service/discovery.h"

#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define LINE_MAX_BYTES ((size_t)128 << 20)

/* --- may it go there? -------------------------------------------------------------------------------------- */

/* A service of this machine whose key we may read. */
static bool service_is_near(void)
{
	const char *key = getenv("E2B_API_KEY");
	struct discovery found;
	char path[PATH_MAX];

	if (discovery_read(&found) < 0)
		return false;
	(void)snprintf(path, sizeof(path), "%s/local.key", found.state);
	return (key && *key) || access(path, R_OK) == 0;
}

/* Asked to, we also go where the SDKs would go. Unasked, code stays on this machine. */
static bool service_is_there(const struct run_request *q)
{
	const char *url = getenv("E2B_API_URL");

	return (q->where == RUN_WHERE_SERVICE && url && *url) || service_is_near();
}

/* Bytes of a regular file; -ENOTSUP for anything else, whose size nobody knows. */
static int64_t size_of(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 && S_ISREG(st.st_mode) ? (int64_t)st.st_size : -ENOTSUP;
}

int run_service_possible(const struct run_request *q, struct fail *fail)
{
	uint64_t bytes = q->code_len;

	if (!service_is_there(q))
		return fail_set(
			fail, ENOENT, "service",
			"no service is running here that you may use (see 'glovebox serve --help')");
	if (strchr(q->template_name, '/'))
		return fail_set(fail, ENOTSUP, "service", "--template DIR works only with --local");
	/* Only whoever has the machine may open it up, and the service has many users. */
	if (q->net.learn || *q->net.open)
		return fail_set(fail, ENOTSUP, "service", "%s works only with --local",
				q->net.learn ? "--net learn" : "--allow-private");
	for (size_t i = 0; i <= q->n_inputs; i++) {
		bool is_stdin = i == q->n_inputs;
		int64_t size;

		if (is_stdin && q->stdin_fd < 0)
			break;
		size = !is_stdin && q->inputs[i].is_dir ?
			       -ENOTSUP :
			       size_of(is_stdin ? q->stdin_fd : q->inputs[i].fd);
		if (size < 0)
			return fail_set(
				fail, ENOTSUP, "service",
				is_stdin ? "--stdin that is not a file works only with --local" :
					   "--in of a directory works only with --local");
		bytes += (uint64_t)size;
	}
	if (bytes > RUN_SERVICE_BODY_MAX)
		return fail_set(fail, EFBIG, "service",
				"code and inputs of more than %zu KiB work only with --local",
				RUN_SERVICE_BODY_MAX >> 10);
	return 0;
}

int run_service_choose(const struct run_request *q, bool *ret_service, struct fail *fail)
{
	struct fail why = { 0 };
	bool asked = q->where == RUN_WHERE_SERVICE;

	*ret_service = false;
	if (q->where == RUN_WHERE_LOCAL || (!asked && geteuid() == 0))
		return 0;
	if (run_service_possible(q, &why) == 0) {
		*ret_service = true;
		return 0;
	}
	if (asked) {
		*fail = why;
		return -EINVAL;
	}
	return 0;
}

struct conversation {
	const struct run_request *request;
	struct run_result *result;
	struct buf line;
	bool has_result;
	struct fail fail;
};

static int on_line(struct conversation *c, const char *text, size_t len)
{
	json_t *o = json_loadb(text, len, JSON_REJECT_DUPLICATES, NULL), *part;
	int r = o ? 0 : -EPROTO;

	for (int is_err = 0; r == 0 && is_err < 2; is_err++) {
		size_t n;
		_cleanup_(freep) unsigned char *data = NULL;

		part = json_object_get(o, is_err ? "stderr_base64" : "stdout_base64");
		if (!part)
			continue;
		data = run_service_decode(part, &n);
		r = data ? run_emit(c->request, c->result, is_err, data, n) : -EPROTO;
		if (r == -EPIPE)
			c->result->cancelled_by = SIGPIPE;
	}
	part = json_object_get(o, "error");
	if (part)
		r = fail_set(&c->fail, EPROTO, "service", "%.200s", json_string_value(part));
	part = json_object_get(o, "result");
	if (r == 0 && part) {
		r = run_service_result(c->request, part, c->result);
		c->has_result = r == 0;
	}
	json_decref(o);
	return r;
}

static int on_bytes(struct conversation *c, int fd)
{
	static char chunk[65536];
	ssize_t n = read(fd, chunk, sizeof(chunk));
	size_t seen =
		c->line.len; /* there is no end of a line in that: a result has many megabytes */
	unsigned char *end;

	if (n <= 0)
		return n < 0 && errno == EINTR ? 1 : (int)n;
	if (buf_add(&c->line, chunk, (size_t)n) < 0)
		return -ENOMEM;
	while ((end = memchr(c->line.data + seen, '\n', c->line.len - seen))) {
		size_t len = (size_t)(end - c->line.data);
		int r = on_line(c, (char *)c->line.data, len);

		memmove(c->line.data, end + 1, c->line.len - len - 1);
		c->line.len -= len + 1;
		seen = 0;
		if (r < 0)
			return r;
	}
	return 1;
}

/* --- the other program ---------------------------------------------------------------------------------------- */

/* The request is in a file of memory, so writing it cannot wait for its reader. */
static int request_fd(const char *text)
{
	_cleanup_(fd_closep) int fd = memfd_create("request", MFD_CLOEXEC);

	if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text) ||
	    lseek(fd, 0, SEEK_SET) < 0)
		return -EIO;
	return take_fd(&fd);
}

static int converse(struct conversation *c, int out_fd)
{
	for (;;) {
		struct pollfd polls[] = {
			{ .fd = out_fd, .events = POLLIN },
			{ .fd = c->request->signal_fd, .events = POLLIN },
		};
		int r = 1;

		if (poll(polls, ARRAY_SIZE(polls), -1) < 0 && errno != EINTR)
			return -errno;
		if (polls[1].revents) {
			struct signalfd_siginfo info;

			if (read(c->request->signal_fd, &info, sizeof(info)) == sizeof(info))
				c->result->cancelled_by = (int)info.ssi_signo;
			return -EINTR;
		}
		if (polls[0].revents)
			r = on_bytes(c, out_fd);
		if (r <= 0)
			return r;
	}
}

static int run_through_client(struct conversation *c, const char *text)
{
	_cleanup_(fd_closep) int in_fd = request_fd(text);
	int ends[2] = { -EBADF, -EBADF }, r;
	pid_t pid;

	if (in_fd < 0 || pipe2(ends, O_CLOEXEC) < 0)
		return -EIO;
	pid = client_spawn("run-request", c->request->where == RUN_WHERE_SERVICE, in_fd, ends[1]);
	fd_close(ends[1]);
	r = pid < 0 ? (int)pid : converse(c, ends[0]);
	fd_close(ends[0]);
	/* Hung up on, it notices, and so does the service, which ends the run. */
	if (pid > 0 && r < 0)
		(void)kill(pid, SIGKILL);
	while (pid > 0 && waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
	return r;
}

int run_in_service(const struct run_request *q, struct run_result *r)
{
	struct conversation c = { .request = q, .result = r, .line = BUF_INIT(LINE_MAX_BYTES) };
	_cleanup_(freep) char *text = run_service_request(q);
	int e = text ? run_through_client(&c, text) : -ENOMEM;

	r->exit_code = c.has_result ? r->exit_code : -1;
	buf_done(&c.line);
	(void)run_emit_end(q);
	if (e == 0 && c.has_result)
		return 0;
	r->status = RUN_SETUP_ERROR;
	(void)snprintf(r->message, sizeof(r->message), "%s",
		       c.fail.msg[0] ? c.fail.msg : "the service broke off");
	return e < 0 ? e : -EPROTO;
}
