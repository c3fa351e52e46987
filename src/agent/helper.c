/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/helper.h"

#include "agent/child.h"
#include "sys/payload.h"

#include <sys/wait.h>

static struct helper {
	pid_t pid; /* 0: free */
	enum helper_kind kind;
} helpers[HELPER_FILES_MAX + HELPER_SUDO_MAX + HELPER_SPILL_MAX];
static size_t n_of_kind[_HELPER_MAX];

static size_t most(enum helper_kind kind)
{
	static const size_t bounds[_HELPER_MAX] = {
		[HELPER_FILES] = HELPER_FILES_MAX,
		[HELPER_SUDO] = HELPER_SUDO_MAX,
		[HELPER_SPILL] = HELPER_SPILL_MAX,
	};

	return bounds[kind];
}

pid_t helper_fork(enum helper_kind kind)
{
	struct helper *h = helpers;
	pid_t pid;

	if (n_of_kind[kind] >= most(kind))
		return -EAGAIN;
	while (h->pid)
		h++; /* there is one: the table holds the most of every kind */
	pid = fork();
	if (pid < 0)
		return -errno;
	if (pid > 0) {
		*h = (struct helper){ .pid = pid, .kind = kind };
		n_of_kind[kind]++;
	}
	return pid;
}

void helper_reaped(pid_t pid)
{
	for (size_t i = 0; i < ARRAY_SIZE(helpers); i++) {
		if (helpers[i].pid != pid)
			continue;
		helpers[i].pid = 0;
		n_of_kind[helpers[i].kind]--;
	}
}

void helper_await(pid_t pid)
{
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
	helper_reaped(pid);
}

int helper_confine(int sock)
{
	const struct agent_defaults *d = &agent_defaults;
	int keep[1 + AGENT_JOIN_MAX] = { sock }, r;

	memcpy(keep + 1, d->join_fds, d->n_join * sizeof(int));
	agent_keep_fds(keep, 1 + d->n_join);
	if (d->n_join == 0)
		return 0;
	r = agent_join_cgroups(d->join_fds, d->n_join);
	if (r == 0)
		r = payload_set_oom_score(d->request.oom_score_adj);
	agent_keep_fds(&sock, 1);
	return r;
}
