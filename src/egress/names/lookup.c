/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Asking the machine's resolver, with c-ares: its sockets are watched by our loop, its time-outs
 * are a timer of ours. No hosts file, no search list: the name that was checked is the name that is
 * asked for.
 */
#include "egress/names/names.h"
#include "egress/report/report.h"
#include "service/config.h"

#include "base/clock.h"

#define CARES_NO_DEPRECATED /* what is to replace some calls is not in Debian 12's c-ares */
#include <ares.h>
#include <arpa/nameser.h>
#include <netdb.h>
#include <sys/epoll.h>

#define TRIES 2        /* of each server; the second waits twice as long */
#define IN_ALL_MS 5000 /* until nobody answers */
#define SERVERS_MAX 3  /* as the C library does */
#define TTL_MOST 86400 /* what is more is a mistake or an attack */

struct ares_source {
	struct source source;
	struct ares_source *next;
};

struct resolver {
	ares_channel channel;
	struct ares_source *sources;
	struct timer timer;
};

static struct resolver *resolver_of(struct egress *g)
{
	return g->resolver;
}

/* --- c-ares in our loop --------------------------------------------------------------------- */

static void set_timer(struct egress *g)
{
	struct resolver *r = g->resolver;
	struct timeval tv, *next = ares_timeout(r->channel, NULL, &tv);

	if (next)
		timer_set(&g->loop, &r->timer,
			  clock_boot_us() + (uint64_t)next->tv_sec * 1000000 +
				  (uint64_t)next->tv_usec);
	else
		timer_clear(&g->loop, &r->timer);
}

static void timer_due(struct loop *l, struct timer *self)
{
	struct egress *g = egress_of(l);

	(void)self;
	ares_process_fd(resolver_of(g)->channel, ARES_SOCKET_BAD, ARES_SOCKET_BAD);
	set_timer(g);
}

/* The source may be gone when c-ares returns. */
static void socket_ready(struct loop *l, struct source *self)
{
	struct egress *g = egress_of(l);
	int fd = self->fd;
	uint32_t came = self->came;

	ares_process_fd(resolver_of(g)->channel, came & ~(uint32_t)EPOLLOUT ? fd : ARES_SOCKET_BAD,
			came & EPOLLOUT ? fd : ARES_SOCKET_BAD);
	set_timer(g);
}

static void socket_gone(struct egress *g, struct resolver *r, int fd)
{
	for (struct ares_source **at = &r->sources; *at; at = &(*at)->next) {
		struct ares_source *s = *at;

		if (s->source.fd != fd)
			continue;
		*at = s->next;
		source_remove(&g->loop, &s->source);
		free(s);
		return;
	}
}

static void socket_changed(void *data, ares_socket_t fd, int readable, int writable)
{
	uint32_t events = (readable ? EPOLLIN : 0) | (writable ? EPOLLOUT : 0);
	struct egress *g = data;
	struct resolver *r = g->resolver;
	struct ares_source *s = r->sources;

	if (!events) {
		socket_gone(g, r, fd);
		return;
	}
	while (s && s->source.fd != fd)
		s = s->next;
	if (s) {
		source_change(&g->loop, &s->source, events);
		return;
	}
	s = calloc(1, sizeof(*s));
	if (!s || source_add(&g->loop, &s->source, fd, events, socket_ready) < 0) {
		free(s); /* nobody will hear the answer: the question times out */
		return;
	}
	s->next = r->sources;
	r->sources = s;
}

/* --- one name ------------------------------------------------------------------------------- */

static void conclude(struct lookup *l)
{
	if (l->n_addresses > 0)
		l->reason = POLICY_ALLOWED;
	else if (l->reason != POLICY_RESOLVE)
		l->reason = POLICY_NO_ADDRESS;
	lookup_ended(l->egress, l);
}

static void arrived(struct lookup *l)
{
	if (--l->waiting == 0)
		conclude(l);
}

static void add_address(struct lookup *l, const struct net_address *a, int ttl)
{
	uint32_t ttl_s = ttl < 0 || ttl > TTL_MOST ? 0 : (uint32_t)ttl;

	if (l->n_addresses == EGRESS_ADDRESSES_MAX)
		return;
	l->ttl_s = l->n_addresses == 0 ? ttl_s : MIN(l->ttl_s, ttl_s);
	l->addresses[l->n_addresses++] = *a;
}

/* Is there something to be read in the answer? */
static bool has_answer(struct lookup *l, int status)
{
	if (status == ARES_SUCCESS)
		return true;
	if (status == ARES_ENOTFOUND)
		l->not_there = true;
	else if (status != ARES_ENODATA)
		l->reason = POLICY_RESOLVE;
	return false;
}

static void got_a(void *arg, int status, int timeouts, unsigned char *data, int len)
{
	struct lookup *l = arg;
	struct ares_addrttl list[EGRESS_ADDRESSES_MAX];
	int n = EGRESS_ADDRESSES_MAX;

	(void)timeouts;
	if (has_answer(l, status) && has_answer(l, ares_parse_a_reply(data, len, NULL, list, &n)))
		for (int i = 0; i < n; i++) {
			struct net_address a = { { [10] = 0xff, 0xff } };

			memcpy(a.bytes + 12, &list[i].ipaddr, 4);
			add_address(l, &a, list[i].ttl);
		}
	arrived(l);
}

static void got_aaaa(void *arg, int status, int timeouts, unsigned char *data, int len)
{
	struct lookup *l = arg;
	struct ares_addr6ttl list[EGRESS_ADDRESSES_MAX];
	int n = EGRESS_ADDRESSES_MAX;

	(void)timeouts;
	if (has_answer(l, status) &&
	    has_answer(l, ares_parse_aaaa_reply(data, len, NULL, list, &n)))
		for (int i = 0; i < n; i++) {
			struct net_address a;

			memcpy(a.bytes, &list[i].ip6addr, sizeof(a.bytes));
			add_address(l, &a, list[i].ttl);
		}
	arrived(l);
}

void lookup_start(struct egress *g, struct lookup *l)
{
	struct resolver *r = g->resolver;

	l->reason = POLICY_NO_ADDRESS;
	l->not_there = false;
	l->n_addresses = 0;
	l->ttl_s = 0;
	l->waiting = 1; /* until both have been asked for: an answer can come at once */
	l->waiting++;
	ares_query(r->channel, l->name, ns_c_in, ns_t_a, got_a, l);
	if (g->has_ipv6) {
		l->waiting++;
		ares_query(r->channel, l->name, ns_c_in, ns_t_aaaa, got_aaaa, l);
	}
	set_timer(g);
	arrived(l);
}

/* --- which servers -------------------------------------------------------------------------- */

static int open_channel(struct egress *g, const char *servers, int timeout_ms, struct fail *fail)
{
	struct resolver *r = g->resolver;
	struct ares_options options = {
		.flags = ARES_FLAG_NOSEARCH | ARES_FLAG_NOALIASES,
		.timeout = timeout_ms,
		.tries = TRIES,
		.lookups = (char[]){ "b" }, /* DNS only */
		.sock_state_cb = socket_changed,
		.sock_state_cb_data = g,
	};
	int status = ares_init_options(&r->channel, &options,
				       ARES_OPT_FLAGS | ARES_OPT_TIMEOUTMS | ARES_OPT_TRIES |
					       ARES_OPT_LOOKUPS | ARES_OPT_SOCK_STATE_CB);

	if (status != ARES_SUCCESS)
		return fail_set(fail, EIO, "resolver", "cannot set up the resolver: %s",
				ares_strerror(status));
	if (servers[0] && ares_set_servers_ports_csv(r->channel, servers) != ARES_SUCCESS) {
		ares_destroy(r->channel);
		return fail_set(fail, EINVAL, "egress.resolver",
				"egress.resolver must be addresses of DNS servers, ADDRESS, "
				"ADDRESS:PORT or [ADDRESS]:PORT, with blanks between");
	}
	return 0;
}

static int count_servers(struct resolver *r)
{
	struct ares_addr_port_node *list = NULL;
	int n = 0;

	if (ares_get_servers_ports(r->channel, &list) != ARES_SUCCESS)
		return 1;
	for (const struct ares_addr_port_node *s = list; s; s = s->next)
		n++;
	ares_free_data(list);
	return MAX(n, 1);
}

int lookup_open(struct egress *g, const char *servers, struct fail *fail)
{
	static struct resolver resolver = { .timer.due = timer_due };
	char list[CONFIG_TEXT_SIZE];
	int r, n;

	g->resolver = &resolver;
	(void)snprintf(list, sizeof(list), "%s", servers);
	for (char *p = list; *p; p++)
		if (*p == ' ' || *p == '\t')
			*p = ',';
	if (ares_library_init(ARES_LIB_INIT_ALL) != ARES_SUCCESS)
		return fail_set(fail, EIO, "resolver", "cannot set up the resolver library");
	r = open_channel(g, list, IN_ALL_MS, fail);
	if (r < 0)
		return r;
	/* Each server is tried twice, the second time for twice as long: three parts for each. */
	n = count_servers(&resolver);
	ares_destroy(resolver.channel);
	if (n > SERVERS_MAX)
		say_log("there are %d resolvers; more than %d are slow to fail", n, SERVERS_MAX);
	return open_channel(g, list, IN_ALL_MS / (3 * n), fail);
}
