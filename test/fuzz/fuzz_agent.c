/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the agent reads that somebody in the box may have written (AG-16): /etc/passwd and /etc/group, and
 * what sudo sends. The first byte chooses; packets begin with their length.
 */
#include "fuzz.h"

#include <sys/mman.h>
#include <sys/socket.h>

#include "agent/agent.h"
#include "wire/request.h"
#include "sys/sock.h"

static void fuzz_users(const uint8_t *data, size_t size)
{
	struct agent_user u = { 0 };
	int fd = memfd_create("users", MFD_CLOEXEC);
	char path[32];

	assert(fd >= 0 && write(fd, data, size) == (ssize_t)size);
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (agent_user_find(path, path, "user", &u) == 0) {
		assert(u.uid <= 65534 && u.gid <= 65534 && strcmp(u.name, "user") == 0);
		assert(u.home[0] == '/' && u.shell[0] == '/' && u.n_groups <= AGENT_GROUPS_MAX);
		for (size_t i = 0; i < u.n_groups; i++)
			assert(u.groups[i] <= 65534);
	}
	fd_close(fd);
}

/* What was accepted can be executed: every text ends, every variable has a name, none comes twice. */
static void check_request(struct agent_request *q)
{
	const struct agent_user user = { .name = "user", .home = "/", .shell = "/bin/sh" };

	assert(q->n_args > 0 && q->n_args <= REQUEST_ARGS_MAX && !q->args[q->n_args]);
	assert(agent_user_environment(q, &user, true) == 0);
	assert(q->n_envs <= REQUEST_ENVS_MAX + REQUEST_DEFAULTS_MAX && !q->envs[q->n_envs]);
	for (size_t i = 0; i < q->n_envs; i++) {
		const char *equals = strchr(q->envs[i], '=');

		assert(equals && equals > q->envs[i]);
		for (size_t k = 0; k < i; k++)
			assert(strncmp(q->envs[k], q->envs[i], (size_t)(equals + 1 - q->envs[i])) !=
			       0);
	}
}

static void fuzz_request(const uint8_t *data, size_t size)
{
	static struct agent_request q;
	int pair[2];

	memset(&q, 0, sizeof(q));
	q.label_fd = -EBADF;
	assert(sock_pair(pair) == 0);
	for (int n = 0; size > 1 && n < 64; n++) {
		size_t len = MIN((size_t)data[0], size - 1);

		if (send(pair[0], data + 1, len, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
			break;
		data += 1 + len;
		size -= 1 + len;
	}
	fd_close(pair[0]);
	if (agent_request_read(pair[1], &q) == 0)
		check_request(&q);
	fd_close(pair[1]);
	for (size_t i = 0; i < q.n_args; i++)
		free(q.args[i]);
	for (size_t i = 0; i < q.n_envs; i++)
		free(q.envs[i]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size == 0)
		return 0;
	if (data[0] % 2)
		fuzz_users(data + 1, size - 1);
	else
		fuzz_request(data + 1, size - 1);
	return 0;
}
