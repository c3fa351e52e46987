/* SPDX-License-Identifier: Apache-2.0 */
#include "drive.h"

#include "base/clock.h"
#include "sys/sock.h"
#include "template/template.h"

#include <dirent.h>
#include <poll.h>

#define MEMORY (UINT64_C(512) << 20)
#define DISK (UINT64_C(256) << 20)
#define PIDS 1024
#define OOM_SCORE 800

static struct box_host host = BOX_HOST_INIT;
static struct cgroup_exec leaves[2] = { CGROUP_EXEC_INIT, CGROUP_EXEC_INIT };
struct box box = BOX_INIT, plain_box = BOX_INIT;
struct wire_frame got;

/* What has come and was not waited for yet; a new terminal starts with expect_started(). */
static char seen[65536];
static size_t n_seen;

static int fail_loudly(const struct fail *fail)
{
	print_error("%s: %s\n", fail->where, fail->msg);
	return -1;
}

/* The leaf that later commands join, as the warden makes it. */
static int send_leaf(struct box *b, struct cgroup_exec *leaf)
{
	const struct cgroup_limits wanted = { .memory_bytes = MEMORY + DISK, .pids = PIDS };
	const struct cgroup_limits limits = box_enforced(&host.cgroups, &wanted);
	int r = cgroup_exec_create(&b->cgroup, &limits, leaf);

	return r < 0 ? r :
		       wire_send_fds(b->control_fd, WIRE_LEAF, NULL, 0, leaf->join_fd,
				     leaf->n_join);
}

static int make_box(bool root, struct box *ret, struct cgroup_exec *leaf)
{
	const struct box_limits limits = {
		.memory_bytes = MEMORY, .disk_bytes = DISK, .files = 65536, .pids = PIDS
	};
	struct box_template layers = { .root_user = root };
	static struct template t;
	struct fail fail = { 0 };
	int r = template_open("base", "", &t, &fail);

	layers.root = t.root;
	layers.usr = t.usr;
	if (r == 0)
		r = box_create(&host, &layers, &limits, ret, &fail);
	if (r == 0)
		r = box_await(ret, &fail);
	if (r < 0)
		return fail_loudly(&fail);
	return send_leaf(ret, leaf);
}

int drive_open(void **state)
{
	struct fail fail = { 0 };

	(void)state;
	if (box_host_open(&host, &fail) < 0)
		return fail_loudly(&fail);
	if (make_box(true, &box, &leaves[0]) < 0 || make_box(false, &plain_box, &leaves[1]) < 0)
		return -1;
	return 0;
}

int drive_close(void **state)
{
	(void)state;
	cgroup_exec_close(&leaves[0]);
	cgroup_exec_close(&leaves[1]);
	box_destroy(&box);
	box_destroy(&plain_box);
	box_host_close(&host);
	return 0;
}

uint64_t now_ms(void)
{
	return clock_boot_us() / 1000;
}

size_t agent_fds(void)
{
	char path[32];
	size_t n = 0;
	DIR *dir;

	(void)snprintf(path, sizeof(path), "/proc/%d/fd", box.pid);
	dir = opendir(path);
	assert_non_null(dir);
	while (readdir(dir))
		n++;
	(void)closedir(dir);
	return n;
}

uint64_t agent_cpu_ms(void)
{
	unsigned long user = 0, sys = 0;
	char path[32], text[1024] = "", *at;
	FILE *f;

	(void)snprintf(path, sizeof(path), "/proc/%d/stat", box.pid);
	f = fopen(path, "re");
	assert_non_null(f);
	(void)!fread(text, 1, sizeof(text) - 1, f);
	(void)fclose(f);
	at = strrchr(text, ')'); /* behind the name, which may be anything */
	assert_non_null(at);
	assert_int_equal(sscanf(at, ") %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user,
				&sys),
			 2);
	return (user + sys) * 1000 / (unsigned long)sysconf(_SC_CLK_TCK);
}

int op_open(struct box *b, enum wire_type type, const void *data, size_t len)
{
	int pair[2];

	assert_int_equal(sock_pair(pair), 0);
	assert_int_equal(wire_send_fds(b->control_fd, type, data, len, &pair[1], 1), 0);
	fd_close(pair[1]);
	return pair[0];
}

static void send_text(int sock, enum wire_type type, const char *text)
{
	if (text)
		assert_int_equal(wire_send(sock, type, text, strlen(text)), 0);
}

int exec_prepare(const struct spec *s, const char *const *argv)
{
	const struct wire_exec q = {
		.uid = PAYLOAD_USER,
		.gid = PAYLOAD_USER,
		.flags = s->flags | (s->not_kept ? 0 : WIRE_EXEC_KEEP),
		.oom_score_adj = OOM_SCORE,
		.fsize_max = DISK,
		.nofile_max = 4096,
		.timeout_ms = s->timeout_ms,
		.rows = s->rows,
		.cols = s->cols,
	};
	int sock = op_open(s->box ? s->box : &box, WIRE_EXEC, &q, sizeof(q));

	send_text(sock, WIRE_USER, s->user ? s->user : "user");
	send_text(sock, WIRE_CWD, s->cwd);
	send_text(sock, WIRE_LABEL, s->label);
	send_text(sock, WIRE_ENV, "PATH=/opt/glovebox/bin:/usr/local/bin:/usr/bin:/bin");
	for (size_t i = 0; s->env && s->env[i]; i++)
		send_text(sock, WIRE_ENV, s->env[i]);
	for (size_t i = 0; argv[i]; i++)
		send_text(sock, WIRE_ARG, argv[i]);
	return sock;
}

int exec_start(const struct spec *s, const char *const *argv)
{
	int sock = exec_prepare(s, argv);

	assert_int_equal(wire_send(sock, WIRE_GO, NULL, 0), 0);
	return sock;
}

int sh_start(const struct spec *s, const char *script)
{
	return exec_start(s, (const char *const[]){ "/bin/bash", "-c", script, NULL });
}

bool quiet(int sock, int ms)
{
	struct pollfd p = { .fd = sock, .events = POLLIN };

	return poll(&p, 1, ms) == 0;
}

unsigned next_frame(int sock)
{
	int r;

	if (quiet(sock, WAIT_MS))
		fail_msg("no frame within %d ms", WAIT_MS);
	r = wire_recv(sock, &got, WIRE_ON_FROM_OP);
	assert_true(r >= 0);
	return r == 0 ? 0 : got.head.type;
}

uint32_t expect_started(int sock)
{
	unsigned type = next_frame(sock);

	if (type == WIRE_FAILED) {
		const struct wire_failed *f = (const struct wire_failed *)got.data;

		fail_msg("cannot %s: %s", wire_step_name(f->step), strerror(f->err));
	}
	assert_int_equal(type, WIRE_STARTED);
	n_seen = 0;
	return ((const struct wire_process *)got.data)->pid;
}

void expect_failed(int sock, uint32_t step, int err)
{
	const struct wire_failed *f = (const struct wire_failed *)got.data;

	assert_int_equal(next_frame(sock), WIRE_FAILED);
	assert_int_equal(f->step, step);
	assert_int_equal(f->err, err);
	expect_end(sock);
}

void expect_done(int sock)
{
	assert_int_equal(next_frame(sock), WIRE_DONE);
	expect_end(sock);
}

void expect_end(int sock)
{
	assert_int_equal(next_frame(sock), 0);
	fd_close(sock);
}

void follow(int sock, struct outcome *ret)
{
	ret->len = 0;
	ret->text[0] = '\0';
	for (;;) {
		unsigned type = next_frame(sock);
		size_t len = wire_len(&got), room = sizeof(ret->text) - 1;

		if (type == WIRE_EXIT)
			break;
		assert_true(type == WIRE_OUT || type == WIRE_ERR || type == WIRE_PTY);
		if (ret->len < room) {
			memcpy(ret->text + ret->len, got.data, MIN(len, room - ret->len));
			ret->text[MIN(ret->len + len, room)] = '\0';
		}
		ret->len += len;
	}
	memcpy(&ret->exit, got.data, sizeof(ret->exit));
	expect_end(sock);
}

void await_text(int sock, const char *text)
{
	char *at;

	while (!(at = memmem(seen, n_seen, text, strlen(text)))) {
		if (quiet(sock, WAIT_MS))
			fail_msg("'%s' did not come, but: %.*s", text, (int)n_seen, seen);
		assert_int_equal(next_frame(sock), WIRE_PTY);
		assert_true(n_seen + wire_len(&got) < sizeof(seen));
		memcpy(seen + n_seen, got.data, wire_len(&got));
		n_seen += wire_len(&got);
	}
	at += strlen(text);
	n_seen -= (size_t)(at - seen);
	memmove(seen, at, n_seen);
}

void run_sh(const struct spec *s, const char *script, struct outcome *ret)
{
	int sock = sh_start(s, script);

	ret->pid = expect_started(sock);
	follow(sock, ret);
}

unsigned tell(uint32_t pid, uint32_t what, uint32_t signal, uint16_t rows, uint16_t cols)
{
	const struct wire_tell q = {
		.pid = pid, .what = what, .signal = signal, .rows = rows, .cols = cols
	};
	int sock = op_open(&box, WIRE_TELL, &q, sizeof(q));
	unsigned type = next_frame(sock);

	fd_close(sock);
	return type;
}

int attach(uint32_t pid)
{
	const struct wire_process q = { .pid = pid };

	return op_open(&box, WIRE_ATTACH, &q, sizeof(q));
}

int input_open(uint32_t pid)
{
	const struct wire_process q = { .pid = pid };

	return op_open(&box, WIRE_INPUT, &q, sizeof(q));
}

void send_input(uint32_t pid, const char *text)
{
	int sock = input_open(pid);

	send_text(sock, WIRE_IN, text);
	assert_int_equal(wire_send(sock, WIRE_IN_END, NULL, 0), 0);
	expect_done(sock);
}

/* All groups, or those that are named. */
int main(int argc, char **argv)
{
	/* In the order of what they build upon; each group has boxes of its own. */
	static const struct {
		const char *name;
		int (*run)(void);
	} groups[] = {
		{ "life", cases_life },
		{ "input", cases_input },
		{ "end", cases_end },
		{ "user", cases_user },
		{ "sudo", cases_sudo },
		{ "root", cases_root },
		{ "runner", cases_runner },
		{ "kernel", cases_kernel },
		{ "kernel-end", cases_kernel_end },
		{ "kernel-adopt", cases_kernel_adopt },
	};
	int failed = 0;

	for (size_t i = 0; i < ARRAY_SIZE(groups); i++) {
		bool wanted = argc < 2;

		for (int k = 1; k < argc; k++)
			wanted = wanted || strcmp(argv[k], groups[i].name) == 0;
		if (wanted)
			failed += groups[i].run();
	}
	return failed ? 1 : 0;
}
