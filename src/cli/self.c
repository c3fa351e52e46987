/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/self.h"

#include "base/buf.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#define ARGS_MAX 128
#define RESULT_MAX ((size_t)16 << 20)

/* Standard error is nobody's: what went wrong is in the object, or in the status. out_fd < 0: so is
 * standard output. */
static _noreturn_ void child(const char *program, const char *const *argv, int out_fd, pid_t parent)
{
	int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);

	/* A box must not outlive the process that asked for it; SIGTERM lets it be taken down in
	 * order. */
	if (prctl(PR_SET_PDEATHSIG, SIGTERM, 0, 0, 0) < 0 || getppid() != parent)
		_exit(125);
	if (null_fd < 0 || dup2(null_fd, 0) < 0 || dup2(out_fd < 0 ? null_fd : out_fd, 1) < 0 ||
	    dup2(null_fd, 2) < 0)
		_exit(125);
	(void)execv(program, (char *const *)(uintptr_t)argv);
	_exit(125);
}

int self_start(const char *const *args, struct self_job *ret)
{
	const char *argv[ARGS_MAX + 1] = { "glovebox", "run", "--json" };
	size_t n = 3;
	pid_t pid, parent = getpid();
	int ends[2];

	for (; *args; args++) {
		if (n == ARGS_MAX)
			return -E2BIG;
		argv[n++] = *args;
	}
	if (pipe2(ends, O_CLOEXEC) < 0)
		return -errno;
	pid = fork();
	if (pid == 0)
		child("/proc/self/exe", argv, ends[1], parent);
	fd_close(ends[1]);
	if (pid < 0) {
		fd_close(ends[0]);
		return -errno;
	}
	*ret = (struct self_job){ .pid = pid, .fd = ends[0] };
	return 0;
}

int self_finish(struct self_job *job, json_t **ret)
{
	_cleanup_(buf_done) struct buf text = BUF_INIT(RESULT_MAX);
	int r = buf_read_fd(&text, job->fd);
	json_t *object;

	fd_closep(&job->fd); /* should it still write, it notices and ends */
	while (waitpid(job->pid, NULL, 0) < 0 && errno == EINTR)
		;
	if (r < 0)
		return r;
	object = json_loadb((const char *)text.data, text.len, 0, NULL);
	if (!json_is_object(object)) {
		json_decref(object);
		return -EBADMSG;
	}
	*ret = object;
	return 0;
}

int self_run(const char *const *args, json_t **ret)
{
	struct self_job job = SELF_JOB_INIT;
	int r = self_start(args, &job);

	return r < 0 ? r : self_finish(&job, ret);
}

bool self_succeeds(const char *const *argv)
{
	pid_t parent = getpid(), pid = fork();
	int status = -1;

	if (pid == 0)
		child(argv[0], argv, -EBADF, parent);
	while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return status == 0;
}

const char *self_text(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));

	return text ? text : "";
}
