/* SPDX-License-Identifier: Apache-2.0 */
/* A run in this process with all that the whole program can give it: network, and its outputs. */
#include "cli/run/run.h"

struct local {
	const struct run_request *q;
	struct run_net *net; /* NULL: it gets no network */
};

static void run_net_freep(struct run_net **n)
{
	run_net_free(*n);
}

static int open_net(void *arg, const struct box *b, struct fail *fail)
{
	const struct local *l = arg;

	return run_net_open(l->net, &l->q->net, b, fail);
}

static int net_fd(void *arg)
{
	return run_net_fd(((const struct local *)arg)->net);
}

static void read_net(void *arg)
{
	const struct local *l = arg;

	run_net_read(l->net, l->q);
}

static void on_over(void *arg, struct box *b, struct run_result *r)
{
	const struct local *l = arg;
	struct fail fail = { 0 };

	/* The run counts even when its files cannot be had; say so and go on. */
	if (l->q->out_dir && r->status != RUN_SETUP_ERROR && !r->cancelled_by &&
	    run_fetch_outputs(l->q, b, r, &fail) < 0)
		(void)snprintf(r->message, sizeof(r->message), "%s", fail.msg);
	if (l->net)
		run_net_finish(l->net, l->q, r);
}

int run_local(const struct run_request *q, struct run_result *r)
{
	_cleanup_(run_net_freep) struct run_net *net = NULL;
	struct local l = { .q = q };
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
