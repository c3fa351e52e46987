/* SPDX-License-Identifier: Apache-2.0 */
/* What egress says while a run lasts, and what people are told of it. */
#include "cli/run/net_priv.h"

#include "base/io.h"
#include "cli/cli.h"

#include <poll.h>

#define TOLD_MAX 100
#define EVENTS_PER_TURN 64
#define LEARNED_TEXT_MAX ((size_t)4 << 20)

int run_net_fd(const struct run_net *n)
{
	return n->sock;
}

/* --- as it happens ----------------------------------------------------------------------------------------------- */

/* The option that would have allowed it; "" where there is none. */
static void remedy(unsigned reason, const char *target, const struct net_address *address,
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
static void target_of(const struct net_connection *c, char ret[static NET_TARGET_SIZE])
{
	struct net_connection shown = *c;

	if (c->how == EGRESS_HOW_DNS)
		shown.port = 0;
	net_target_text(&shown, ret);
}

static void tell_refusal(struct run_net *n, const struct net_connection *c)
{
	char target[NET_TARGET_SIZE], what_to_do[NET_TARGET_SIZE + 32];

	target_of(c, target);
	/* Programs try again; once is enough. */
	if (n->told_reason == c->reason && strcmp(n->told_target, target) == 0)
		return;
	n->told_reason = c->reason;
	memcpy(n->told_target, target, sizeof(target));
	if (n->told++ >= TOLD_MAX)
		return;
	remedy(c->reason, target, &c->address, what_to_do, sizeof(what_to_do));
	run_emit_break();
	(void)cli_error(0, "refused: %s, %s%s", target, policy_reason_text(c->reason), what_to_do);
	if (n->told == TOLD_MAX)
		(void)cli_error(0, "further refusals are only counted");
}

static void on_event(struct run_net *n, const struct run_request *q, const struct egress_event *e)
{
	const struct net_connection *c = net_log_add(&n->log, e);

	if (!c)
		return;
	learn(&n->learned, c);
	if (q && q->verbose && !q->json && c->verdict == NET_REFUSED)
		tell_refusal(n, c);
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
			on_event(n, q, &f.as_EVENT);
		} else {
			n->applied = true;
			n->applied_err = f.as_APPLIED.err;
		}
	}
}

/* --- afterwards, from the result --------------------------------------------------------------------------------- */

static const char *text_of(const json_t *o, const char *key)
{
	const char *text = json_string_value(json_object_get(o, key));

	return text ? text : "";
}

static json_int_t count_of(const json_t *network, const char *key)
{
	return json_integer_value(json_object_get(network, key));
}

static unsigned reason_of(const json_t *connection)
{
	const char *word = text_of(connection, "reason");

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
		if (strcmp(text_of(o, "verdict"), "refused") == 0)
			last = o;
	return last;
}

/* A program that failed may have failed because of that, and many do not say so. */
static void hint(const json_t *network)
{
	json_int_t n = count_of(network, "refused") + count_of(network, "lookups_refused");
	const json_t *last = last_refused(network);
	char target[NET_TARGET_SIZE], what_to_do[NET_TARGET_SIZE + 32];
	struct net_connection c = { 0 };
	struct net_address address = { 0 };
	const char *address_word = text_of(last, "address");
	char name[POLICY_NAME_SIZE];

	if (n <= 0 || !last)
		return;
	run_emit_break();
	/* It may be a service's word: only what has the form of a name or an address is shown. */
	if (name_parse(text_of(last, "name"), strlen(text_of(last, "name")), name) == 0)
		c.name = name;
	if (address_parse(address_word, strlen(address_word), &address) == 0)
		c.address = address;
	c.port = (uint16_t)json_integer_value(json_object_get(last, "port"));
	c.reason = reason_of(last);
	if (strcmp(text_of(last, "how"), net_how_word(EGRESS_HOW_DNS)) == 0)
		c.how = EGRESS_HOW_DNS;
	target_of(&c, target);
	remedy(c.reason, target, &c.address, what_to_do, sizeof(what_to_do));
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

static void print_totals(const json_t *network)
{
	(void)cli_error(
		0,
		"network: %lld allowed, %lld refused, %lld failed, %lld bytes sent, %lld "
		"received",
		(long long)count_of(network, "allowed"),
		(long long)(count_of(network, "refused") + count_of(network, "lookups_refused")),
		(long long)count_of(network, "failed"), (long long)count_of(network, "bytes_up"),
		(long long)count_of(network, "bytes_down"));
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
		print_totals(network);
	if (r->learned && !q->net.learn_to)
		print_learned(r->learned);
	/* With -v it was told when it happened. */
	if (json_is_object(network) && r->status != RUN_OK && !r->cancelled_by &&
	    !(q->verbose && r->network))
		hint(network);
}
