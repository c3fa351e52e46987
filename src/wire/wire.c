/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/wire.h"

#include "sys/sock.h"

#include <signal.h>

#define CONTROL WIRE_ON_CONTROL
#define TO_OP WIRE_ON_TO_OP
#define FROM_OP WIRE_ON_FROM_OP
#define BOTH_OP (WIRE_ON_TO_OP | WIRE_ON_FROM_OP)
#define SUDO WIRE_ON_SUDO

static const struct rule {
	uint16_t type;
	uint16_t where;
	uint32_t min;
	uint32_t max;
} rules[] = {
#define MESSAGE(name, number, socket, smallest, largest)                                           \
	{ (number), (socket), (smallest), (largest) },
#include "wire/agent.def"
#undef MESSAGE
};

static bool exec_ok(const struct wire_exec *q)
{
	bool keep = q->flags & WIRE_EXEC_KEEP;

	/* What outlives its socket cannot be what the box ends with. */
	return !(q->flags & ~WIRE_EXEC_FLAGS) && q->zero == 0 &&
	       !(keep && (q->flags & (WIRE_EXEC_ALONE | WIRE_EXEC_LAST))) &&
	       !((q->flags & WIRE_EXEC_PTY) && (q->flags & WIRE_EXEC_RUNNER));
}

static bool tell_ok(const struct wire_tell *t)
{
	if (t->what == WIRE_TELL_SIGNAL)
		return t->signal >= 1 && t->signal <= WIRE_SIGNAL_MAX && !t->rows && !t->cols;
	return t->what > 0 && t->what < _WIRE_TELL_MAX && t->signal == 0;
}

bool wire_exit_ok(const struct wire_exit *e)
{
	bool exited = e->code >= 0 && e->code <= 255 && e->signal == 0 && e->core == 0;
	bool killed = e->code == -1 && e->signal > 0 && e->signal <= WIRE_SIGNAL_MAX &&
		      e->core <= 1;

	return (exited || killed) && e->timed_out <= 1;
}

bool wire_word_ok(const char *word, size_t size)
{
	size_t len = 0;

	while (len < size && ((word[len] >= 'a' && word[len] <= 'z') ||
			      (word[len] >= '0' && word[len] <= '9') || word[len] == '-'))
		len++;
	if (len == 0 || len == size)
		return false;
	for (size_t i = len; i < size; i++)
		if (word[i])
			return false;
	return true;
}

static bool context_ok(const struct wire_context *c)
{
	return wire_word_ok(c->name, sizeof(c->name)) &&
	       wire_word_ok(c->language, sizeof(c->language));
}

/* An interpreter is kept by its name, has no terminal and is not what a box ends with. */
static bool kernel_ok(const struct wire_kernel *k)
{
	return exec_ok(&k->exec) && k->exec.flags == 0 && k->exec.timeout_ms == 0 &&
	       context_ok(&k->context);
}

static bool cell_end_ok(const struct wire_cell_end *e)
{
	static const struct wire_exit none;

	return e->reason < _WIRE_CELL_MAX && e->died <= 1 &&
	       (e->died || memcmp(&e->exit, &none, sizeof(none)) == 0);
}

/* Takes one attribute (key, NUL, value, NUL) off the front: its length, or 0 when there is none
 * whole. */
static size_t attr_len(const unsigned char *attr, size_t len)
{
	const unsigned char *key_end = memchr(attr, '\0', len), *end;

	if (!key_end || key_end == attr)
		return 0;
	end = memchr(key_end + 1, '\0', len - (size_t)(key_end + 1 - attr));
	return end ? (size_t)(end + 1 - attr) : 0;
}

static bool fs_entry_ok(const struct wire_fs_entry *e, size_t len)
{
	const unsigned char *text = (const unsigned char *)(e + 1);
	size_t texts = (size_t)e->path_len + e->owner_len + e->group_len + e->target_len;

	if (e->zero || e->is_link > 1 || e->type > WIRE_FS_DIR || e->mode & ~07777u ||
	    e->mtime_ns >= 1000000000 || e->path_len == 0)
		return false;
	len -= sizeof(*e);
	if (texts > len || e->attrs_len != len - texts || memchr(text, '\0', texts))
		return false;
	for (size_t at = texts, n; at < len; at += n) {
		n = attr_len(text + at, len - at);
		if (n == 0)
			return false;
	}
	return true;
}

/* The numbers in a payload whose size is right. */
static bool values_ok(const struct wire_frame *f)
{
	const void *data = f->data;

	switch (f->head.type) {
	case WIRE_EXEC:
		return exec_ok(data);
	case WIRE_INPUT:
		return ((const struct wire_input *)data)->kind < _WIRE_INPUT_KIND_MAX;
	case WIRE_ATTACH:
	case WIRE_PROCESS:
		return ((const struct wire_process *)data)->forked == 0;
	case WIRE_STARTED:
		return ((const struct wire_process *)data)->forked <= 1;
	case WIRE_TELL:
		return tell_ok(data);
	case WIRE_FS: {
		const struct wire_fs *q = data;

		return q->op > 0 && q->op < _WIRE_FS_MAX && !(q->flags & ~WIRE_FS_FLAGS) &&
		       q->zero == 0;
	}
	case WIRE_ENTRY:
		return fs_entry_ok(data, wire_len(f));
	case WIRE_CHANGE: {
		const struct wire_fs_change *c = data;

		return c->what > 0 && c->what < _WIRE_FS_CHANGE_MAX && c->has_entry <= 1;
	}
	case WIRE_PIPE:
		return ((const struct wire_pipe *)data)->bytes > 0;
	case WIRE_DIR:
	case WIRE_FILE:
	case WIRE_REFUSED:
		return ((const struct wire_entry *)data)->zero == 0;
	case WIRE_SUDO: {
		const struct wire_sudo *q = data;

		return !(q->flags & ~WIRE_SUDO_TTY) && q->zero == 0;
	}
	case WIRE_SIGNAL: {
		const struct wire_signal *q = data;

		return q->signal >= 1 && q->signal <= WIRE_SIGNAL_MAX && q->zero == 0;
	}
	case WIRE_KERNEL:
		return kernel_ok(data);
	case WIRE_ADOPT:
		return context_ok(data);
	case WIRE_CELL:
		return wire_word_ok(((const struct wire_cell *)data)->context, WIRE_CONTEXT_SIZE);
	case WIRE_CONTEXT_TELL: {
		const struct wire_context_tell *t = data;

		return wire_word_ok(t->context, WIRE_CONTEXT_SIZE) && t->zero == 0 &&
		       (t->signal == SIGINT || t->signal == SIGKILL);
	}
	case WIRE_EVENT_END: {
		const struct wire_event *e = data;

		return e->kind > 0 && e->kind < _WIRE_EVENT_MAX && e->zero == 0;
	}
	case WIRE_SPILLED: {
		const struct wire_spilled *s = data;

		return (s->stream == 1 || s->stream == 2) && s->zero == 0 &&
		       !memchr(s + 1, '\0', wire_len(f) - sizeof(*s));
	}
	case WIRE_CELL_END:
		return cell_end_ok(data);
	case WIRE_CONTEXT: {
		const struct wire_context_info *c = data;

		return context_ok(&c->context) && !memchr(c + 1, '\0', wire_len(f) - sizeof(*c));
	}
	default:
		return true;
	}
}

int wire_check(const struct wire_frame *f, size_t n, enum wire_socket where)
{
	size_t len;

	if (n < sizeof(f->head) || n > sizeof(*f) || f->head.len != n || f->head.zero)
		return -EPROTO;
	len = n - sizeof(f->head);
	for (size_t i = 0; i < ARRAY_SIZE(rules); i++) {
		if (rules[i].type != f->head.type)
			continue;
		return (rules[i].where & where) && len >= rules[i].min && len <= rules[i].max &&
				       values_ok(f) ?
			       0 :
			       -EPROTO;
	}
	return -EPROTO;
}

int wire_unpack(const struct wire_frame *several, size_t *at, enum wire_socket where,
		struct wire_frame *ret)
{
	size_t left = wire_len(several) - *at;
	struct wire_head head;
	int r;

	if (left == 0)
		return 0;
	if (left < sizeof(head))
		return -EPROTO;
	memcpy(&head, several->data + *at, sizeof(head));
	if (head.type == WIRE_SEVERAL || head.len < sizeof(head) || head.len > left)
		return -EPROTO;
	memcpy(ret, several->data + *at, head.len);
	r = wire_check(ret, head.len, where);
	if (r < 0)
		return r;
	*at += head.len;
	return 1;
}

bool wire_name_ok(const unsigned char *name, size_t len)
{
	if (len == 0 || len > WIRE_NAME_MAX)
		return false;
	if (memchr(name, '/', len) || memchr(name, '\0', len))
		return false;
	return !(name[0] == '.' && (len == 1 || (len == 2 && name[1] == '.')));
}

static int send_parts(int fd, enum wire_type type, const void *data, size_t len, const void *more,
		      size_t more_len, const int *fds, size_t n_fds)
{
	struct wire_head head = { .type = (uint16_t)type };
	struct iovec parts[] = {
		{ .iov_base = &head, .iov_len = sizeof(head) },
		{ .iov_base = (void *)(uintptr_t)data, .iov_len = len },
		{ .iov_base = (void *)(uintptr_t)more, .iov_len = more_len },
	};

	if (len > WIRE_DATA_MAX || more_len > WIRE_DATA_MAX - len)
		return -EMSGSIZE;
	head.len = (uint32_t)(sizeof(head) + len + more_len);
	return sock_send(fd, parts, ARRAY_SIZE(parts), fds, n_fds);
}

int wire_send(int fd, enum wire_type type, const void *data, size_t len)
{
	return send_parts(fd, type, data, len, NULL, 0, NULL, 0);
}

int wire_send2(int fd, enum wire_type type, const void *data, size_t len, const void *more,
	       size_t more_len)
{
	return send_parts(fd, type, data, len, more, more_len, NULL, 0);
}

int wire_send_fds(int fd, enum wire_type type, const void *data, size_t len, const int *fds,
		  size_t n_fds)
{
	return send_parts(fd, type, data, len, NULL, 0, fds, n_fds);
}

int wire_send_fds_now(int fd, enum wire_type type, const void *data, size_t len, const int *fds,
		      size_t n_fds)
{
	struct wire_head head = { .type = (uint16_t)type, .len = (uint32_t)(sizeof(head) + len) };
	struct iovec parts[] = {
		{ .iov_base = &head, .iov_len = sizeof(head) },
		{ .iov_base = (void *)(uintptr_t)data, .iov_len = len },
	};

	return len > WIRE_DATA_MAX ? -EMSGSIZE :
				     sock_send_now(fd, parts, ARRAY_SIZE(parts), fds, n_fds);
}

int wire_recv_fds(int fd, struct wire_frame *ret, enum wire_socket where, int *fds, size_t *n_fds)
{
	ssize_t n = sock_recv(fd, ret, sizeof(*ret), fds, n_fds);
	int r;

	if (n == -EMSGSIZE)
		return -EPROTO;
	if (n < 0)
		return (int)n;
	if (n == 0)
		return 0;
	r = wire_check(ret, (size_t)n, where);
	if (r < 0) {
		if (fds)
			while (*n_fds)
				fd_close(fds[--*n_fds]);
		return r;
	}
	return 1;
}

int wire_recv(int fd, struct wire_frame *ret, enum wire_socket where)
{
	return wire_recv_fds(fd, ret, where, NULL, NULL);
}

const char *wire_step_name(uint32_t step)
{
	static const char *const names[_WIRE_STEP_MAX] = {
		[WIRE_STEP_NONE] = "nothing",
		[WIRE_STEP_REQUEST] = "read the request",
		[WIRE_STEP_CGROUP] = "join the cgroup",
		[WIRE_STEP_RLIMIT] = "set the process limits",
		[WIRE_STEP_DROP] = "become the user",
		[WIRE_STEP_CWD] = "enter the working directory",
		[WIRE_STEP_EXEC] = "execute",
		[WIRE_STEP_USER] = "find the user",
		[WIRE_STEP_PROCESS] = "find the command",
		[WIRE_STEP_FILE] = "work on the file",
		[WIRE_STEP_CONTEXT] = "find the context",
	};

	return step < _WIRE_STEP_MAX ? names[step] : "unknown step";
}
