/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From time to time the log's pages go into the database, which waits for the disk. A thread with a
 * connection of its own does that, so that no request does. It is started when the log first grows
 * large: a program that writes one row has none.
 */
#include "store/store_priv.h"

#include <signal.h>

#define PAGES_WANTED 1000 /* 4 MB of log */
#define PAGES_MOST 4000   /* when others write all the time, the thread never catches up */

/* One at a time: SQLite does not wait for another that is at it, but gives up. What cannot be done
 * now is done next time; until then the log keeps it. */
static void checkpoint_run(struct checkpoint *c, sqlite3 *db)
{
	(void)pthread_mutex_lock(&c->working);
	(void)sqlite3_wal_checkpoint_v2(db, NULL, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);
	(void)pthread_mutex_unlock(&c->working);
}

static void *checkpoint_thread(void *arg)
{
	struct checkpoint *c = arg;

	(void)pthread_mutex_lock(&c->lock);
	while (!c->stop) {
		if (!c->wanted) {
			(void)pthread_cond_wait(&c->changed, &c->lock);
			continue;
		}
		c->wanted = false;
		(void)pthread_mutex_unlock(&c->lock);
		checkpoint_run(c, c->db);
		(void)pthread_mutex_lock(&c->lock);
	}
	(void)pthread_mutex_unlock(&c->lock);
	return NULL;
}

/* Signals are for the other threads. */
static bool checkpoint_start(struct checkpoint *c)
{
	sigset_t all, before;
	bool started;

	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &before);
	started = pthread_create(&c->thread, NULL, checkpoint_thread, c) == 0;
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	return started;
}

/* After each commit, with the number of pages in the log. */
static int on_commit(void *arg, sqlite3 *db, const char *name, int pages)
{
	struct checkpoint *c = arg;

	(void)name;
	if (pages < PAGES_WANTED)
		return SQLITE_OK;
	(void)pthread_mutex_lock(&c->lock);
	if (!c->running)
		c->running = checkpoint_start(c);
	c->wanted = true;
	(void)pthread_cond_signal(&c->changed);
	(void)pthread_mutex_unlock(&c->lock);
	/* One writer waits until all is done; the next begins the log anew. */
	if (pages >= PAGES_MOST)
		checkpoint_run(c, db);
	return SQLITE_OK;
}

int checkpoint_open(struct checkpoint *c, sqlite3 *writer)
{
	if (pthread_mutex_init(&c->lock, NULL) != 0 || pthread_mutex_init(&c->working, NULL) != 0 ||
	    pthread_cond_init(&c->changed, NULL) != 0)
		return -ENOMEM;
	c->ready = true;
	(void)sqlite3_wal_hook(writer, on_commit, c);
	return 0;
}

void checkpoint_close(struct checkpoint *c)
{
	if (c->ready) {
		(void)pthread_mutex_lock(&c->lock);
		c->stop = true;
		(void)pthread_cond_signal(&c->changed);
		(void)pthread_mutex_unlock(&c->lock);
		if (c->running)
			(void)pthread_join(c->thread, NULL);
		(void)pthread_cond_destroy(&c->changed);
		(void)pthread_mutex_destroy(&c->working);
		(void)pthread_mutex_destroy(&c->lock);
	}
	(void)sqlite3_close(c->db);
	*c = (struct checkpoint){ 0 };
}
