/* SPDX-License-Identifier: Apache-2.0 */
#include "box/box.h"

#include "base/parse.h"
#include "box/breakable.h"
#include "box/setup/dev.h"
#include "box/setup/setup.h"
#include "box/net.h"
#include "sys/mnt.h"
#include "sys/proc.h"
#include "sys/sock.h"

#include <linux/securebits.h>
#include <sched.h>
#include <sys/fsuid.h>
#include <sys/prctl.h>
#include <sys/vfs.h>
#include <sys/wait.h>

/* The agent and what the kernel keeps for the box, beside the commands' own memory. */
#define AGENT_MEMORY (UINT64_C(24) << 20)
#define AGENT_PIDS 16

uint64_t box_memory_cap(uint64_t memory_bytes, uint64_t disk_bytes)
{
	/*
	 * Files of a box live in memory and the kernel charges them to the process that writes
	 * them, so the cap that it enforces is for both together. What runs the command watches
	 * that memory alone stays within its limit; see docs/ARCHITECTURE.md, "Memory and disk".
	 */
	return memory_bytes + disk_bytes;
}

/* The controllers by which the agent and the command are counted together. */
static unsigned shares(const struct box_host *h, bool one_command)
{
	return one_command ? cgroup_can_share(&h->cgroups) : 0;
}

struct cgroup_limits box_enforced(const struct cgroup_host *h, const struct cgroup_limits *wanted)
{
	struct cgroup_limits l = *wanted;

	if (!(h->features & CGROUP_MEMORY) || !control_on("memory"))
		l.memory_bytes = 0;
	if (!(h->features & CGROUP_PIDS) || !control_on("pids"))
		l.pids = 0;
	if (!(h->features & CGROUP_CPU) || !control_on("cpu"))
		l.cpu_milli = 0;
	return l;
}

/* All but the network namespace, which is made beside: see net.h. */
static uint64_t namespaces(void)
{
	uint64_t flags = CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID;

	if (control_on("ipc"))
		flags |= CLONE_NEWIPC;
	if (control_on("uts"))
		flags |= CLONE_NEWUTS;
	return flags;
}

/* A read-only view of a layer in which the owners on disk are the box's own ids. */
static int idmapped_layer(const char *path, int userns_fd)
{
	struct mount_attr attr = {
		.attr_set = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV |
			    MOUNT_ATTR_IDMAP,
		.userns_fd = (uint64_t)userns_fd,
	};
	_cleanup_(fd_closep) int fd = mnt_open_tree(AT_FDCWD, path, OPEN_TREE_CLONE);
	int r;

	if (fd < 0)
		return fd;
	r = mnt_setattr(fd, 0, &attr);
	return r < 0 ? r : take_fd(&fd);
}

/* Makes the idmapped layers. Only root can; a kernel or file system that cannot says so. */
static int open_layers(const struct setup *s, int userns_fd, int ret_fds[SETUP_LAYERS_MAX])
{
	for (size_t i = 0; i < s->n_layers; i++) {
		ret_fds[i] = idmapped_layer(s->layer_path[i], userns_fd);
		if (ret_fds[i] < 0) {
			int r = ret_fds[i];

			ret_fds[i] = -EBADF;
			while (i > 0)
				fd_closep(&ret_fds[--i]);
			return r;
		}
	}
	return 0;
}

static int send_go(struct box *b, const struct setup *s, int userns_fd, struct fail *fail)
{
	int layers[SETUP_LAYERS_MAX] = { [0 ... SETUP_LAYERS_MAX - 1] = -EBADF };
	struct setup_go go = { 0 };
	struct iovec part = { .iov_base = &go, .iov_len = sizeof(go) };
	int r;

	if (b->ids.kind == IDS_RANGE && control_on("idmap")) {
		r = open_layers(s, userns_fd, layers);
		/* A kernel or file system that cannot: the host's files belong to nobody then, and
		 * the report says so. */
		if (r < 0 && r != -EINVAL && r != -EOPNOTSUPP && r != -ENOSYS)
			return fail_set(fail, -r, "layers",
					"cannot map the owners of %s's files into the box: %s",
					s->layer_path[0], strerror(-r));
		go.n_layers = r < 0 ? 0 : (uint32_t)s->n_layers;
	}
	/* What another box wrote belongs to that box's users: nobody here could even read it. */
	if (go.n_layers == 0 && s->n_layers > s->n_trees)
		return fail_set(fail, EOPNOTSUPP, "layers",
				"snapshots need root and a kernel with idmapped mounts");
	r = sock_send(b->setup_fd, &part, 1, layers, go.n_layers);
	for (size_t i = 0; i < ARRAY_SIZE(layers); i++)
		fd_close(layers[i]);
	return r < 0 ? fail_set(fail, -r, "start", "the box died at once: %s", strerror(-r)) : 0;
}

/* The agent is needed last, so it is made last. */
static int send_rest(struct box_host *h, struct box *b, const struct setup *s, struct fail *fail)
{
	_cleanup_(fd_closep) int dev_fd = -EBADF;
	struct setup_rest rest = { .n_nodes = s->given_nodes ? 1 : 0,
				   .n_join = (uint32_t)b->cgroup.n_join };
	struct iovec part = { .iov_base = &rest, .iov_len = sizeof(rest) };
	int fds[SOCK_FDS_MAX], r;

	if (s->given_nodes) {
		dev_fd = devices_make(b->ids.uid_base, b->ids.gid_base);
		if (dev_fd < 0)
			return fail_set(fail, -dev_fd, "devices",
					"cannot make the box's devices: %s", strerror(-dev_fd));
		fds[1] = dev_fd;
	}
	r = box_host_agent(h, fail);
	if (r < 0)
		return r;
	fds[0] = h->agent_fd;
	memcpy(fds + 1 + rest.n_nodes, b->cgroup.join_fd, rest.n_join * sizeof(int));
	r = sock_send(b->setup_fd, &part, 1, fds, 1 + rest.n_nodes + rest.n_join);
	/* If the child is gone, its own report is the better reason. */
	return r < 0 && r != -EPIPE ?
		       fail_set(fail, -r, "start", "the box died: %s", strerror(-r)) :
		       0;
}

/* The parent's half of the set-up. First what the child waits for, then what it needs later on. */
static int guide_child(struct box_host *h, struct box *b, const struct setup *s, int net_sock,
		       struct fail *fail)
{
	_cleanup_(fd_closep) int userns_fd = -EBADF;
	char path[40];
	int r = ids_map(&b->ids, b->pid, fail);

	if (r < 0)
		return r;
	(void)snprintf(path, sizeof(path), "/proc/%d/ns/user", b->pid);
	userns_fd = open(path, O_RDONLY | O_CLOEXEC);
	if (userns_fd < 0)
		return fail_set(fail, errno, "start", "the box died at once: %s", strerror(errno));
	r = send_go(b, s, userns_fd, fail);
	if (r < 0)
		return r;
	r = net_sock < 0 ? 0 : net_make(userns_fd, net_sock);
	if (r < 0)
		return fail_set(fail, -r, "net", "cannot start making a network namespace: %s",
				strerror(-r));
	r = cgroup_box_finish(&b->cgroup);
	if (r < 0)
		return fail_set(fail, -r, "cgroups", "cannot make the box's cgroup: %s",
				strerror(-r));
	return send_rest(h, b, s, fail);
}

int box_await(struct box *b, struct fail *fail)
{
	size_t n_fds = 1;
	ssize_t n = sock_recv(b->setup_fd, &b->report, sizeof(b->report), &b->scratch_fd, &n_fds);

	if (n != (ssize_t)sizeof(b->report))
		return fail_set(fail, EIO, "set-up", "the box died while it was set up");
	if (b->report.step != SETUP_DONE || n_fds != 1)
		return fail_set(fail, b->report.err ? b->report.err : EIO,
				setup_step_text(b->report.step), "cannot %s: %s",
				setup_step_text(b->report.step), strerror(b->report.err));
	fd_closep(&b->setup_fd);
	return 0;
}

/* Three pairs of sockets: [0] is ours, [1] the child's. */
struct pairs {
	int control[2];
	int setup[2];
	int net[2];
};

static void pairs_close(struct pairs *p, int end)
{
	fd_closep(&p->control[end]);
	fd_closep(&p->setup[end]);
	fd_closep(&p->net[end]);
}

static int pairs_open(struct pairs *p, bool with_net)
{
	int r = sock_pair(p->control);

	if (r == 0)
		r = sock_pair(p->setup);
	if (r == 0 && with_net)
		r = sock_pair(p->net);
	if (r < 0) {
		pairs_close(p, 0);
		pairs_close(p, 1);
	}
	return r;
}

/*
 * A process with the effective id that made a user namespace has all power over it and only over
 * it. So the clone is made with that of the owner of boxes; the id for files stays ours, and all
 * capabilities do. Nothing could go on from a way back that failed.
 */
static pid_t clone_for(uid_t owner, int cgroup_fd, int *ret_pidfd)
{
	int bits = prctl(PR_GET_SECUREBITS, 0, 0, 0, 0);
	pid_t pid = -EPERM;

	if (!owner)
		return proc_clone(namespaces(), cgroup_fd, ret_pidfd);
	if (bits < 0 ||
	    prctl(PR_SET_SECUREBITS, (unsigned long)bits | SECBIT_NO_SETUID_FIXUP, 0, 0, 0) < 0)
		return -errno;
	if (setresuid((uid_t)-1, owner, (uid_t)-1) == 0) {
		(void)setfsuid(0);
		pid = proc_clone(namespaces(), cgroup_fd, ret_pidfd);
		if (pid == 0)
			return 0;
		if (setresuid((uid_t)-1, 0, (uid_t)-1) < 0)
			abort();
	}
	if (prctl(PR_SET_SECUREBITS, (unsigned long)bits, 0, 0, 0) < 0)
		abort();
	/* Which a change of ids may have undone. */
	(void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
	return pid;
}

static int start_child(struct box_host *h, struct box *b, const struct setup *s, struct fail *fail)
{
	struct pairs p = { { -EBADF, -EBADF }, { -EBADF, -EBADF }, { -EBADF, -EBADF } };
	struct setup child = *s;
	int r = pairs_open(&p, control_on("net") && !s->own_net);

	if (r < 0)
		return fail_set(fail, -r, "sockets", "cannot make sockets: %s", strerror(-r));
	child.control_fd = p.control[1];
	child.net_fd = p.net[1];
	b->pid = clone_for(h->owner, b->cgroup.clone_fd, &b->pidfd);
	if (b->pid == 0) {
		/* Only the parent may hold its ends, or we could not see it go. */
		pairs_close(&p, 0);
		setup_child(&child, p.setup[1]);
	}
	pairs_close(&p, 1);
	b->control_fd = take_fd(&p.control[0]);
	b->setup_fd = take_fd(&p.setup[0]);
	if (b->pid < 0)
		r = fail_set(
			fail, -b->pid, "clone3", "cannot make namespaces: %s%s", strerror(-b->pid),
			b->pid == -EPERM || b->pid == -ENOSPC ? " (see 'glovebox doctor')" : "");
	else
		r = guide_child(h, b, s, p.net[0], fail);
	pairs_close(&p, 0);
	return r;
}

static int try_create(struct box_host *h, struct setup *s, const struct cgroup_limits *cap,
		      struct box *b, struct fail *fail)
{
	char name[32];
	int r = ids_take(&h->ids, &b->ids, fail);

	if (r < 0)
		return r;
	b->disk_bytes = s->disk_bytes;
	s->single_id = b->ids.kind == IDS_SINGLE;
	s->given_nodes = b->ids.kind == IDS_RANGE && control_on("own-devices") && control_on("dev");
	(void)snprintf(name, sizeof(name), "box-%u", b->ids.number);
	r = cgroup_box_create(&h->cgroups, name, cap, &b->cgroup);
	if (r < 0)
		return fail_set(fail, -r, "cgroups", "cannot make the box's cgroup: %s",
				strerror(-r));
	b->cgroup.shared = shares(h, s->one_command);
	return start_child(h, b, s, fail);
}

int box_create(struct box_host *h, const struct box_template *t, const struct box_limits *limits,
	       struct box *ret, struct fail *fail)
{
	const unsigned shared = shares(h, t->one_command);
	const struct cgroup_limits wanted = {
		.memory_bytes = box_memory_cap(limits->memory_bytes, limits->disk_bytes) +
				(shared & CGROUP_MEMORY ? 0 : AGENT_MEMORY),
		.pids = limits->pids + (shared & CGROUP_PIDS ? 1 : AGENT_PIDS),
	};
	const struct cgroup_limits cap = box_enforced(&h->cgroups, &wanted);
	struct box b = BOX_INIT;
	struct setup s = {
		.layer_path = { t->root, t->usr },
		.n_layers = t->usr ? 2 : 1,
		.n_trees = t->usr ? 2 : 1,
		.disk_bytes = limits->disk_bytes,
		.files_max = limits->files,
		.root = t->root_user,
		.fixed = t->fixed && !t->root_user && t->n_layers == 0,
		.one_command = t->one_command,
		.entered = h->owner != 0,
		.own_net = h->busy && control_on("net"),
	};
	int r;

	for (size_t i = 0; i < t->n_layers && i < BOX_LAYERS_MAX; i++) {
		s.layer_path[s.n_layers++] = t->layer[i].root;
		if (t->usr)
			s.layer_path[s.n_layers++] = t->layer[i].usr;
	}
	/* A box that died since we cleaned up may have left its cgroup under the number we got:
	 * take another one; the next start cleans that up. */
	for (int attempt = 0; attempt < 3; attempt++) {
		r = try_create(h, &s, &cap, &b, fail);
		if (r == 0) {
			*ret = b;
			return 0;
		}
		box_destroy(&b);
		b = (struct box)BOX_INIT;
		if (r != -EEXIST)
			break;
	}
	return r;
}

int box_disk_usage(const struct box *b, struct box_disk *ret)
{
	struct statfs fs;

	if (fstatfs(b->scratch_fd, &fs) < 0)
		return -errno;
	*ret = (struct box_disk){
		.used_bytes = (uint64_t)(fs.f_blocks - fs.f_bfree) * (uint64_t)fs.f_bsize,
		.free_bytes = (uint64_t)fs.f_bavail * (uint64_t)fs.f_bsize,
		.free_files = fs.f_ffree,
	};
	return 0;
}

static int keyed_number(const char *text, const char *key, uint64_t *ret)
{
	const char *at = strstr(text, key);
	char number[24];

	if (!at)
		return -ENODATA;
	at += strlen(key);
	(void)snprintf(number, sizeof(number), "%.*s", (int)MIN(strcspn(at, "\n"), (size_t)23), at);
	return parse_u64(number, ret);
}

int box_io_bytes(const struct box *b, uint64_t *ret_read, uint64_t *ret_written)
{
	_cleanup_(fd_closep) int fd = -EBADF;
	char path[32], text[512];
	uint64_t rchar, wchar;
	ssize_t n;

	/* pid 1 inherits the counters of everything it has reaped. */
	(void)snprintf(path, sizeof(path), "/proc/%d/io", b->pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	n = read(fd, text, sizeof(text) - 1);
	if (n <= 0)
		return n < 0 ? -errno : -EIO;
	text[n] = '\0';
	if (keyed_number(text, "rchar: ", &rchar) < 0 || keyed_number(text, "wchar: ", &wchar) < 0)
		return -EIO;
	*ret_read = rchar;
	*ret_written = wchar;
	return 0;
}
