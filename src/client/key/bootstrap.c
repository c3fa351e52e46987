/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The first key of a new service. A child that has become the store's owner makes it; what it says is one
 * key or nothing, and its parent, who may write to STATE, keeps it in local.key.
 */
#include "client/key/priv.h"

#include <fcntl.h>
#include <sys/wait.h>

#define FIRST_NAME "local"
#define TEXT_LEN (STORE_KEY_TEXT_SIZE - 1)

static int make_first(const struct state *state, int to)
{
	_cleanup_(store_closep) struct store *store = NULL;
	char text[STORE_KEY_TEXT_SIZE];
	struct store_key key;
	struct fail fail = { 0 };
	size_t n = 0;
	int r = state_become_server(state, &fail);

	if (r == 0)
		r = store_open(state->db_fd, &store, &fail);
	if (r < 0)
		return client_error(CLIENT_FAILURE, "%s", fail.msg);
	r = store_key_count(store, &n);
	if (r < 0)
		return client_error(CLIENT_FAILURE, "cannot count the keys: %s", strerror(-r));
	if (n > 0)
		return CLIENT_OK;
	r = store_key_create(store, FIRST_NAME, STORE_SCOPE_SANDBOXES, 0, &key, text, &fail);
	if (r == -EEXIST) /* one of that name has expired */
		r = store_key_create(store, "", STORE_SCOPE_SANDBOXES, 0, &key, text, &fail);
	if (r < 0)
		return client_error(CLIENT_FAILURE, "%s", fail.msg);
	r = write(to, text, TEXT_LEN) == TEXT_LEN ? CLIENT_OK : CLIENT_FAILURE;
	explicit_bzero(text, sizeof(text));
	return r;
}

/* The number of bytes that came, or a negative errno. */
static int read_all(int fd, char *ret, size_t size)
{
	size_t len = 0;

	while (len < size) {
		ssize_t n = read(fd, ret + len, size - len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		len += (size_t)n;
	}
	return (int)len;
}

/* A terminal shows the key to the person in front of it; a log would keep it for everybody. */
static int keep(const struct state *state, const char *text)
{
	struct fail fail;

	if (local_key_replace(state, text, &fail) < 0)
		return client_error(CLIENT_FAILURE, "%s", fail.msg);
	if (isatty(STDERR_FILENO))
		(void)fprintf(stderr, "glovebox: your first key, shown only now: %s\n", text);
	(void)fprintf(stderr, "glovebox: the first key is kept in %s/local.key\n", state->path);
	return CLIENT_OK;
}

int key_bootstrap(const struct state *state)
{
	char text[STORE_KEY_TEXT_SIZE] = "";
	int ends[2], status = 0, n, r;
	pid_t pid;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return client_error(CLIENT_FAILURE, "cannot make a pipe: %s", strerror(errno));
	pid = fork();
	if (pid == 0)
		_exit(make_first(state, ends[1]));
	fd_close(ends[1]);
	n = pid < 0 ? -errno : read_all(ends[0], text, TEXT_LEN);
	fd_close(ends[0]);
	while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (n < 0)
		return client_error(CLIENT_FAILURE, "cannot start a process: %s", strerror(-n));
	if (status != 0)
		return CLIENT_FAILURE; /* it has said why */
	r = n == TEXT_LEN ? keep(state, text) : CLIENT_OK;
	explicit_bzero(text, sizeof(text));
	return r;
}
