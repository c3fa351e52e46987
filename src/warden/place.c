/* SPDX-License-Identifier: Apache-2.0 */
/* Where the service lives: its state directory, its address, the file by which local programs find
 * it. */
#include "warden/warden_priv.h"

#include "base/clock.h"
#include "service/discovery.h"
#include "service/program.h"
#include "warden/layers/layers.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <jansson.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#define BIND_WAIT_MS 2000
#define BIND_PAUSE_MS 20
#define BACKLOG 4096
#define LOCK_WAIT_US 1500000 /* what a killed service leaves running ends within that */
#define LOCK_RETRY_NS 50000000

/* CR-06: one service for each state directory. */
static int lock_state(struct warden *w, struct fail *fail)
{
	uint64_t until_us = clock_boot_us() + LOCK_WAIT_US;
	struct state found = STATE_INIT;
	int r = state_open(w->config, STATE_MAKE, &found, fail);

	if (r < 0)
		return r;
	w->lock_fd = take_fd(&found.dir_fd);
	(void)snprintf(w->state.path, sizeof(w->state.path), "%s", found.path);
	state_done(&found);
	while (flock(w->lock_fd, LOCK_EX | LOCK_NB) < 0) {
		if (errno != EWOULDBLOCK)
			return fail_set(fail, errno, "state", "cannot lock %.120s: %s",
					w->state.path, strerror(errno));
		if (clock_boot_us() >= until_us)
			return fail_set(fail, EBUSY, "state",
					"a service is running already with the state in %.120s",
					w->state.path);
		(void)nanosleep(&(struct timespec){ .tv_nsec = LOCK_RETRY_NS }, NULL);
	}
	return 0;
}

/* Others are told where it is, who may stand elsewhere. */
static void make_absolute(struct state *s)
{
	char link[40], path[sizeof(s->path)];
	ssize_t n;

	(void)snprintf(link, sizeof(link), "/proc/self/fd/%d", s->dir_fd);
	n = readlink(link, path, sizeof(path) - 1);
	if (n <= 0 || path[0] != '/')
		return;
	path[n] = '\0';
	memcpy(s->path, path, (size_t)n + 1);
}

/* The first key, when there is none yet. Another program does it: databases are not our
 * business. */
static int make_first_key(const struct warden *w, const char *client, struct fail *fail)
{
	char path[PATH_MAX], state[CONFIG_TEXT_SIZE + 16];
	char *argv[] = { (char[]){ "glovebox" }, (char[]){ "key" }, (char[]){ "bootstrap" }, state,
			 NULL };
	int status, r = client ? 0 : program_find("client", "glovebox-client", path, sizeof(path));
	pid_t pid;

	if (r < 0)
		return fail_set(fail, -r, "key",
				"there is no glovebox-client beside this program; is glovebox "
				"installed completely?");
	(void)snprintf(state, sizeof(state), "--state=%s", w->state.path);
	pid = fork();
	if (pid < 0)
		return fail_set(fail, errno, "key", "cannot start a process: %s", strerror(errno));
	if (pid == 0) {
		sigset_t none;

		sigemptyset(&none);
		(void)sigprocmask(SIG_SETMASK, &none, NULL);
		execv(client ? client : path, argv);
		_exit(127);
	}
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return fail_set(fail, errno, "key", "waitpid: %s", strerror(errno));
	return WIFEXITED(status) && WEXITSTATUS(status) == 0 ?
		       0 :
		       fail_set(fail, EIO, "key", "cannot make the first key");
}

static void make_url(struct warden *w, const struct sockaddr_storage *at)
{
	const char *scheme = w->config->server_tls_cert[0] ? "https" : "http";
	char host[INET6_ADDRSTRLEN] = "";
	unsigned port = 0;

	if (at->ss_family == AF_INET6) {
		const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)at;

		(void)inet_ntop(AF_INET6, &in6->sin6_addr, host, sizeof(host));
		port = ntohs(in6->sin6_port);
	} else {
		const struct sockaddr_in *in = (const struct sockaddr_in *)at;

		(void)inet_ntop(AF_INET, &in->sin_addr, host, sizeof(host));
		port = ntohs(in->sin_port);
	}
	(void)snprintf(w->url, sizeof(w->url),
		       at->ss_family == AF_INET6 ? "%s://[%s]:%u" : "%s://%s:%u", scheme, host,
		       port);
}

/* The server of a warden that was killed is dying too, but may hold the address for a moment
 * longer. */
static int bind_soon(int fd, const struct sockaddr_storage *at, socklen_t len)
{
	const struct timespec pause = { .tv_nsec = BIND_PAUSE_MS * 1000000L };

	for (int ms = 0; bind(fd, (const struct sockaddr *)at, len) < 0; ms += BIND_PAUSE_MS) {
		if (errno != EADDRINUSE || ms >= BIND_WAIT_MS)
			return -errno;
		(void)nanosleep(&pause, NULL);
	}
	return 0;
}

static int open_listener(struct warden *w, struct fail *fail)
{
	struct sockaddr_storage at;
	socklen_t len;
	int one = 1, r = config_parse_listen(w->config->server_listen, &at, &len);

	if (r < 0)
		return fail_set(fail, EINVAL, "listen",
				"'%.60s' is no address and port to listen on",
				w->config->server_listen);
	w->listen_fd = socket(at.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (w->listen_fd >= 0)
		(void)setsockopt(w->listen_fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	r = w->listen_fd < 0 ? -errno : bind_soon(w->listen_fd, &at, len);
	if (r == 0 && listen(w->listen_fd, BACKLOG) < 0)
		r = -errno;
	if (r < 0)
		return fail_set(fail, -r, "listen", "cannot listen on %.60s: %s",
				w->config->server_listen, strerror(-r));
	len = sizeof(at);
	if (getsockname(w->listen_fd, (struct sockaddr *)&at, &len) < 0)
		return fail_set(fail, errno, "listen", "getsockname: %s", strerror(errno));
	make_url(w, &at);
	return 0;
}

/* The same directory as the lock file of boxes, which box_host_open() has made and checked. */
static int open_discovery_dir(void)
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

static char *describe_service(const struct warden *w)
{
	json_t *object = json_pack("{s:s, s:s, s:i}", "url", w->url, "state", w->state.path, "pid",
				   (int)getpid());
	char *text = object ? json_dumps(object, JSON_INDENT(2)) : NULL;

	json_decref(object);
	return text;
}

/*
 * service.json: by it, programs of this machine find the service. Of several services the first one
 * is found; a lock on the file says whether it still lives.
 */
void place_publish(struct warden *w)
{
	_cleanup_(fd_closep) int dir_fd = open_discovery_dir();
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
	text = describe_service(w);
	if (!text || fchmod(fd, 0644) < 0 || write_whole(fd, text) < 0)
		return;
	/* Who may pass the directory may read it; the lock file in it stays root's alone. */
	(void)fchmod(dir_fd, 0755);
	w->discovery_fd = take_fd(&fd);
	w->run_fd = take_fd(&dir_fd);
}

void place_unpublish(struct warden *w)
{
	if (w->discovery_fd >= 0)
		(void)unlinkat(w->run_fd, DISCOVERY_NAME, 0);
	fd_closep(&w->discovery_fd);
	fd_closep(&w->run_fd);
}

int place_open(struct warden *w, const char *client, struct fail *fail)
{
	int r = lock_state(w, fail);

	if (r == 0)
		r = state_open(w->config, STATE_CLAIM, &w->state, fail);
	if (r == 0)
		make_absolute(&w->state);
	if (r == 0)
		r = layer_open_dir(w, fail);
	if (r == 0)
		r = open_listener(w, fail);
	if (r == 0)
		r = make_first_key(w, client, fail);
	return r;
}

void place_close(struct warden *w)
{
	fd_closep(&w->listen_fd);
	fd_closep(&w->layers_fd);
	state_done(&w->state);
	fd_closep(&w->lock_fd);
}
