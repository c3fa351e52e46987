/* SPDX-License-Identifier: Apache-2.0 */
/* The server's conversation with egress. The test takes egress' part, and says when it dies. */
#include "server/sandbox/outlet.h"

#include "server/http/http.h"
#include "server/sandbox/sandbox.h"
#include "server/sandbox/secret.h"
#include "server/server.h"
#include "server/sandbox/link.h"
#include "sys/sock.h"

#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define WAIT_MS 60000

static struct server server;
static struct sandbox sandbox = { .server = &server };
static int lines, more_lines; /* of the sandbox's log; atomic */
static const char *secret = "first";

/* --- the rest of the server ----------------------------------------------------------------------------------- */

struct sandbox *sandbox_get(struct server *s, const char *id)
{
	(void)s;
	return strcmp(id, "i1") == 0 ? &sandbox : NULL;
}

void sandbox_put(struct sandbox *b)
{
	(void)b;
}

void sandbox_log(struct sandbox *b, const char *level, const char *fmt, ...)
{
	(void)b;
	(void)level;
	(void)fmt;
	(void)__atomic_add_fetch(&more_lines, 1, __ATOMIC_SEQ_CST);
}

void sandbox_log_network(struct sandbox *b, const char *level, const char *fmt, ...)
{
	(void)b;
	(void)level;
	(void)fmt;
	(void)__atomic_add_fetch(&lines, 1, __ATOMIC_SEQ_CST);
}

void server_log(struct server *s, const char *level, const char *event, json_t *fields)
{
	(void)s;
	(void)level;
	(void)event;
	json_decref(fields);
}

int secret_expand(struct server *s, const char *key_id, const char *text, char *ret, size_t size,
		  struct fail *fail)
{
	const char *now = __atomic_load_n(&secret, __ATOMIC_SEQ_CST);

	(void)s;
	(void)fail;
	assert_true(strcmp(key_id, "key1") == 0 || strcmp(key_id, "key2") == 0);
	if (!now)
		return -ENOENT;
	(void)snprintf(ret, size, "%s", strchr(text, '$') ? now : text);
	return 0;
}

static int meetings; /* that were asked for; atomic */

int link_ask(struct link *l, enum warden_type type, struct warden_frame *request,
	     unsigned timeout_ms, struct warden_reply *ret, int *ret_fd)
{
	(void)l;
	(void)request;
	(void)timeout_ms;
	(void)ret;
	(void)ret_fd;
	assert_int_equal(type, WARDEN_MEET);
	(void)__atomic_add_fetch(&meetings, 1, __ATOMIC_SEQ_CST);
	return 0;
}

static int waiting; /* atomic: how often somebody began to wait for egress' answer */

int __real_pthread_cond_timedwait(pthread_cond_t *c, pthread_mutex_t *m,
				  const struct timespec *until);
int __wrap_pthread_cond_timedwait(pthread_cond_t *c, pthread_mutex_t *m,
				  const struct timespec *until);

int __wrap_pthread_cond_timedwait(pthread_cond_t *c, pthread_mutex_t *m,
				  const struct timespec *until)
{
	(void)__atomic_add_fetch(&waiting, 1, __ATOMIC_SEQ_CST);
	return __real_pthread_cond_timedwait(c, m, until);
}

int __real_egress_send(int sock, enum egress_type type, struct egress_frame *f, const int *fds,
		       size_t n_fds);
int __wrap_egress_send(int sock, enum egress_type type, struct egress_frame *f, const int *fds,
		       size_t n_fds);

static int fail_rule; /* errno value: the next rule meets this; atomic */

int __wrap_egress_send(int sock, enum egress_type type, struct egress_frame *f, const int *fds,
		       size_t n_fds)
{
	int err = type == EGRESS_RULE ? __atomic_exchange_n(&fail_rule, 0, __ATOMIC_SEQ_CST) : 0;

	return err ? -err : __real_egress_send(sock, type, f, fds, n_fds);
}

/* --- egress ------------------------------------------------------------------------------------------------------ */

struct egress_end {
	int sock;
	struct egress_frame f;
};

static struct egress_end connect_egress(struct outlets *all)
{
	struct egress_end e = { .sock = -EBADF };
	int pair[2];

	assert_int_equal(sock_pair(pair), 0);
	outlets_connect(all, pair[0]);
	e.sock = pair[1];
	return e;
}

/* False: there is nothing for a moment. */
static bool hear(struct egress_end *e, int ms)
{
	struct pollfd p = { .fd = e->sock, .events = POLLIN };

	if (poll(&p, 1, ms) <= 0)
		return false;
	assert_int_equal(egress_recv(e->sock, &e->f, EGRESS_FROM_SERVER, NULL, NULL), 1);
	return true;
}

/* A whole policy; the name of its last rule, the value of its last header. */
static void hear_policy(struct egress_end *e, char ret_rule[static POLICY_NAME_SIZE],
			char ret_value[static EGRESS_HEADER_VALUE_SIZE])
{
	assert_true(hear(e, WAIT_MS));
	assert_int_equal(e->f.head.type, EGRESS_POLICY);
	for (;;) {
		assert_true(hear(e, WAIT_MS));
		assert_string_equal(e->f.as_COMMIT.id, "i1");
		if (e->f.head.type == EGRESS_COMMIT)
			return;
		if (e->f.head.type == EGRESS_RULE)
			memcpy(ret_rule, e->f.as_RULE.rule.name, POLICY_NAME_SIZE);
		if (e->f.head.type == EGRESS_HEADER)
			memcpy(ret_value, e->f.as_HEADER.value, EGRESS_HEADER_VALUE_SIZE);
	}
}

static void expect_rule(struct egress_end *e, const char *name)
{
	char rule[POLICY_NAME_SIZE] = "", value[EGRESS_HEADER_VALUE_SIZE] = "";

	hear_policy(e, rule, value);
	assert_string_equal(rule, name);
}

/* Whose policy comes next, all of it. */
static void hear_of(struct egress_end *e, const char *id)
{
	do {
		assert_true(hear(e, WAIT_MS));
		assert_string_equal(e->f.as_COMMIT.id, id);
	} while (e->f.head.type != EGRESS_COMMIT);
}

static void answer_of(const struct egress_end *e, const char *id, int err)
{
	struct egress_frame f = { .as_APPLIED = { .err = err } };

	(void)snprintf(f.as_APPLIED.id, sizeof(f.as_APPLIED.id), "%s", id);
	assert_int_equal(egress_send(e->sock, EGRESS_APPLIED, &f, NULL, 0), 0);
}

static void answer(const struct egress_end *e, int err)
{
	answer_of(e, "i1", err);
}

static void tell(const struct egress_end *e, uint64_t number, unsigned reason, uint32_t flags)
{
	struct egress_frame f = { .as_EVENT = { .id = "i1",
						.number = number,
						.how = EGRESS_HOW_CONNECT,
						.reason = reason,
						.flags = flags,
						.name = "a.test",
						.port = 443,
						.bytes_up = flags ? 10 : 0 } };

	assert_int_equal(egress_send(e->sock, EGRESS_EVENT, &f, NULL, 0), 0);
}

/* --- who wants rules ---------------------------------------------------------------------------------------------- */

struct wish {
	pthread_t thread;
	struct outlet *outlet;
	const char *rules;
	bool insist;
	int result;
};

static struct network network_of(const char *text)
{
	struct config c = { .egress_enabled = true, .egress_internet = "listed" };
	json_t *o = json_loads(text, 0, NULL);
	struct network n = { 0 };
	struct fail fail;

	assert_non_null(o);
	assert_int_equal(network_read(o, NETWORK_UNSAID, &c, &n, &fail), 0);
	json_decref(o);
	return n;
}

static void *apply(void *arg)
{
	struct wish *w = arg;
	struct network n = network_of(w->rules);

	w->result = outlet_apply(w->outlet, &n, w->insist);
	network_done(&n);
	return NULL;
}

static void begin_as(struct wish *w, struct outlet *o, const char *rules, bool insist)
{
	*w = (struct wish){ .outlet = o, .rules = rules, .insist = insist, .result = 1 };
	assert_int_equal(pthread_create(&w->thread, NULL, apply, w), 0);
}

static void begin(struct wish *w, struct outlet *o, const char *rules)
{
	begin_as(w, o, rules, false);
}

static int end(struct wish *w)
{
	assert_int_equal(pthread_join(w->thread, NULL), 0);
	return w->result;
}

static int start(void **state)
{
	struct outlets *all;

	secret = "first";
	lines = more_lines = meetings = 0;
	if (outlets_new(&server, &all) < 0 || outlets_start(all) < 0)
		return -1;
	server.outlets = all;
	*state = outlet_open(all, "i1", "key1", true);
	return *state ? 0 : -1;
}

static int stop(void **state)
{
	outlets_stop(server.outlets);
	outlet_close(*state);
	outlets_free(server.outlets);
	return 0;
}

#define A "{\"allowOut\": [\"a.test\"]}"
#define B "{\"allowOut\": [\"b.test\"]}"
#define WITH_SECRET                                                                                \
	"{\"allowOut\": [\"a.test\"], \"rules\": {\"a.test\": [{\"transform\": {\"headers\": "     \
	"{\"X\": \"${secrets.k}\"}}}]}}"

/* Nobody is told that it holds before egress has said so. */
static void test_waits_for_the_answer(void **state)
{
	struct egress_end e = connect_egress(server.outlets);
	struct wish w;

	begin(&w, *state, A);
	expect_rule(&e, "a.test");
	assert_false(hear(&e, 50));
	assert_int_equal(w.result, 1);
	answer(&e, 0);
	assert_int_equal(end(&w), 0);
	fd_close(e.sock);
}

/* Without egress, whoever wants rules waits until there is one. */
static void test_before_there_is_one(void **state)
{
	struct egress_end e;
	struct wish w;

	begin(&w, *state, A);
	(void)poll(NULL, 0, 50);
	e = connect_egress(server.outlets);
	expect_rule(&e, "a.test");
	answer(&e, 0);
	assert_int_equal(end(&w), 0);
	fd_close(e.sock);
}

/* What egress refuses is forgotten: it is told the rules before, and so is the next egress. */
static void test_refused(void **state)
{
	struct egress_end e = connect_egress(server.outlets), next;
	struct wish w;

	begin(&w, *state, A);
	expect_rule(&e, "a.test");
	answer(&e, 0);
	assert_int_equal(end(&w), 0);
	begin(&w, *state, B);
	expect_rule(&e, "b.test");
	answer(&e, ESRCH);
	assert_int_equal(end(&w), -ESRCH);
	expect_rule(&e, "a.test");
	answer(&e, 0);
	next = connect_egress(server.outlets);
	expect_rule(&next, "a.test");
	answer(&next, 0);
	fd_close(e.sock);
	fd_close(next.sock);
}

/* The first rules of all are refused: what egress may have made of them is taken back. */
static void test_first_refused(void **state)
{
	struct egress_end e = connect_egress(server.outlets);
	struct wish w;

	begin(&w, *state, A);
	expect_rule(&e, "a.test");
	answer(&e, ESRCH);
	assert_int_equal(end(&w), -ESRCH);
	expect_rule(&e, "");
	answer(&e, 0);
	fd_close(e.sock);
}

/* A thread that waits for rules is served before those whose secret has changed, also by the next egress. */
static void test_who_waits_is_first(void **state)
{
	enum { OTHERS = 50 };
	struct egress_end e = connect_egress(server.outlets), next;
	struct outlet *others[OTHERS];
	char id[OTHERS][WARDEN_ID_SIZE];
	struct wish w;

	for (size_t i = 0; i < OTHERS; i++) {
		(void)snprintf(id[i], sizeof(id[i]), "other%zu", i);
		others[i] = outlet_open(server.outlets, id[i], "key1", false);
		assert_non_null(others[i]);
		begin(&w, others[i], WITH_SECRET);
		hear_of(&e, id[i]);
		answer_of(&e, id[i], 0);
		assert_int_equal(end(&w), 0);
	}
	outlets_secret_changed(server.outlets, "key1", "k");
	assert_true(hear(&e, WAIT_MS)); /* the first of them: POLICY */
	memcpy(id[0], e.f.as_POLICY.id, sizeof(id[0]));
	hear_of(&e, id[0]);
	__atomic_store_n(&waiting, 0, __ATOMIC_SEQ_CST);
	begin(&w, *state, A);
	while (__atomic_load_n(&waiting, __ATOMIC_SEQ_CST) == 0)
		(void)poll(NULL, 0, 1);
	answer_of(&e, id[0], 0);
	hear_of(&e, "i1");
	next = connect_egress(server.outlets);
	hear_of(&next, "i1");
	answer(&next, 0);
	assert_int_equal(end(&w), 0);
	for (size_t i = 0; i < OTHERS; i++)
		outlet_close(others[i]);
	fd_close(e.sock);
	fd_close(next.sock);
}

/* A key with many that are told anew does not keep another's waiting. */
static void test_keys_take_turns(void **state)
{
	enum { MANY = 50 };
	struct egress_end e = connect_egress(server.outlets);
	struct outlet *many[MANY];
	struct wish w;

	for (size_t i = 0; i < MANY; i++) {
		char id[WARDEN_ID_SIZE];

		(void)snprintf(id, sizeof(id), "many%zu", i);
		many[i] = outlet_open(server.outlets, id, "key2", false);
		assert_non_null(many[i]);
		begin(&w, many[i], WITH_SECRET);
		hear_of(&e, id);
		answer_of(&e, id, 0);
		assert_int_equal(end(&w), 0);
	}
	begin(&w, *state, WITH_SECRET);
	hear_of(&e, "i1");
	answer(&e, 0);
	assert_int_equal(end(&w), 0);
	outlets_secret_changed(server.outlets, "key2", "k");
	assert_true(hear(&e, WAIT_MS)); /* one of them is told, and the others wait */
	outlets_secret_changed(server.outlets, "key1", "k");
	while (e.f.head.type != EGRESS_COMMIT)
		assert_true(hear(&e, WAIT_MS));
	answer_of(&e, e.f.as_COMMIT.id, 0);
	hear_of(&e, "i1");
	answer(&e, 0);
	for (size_t i = 0; i < MANY; i++)
		outlet_close(many[i]);
	fd_close(e.sock);
}

/* Nobody answers in time: rules that somebody wanted are not held, those on record are, as soon as somebody hears them. */
static void test_nobody_answers(void **state)
{
	struct outlet *other = outlet_open(server.outlets, "i2", "key1", false);
	bool has_rule[2] = { false, false };
	struct egress_end e;
	struct wish recorded, wanted;

	assert_non_null(other);
	begin_as(&recorded, *state, A, true);
	begin(&wanted, other, A);
	assert_int_equal(end(&recorded), -ETIMEDOUT);
	assert_int_equal(end(&wanted), -ETIMEDOUT);
	e = connect_egress(server.outlets);
	for (int commits = 0; commits < 2;) {
		bool is_other;

		assert_true(hear(&e, WAIT_MS));
		is_other = strcmp(e.f.as_COMMIT.id, "i2") == 0;
		if (e.f.head.type == EGRESS_RULE)
			has_rule[is_other] = true;
		if (e.f.head.type != EGRESS_COMMIT)
			continue;
		answer_of(&e, is_other ? "i2" : "i1", 0);
		commits++;
	}
	assert_true(has_rule[0]);
	assert_false(has_rule[1]);
	outlet_close(other);
	fd_close(e.sock);
}

/* The kernel has no memory for a message: that is no reason to part. */
static void test_no_memory(void **state)
{
	static const int errors[] = { ENOBUFS, ENOMEM, EAGAIN };
	struct egress_end e = connect_egress(server.outlets);
	struct wish w;

	for (size_t i = 0; i < ARRAY_SIZE(errors); i++) {
		__atomic_store_n(&fail_rule, errors[i], __ATOMIC_SEQ_CST);
		begin(&w, *state, A);
		expect_rule(&e, "a.test");
		answer(&e, 0);
		assert_int_equal(end(&w), 0);
	}
	fd_close(e.sock);
}

static void expect_meeting(void)
{
	int before = __atomic_load_n(&meetings, __ATOMIC_SEQ_CST);

	for (int i = 0; i < WAIT_MS / 20; i++) {
		if (__atomic_load_n(&meetings, __ATOMIC_SEQ_CST) > before)
			return;
		(void)poll(NULL, 0, 20);
	}
	fail_msg("nobody asked for a new socket to egress");
}

/* Both live, but have no socket to each other: the warden is asked, again and again. */
static void test_meets_again(void **state)
{
	struct egress_end e;
	struct wish w;

	(void)poll(NULL, 0, 50);
	assert_int_equal(__atomic_load_n(&meetings, __ATOMIC_SEQ_CST), 0); /* there was none yet */
	outlets_connect(server.outlets, -EBADF);
	expect_meeting();
	e = connect_egress(server.outlets);
	begin(&w, *state, A);
	expect_rule(&e, "a.test");
	answer(&e, 0);
	assert_int_equal(end(&w), 0);
	fd_close(e.sock);
	expect_meeting();
	expect_meeting();
	e = connect_egress(server.outlets);
	expect_rule(&e, "a.test");
	answer(&e, 0);
	fd_close(e.sock);
}

/* Egress dies with the rules unanswered: who waits is served by the next one. */
static void test_dies_in_between(void **state)
{
	struct egress_end e = connect_egress(server.outlets), next;
	struct wish w;

	begin(&w, *state, A);
	expect_rule(&e, "a.test");
	fd_close(e.sock);
	(void)poll(NULL, 0, 50);
	assert_int_equal(w.result, 1);
	next = connect_egress(server.outlets);
	expect_rule(&next, "a.test");
	answer(&next, 0);
	assert_int_equal(end(&w), 0);
	fd_close(next.sock);
}

static void expect_secret_with(struct egress_end *e, const char *value, int err)
{
	char rule[POLICY_NAME_SIZE] = "", got[EGRESS_HEADER_VALUE_SIZE] = "?";

	hear_policy(e, rule, got);
	assert_string_equal(got, value);
	answer(e, err);
}

static void expect_secret(struct egress_end *e, const char *value)
{
	expect_secret_with(e, value, 0);
}

/* Of the sandbox's log, beside those about connections. */
static void expect_lines(int n)
{
	for (int i = 0; i < 3000 && __atomic_load_n(&more_lines, __ATOMIC_SEQ_CST) < n; i++)
		(void)poll(NULL, 0, 20);
	assert_int_equal(more_lines, n);
}

/* A changed secret is told to those who use it; one that is gone leaves an empty header and a line in the log. */
static void test_secret_changes(void **state)
{
	struct egress_end e = connect_egress(server.outlets);
	struct wish w;

	begin(&w, *state, WITH_SECRET);
	expect_secret(&e, "first");
	assert_int_equal(end(&w), 0);
	__atomic_store_n(&secret, "second", __ATOMIC_SEQ_CST);
	outlets_secret_changed(server.outlets, "key1", "other");
	outlets_secret_changed(server.outlets, "key2", "k");
	assert_false(hear(&e, 50));
	outlets_secret_changed(server.outlets, "key1", "k");
	expect_secret(&e, "second");
	assert_int_equal(more_lines, 0);
	__atomic_store_n(&secret, NULL, __ATOMIC_SEQ_CST);
	outlets_secret_changed(server.outlets, "key1", "k");
	expect_secret(&e, "");
	expect_lines(1);
	fd_close(e.sock);
}

/* Nobody waits for the answer about a changed secret: that egress does not take it is in the log. */
static void test_secret_refused(void **state)
{
	struct egress_end e = connect_egress(server.outlets);
	struct wish w;

	begin(&w, *state, WITH_SECRET);
	expect_secret(&e, "first");
	assert_int_equal(end(&w), 0);
	assert_int_equal(more_lines, 0);
	outlets_secret_changed(server.outlets, "key1", "k");
	expect_secret_with(&e, "first", E2BIG);
	expect_lines(1);
	fd_close(e.sock);
}

static long long total(struct outlet *o, const char *name)
{
	json_t *all = outlet_json(o, 1000);
	long long n = json_integer_value(json_object_get(json_object_get(all, "totals"), name));

	json_decref(all);
	return n;
}

/* Events are counted, all of them; the sandbox's log has a few of a flood. */
static void test_events(void **state)
{
	enum { FLOOD = 1000 };
	struct egress_end e = connect_egress(server.outlets);
	time_t begun = time(NULL);
	json_t *all;

	tell(&e, 1, POLICY_ALLOWED, 0);
	tell(&e, 1, POLICY_ALLOWED, EGRESS_EVENT_END);
	for (unsigned i = 0; i < FLOOD; i++)
		tell(&e, 2 + i, POLICY_NOT_ALLOWED, 0);
	for (int i = 0; i < 3000 && total(*state, "refused") < FLOOD; i++)
		(void)poll(NULL, 0, 20);
	assert_int_equal(total(*state, "refused"), FLOOD);
	assert_int_equal(total(*state, "allowed"), 1);
	assert_int_equal(total(*state, "bytes_up"), 10);
	/* 20 in a second, and when the second changes a line about those left out. */
	assert_in_range(lines, 20, 21 * (time(NULL) - begun + 2));
	all = outlet_json(*state, 1000);
	assert_int_equal(json_array_size(json_object_get(all, "connections")), OUTLET_LOG_MAX);
	json_decref(all);
	fd_close(e.sock);
}

/* The next egress is told what was used; connections of the one before are over. */
static void test_used(void **state)
{
	struct egress_end e = connect_egress(server.outlets), next;
	struct egress_frame f = { .as_EVENT = { .id = "i1",
						.number = 1,
						.how = EGRESS_HOW_CONNECT,
						.reason = POLICY_ALLOWED,
						.port = 443,
						.used_up = 1000,
						.used_down = 2000 } };
	json_t *all;
	struct wish w;

	begin(&w, *state, A);
	expect_rule(&e, "a.test");
	assert_int_equal(egress_send(e.sock, EGRESS_EVENT, &f, NULL, 0), 0);
	f.as_EVENT.number = 2;
	f.as_EVENT.used_up = 10; /* less than it was: one that came late */
	assert_int_equal(egress_send(e.sock, EGRESS_EVENT, &f, NULL, 0), 0);
	answer(&e, 0);
	assert_int_equal(end(&w), 0);
	next = connect_egress(server.outlets);
	assert_true(hear(&next, WAIT_MS));
	assert_int_equal(next.f.head.type, EGRESS_POLICY);
	assert_int_equal(next.f.as_POLICY.limits.used_up, 1000);
	assert_int_equal(next.f.as_POLICY.limits.used_down, 2000);
	all = outlet_json(*state, 1000);
	assert_false(json_is_true(
		json_object_get(json_array_get(json_object_get(all, "connections"), 0), "open")));
	json_decref(all);
	fd_close(e.sock);
	fd_close(next.sock);
}

/* A box that was made again and never got doors is not known to egress: it can be told to reach nothing, and that stays. */
static void test_nothing_for_nobody(void **state)
{
	struct egress_end e = connect_egress(server.outlets), next;
	struct wish w;

	begin(&w, *state, A);
	expect_rule(&e, "a.test");
	answer(&e, 0);
	assert_int_equal(end(&w), 0);
	begin(&w, *state, "{\"allowOut\": []}");
	expect_rule(&e, "");
	answer(&e, ENOENT);
	assert_int_equal(end(&w), 0);
	begin(&w, *state, B);
	expect_rule(&e, "b.test");
	answer(&e, ENOENT);
	assert_int_equal(end(&w), -ENOENT);
	expect_rule(&e, "");
	answer(&e, ENOENT);
	next = connect_egress(server.outlets);
	expect_rule(&next, "");
	answer(&next, ENOENT);
	fd_close(e.sock);
	fd_close(next.sock);
}

/* An outlet that goes away while its rules are under way takes nobody with it. */
static void test_closed_in_between(void **state)
{
	struct egress_end e = connect_egress(server.outlets);
	struct outlet *gone = outlet_open(server.outlets, "i2", "key1", false);
	struct wish w;

	assert_non_null(gone);
	outlet_close(gone);
	begin(&w, *state, A);
	expect_rule(&e, "a.test");
	answer(&e, 0);
	assert_int_equal(end(&w), 0);
	fd_close(e.sock);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_waits_for_the_answer, start, stop),
		cmocka_unit_test_setup_teardown(test_before_there_is_one, start, stop),
		cmocka_unit_test_setup_teardown(test_refused, start, stop),
		cmocka_unit_test_setup_teardown(test_first_refused, start, stop),
		cmocka_unit_test_setup_teardown(test_who_waits_is_first, start, stop),
		cmocka_unit_test_setup_teardown(test_keys_take_turns, start, stop),
		cmocka_unit_test_setup_teardown(test_nobody_answers, start, stop),
		cmocka_unit_test_setup_teardown(test_no_memory, start, stop),
		cmocka_unit_test_setup_teardown(test_meets_again, start, stop),
		cmocka_unit_test_setup_teardown(test_dies_in_between, start, stop),
		cmocka_unit_test_setup_teardown(test_secret_changes, start, stop),
		cmocka_unit_test_setup_teardown(test_secret_refused, start, stop),
		cmocka_unit_test_setup_teardown(test_events, start, stop),
		cmocka_unit_test_setup_teardown(test_used, start, stop),
		cmocka_unit_test_setup_teardown(test_nothing_for_nobody, start, stop),
		cmocka_unit_test_setup_teardown(test_closed_in_between, start, stop),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
