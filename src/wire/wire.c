/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/wire.h"

#include "sys/sock.h"

#define CONTROL WIRE_ON_CONTROL
#define TO_OP WIRE_ON_TO_OP
#define FROM_OP WIRE_ON_FROM_OP
#define BOTH_OP (WIRE_ON_TO_OP | WIRE_ON_FROM_OP)

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

int wire_check(const struct wire_frame *f, size_t n, enum wire_socket where)
{
	size_t len;

	if (n < sizeof(f->head) || n > sizeof(*f) || f->head.len != n || f->head.zero)
		return -EPROTO;
	len = n - sizeof(f->head);
	for (size_t i = 0; i < ARRAY_SIZE(rules); i++) {
		if (rules[i].type != f->head.type)
			continue;
		return (rules[i].where & where) && len >= rules[i].min && len <= rules[i].max ?
			       0 :
			       -EPROTO;
	}
	return -EPROTO;
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
	};

	return step < _WIRE_STEP_MAX ? names[step] : "unknown step";
}
