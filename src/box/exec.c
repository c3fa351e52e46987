/* SPDX-License-Identifier: Apache-2.0 */
/* Operations in a box: the host's side of starting commands, file transfers and interpreters, and
 * of giving those cells. */
#include "box/box.h"

#include "sys/sock.h"
#include "wire/wire.h"

#include <sys/socket.h>
#include <sys/time.h>

#define SEND_SECONDS 10
#define TASKS_PER_CPU 4

/* Messages that are on their way together. */
struct several {
	int sock;
	size_t len;
	unsigned char data[WIRE_DATA_MAX];
};

static int several_send(struct several *s)
{
	int r = s->len ? wire_send(s->sock, WIRE_SEVERAL, s->data, s->len) : 0;

	s->len = 0;
	return r;
}

static int several_add(struct several *s, enum wire_type type, const char *text)
{
	const size_t len = strlen(text), size = sizeof(struct wire_head) + len;
	const struct wire_head head = { .type = (uint16_t)type, .len = (uint32_t)size };
	int r = size > sizeof(s->data) - s->len ? several_send(s) : 0;

	if (r < 0)
		return r;
	if (size > sizeof(s->data)) /* it goes alone, or not at all */
		return wire_send(s->sock, type, text, len);
	memcpy(s->data + s->len, &head, sizeof(head));
	memcpy(s->data + s->len + sizeof(head), text, len);
	s->len += size;
	return 0;
}

static int several_add_all(struct several *s, enum wire_type type, const char *const *strings)
{
	int r = 0;

	for (size_t i = 0; r == 0 && strings && strings[i]; i++)
		r = several_add(s, type, strings[i]);
	return r;
}

/* Directory, arguments, environment, go. */
static int exec_send(int sock, const struct box_command *c)
{
	static struct several s;
	int r;

	s.sock = sock;
	s.len = 0;
	r = several_add(&s, WIRE_CWD, c->cwd);
	if (r == 0)
		r = several_add_all(&s, WIRE_ARG, c->argv);
	if (r == 0)
		r = several_add_all(&s, WIRE_ENV, c->env);
	if (r == 0)
		r = several_add(&s, WIRE_GO, "");
	return r < 0 ? r : several_send(&s);
}

/* Without cgroups the per-process limits are all there is; with them they are a second lock. */
/* Without cgroups the per-process limits are all there is; with them they are a second lock. */
static struct wire_exec exec_request(const struct box *b, const struct box_command *c)
{
	unsigned features = b->cgroup.host ? b->cgroup.host->features : 0;
	struct wire_exec q = {
		.uid = PAYLOAD_USER,
		.gid = PAYLOAD_USER,
		.flags = WIRE_EXEC_ALONE | (c->with_stdin ? WIRE_EXEC_STDIN : 0) |
			 (c->last ? WIRE_EXEC_LAST : 0),
		.oom_score_adj = PAYLOAD_OOM_SCORE,
		.fsize_max = b->disk_bytes,
		.nofile_max = PAYLOAD_NOFILE_MAX,
	};

	if (!(features & CGROUP_MEMORY))
		q.data_max = c->memory_bytes;
	if (!(features & CGROUP_PIDS))
		q.nproc_max = c->pids;
	if (!(features & CGROUP_CPUACCT))
		q.cpu_max_s = (c->cpu_time_us + 999999) / 1000000;
	return q;
}

/* AG-09: an agent that does not read must not hold us for ever. */
static int exec_limit_waiting(int sock)
{
	const struct timeval t = { .tv_sec = SEND_SECONDS };

	return setsockopt(sock, SOL_SOCKET, SO_SNDTIMEO, &t, sizeof(t)) < 0 ? -errno : 0;
}

static int fail_agent(struct fail *fail, int r)
{
	return fail_set(fail, -r, "agent", "the box's agent does not answer: %s", strerror(-r));
}

/* Sends a request with one end of a new operation's socket: the other end. */
static int start_operation(struct box *b, enum wire_type type, const void *request, size_t size,
			   struct fail *fail)
{
	int pair[2], r = sock_pair(pair);

	if (r < 0)
		return fail_set(fail, -r, "sockets", "cannot make a socket: %s", strerror(-r));
	r = exec_limit_waiting(pair[0]);
	if (r == 0)
		r = wire_send_fds(b->control_fd, type, request, size, &pair[1], 1);
	fd_close(pair[1]);
	if (r < 0) {
		fd_close(pair[0]);
		return fail_agent(fail, r);
	}
	return pair[0];
}

int box_exec(struct box *b, const struct box_command *c, struct box_exec *ret, struct fail *fail)
{
	const struct cgroup_limits wanted = {
		.memory_bytes = box_memory_cap(c->memory_bytes, b->disk_bytes),
		.pids = c->pids,
		.cpu_milli = c->cpu_milli,
	};
	const struct cgroup_limits limits = box_enforced(b->cgroup.host, &wanted);
	struct wire_exec request = exec_request(b, c);
	struct box_exec e = BOX_EXEC_INIT;
	int fds[1 + CGROUP_HIER_MAX], pair[2], r;
	size_t n_fds = 1;

	r = cgroup_exec_create(&b->cgroup, &limits, &e.cgroup);
	if (r < 0)
		return fail_set(fail, -r, "cgroups", "cannot make the command's cgroup: %s",
				strerror(-r));
	r = sock_pair(pair);
	if (r < 0) {
		cgroup_exec_close(&e.cgroup);
		return fail_set(fail, -r, "sockets", "cannot make a socket: %s", strerror(-r));
	}
	fds[0] = pair[1];
	for (size_t i = 0; i < e.cgroup.n_join; i++)
		fds[n_fds++] = e.cgroup.join_fd[i];
	r = exec_limit_waiting(pair[0]);
	if (r == 0)
		r = wire_send_fds(b->control_fd, WIRE_EXEC, &request, sizeof(request), fds, n_fds);
	fd_close(pair[1]);
	e.sock = pair[0];
	if (r == 0)
		r = exec_send(e.sock, c);
	if (r < 0) {
		box_exec_close(&e);
		return fail_set(fail, -r, "agent",
				r == -EMSGSIZE ? "an argument or variable is larger than 64 KiB" :
						 "the box's agent does not answer (%s)",
				strerror(-r));
	}
	*ret = e;
	return 0;
}

uint32_t box_weight(uint32_t cpu_milli, uint32_t tasks)
{
	uint32_t fair = (cpu_milli + 999) / 1000 * TASKS_PER_CPU;

	return tasks <= fair ? 1000 : MAX(1000 * fair / tasks, 1u);
}

int box_leaf(struct box *b, const struct box_limits *limits, struct cgroup_exec *ret,
	     struct fail *fail)
{
	const struct cgroup_limits wanted = {
		.memory_bytes = box_memory_cap(limits->memory_bytes, b->disk_bytes),
		.pids = limits->pids,
		.cpu_milli = limits->cpu_milli,
	};
	const struct cgroup_limits enforced = box_enforced(b->cgroup.host, &wanted);
	_cleanup_(cgroup_exec_close) struct cgroup_exec e = CGROUP_EXEC_INIT;
	int r = cgroup_exec_create(&b->cgroup, &enforced, &e);

	if (r < 0)
		return fail_set(fail, -r, "cgroups", "cannot make the commands' cgroup: %s",
				strerror(-r));
	/* Without cgroups there is nothing to join. */
	if (e.n_join)
		r = wire_send_fds(b->control_fd, WIRE_LEAF, NULL, 0, e.join_fd, e.n_join);
	if (r < 0)
		return fail_agent(fail, r);
	*ret = e;
	e = (struct cgroup_exec)CGROUP_EXEC_INIT;
	return 0;
}

void box_exec_close(struct box_exec *e)
{
	fd_closep(&e->sock);
	cgroup_exec_close(&e->cgroup);
}

int box_files(struct box *b, uint32_t type, const char *root, struct fail *fail)
{
	const struct wire_files request = { .uid = PAYLOAD_USER, .gid = PAYLOAD_USER };
	_cleanup_(fd_closep) int sock =
		start_operation(b, (enum wire_type)type, &request, sizeof(request), fail);
	int r;

	if (sock < 0)
		return sock;
	r = wire_send(sock, WIRE_ROOT, root, strlen(root));
	return r < 0 ? fail_agent(fail, r) : take_fd(&sock);
}

int box_kernel(struct box *b, const struct box_command *c, const struct wire_context *context,
	       struct fail *fail)
{
	struct wire_kernel request = { .exec = exec_request(b, c), .context = *context };
	_cleanup_(fd_closep) int sock = -EBADF;
	int r;

	/* It is one of several things in its box, and stays: its end is not the box's. */
	request.exec.flags = 0;
	sock = start_operation(b, WIRE_KERNEL, &request, sizeof(request), fail);
	if (sock < 0)
		return sock;
	r = exec_send(sock, c);
	return r < 0 ? fail_agent(fail, r) : take_fd(&sock);
}

int box_cell(struct box *b, const struct wire_cell *cell, const char *code, size_t len,
	     struct fail *fail)
{
	_cleanup_(fd_closep) int sock = start_operation(b, WIRE_CELL, cell, sizeof(*cell), fail);
	int r = 0;

	if (sock < 0)
		return sock;
	for (size_t at = 0; r == 0 && at < len;) {
		size_t n = MIN(len - at, (size_t)WIRE_DATA_MAX);

		r = wire_send(sock, WIRE_CODE, code + at, n);
		at += n;
	}
	if (r == 0)
		r = wire_send(sock, WIRE_GO, NULL, 0);
	/* An agent that hung up has said why: that can still be read. */
	return r < 0 && r != -EPIPE ? fail_agent(fail, r) : take_fd(&sock);
}

int box_tell_context(struct box *b, const char *context, uint32_t signal, struct fail *fail)
{
	struct wire_context_tell request = { .signal = signal };

	(void)snprintf(request.context, sizeof(request.context), "%s", context);
	return start_operation(b, WIRE_CONTEXT_TELL, &request, sizeof(request), fail);
}
