/* SPDX-License-Identifier: Apache-2.0 */
#include "server/http/share.h"

static struct share **share_bucket(struct shares *s, const char *name)
{
	uint32_t h = 2166136261u;

	for (; *name; name++)
		h = (h ^ (unsigned char)*name) * 16777619u;
	return &s->bucket[h % SHARE_BUCKETS];
}

int share_take(struct shares *s, const char *name, size_t max, struct share **ret)
{
	struct share **bucket = share_bucket(s, name), *one;

	for (one = *bucket; one && strcmp(one->name, name) != 0; one = one->next)
		;
	if (one && one->n >= max)
		return -EUSERS;
	if (!one) {
		one = calloc(1, sizeof(*one));
		if (!one)
			return -ENOMEM;
		(void)snprintf(one->name, sizeof(one->name), "%s", name);
		one->next = *bucket;
		*bucket = one;
	}
	one->n++;
	*ret = one;
	return 0;
}

void share_give(struct shares *s, struct share *one)
{
	struct share **at = share_bucket(s, one->name);

	if (--one->n > 0)
		return;
	while (*at != one)
		at = &(*at)->next;
	*at = one->next;
	free(one);
}
