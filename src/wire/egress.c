/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/egress.h"

#include "sys/sock.h"

#define WARDEN EGRESS_FROM_WARDEN
#define SERVER EGRESS_FROM_SERVER
#define REPORT EGRESS_FROM_EGRESS

static const struct message {
	uint32_t type;
	uint32_t channel; /* enum egress_channel */
	size_t size;      /* of the payload */
} messages[] = {
#define MESSAGE(name, number, channel, payload) { (number), (channel), sizeof(payload) },
#include "wire/egress.def"
#undef MESSAGE
};

static const struct message *find_message(uint32_t type)
{
	for (size_t i = 0; i < ARRAY_SIZE(messages); i++)
		if (messages[i].type == type)
			return &messages[i];
	return NULL;
}

static bool egress_is_zero(const void *data, size_t len)
{
	const unsigned char *p = data;

	for (size_t i = 0; i < len; i++)
		if (p[i])
			return false;
	return true;
}

/* Ended, and nothing behind the end. */
static bool egress_text_ok(const char *text, size_t size)
{
	size_t len = strnlen(text, size);

	return len < size && egress_is_zero(text + len, size - len);
}

static bool open_ok(const struct egress_open *o)
{
	if (!warden_id_ok(o->id) || o->zero || o->n_doors == 0 || o->n_doors > EGRESS_DOORS_MAX)
		return false;
	for (size_t i = 0; i < EGRESS_DOORS_MAX; i++)
		if (i < o->n_doors ? o->door[i] == 0 || o->door[i] >= _EGRESS_DOOR_MAX :
				     o->door[i] != 0)
			return false;
	return true;
}

static bool egress_is_token(const char *text)
{
	static const char token[] = "!#$%&'*+-.^_`|~0123456789"
				    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";

	return text[0] && text[strspn(text, token)] == '\0';
}

/* Those that say where a message ends, to whom it goes or how the connection is used are egress'
 * own. */
static bool is_of_connection(const char *name)
{
	static const char *const own[] = { "host",       "content-length", "transfer-encoding",
					   "connection", "keep-alive",     "te",
					   "trailer",    "upgrade",        "expect" };

	for (size_t i = 0; i < ARRAY_SIZE(own); i++)
		if (strcasecmp(name, own[i]) == 0)
			return true;
	return strncasecmp(name, "proxy-", strlen("proxy-")) == 0;
}

bool egress_header_name_ok(const char name[static EGRESS_HEADER_NAME_SIZE])
{
	return egress_text_ok(name, EGRESS_HEADER_NAME_SIZE) && egress_is_token(name) &&
	       !is_of_connection(name);
}

bool egress_header_value_ok(const char value[static EGRESS_HEADER_VALUE_SIZE])
{
	if (!egress_text_ok(value, EGRESS_HEADER_VALUE_SIZE))
		return false;
	for (const char *p = value; *p; p++)
		if ((unsigned char)*p < ' ' || *p == 0x7f)
			return false;
	return true;
}

/* A canonical name, or a dot and the name below which it holds. */
static bool header_host_ok(const char host[static POLICY_NAME_SIZE])
{
	char name[POLICY_NAME_SIZE] = { 0 };

	if (host[0] != '.')
		return name_ok(host);
	memcpy(name, host + 1, POLICY_NAME_SIZE - 1);
	return name_ok(name);
}

static bool header_ok(const struct egress_header *h)
{
	return warden_id_ok(h->id) && header_host_ok(h->host) && egress_header_name_ok(h->name) &&
	       egress_header_value_ok(h->value) && h->tls <= 1 && !h->zero;
}

static bool event_ok(const struct egress_event *e)
{
	return warden_id_ok(e->id) && e->how > 0 && e->how < _EGRESS_HOW_MAX &&
	       policy_reason_is(e->reason) && !(e->flags & ~EGRESS_EVENT_END) &&
	       (egress_is_zero(e->name, sizeof(e->name)) || name_ok(e->name)) &&
	       egress_is_zero(e->zero, sizeof(e->zero));
}

/* The fields of a message of the right size and channel. */
static bool egress_payload_ok(const struct egress_frame *f)
{
	switch ((enum egress_type)f->head.type) {
	case EGRESS_OPERATOR:
	case EGRESS_SERVER:
		return !f->as_OPERATOR.zero;
	case EGRESS_OPEN:
		return open_ok(&f->as_OPEN);
	case EGRESS_CLOSE:
	case EGRESS_COMMIT:
		return warden_id_ok(f->as_CLOSE.id);
	case EGRESS_POLICY:
		return warden_id_ok(f->as_POLICY.id) && f->as_POLICY.base_allow <= 1 &&
		       !f->as_POLICY.zero;
	case EGRESS_USE:
		return warden_id_ok(f->as_USE.id) && set_name_ok(f->as_USE.set);
	case EGRESS_RULE:
		return warden_id_ok(f->as_RULE.id) && rule_ok(&f->as_RULE.rule) &&
		       !(f->as_RULE.rule.flags & ~RULE_DENY);
	case EGRESS_HEADER:
		return header_ok(&f->as_HEADER);
	case EGRESS_APPLIED:
		return warden_id_ok(f->as_APPLIED.id) && f->as_APPLIED.err >= 0;
	case EGRESS_EVENT:
		return event_ok(&f->as_EVENT);
	}
	return false;
}

int egress_check(const struct egress_frame *f, size_t n, enum egress_channel channel)
{
	const struct message *m;

	if (n < sizeof(f->head) || n > sizeof(*f) || f->head.len != n || f->head.request)
		return -EPROTO;
	m = find_message(f->head.type);
	if (!m || m->channel != channel || n != sizeof(f->head) + m->size || !egress_payload_ok(f))
		return -EPROTO;
	return 0;
}

int egress_send(int sock, enum egress_type type, struct egress_frame *f, const int *fds,
		size_t n_fds)
{
	const struct message *m = find_message(type);
	struct iovec part = { .iov_base = f };

	if (!m)
		return -EINVAL;
	part.iov_len = sizeof(f->head) + m->size;
	f->head = (struct warden_head){ .type = type, .len = (uint32_t)part.iov_len };
	return sock_send(sock, &part, 1, fds, n_fds);
}

/* How many descriptors belong to a message that is in order. */
static size_t fds_of(const struct egress_frame *f)
{
	if (f->head.type == EGRESS_OPEN)
		return f->as_OPEN.n_doors;
	return f->head.type == EGRESS_OPERATOR || f->head.type == EGRESS_SERVER ? 1 : 0;
}

int egress_recv(int sock, struct egress_frame *ret, enum egress_channel channel, int *fds,
		size_t *ret_n_fds)
{
	size_t n_fds = EGRESS_DOORS_MAX;
	ssize_t n;

	memset(ret, 0, sizeof(*ret));
	if (ret_n_fds)
		*ret_n_fds = 0;
	n = sock_recv(sock, ret, sizeof(*ret), fds, fds ? &n_fds : NULL);
	if (!fds || n < 0)
		n_fds = 0;
	if (n == -EMSGSIZE)
		return -EPROTO;
	if (n == -EMFILE)
		return egress_check(ret, ret->head.len, channel) < 0 ? -EPROTO : -EMFILE;
	if (n > 0 && egress_check(ret, (size_t)n, channel) == 0 && fds_of(ret) == n_fds) {
		if (ret_n_fds)
			*ret_n_fds = n_fds;
		return 1;
	}
	while (n_fds > 0)
		fd_close(fds[--n_fds]);
	return n > 0 ? -EPROTO : (int)n;
}
