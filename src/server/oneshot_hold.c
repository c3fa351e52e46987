/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What runs hold of the server, which is everybody's. A key has as many of them at once as it may have sandboxes. And
 * results that are given in one piece are bounded all together: as JSON, and while that is made, they take up to
 * fourteen times what was printed. Output that is passed on as it comes is not counted.
 */
#include "server/oneshot.h"

#include "server/budget.h"
#include "server/share.h"

#include <pthread.h>

#define ALL_MAX ((size_t)128 << 20)

static size_t all; /* atomic */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct shares runs; /* under the lock */

int oneshot_hold(struct oneshot *o, size_t bytes)
{
	if (!budget_take(&all, bytes, ALL_MAX))
		return -EDQUOT;
	o->held += bytes;
	return 0;
}

void oneshot_release(size_t held)
{
	budget_give_back(&all, held);
}

int oneshot_begin(struct oneshot *o, const char *key_id, size_t max)
{
	int r;

	pthread_mutex_lock(&lock);
	r = share_take(&runs, key_id, max, &o->share);
	pthread_mutex_unlock(&lock);
	return r;
}

void oneshot_end(struct oneshot *o)
{
	oneshot_release(o->held);
	o->held = 0;
	if (!o->share)
		return;
	pthread_mutex_lock(&lock);
	share_give(&runs, take_ptr(o->share));
	pthread_mutex_unlock(&lock);
}
