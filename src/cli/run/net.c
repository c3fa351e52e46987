/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/run/net.h"

#include "base/clock.h"
#include "base/io.h"
#include "box/doors.h"
#include "cli/cli.h"
#include "cli/run/args.h"
#include "cli/run/run.h"
#include "service/egress_start.h"
#include "service/sets.h"
#include "sys/sock.h"
#include "template/bundle.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>

struct run_net {
	struct egress_room room;
	int sock; /* to egress, as its server; -EBADF: it is gone */
	bool catches;
	bool applied; /* since we began to wait for it */
	int applied_err;
	struct net_log log;
	struct learned learned;
	unsigned told;        /* refusals, as they happened */
	uint32_t told_reason; /* the last one, */
	char told_target[NET_TARGET_SIZE];
};

/* --- what was asked for ---------------------------------------------------------------------- */

static int wish_add_rule(struct run_net_wish *w, const char *text, struct fail *fail)
{
	struct fail why = { 0 };
	struct rule rule, *grown;

	if (w->n_rules >= POLICY_RULES_MAX)
		return fail_set(fail, E2BIG, "--allow", "more than %d times --allow",
				POLICY_RULES_MAX);
	if (rule_parse(text, strlen(text), &rule, &why) < 0)
		return fail_set(fail, EINVAL, "--allow", "--allow %.80s: %.120s", text, why.msg);
	grown = reallocarray(w->rules, w->n_rules + 1, sizeof(rule));
	if (!grown)
		return -ENOMEM;
	w->rules = grown;
	w->rules[w->n_rules++] = rule;
	return 0;
}

static int wish_add_set(struct run_net_wish *w, const char *text, struct fail *fail)
{
	char name[POLICY_SET_NAME_SIZE] = "";

	if (strlen(text) >= sizeof(name))
		return fail_set(fail, EINVAL, "--allow-set", "--allow-set %.40s…: too long", text);
	memcpy(name, text, strlen(text));
	if (!set_name_ok(name))
		return fail_set(fail, EINVAL, "--allow-set",
				"--allow-set %s: not the name of a rule set; see 'glovebox egress "
				"set ls'",
				text);
	for (size_t i = 0; i < w->n_uses; i++)
		if (strcmp(w->use[i], name) == 0)
			return 0;
	if (w->n_uses >= POLICY_USES_MAX)
		return fail_set(fail, E2BIG, "--allow-set", "more than %d rule sets",
				POLICY_USES_MAX);
	memcpy(w->use[w->n_uses++], name, sizeof(name));
	return 0;
}

/* It goes the way of the setting egress.private, so it is checked here and kept as text. */
static int wish_add_open(struct run_net_wish *w, const char *text, struct fail *fail)
{
	size_t used = strlen(w->open), room = sizeof(w->open) - used;
	struct fail why = { 0 };
	struct rule rule;

	if (rule_parse(text, strlen(text), &rule, &why) < 0 || rule.kind != RULE_RANGE)
		return fail_set(fail, EINVAL, "--allow-private", "--allow-private %.60s: %.120s",
				text, why.msg[0] ? why.msg : "give a range such as 10.0.0.0/8");
	if (snprintf(w->open + used, room, "%s%s", used ? " " : "", text) >= (int)room) {
		w->open[used] = '\0';
		return fail_set(fail, E2BIG, "--allow-private",
				"too many ranges: put them into egress.private");
	}
	return 0;
}

static int wish_set_mode(struct run_net_wish *w, const char *text, struct fail *fail)
{
	w->learn = strcmp(text, "learn") == 0;
	w->none = strcmp(text, "none") == 0;
	if (!w->learn && !w->none)
		return fail_set(fail, EINVAL, "--net",
				"--net %.40s: give none, or learn; what it may reach is said with "
				"--allow",
				text);
	return 0;
}

/* Opened now, written at the end: nobody learns for minutes and then hears that it cannot be
 * kept. */
static int wish_open_learn_to(struct run_net_wish *w, const char *path, struct fail *fail)
{
	fd_closep(&w->learn_fd);
	w->learn_fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOCTTY, 0644);
	if (w->learn_fd < 0)
		return fail_set(fail, errno, "--learn-to", "cannot write --learn-to %.100s: %s",
				path, strerror(errno));
	w->learn_to = path;
	return 0;
}

static int wish_read_option(struct run_net_wish *w, int id, const char *text, struct fail *fail)
{
	switch (id) {
	case OPT_ALLOW:
		return wish_add_rule(w, text, fail);
	case OPT_ALLOW_SET:
		return wish_add_set(w, text, fail);
	case OPT_ALLOW_PRIVATE:
		return wish_add_open(w, text, fail);
	case OPT_LEARN_TO:
		return wish_open_learn_to(w, text, fail);
	default:
		return wish_set_mode(w, text, fail);
	}
}

int run_net_options(struct run_net_wish *w, const struct run_args *a, struct fail *fail)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < a->n_later; i++)
		if (a->later[i].id != OPT_IN)
			r = wish_read_option(w, a->later[i].id, a->later[i].text, fail);
	return r;
}

bool run_net_wanted(const struct run_net_wish *w)
{
	return w->learn || w->n_rules || w->n_uses;
}

const char *run_net_ca_bundle(const struct run_net_wish *w)
{
	return w->settings ? w->settings->egress_ca_bundle : "";
}

static int wish_check_sets(const struct run_net_wish *w, struct fail *fail)
{
	struct policy_sets *sets = calloc(1, sizeof(*sets));
	int r = sets ? sets_load(w->settings, NULL, sets, fail) : -ENOMEM;

	for (size_t i = 0; r == 0 && i < w->n_uses; i++)
		if (!sets_find(sets, w->use[i]))
			r = fail_set(fail, ENOENT, "--allow-set",
				     "there is no rule set '%s'; see 'glovebox egress set ls'",
				     w->use[i]);
	if (sets)
		sets_done(sets);
	free(sets);
	return r;
}

static int wish_check_bundle(const struct run_net_wish *w, struct fail *fail)
{
	_cleanup_(buf_done) struct buf certificates = BUF_INIT(BUNDLE_MAX);
	const char *path = run_net_ca_bundle(w);

	return *path ? bundle_read(path, &certificates, fail) : 0;
}

/* A local user is the operator of such runs: what that user opens counts as if it were in the
 * settings. */
static int wish_add_to_settings(struct run_net_wish *w, struct fail *fail)
{
	char *to = w->settings->egress_private;
	size_t used = strlen(to);

	if (used + strlen(w->open) + 2 > sizeof(w->settings->egress_private))
		return fail_set(fail, E2BIG, "--allow-private",
				"too many ranges beside those of egress.private");
	(void)snprintf(to + used, sizeof(w->settings->egress_private) - used, "%s%s",
		       used && *w->open ? " " : "", w->open);
	return 0;
}

int run_net_settings(struct run_net_wish *w, struct fail *fail)
{
	int r;

	if (!run_net_wanted(w))
		return 0;
	w->settings = malloc(sizeof(*w->settings));
	if (!w->settings)
		return -ENOMEM;
	config_init(w->settings);
	r = config_load(w->settings, NULL, environ, fail);
	if (r < 0)
		return r;
	if (!w->settings->egress_enabled)
		return fail_set(fail, EPERM, "network",
				"this machine gives boxes no network: egress.enabled is off "
				"(glovebox.toml)");
	r = wish_add_to_settings(w, fail);
	if (r == 0)
		r = wish_check_sets(w, fail);
	return r < 0 ? r : wish_check_bundle(w, fail);
}

int run_net_wish_check(const struct run_net_wish *w, struct fail *fail)
{
	if (w->none && (w->n_rules || w->n_uses || *w->open))
		return fail_set(fail, EINVAL, "--net",
				"--net none and --allow contradict one another");
	if (w->learn && (w->n_rules || w->n_uses || *w->open))
		return fail_set(fail, EINVAL, "--net",
				"--net learn lets everything through: leave out --allow");
	if (w->learn_to && !w->learn)
		return fail_set(fail, EINVAL, "--learn-to", "--learn-to is for --net learn");
	if (*w->open && !run_net_wanted(w))
		return fail_set(
			fail, EINVAL, "--allow-private",
			"--allow-private opens a range for --allow or --allow-set: give one");
	return 0;
}

/* --- what egress says ------------------------------------------------------------------------ */

#define TOLD_MAX 100
#define EVENTS_PER_TURN 64
#define LEARNED_TEXT_MAX ((size_t)4 << 20)

int run_net_fd(const struct run_net *n)
{
	return n->sock;
}

/* --- as it happens --------------------------------------------------------------------------- */

/* The option that would have allowed it; "" where there is none. */
static void refusal_remedy(unsigned reason, const char *target, const struct net_address *address,
			   char *ret, size_t size)
{
	char text[NET_ADDRESS_TEXT_SIZE];
	size_t len = strlen(target);

	*ret = '\0';
	if (reason == POLICY_NOT_ALLOWED || reason == POLICY_PORT_NOT_ALLOWED ||
	    reason == POLICY_ADDRESS) {
		/* Without a port a name has these two. */
		if (len > 4 && strcmp(target + len - 4, ":443") == 0)
			len -= 4;
		else if (len > 3 && strcmp(target + len - 3, ":80") == 0)
			len -= 3;
		(void)snprintf(ret, size, "; to allow it: --allow %.*s", (int)len, target);
	} else if (reason == POLICY_PRIVATE && address_special(address)) {
		address_text(address, text);
		(void)snprintf(ret, size, "; to open it: --allow-private %s", text);
	}
}

/* A question to DNS is about a name: the port at which it was asked is nobody's concern. */
static void refusal_target(const struct net_connection *c, char ret[static NET_TARGET_SIZE])
{
	struct net_connection shown = *c;

	if (c->how == EGRESS_HOW_DNS)
		shown.port = 0;
	net_target_text(&shown, ret);
}

static void refusal_tell(struct run_net *n, const struct net_connection *c)
{
	char target[NET_TARGET_SIZE], what_to_do[NET_TARGET_SIZE + 32];

	refusal_target(c, target);
	/* Programs try again; once is enough. */
	if (n->told_reason == c->reason && strcmp(n->told_target, target) == 0)
		return;
	n->told_reason = c->reason;
	memcpy(n->told_target, target, sizeof(target));
	if (n->told++ >= TOLD_MAX)
		return;
	refusal_remedy(c->reason, target, &c->address, what_to_do, sizeof(what_to_do));
	run_emit_break();
	(void)cli_error(0, "refused: %s, %s%s", target, policy_reason_text(c->reason), what_to_do);
	if (n->told == TOLD_MAX)
		(void)cli_error(0, "further refusals are only counted");
}

static void net_on_event(struct run_net *n, const struct run_request *q,
			 const struct egress_event *e)
{
	const struct net_connection *c = net_log_add(&n->log, e);

	if (!c)
		return;
	learn(&n->learned, c);
	if (q && q->verbose && !q->json && c->verdict == NET_REFUSED)
		refusal_tell(n, c);
}

void run_net_read(struct run_net *n, const struct run_request *q)
{
	static struct egress_frame f;

	for (int i = 0; i < EVENTS_PER_TURN && n->sock >= 0; i++) {
		struct pollfd p = { .fd = n->sock, .events = POLLIN };

		if (poll(&p, 1, 0) <= 0)
			return;
		if (egress_recv(n->sock, &f, EGRESS_FROM_EGRESS, NULL, NULL) <= 0) {
			fd_closep(&n->sock);
		} else if (f.head.type == EGRESS_EVENT) {
			net_on_event(n, q, &f.as_EVENT);
		} else {
			n->applied = true;
			n->applied_err = f.as_APPLIED.err;
		}
	}
}

/* --- afterwards, from the result ------------------------------------------------------------- */

static const char *network_text(const json_t *o, const char *key)
{
	const char *text = json_string_value(json_object_get(o, key));

	return text ? text : "";
}

static json_int_t network_count(const json_t *network, const char *key)
{
	return json_integer_value(json_object_get(network, key));
}

static unsigned network_reason(const json_t *connection)
{
	const char *word = network_text(connection, "reason");

	for (unsigned i = 0; i < 256; i++)
		if (policy_reason_is(i) && strcmp(policy_reason_word(i), word) == 0)
			return i;
	return 0;
}

/* The last that was refused, or NULL. */
static const json_t *last_refused(const json_t *network)
{
	const json_t *list = json_object_get(network, "connections"), *last = NULL, *o;
	size_t i;

	json_array_foreach(list, i, o)
		if (strcmp(network_text(o, "verdict"), "refused") == 0)
			last = o;
	return last;
}

/* A program that failed may have failed because of that, and many do not say so. */
static void network_hint(const json_t *network)
{
	json_int_t n =
		network_count(network, "refused") + network_count(network, "lookups_refused");
	const json_t *last = last_refused(network);
	char target[NET_TARGET_SIZE], what_to_do[NET_TARGET_SIZE + 32];
	struct net_connection c = { 0 };
	struct net_address address = { 0 };
	const char *address_word = network_text(last, "address");
	char name[POLICY_NAME_SIZE];

	if (n <= 0 || !last)
		return;
	run_emit_break();
	/* It may be a service's word: only what has the form of a name or an address is shown. */
	if (name_parse(network_text(last, "name"), strlen(network_text(last, "name")), name) == 0)
		c.name = name;
	if (address_parse(address_word, strlen(address_word), &address) == 0)
		c.address = address;
	c.port = (uint16_t)json_integer_value(json_object_get(last, "port"));
	c.reason = network_reason(last);
	if (strcmp(network_text(last, "how"), net_how_word(EGRESS_HOW_DNS)) == 0)
		c.how = EGRESS_HOW_DNS;
	refusal_target(&c, target);
	refusal_remedy(c.reason, target, &c.address, what_to_do, sizeof(what_to_do));
	(void)cli_error(0, "the network refused %lld request%s, the last %s: %s%s", (long long)n,
			n == 1 ? "" : "s", target, policy_reason_text(c.reason), what_to_do);
}

/* The rule set as it is kept in a file. */
static int learned_text(const json_t *learned, struct buf *ret)
{
	static const struct {
		const char *key, *before;
	} parts[] = { { "rules", "" }, { "private", "private " } };
	int r = 0;

	for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
		const json_t *line;
		size_t k;

		json_array_foreach(json_object_get(learned, parts[i].key), k, line) {
			const char *text = json_string_value(line);

			if (r == 0)
				r = buf_add(ret, parts[i].before, strlen(parts[i].before));
			if (r == 0)
				r = buf_add(ret, text, strlen(text));
			if (r == 0)
				r = buf_add(ret, "\n", 1);
		}
	}
	return r;
}

static void print_learned(const json_t *learned)
{
	_cleanup_(buf_done) struct buf text = BUF_INIT(LEARNED_TEXT_MAX);
	const json_t *rules = json_object_get(learned, "rules"),
		     *ranges = json_object_get(learned, "private"), *line;
	size_t i;

	run_emit_break();
	if (!json_array_size(rules)) {
		(void)cli_error(0, "nothing was learned: it reached nobody");
		return;
	}
	(void)cli_error(0, "learned%s:",
			json_is_true(json_object_get(learned, "complete")) ?
				"" :
				" (there was more than could be kept)");
	if (learned_text(learned, &text) == 0)
		(void)fwrite(text.data, 1, text.len, stderr);
	(void)fputs("glovebox: to keep it: glovebox egress set save NAME", stderr);
	json_array_foreach(rules, i, line)
		(void)fprintf(stderr, " %s", json_string_value(line));
	json_array_foreach(ranges, i, line)
		(void)fprintf(stderr, " 'private %s'", json_string_value(line));
	(void)fputs("\nglovebox: to use it: glovebox run --allow-set NAME …\n", stderr);
}

int run_net_save(const struct run_request *q, const struct run_result *r, struct fail *fail)
{
	_cleanup_(buf_done) struct buf text = BUF_INIT(LEARNED_TEXT_MAX);
	int e;

	if (q->net.learn_fd < 0 || !r->learned)
		return 0;
	e = learned_text(r->learned, &text);
	if (e == 0)
		e = io_write_all(q->net.learn_fd, text.data, text.len);
	/* What was in the file before; a pipe has no length. */
	if (e == 0 && ftruncate(q->net.learn_fd, (off_t)text.len) < 0 && errno != EINVAL)
		e = -errno;
	return e < 0 ? fail_set(fail, -e, "--learn-to", "cannot write --learn-to %.100s: %s",
				q->net.learn_to, strerror(-e)) :
		       0;
}

static void network_print_totals(const json_t *network)
{
	(void)cli_error(0,
			"network: %lld allowed, %lld refused, %lld failed, %lld bytes sent, %lld "
			"received",
			(long long)network_count(network, "allowed"),
			(long long)(network_count(network, "refused") +
				    network_count(network, "lookups_refused")),
			(long long)network_count(network, "failed"),
			(long long)network_count(network, "bytes_up"),
			(long long)network_count(network, "bytes_down"));
}

void run_net_notes(const struct run_request *q, const struct run_result *r)
{
	const json_t *network = r->service ? json_object_get(r->service, "network") : r->network;

	if (json_is_false(json_object_get(network, "catches"))) {
		run_emit_break();
		(void)cli_error(0, "warning: no nftables here, so only programs that use the proxy "
				   "variables have network (see 'glovebox doctor')");
	}
	if (q->verbose && json_is_object(network))
		network_print_totals(network);
	if (r->learned && !q->net.learn_to)
		print_learned(r->learned);
	/* With -v it was told when it happened. */
	if (json_is_object(network) && r->status != RUN_OK && !r->cancelled_by &&
	    !(q->verbose && r->network))
		network_hint(network);
}

/* --- egress ---------------------------------------------------------------------------------- */

#define BOX_ID "run" /* egress knows one box, this one */
#define ANSWER_US (UINT64_C(10) * 1000000)
#define LAST_WORDS_US (UINT64_C(1) * 1000000)

static int net_lost(struct fail *fail, int err)
{
	return fail_set(fail, -err, "egress", "cannot talk to glovebox-egress: %s", strerror(-err));
}

/* --- start ----------------------------------------------------------------------------------- */

/* One end of a new pair is ours, the other is where egress looks for its server. */
static int net_introduce_server(struct run_net *n)
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
	r = net_introduce_server(n);
	return r < 0 ? net_lost(fail, r) : 0;
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

/* --- doors and rules ------------------------------------------------------------------------- */

static void doors_closep(struct doors *d)
{
	doors_close(d);
}

static int net_open_doors(struct run_net *n, const struct box *b, struct fail *fail)
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
	return r < 0 ? net_lost(fail, r) : 0;
}

static int net_send_rules(struct run_net *n, const struct run_net_wish *w)
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
static int net_await_applied(struct run_net *n, uint64_t patience_us)
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
	int r = net_open_doors(n, b, fail);

	if (r < 0)
		return r;
	r = net_send_rules(n, w);
	if (r == 0)
		r = net_await_applied(n, ANSWER_US);
	if (r == -EPIPE)
		return fail_set(fail, EPIPE, "egress", "glovebox-egress died while it started");
	return r < 0 ? fail_set(fail, -r, "egress", "glovebox-egress does not take the rules: %s",
				strerror(-r)) :
		       0;
}

/* --- end ------------------------------------------------------------------------------------- */

/*
 * The box is closed, which ends what it still has open; then egress is asked something that it
 * answers only after it has told all of that. (The answer is that there is no such box.)
 */
static void net_hear_last_words(struct run_net *n)
{
	struct egress_frame close = { .as_CLOSE = { .id = BOX_ID } };
	struct egress_frame ask = { .as_COMMIT = { .id = BOX_ID } };

	if (n->sock >= 0 && egress_send(n->room.sock, EGRESS_CLOSE, &close, NULL, 0) == 0 &&
	    egress_send(n->sock, EGRESS_COMMIT, &ask, NULL, 0) == 0)
		(void)!net_await_applied(n, LAST_WORDS_US);
}

void run_net_finish(struct run_net *n, const struct run_request *q, struct run_result *r)
{
	if (n->sock < 0 && !r->message[0])
		(void)snprintf(r->message, sizeof(r->message),
			       "glovebox-egress died, and the box had no network from then on");
	net_hear_last_words(n);
	r->network = run_network_json(&n->log, n->catches);
	n->learned.is_partial |= n->log.totals.missed > 0;
	if (q->net.learn)
		r->learned = learned_json(&n->learned);
}
