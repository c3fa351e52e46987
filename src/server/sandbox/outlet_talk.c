/* SPDX-License-Identifier: Apache-2.0 */
/* The thread that talks with egress. */
#include "server/sandbox/outlet_priv.h"

#include "base/clock.h"
#include "server/sandbox/link.h"
#include "server/sandbox/log.h"
#include "server/sandbox/sandbox.h"
#include "server/sandbox/secret.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/time.h>

#define SEND_TIMEOUT_S 10
#define FRAMES_PER_TURN 256 /* read before what is stale gets its turn */
#define RETRY_MS 50         /* when there was no memory for a message */
#define MEET_TIMEOUT_MS 5000

struct owner {
	struct server *server;
	const char *key_id;
};

static int expand(void *arg, const char *value, char ret[static EGRESS_HEADER_VALUE_SIZE])
{
	const struct owner *o = arg;
	struct fail fail;

	return secret_expand(o->server, o->key_id, value, ret, EGRESS_HEADER_VALUE_SIZE, &fail);
}

static struct egress_limits limits_of(const struct config *c)
{
	return (struct egress_limits){
		.connections = (uint32_t)c->egress_connections,
		.lookups = (uint32_t)c->egress_lookups,
		.bytes_up = c->egress_bytes_up,
		.bytes_down = c->egress_bytes_down,
	};
}

static void tell_missing(struct outlets *all, const char *id, size_t n)
{
	struct sandbox *b = sandbox_get(all->server, id);

	if (b)
		sandbox_log(
			b, "warn",
			"network: %zu header(s) are sent empty: their secret is gone, cannot be "
			"read, or is too long beside the values of the others (%zu bytes together)",
			n, EGRESS_HEADER_VALUES_MAX);
	sandbox_put(b);
}

/* Nobody may be waiting who would be told: a changed secret and a new egress are not the box's own wish. */
static void tell_refused(struct outlets *all, const struct egress_applied *a)
{
	struct sandbox *b = sandbox_get(all->server, a->id);

	if (b)
		sandbox_log(b, "error",
			    "network: its rules were told to egress and do not hold: %s",
			    a->err == ESRCH ? "a rule set that they use is not there" :
			    a->err == E2BIG ? "they are more than there may be" :
					      strerror(a->err));
	sandbox_put(b);
}

/* --- to egress ---------------------------------------------------------------------------------------------- */

/* With the lock held. */
static struct outlet *next_stale(struct outlets *all)
{
	struct outlet *o = all->urgent.first;

	for (size_t i = 0; !o && i < OUTLET_TURNS; i++) {
		all->turn = (all->turn + 1) % OUTLET_TURNS;
		o = all->refresh[all->turn].first;
	}
	return o;
}

/* One that was stale, and is no longer; what it holds has been counted for us. */
static struct held *take_stale(struct outlets *all, char ret_id[static WARDEN_ID_SIZE],
			       char ret_key[static STORE_ID_SIZE], struct egress_limits *limits)
{
	struct held *h = NULL;
	struct outlet *o;

	pthread_mutex_lock(&all->lock);
	o = next_stale(all);
	if (o) {
		outlet_clear_stale(o);
		o->told = true;
		h = o->held;
		h->refs++;
		limits->used_up = o->used_up;
		limits->used_down = o->used_down;
		memcpy(ret_id, o->id, WARDEN_ID_SIZE);
		memcpy(ret_key, o->key_id, STORE_ID_SIZE);
	}
	pthread_mutex_unlock(&all->lock);
	return h;
}

/* It did not read in time, or there was no memory: once more, from the beginning. */
static void take_back(struct outlets *all, const char *id)
{
	struct outlet *o;

	pthread_mutex_lock(&all->lock);
	o = outlet_find(all, id);
	if (o) {
		o->told = false;
		outlet_set_stale(o);
	}
	pthread_mutex_unlock(&all->lock);
	all->retry = true;
}

static int send_one(struct outlets *all)
{
	struct egress_limits limits = limits_of(&all->server->config);
	char id[WARDEN_ID_SIZE], key_id[STORE_ID_SIZE];
	struct held *h = take_stale(all, id, key_id, &limits);
	struct owner owner = { .server = all->server, .key_id = key_id };
	size_t missing = 0;
	int r;

	if (!h)
		return 0;
	r = network_send(all->sock, id, &h->network, &limits, expand, &owner, &missing);
	pthread_mutex_lock(&all->lock);
	held_unref(h);
	pthread_mutex_unlock(&all->lock);
	if (missing)
		tell_missing(all, id, missing);
	if (r == -EAGAIN || r == -ENOBUFS || r == -ENOMEM) {
		take_back(all, id);
		return 0;
	}
	all->awaits_answer = r == 0;
	return r;
}

/* --- from egress -------------------------------------------------------------------------------------------- */

static void applied(struct outlets *all, const struct egress_applied *a)
{
	bool is_refused = false;
	struct outlet *o;

	all->awaits_answer = false;
	pthread_mutex_lock(&all->lock);
	o = outlet_find(all, a->id);
	if (o && o->told) {
		o->told = false;
		o->settled = !o->stale;
		o->urgent = o->urgent && !o->settled;
		o->err = a->err;
		is_refused = a->err &&
			     a->err != ENOENT; /* a box without doors reaches nothing anyway */
		pthread_cond_broadcast(&o->changed);
	}
	pthread_mutex_unlock(&all->lock);
	if (is_refused)
		tell_refused(all, a);
}

/* 0, or negative when there is nobody any more. */
static int read_some(struct outlets *all)
{
	for (int i = 0; i < FRAMES_PER_TURN; i++) {
		struct pollfd p = { .fd = all->sock, .events = POLLIN };
		struct egress_frame f;
		int r;

		if (poll(&p, 1, 0) <= 0)
			return 0;
		r = egress_recv(all->sock, &f, EGRESS_FROM_EGRESS, NULL, NULL);
		if (r <= 0)
			return r < 0 ? r : -ENOTCONN;
		if (f.head.type == EGRESS_APPLIED)
			applied(all, &f.as_APPLIED);
		else
			outlet_note(all, &f.as_EVENT);
	}
	return 0;
}

/* --- the loop ------------------------------------------------------------------------------------------------ */

static void forget_answers(struct outlets *all)
{
	for (size_t i = 0; i < OUTLET_BUCKETS; i++)
		for (struct outlet *o = all->bucket[i]; o; o = o->next) {
			o->told = false;
			net_log_cut(&o->log);
			outlet_set_stale(o);
		}
}

/* A new socket takes the place of the old one. False: it is time to stop. */
static bool take_up(struct outlets *all)
{
	struct timeval tv = { .tv_sec = SEND_TIMEOUT_S };
	bool go_on;
	int sock;

	pthread_mutex_lock(&all->lock);
	sock = take_fd(&all->next_sock);
	go_on = !all->stop;
	if (sock >= 0) {
		all->meet_us = 0;
		forget_answers(all);
	}
	pthread_mutex_unlock(&all->lock);
	if (sock >= 0) {
		fd_close(all->sock);
		all->sock = sock;
		all->awaits_answer = false;
		(void)setsockopt(sock, SOL_SOCKET, SO_SNDTIMEO, &tv, sizeof(tv));
	}
	return go_on;
}

/* We are there, and so may egress be: without the warden we would not find each other again. */
static void ask_to_meet(struct outlets *all)
{
	struct warden_frame f = { 0 };
	struct warden_reply reply;
	bool is_time;

	pthread_mutex_lock(&all->lock);
	is_time = all->meet_us && clock_boot_us() >= all->meet_us;
	if (is_time)
		all->meet_us = clock_boot_us() + OUTLET_MEET_US;
	pthread_mutex_unlock(&all->lock);
	if (is_time)
		(void)!link_ask(all->server->link, WARDEN_MEET, &f, MEET_TIMEOUT_MS, &reply, NULL);
}

/* -1: until something happens. */
static int patience_ms(struct outlets *all)
{
	int ms = all->retry ? RETRY_MS : -1;

	pthread_mutex_lock(&all->lock);
	if (all->meet_us)
		ms = OUTLET_MEET_US / 1000;
	pthread_mutex_unlock(&all->lock);
	all->retry = false;
	return ms;
}

static void wait_for_work(struct outlets *all)
{
	struct pollfd p[] = {
		{ .fd = all->wake_fd, .events = POLLIN },
		{ .fd = all->sock, .events = POLLIN }, /* negative: not looked at */
	};
	int ms = patience_ms(all);
	eventfd_t n;

	while (poll(p, ARRAY_SIZE(p), ms) < 0 && errno == EINTR)
		;
	(void)eventfd_read(all->wake_fd, &n);
}

static void hang_up(struct outlets *all, int why)
{
	server_log(all->server, "warn", "egress_lost",
		   json_pack("{s:s}", "error", why == -ENOTCONN ? "it ended" : strerror(-why)));
	fd_closep(&all->sock);
	pthread_mutex_lock(&all->lock);
	all->meet_us = clock_boot_us() + OUTLET_MEET_US;
	pthread_mutex_unlock(&all->lock);
}

void *outlets_talk(void *arg)
{
	struct outlets *all = arg;
	int r;

	while (take_up(all)) {
		r = all->sock < 0 ? 0 : read_some(all);
		if (r == 0 && all->sock >= 0 && !all->awaits_answer)
			r = send_one(all);
		if (r < 0)
			hang_up(all, r);
		wait_for_work(all);
		ask_to_meet(all);
	}
	fd_closep(&all->sock);
	return NULL;
}
