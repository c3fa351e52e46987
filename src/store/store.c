/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opening the database. It is written with a log (WAL): what was accepted is in the log before the
 * caller hears of it, so a process that is killed loses nothing, and readers and a second process
 * never wait long.
 */
#include "store/store_priv.h"

#include "store/schema.h"

#include <fcntl.h>
#include <sodium.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>

#define NEW_FILE STORE_FILE "-new" /* until it has all its tables */
#define VFS_NAME "glovebox"
#define BUSY_MS 5000        /* how long another process may hold the database */
#define VALUE_MAX (8 << 20) /* bytes of one text */
#define SHRINK_PAGES "64"
#define OPEN_TRIES 100
#define OPEN_TRY_NS 50000000

static const char *const new_files[] = { NEW_FILE, NEW_FILE "-wal", NEW_FILE "-shm",
					 NEW_FILE "-journal" };

static sqlite3_vfs vfs;
static pthread_once_t vfs_once = PTHREAD_ONCE_INIT;
static int vfs_error;

/* The file is named through the directory's descriptor. SQLite would follow that link and use the
 * path behind it, which the server room cannot reach. */
static int full_path(sqlite3_vfs *self, const char *name, int size, char *ret)
{
	int n = snprintf(ret, (size_t)size, "%s", name);

	(void)self;
	return n < 0 || n >= size ? SQLITE_CANTOPEN : SQLITE_OK;
}

static void register_vfs(void)
{
	const sqlite3_vfs *unix_vfs = sqlite3_vfs_find("unix");

	if (!unix_vfs || sodium_init() < 0) {
		vfs_error = -ENOSYS;
		return;
	}
	vfs = *unix_vfs;
	vfs.pNext = NULL;
	vfs.zName = VFS_NAME;
	vfs.xFullPathname = full_path;
	if (sqlite3_vfs_register(&vfs, 0) != SQLITE_OK)
		vfs_error = -ENOMEM;
}

int64_t store_now_ms(void)
{
	struct timespec ts;

	(void)clock_gettime(CLOCK_REALTIME, &ts);
	return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

static int run_sql(sqlite3 *db, const char *sql)
{
	return store_errno(db, sqlite3_exec(db, sql, NULL, NULL, NULL));
}

/* The one number that a statement answers. */
static int read_number(struct store *s, const char *sql, int64_t *ret)
{
	sqlite3_stmt *stmt = NULL;
	int rc = sqlite3_prepare_v2(s->db, sql, -1, &stmt, NULL);

	if (rc == SQLITE_OK)
		rc = sqlite3_step(stmt);
	if (rc == SQLITE_ROW) {
		*ret = sqlite3_column_int64(stmt, 0);
		rc = SQLITE_OK;
	}
	(void)sqlite3_finalize(stmt);
	return store_errno(s->db, rc);
}

static int connect_database(struct store *s, const char *name, sqlite3 **ret)
{
	char path[64];
	int rc;

	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d/%s", s->dir_fd, name);
	rc = sqlite3_open_v2(path, ret, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, VFS_NAME);
	if (!*ret)
		return -ENOMEM;
	if (rc != SQLITE_OK)
		return store_errno(*ret, rc);
	(void)sqlite3_extended_result_codes(*ret, 1);
	(void)sqlite3_busy_timeout(*ret, BUSY_MS);
	(void)sqlite3_limit(*ret, SQLITE_LIMIT_LENGTH, VALUE_MAX);
	(void)sqlite3_limit(*ret, SQLITE_LIMIT_ATTACHED, 0);
	/* Who can write the file must not be able to make us do more than read rows. */
	(void)sqlite3_db_config(*ret, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
	(void)sqlite3_db_config(*ret, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
	return run_sql(*ret, "PRAGMA synchronous = NORMAL;"
			     "PRAGMA foreign_keys = ON;"
			     "PRAGMA temp_store = MEMORY;"
			     "PRAGMA mmap_size = 0;"
			     "PRAGMA cell_size_check = ON;"
			     "PRAGMA secure_delete = FAST;"
			     "PRAGMA cache_size = -4096;"
			     "PRAGMA journal_size_limit = 4194304;");
}

static int disconnect(struct store *s)
{
	int rc = sqlite3_close(s->db);

	s->db = NULL;
	return store_errno(NULL, rc);
}

/* From version `have` to the newest, all or nothing. */
static int migrate(struct store *s, size_t have)
{
	char sql[64];
	int r = run_sql(s->db, "BEGIN IMMEDIATE");

	if (r < 0)
		return r;
	for (size_t i = have; i < ARRAY_SIZE(schema_versions) && r == 0; i++)
		r = run_sql(s->db, schema_versions[i]);
	(void)snprintf(sql, sizeof(sql), "PRAGMA user_version = %zu", ARRAY_SIZE(schema_versions));
	if (r == 0)
		r = run_sql(s->db, sql);
	if (r == 0)
		r = run_sql(s->db, "COMMIT");
	if (r < 0)
		(void)!run_sql(s->db, "ROLLBACK");
	return r;
}

static void remove_new(struct store *s)
{
	for (size_t i = 0; i < ARRAY_SIZE(new_files); i++)
		(void)unlinkat(s->dir_fd, new_files[i], 0);
}

/* What was left of a database that somebody has moved away: SQLite would take that for the new
 * one's own, and what is in it would come back. It may be all that is left of something, so it is
 * not thrown away. */
static int set_aside(struct store *s)
{
	static const char *const left[][2] = {
		{ STORE_FILE "-wal", STORE_FILE "-wal-old" },
		{ STORE_FILE "-journal", STORE_FILE "-journal-old" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(left); i++)
		if (renameat(s->dir_fd, left[i][0], s->dir_fd, left[i][1]) < 0 && errno != ENOENT)
			return -errno;
	if (unlinkat(s->dir_fd, STORE_FILE "-shm", 0) < 0 && errno != ENOENT)
		return -errno;
	return 0;
}

/* Under another name until it is complete, so that an empty or half-made file of the right name is
 * always damage and never taken for a beginning. */
static int create_database(struct store *s)
{
	char sql[64];
	int r = set_aside(s);

	if (r < 0)
		return r;
	remove_new(s);
	{
		_cleanup_(fd_closep) int fd =
			openat(s->dir_fd, NEW_FILE,
			       O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);

		if (fd < 0)
			return -errno;
	}
	r = connect_database(s, NEW_FILE, &s->db);
	(void)snprintf(sql, sizeof(sql), "PRAGMA application_id = %d", SCHEMA_APPLICATION);
	if (r == 0)
		r = run_sql(s->db, "PRAGMA auto_vacuum = INCREMENTAL");
	if (r == 0)
		r = run_sql(s->db, "PRAGMA journal_mode = WAL");
	if (r == 0)
		r = run_sql(s->db, sql);
	if (r == 0)
		r = migrate(s, 0);
	if (r == 0)
		r = disconnect(s);
	if (r == 0 &&
	    (renameat(s->dir_fd, NEW_FILE, s->dir_fd, STORE_FILE) < 0 || fsync(s->dir_fd) < 0))
		r = -errno;
	if (r < 0) {
		(void)disconnect(s);
		remove_new(s);
	}
	return r;
}

static int check_sound(struct store *s)
{
	sqlite3_stmt *stmt = NULL;
	int rc = sqlite3_prepare_v2(s->db, "PRAGMA quick_check(1)", -1, &stmt, NULL);

	if (rc == SQLITE_OK)
		rc = sqlite3_step(stmt);
	if (rc == SQLITE_ROW) {
		const char *said = (const char *)sqlite3_column_text(stmt, 0);

		rc = said && strcmp(said, "ok") == 0 ? SQLITE_OK : SQLITE_CORRUPT;
	}
	(void)sqlite3_finalize(stmt);
	return store_errno(s->db, rc);
}

static int check_version(struct store *s, struct fail *fail)
{
	int64_t application = 0, version = 0;
	int r = read_number(s, "PRAGMA application_id", &application);

	if (r == 0)
		r = read_number(s, "PRAGMA user_version", &version);
	if (r < 0)
		return r;
	if (application != SCHEMA_APPLICATION || version < 1)
		return -EUCLEAN;
	if (version > (int64_t)ARRAY_SIZE(schema_versions))
		return fail_set(fail, EPROTO, "store",
				"the database " STORE_FILE
				" was written by a newer glovebox (form %d, "
				"ours is %zu); use that one",
				(int)version, ARRAY_SIZE(schema_versions));
	return version < (int64_t)ARRAY_SIZE(schema_versions) ? migrate(s, (size_t)version) : 0;
}

static int open_database(struct store *s, struct fail *fail)
{
	struct stat st;
	int r = 0;

	if (fstatat(s->dir_fd, STORE_FILE, &st, AT_SYMLINK_NOFOLLOW) < 0)
		r = errno == ENOENT ? create_database(s) : -errno;
	else if (!S_ISREG(st.st_mode))
		r = -EUCLEAN;
	if (r == 0)
		r = connect_database(s, STORE_FILE, &s->db);
	if (r == 0)
		r = check_version(s, fail);
	if (r == 0 && sqlite3_db_readonly(s->db, "main") != 0)
		r = -EROFS;
	if (r == 0)
		r = check_sound(s);
	if (r == 0)
		r = connect_database(s, STORE_FILE, &s->checkpoint.db);
	return r < 0 ? r : checkpoint_open(&s->checkpoint, s->db);
}

/* Two processes that make or upgrade the file at once: one after the other. */
static int lock_directory(int dir_fd, int *ret)
{
	_cleanup_(fd_closep) int fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	for (int i = 0; flock(fd, LOCK_EX | LOCK_NB) < 0; i++) {
		const struct timespec pause = { .tv_nsec = OPEN_TRY_NS };

		if (errno != EWOULDBLOCK && errno != EINTR)
			return -errno;
		if (i == OPEN_TRIES)
			return -EBUSY;
		(void)nanosleep(&pause, NULL);
	}
	*ret = take_fd(&fd);
	return 0;
}

/* Root in a directory of another user would open whatever that user has put there, and leave files
 * behind that the user cannot use. */
static int check_owner(int dir_fd, struct fail *fail)
{
	struct stat st;

	if (fstat(dir_fd, &st) < 0)
		return fail_set(fail, errno, "store", "the directory of the database: %s",
				strerror(errno));
	if (st.st_uid != geteuid())
		return fail_set(
			fail, EPERM, "store",
			"the directory of the database belongs to uid %u, and this is uid %u",
			st.st_uid, geteuid());
	return 0;
}

static int explain_open(int err, struct fail *fail)
{
	if (err == EUCLEAN)
		return fail_set(fail, err, "store",
				"the database " STORE_FILE
				" is damaged or not ours; put a good copy back, or start without "
				"keys and sandboxes: move it away, with " STORE_FILE
				"-wal and " STORE_FILE "-shm");
	if (err == ENOSPC)
		return fail_set(fail, err, "store",
				"no space is left for the database " STORE_FILE
				"; nothing was changed");
	if (err == EROFS || err == EACCES)
		return fail_set(fail, err, "store",
				"the database " STORE_FILE " cannot be written here: %s",
				strerror(err));
	if (err == EBUSY)
		return fail_set(fail, err, "store",
				"another process holds the database " STORE_FILE "; try again");
	return fail_set(fail, err, "store", "cannot open the database " STORE_FILE ": %s",
			strerror(err));
}

int store_open(int dir_fd, struct store **ret, struct fail *fail)
{
	_cleanup_(store_closep) struct store *s = NULL;
	_cleanup_(fd_closep) int lock_fd = -EBADF;
	int r = check_owner(dir_fd, fail);

	if (r < 0)
		return r;
	(void)pthread_once(&vfs_once, register_vfs);
	if (vfs_error < 0)
		return explain_open(-vfs_error, fail);
	s = calloc(1, sizeof(*s));
	if (!s)
		return explain_open(ENOMEM, fail);
	s->dir_fd = -EBADF;
	if (pthread_mutex_init(&s->lock, NULL) != 0 ||
	    pthread_mutex_init(&s->cache_lock, NULL) != 0)
		return explain_open(ENOMEM, fail);
	s->dir_fd = fcntl(dir_fd, F_DUPFD_CLOEXEC, 3);
	if (s->dir_fd < 0)
		return explain_open(errno, fail);
	r = lock_directory(s->dir_fd, &lock_fd);
	if (r < 0)
		return explain_open(-r, fail);
	fail->msg[0] = '\0';
	r = open_database(s, fail);
	if (r < 0)
		return fail->msg[0] ? r : explain_open(-r, fail);
	*ret = take_ptr(s);
	return 0;
}

void store_close(struct store *s)
{
	if (!s)
		return;
	checkpoint_close(&s->checkpoint);
	for (size_t i = 0; i < STORE_STATEMENTS_MAX; i++)
		(void)sqlite3_finalize(s->statements[i].stmt);
	(void)disconnect(s);
	fd_close(s->dir_fd);
	(void)pthread_mutex_destroy(&s->cache_lock);
	(void)pthread_mutex_destroy(&s->lock);
	explicit_bzero(s, sizeof(*s));
	free(s);
}

void store_closep(struct store **s)
{
	store_close(*s);
	*s = NULL;
}

int store_shrink(struct store *s)
{
	struct query q = query_open(s, "PRAGMA incremental_vacuum(" SHRINK_PAGES ")", NULL);
	int r;

	do
		r = query_step(&q);
	while (r > 0);
	return query_close(&q, r);
}
