/* SPDX-License-Identifier: Apache-2.0 */
#include "service/discovery.h"

#include "base/buf.h"

#include <fcntl.h>
#include <jansson.h>
#include <limits.h>

#define FILE_MAX 4096

static int read_object(const char *path, json_t **ret)
{
	_cleanup_(buf_done) struct buf text = BUF_INIT(FILE_MAX);
	_cleanup_(fd_closep) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	int r = fd < 0 ? -errno : buf_read_fd(&text, fd);

	if (r < 0)
		return r;
	*ret = json_loadb((const char *)text.data, text.len, JSON_REJECT_DUPLICATES, NULL);
	return *ret ? 0 : -EBADMSG;
}

static int take_text(const json_t *o, const char *name, char *ret, size_t size)
{
	const char *text = json_string_value(json_object_get(o, name));

	if (!text || !*text || strlen(text) >= size)
		return -EBADMSG;
	memcpy(ret, text, strlen(text) + 1);
	return 0;
}

int discovery_read(struct discovery *ret)
{
	struct discovery found = { 0 };
	char path[PATH_MAX];
	json_t *o = NULL;
	int place, r = -ENOENT;

	for (size_t i = 0; r < 0 && (place = discovery_place(i, path, sizeof(path))) != -ENOENT;
	     i++)
		r = place < 0 ? place : read_object(path, &o);
	if (r == 0)
		r = take_text(o, "url", found.url, sizeof(found.url));
	if (r == 0)
		r = take_text(o, "state", found.state, sizeof(found.state));
	json_decref(o);
	if (r < 0)
		return r;
	*ret = found;
	return 0;
}
