/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One sandbox: its references, its state, its log. The table is in sandbox/table.c, operations are
 * in sandbox/op.c.
 *
 * Locks, in the order in which they may be taken: save_lock, lock; the table's lock alone. None is
 * held while waiting for the warden, an agent or a client.
 */
#include "server/sandbox/sandbox.h"

#include "base/utf8.h"
#include "run/result.h"
#include "server/sandbox/clock.h"
#include "server/sandbox/link.h"
#include "server/sandbox/log.h"
#include "server/sandbox/outlet.h"
#include "server/server.h"

#include <stdarg.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/time.h>

#define CONTROL_SEND_TIMEOUT_S 10
#define USAGE_TIMEOUT_MS 5000

struct sandbox *sandbox_new(struct server *s, struct store_sandbox *info,
			    const struct warden_limits *limits)
{
	struct sandbox *b = calloc(1, sizeof(*b));
	json_t *log = json_array();

	if (!b || !log) {
		free(b);
		json_decref(log);
		store_sandbox_done(info);
		return NULL;
	}
	b->refs = 1;
	b->server = s;
	b->info = *info;
	b->control_fd = -EBADF;
	b->limits = *limits;
	b->log = log;
	*info = (struct store_sandbox){ 0 };
	pthread_mutex_init(&b->lock, NULL);
	pthread_mutex_init(&b->save_lock, NULL);
	pthread_mutex_init(&b->change, NULL);
	return b;
}

void sandbox_ref(struct sandbox *b)
{
	(void)__atomic_add_fetch(&b->refs, 1, __ATOMIC_RELAXED);
}

void sandbox_put(struct sandbox *b)
{
	if (!b || __atomic_sub_fetch(&b->refs, 1, __ATOMIC_ACQ_REL) > 0)
		return;
	if (b->interp_forget)
		b->interp_forget(b);
	free(b->metrics);
	outlet_close(b->outlet);
	fd_close(b->control_fd);
	json_decref(b->log);
	store_sandbox_done(&b->info);
	pthread_mutex_destroy(&b->change);
	pthread_mutex_destroy(&b->save_lock);
	pthread_mutex_destroy(&b->lock);
	free(b);
}

void sandbox_putp(struct sandbox **b)
{
	sandbox_put(*b);
	*b = NULL;
}

int sandbox_set_box(struct sandbox *b, int control_fd, const struct isolation *isolation)
{
	struct timeval tv = { .tv_sec = CONTROL_SEND_TIMEOUT_S };
	int old = control_fd;
	bool ended;

	/* AG-09: an agent that does not read must not keep a thread for ever. */
	(void)setsockopt(control_fd, SOL_SOCKET, SO_SNDTIMEO, &tv, sizeof(tv));
	pthread_mutex_lock(&b->lock);
	ended = b->info.state == STORE_ENDED;
	if (!ended) {
		old = b->control_fd;
		b->control_fd = control_fd;
		b->isolation = *isolation;
	}
	pthread_mutex_unlock(&b->lock);
	fd_close(old);
	table_note_isolation(b->server->table, isolation);
	return ended ? -ENOENT : 0;
}

/* With the lock held. Returns what must be closed without it. */
static int hang_up_locked(struct sandbox *b, bool box)
{
	for (struct op *op = b->ops; op; op = op->next)
		(void)shutdown(op->sock, SHUT_RDWR);
	return box ? take_fd(&b->control_fd) : -EBADF;
}

void sandbox_hang_up(struct sandbox *b, bool box)
{
	int fd;

	pthread_mutex_lock(&b->lock);
	fd = hang_up_locked(b, box);
	pthread_mutex_unlock(&b->lock);
	fd_close(fd);
}

int sandbox_set_boxless(struct sandbox *b, bool boxless)
{
	bool ended;

	pthread_mutex_lock(&b->lock);
	ended = b->info.state == STORE_ENDED;
	if (!ended)
		b->boxless = boxless;
	pthread_mutex_unlock(&b->lock);
	return ended ? -ENOENT : 0;
}

bool sandbox_is_boxless(struct sandbox *b)
{
	bool boxless;

	pthread_mutex_lock(&b->lock);
	boxless = b->boxless;
	pthread_mutex_unlock(&b->lock);
	return boxless;
}

/* Saves are done one after the other, so that the last state is the one that is kept. */
int sandbox_save(struct sandbox *b)
{
	struct store_sandbox now;
	_cleanup_(freep) char *detail = NULL;
	int r;

	pthread_mutex_lock(&b->save_lock);
	pthread_mutex_lock(&b->lock);
	now = b->info;
	if (now.detail)
		detail = strdup(now.detail);
	now.detail = detail;
	json_incref(now.config);
	pthread_mutex_unlock(&b->lock);
	r = store_sandbox_update(b->server->store, &now);
	json_decref(now.config);
	pthread_mutex_unlock(&b->save_lock);
	return r;
}

bool sandbox_end(struct sandbox *b, uint32_t reason, const char *detail)
{
	char *text;
	int fd, r;

	if (!table_remove(b))
		return false;
	text = detail ? strdup(detail) : NULL;
	pthread_mutex_lock(&b->lock);
	b->info.state = STORE_ENDED;
	b->info.end_ms = clock_wall_ms();
	b->info.reason = reason;
	free(b->info.detail);
	b->info.detail = text;
	fd = hang_up_locked(b, true);
	pthread_mutex_unlock(&b->lock);
	fd_close(fd);
	r = sandbox_save(b);
	if (r < 0)
		server_log(b->server, "error", "store",
			   json_pack("{s:s, s:s}", "sandbox", b->info.id, "error", strerror(-r)));
	return true;
}

int sandbox_wake(struct sandbox *b)
{
	bool running;

	pthread_mutex_lock(&b->lock);
	running = b->info.state == STORE_RUNNING && b->control_fd >= 0;
	pthread_mutex_unlock(&b->lock);
	return running ? 0 : b->server->wake(b);
}

#define LOGGER_NETWORK "network"

static json_t *log_entry(const char *level, const char *message, bool is_network)
{
	char now[CLOCK_TEXT_SIZE];
	_cleanup_(buf_done) struct buf text = BUF_INIT((size_t)3 * SANDBOX_LOG_LINE_MAX);
	json_t *fields = is_network ? json_pack("{s:s}", "logger", LOGGER_NETWORK) : json_object();

	clock_format(clock_wall_ms(), now);
	if (utf8_replace_invalid(message, strlen(message), &text) < 0) {
		json_decref(fields);
		return NULL;
	}
	return json_pack("{s:s, s:s, s:s, s:o}", "timestamp", now, "level", level, "message",
			 text.data ? (const char *)text.data : "", "fields", fields);
}

static bool entry_is_network(const json_t *entry)
{
	return json_object_size(json_object_get(entry, "fields")) > 0;
}

/* With the lock held. */
static void drop_entry(struct sandbox *b, size_t i)
{
	b->n_log_network -= entry_is_network(json_array_get(b->log, i));
	(void)json_array_remove(b->log, i);
}

static void drop_oldest_network_entry(struct sandbox *b)
{
	size_t i;
	json_t *entry;

	json_array_foreach(b->log, i, entry)
		if (entry_is_network(entry)) {
			drop_entry(b, i);
			return;
		}
}

static void log_add(struct sandbox *b, json_t *entry)
{
	if (!entry)
		return;
	pthread_mutex_lock(&b->lock);
	if (json_array_append_new(b->log, entry) == 0)
		b->n_log_network += entry_is_network(entry);
	if (b->n_log_network > SANDBOX_LOG_NETWORK_MAX)
		drop_oldest_network_entry(b);
	while (json_array_size(b->log) > SANDBOX_LOG_MAX)
		drop_entry(b, 0);
	pthread_mutex_unlock(&b->lock);
}

void sandbox_log(struct sandbox *b, const char *level, const char *fmt, ...)
{
	char message[SANDBOX_LOG_LINE_MAX];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(message, sizeof(message), fmt, ap);
	va_end(ap);
	log_add(b, log_entry(level, message, false));
}

void sandbox_log_network(struct sandbox *b, const char *level, const char *fmt, ...)
{
	char message[SANDBOX_LOG_LINE_MAX] = "network: ";
	size_t len = strlen(message);
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(message + len, sizeof(message) - len, fmt, ap);
	va_end(ap);
	log_add(b, log_entry(level, message, true));
}

struct outlet *sandbox_outlet(struct sandbox *b)
{
	struct outlet *o;

	pthread_mutex_lock(&b->lock);
	o = b->outlet;
	pthread_mutex_unlock(&b->lock);
	return o;
}

/* In either spelling: HTTPS_PROXY means https_proxy too, which many programs look at first. */
static bool has_variable(const json_t *given, const char *name, size_t len)
{
	const char *key;
	json_t *value;

	json_object_foreach((json_t *)(uintptr_t)given, key, value)
		if (strlen(key) == len && strncasecmp(key, name, len) == 0)
			return true;
	return false;
}

int sandbox_network_variables(struct sandbox *b, const json_t *given,
			      int (*add)(void *arg, const char *name, const char *value), void *arg)
{
	const char *const *variables;
	int r = 0;

	if (!sandbox_outlet(b))
		return 0;
	variables = run_network_env(*b->server->config.egress_ca_bundle != '\0');
	for (; r == 0 && *variables; variables++) {
		size_t len = strcspn(*variables, "=");
		char name[64];

		if (len >= sizeof(name) || has_variable(given, *variables, len) ||
		    has_variable(b->info.env, *variables, len))
			continue;
		(void)snprintf(name, sizeof(name), "%.*s", (int)len, *variables);
		r = add(arg, name, *variables + len + 1);
	}
	return r;
}

int sandbox_usage(struct sandbox *b, struct warden_usage *ret)
{
	struct warden_frame f = { 0 };
	struct warden_reply reply;
	int r;

	memcpy(f.as_USAGE.id, b->info.id, sizeof(f.as_USAGE.id));
	r = link_ask(b->server->link, WARDEN_USAGE, &f, USAGE_TIMEOUT_MS, &reply, NULL);
	if (r < 0)
		return r;
	if (reply.err)
		return -reply.err;
	*ret = reply.usage;
	return 0;
}

/* Of a counter that begins anew with each box. */
static uint64_t count_more(uint64_t *last, uint64_t now)
{
	uint64_t more = now >= *last ? now - *last : now;

	*last = now;
	return more;
}

enum run_limit sandbox_judge(struct sandbox *b, const struct wire_exit *end, struct run_limits *l)
{
	struct run_seen seen = RUN_SEEN_NOTHING;
	struct warden_usage u = { 0 };

	seen.end = end;
	seen.shared = true;
	l->memory_bytes = b->limits.memory_bytes;
	l->disk_bytes = b->limits.disk_bytes;
	l->files = b->limits.files;
	l->pids = b->limits.pids;
	if (end->code == 0 || end->timed_out || sandbox_usage(b, &u) < 0)
		return run_judge(l, &seen);
	if (u.disk_size) {
		seen.disk_free = u.disk_free;
		seen.files_free = u.files_free;
	}
	pthread_mutex_lock(&b->lock);
	seen.memory_kills = count_more(&b->memory_kills, u.oom_kills);
	seen.pids_denied = count_more(&b->pids_denied, u.pids_denied);
	/* Of a box that an earlier server made nobody knows what is new. */
	if (!b->counted)
		seen.memory_kills = seen.pids_denied = 0;
	b->counted = true;
	pthread_mutex_unlock(&b->lock);
	return run_judge(l, &seen);
}
