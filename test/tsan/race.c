/* SPDX-License-Identifier: Apache-2.0 */
/* Two threads and one number without a lock: the sanitizer must say so, or its silence means nothing. */
#include <pthread.h>
#include <stddef.h>

static int number;

static void *count(void *arg)
{
	for (int i = 0; i < 1000; i++)
		number++;
	return arg;
}

int main(void)
{
	pthread_t other;

	if (pthread_create(&other, NULL, count, NULL) != 0)
		return 1;
	(void)count(NULL);
	(void)pthread_join(other, NULL);
	return 0;
}
