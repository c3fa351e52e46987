/* SPDX-License-Identifier: Apache-2.0 */
/* The cases in a real box with a root, driven as the server drives it. */
#include "cases.h"

#include "box/box.h"
#include "sys/sock.h"
#include "template/template.h"

#include <sys/socket.h>

#define MEMORY (UINT64_C(256) << 20)
#define DISK (UINT64_C(64) << 20)
#define PIDS 256
#define PATIENCE_S 20

static struct box_host host = BOX_HOST_INIT;
static struct box box = BOX_INIT;
static struct cgroup_exec leaf = CGROUP_EXEC_INIT;

static int open_type(enum wire_type type, const void *data, size_t len)
{
	const struct timeval patience = { .tv_sec = PATIENCE_S };
	int pair[2];

	assert_int_equal(sock_pair(pair), 0);
	assert_int_equal(setsockopt(pair[0], SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)),
			 0);
	assert_int_equal(wire_send_fds(box.control_fd, type, data, len, &pair[1], 1), 0);
	fd_close(pair[1]);
	return pair[0];
}

static int open_op(const struct wire_fs *request)
{
	return open_type(WIRE_FS, request, sizeof(*request));
}

static void send_text(int sock, enum wire_type type, const char *text)
{
	assert_int_equal(wire_send(sock, type, text, strlen(text)), 0);
}

static void sh(const char *script)
{
	static struct wire_frame f;
	const struct wire_exec q = {
		.uid = PAYLOAD_USER,
		.gid = PAYLOAD_USER,
		.flags = WIRE_EXEC_KEEP,
		.fsize_max = DISK,
		.nofile_max = 1024,
	};
	const struct wire_exit *end = (const struct wire_exit *)f.data;
	int sock = open_type(WIRE_EXEC, &q, sizeof(q));

	send_text(sock, WIRE_USER, "user");
	send_text(sock, WIRE_ENV, "PATH=/usr/local/bin:/usr/bin:/bin");
	send_text(sock, WIRE_ARG, "/bin/sh");
	send_text(sock, WIRE_ARG, "-c");
	send_text(sock, WIRE_ARG, script);
	assert_int_equal(wire_send(sock, WIRE_GO, NULL, 0), 0);
	for (;;) {
		if (!next_frame(sock, &f))
			fail_msg("no end of: %s", script);
		if (f.head.type == WIRE_OUT || f.head.type == WIRE_ERR)
			print_message("# %.*s\n", (int)wire_len(&f), (const char *)f.data);
		if (f.head.type == WIRE_FAILED)
			fail_msg("cannot run: %s", script);
		if (f.head.type == WIRE_EXIT)
			break;
	}
	if (end->code != 0)
		fail_msg("status %d of: %s", end->code, script);
	fd_close(sock);
}

static int make_box(struct fail *fail)
{
	const struct box_limits limits = {
		.memory_bytes = MEMORY, .disk_bytes = DISK, .files = 65536, .pids = PIDS
	};
	const struct cgroup_limits wanted = { .memory_bytes = MEMORY + DISK, .pids = PIDS };
	static struct template t;
	struct box_template layers = { .root_user = true };
	struct cgroup_limits enforced;
	int r = template_open("base", "", &t, fail);

	if (r == 0)
		r = box_host_open(&host, fail);
	layers.root = t.root;
	layers.usr = t.usr;
	if (r == 0)
		r = box_create(&host, &layers, &limits, &box, fail);
	if (r == 0)
		r = box_await(&box, fail);
	if (r < 0)
		return r;
	enforced = box_enforced(&host.cgroups, &wanted);
	r = cgroup_exec_create(&box.cgroup, &enforced, &leaf);
	return r < 0 ? r :
		       wire_send_fds(box.control_fd, WIRE_LEAF, NULL, 0, leaf.join_fd, leaf.n_join);
}

int main(int argc, char **argv)
{
	static const struct drive in_box = {
		.open = open_op, .sh = sh, .home = "/home/user", .far = "/dev/shm", .in_box = true
	};
	const struct case_list lists[] = {
		{ cases_request, n_cases_request }, { cases_names, n_cases_names },
		{ cases_bytes, n_cases_bytes },     { cases_pipe, n_cases_pipe },
		{ cases_watch, n_cases_watch },     { cases_box, n_cases_box },
	};
	struct fail fail = { 0 };
	int failed = 1;

	if (argc > 1 && argv[1][0] == '-')
		cmocka_set_skip_filter(argv[1] + 1);
	else if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	drive = &in_box;
	if (make_box(&fail) < 0)
		print_error("cannot make a box: %s: %s\n", fail.where, fail.msg);
	else
		failed = cases_run(lists, ARRAY_SIZE(lists));
	cgroup_exec_close(&leaf);
	box_destroy(&box);
	box_host_close(&host);
	return failed != 0;
}
