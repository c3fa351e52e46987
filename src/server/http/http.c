/* SPDX-License-Identifier: Apache-2.0 */
/* Between the HTTP library and http/exchange.c: its callbacks, its options, the log of requests. */
#include "server/http/exchange.h"
#include "server/http/http_daemon.h"
#include "server/port/port.h"
#include "server/port/log.h"

#include "base/clock.h"

#include <sys/socket.h>

#define THREAD_STACK (512L << 10)      /* frames of 64 KiB are on it */
#define CONNECTION_MEMORY (128L << 10) /* half of it reads: a piece of a body becomes a frame */

#define LOGGED_PATH_MAX 200
#define TLS_PRIORITIES "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2"

#if MHD_VERSION >= 0x00097701
#define STRICTNESS MHD_OPTION_CLIENT_DISCIPLINE_LVL
#else
#define STRICTNESS MHD_OPTION_STRICT_FOR_CLIENT
#endif

static struct connection *peer_of(struct MHD_Connection *c)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(c, MHD_CONNECTION_INFO_SOCKET_CONTEXT);

	return info ? info->socket_context : NULL;
}

static void on_connection(void *cls, struct MHD_Connection *c, void **context,
			  enum MHD_ConnectionNotificationCode what)
{
	struct server *s = cls;
	const union MHD_ConnectionInfo *fd;

	if (what == MHD_CONNECTION_NOTIFY_CLOSED) {
		connection_remove(s->connections, *context);
		*context = NULL;
		return;
	}
	fd = MHD_get_connection_info(c, MHD_CONNECTION_INFO_CONNECTION_FD);
	*context = connection_find(s->connections, fd->connect_fd);
}

/* The only place where the library shows the target as it came. NULL makes on_request() close the connection. */
static void *on_target(void *cls, const char *target, struct MHD_Connection *c)
{
	struct connection *peer = peer_of(c);

	return peer ? exchange_new(cls, c, peer, target) : NULL;
}

static int handle(struct exchange *x, const char *method, const char *version, const char *data,
		  size_t len)
{
	int r;

	if (!x->begun) {
		x->begun = true;
		r = exchange_begin(x, method, version);
		if (r == 0 && exchange_cannot_wait(x))
			return exchange_queue(x);
		if (r == 0 && x->has_body)
			connection_set(x->peer, CONNECTION_BODY);
		return r;
	}
	if (len > 0) {
		r = exchange_data(x, data, len);
		if (r == 0 && x->taken)
			return body_finish(x);
		connection_set(x->peer, CONNECTION_BODY);
		return r;
	}
	r = exchange_end(x);
	return r < 0 ? r : exchange_queue(x);
}

static enum MHD_Result on_request(void *cls, struct MHD_Connection *c, const char *url,
				  const char *method, const char *version, const char *data,
				  size_t *len, void **state)
{
	struct exchange *x = *state;
	size_t n = *len;

	(void)cls;
	(void)c;
	(void)url;
	if (!x)
		return MHD_NO;
	connection_set(x->peer, CONNECTION_BUSY);
	*len = 0; /* all of it is taken */
	return handle(x, method, version, data, n) < 0 ? MHD_NO : MHD_YES;
}

/* Of what came as the target: no query, and not without end. */
static json_t *path_json(const char *target)
{
	char path[LOGGED_PATH_MAX + 1];

	(void)snprintf(path, sizeof(path), "%.*s", (int)strcspn(target, "?"), target);
	return reply_safe_string(path);
}

static void log_visit(const struct exchange *x, enum MHD_RequestTerminationCode how)
{
	struct port_log l = {
		.count = 1,
		.status = x->status,
		.ms = (clock_boot_us() - x->started_us) / 1000,
		.port = x->r.port,
		.broken_off = how != MHD_REQUEST_TERMINATED_COMPLETED_OK,
	};

	(void)snprintf(l.id, sizeof(l.id), "%s", x->r.sandbox->info.id);
	(void)snprintf(l.method, sizeof(l.method), "%s", x->r.method);
	port_log_write(&l, connection_peer(x->peer), x->r.id);
}

/* AP-12: one line, and nothing secret: no query, no header. */
static void log_request(const struct exchange *x, enum MHD_RequestTerminationCode how)
{
	const struct request *r = &x->r;
	json_t *line = json_pack("{s:s, s:s, s:i, s:I}", "request", r->id, "peer",
				 connection_peer(x->peer), "status", (int)x->status, "ms",
				 (json_int_t)((clock_boot_us() - x->started_us) / 1000));

	if (!line)
		return;
	if (r->method)
		(void)json_object_set_new(line, "method", reply_safe_string(r->method));
	if (r->route)
		(void)json_object_set_new(line, "operation", json_string(r->route->operation));
	else
		(void)json_object_set_new(line, "path", path_json(x->target));
	if (r->key.id[0])
		(void)json_object_set_new(line, "key", json_string(r->key.id));
	if (r->sandbox)
		(void)json_object_set_new(line, "sandbox", json_string(r->sandbox->info.id));
	if (how != MHD_REQUEST_TERMINATED_COMPLETED_OK && !x->sent)
		(void)json_object_set_new(line, "broken_off", json_true());
	if (x->cut)
		(void)json_object_set_new(line, "cut", json_string(strerror(-x->cut)));
	server_log(r->server, "info", "request", line);
}

static void on_completed(void *cls, struct MHD_Connection *c, void **state,
			 enum MHD_RequestTerminationCode how)
{
	struct exchange *x = *state;
	struct connection *peer;

	(void)cls;
	(void)c;
	if (!x)
		return;
	peer = x->peer;
	if (x->r.route == &port_route && x->r.sandbox)
		log_visit(x, how);
	else
		log_request(x, how);
	exchange_free(x);
	*state = NULL;
	connection_wait(peer);
}

/* We decode the target ourselves, so that what was checked is what is used. */
static size_t leave_escaped(void *cls, struct MHD_Connection *c, char *text)
{
	(void)cls;
	(void)c;
	return strlen(text);
}

int http_start(struct server *s, const struct http_tls *tls)
{
	unsigned flags = MHD_USE_THREAD_PER_CONNECTION | MHD_USE_INTERNAL_POLLING_THREAD |
			 MHD_USE_POLL | MHD_USE_ITC | MHD_ALLOW_UPGRADE | MHD_USE_NO_LISTEN_SOCKET;
	struct MHD_OptionItem tls_options[] = {
		{ MHD_OPTION_HTTPS_MEM_CERT, 0, tls->cert },
		{ MHD_OPTION_HTTPS_MEM_KEY, 0, tls->key },
		{ MHD_OPTION_HTTPS_PRIORITIES, 0, (void *)(uintptr_t)TLS_PRIORITIES },
		{ MHD_OPTION_END, 0, NULL },
	};
	struct MHD_OptionItem options[] = {
		/* http/connection.c counts them. The library forgets one a little later than we do. */
		{ MHD_OPTION_CONNECTION_LIMIT, 2 * (intptr_t)s->config.limits_connections, NULL },
		{ MHD_OPTION_CONNECTION_MEMORY_LIMIT, CONNECTION_MEMORY, NULL },
		{ MHD_OPTION_CONNECTION_TIMEOUT, 0, NULL }, /* http/connection.c has better ones */
		{ MHD_OPTION_THREAD_STACK_SIZE, THREAD_STACK, NULL },
		{ STRICTNESS, 1, NULL },
		{ MHD_OPTION_SIGPIPE_HANDLED_BY_APP, 1, NULL },
		{ MHD_OPTION_UNESCAPE_CALLBACK, (intptr_t)leave_escaped, NULL },
		{ MHD_OPTION_URI_LOG_CALLBACK, (intptr_t)on_target, s },
		{ MHD_OPTION_NOTIFY_CONNECTION, (intptr_t)on_connection, s },
		{ MHD_OPTION_NOTIFY_COMPLETED, (intptr_t)on_completed, s },
		{ MHD_OPTION_END, 0, NULL },
	};

	if (tls->cert)
		flags |= MHD_USE_TLS;
	s->daemon = MHD_start_daemon(flags, 0, NULL, NULL, on_request, s, MHD_OPTION_ARRAY, options,
				     MHD_OPTION_ARRAY,
				     tls->cert ? tls_options : &options[ARRAY_SIZE(options) - 1],
				     MHD_OPTION_END);
	return s->daemon ? 0 : -EIO;
}

void http_add(struct server *s, int fd, const struct sockaddr_storage *peer)
{
	const struct connection *c = connection_find(s->connections, fd);
	uint64_t cookie = c ? connection_cookie(c) : 0;

	/* It closes the descriptor when it cannot, and says nothing to on_connection(). */
	if (MHD_add_connection(s->daemon, fd, (const struct sockaddr *)peer, sizeof(*peer)) !=
	    MHD_YES)
		connection_forget(s->connections, fd, cookie);
}
