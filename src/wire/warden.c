/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/warden.h"

#include "sys/sock.h"

#define TO_WARDEN WARDEN_TO_WARDEN
#define FROM_WARDEN WARDEN_FROM_WARDEN

static const struct rule {
	uint32_t type;
	uint32_t where; /* enum warden_direction */
	size_t size;    /* of the payload */
} rules[] = {
#define MESSAGE(name, number, direction, payload) { (number), (direction), sizeof(payload) },
#include "wire/warden.def"
#undef MESSAGE
};

static bool warden_is_zero(const void *data, size_t len)
{
	const unsigned char *p = data;

	for (size_t i = 0; i < len; i++)
		if (p[i])
			return false;
	return true;
}

bool warden_id_ok(const char id[WARDEN_ID_SIZE])
{
	size_t len = 0;

	while (len < WARDEN_ID_SIZE &&
	       ((id[len] >= 'a' && id[len] <= 'z') || (id[len] >= '0' && id[len] <= '9')))
		len++;
	return len > 0 && len < WARDEN_ID_SIZE && warden_is_zero(id + len, WARDEN_ID_SIZE - len);
}

static bool id_or_empty_ok(const char id[WARDEN_ID_SIZE])
{
	return warden_is_zero(id, WARDEN_ID_SIZE) || warden_id_ok(id);
}

/* Ended, and nothing behind the end: what is not text must not travel as if it were. */
static bool warden_text_ok(const char *text, size_t size)
{
	size_t len = strnlen(text, size);

	return len < size && warden_is_zero(text + len, size - len);
}

static bool create_ok(const struct warden_create *c)
{
	if (!warden_id_ok(c->id) || c->zero || c->n_layers > WARDEN_LAYERS_MAX)
		return false;
	for (size_t i = 0; i < WARDEN_LAYERS_MAX; i++)
		if (i < c->n_layers ? !warden_id_ok(c->layer[i]) :
				      !warden_is_zero(c->layer[i], WARDEN_ID_SIZE))
			return false;
	return true;
}

static bool box_ok(const struct warden_box *b)
{
	return warden_id_ok(b->id) && !(b->flags & ~WARDEN_BOX_DOORS);
}

static bool reply_ok(const struct warden_reply *r)
{
	bool has_box = !warden_is_zero(&r->box, sizeof(r->box));

	return !(r->flags & ~WARDEN_NET_CATCHES) && warden_text_ok(r->where, sizeof(r->where)) &&
	       warden_text_ok(r->msg, sizeof(r->msg)) && (!has_box || box_ok(&r->box)) &&
	       id_or_empty_ok(r->layer);
}

/* The fields of a message of the right size and direction. */
static bool warden_payload_ok(const struct warden_frame *f)
{
	switch ((enum warden_type)f->head.type) {
	case WARDEN_HELLO:
		return !f->as_HELLO.zero;
	case WARDEN_CREATE:
		return create_ok(&f->as_CREATE);
	case WARDEN_KILL:
	case WARDEN_PAUSE:
	case WARDEN_USAGE:
	case WARDEN_PAUSED:
	case WARDEN_NET:
		return warden_id_ok(f->as_KILL.id);
	case WARDEN_DEADLINE:
	case WARDEN_RESUME:
		return warden_id_ok(f->as_DEADLINE.id);
	case WARDEN_SNAPSHOT:
		return warden_id_ok(f->as_SNAPSHOT.id) && warden_id_ok(f->as_SNAPSHOT.layer);
	case WARDEN_DROP_LAYER:
		return warden_id_ok(f->as_DROP_LAYER.layer);
	case WARDEN_NEXT_LAYER:
		return id_or_empty_ok(f->as_NEXT_LAYER.layer);
	case WARDEN_CONTEXT: {
		const struct warden_context *c = &f->as_CONTEXT;

		return warden_id_ok(c->id) && wire_word_ok(c->context.name, WIRE_CONTEXT_SIZE) &&
		       wire_word_ok(c->context.language, WIRE_LANGUAGE_SIZE) && c->zygote > 0 &&
		       c->zygote < _WARDEN_ZYGOTE_MAX && !(c->flags & ~WARDEN_CONTEXT_BETTER);
	}
	case WARDEN_SOCKET:
		return warden_id_ok(f->as_SOCKET.id) && !f->as_SOCKET.zero &&
		       (f->as_SOCKET.family == 4 || f->as_SOCKET.family == 6);
	case WARDEN_MEET:
	case WARDEN_EGRESS:
		return !f->as_EGRESS.zero;
	case WARDEN_REPLY:
		return reply_ok(&f->as_REPLY);
	case WARDEN_BOX:
		return box_ok(&f->as_BOX);
	case WARDEN_ENDED:
		return warden_id_ok(f->as_ENDED.id) && !f->as_ENDED.zero;
	}
	return false;
}

int warden_check(const struct warden_frame *f, size_t n, enum warden_direction where)
{
	if (n < sizeof(f->head) || n > sizeof(*f) || f->head.len != n)
		return -EPROTO;
	for (size_t i = 0; i < ARRAY_SIZE(rules); i++)
		if (rules[i].type == f->head.type)
			return rules[i].where == where && n == sizeof(f->head) + rules[i].size &&
					       warden_payload_ok(f) ?
				       0 :
				       -EPROTO;
	return -EPROTO;
}

int warden_send(int sock, enum warden_type type, struct warden_frame *f, int fd)
{
	struct iovec part = { .iov_base = f };

	for (size_t i = 0; i < ARRAY_SIZE(rules); i++)
		if (rules[i].type == type)
			part.iov_len = sizeof(f->head) + rules[i].size;
	if (part.iov_len == 0)
		return -EINVAL;
	f->head.type = type;
	f->head.len = (uint32_t)part.iov_len;
	return sock_send(sock, &part, 1, &fd, fd >= 0 ? 1 : 0);
}

int warden_recv(int sock, struct warden_frame *ret, enum warden_direction where, int *ret_fd)
{
	bool takes_fd = where == WARDEN_FROM_WARDEN && ret_fd;
	_cleanup_(fd_closep) int fd = -EBADF;
	size_t n_fds = 1;
	ssize_t n;

	memset(ret, 0, sizeof(*ret));
	n = sock_recv(sock, ret, sizeof(*ret), takes_fd ? &fd : NULL, takes_fd ? &n_fds : NULL);
	if (n == -EMSGSIZE)
		return -EPROTO;
	if (n <= 0 && n != -EMFILE)
		return (int)n;
	/* With -EMFILE it is here, only its descriptor is not. What it says of its size is held
	 * against its type's. */
	if (warden_check(ret, n < 0 ? ret->head.len : (size_t)n, where) < 0)
		return -EPROTO;
	if (fd >= 0 && ret->head.type != WARDEN_REPLY && ret->head.type != WARDEN_BOX &&
	    ret->head.type != WARDEN_EGRESS)
		return -EPROTO;
	if (ret_fd)
		*ret_fd = take_fd(&fd);
	return 1;
}
