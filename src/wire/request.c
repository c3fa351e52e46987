/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/request.h"

#include "sys/payload.h"

/* A text of its own from bytes without a NUL. */
static int request_add_string(struct agent_request *q, char **list, size_t *n, size_t max,
			      const void *data, size_t len)
{
	char *text;

	if (*n >= max || memchr(data, '\0', len))
		return -EINVAL;
	q->bytes += len + 1;
	if (q->bytes > REQUEST_BYTES_MAX)
		return -E2BIG;
	text = malloc(len + 1);
	if (!text)
		return -ENOMEM;
	memcpy(text, data, len);
	text[len] = '\0';
	q->last = &list[*n];
	list[(*n)++] = text;
	return 0;
}

/* What is too long for one frame comes in several. */
static int request_add_more(struct agent_request *q, const void *data, size_t len)
{
	size_t before = q->last ? strlen(*q->last) : 0;
	char *text;

	if (!q->last || memchr(data, '\0', len))
		return -EINVAL;
	q->bytes += len;
	if (q->bytes > REQUEST_BYTES_MAX)
		return -E2BIG;
	text = realloc(*q->last, before + len + 1);
	if (!text)
		return -ENOMEM;
	memcpy(text + before, data, len);
	text[before + len] = '\0';
	*q->last = text;
	return 0;
}

static int request_add_env(struct agent_request *q, const void *data, size_t len)
{
	const char *equals = memchr(data, '=', len);

	if (!equals || equals == data)
		return -EINVAL;
	return request_add_string(q, q->envs, &q->n_envs, REQUEST_ENVS_MAX, data, len);
}

static int request_copy(char *to, const void *data, size_t len)
{
	if (memchr(data, '\0', len))
		return -EINVAL;
	memcpy(to, data, len); /* the decoder knows how long it may be */
	to[len] = '\0';
	return 0;
}

/* 1: that was the last one. */
static int request_frame_came(struct agent_request *q, const struct wire_frame *f)
{
	size_t len = wire_len(f);

	switch (f->head.type) {
	case WIRE_USER:
		return request_copy(q->user, f->data, len);
	case WIRE_CWD:
		return request_copy(q->cwd, f->data, len);
	case WIRE_ARG:
		return request_add_string(q, q->args, &q->n_args, REQUEST_ARGS_MAX, f->data, len);
	case WIRE_ENV:
		return request_add_env(q, f->data, len);
	case WIRE_MORE:
		return request_add_more(q, f->data, len);
	case WIRE_LABEL:
		return q->label_fd < 0 ? 0 : wire_send(q->label_fd, WIRE_LABEL, f->data, len);
	case WIRE_GO:
		return q->n_args ? 1 : -EINVAL;
	default:
		return -EPROTO;
	}
}

static int request_several_came(struct agent_request *q, const struct wire_frame *several)
{
	static struct wire_frame f;
	size_t at = 0;
	int r = 0, more;

	while ((more = wire_unpack(several, &at, WIRE_ON_TO_OP, &f)) > 0) {
		r = r > 0 ? -EPROTO :
			    request_frame_came(q, &f); /* nothing may follow the last one */
		if (r < 0)
			return r;
	}
	return more < 0 ? more : r;
}

int agent_request_read(int sock, struct agent_request *q)
{
	static struct wire_frame f;

	for (;;) {
		int r = wire_recv(sock, &f, WIRE_ON_TO_OP);

		if (r <= 0)
			return r < 0 ? r : -ECANCELED;
		r = f.head.type == WIRE_SEVERAL ? request_several_came(q, &f) :
						  request_frame_came(q, &f);
		if (r != 0)
			return r < 0 ? r : 0;
	}
}

int agent_request_set_limits(const struct wire_exec *q)
{
	const struct payload_limits limits = {
		.fsize_max = q->fsize_max,
		.data_max = q->data_max,
		.nproc_max = q->nproc_max,
		.cpu_max_s = q->cpu_max_s,
		.nofile_max = q->nofile_max,
	};

	return payload_set_limits(&limits);
}
