/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A context for a box: pipes, one end of each to the zygote together with the box's namespaces and
 * cgroups, the other to the box's agent. Nobody is waited for. If the zygote cannot, its context
 * ends before it has run anything, and the agent sees the pipes close; if the agent cannot, the
 * context sees that.
 */
#include "warden/zygote/zygote.h"

#include "sys/sock.h"
#include "wire/zygote.h"

#include <fcntl.h>

/* [0] to read, [1] to write. */
struct pipes {
	int requests[2];
	int events[2];
	int out[2];
	int err[2];
	int status[2];
};

#define PIPES_INIT                                                                                 \
	{                                                                                          \
		{ -EBADF, -EBADF }, { -EBADF, -EBADF }, { -EBADF, -EBADF }, { -EBADF, -EBADF },    \
		{                                                                                  \
			-EBADF, -EBADF                                                             \
		}                                                                                  \
	}

static void context_pipes_close(struct pipes *p)
{
	for (int end = 0; end < 2; end++) {
		fd_closep(&p->requests[end]);
		fd_closep(&p->events[end]);
		fd_closep(&p->out[end]);
		fd_closep(&p->err[end]);
		fd_closep(&p->status[end]);
	}
}

/* They belong to the box's user, so that /dev/stdout and /dev/stderr can be opened by name. */
static int open_output(const struct box *b, int ret[2])
{
	if (pipe2(ret, O_CLOEXEC) < 0)
		return -errno;
	return fchown(ret[0], b->ids.uid_base + PAYLOAD_USER, b->ids.gid_base + PAYLOAD_USER) < 0 ?
		       -errno :
		       0;
}

static int context_pipes_open(const struct box *b, struct pipes *p)
{
	int r = open_output(b, p->out);

	if (r == 0)
		r = open_output(b, p->err);
	if (r == 0 && (pipe2(p->requests, O_CLOEXEC) < 0 || pipe2(p->events, O_CLOEXEC) < 0 ||
		       pipe2(p->status, O_CLOEXEC) < 0))
		r = -errno;
	return r;
}

/* The box's namespaces by the names that /proc has for them. The agent's pid is its own until we
 * have reaped it. */
struct namespaces {
	int fd[_ZYGOTE_NS_MAX];
	size_t n;
	uint32_t which;
};

static void namespaces_close(struct namespaces *ns)
{
	while (ns->n)
		fd_close(ns->fd[--ns->n]);
}

static bool has_namespace(const struct box *b, enum zygote_namespace ns)
{
	if (ns == ZYGOTE_NS_TIME)
		return b->report.features & SETUP_HAS_TIME_NS;
	if (ns == ZYGOTE_NS_CGROUP)
		return b->report.features & SETUP_HAS_CGROUP_NS;
	return true;
}

static int namespaces_open(const struct box *b, struct namespaces *ret)
{
	static const char *const names[_ZYGOTE_NS_MAX] = {
		[ZYGOTE_NS_USER] = "user", [ZYGOTE_NS_CGROUP] = "cgroup",
		[ZYGOTE_NS_IPC] = "ipc",   [ZYGOTE_NS_UTS] = "uts",
		[ZYGOTE_NS_NET] = "net",   [ZYGOTE_NS_PID] = "pid",
		[ZYGOTE_NS_MNT] = "mnt",   [ZYGOTE_NS_TIME] = "time_for_children",
	};
	_cleanup_(fd_closep) int dir_fd = -EBADF;
	char path[32];

	(void)snprintf(path, sizeof(path), "/proc/%d/ns", b->pid);
	dir_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir_fd < 0)
		return -errno;
	for (unsigned i = 0; i < _ZYGOTE_NS_MAX; i++) {
		int fd;

		if (!has_namespace(b, (enum zygote_namespace)i))
			continue;
		fd = openat(dir_fd, names[i], O_RDONLY | O_CLOEXEC);
		if (fd < 0)
			return -errno;
		ret->fd[ret->n++] = fd;
		ret->which |= 1u << i;
	}
	return 0;
}

/* Without cgroups the per-process limits are all there is; with them they are a second lock. */
static struct payload_limits context_limits(const struct ward *d)
{
	unsigned features = d->box.cgroup.host->features;

	return (struct payload_limits){
		.fsize_max = d->limits.disk_bytes,
		.nofile_max = PAYLOAD_NOFILE_MAX,
		.data_max = features & CGROUP_MEMORY ? 0 : d->limits.memory_bytes,
		.nproc_max = features & CGROUP_PIDS ? 0 : d->limits.pids,
	};
}

/* With the box's own, and those that are for the one that walks in. */
static int send_enter(struct zygote *z, const struct ward *d, const struct namespaces *ns,
		      const struct cgroup_entry *cgroups, const int *own, size_t n_own)
{
	struct zygote_enter request = {
		.namespaces = ns->which,
		.n_join = (uint32_t)cgroups->n_join,
		.flags = (d->flags & WARDEN_CREATE_ROOT ? ZYGOTE_ENTER_ROOT : 0) |
			 (z->kind == ZYGOTE_SCRIPT ? ZYGOTE_ENTER_COMMAND : 0) |
			 (cgroups->clone_fd >= 0 ? ZYGOTE_ENTER_BORN : 0),
		.oom_score_adj = PAYLOAD_OOM_SCORE,
		.limits = context_limits(d),
	};
	struct iovec part = { .iov_base = &request, .iov_len = sizeof(request) };
	int fds[SOCK_FDS_MAX];
	size_t n = n_own;

	_Static_assert(_ZYGOTE_FD_MAX + _ZYGOTE_NS_MAX + 1 + CGROUP_HIER_MAX <= SOCK_FDS_MAX,
		       "all of them go with one message");
	memcpy(fds, own, n_own * sizeof(int));
	for (size_t i = 0; i < ns->n; i++)
		fds[n++] = ns->fd[i];
	if (cgroups->clone_fd >= 0)
		fds[n++] = cgroups->clone_fd;
	for (size_t i = 0; i < cgroups->n_join; i++)
		fds[n++] = cgroups->join_fd[i];
	return sock_send_now(z->sock, &part, 1, fds, n);
}

static int send_adopt(const struct ward *d, const struct wire_context *context,
		      const struct pipes *p)
{
	const int fds[_WIRE_ADOPT_MAX] = {
		[WIRE_ADOPT_REQUESTS] = p->requests[1], [WIRE_ADOPT_EVENTS] = p->events[0],
		[WIRE_ADOPT_OUT] = p->out[0],           [WIRE_ADOPT_ERR] = p->err[0],
		[WIRE_ADOPT_STATUS] = p->status[0],
	};

	return wire_send_fds_now(d->box.control_fd, WIRE_ADOPT, context, sizeof(*context), fds,
				 ARRAY_SIZE(fds));
}

/* Orders a fork of the zygote into the box, with these descriptors. */
static int order(struct warden *w, struct ward *d, struct zygote *z, const int *own, size_t n_own)
{
	_cleanup_(namespaces_close) struct namespaces ns = { 0 };
	_cleanup_(cgroup_entry_close) struct cgroup_entry cgroups = CGROUP_ENTRY_INIT;
	int r = namespaces_open(&d->box, &ns);

	if (r < 0)
		return r;
	r = cgroup_entry_open(&d->box.cgroup, &d->leaf, w->host.owner, &cgroups);
	ward_settle(d);
	return r < 0 ? r : send_enter(z, d, &ns, &cgroups, own, n_own);
}

int zygote_context(struct warden *w, struct ward *d, const struct wire_context *context,
		   enum warden_zygote kind)
{
	_cleanup_(context_pipes_close) struct pipes p = PIPES_INIT;
	struct zygote *z;
	int r = zygote_find(w, d, kind, &z);

	if (r == 0)
		r = context_pipes_open(&d->box, &p);
	if (r == 0) {
		const int own[_ZYGOTE_FD_MAX] = {
			[ZYGOTE_FD_REQUESTS] = p.requests[0], [ZYGOTE_FD_EVENTS] = p.events[1],
			[ZYGOTE_FD_OUT] = p.out[1],           [ZYGOTE_FD_ERR] = p.err[1],
			[ZYGOTE_FD_STATUS] = p.status[1],
		};

		r = order(w, d, z, own, ARRAY_SIZE(own));
	}
	return r < 0 ? r : send_adopt(d, context, &p);
}

/* Before anybody has the box's control socket: so nothing foreign has run in it when the fork walks
 * in. */
int zygote_command(struct warden *w, struct ward *d)
{
	_cleanup_(fd_closep) int ours = -EBADF, theirs = -EBADF;
	struct zygote *z;
	int pair[2];
	int r = zygote_find(w, d, ZYGOTE_SCRIPT, &z);

	if (r < 0)
		return r;
	r = sock_pair(pair);
	if (r < 0)
		return r;
	ours = pair[0];
	theirs = pair[1];
	r = order(w, d, z, &theirs, ZYGOTE_COMMAND_FDS);
	return r < 0 ? r : wire_send_fds_now(d->box.control_fd, WIRE_RUNNER, NULL, 0, &ours, 1);
}

int zygote_prepare(struct warden *w, struct ward *d, enum warden_zygote kind)
{
	static const struct wire_context context = { .name = "python", .language = "python" };
	int r = zygote_is_on(w) ? zygote_context(w, d, &context, kind) : -EOPNOTSUPP;

	if (r == 0)
		d->prepared = kind;
	return r;
}
