/* SPDX-License-Identifier: Apache-2.0 */
/*
 * egress: the only way from a box to the network.
 *
 * Runs as     a user of its own without capabilities, under a filter of system calls, and without
 *             any file: what it needs from files it has read before it takes the first byte of a
 *             box (seal.c).
 * Holds       a socket to the one that started it (3), one to the server, and the doors of each
 *             box: sockets in the box's own network namespace. Secrets that rules put into
 *             requests, locked into memory.
 * Reads       what boxes send, and what hosts answer: both hostile. Rules from the server. The
 *             operator's sets, the doors and the socket to the server from the warden.
 * Talks to    the machine's resolver, hosts that a box's rules allow, the server (what was let out
 *             and what was not).
 * Must never  take a box's word for who it is, dial an address that was not checked, tell a secret
 *             to anybody but the host it is for.
 *
 * Theory of operation: one thread and one loop (sys/loop.h). Doors and the two sockets are watched
 * from it; everything else hangs on a connection or a question that came through a door. It ends
 * when the warden's socket does.
 */
#include "egress/door/door.h"
#include "egress/flow/conn.h"
#include "egress/start.h"

#include <sys/resource.h>

#define TIMERS 1024 /* that there is place for from the start */

static struct egress egress = { .loop = LOOP_INIT, .server_fd = -EBADF };

/* As root the separation would be none. */
static int check_not_root(struct fail *fail)
{
	if (geteuid() != 0)
		return 0;
	return fail_set(
		fail, EPERM, "user",
		"egress must not run as root; it is started by `glovebox serve` and `glovebox "
		"run`, which give it a user of its own");
}

/*
 * The end of the warden's socket says when to end. What a terminal sends to everybody in front of
 * it is not meant for us, and a connection that is closed while we write to it must not end the
 * others.
 */
static int ignore_signals(void)
{
	static const int signals[] = { SIGPIPE, SIGINT, SIGHUP, SIGQUIT };
	const struct sigaction ignore = { .sa_handler = SIG_IGN };

	for (size_t i = 0; i < ARRAY_SIZE(signals); i++)
		if (sigaction(signals[i], &ignore, NULL) < 0)
			return -errno;
	return 0;
}

/* As many descriptors as may be: two for each connection, and the doors. */
static void raise_descriptor_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
		return;
	limit.rlim_cur = limit.rlim_max;
	(void)setrlimit(RLIMIT_NOFILE, &limit);
}

/* Everything that needs a file. */
static int prepare_egress(struct egress *g, const struct config *c, struct fail *fail)
{
	int r = check_not_root(fail);

	if (r < 0)
		return r;
	raise_descriptor_limit();
	r = ignore_signals();
	if (r == 0)
		r = loop_open(&g->loop, TIMERS);
	if (r == 0)
		r = nets_open(g);
	if (r == 0)
		r = own_open(g);
	if (r < 0)
		return fail_set(fail, -r, "start", "cannot start: %s", strerror(-r));
	r = resolve_open(g, c->egress_resolver, fail);
	if (r == 0)
		r = tls_open(g, c->egress_ca_bundle, fail);
	return r;
}

int main(int argc, char *argv[])
{
	static struct config config;
	struct fail fail = { 0 };
	int r = settings_read(argc, argv, &egress, &config, &fail);

	if (r == 0)
		r = prepare_egress(&egress, &config, &fail);
	if (r == 0)
		r = seal(&fail);
	if (r < 0) {
		(void)fprintf(stderr, "glovebox-egress: %s\n", fail.msg);
		return WARDEN_EXIT_REFUSED;
	}
	r = talk_open(&egress, EGRESS_WARDEN_FD);
	if (r < 0) {
		(void)fprintf(stderr,
			      "glovebox-egress: descriptor %d is not a socket to the warden: %s\n",
			      EGRESS_WARDEN_FD, strerror(-r));
		return EXIT_FAILURE;
	}
	while (!egress.is_over)
		if (loop_turn(&egress.loop) < 0)
			return EXIT_FAILURE;
	loop_close(&egress.loop);
	return egress.status;
}
