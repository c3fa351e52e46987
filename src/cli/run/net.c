/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/run/net_priv.h"

#include "base/clock.h"
#include "box/doors.h"
#include "sys/sock.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>

#define BOX_ID "run" /* egress knows one box, this one */
#define ANSWER_US (UINT64_C(10) * 1000000)
#define LAST_WORDS_US (UINT64_C(1) * 1000000)

static int lost(struct fail *fail, int err)
{
	return fail_set(fail, -err, "egress", "cannot talk to glovebox-egress: %s", strerror(-err));
}

/* --- start -------------------------------------------------------------------------------------------------- */

/* One end of a new pair is ours, the other is where egress looks for its server. */
static int introduce_server(struct run_net *n)
{
	const struct timeval patience = { .tv_sec = ANSWER_US / 1000000 };
	_cleanup_(fd_closep) int ours = -EBADF;
	_cleanup_(fd_closep) int theirs = -EBADF;
	struct egress_frame f = { 0 };
	int pair[2], r = sock_pair(pair);

	if (r < 0)
		return r;
	ours = pair[0];
	theirs = pair[1];
	/* Should it hang, so do not we. */
	if (setsockopt(ours, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience)) < 0)
		return -errno;
	r = egress_send(n->room.sock, EGRESS_SERVER, &f, &theirs, 1);
	if (r == 0)
		n->sock = take_fd(&ours);
	return r;
}

int run_net_start(const struct run_request *q, struct run_net **ret, struct fail *fail)
{
	struct run_net *n;
	int r;

	*ret = NULL;
	if (!run_net_wanted(&q->net))
		return 0;
	n = calloc(1, sizeof(*n));
	if (!n)
		return fail_set(fail, ENOMEM, "egress", "out of memory");
	*n = (struct run_net){ .room = EGRESS_ROOM_INIT,
			       .sock = -EBADF,
			       .log = NET_LOG_INIT(RUN_CONNECTIONS_SHOWN) };
	*ret = n;
	r = egress_start(q->net.settings, q->net.learn, &n->room, fail);
	if (r == 0)
		r = egress_tell_operator(&n->room, q->net.settings, fail);
	if (r < 0)
		return r;
	r = introduce_server(n);
	return r < 0 ? lost(fail, r) : 0;
}

void run_net_free(struct run_net *n)
{
	if (!n)
		return;
	fd_closep(&n->sock);
	egress_end(&n->room);
	net_log_done(&n->log);
	learned_done(&n->learned);
	free(n);
}

/* --- doors and rules ------------------------------------------------------------------------------------------- */

static void doors_closep(struct doors *d)
{
	doors_close(d);
}

static int open_doors(struct run_net *n, const struct box *b, struct fail *fail)
{
	_cleanup_(doors_closep) struct doors doors = DOORS_INIT;
	struct egress_frame f = { .as_OPEN = { .id = BOX_ID } };
	int r = doors_open(b, &doors, fail);

	if (r < 0)
		return r;
	n->catches = doors.catches;
	f.as_OPEN.n_doors = (uint32_t)doors.n;
	memcpy(f.as_OPEN.door, doors.kind, doors.n * sizeof(doors.kind[0]));
	/* Ours are closed here: without egress the doors are gone, and nobody gets through. */
	r = egress_send(n->room.sock, EGRESS_OPEN, &f, doors.fd, doors.n);
	return r < 0 ? lost(fail, r) : 0;
}

static int send_rules(struct run_net *n, const struct run_net_wish *w)
{
	const struct config *c = w->settings;
	struct egress_frame f = { .as_POLICY = {
					  .id = BOX_ID,
					  .limits = {
						  .connections = (uint32_t)c->egress_connections,
						  .lookups = (uint32_t)c->egress_lookups,
						  .bytes_up = c->egress_bytes_up,
						  .bytes_down = c->egress_bytes_down,
					  } } };
	int r = egress_send(n->sock, EGRESS_POLICY, &f, NULL, 0);

	for (size_t i = 0; r == 0 && i < w->n_uses; i++) {
		f = (struct egress_frame){ .as_USE = { .id = BOX_ID } };
		memcpy(f.as_USE.set, w->use[i], sizeof(f.as_USE.set));
		r = egress_send(n->sock, EGRESS_USE, &f, NULL, 0);
	}
	for (size_t i = 0; r == 0 && i < w->n_rules; i++) {
		f = (struct egress_frame){ .as_RULE = { .id = BOX_ID, .rule = w->rules[i] } };
		r = egress_send(n->sock, EGRESS_RULE, &f, NULL, 0);
	}
	if (r < 0)
		return r;
	f = (struct egress_frame){ .as_COMMIT = { .id = BOX_ID } };
	return egress_send(n->sock, EGRESS_COMMIT, &f, NULL, 0);
}

/* Reads until APPLIED comes: 0, -ETIMEDOUT, -EPIPE or what is wrong with the rules. */
static int await_applied(struct run_net *n, uint64_t patience_us)
{
	uint64_t now = clock_boot_us(), until = now + patience_us;

	n->applied = false;
	while (n->sock >= 0 && !n->applied && now < until) {
		struct pollfd p = { .fd = n->sock, .events = POLLIN };

		if (poll(&p, 1, (int)((until - now + 999) / 1000)) > 0)
			run_net_read(n, NULL);
		now = clock_boot_us();
	}
	if (n->applied)
		return -n->applied_err;
	return n->sock < 0 ? -EPIPE : -ETIMEDOUT;
}

int run_net_open(struct run_net *n, const struct run_net_wish *w, const struct box *b,
		 struct fail *fail)
{
	int r = open_doors(n, b, fail);

	if (r < 0)
		return r;
	r = send_rules(n, w);
	if (r == 0)
		r = await_applied(n, ANSWER_US);
	if (r == -EPIPE)
		return fail_set(fail, EPIPE, "egress", "glovebox-egress died while it started");
	return r < 0 ? fail_set(fail, -r, "egress", "glovebox-egress does not take the rules: %s",
				strerror(-r)) :
		       0;
}

/* --- end ------------------------------------------------------------------------------------------------------ */

/*
 * The box is closed, which ends what it still has open; then egress is asked something that it answers only after it
 * has told all of that. (The answer is that there is no such box.)
 */
static void hear_last_words(struct run_net *n)
{
	struct egress_frame close = { .as_CLOSE = { .id = BOX_ID } };
	struct egress_frame ask = { .as_COMMIT = { .id = BOX_ID } };

	if (n->sock >= 0 && egress_send(n->room.sock, EGRESS_CLOSE, &close, NULL, 0) == 0 &&
	    egress_send(n->sock, EGRESS_COMMIT, &ask, NULL, 0) == 0)
		(void)!await_applied(n, LAST_WORDS_US);
}

void run_net_finish(struct run_net *n, const struct run_request *q, struct run_result *r)
{
	if (n->sock < 0 && !r->message[0])
		(void)snprintf(r->message, sizeof(r->message),
			       "glovebox-egress died, and the box had no network from then on");
	hear_last_words(n);
	r->network = run_network_json(&n->log, n->catches);
	n->learned.is_partial |= n->log.totals.missed > 0;
	if (q->net.learn)
		r->learned = learned_json(&n->learned);
}
