/* SPDX-License-Identifier: Apache-2.0 */
/* What the built-in root is known by. */
#include "template/embedded.h"
#include "template/template.h"

#include <fcntl.h>
#include <sys/stat.h>

#define BASE_VERSION 9 /* raise it when the lists in build.c change */

static uint64_t mix(uint64_t hash, uint64_t value)
{
	/* FNV-1a over the bytes: this names a cache entry and guards nothing. */
	for (int i = 0; i < 8; i++, value >>= 8)
		hash = (hash ^ (value & 0xff)) * UINT64_C(1099511628211);
	return hash;
}

static uint64_t mix_stat(uint64_t hash, const struct stat *st)
{
	hash = mix(hash, st->st_ino);
	hash = mix(hash, (uint64_t)st->st_mtim.tv_sec);
	return mix(hash, (uint64_t)st->st_mtim.tv_nsec);
}

static bool key_is_missing(int err)
{
	return err == ENOENT || err == ENOTDIR || err == EACCES;
}

/* Nobody waits until a root is on the disk: what was made before the machine started anew may be
 * half there, with every name in its place. So each boot makes its own. */
static int mix_boot(uint64_t *hash)
{
	_cleanup_(fd_closep) int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
	uint64_t id[5] = { 0 }; /* 36 characters */

	if (fd < 0)
		return key_is_missing(errno) ? 0 : -errno;
	if (read(fd, id, sizeof(id)) < 0)
		return -errno;
	for (size_t i = 0; i < ARRAY_SIZE(id); i++)
		*hash = mix(*hash, id[i]);
	return 0;
}

/*
 * Computed at every run, so it looks at few places: packages replace files by renaming, which
 * changes the directory's time. What they change deeper down is picked up with the next change up
 * here.
 */
int template_base_key(const char *ca_bundle, uint64_t *ret)
{
	static const char *const watched[] = {
		"/etc",
		"/etc/alternatives",
		"/etc/ssl/certs",
		"/etc/ld.so.conf.d",
		"/etc/ld.so.cache",
	};
	uint64_t hash = mix(mix(UINT64_C(14695981039346656037), BASE_VERSION), embedded_key);
	int r = mix_boot(&hash);

	if (r < 0)
		return r;
	for (size_t i = 0; i < ARRAY_SIZE(watched); i++) {
		struct stat st;

		if (stat(watched[i], &st) < 0) {
			if (key_is_missing(errno))
				continue;
			return -errno;
		}
		hash = mix(hash, i);
		hash = mix_stat(hash, &st);
	}
	if (*ca_bundle) {
		struct stat st;

		if (stat(ca_bundle, &st) < 0)
			return -errno;
		/* Other bytes cannot come into a file without its ctime changing, whatever else is
		 * set back. */
		hash = mix_stat(mix(hash, (uint64_t)st.st_size), &st);
		hash = mix(hash, (uint64_t)st.st_ctim.tv_sec);
		hash = mix(hash, (uint64_t)st.st_ctim.tv_nsec);
	}
	*ret = hash;
	return 0;
}
