/* SPDX-License-Identifier: Apache-2.0 */
/* The child's side of building a box: one step after the other, and a word about which failed. */
#include "box/setup/setup_priv.h"

#include "box/breakable.h"
#include "sys/mnt.h"
#include "sys/sock.h"

#include <sys/stat.h>

static int step_go(struct setup_state *s)
{
	size_t n_fds = ARRAY_SIZE(s->layer_fd);
	struct setup_go go;
	ssize_t n = sock_recv(s->sock, &go, sizeof(go), s->layer_fd, &n_fds);

	if (n != (ssize_t)sizeof(go))
		return n < 0 ? (int)n : -ECANCELED;
	return go.n_layers == n_fds && (n_fds == 0 || n_fds == s->setup->n_layers) ? 0 : -EPROTO;
}

static int step_rest(struct setup_state *s)
{
	const size_t n_nodes = s->setup->given_nodes ? 1 : 0;
	struct setup_rest rest;
	int fds[SOCK_FDS_MAX];
	size_t n_fds = ARRAY_SIZE(fds);
	ssize_t n = sock_recv(s->sock, &rest, sizeof(rest), fds, &n_fds);

	if (n != (ssize_t)sizeof(rest))
		return n < 0 ? (int)n : -ECANCELED;
	if (rest.n_nodes != n_nodes || rest.n_join > ARRAY_SIZE(s->join_fd) ||
	    n_fds != 1 + n_nodes + rest.n_join)
		return -EPROTO;
	s->agent_fd = fds[0];
	if (n_nodes)
		s->dev_fd = fds[1];
	s->n_join = rest.n_join;
	memcpy(s->join_fd, fds + 1 + n_nodes, s->n_join * sizeof(int));
	return 0;
}

static int send_report(struct setup_state *s, int fd)
{
	struct iovec part = { .iov_base = &s->report, .iov_len = sizeof(s->report) };

	return sock_send(s->sock, &part, 1, &fd, fd >= 0 ? 1 : 0);
}

static int step_done(struct setup_state *s)
{
	s->report.step = SETUP_DONE;
	return send_report(s, s->scratch_fd);
}

static int step_exec(struct setup_state *s)
{
	char *const argv[] = { (char[]){ "glovebox-agent" }, NULL };
	char *const env[] = { NULL };

	if (dup2(s->control_fd, 3) < 0 || (s->pids_fd >= 0 && dup2(s->pids_fd, 4) < 0))
		return -errno;
	(void)syscall(SYS_execveat, s->agent_fd, "", argv, control_on("clean-env") ? env : environ,
		      AT_EMPTY_PATH);
	return -errno;
}

void setup_child(const struct setup *setup, int sock)
{
	static int (*const steps[_SETUP_STEP_MAX])(struct setup_state *) = {
		[SETUP_FIND] = setup_do_find,
		[SETUP_TIME] = setup_do_time,
		[SETUP_PRIVATE] = setup_do_private,
		[SETUP_GO] = step_go,
		[SETUP_LAYERS] = setup_do_layers,
		[SETUP_BECOME] = setup_do_become,
		[SETUP_SCRATCH] = setup_do_scratch,
		[SETUP_UPPER] = setup_do_upper,
		[SETUP_OVERLAY] = setup_do_overlay,
		[SETUP_PROC] = setup_do_proc,
		[SETUP_PROC_SYS] = setup_do_proc_sys,
		[SETUP_MASKS] = setup_do_masks,
		[SETUP_HIDDEN] = setup_do_hidden,
		[SETUP_DEV] = setup_do_dev,
		[SETUP_HOSTNAME] = setup_do_hostname,
		[SETUP_PIVOT] = setup_do_pivot,
		[SETUP_REST] = step_rest,
		[SETUP_CGROUP] = setup_do_cgroup,
		[SETUP_NODES] = setup_do_nodes,
		[SETUP_CGROUP_NS] = setup_do_cgroup_ns,
		[SETUP_NET] = setup_do_net,
		[SETUP_NAMESPACES] = setup_do_namespaces,
		[SETUP_CORE_SCHEDULING] = setup_do_core_scheduling,
		[SETUP_KEYRING] = setup_do_keyring,
		[SETUP_STDIO] = setup_do_stdio,
		[SETUP_LANDLOCK] = setup_do_landlock,
		[SETUP_CAPS] = setup_do_caps,
		[SETUP_SECCOMP] = setup_do_seccomp,
		[SETUP_DONE] = step_done,
		[SETUP_EXEC] = step_exec,
	};
	struct setup_state s = {
		.setup = setup,
		.sock = sock,
		.layer_fd = { [0 ... SETUP_LAYERS_MAX - 1] = -EBADF },
		.scratch_fd = -EBADF,
		.root_fd = -EBADF,
		.proc_fd = -EBADF,
		.pids_fd = -EBADF,
		.dev_fd = -EBADF,
		.pts_fd = -EBADF,
		.shm_fd = -EBADF,
		.agent_fd = -EBADF,
	};

	(void)umask(0);
	for (unsigned i = SETUP_START + 1; i < _SETUP_STEP_MAX; i++) {
		int r = steps[i](&s);

		if (r < 0) {
			s.report.step = i;
			s.report.err = -r;
			(void)!send_report(&s, -EBADF);
			break;
		}
	}
	_exit(1);
}

const char *setup_step_text(uint32_t step)
{
	static const char *const texts[_SETUP_STEP_MAX] = {
#define STEP(name, text) [SETUP_##name] = text,
#include "box/setup/steps.def"
#undef STEP
	};

	return step < _SETUP_STEP_MAX ? texts[step] : "unknown step";
}
