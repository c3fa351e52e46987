/* SPDX-License-Identifier: Apache-2.0 */
/* How a sandbox changes, with a warden and a store that fail on demand, and a worker that works when it is told to. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <sodium.h>
#include <sys/eventfd.h>

#include "server/changes/boxes.h"
#include "server/changes/changes.h"
#include "server/interp/interp.h"
#include "server/sandbox/outlet.h"
#include "server/sandbox/sandbox.h"

#define HOUR_MS INT64_C(3600000)
#define LEFT_MS 60000 /* of a sandbox that was made */

/* --- the warden ------------------------------------------------------------------------------------------------ */

static struct {
	enum warden_type asked[32];
	uint64_t timeout_ms[32];
	size_t n;
	enum warden_type fails; /* the next one of this type is answered so: */
	int r, err;
	bool no_socket; /* what is made comes without one */
} warden;

static uint64_t timeout_of(enum warden_type type, const struct warden_frame *f)
{
	if (type == WARDEN_DEADLINE || type == WARDEN_RESUME)
		return f->as_DEADLINE.timeout_ms;
	return type == WARDEN_CREATE ? f->as_CREATE.timeout_ms : 0;
}

int link_ask(struct link *l, enum warden_type type, struct warden_frame *request,
	     unsigned timeout_ms, struct warden_reply *ret, int *ret_fd)
{
	bool fails = warden.fails == type;

	(void)l;
	(void)timeout_ms;
	assert_true(warden.n < ARRAY_SIZE(warden.asked));
	warden.timeout_ms[warden.n] = timeout_of(type, request);
	warden.asked[warden.n++] = type;
	*ret = (struct warden_reply){ .err = fails ? warden.err : 0 };
	if (fails)
		warden.fails = 0;
	if (ret_fd && type == WARDEN_CREATE && !warden.no_socket)
		*ret_fd = eventfd(0, EFD_CLOEXEC);
	return fails ? warden.r : 0;
}

static void next_fails(enum warden_type type, int r, int err)
{
	warden.fails = type;
	warden.r = r;
	warden.err = err;
}

/* Which request of this type was the last, counted from 1; 0: there was none. */
static size_t last_asked(enum warden_type type)
{
	for (size_t i = warden.n; i > 0; i--)
		if (warden.asked[i - 1] == type)
			return i;
	return 0;
}

/* --- the store ------------------------------------------------------------------------------------------------- */

static struct {
	int r;
	enum store_state state;
	bool cold;
	struct store_sandbox *row; /* what a server finds at start */
} store;

int store_sandbox_update(struct store *s, const struct store_sandbox *b)
{
	struct sandbox_config c;

	(void)s;
	if (store.r < 0)
		return store.r;
	sandbox_config_read(b->config, &c);
	store.state = b->state;
	store.cold = c.cold;
	return 0;
}

int store_sandbox_add(struct store *s, const struct store_sandbox *b)
{
	return store_sandbox_update(s, b);
}

int store_sandbox_each_live(struct store *s, int (*each)(struct store_sandbox *b, void *arg),
			    void *arg)
{
	(void)s;
	return each(store.row, arg);
}

void store_sandbox_done(struct store_sandbox *b)
{
	free(b->template_id);
	free(b->detail);
	json_decref(b->metadata);
	json_decref(b->env);
	json_decref(b->config);
}

/* --- the worker ------------------------------------------------------------------------------------------------ */

static struct {
	struct sandbox *sandbox;
	void (*run)(struct sandbox *b);
} jobs[16];
static size_t n_jobs;

void worker_add(struct sandbox *b, void (*run)(struct sandbox *b))
{
	assert_true(n_jobs < ARRAY_SIZE(jobs));
	sandbox_ref(b);
	jobs[n_jobs].sandbox = b;
	jobs[n_jobs++].run = run;
}

static void run_jobs(void)
{
	for (size_t i = 0; i < n_jobs; i++) {
		jobs[i].run(jobs[i].sandbox);
		sandbox_put(jobs[i].sandbox);
	}
	n_jobs = 0;
}

void worker_add_layers(const struct sandbox_config *c)
{
	(void)c;
}

void worker_prune(void)
{
}

/* --- the rest of the server ------------------------------------------------------------------------------------ */

static int64_t clock_ahead_ms;
static unsigned events_paused;

int64_t clock_wall_ms(void)
{
	return (int64_t)(clock_boot_us() / 1000) + 1000 * HOUR_MS + clock_ahead_ms;
}

void clock_format(int64_t wall_ms, char ret[CLOCK_TEXT_SIZE])
{
	(void)snprintf(ret, CLOCK_TEXT_SIZE, "%lld", (long long)wall_ms);
}

json_t *clock_json(int64_t ms)
{
	return json_integer(ms);
}

void event_add(struct sandbox *b, const char *type, json_t *data)
{
	(void)b;
	events_paused += strcmp(type, "paused") == 0;
	json_decref(data);
}

void event_add_execution(struct sandbox *b, const char *type, json_t *data)
{
	event_add(b, type, data);
}

void event_add_lost(struct server *s, const struct store_sandbox *info, json_t *data)
{
	(void)s;
	(void)info;
	json_decref(data);
}

int change_snapshot(struct sandbox *b, char ret_layer[static WARDEN_ID_SIZE], struct problem *p)
{
	struct warden_frame f = { 0 };
	struct warden_reply reply;

	(void)snprintf(ret_layer, WARDEN_ID_SIZE, "l1");
	(void)!link_ask(b->server->link, WARDEN_SNAPSHOT, &f, 0, &reply, NULL);
	return reply.err ? problem_warden(p, &reply, "keep its files") : 0;
}

int change_snapshot_done(struct sandbox *b)
{
	return sandbox_save(b);
}

void layers_release(struct server *s, const struct sandbox_config *c)
{
	(void)s;
	(void)c;
}

int network_attach(struct sandbox *b, struct problem *p)
{
	(void)b;
	(void)p;
	return 0;
}

void network_take_up(struct sandbox *b)
{
	(void)b;
}

void server_log(struct server *s, const char *level, const char *event, json_t *fields)
{
	(void)s;
	(void)level;
	(void)event;
	json_decref(fields);
}

int reply_json(struct request *r, unsigned status, json_t *body)
{
	(void)r;
	(void)status;
	json_decref(body);
	return 0;
}

int reply_failure(struct request *r, const struct fail *fail)
{
	(void)r;
	(void)fail;
	return 0;
}

void outlet_close(struct outlet *o)
{
	(void)o;
}

void outlets_connect(struct outlets *all, int sock)
{
	(void)all;
	fd_close(sock);
}

/* --- tests ----------------------------------------------------------------------------------------------------- */

static struct server server;

static int set_up(void **state)
{
	(void)state;
	memset(&warden, 0, sizeof(warden));
	memset(&store, 0, sizeof(store));
	memset(&server, 0, sizeof(server));
	clock_ahead_ms = 0;
	events_paused = 0;
	server.config.limits_timeout = (uint64_t)(24 * HOUR_MS);
	server.config.limits_sandboxes_per_key = 10;
	return table_new(10, &server.table);
}

static int tear_down(void **state)
{
	(void)state;
	run_jobs();
	table_free(server.table);
	return 0;
}

/* With its change lock held, as all of these want it. */
static struct sandbox *make(void)
{
	const struct sandbox_plan plan = {
		.key_id = "key_a",
		.template_id = "base",
		.config = { .template = WARDEN_TEMPLATE_BASE, .timeout_ms = LEFT_MS },
	};
	struct sandbox *b = NULL;
	struct problem p;

	assert_int_equal(sandbox_make(&server, &plan, &b, &p), 0);
	assert_int_equal(change_begin(b), 0);
	return b;
}

static struct sandbox *make_cold(void)
{
	struct sandbox *b = make();
	struct problem p;

	assert_int_equal(change_pause(b, false, &p), 0);
	assert_true(store.cold);
	return b;
}

static void done(struct sandbox *b)
{
	change_end(b);
	sandbox_put(b);
}

static bool is_cold(struct sandbox *b)
{
	struct sandbox_config c;

	sandbox_config_of(b, &c);
	return c.cold && sandbox_state(b) == STORE_PAUSED;
}

/* A box that would not stand still, or whose files are being copied, runs on. */
static void test_pause_refused(void **state)
{
	struct sandbox *b = make();
	struct problem p;

	(void)state;
	for (int memory = 0; memory < 2; memory++) {
		next_fails(WARDEN_PAUSE, 0, EBUSY);
		assert_true(change_pause(b, memory, &p) < 0);
		assert_int_equal(p.status, 409);
		assert_int_equal(sandbox_state(b), STORE_RUNNING);
		assert_int_equal(store.state, STORE_RUNNING);
	}
	assert_int_equal(events_paused, 0);
	done(b);
}

/* What could not be killed in time is killed before there is another box of its name, not after. */
static void test_late_kill(void **state)
{
	struct sandbox *b = make();
	struct problem p;

	(void)state;
	next_fails(WARDEN_KILL, -ETIMEDOUT, 0);
	assert_int_equal(change_pause(b, false, &p), 0);
	assert_int_equal(change_resume(b, LEFT_MS, true, &p), 0);
	done(b);
	run_jobs();
	assert_true(last_asked(WARDEN_KILL) < last_asked(WARDEN_CREATE));
	assert_int_equal(store.state, STORE_RUNNING);
}

/* The old box cannot be killed even now: the sandbox stays as it is. */
static void test_old_box_stays(void **state)
{
	struct sandbox *b = make_cold();
	struct problem p;
	size_t made = last_asked(WARDEN_CREATE);

	(void)state;
	next_fails(WARDEN_KILL, -ETIMEDOUT, 0);
	assert_true(change_resume(b, LEFT_MS, true, &p) < 0);
	assert_int_equal(p.status, 503);
	assert_int_equal(last_asked(WARDEN_CREATE), made);
	assert_true(is_cold(b));
	done(b);
}

/* A box that was made for nobody is killed: without its socket, and when nobody knows whether there is one. */
static void test_resume_fails(void **state)
{
	struct sandbox *b = make_cold();
	struct problem p;

	(void)state;
	warden.no_socket = true;
	assert_true(change_resume(b, LEFT_MS, true, &p) < 0);
	change_end(b);
	run_jobs();
	assert_true(last_asked(WARDEN_KILL) > last_asked(WARDEN_CREATE));
	assert_true(is_cold(b));
	assert_int_equal(change_begin(b), 0);
	next_fails(WARDEN_CREATE, -ETIMEDOUT, 0);
	assert_true(change_resume(b, LEFT_MS, true, &p) < 0);
	change_end(b);
	run_jobs();
	assert_true(last_asked(WARDEN_KILL) > last_asked(WARDEN_CREATE));
	assert_true(is_cold(b));
	assert_int_equal(change_begin(b), 0);
	done(b);
}

/* Nothing that is not on record has happened. */
static void test_resume_not_saved(void **state)
{
	struct sandbox *b = make_cold();
	struct problem p;

	(void)state;
	store.r = -ENOSPC;
	assert_true(change_resume(b, LEFT_MS, true, &p) < 0);
	assert_int_equal(p.status, 503);
	assert_true(is_cold(b));
	assert_int_equal(b->control_fd, -EBADF);
	change_end(b);
	run_jobs();
	assert_true(last_asked(WARDEN_KILL) > last_asked(WARDEN_CREATE));
	store.r = 0;
	assert_int_equal(change_begin(b), 0);
	assert_int_equal(change_resume(b, LEFT_MS, true, &p), 0);
	assert_int_equal(store.state, STORE_RUNNING);
	assert_false(store.cold);
	done(b);
}

/* A box of a sandbox that is to have none is paused, as its time is over: that is no news of the sandbox's. */
static void test_stray_is_paused(void **state)
{
	struct sandbox *b = make_cold();
	unsigned events = events_paused;

	(void)state;
	change_end(b);
	warden.n = 0;
	boxes_events.paused(&server, b->info.id);
	run_jobs();
	assert_int_equal(events_paused, events);
	assert_int_equal(last_asked(WARDEN_KILL), 1);
	sandbox_put(b);
}

/* Whether a deadline moves is not decided by a clock that somebody sets. */
static void test_clock_is_set(void **state)
{
	struct sandbox *b = make();
	struct problem p;

	(void)state;
	clock_ahead_ms = -HOUR_MS;
	assert_int_equal(change_deadline(b, 2 * LEFT_MS, true, &p), 0);
	assert_int_equal(last_asked(WARDEN_DEADLINE), warden.n);
	clock_ahead_ms = HOUR_MS;
	warden.n = 0;
	assert_int_equal(change_deadline(b, LEFT_MS, true, &p), 0);
	assert_int_equal(warden.n, 0);
	/* A pause that fails gives it the time that it had. */
	next_fails(WARDEN_SNAPSHOT, 0, ENOSPC);
	assert_true(change_pause(b, false, &p) < 0);
	assert_int_equal(last_asked(WARDEN_RESUME), warden.n);
	assert_in_range(warden.timeout_ms[warden.n - 1], LEFT_MS + 1, 2 * LEFT_MS);
	done(b);
}

/* --- at start -------------------------------------------------------------------------------------------------- */

/* The server takes up a sandbox of which the store says this, and the warden that. */
static struct sandbox *take_up(enum store_state state, bool cold, int64_t left_ms,
			       const struct warden_box *box)
{
	struct sandbox_config c = { .template = WARDEN_TEMPLATE_BASE, .cold = cold };
	struct store_sandbox row = {
		.id = "i1",
		.key_id = "key_a",
		.template_id = strdup("base"),
		.metadata = json_object(),
		.env = json_object(),
		.config = sandbox_config_json(&c),
		.state = state,
		.end_ms = clock_wall_ms() + left_ms,
	};
	struct fail fail;

	store.row = &row;
	store.state = state;
	store.cold = cold;
	boxes_events.box(&server, box, eventfd(0, EFD_CLOEXEC));
	assert_int_equal(boxes_take_up(&server, &fail), 0);
	server.link = (struct link *)&server; /* there is one from here on */
	return sandbox_get(&server, "i1");
}

/* It was being resumed when the last server died: it is paused still, whatever becomes of that box, and of the next server. */
static void test_was_being_resumed(void **state)
{
	const struct warden_box box = { .id = "i1", .state = WARDEN_STATE_RUNNING };
	const struct warden_ended ended = { .id = "i1", .reason = WARDEN_ENDED_TIMEOUT };
	struct sandbox *b = take_up(STORE_PAUSED, true, HOUR_MS, &box);

	(void)state;
	assert_non_null(b);
	assert_int_equal(store.state, STORE_PAUSED);
	boxes_events.ended(&server, &ended);
	boxes_kill_unknown(&server);
	assert_int_equal(boxes_finish_changes(&server), 0);
	run_jobs();
	assert_true(is_cold(b));
	assert_int_equal(b->control_fd, -EBADF);
	assert_true(last_asked(WARDEN_KILL) > 0);
	assert_int_equal(store.state, STORE_PAUSED);
	sandbox_put(b);
}

/* A server that is older than this one wrote so. */
static void test_says_it_runs(void **state)
{
	const struct warden_box box = { .id = "i1", .state = WARDEN_STATE_RUNNING };
	struct sandbox *b = take_up(STORE_RUNNING, true, HOUR_MS, &box);

	(void)state;
	assert_non_null(b);
	boxes_kill_unknown(&server);
	assert_true(is_cold(b));
	sandbox_put(b);
}

/* The last server died before it had written down the deadline that it set. */
static void test_deadline_not_saved(void **state)
{
	const struct warden_box box = { .id = "i1",
					.state = WARDEN_STATE_RUNNING,
					.left_ms = LEFT_MS };
	struct sandbox *b = take_up(STORE_RUNNING, false, HOUR_MS, &box);
	struct problem p;

	(void)state;
	assert_non_null(b);
	assert_in_range(b->info.end_ms - clock_wall_ms(), LEFT_MS - 5000, LEFT_MS);
	assert_int_equal(change_begin(b), 0);
	assert_int_equal(change_deadline(b, 2 * LEFT_MS, true, &p), 0);
	assert_int_equal(last_asked(WARDEN_DEADLINE), warden.n);
	assert_true(warden.n > 0);
	done(b);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(test_pause_refused),    TEST(test_late_kill),
		TEST(test_old_box_stays),    TEST(test_resume_fails),
		TEST(test_resume_not_saved), TEST(test_stray_is_paused),
		TEST(test_clock_is_set),     TEST(test_was_being_resumed),
		TEST(test_says_it_runs),     TEST(test_deadline_not_saved),
	};

	if (sodium_init() < 0)
		return 1;
	return cmocka_run_group_tests_name("changes of a sandbox", tests, NULL, NULL);
}
