/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: only one thread ever reads from or writes to egress. A caller that wants
 * rules to hold puts them into the outlet, marks it as stale, wakes the thread and waits; the
 * thread sends what is stale, one outlet at a time, and settles it when egress has answered. Those
 * that somebody waits for come before those that are only told anew, of which a changed secret or a
 * new egress makes thousands; among these, keys take turns. Egress does not read while it has an
 * answer that we do not take: so nothing is sent while one is due. With a new socket everything is
 * stale again, and all callers that wait are served by the next egress without knowing it.
 *
 * The lock guards all that can change. It is never held while a message is sent, the store is asked
 * or a sandbox is looked for.
 */
#include "server/sandbox/outlet.h"

#include "base/clock.h"
#include "run/result.h"
#include "server/sandbox/link.h"
#include "server/sandbox/log.h"
#include "server/sandbox/sandbox.h"
#include "server/sandbox/secret.h"
#include "server/server.h"

#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>

#define APPLY_MS 10000 /* time for egress to come back, should it just have died */
#define LAST_WORDS_MS 1000
#define LINES_PER_SECOND 20
#define SEND_TIMEOUT_S 10
#define FRAMES_PER_TURN 256 /* read before what is stale gets its turn */
#define RETRY_MS 50         /* when there was no memory for a message */
#define MEET_TIMEOUT_MS 5000

#define OUTLET_BUCKETS 1024
#define OUTLET_TURNS 64                  /* more or less one for each key that is busy */
#define OUTLET_MEET_US UINT64_C(1000000) /* that a new egress gets to come by itself */

/* Rules that several threads hold for a while; counted under the lock. */
struct held {
	unsigned refs;
	struct network network;
};

/* Outlets that egress is to be told of, in turn. */
struct stale_list {
	struct outlet *first, **last;
};

struct outlets {
	struct server *server;
	pthread_t thread;
	bool has_thread;
	int wake_fd; /* an eventfd: there is something to do */
	int sock;    /* to egress; this and the next two are the thread's own */
	bool awaits_answer;
	bool retry; /* what could not be sent, in a moment */
	pthread_mutex_t lock;
	bool stop;
	/* When the warden is asked for another socket; 0: one is there, or never was. */
	uint64_t meet_us;
	int next_sock;                           /* one that the thread has not taken up yet */
	struct stale_list urgent;                /* before the next ones, */
	struct stale_list refresh[OUTLET_TURNS]; /* of which each gets its turn */
	size_t turn;
	struct outlet *bucket[OUTLET_BUCKETS];
};

struct outlet {
	struct outlets *all;
	struct outlet *next; /* in its bucket */
	char id[WARDEN_ID_SIZE];
	char key_id[STORE_ID_SIZE];
	size_t turn; /* its key's */
	bool catches;
	struct held *held;                       /* what is to hold; NULL: nothing was said yet */
	bool urgent;                             /* until it is settled: somebody waits for it */
	struct stale_list *stale;                /* egress is to be told: it is in this list, */
	struct outlet *stale_next, **stale_link; /* before this one and behind that */
	bool told;                               /* it was, and has not answered */
	bool settled;                            /* it has answered: err is its word */
	int err;
	pthread_cond_t changed;
	struct net_log log;
	uint64_t used_up, used_down; /* bytes, as far as egress has told */
	uint64_t second;             /* in which that many lines went into the sandbox's log, */
	unsigned lines;
	uint64_t unlogged; /* and that many events did not */
};

/* --- the table -------------------------------------------------------------------------------- */

static size_t outlet_hash(const char *id)
{
	uint32_t hash = 2166136261u; /* FNV-1a: ids are random already */

	for (; *id; id++)
		hash = (hash ^ (unsigned char)*id) * 16777619u;
	return hash % OUTLET_BUCKETS;
}

static struct outlet *outlet_find(struct outlets *all, const char *id)
{
	for (struct outlet *o = all->bucket[outlet_hash(id)]; o; o = o->next)
		if (strcmp(o->id, id) == 0)
			return o;
	return NULL;
}

static struct held *held_new(void)
{
	struct held *h = calloc(1, sizeof(*h));

	if (h)
		h->refs = 1;
	return h;
}

static void held_unref(struct held *h)
{
	if (!h || --h->refs > 0)
		return;
	network_done(&h->network);
	free(h);
}

static void wake(const struct outlets *all)
{
	(void)eventfd_write(all->wake_fd, 1);
}

static void outlet_clear_stale(struct outlet *o)
{
	if (!o->stale)
		return;
	*o->stale_link = o->stale_next;
	if (o->stale_next)
		o->stale_next->stale_link = o->stale_link;
	else
		o->stale->last = o->stale_link;
	o->stale = NULL;
}

static void outlet_set_stale(struct outlet *o)
{
	struct stale_list *list = o->urgent ? &o->all->urgent : &o->all->refresh[o->turn];

	if (o->stale == list || !o->held)
		return;
	outlet_clear_stale(o);
	o->stale = list;
	o->stale_next = NULL;
	o->stale_link = list->last;
	*o->stale_link = o;
	list->last = &o->stale_next;
}

static void init_condition(pthread_cond_t *c)
{
	pthread_condattr_t attr;

	/* A deadline that does not move when somebody sets the clock. */
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(c, &attr);
	pthread_condattr_destroy(&attr);
}

struct outlet *outlet_open(struct outlets *all, const char *id, const char *key_id, bool catches)
{
	struct outlet *o = calloc(1, sizeof(*o));
	struct outlet **bucket;

	if (!o)
		return NULL;
	*o = (struct outlet){
		.all = all,
		.catches = catches,
		.log = NET_LOG_INIT(OUTLET_LOG_MAX),
	};
	(void)snprintf(o->id, sizeof(o->id), "%s", id);
	(void)snprintf(o->key_id, sizeof(o->key_id), "%s", key_id);
	o->turn = outlet_hash(o->key_id) % OUTLET_TURNS;
	init_condition(&o->changed);
	pthread_mutex_lock(&all->lock);
	bucket = &all->bucket[outlet_hash(o->id)];
	o->next = *bucket;
	*bucket = o;
	pthread_mutex_unlock(&all->lock);
	return o;
}

void outlet_close(struct outlet *o)
{
	struct outlets *all;

	if (!o)
		return;
	all = o->all;
	pthread_mutex_lock(&all->lock);
	for (struct outlet **p = &all->bucket[outlet_hash(o->id)]; *p; p = &(*p)->next)
		if (*p == o) {
			*p = o->next;
			break;
		}
	outlet_clear_stale(o);
	held_unref(o->held);
	pthread_mutex_unlock(&all->lock);
	net_log_done(&o->log);
	pthread_cond_destroy(&o->changed);
	free(o);
}

void outlet_reopened(struct outlet *o, bool catches)
{
	pthread_mutex_lock(&o->all->lock);
	o->catches = catches;
	pthread_mutex_unlock(&o->all->lock);
}

/* --- rules ------------------------------------------------------------------------------------ */

static struct timespec in_ms(unsigned ms)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	t.tv_nsec += (long)(ms % 1000) * 1000000;
	t.tv_sec += ms / 1000 + t.tv_nsec / 1000000000;
	t.tv_nsec %= 1000000000;
	return t;
}

/* With the lock held: egress is told, and answers. */
static void begin_waiting(struct outlet *o)
{
	o->settled = false;
	o->urgent = true;
	outlet_set_stale(o);
	wake(o->all);
}

/* With the lock held. */
static int await_settled(struct outlet *o)
{
	struct timespec until = in_ms(APPLY_MS);
	int r = 0;

	begin_waiting(o);
	while (!o->settled && !o->all->stop && r == 0)
		r = -pthread_cond_timedwait(&o->changed, &o->all->lock, &until);
	if (o->settled)
		return -o->err;
	return r < 0 ? r : -ENOTCONN;
}

int outlet_apply(struct outlet *o, struct network *n, bool insist)
{
	struct held *wanted = held_new(), *before;
	bool stays;
	int r;

	if (!wanted)
		return -ENOMEM;
	pthread_mutex_lock(&o->all->lock);
	/* Before anything was said nothing was allowed, and that can be told. */
	before = o->held ? o->held : held_new();
	if (!before) {
		pthread_mutex_unlock(&o->all->lock);
		free(wanted);
		return -ENOMEM;
	}
	wanted->network = *n;
	*n = (struct network){ 0 };
	o->held = wanted;
	r = await_settled(o);
	/* A box that was made again without doors reaches nothing anyway. */
	if (r == -ENOENT && !network_allows(&wanted->network))
		r = 0;
	stays = r == 0 || (insist && !o->settled);
	if (!stays) {
		o->held = before;
		outlet_clear_stale(o);
		/* Whatever egress did of it, the old ones hold from now on: it is told them again,
		 * as soon as can be. */
		o->urgent = true;
		outlet_set_stale(o);
		wake(o->all);
	}
	held_unref(stays ? before : wanted);
	pthread_mutex_unlock(&o->all->lock);
	return r;
}

void outlets_secret_changed(struct outlets *all, const char *key_id, const char *name)
{
	pthread_mutex_lock(&all->lock);
	for (size_t i = 0; i < OUTLET_BUCKETS; i++)
		for (struct outlet *o = all->bucket[i]; o; o = o->next)
			if (strcmp(o->key_id, key_id) == 0 && o->held &&
			    network_uses_secret(&o->held->network, name))
				outlet_set_stale(o);
	pthread_mutex_unlock(&all->lock);
	wake(all);
}

/* --- what egress tells ------------------------------------------------------------------------ */

/* What egress tells of a box, for its sandbox's log. A box decides how much that is, so only so
 * many lines of it are written in a second; the rest is counted. */
struct net_line {
	const char *level; /* NULL: there is nothing to say */
	char text[SANDBOX_LOG_LINE_MAX];
	uint64_t unlogged; /* events before this one without a line */
};

static bool is_worth_a_line(const struct net_connection *c)
{
	if (c->is_new)
		return true;
	/* What ends as it should was told when it began. */
	return c->is_over && !policy_reason_allows(c->reason) && c->reason != POLICY_ENDED;
}

static void describe_connection(const struct net_connection *c, struct net_line *ret)
{
	const char *why = policy_reason_text(c->reason);
	bool is_lookup = c->how == EGRESS_HOW_DNS;
	char target[NET_TARGET_SIZE];

	net_target_text(c, target);
	if (!c->is_new) {
		ret->level = "warn";
		(void)snprintf(ret->text, sizeof(ret->text), "ended %s (%s)", target, why);
	} else if (c->verdict == NET_ALLOWED && is_lookup) {
		ret->level = "debug";
		(void)snprintf(ret->text, sizeof(ret->text), "looked up %s", target);
	} else if (c->verdict == NET_ALLOWED) {
		ret->level = "info";
		(void)snprintf(ret->text, sizeof(ret->text), "allowed %s (%s)", target,
			       net_how_word(c->how));
	} else {
		ret->level = "warn";
		(void)snprintf(ret->text, sizeof(ret->text), "%s %s%s (%s)",
			       net_verdict_word(c->verdict), is_lookup ? "lookup of " : "", target,
			       why);
	}
}

/* With the lock held: may another line be written in this second? */
static bool may_speak(struct outlet *o, uint64_t *ret_unlogged)
{
	uint64_t now = clock_boot_us() / 1000000;

	if (o->second != now) {
		o->second = now;
		o->lines = 0;
	}
	if (o->lines++ >= LINES_PER_SECOND) {
		o->unlogged++;
		return false;
	}
	*ret_unlogged = o->unlogged;
	o->unlogged = 0;
	return true;
}

static void note_locked(struct outlet *o, const struct egress_event *e, struct net_line *ret)
{
	const struct net_connection *c = net_log_add(&o->log, e);

	o->used_up = MAX(o->used_up, e->used_up);
	o->used_down = MAX(o->used_down, e->used_down);
	if (c && is_worth_a_line(c) && may_speak(o, &ret->unlogged))
		describe_connection(c, ret);
	pthread_cond_broadcast(&o->changed);
}

static void outlet_note(struct outlets *all, const struct egress_event *e)
{
	struct net_line line = { 0 };
	struct sandbox *b;
	struct outlet *o;

	pthread_mutex_lock(&all->lock);
	o = outlet_find(all, e->id);
	if (o)
		note_locked(o, e, &line);
	pthread_mutex_unlock(&all->lock);
	if (!line.level)
		return;
	b = sandbox_get(all->server, e->id);
	if (!b)
		return; /* a run of its own, whose result tells it */
	if (line.unlogged)
		sandbox_log_network(b, "warn", "%llu more were not written down",
				    (unsigned long long)line.unlogged);
	sandbox_log_network(b, line.level, "%s", line.text);
	sandbox_put(b);
}

/* --- the thread that talks with egress -------------------------------------------------------- */

struct outlet_owner {
	struct server *server;
	const char *key_id;
};

static int expand(void *arg, const char *value, char ret[static EGRESS_HEADER_VALUE_SIZE])
{
	const struct outlet_owner *o = arg;
	struct fail fail;

	return secret_expand(o->server, o->key_id, value, ret, EGRESS_HEADER_VALUE_SIZE, &fail);
}

static struct egress_limits outlet_limits(const struct config *c)
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

/* Perhaps no caller waits for this answer: a changed secret and a new egress are not the box's own
 * wish. */
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

/* --- to egress -------------------------------------------------------------------------------- */

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
static struct held *outlets_take_stale(struct outlets *all, char ret_id[static WARDEN_ID_SIZE],
				       char ret_key[static STORE_ID_SIZE],
				       struct egress_limits *limits)
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
	struct egress_limits limits = outlet_limits(&all->server->config);
	char id[WARDEN_ID_SIZE], key_id[STORE_ID_SIZE];
	struct held *h = outlets_take_stale(all, id, key_id, &limits);
	struct outlet_owner owner = { .server = all->server, .key_id = key_id };
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

/* --- from egress ------------------------------------------------------------------------------ */

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
static int outlets_read(struct outlets *all)
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

/* --- the loop --------------------------------------------------------------------------------- */

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
static bool outlets_take_up(struct outlets *all)
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

static void outlets_hang_up(struct outlets *all, int why)
{
	server_log(all->server, "warn", "egress_lost",
		   json_pack("{s:s}", "error", why == -ENOTCONN ? "it ended" : strerror(-why)));
	fd_closep(&all->sock);
	pthread_mutex_lock(&all->lock);
	all->meet_us = clock_boot_us() + OUTLET_MEET_US;
	pthread_mutex_unlock(&all->lock);
}

static void *outlets_talk(void *arg)
{
	struct outlets *all = arg;
	int r;

	while (outlets_take_up(all)) {
		r = all->sock < 0 ? 0 : outlets_read(all);
		if (r == 0 && all->sock >= 0 && !all->awaits_answer)
			r = send_one(all);
		if (r < 0)
			outlets_hang_up(all, r);
		wait_for_work(all);
		ask_to_meet(all);
	}
	fd_closep(&all->sock);
	return NULL;
}

/* --- what it did ------------------------------------------------------------------------------ */

json_t *outlet_json(struct outlet *o, size_t limit)
{
	json_t *all;

	pthread_mutex_lock(&o->all->lock);
	all = json_pack("{s:b, s:o, s:o}", "catches", o->catches, "totals",
			net_totals_json(&o->log.totals), "connections",
			net_connections_json(&o->log, limit));
	pthread_mutex_unlock(&o->all->lock);
	return all;
}

static bool has_open(const struct net_log *l)
{
	for (size_t i = 0; i < l->n; i++)
		if (!l->ring[(l->first + i) % l->room].is_over)
			return true;
	return false;
}

json_t *outlet_result(struct outlet *o)
{
	struct timespec until = in_ms(LAST_WORDS_MS);
	json_t *all;
	int r = 0;

	pthread_mutex_lock(&o->all->lock);
	/* Egress speaks of one thing after the other: with its answer to this, all that it said
	 * before is here. */
	begin_waiting(o);
	while ((!o->settled || has_open(&o->log)) && r == 0)
		r = -pthread_cond_timedwait(&o->changed, &o->all->lock, &until);
	all = run_network_json(&o->log, o->catches);
	pthread_mutex_unlock(&o->all->lock);
	return all;
}

/* --- start and end ---------------------------------------------------------------------------- */

int outlets_new(struct server *s, struct outlets **ret)
{
	struct outlets *all = calloc(1, sizeof(*all));

	if (!all)
		return -ENOMEM;
	*all = (struct outlets){ .server = s, .sock = -EBADF, .next_sock = -EBADF };
	all->urgent.last = &all->urgent.first;
	for (size_t i = 0; i < OUTLET_TURNS; i++)
		all->refresh[i].last = &all->refresh[i].first;
	all->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (all->wake_fd < 0) {
		int r = -errno;

		free(all);
		return r;
	}
	pthread_mutex_init(&all->lock, NULL);
	*ret = all;
	return 0;
}

int outlets_start(struct outlets *all)
{
	int r = pthread_create(&all->thread, NULL, outlets_talk, all);

	all->has_thread = r == 0;
	return -r;
}

void outlets_connect(struct outlets *all, int sock)
{
	int old = -EBADF;

	pthread_mutex_lock(&all->lock);
	if (sock >= 0) {
		old = all->next_sock;
		all->next_sock = sock;
	} else { /* a message without one: we have as many descriptors as we may */
		all->meet_us = clock_boot_us() + OUTLET_MEET_US;
	}
	pthread_mutex_unlock(&all->lock);
	fd_close(old);
	wake(all);
}

/* After the last request: outlets of sandboxes that are still in the table may be left. */
void outlets_stop(struct outlets *all)
{
	if (!all || !all->has_thread)
		return;
	pthread_mutex_lock(&all->lock);
	all->stop = true;
	pthread_mutex_unlock(&all->lock);
	wake(all);
	(void)pthread_join(all->thread, NULL);
	all->has_thread = false;
}

void outlets_free(struct outlets *all)
{
	if (!all)
		return;
	fd_close(all->next_sock);
	fd_close(all->wake_fd);
	pthread_mutex_destroy(&all->lock);
	free(all);
}
