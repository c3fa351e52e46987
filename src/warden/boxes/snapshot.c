/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A snapshot: what a box has written becomes a layer for others. A helper enters its user namespace
 * and copies its writable layer into STATE/layers/NAME.tmp through a mount in which that
 * namespace's ids are those on disk: so root of the box owns files of root, and nobody's power is
 * needed for it but the box's own.
 *
 *	the box freezes ─▶ the helper copies ─▶ it says so: the box goes on ─▶ it waits for the disk
 *	and ends ─▶ the layer gets its name ─▶ another helper waits for that to be on the disk
 *
 * The box stands still only while it is copied. Nobody waits for a helper: one that was killed may
 * be deep in the kernel, so its copy is cleaned up when it is really gone.
 */
#include "warden/boxes/boxes.h"

#include "base/clock.h"
#include "sys/mnt.h"
#include "sys/proc.h"
#include "warden/layers/layers.h"
#include "warden/layers/tree.h"
#include "warden/link/link.h"

#include <grp.h>
#include <sched.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#define COPIES_MAX 4
#define COPY_MAX_US (UINT64_C(600) * 1000000)
/* That much stays free on the state's disk. */
#define RESERVE_BYTES (UINT64_C(64) << 20)
#define RESERVE_FILES 1024
#define ENTRY_BYTES 4096 /* a directory takes that on most disks; in a box it takes nothing */

struct copy {
	char layer[WARDEN_ID_SIZE];
	char id[WARDEN_ID_SIZE]; /* of the box */
	struct ward *ward;       /* that stands still for it, or NULL */
	struct pending pending;  /* nobody, once it was refused */
	struct copy_need need;   /* counted in w->copying */
	bool named;              /* it is a layer already */
	struct source pid_source;
	struct source said_source;
	int pidfd;
	int said_fd;
};

/* Our own mount points at the top of a box, and what is gone with its processes. */
static const char *const not_kept[] = { "dev", "proc", "run", "sys", NULL };
static const char *const not_kept_with_usr[] = { "dev", "proc", "run", "sys", "usr", NULL };

/* A mount of NAME.tmp/TREE in which the box's ids are those on disk. */
static int open_target(int tmp_fd, const char *tree, int userns_fd)
{
	struct mount_attr attr = {
		.attr_set = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC |
			    MOUNT_ATTR_IDMAP,
		.userns_fd = (uint64_t)userns_fd,
	};
	_cleanup_(fd_closep) int fd = -EBADF;
	int r;

	if (mkdirat(tmp_fd, tree, 0755) < 0)
		return -errno;
	fd = mnt_open_tree(tmp_fd, tree, OPEN_TREE_CLONE);
	if (fd < 0)
		return fd;
	r = mnt_setattr(fd, 0, &attr);
	if (r < 0)
		return r == -EINVAL || r == -ENOSYS ? -EOPNOTSUPP : r;
	return take_fd(&fd);
}

/* What the helper has, by place. */
enum { FROM, SAY, TO_ROOT, TO_USR, _FDS };

static int copy_trees(const int *fds, const struct warden_limits *limits, pid_t parent)
{
	struct tree_copy c = {
		.parent = parent,
		.bytes_left = limits->disk_bytes,
		.files_left = limits->files,
		.leave_bytes = RESERVE_BYTES,
		.leave_files = RESERVE_FILES,
		.skip = fds[TO_USR] >= 0 ? not_kept_with_usr : not_kept,
	};
	_cleanup_(fd_closep) int up = tree_open(fds[FROM], "up", O_RDONLY | O_DIRECTORY, 0);
	_cleanup_(fd_closep) int usr = -EBADF;
	int r = up < 0 ? up : tree_copy(&c, up, fds[TO_ROOT]);

	if (r < 0 || fds[TO_USR] < 0)
		return r;
	usr = tree_open(fds[FROM], "usr-up", O_RDONLY | O_DIRECTORY, 0);
	c.skip = NULL;
	return usr < 0 ? usr : tree_copy(&c, usr, fds[TO_USR]);
}

/* A layer that is there is there after a power cut too. */
static int sync_layer(const int *fds)
{
	_cleanup_(fd_closep) int fd = tree_open(fds[TO_ROOT], ".", O_RDONLY | O_DIRECTORY, 0);

	return fd < 0 ? fd : syncfs(fd) < 0 ? -errno : 0;
}

/* From here on it is the box's own root, without any power outside. */
static int copy_enter_box(int userns_fd)
{
	if (setns(userns_fd, CLONE_NEWUSER) < 0 || setgroups(0, NULL) < 0 ||
	    setresgid(0, 0, 0) < 0 || setresuid(0, 0, 0) < 0)
		return -errno;
	return 0;
}

static _noreturn_ void copy_help(const struct warden *w, const struct warden_limits *limits,
				 int userns_fd, const int *fds, size_t n_fds)
{
	int kept[_FDS] = { -EBADF, -EBADF, -EBADF, -EBADF };
	int r = copy_enter_box(userns_fd), first;

	(void)umask(0);
	first = r < 0 ? r : helper_begin(fds, n_fds, w->pid);
	for (size_t i = 0; first >= 0 && i < n_fds; i++)
		kept[i] = first + (int)i;
	r = first < 0 ? first : copy_trees(kept, limits, w->pid);
	if (r == 0 && write(kept[SAY], "", 1) != 1)
		r = -EPIPE;
	if (r == 0)
		r = sync_layer(kept);
	_exit(r < 0 ? MIN(-r, 255) : 0);
}

static int copy_spawn(struct warden *w, struct ward *d, int tmp_fd)
{
	bool with_usr = w->template.usr != NULL;
	_cleanup_(fd_closep) int userns_fd = -EBADF;
	_cleanup_(fd_closep) int root_fd = -EBADF;
	_cleanup_(fd_closep) int usr_fd = -EBADF;
	_cleanup_(fd_closep) int say_fd = -EBADF;
	char path[40];
	int pair[2];
	pid_t pid;

	(void)snprintf(path, sizeof(path), "/proc/%d/ns/user", d->box.pid);
	userns_fd = open(path, O_RDONLY | O_CLOEXEC);
	if (userns_fd < 0)
		return -errno;
	root_fd = open_target(tmp_fd, "root", userns_fd);
	if (root_fd < 0)
		return root_fd;
	usr_fd = with_usr ? open_target(tmp_fd, "usr", userns_fd) : -EBADF;
	if (with_usr && usr_fd < 0)
		return usr_fd;
	if (pipe2(pair, O_CLOEXEC) < 0)
		return -errno;
	d->copy->said_fd = pair[0];
	say_fd = pair[1];
	pid = proc_clone(0, -EBADF, &d->copy->pidfd);
	if (pid == 0) {
		const int fds[_FDS] = { d->box.scratch_fd, say_fd, root_fd, usr_fd };

		copy_help(w, &d->limits, userns_fd, fds, with_usr ? _FDS : TO_USR);
	}
	return pid < 0 ? (int)pid : 0;
}

/* The box goes on as it was before. */
static void copy_over(struct warden *w, struct ward *d)
{
	if (d->stay_paused) {
		d->stay_paused = false;
		timer_clear(&w->loop, &d->timer);
		d->state = WARD_PAUSED;
	} else if (ward_thaw(w, d) < 0) {
		ward_end(w, d, WARDEN_ENDED_CRASHED, false);
	}
}

/* The box has nothing to do with it any more. */
static struct ward *let_go(struct copy *c)
{
	struct ward *d = c->ward;

	if (d)
		d->copy = NULL;
	c->ward = NULL;
	return d;
}

static void copy_refuse(struct warden *w, struct copy *c, int err)
{
	talk_refuse(w, &c->pending, err, "snapshot",
		    err == ENOSPC     ? "there is no room for it" :
		    err == EFBIG      ? "it is larger than the sandbox may be" :
		    err == ELOOP      ? "its directories are too deep" :
		    err == EOPNOTSUPP ? "the state's file system has no idmapped mounts" :
		    err == ETIMEDOUT  ? "it took too long" :
		    err == EAGAIN     ? "too many snapshots are being made" :
					"it could not be made");
}

/* When no process works on it: what is there of the layer goes, unless it is whole. */
static void copy_free(struct warden *w, struct copy *c)
{
	struct layer_name tmp = layer_tmp_name(c->layer);

	(void)let_go(c);
	source_remove(&w->loop, &c->pid_source);
	source_remove(&w->loop, &c->said_source);
	fd_closep(&c->pidfd);
	fd_closep(&c->said_fd);
	(void)!layer_throw_away(w, tmp.text); /* -ENOENT when it was renamed or never made */
	w->copying.bytes -= c->need.bytes;
	w->copying.files -= c->need.files;
	free(c);
	w->n_copies--;
}

/* It has said that all is copied, or it has ended before that. */
static void copy_on_said(struct loop *l, struct source *source)
{
	struct warden *w = warden_of(l);
	struct copy *c = container_of(source, struct copy, said_source);
	struct ward *d;

	source_remove(&w->loop, source);
	d = let_go(c);
	if (d)
		copy_over(w, d);
}

/* What a process that worked for it ended with: 0 or an errno. */
static int copy_end_of(struct warden *w, struct copy *c)
{
	siginfo_t info = { 0 };
	int err = EIO;

	source_remove(&w->loop, &c->pid_source);
	if (waitid(P_PIDFD, (id_t)c->pidfd, &info, WEXITED) == 0 && info.si_code == CLD_EXITED)
		err = info.si_status;
	fd_closep(&c->pidfd);
	/* A layer that nobody waits for any more would be known to nobody. */
	return c->pending.server == w->room.number ? err : ECANCELED;
}

static void copy_finish(struct warden *w, struct copy *c, int err)
{
	if (err) {
		if (c->named)
			(void)!layer_drop(w, c->layer);
		copy_refuse(w, c, err);
	} else {
		talk_reply(w, &c->pending, ward_find(w, c->id), -EBADF);
	}
	copy_free(w, c);
}

static void copy_on_kept(struct loop *l, struct source *source)
{
	struct warden *w = warden_of(l);
	struct copy *c = container_of(source, struct copy, pid_source);

	copy_finish(w, c, copy_end_of(w, c));
}

/* One that nobody watches: it has only just begun. */
static void end_helper(struct copy *c)
{
	(void)proc_kill(c->pidfd, SIGKILL);
	(void)waitid(P_PIDFD, (id_t)c->pidfd, &(siginfo_t){ 0 }, WEXITED);
}

static void copy_on_helper(struct loop *l, struct source *source)
{
	struct warden *w = warden_of(l);
	struct copy *c = container_of(source, struct copy, pid_source);
	struct ward *d = let_go(c);
	int err = copy_end_of(w, c);

	if (err == 0)
		err = -layer_keep(w, c->layer, &c->pidfd);
	c->named = err == 0;
	if (err == 0) {
		err = -source_add(&w->loop, &c->pid_source, c->pidfd, EPOLLIN, copy_on_kept);
		if (err)
			end_helper(c);
	}
	if (d)
		copy_over(w, d);
	if (err)
		copy_finish(w, c, err);
}

static bool copy_fits(const struct statvfs *fs, uint64_t bytes, uint64_t files)
{
	return (uint64_t)fs->f_bavail * fs->f_frsize >= bytes + RESERVE_BYTES &&
	       /* Some file systems make as many as there is space for, and say 0. */
	       (fs->f_files == 0 || fs->f_favail >= files + RESERVE_FILES);
}

/*
 * Is there space for a copy? The server's database may lie on the same disk, so some of it stays
 * free whatever is copied. This is what can be known before; the helper looks at the disk itself as
 * it goes (layers/tree.c). -ENOSPC: there is none; -EAGAIN: not while others are being made.
 */
static int copy_need(const struct warden *w, const struct ward *d, struct copy_need *ret)
{
	struct statvfs box, disk;
	uint64_t bytes, files;

	if (fstatvfs(d->box.scratch_fd, &box) < 0 || fstatvfs(w->layers_fd, &disk) < 0)
		return -errno;
	files = box.f_files - box.f_ffree;
	bytes = (uint64_t)(box.f_blocks - box.f_bfree) * box.f_frsize + files * ENTRY_BYTES;
	if (!copy_fits(&disk, bytes, files))
		return -ENOSPC;
	/* Some of what they need they may have written already: the next request will see. */
	if (!copy_fits(&disk, bytes + w->copying.bytes, files + w->copying.files))
		return -EAGAIN;
	*ret = (struct copy_need){ .bytes = bytes, .files = files };
	return 0;
}

/* It stands still, so what it takes now is what it will take. */
static int claim_space(struct warden *w, const struct ward *d)
{
	int r = copy_need(w, d, &d->copy->need);

	if (r < 0)
		return r;
	w->copying.bytes += d->copy->need.bytes;
	w->copying.files += d->copy->need.files;
	return 0;
}

static int start_helper(struct warden *w, struct ward *d)
{
	struct layer_name tmp = layer_tmp_name(d->copy->layer);
	_cleanup_(fd_closep) int tmp_fd = -EBADF;
	int r = claim_space(w, d);

	if (r < 0)
		return r;
	if (mkdirat(w->layers_fd, tmp.text, 0700) < 0)
		return -errno;
	tmp_fd = openat(w->layers_fd, tmp.text, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	r = tmp_fd < 0 ? -errno : copy_spawn(w, d, tmp_fd);
	if (r == 0)
		r = source_add(&w->loop, &d->copy->said_source, d->copy->said_fd, EPOLLIN,
			       copy_on_said);
	return r < 0 ? r :
		       source_add(&w->loop, &d->copy->pid_source, d->copy->pidfd, EPOLLIN,
				  copy_on_helper);
}

void copy_frozen(struct warden *w, struct ward *d)
{
	int r = start_helper(w, d);

	if (r == 0) {
		timer_set(&w->loop, &d->timer, clock_boot_us() + COPY_MAX_US);
		return;
	}
	copy_cancel(w, d, -r);
	copy_over(w, d);
}

static int check_begin(const struct warden *w, const struct ward *d, const char *layer)
{
	struct layer_name tmp = layer_tmp_name(layer);
	struct copy_need need;

	if (d->box.ids.kind != IDS_RANGE)
		return -EOPNOTSUPP;
	if (d->n_layers == WARDEN_LAYERS_MAX)
		return -EMLINK;
	if (layer_exists(w, layer) || layer_exists(w, tmp.text))
		return -EEXIST;
	if (w->n_copies == COPIES_MAX)
		return -EAGAIN;
	return copy_need(w, d, &need);
}

int copy_begin(struct warden *w, struct ward *d, const char *layer, const struct pending *p)
{
	struct copy *c;
	int r = check_begin(w, d, layer);

	if (r < 0)
		return r;
	c = calloc(1, sizeof(*c));
	if (!c)
		return -ENOMEM;
	*c = (struct copy){
		.pid_source = SOURCE_INIT,
		.said_source = SOURCE_INIT,
		.pidfd = -EBADF,
		.said_fd = -EBADF,
	};
	memcpy(c->layer, layer, sizeof(c->layer));
	memcpy(c->id, d->id, sizeof(c->id));
	w->n_copies++;
	d->stay_paused = d->state == WARD_PAUSED;
	if (!d->stay_paused)
		r = ward_freeze(w, d);
	if (r < 0) {
		copy_free(w, c);
		return r;
	}
	c->pending = *p;
	c->ward = d;
	d->copy = c;
	if (d->stay_paused) {
		d->state = WARD_COPYING;
		copy_frozen(w, d);
	}
	return 0;
}

void copy_cancel(struct warden *w, struct ward *d, int err)
{
	struct copy *c = d->copy;

	(void)let_go(c);
	copy_refuse(w, c, err);
	if (c->pid_source.fd >= 0) {
		(void)proc_kill(c->pidfd, SIGKILL);
		return; /* the rest when it is gone */
	}
	if (c->pidfd >= 0)
		end_helper(c);
	copy_free(w, c);
}

void copy_timed_out(struct warden *w, struct ward *d)
{
	copy_cancel(w, d, ETIMEDOUT);
	copy_over(w, d);
}
