/* SPDX-License-Identifier: Apache-2.0 */
#include "service/egress_start.h"

#include "base/io.h"
#include "service/sets.h"
#include "service/spawn.h"
#include "service/state.h"
#include "sys/proc.h"
#include "sys/sock.h"
#include "sys/user.h"

#include <fcntl.h>
#include <sys/mman.h>

#define FDS_PER_CONNECTION 6 /* both sides, and a pipe each way */
#define FDS_BESIDE 65536     /* doors of boxes, lookups */
#define SEALS (F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE)

/* Only what it needs: everybody who may list processes sees it. */
static const enum config_setting settings[] = {
	CONFIG_egress_resolver,
	CONFIG_egress_ca_bundle,
	CONFIG_egress_connections_total,
	CONFIG_egress_proxy_resolves,
};

#define ARGS_MAX (ARRAY_SIZE(settings) + 3)

struct arguments {
	char *argv[ARGS_MAX];
	size_t n;
};

static void arguments_done(struct arguments *a)
{
	while (a->n)
		free(a->argv[--a->n]);
}

static int add_argument(struct arguments *a, const char *name, const char *value)
{
	char *text = NULL;

	if (asprintf(&text, value ? "--%s=%s" : "%s", name, value) < 0)
		return -ENOMEM;
	a->argv[a->n++] = text;
	return 0;
}

static int make_arguments(const struct config *c, bool learn, struct arguments *ret)
{
	int r = add_argument(ret, "glovebox-egress", NULL);

	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(settings); i++) {
		char value[CONFIG_TEXT_SIZE];

		r = config_text(c, settings[i], value, sizeof(value));
		if (r == 0)
			r = add_argument(ret, config_name(settings[i]), value);
	}
	return r == 0 && learn ? add_argument(ret, "--learn", NULL) : r;
}

static int find_ids(const struct config *c, struct spawn *s, struct fail *fail)
{
	const struct passwd *pw;

	if (geteuid() != 0)
		return 0;
	pw = user_by_name(c->egress_user);
	s->uid = pw ? pw->pw_uid : state_unused_egress_id();
	s->gid = pw ? pw->pw_gid : (gid_t)s->uid;
	if (pw && (pw->pw_uid == 0 || pw->pw_gid == 0))
		return fail_set(
			fail, EPERM, "egress",
			"egress.user is '%.40s', who is root; it must be somebody without power",
			c->egress_user);
	/* What the server may do to its own processes and files must not be done to this one. */
	if (pw && strcmp(c->egress_user, c->server_user) == 0)
		return fail_set(fail, EPERM, "egress",
				"egress.user and server.user are the same; they must be two");
	if (s->uid == 0)
		return fail_set(fail, EUSERS, "egress",
				"no id is free for egress; make a user '%.40s'", c->egress_user);
	return 0;
}

static int spawn(const struct config *c, bool learn, int sock, struct egress_room *e,
		 struct fail *fail)
{
	_cleanup_(arguments_done) struct arguments a = { 0 };
	_cleanup_(fd_closep) int program_fd = -EBADF;
	/* The proxy's password is not for everybody's eyes, as arguments are. */
	char proxy[CONFIG_TEXT_SIZE + 32];
	char *env[] = { (char[]){ "LANG=C.UTF-8" }, proxy, NULL };
	struct spawn s = {
		.name = "egress",
		.argv = a.argv,
		.env = env,
		.fds = &sock,
		.n_fds = 1,
		.silent = true,
		.descriptors =
			(rlim_t)c->egress_connections_total * FDS_PER_CONNECTION + FDS_BESIDE,
	};
	int r = find_ids(c, &s, fail);

	(void)snprintf(proxy, sizeof(proxy), "GLOVEBOX_EGRESS_PROXY=%s", c->egress_proxy);
	if (r == 0)
		r = spawn_find("egress", "glovebox-egress", NULL, &program_fd, fail);
	if (r < 0)
		return r;
	if (make_arguments(c, learn, &a) < 0)
		return fail_set(fail, ENOMEM, "egress", "out of memory");
	s.program_fd = program_fd;
	return spawn_room(&s, &e->pid, &e->pidfd, fail);
}

int egress_start(const struct config *c, bool learn, struct egress_room *ret, struct fail *fail)
{
	struct egress_room e = EGRESS_ROOM_INIT;
	int pair[2], r = sock_pair(pair);

	_Static_assert(EGRESS_WARDEN_FD == SPAWN_FIRST_FD, "it is the first");
	if (r < 0)
		return fail_set(fail, -r, "egress", "cannot make a socket: %s", strerror(-r));
	r = spawn(c, learn, pair[1], &e, fail);
	fd_close(pair[1]);
	if (r < 0) {
		fd_close(pair[0]);
		return r;
	}
	e.sock = pair[0];
	*ret = e;
	return 0;
}

void egress_end(struct egress_room *e)
{
	if (e->pid) {
		(void)proc_kill(e->pidfd, SIGKILL);
		while (waitid(P_PIDFD, (id_t)e->pidfd, &(siginfo_t){ 0 }, WEXITED) < 0 &&
		       errno == EINTR)
			;
	}
	e->pid = 0;
	fd_closep(&e->pidfd);
	fd_closep(&e->sock);
}

static int seal_text(const struct buf *text)
{
	_cleanup_(fd_closep) int fd =
		memfd_create("egress-operator", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	int r = fd < 0 ? -errno : io_write_all(fd, text->data, text->len);

	if (r < 0)
		return r;
	if (lseek(fd, 0, SEEK_SET) < 0 || fcntl(fd, F_ADD_SEALS, SEALS) < 0)
		return -errno;
	return take_fd(&fd);
}

int egress_operator_file(const struct config *c, int *ret_fd, struct fail *fail)
{
	_cleanup_(buf_done) struct buf text = BUF_INIT(SETS_TEXT_MAX);
	int r = sets_load(c, &text, NULL, fail);

	if (r < 0)
		return r;
	r = seal_text(&text);
	if (r < 0)
		return fail_set(fail, -r, "egress", "cannot keep the rule sets: %s", strerror(-r));
	*ret_fd = r;
	return 0;
}

int egress_tell_operator(const struct egress_room *e, const struct config *c, struct fail *fail)
{
	struct egress_frame f = { 0 };
	_cleanup_(fd_closep) int fd = -EBADF;
	int r = egress_operator_file(c, &fd, fail);

	if (r < 0)
		return r;
	r = egress_send(e->sock, EGRESS_OPERATOR, &f, &fd, 1);
	return r < 0 ? fail_set(fail, -r, "egress", "egress cannot be told: %s", strerror(-r)) : 0;
}
