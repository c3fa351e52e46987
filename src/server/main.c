/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The server: everything that is said over HTTP.
 *
 * Runs as     a user of its own without capabilities, under a filter of system calls and Landlock
 *             rules that it puts on before it reads a byte from the network (seal.c).
 * Holds       the socket to the warden (3), the listening socket (4), the directory of the store
 *             (5), with TLS its certificate and key (6, 7), the directory of the language files
 *             (8; these three are closed once read), and for each sandbox its control socket.
 * Reads       requests from anybody, frames from agents, answers of programs in boxes: all hostile.
 *             Messages from the warden.
 * Talks to    the warden, which makes and ends boxes; agents, over a socket for each operation;
 *             ports of boxes, over sockets that the warden opened there; webhooks.
 * Must never  fork or execute anything, touch a box's files except through its agent, write a
 *             secret to the log.
 *
 * Theory of operation: main() sets everything up in one thread, seals, then starts the threads: one
 * that reads from the warden, one that accepts, a few that hold many connections each
 * (port/express.h), one for each other connection, a few for upkeep. It ends when it is told to
 * (SIGTERM) or when the warden is gone.
 */
#include "base/buf.h"
#include "server/changes/boxes.h"
#include "server/sandbox/clock.h"
#include "server/http/connection.h"
#include "server/changes/changes.h"
#include "server/control/control.h"
#include "server/envd/envd.h"
#include "server/interp/interp.h"
#include "server/run/run.h"
#include "server/http/http.h"
#include "server/http/daemon.h"
#include "server/sandbox/log.h"
#include "server/sandbox/outlet.h"
#include "server/port/port.h"
#include "server/port/express.h"
#include "server/http/rate.h"
#include "server/http/routes.h"
#include "server/seal.h"
#include "server/sandbox/secret.h"

#include <curl/curl.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sodium.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <sys/socket.h>

#define DRAIN_MS 1500 /* for requests that are under way when the service stops */
#define PEM_MAX ((size_t)1 << 20)

static int read_settings(int argc, char **argv, struct config *c, struct fail *fail)
{
	config_init(c);
	for (int i = 1; i < argc; i++) {
		char *equals = strchr(argv[i], '=');
		int r;

		if (strncmp(argv[i], "--", 2) != 0 || !equals)
			return fail_set(fail, EINVAL, "settings",
					"'%s' is not --section.key=value; "
					"this program is started by `glovebox serve`",
					argv[i]);
		*equals = '\0';
		r = config_set(c, argv[i] + 2, equals + 1, fail);
		if (r < 0)
			return r;
	}
	return config_check(c, fail);
}

/* AP-17, AP-18: as root the separation would be none. */
static int check_user(struct fail *fail)
{
	if (geteuid() != 0)
		return 0;
#ifdef GLOVEBOX_BREAKABLE
	if (getenv("GLOVEBOX_SERVER_AS_ROOT"))
		return 0;
#endif
	return fail_set(fail, EPERM, "user",
			"the server must not run as root; start it with `glovebox serve`, "
			"which gives it a user of its own");
}

static bool is_loopback(int listen_fd)
{
	struct sockaddr_storage ss = { 0 };
	socklen_t len = sizeof(ss);

	if (getsockname(listen_fd, (struct sockaddr *)&ss, &len) < 0)
		return false;
	if (ss.ss_family == AF_INET)
		return ntohl(((const struct sockaddr_in *)(const void *)&ss)->sin_addr.s_addr) >>
			       24 ==
		       127;
	return ss.ss_family == AF_INET6 &&
	       IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *)(const void *)&ss)->sin6_addr);
}

static int check_keys(const struct server *s, struct fail *fail)
{
	size_t n;
	int r = store_key_count(s->store, &n);

	if (r < 0)
		return fail_set(fail, -r, "keys", "cannot count the keys: %s", strerror(-r));
	if (n == 0 && !is_loopback(WARDEN_LISTEN_FD))
		return fail_set(fail, EPERM, "keys",
				"there is no API key, so only a loopback address may be served; "
				"make one with `glovebox key create`");
	return 0;
}

static int read_pem(int fd, char **ret)
{
	_cleanup_(buf_done) struct buf b = BUF_INIT(PEM_MAX);
	int r = buf_read_fd(&b, fd);

	fd_close(fd);
	if (r < 0)
		return r;
	*ret = (char *)take_ptr(b.data);
	return 0;
}

static int read_tls(const struct config *c, struct http_tls *ret, struct fail *fail)
{
	int r;

	if (!c->server_tls_cert[0])
		return 0;
	r = read_pem(WARDEN_TLS_CERT_FD, &ret->cert);
	if (r == 0)
		r = read_pem(WARDEN_TLS_KEY_FD, &ret->key);
	return r < 0 ? fail_set(fail, -r, "TLS", "cannot read the certificate or its key: %s",
				strerror(-r)) :
		       0;
}

static int open_store(struct server *s, struct fail *fail)
{
	int r = store_open(WARDEN_STATE_FD, &s->store, fail);

	if (r < 0)
		return r;
	/* Layers that nobody stands on are dropped. */
	r = store_layers_renew(s->store);
	return r < 0 ? fail_set(fail, -r, "layers", "cannot find out which layers are in use: %s",
				strerror(-r)) :
		       0;
}

/* Everything that can be done without another thread. */
static int prepare(struct server *s, struct http_tls *tls, struct fail *fail)
{
	const struct route *const handlers[_PLANE_MAX] = { [PLANE_CONTROL] = control_routes,
							   [PLANE_ENVD] = envd_routes,
							   [PLANE_INTERPRETER] = interp_routes };
	int r = check_user(fail);

	if (r < 0)
		return r;
	if (sodium_init() < 0 || curl_global_init(CURL_GLOBAL_DEFAULT) != 0)
		return fail_set(fail, EIO, "libraries", "cannot initialise the libraries");
	s->port_route = &port_route;
	r = routes_new(openapi_json, strlen(openapi_json), handlers, &s->routes, fail);
	if (r == 0)
		r = open_store(s, fail);
	if (r == 0)
		r = secret_key_open(WARDEN_STATE_FD, &s->secret_key, fail);
	if (r == 0)
		r = check_keys(s, fail);
	if (r == 0)
		r = read_tls(&s->config, tls, fail);
	if (r < 0)
		return r;
	s->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	r = s->stop_fd < 0 ? -errno : table_new(s->config.limits_sandboxes, &s->table);
	if (r == 0)
		r = rates_new(&s->rates);
	if (r == 0)
		r = outlets_new(s, &s->outlets);
	if (r < 0)
		return fail_set(fail, -r, "start", "cannot start: %s", strerror(-r));
	return 0;
}

static int greet(struct server *s, struct fail *fail)
{
	int r = link_open(WARDEN_SERVER_FD, &boxes_events, s, &s->link);

	if (r < 0)
		return fail_set(fail, -r, "warden", "the warden does not answer: %s", strerror(-r));
	return boxes_take_up(s, fail);
}

static const struct chore chores[] = {
	{ layers_tick, layers_stop },
	{ orphans_tick, orphans_stop },
	{ metrics_tick, metrics_stop },
	{ envd_watchers_tick, envd_watchers_stop },
	{ 0 },
};

static int start_threads(struct server *s, const struct http_tls *tls, struct fail *fail)
{
	int r = link_start(s->link);

	if (r == 0)
		r = outlets_start(s->outlets);
	if (r == 0)
		r = connections_start(s->config.limits_connections,
				      s->config.limits_connections_per_address, &s->connections);
	if (r == 0)
		r = port_pool_start(&s->ports);
	if (r == 0)
		r = log_queue_start();
	if (r < 0)
		return fail_set(fail, -r, "start", "cannot start a thread: %s", strerror(-r));
	boxes_kill_unknown(s);
	r = boxes_finish_changes(s);
	if (r == 0)
		r = worker_start(s, chores);
	if (r == 0)
		r = deliver_start(s);
	if (r < 0)
		return fail_set(fail, -r, "control plane", "cannot start: %s", strerror(-r));
	r = http_start(s, tls);
	if (r < 0)
		return fail_set(fail, -r, "HTTP",
				"cannot serve: with TLS, are the certificate and its key good?");
	if (!tls->cert)
		r = express_start(s, &s->express);
	if (r == 0)
		r = acceptor_start(s, WARDEN_LISTEN_FD, tls->cert ? http_take : express_take,
				   &s->acceptor);
	return r < 0 ? fail_set(fail, -r, "start", "cannot accept connections: %s", strerror(-r)) :
		       0;
}

static void free_tls(struct http_tls *tls)
{
	if (tls->key)
		explicit_bzero(tls->key, strlen(tls->key));
	free(tls->cert);
	free(tls->key);
}

/* Signals come through a descriptor: no code ever runs in a handler. */
static int block_signals(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGHUP);
	sigaddset(&set, SIGPIPE);
	if (sigprocmask(SIG_SETMASK, &set, NULL) < 0)
		return -errno;
	sigdelset(&set, SIGPIPE);
	return signalfd(-1, &set, SFD_CLOEXEC);
}

static void wait_for_end(const struct server *s, int signal_fd)
{
	struct pollfd p[] = {
		{ .fd = signal_fd, .events = POLLIN },
		{ .fd = s->stop_fd, .events = POLLIN },
	};

	while (poll(p, ARRAY_SIZE(p), -1) < 0 && errno == EINTR)
		;
}

/* CR-09: what is under way may finish for a moment; the rest is cut off so that nobody takes it for
 * an end. */
static _noreturn_ void stop(struct server *s)
{
	acceptor_stop(s->acceptor);
	(void)eventfd_write(s->stop_fd, 1);
	express_stop(s->express);
	for (int i = 0; i < DRAIN_MS / 10 && connections_busy(s->connections) > 0; i++)
		(void)poll(NULL, 0, 10);
	connections_cut(s->connections);
	if (connections_busy(s->connections) > 0) {
		log_queue_stop();
		_exit(EXIT_SUCCESS); /* a thread that does not come back; the store survives that */
	}
	MHD_stop_daemon(s->daemon);
	deliver_stop();
	worker_stop();
	once_stop();
	port_pool_stop(s->ports);
	outlets_stop(s->outlets); /* it asks the warden */
	link_close(s->link);
	connections_stop(s->connections);
	table_free(s->table);
	outlets_free(s->outlets);
	rates_free(s->rates);
	routes_free(s->routes);
	store_close(s->store);
	secret_key_close(s->secret_key);
	run_languages_free();
	curl_global_cleanup();
	log_queue_stop();
	exit(EXIT_SUCCESS);
}

int main(int argc, char *argv[])
{
	static struct server server = {
		.stop_fd = -EBADF,
		.wake = change_wake,
		.deliver = webhook_deliver,
	};
	struct http_tls tls = { 0 };
	struct fail fail = { 0 };
	int signal_fd = block_signals();
	int r = read_settings(argc, argv, &server.config, &fail);

	server.started_ms = clock_wall_ms();
	if (r == 0)
		r = prepare(&server, &tls, &fail);
	if (r == 0)
		r = run_languages_load(&fail);
	if (r < 0) {
		(void)fprintf(stderr, "glovebox-server: %s\n", fail.msg);
		return WARDEN_EXIT_REFUSED;
	}
	r = seal(&server, &fail);
	if (r == 0)
		r = greet(&server, &fail);
	if (r == 0)
		r = start_threads(&server, &tls, &fail);
	free_tls(&tls);
	if (r < 0) {
		(void)fprintf(stderr, "glovebox-server: %s\n", fail.msg);
		return EXIT_FAILURE;
	}
	wait_for_end(&server, signal_fd);
	stop(&server);
}
