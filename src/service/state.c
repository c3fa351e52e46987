/* SPDX-License-Identifier: Apache-2.0 */
#include "service/state.h"

#include "sys/user.h"

#include <fcntl.h>
#include <grp.h>
#include <sys/stat.h>

/* Ids that neither systemd nor Debian gives to anybody: some for servers, the others for egress. */
#define UNUSED_FIRST 60578u
#define UNUSED_COUNT 404u
#define UNUSED_EGRESS_FIRST (UNUSED_FIRST + UNUSED_COUNT)
#define UNUSED_EGRESS_COUNT 202u

static const char *const store_files[] = { "glovebox.db", "glovebox.db-wal", "glovebox.db-shm",
					   "secrets.key" };

void state_done(struct state *s)
{
	fd_closep(&s->dir_fd);
	fd_closep(&s->db_fd);
}

static uid_t unused_among(uid_t first, uint64_t count, uint64_t start)
{
	for (uint64_t i = 0; i < count; i++) {
		uid_t uid = first + (uid_t)((start + i) % count);

		if (!user_by_id(uid))
			return uid;
	}
	return 0;
}

/* Two services on one machine should not be one user, so where to begin depends on the directory.
 */
static uid_t unused_id(const struct stat *db)
{
	if (db->st_uid >= UNUSED_FIRST && db->st_uid < UNUSED_FIRST + UNUSED_COUNT &&
	    !user_by_id(db->st_uid))
		return db->st_uid; /* the same as last time */
	return unused_among(UNUSED_FIRST, UNUSED_COUNT,
			    (uint64_t)db->st_ino * 31 + (uint64_t)db->st_dev);
}

/* It owns nothing that has to be found again, so any will do: two that run at once seldom have the
 * same. */
uid_t state_unused_egress_id(void)
{
	return unused_among(UNUSED_EGRESS_FIRST, UNUSED_EGRESS_COUNT, (uint64_t)getpid());
}

/* Who the server room is to be. */
static int server_ids(const struct config *c, const struct stat *db, uid_t *ret_uid, gid_t *ret_gid,
		      struct fail *fail)
{
	const struct passwd *pw;

	if (geteuid() != 0) {
		*ret_uid = geteuid();
		*ret_gid = getegid();
		return 0;
	}
	pw = user_by_name(c->server_user);
	*ret_uid = pw ? pw->pw_uid : unused_id(db);
	*ret_gid = pw ? pw->pw_gid : (gid_t)*ret_uid;
	if (pw && (pw->pw_uid == 0 || pw->pw_gid == 0))
		return fail_set(
			fail, EPERM, "state",
			"server.user is '%.40s', who is root; it must be somebody without power",
			c->server_user);
	if (*ret_uid == 0)
		return fail_set(fail, EUSERS, "state",
				"no id is free for the server; make a user '%.40s'",
				c->server_user);
	return 0;
}

/* mkdir -p, for everything above the last component too: a user may not have ~/.local yet. 1: the
 * last one was made, 0: it was there. */
static int make_directories(const char *path, struct fail *fail)
{
	char part[CONFIG_TEXT_SIZE];
	size_t len = strlen(path);
	int made = 0;

	if (len >= sizeof(part))
		return fail_set(fail, ENAMETOOLONG, "state", "the path of the state is too long");
	for (size_t i = 1; i <= len; i++) {
		if (i < len && path[i] != '/')
			continue;
		memcpy(part, path, i);
		part[i] = '\0';
		made = mkdir(part, i == len ? 0711 : 0755) == 0;
		if (!made && errno != EEXIST)
			return fail_set(fail, errno, "state", "cannot make %.120s: %s", part,
					strerror(errno));
	}
	return made;
}

/* A user who could write to it could put another key database in place. */
static int check_ours(int fd, const char *path, struct fail *fail)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return fail_set(fail, errno, "state", "%.120s: %s", path, strerror(errno));
	if (st.st_uid != geteuid())
		return fail_set(
			fail, EPERM, "state",
			"%.120s belongs to another user; use --state, or run this as its owner",
			path);
	if (st.st_mode & (S_IWGRP | S_IWOTH))
		return fail_set(fail, EPERM, "state",
				"%.120s can be written by others; use: chmod go-w", path);
	return 0;
}

static int refuse_open(const char *path, int err, struct fail *fail)
{
	if (err == ENOENT)
		return fail_set(
			fail, ENOENT, "state",
			"there is no state in %.120s: no service was started with it and no "
			"key made; see --state",
			path);
	return fail_set(fail, err, "state", "cannot open %.120s: %s", path, strerror(err));
}

static int open_top(struct state *s, enum state_how how, struct fail *fail)
{
	int made = how == STATE_LOOK ? 0 : make_directories(s->path, fail);

	if (made < 0)
		return made;
	s->dir_fd = open(s->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (s->dir_fd < 0)
		return refuse_open(s->path, errno, fail);
	if (made && fchmod(s->dir_fd, 0711) < 0) /* whatever the umask is */
		return fail_set(fail, errno, "state", "%.120s: %s", s->path, strerror(errno));
	return check_ours(s->dir_fd, s->path, fail);
}

/* A file that is not the old owner's own is not one the store made; descriptors keep it the same
 * file. */
static int give_file(int db_fd, const char *name, uid_t from, uid_t uid, gid_t gid)
{
	_cleanup_(fd_closep) int fd =
		openat(db_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	struct stat st;

	if (fd < 0)
		return errno == ENOENT ? 0 : -errno;
	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode) || st.st_nlink != 1 || (st.st_uid != from && st.st_uid != uid))
		return -EPERM;
	return fchown(fd, uid, gid) < 0 ? -errno : 0;
}

/* The user has changed, or there was no service yet when the first key was made. */
static int give_database(struct state *s, uid_t from, uid_t uid, gid_t gid, struct fail *fail)
{
	int r = 0;

	for (size_t i = 0; i < ARRAY_SIZE(store_files) && r == 0; i++)
		r = give_file(s->db_fd, store_files[i], from, uid, gid);
	if (r == 0 && fchown(s->db_fd, uid, gid) < 0)
		r = -errno;
	if (r < 0)
		return fail_set(fail, -r, "state", "cannot give %.100s/db to user %u: %s", s->path,
				uid, strerror(-r));
	s->uid = uid;
	s->gid = gid;
	return 0;
}

/* A directory that is its owner's before anybody can find it: who comes second must not take it for
 * root's. */
static int prepare_db(const struct state *s, const char *name, const struct config *c,
		      struct fail *fail)
{
	_cleanup_(fd_closep) int fd =
		openat(s->dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;
	uid_t uid;
	gid_t gid;
	int r;

	if (fd < 0 || fchmod(fd, 0700) < 0 || fstat(fd, &st) < 0)
		return fail_set(fail, errno, "state", "%.120s/db: %s", s->path, strerror(errno));
	r = server_ids(c, &st, &uid, &gid, fail);
	if (r < 0)
		return r;
	if (st.st_uid != uid && fchown(fd, uid, gid) < 0)
		return fail_set(fail, errno, "state", "cannot give %.100s/db to user %u: %s",
				s->path, uid, strerror(errno));
	if (renameat2(s->dir_fd, name, s->dir_fd, "db", RENAME_NOREPLACE) < 0 && errno != EEXIST)
		return fail_set(fail, errno, "state", "cannot make %.120s/db: %s", s->path,
				strerror(errno));
	return 0;
}

static int make_db(const struct state *s, const struct config *c, struct fail *fail)
{
	char name[32];
	int r;

	if (faccessat(s->dir_fd, "db", F_OK, AT_SYMLINK_NOFOLLOW) == 0)
		return 0;
	(void)snprintf(name, sizeof(name), ".db-%d", (int)getpid());
	if (mkdirat(s->dir_fd, name, 0700) < 0 && errno != EEXIST)
		return fail_set(fail, errno, "state", "cannot make %.120s/db: %s", s->path,
				strerror(errno));
	r = prepare_db(s, name, c, fail);
	(void)unlinkat(s->dir_fd, name,
		       AT_REMOVEDIR); /* if somebody else was first, or it failed */
	return r;
}

static int open_db(struct state *s, const struct config *c, enum state_how how, struct fail *fail)
{
	struct stat st;
	uid_t uid;
	gid_t gid;
	int r = how == STATE_LOOK ? 0 : make_db(s, c, fail);

	if (r < 0)
		return r;
	s->db_fd = openat(s->dir_fd, "db", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (s->db_fd < 0 || fstat(s->db_fd, &st) < 0)
		return refuse_open(s->path, errno, fail);
	s->uid = st.st_uid;
	s->gid = st.st_gid;
	r = server_ids(c, &st, &uid, &gid, fail);
	if (r < 0)
		return r;
	if (st.st_uid == uid || geteuid() != 0 || how != STATE_CLAIM)
		return 0;
	return give_database(s, st.st_uid, uid, gid, fail);
}

int state_open(const struct config *c, enum state_how how, struct state *ret, struct fail *fail)
{
	_cleanup_(state_done) struct state s = STATE_INIT;
	int r = config_state_dir(c, s.path, sizeof(s.path));

	if (r < 0)
		return fail_set(fail, -r, "state",
				"where is the state? HOME is not set; use --state");
	r = open_top(&s, how, fail);
	if (r == 0)
		r = open_db(&s, c, how, fail);
	if (r < 0)
		return r;
	*ret = s;
	s = (struct state)STATE_INIT;
	return 0;
}

int state_become_server(const struct state *s, struct fail *fail)
{
	if (s->uid == geteuid())
		return 0;
	if (setgroups(0, NULL) < 0 || setresgid(s->gid, s->gid, s->gid) < 0 ||
	    setresuid(s->uid, s->uid, s->uid) < 0)
		return fail_set(fail, errno, "state",
				"cannot become user %u, who owns %.100s/db: %s", s->uid, s->path,
				strerror(errno));
	return 0;
}
