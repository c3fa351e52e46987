/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What runs hold of the server, which is everybody's. A key has as many of them at once as it may
 * have sandboxes. And results that are given in one piece are bounded, those of a key and all
 * together: as JSON, and while that is made, they take up to fourteen times what was printed. The
 * beginning of each is not counted, so that small ones always pass. Output that is passed on as it
 * comes is not counted either.
 */
#include "server/run/run.h"

#include "base/budget.h"
#include "server/http/share.h"

#include <pthread.h>

#define KEY_MAX                                                                                    \
	((size_t)(2 *                                                                              \
		  SERVER_RUN_OUTPUT_BYTES_MAX)) /* the largest run: what it prints, and its files */
#define ALL_MAX (2 * KEY_MAX)
#define SMALL ((size_t)64 << 10)

static size_t all; /* atomic */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct shares runs; /* under the lock */

static bool claim_charge(struct server_run_claim *c, size_t bytes)
{
	if (!budget_take(&c->share->held, bytes, KEY_MAX))
		return false;
	if (!budget_take(&all, bytes, ALL_MAX)) {
		budget_give_back(&c->share->held, bytes);
		return false;
	}
	c->held += bytes;
	return true;
}

int server_run_hold(struct server_run *o, size_t bytes)
{
	size_t small = MIN(bytes, SMALL - o->claim.small);

	if (bytes > small && !claim_charge(&o->claim, bytes - small))
		return -EDQUOT;
	o->claim.small += small;
	return 0;
}

int server_run_begin(struct server_run *o, const char *key_id, size_t max)
{
	int r;

	pthread_mutex_lock(&lock);
	r = share_take(&runs, key_id, max, &o->claim.share);
	pthread_mutex_unlock(&lock);
	return r;
}

void server_run_release(struct server_run_claim *c)
{
	if (!c->share)
		return;
	budget_give_back(&all, c->held);
	budget_give_back(&c->share->held, c->held);
	pthread_mutex_lock(&lock);
	share_give(&runs, c->share);
	pthread_mutex_unlock(&lock);
	*c = (struct server_run_claim){ 0 };
}
