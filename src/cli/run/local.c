/* SPDX-License-Identifier: Apache-2.0 */
/* A run in this process with all that the whole program can give it: network, and its outputs. */
#include "cli/run/run.h"

#include "base/clock.h"
#include "wire/tree.h"

#include <fcntl.h>
#include <sodium.h>

/* --- outputs --------------------------------------------------------------------------------- */

#define NAMES_MAX ((size_t)8 << 20) /* bytes of all outputs' paths */
#define REFUSED_MAX 1000            /* refused outputs that are named; the rest is counted */

struct collector {
	struct run_result *result;
	crypto_hash_sha256_state hash;
	bool hashing;
	size_t name_bytes;
};

/* FI-11: names are the box's to choose, and we keep them in memory. */
static int outputs_count_name(struct collector *c, const char *path)
{
	c->name_bytes += strlen(path) + 1;
	return c->name_bytes > NAMES_MAX ? -E2BIG : 0;
}

static void outputs_on_data(void *arg, const void *data, size_t len)
{
	struct collector *c = arg;

	if (!c->hashing)
		crypto_hash_sha256_init(&c->hash);
	c->hashing = true;
	crypto_hash_sha256_update(&c->hash, data, len);
}

static int outputs_on_file(void *arg, const char *path, uint64_t size)
{
	struct collector *c = arg;
	struct run_result *r = c->result;
	struct run_output *grown;
	int e = outputs_count_name(c, path);

	if (e < 0)
		return e;
	grown = reallocarray(r->outputs, r->n_outputs + 1, sizeof(*r->outputs));
	if (!grown)
		return -ENOMEM;
	r->outputs = grown;
	grown += r->n_outputs;
	*grown = (struct run_output){ .path = strdup(path), .size = size };
	if (!grown->path)
		return -ENOMEM;
	if (!c->hashing)
		crypto_hash_sha256_init(&c->hash);
	c->hashing = false;
	crypto_hash_sha256_final(&c->hash, grown->sha256);
	r->n_outputs++;
	return 0;
}

static int outputs_on_refused(void *arg, const char *path, uint32_t type)
{
	struct collector *c = arg;
	struct run_result *r = c->result;
	struct run_refused *grown;
	int e = outputs_count_name(c, path);

	if (e < 0)
		return e;
	if (r->n_refused == REFUSED_MAX) {
		r->refused_more++;
		return 0;
	}
	grown = reallocarray(r->refused, r->n_refused + 1, sizeof(*r->refused));
	if (!grown)
		return -ENOMEM;
	r->refused = grown;
	grown += r->n_refused;
	*grown = (struct run_refused){ .path = strdup(path), .type = type };
	if (!grown->path)
		return -ENOMEM;
	r->n_refused++;
	return 0;
}

static int outputs_fetch(const struct run_request *q, struct box *b, struct run_result *r,
			 struct fail *fail)
{
	_cleanup_(fd_closep) int dir_fd = open(q->out_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	_cleanup_(fd_closep) int sock = -EBADF;
	const struct tree_limits limits = {
		.bytes = q->run.limits.disk_bytes,
		.entries = q->run.limits.files,
		.deadline_boot_us = clock_boot_us() + RUN_TRANSFER_US,
		.cancel_fd = q->signal_fd,
	};
	struct collector c = { .result = r };
	const struct tree_events events = {
		.arg = &c,
		.data = outputs_on_data,
		.file = outputs_on_file,
		.refused = outputs_on_refused,
	};
	int e;

	if (dir_fd < 0)
		return fail_set(fail, errno, "outputs", "cannot open %s: %s", q->out_dir,
				strerror(errno));
	sock = box_files(b, WIRE_GET, RUN_OUT, fail);
	if (sock < 0)
		return sock;
	e = tree_recv(sock, WIRE_ON_FROM_OP, dir_fd, &limits, &events);
	switch (-e) {
	case 0:
	case ENOENT: /* the program made no such directory */
		return 0;
	case ENOTDIR:
	case ELOOP:
		return fail_set(fail, -e, "outputs",
				"%s is not a directory or nested too deep; nothing more was copied",
				RUN_OUT);
	case EFBIG:
	case E2BIG:
		return fail_set(
			fail, -e, "outputs",
			"the outputs are more than --disk or --files allow; the rest was not "
			"copied");
	default:
		return fail_set(fail, -e, "outputs", "cannot copy the outputs: %s", strerror(-e));
	}
}

/* --- the run --------------------------------------------------------------------------------- */

struct local_run {
	const struct run_request *q;
	struct run_net *net; /* NULL: it gets no network */
};

static void run_net_freep(struct run_net **n)
{
	run_net_free(*n);
}

static int open_net(void *arg, const struct box *b, struct fail *fail)
{
	const struct local_run *l = arg;

	return run_net_open(l->net, &l->q->net, b, fail);
}

static int net_fd(void *arg)
{
	return run_net_fd(((const struct local_run *)arg)->net);
}

static void read_net(void *arg)
{
	const struct local_run *l = arg;

	run_net_read(l->net, l->q);
}

static void on_over(void *arg, struct box *b, struct run_result *r)
{
	const struct local_run *l = arg;
	struct fail fail = { 0 };

	/* The run counts even when its files cannot be had; say so and go on. */
	if (l->q->out_dir && r->status != RUN_SETUP_ERROR && !r->cancelled_by &&
	    outputs_fetch(l->q, b, r, &fail) < 0)
		(void)snprintf(r->message, sizeof(r->message), "%s", fail.msg);
	if (l->net)
		run_net_finish(l->net, l->q, r);
}

int run_local(const struct run_request *q, struct run_result *r)
{
	_cleanup_(run_net_freep) struct run_net *net = NULL;
	struct local_run l = { .q = q };
	struct run_extras extras = { .arg = &l, .over = on_over };
	struct template t;
	struct fail fail = { 0 };
	/* First, so that it comes up on another CPU while we make the box. */
	int e = run_net_start(q, &net, &fail);

	if (e == 0)
		e = template_open(q->template_name, run_net_ca_bundle(&q->net), &t, &fail);
	if (e < 0) {
		run_failed(q, r, &fail);
		return e;
	}
	if (net) {
		l.net = net;
		extras.up = open_net;
		extras.fd = net_fd;
		extras.read = read_net;
	}
	return run_in_box(q, &t, &extras, r);
}
