/* SPDX-License-Identifier: Apache-2.0 */
/*
 * service.json: by it, programs of this machine find the service. Of several services the first one is found;
 * a lock on the file says whether it still lives.
 */
#include "warden/warden_priv.h"

#include "service/discovery.h"

#include <fcntl.h>
#include <jansson.h>
#include <sys/file.h>
#include <sys/stat.h>

/* The same directory as the lock file of boxes, which box_host_open() has made and checked. */
static int open_run_dir(void)
{
	char path[IDS_RUN_DIR_SIZE];
	int fd;

	ids_run_dir(path);
	fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

static int write_whole(int fd, const char *text)
{
	size_t len = strlen(text);

	if (ftruncate(fd, 0) < 0)
		return -errno;
	return pwrite(fd, text, len, 0) == (ssize_t)len ? 0 : -EIO;
}

static char *describe(const struct warden *w)
{
	json_t *object = json_pack("{s:s, s:s, s:i}", "url", w->url, "state", w->state.path, "pid",
				   (int)getpid());
	char *text = object ? json_dumps(object, JSON_INDENT(2)) : NULL;

	json_decref(object);
	return text;
}

void discovery_open(struct warden *w)
{
	_cleanup_(fd_closep) int dir_fd = open_run_dir();
	_cleanup_(fd_closep) int fd = -EBADF;
	_cleanup_(freep) char *text = NULL;
	struct stat st, named;

	if (dir_fd < 0)
		return;
	fd = openat(dir_fd, DISCOVERY_NAME, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0644);
	if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) < 0)
		return; /* another service is the one that is found */
	/* Its owner may have removed it between our opening and locking it. */
	if (fstat(fd, &st) < 0 ||
	    fstatat(dir_fd, DISCOVERY_NAME, &named, AT_SYMLINK_NOFOLLOW) < 0 ||
	    st.st_ino != named.st_ino)
		return;
	text = describe(w);
	if (!text || fchmod(fd, 0644) < 0 || write_whole(fd, text) < 0)
		return;
	/* Who may pass the directory may read it; the lock file in it stays root's alone. */
	(void)fchmod(dir_fd, 0755);
	w->discovery_fd = take_fd(&fd);
	w->run_fd = take_fd(&dir_fd);
}

void discovery_close(struct warden *w)
{
	if (w->discovery_fd >= 0)
		(void)unlinkat(w->run_fd, DISCOVERY_NAME, 0);
	fd_closep(&w->discovery_fd);
	fd_closep(&w->run_fd);
}
