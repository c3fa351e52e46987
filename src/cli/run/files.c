/* SPDX-License-Identifier: Apache-2.0 */
/* Inputs into the box. All paths inside a box are resolved inside it. */
#include "cli/run/run.h"

#include "base/clock.h"
#include "wire/tree.h"

/* The agent's answer to a transfer into the box. */
static int await_end(const struct run_request *q, int sock)
{
	const struct tree_limits none = {
		.deadline_boot_us = clock_boot_us() + RUN_TRANSFER_US,
		.cancel_fd = q->signal_fd,
	};
	const struct tree_events events = { 0 };

	/* An empty tree, or the reason of a failure. */
	return tree_recv(sock, WIRE_ON_FROM_OP, -EBADF, &none, &events);
}

static int input_error(struct fail *fail, const char *dest, const struct tree_inward *inward, int r)
{
	if (r == -ENOSPC)
		return fail_set(fail, ENOSPC, "inputs",
				"the input for %s does not fit: raise --disk or --files", dest);
	if (r == -ECANCELED)
		return fail_set(fail, ECANCELED, "inputs", "interrupted");
	if (r == -EAGAIN || r == -ETIME)
		return fail_set(fail, ETIME, "inputs", "the box's agent does not answer");
	if (r == -EOPNOTSUPP)
		return fail_set(fail, -r, "inputs",
				"the input for %s has '%.100s' in it: only files, directories and "
				"links can be copied",
				dest, inward->refused);
	if (r == -EEXIST)
		return fail_set(fail, EEXIST, "inputs",
				"%s is there already: two inputs with one name", dest);
	return fail_set(fail, -r, "inputs", "cannot copy the input to %s: %s", dest, strerror(-r));
}

static int finish_put(const struct run_request *q, int sock, int r)
{
	int answer;

	if (r == 0)
		r = wire_send(sock, WIRE_TREE_END, NULL, 0);
	/* A sender that was cut off asks why. */
	answer = r == 0 || r == -EPIPE ? await_end(q, sock) : 0;
	return answer < 0 ? answer : r;
}

static int send_code(const struct run_request *q, struct box *b, struct fail *fail)
{
	_cleanup_(fd_closep) int sock = box_files(b, WIRE_PUT, RUN_HOME, fail);
	struct wire_entry entry = { .size = q->code_len, .mode = 0644 };
	int r;

	if (sock < 0)
		return sock;
	r = wire_send2(sock, WIRE_FILE, &entry, sizeof(entry), q->code_file, strlen(q->code_file));
	for (size_t at = 0; r == 0 && at < q->code_len;) {
		size_t n = MIN(q->code_len - at, (size_t)WIRE_DATA_MAX);

		r = wire_send(sock, WIRE_DATA, q->code + at, n);
		at += n;
	}
	if (r == 0)
		r = wire_send(sock, WIRE_FILE_END, NULL, 0);
	r = finish_put(q, sock, r);
	return r < 0 ? input_error(fail, q->code_file, NULL, r) : 0;
}

static int send_input(const struct run_request *q, const struct run_input *in, struct box *b,
		      struct fail *fail)
{
	_cleanup_(fd_closep) int sock = -EBADF;
	struct tree_inward inward = { "" };
	char root[WIRE_PATH_MAX + 1];
	const char *name = strrchr(in->dest, '/') + 1;
	int r;

	if (in->is_dir)
		(void)snprintf(root, sizeof(root), "%s", in->dest);
	else
		(void)snprintf(root, sizeof(root), "%.*s", (int)MAX(name - in->dest - 1, 1),
			       in->dest);
	sock = box_files(b, WIRE_PUT, root, fail);
	if (sock < 0)
		return sock;
	r = in->is_dir ? tree_send_dir(sock, in->fd, &inward) : tree_send_file(sock, name, in->fd);
	r = finish_put(q, sock, r);
	return r < 0 ? input_error(fail, in->dest, &inward, r) : 0;
}

int run_send_inputs(const struct run_request *q, struct box *b, struct fail *fail)
{
	for (size_t i = 0; i < q->n_inputs; i++) {
		int r = send_input(q, &q->inputs[i], b, fail);

		if (r < 0)
			return r;
	}
	return q->code ? send_code(q, b, fail) : 0;
}
