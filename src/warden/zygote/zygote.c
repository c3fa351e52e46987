/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The life of zygotes: one with the interpreter, one with the scientific packages as well, and one
 * that has nothing loaded and stands before a script. They are started when the service is up, one
 * after the other, and again whenever one ends or the template's root becomes another. Nothing that
 * a client asks for waits for them: while there is none, interpreters are started in the boxes.
 *
 * A zygote that is replaced is told nothing more, sees its contexts to their ends and goes.
 */
#include "warden/zygote/zygote.h"

#include "base/clock.h"
#include "sys/proc.h"
#include "sys/user.h"
#include "warden/layers/layers.h"
#include "wire/zygote.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>

#define LOAD_MAX_US (UINT64_C(120) * 1000000)
#define BACKOFF_FIRST_US 100000
#define BACKOFF_LAST_US (UINT64_C(60) * 1000000)
#define STEADY_US (UINT64_C(30) * 1000000) /* one that lived so long is replaced at once */
#define LINES_MAX 50                       /* of what one prints */
#define CGROUP_PLACE "zygote"

/* Above the ids that systemd gives to containers, of which ours are some, and below those with a
 * sign. */
#define OWNER_FIRST 1879048192u
#define OWNER_COUNT 65536u

bool zygote_is_on(const struct warden *w)
{
	return w->host.owner != 0;
}

static struct zygote_place *zygote_place_of(struct warden *w, enum warden_zygote kind)
{
	return &w->zygote[kind - WARDEN_ZYGOTE_PYTHON];
}

static const char *zygote_name(enum warden_zygote kind)
{
	return kind == WARDEN_ZYGOTE_SCIENCE ? "the Python with packages" :
	       kind == ZYGOTE_SCRIPT         ? "the Python for scripts" :
					       "the Python";
}

/* Two services on one machine should not be one owner, so where to begin depends on the state. */
static uid_t unused_owner(const struct warden *w)
{
	struct stat st = { 0 };
	uint64_t start;

	(void)fstat(w->lock_fd, &st);
	start = (uint64_t)st.st_ino * 31 + (uint64_t)st.st_dev;
	for (uint64_t i = 0; i < OWNER_COUNT; i++) {
		uid_t uid = (uid_t)(OWNER_FIRST + (start + i) % OWNER_COUNT);

		if (!user_by_id(uid))
			return uid;
	}
	return 0;
}

void zygote_open(struct warden *w)
{
	uid_t owner = unused_owner(w);
	int r;

	w->zygote_cgroup_fd = -EBADF;
	/* Without a range of ids for each box there is nobody who could own all boxes and nothing
	 * else. */
	if (!w->config->interpreter_zygote || w->host.ids.kind != IDS_RANGE || owner == 0)
		return;
	r = cgroup_host_admit(&w->host.cgroups, CGROUP_PLACE, &w->zygote_cgroup_fd);
	if (r < 0)
		say("interpreters are started anew for each context: these cgroups cannot be "
		    "entered from outside (%s)",
		    strerror(-r));
	else
		w->host.owner = owner;
}

static void zygote_start_in(struct warden *w, enum warden_zygote kind, uint64_t in_us)
{
	struct zygote_place *p = zygote_place_of(w, kind);

	if (w->phase == WARDEN_SERVING && !p->now && !p->cannot)
		timer_set(&w->loop, &p->timer, clock_boot_us() + in_us);
}

/* Nobody new is forked from it. It ends when it has seen out those who are there; one that loads at
 * once. */
static void zygote_replace(struct warden *w, struct zygote *z)
{
	struct zygote_place *p = zygote_place_of(w, z->kind);

	if (p->now == z) {
		p->now = NULL;
		timer_clear(&w->loop, &p->timer);
	}
	source_remove(&w->loop, &z->sock_source);
	fd_closep(&z->sock);
	if (!z->ready)
		(void)proc_kill(z->pidfd, SIGTERM);
}

static void zygote_free(struct warden *w, struct zygote *z)
{
	struct zygote **at = &w->zygotes;

	zygote_replace(w, z);
	source_remove(&w->loop, &z->pid_source);
	source_remove(&w->loop, &z->out_source);
	fd_closep(&z->pidfd);
	fd_closep(&z->out_fd);
	if (z->root)
		z->root->users--;
	while (*at && *at != z)
		at = &(*at)->next;
	if (*at)
		*at = z->next;
	free(z);
}

/* A line of its output each. It loads packages of the template: what it says is not for
 * terminals. */
static void zygote_output(struct loop *l, struct source *source)
{
	struct warden *w = warden_of(l);
	struct zygote *z = container_of(source, struct zygote, out_source);
	char text[512], *save = NULL;
	ssize_t n = read(z->out_fd, text, sizeof(text) - 1);

	if (n <= 0) {
		if (n == 0 || errno != EAGAIN)
			source_remove(&w->loop, source);
		return;
	}
	text[n] = '\0';
	for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
		if (z->lines++ < LINES_MAX)
			say("%s says: %s", zygote_name(z->kind), line);
}

static void zygote_is_ready(struct warden *w, struct zygote *z)
{
	z->ready = true;
	timer_clear(&w->loop, &zygote_place_of(w, z->kind)->timer);
	if (z->kind == ZYGOTE_SCRIPT)
		return; /* boxes get theirs when somebody has a script for them */
	if (z->kind == WARDEN_ZYGOTE_PYTHON)
		zygote_start_in(w, WARDEN_ZYGOTE_SCIENCE, 0);
	w->hooks.zygote_ready(w, z->kind);
}

static const char *step_text(uint32_t step)
{
	static const char *const texts[_ZYGOTE_STEP_MAX] = {
#define STEP(name, text) [ZYGOTE_STEP_##name] = text,
#include "wire/zygote_steps.def"
#undef STEP
	};

	return step < _ZYGOTE_STEP_MAX && texts[step] ? texts[step] : "do something unknown";
}

/* The one that contexts were forked from is gone; they are not. */
static void zygote_has_ended(struct warden *w, struct zygote *z)
{
	struct zygote_place *p = zygote_place_of(w, z->kind);

	zygote_replace(w, z);
	if (w->phase != WARDEN_SERVING)
		return;
	if (clock_boot_us() - z->started_us > STEADY_US)
		p->backoff_us = 0;
	p->backoff_us = MIN(MAX(p->backoff_us * 2, BACKOFF_FIRST_US), BACKOFF_LAST_US);
	say("%s that was kept loaded has ended; another is loaded in %llu ms", zygote_name(z->kind),
	    (unsigned long long)(p->backoff_us / 1000));
	zygote_start_in(w, z->kind, p->backoff_us);
	if (z->kind == WARDEN_ZYGOTE_PYTHON)
		zygote_start_in(w, WARDEN_ZYGOTE_SCIENCE, p->backoff_us);
}

static void zygote_on_said(struct loop *l, struct source *source)
{
	struct warden *w = warden_of(l);
	struct zygote *z = container_of(source, struct zygote, sock_source);
	struct zygote_said said;
	ssize_t n = recv(z->sock, &said, sizeof(said), MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n == (ssize_t)sizeof(said) && said.what == ZYGOTE_READY && !z->ready)
		zygote_is_ready(w, z);
	else if (n == (ssize_t)sizeof(said) && said.what == ZYGOTE_FAILED)
		say("a fork of %s could not %s: %s", zygote_name(z->kind), step_text(said.step),
		    strerror(said.err));
	else
		zygote_has_ended(w, z);
}

/* It has said so, or has come to an end of its own though it never got to the point: so would the
 * next. */
static bool zygote_will_not(const struct zygote *z, const siginfo_t *info)
{
	return info->si_code == CLD_EXITED &&
	       (info->si_status == ZYGOTE_EXIT_CANNOT || (info->si_status == 0 && !z->ready));
}

/* Its keeper has ended, and so have it and all its contexts. */
static void zygote_on_pid(struct loop *l, struct source *source)
{
	struct warden *w = warden_of(l);
	struct zygote *z = container_of(source, struct zygote, pid_source);
	struct zygote_place *p = zygote_place_of(w, z->kind);
	siginfo_t info = { 0 };

	(void)waitid(P_PIDFD, (id_t)z->pidfd, &info, WEXITED | WNOHANG);
	if (z->out_source.fd >= 0)
		zygote_output(&w->loop, &z->out_source); /* its last words */
	if (p->now == z)
		zygote_has_ended(w, z);
	if (zygote_will_not(z, &info) && !p->now) {
		say("%s cannot be kept loaded; it is started anew each time", zygote_name(z->kind));
		p->cannot = true;
		timer_clear(&w->loop, &p->timer);
	}
	zygote_free(w, z);
}

static int watch_zygote(struct warden *w, struct zygote *z)
{
	int r = source_add(&w->loop, &z->sock_source, z->sock, EPOLLIN, zygote_on_said);

	if (r == 0)
		r = source_add(&w->loop, &z->out_source, z->out_fd, EPOLLIN, zygote_output);
	return r < 0 ? r : source_add(&w->loop, &z->pid_source, z->pidfd, EPOLLIN, zygote_on_pid);
}

static struct zygote *zygote_make(struct warden *w, enum warden_zygote kind)
{
	struct zygote *z = calloc(1, sizeof(*z));
	struct fail fail = { 0 };
	int r = z ? root_find(w, &fail) : -ENOMEM;

	if (r < 0) {
		free(z);
		return NULL;
	}
	zygote_check_root(w);
	*z = (struct zygote){
		.kind = kind,
		.sock = -EBADF,
		.pidfd = -EBADF,
		.out_fd = -EBADF,
		.sock_source = SOURCE_INIT,
		.pid_source = SOURCE_INIT,
		.out_source = SOURCE_INIT,
		.root = w->root_now,
		.started_us = clock_boot_us(),
	};
	z->root->users++;
	r = zygote_spawn(w, z);
	if (r == 0)
		r = watch_zygote(w, z);
	if (r == 0) {
		z->next = w->zygotes;
		return w->zygotes = z;
	}
	say("cannot start %s: %s", zygote_name(kind), strerror(-r));
	if (z->pidfd >= 0) {
		(void)proc_kill(z->pidfd, SIGKILL);
		(void)waitid(P_PIDFD, (id_t)z->pidfd, &(siginfo_t){ 0 }, WEXITED);
	}
	zygote_free(w, z);
	return NULL;
}

/* Either it is time to start one, or the one that was started is not ready yet. */
static void zygote_on_timer(struct loop *l, struct timer *t)
{
	struct warden *w = warden_of(l);
	struct zygote_place *p = container_of(t, struct zygote_place, timer);
	enum warden_zygote kind = (enum warden_zygote)(p - w->zygote) + WARDEN_ZYGOTE_PYTHON;

	if (w->phase != WARDEN_SERVING)
		return;
	if (p->now) {
		say("%s was not loaded in time", zygote_name(kind));
		zygote_has_ended(w, p->now);
		return;
	}
	p->now = zygote_make(w, kind);
	p->tried = w->root_now;
	timer_set(&w->loop, t, clock_boot_us() + (p->now ? LOAD_MAX_US : BACKOFF_LAST_US));
}

void zygote_start_all(struct warden *w)
{
	for (size_t i = 0; i < ZYGOTES; i++)
		w->zygote[i].timer.due = zygote_on_timer;
	if (!zygote_is_on(w))
		return;
	zygote_start_in(w, ZYGOTE_SCRIPT, 0);
	zygote_start_in(w, WARDEN_ZYGOTE_PYTHON, 0);
}

/* What it has loaded may not be what is there now. */
void zygote_check_root(struct warden *w)
{
	for (size_t i = 0; zygote_is_on(w) && i < ZYGOTES; i++) {
		struct zygote_place *p = &w->zygote[i];

		if (!p->tried || p->tried == w->root_now)
			continue;
		if (p->now)
			zygote_replace(w, p->now);
		p->tried = NULL;
		p->cannot = false;
		p->backoff_us = 0;
		zygote_start_in(w, (enum warden_zygote)(WARDEN_ZYGOTE_PYTHON + i),
				BACKOFF_FIRST_US);
	}
}

int zygote_find(struct warden *w, const struct ward *d, enum warden_zygote kind,
		struct zygote **ret)
{
	const struct zygote_place *p = zygote_place_of(w, kind);

	/* What a snapshot has changed of the template is not what a zygote has loaded. */
	if (!zygote_is_on(w) || p->cannot || d->n_layers > 0)
		return -EOPNOTSUPP;
	if (!p->now || !p->now->ready || p->now->root != d->root)
		return -EAGAIN;
	*ret = p->now;
	return 0;
}

/* After the boxes: it is they who wait for the contexts' ends. */
void zygote_close(struct warden *w)
{
	for (size_t i = 0; i < ZYGOTES; i++)
		timer_clear(&w->loop, &w->zygote[i].timer);
	while (w->zygotes) {
		struct zygote *z = w->zygotes;

		(void)proc_kill(z->pidfd, SIGKILL);
		(void)waitid(P_PIDFD, (id_t)z->pidfd, &(siginfo_t){ 0 }, WEXITED);
		zygote_free(w, z);
	}
	if (w->zygote_cgroup_fd >= 0)
		cgroup_host_dismiss(&w->host.cgroups, CGROUP_PLACE);
	fd_closep(&w->zygote_cgroup_fd);
}
