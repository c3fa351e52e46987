/* SPDX-License-Identifier: Apache-2.0 */
/* The box of a run: made by the warden, filled, run in, looked into, ended; and its network. */
#include "server/run/run.h"

#include "base/clock.h"
#include "server/changes/changes.h"
#include "server/sandbox/outlet.h"
#include "sys/sock.h"

#include <sodium.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>

#define CREATE_MS 30000
#define KILL_MS 10000
#define USAGE_MS 5000
#define SEND_SECONDS 10
#define ANSWER_SECONDS 60 /* for moving one file */

static int ask_warden(struct server_run *o, enum warden_type type, struct warden_frame *f,
		      unsigned ms, struct warden_reply *ret, int *ret_fd, struct fail *fail)
{
	int r = link_ask(o->server->link, type, f, ms, ret, ret_fd);

	if (r < 0)
		return fail_set(fail, -r, "warden", "the warden does not answer: %s", strerror(-r));
	if (ret->err)
		return fail_set(fail, ret->err, ret->where, "%s", ret->msg);
	return 0;
}

static void make_run_id(char ret[WARDEN_ID_SIZE])
{
	static const char alphabet[] = "abcdefghijklmnopqrstuvwxyz0123456789";

	memset(ret, 0, WARDEN_ID_SIZE);
	ret[0] = 'r';
	for (size_t i = 1; i < 21; i++)
		ret[i] = alphabet[randombytes_uniform(sizeof(alphabet) - 1)];
}

/* What the whole box may use: the larger of its two steps. */
static struct warden_limits box_limits(const struct server_run *o)
{
	const struct run_limits *run = &o->run.limits, *compile = &o->compile.limits;
	struct warden_limits l = {
		.memory_bytes = run->memory_bytes,
		.disk_bytes = run->disk_bytes,
		.files = run->files,
		.pids = run->pids,
		.cpu_milli = run->cpu_milli,
	};

	if (o->has_compile) {
		l.memory_bytes = MAX(l.memory_bytes, compile->memory_bytes);
		l.disk_bytes = MAX(l.disk_bytes, compile->disk_bytes);
		l.files = MAX(l.files, compile->files);
		l.pids = MAX(l.pids, compile->pids);
		l.cpu_milli = MAX(l.cpu_milli, compile->cpu_milli);
	}
	return l;
}

static int make_run_box(struct server_run *o, struct fail *fail)
{
	struct warden_frame f = {
		.as_CREATE = { .template = o->template,
			       .flags = o->script ? WARDEN_CREATE_SCRIPT : 0 },
	};
	uint64_t begun_us = clock_boot_us();
	struct warden_reply reply;
	int r;

	make_run_id(f.as_CREATE.id);
	f.as_CREATE.limits = box_limits(o);
	f.as_CREATE.timeout_ms =
		MIN((o->compile.limits.timeout_us + o->run.limits.timeout_us) / 1000,
		    o->server->config.limits_timeout) +
		WARDEN_SLACK_MS;
	memcpy(o->id, f.as_CREATE.id, sizeof(o->id));
	r = ask_warden(o, WARDEN_CREATE, &f, CREATE_MS, &reply, &o->control_fd, fail);
	if (r < 0)
		return r;
	o->result.isolated = true;
	o->result.isolation = reply.box.isolation;
	o->result.setup_us = clock_boot_us() - begun_us;
	return o->control_fd < 0 ?
		       fail_set(fail, EPROTO, "warden", "the box came without a socket") :
		       0;
}

/* Also when making it was not answered: the warden may have made it after all. */
static void end_run_box(struct server_run *o)
{
	struct warden_frame f = { 0 };
	struct warden_reply reply;
	struct fail fail;
	int fd = -EBADF;

	fd_closep(&o->control_fd);
	memcpy(f.as_KILL.id, o->id, sizeof(f.as_KILL.id));
	(void)!ask_warden(o, WARDEN_KILL, &f, KILL_MS, &reply, &fd, &fail);
	fd_close(fd);
}

int server_run_usage(struct server_run *o, struct warden_usage *ret)
{
	struct warden_frame f = { 0 };
	struct warden_reply reply;
	struct fail fail;
	int fd = -EBADF, r;

	memcpy(f.as_USAGE.id, o->id, sizeof(f.as_USAGE.id));
	r = ask_warden(o, WARDEN_USAGE, &f, USAGE_MS, &reply, &fd, &fail);
	fd_close(fd);
	if (r == 0)
		*ret = reply.usage;
	return r;
}

/* AG-09: an agent that neither reads nor answers must not hold us for ever. */
static int limit_op_waiting(int sock)
{
	const struct timeval send = { .tv_sec = SEND_SECONDS },
			     answer = { .tv_sec = ANSWER_SECONDS };

	if (setsockopt(sock, SOL_SOCKET, SO_SNDTIMEO, &send, sizeof(send)) < 0 ||
	    setsockopt(sock, SOL_SOCKET, SO_RCVTIMEO, &answer, sizeof(answer)) < 0)
		return -errno;
	return 0;
}

int server_run_op(struct server_run *o, enum wire_type type, const void *data, size_t len)
{
	int pair[2], r = sock_pair(pair);

	if (r < 0)
		return r;
	r = limit_op_waiting(pair[0]);
	if (r == 0)
		r = wire_send_fds(o->control_fd, type, data, len, &pair[1], 1);
	fd_close(pair[1]);
	if (r < 0) {
		fd_close(pair[0]);
		return r;
	}
	return pair[0];
}

static int start_fs(struct server_run *o, enum wire_fs_op what, uint32_t depth, const char *path)
{
	const struct wire_fs q = { .op = what,
				   .depth = depth,
				   .length = what == WIRE_FS_READ ? UINT64_MAX : 0 };
	int sock = server_run_op(o, WIRE_FS, &q, sizeof(q)), r;

	if (sock < 0)
		return sock;
	r = wire_send(sock, WIRE_PATH, path, strlen(path));
	if (r == 0)
		r = wire_send(sock, WIRE_GO, NULL, 0);
	if (r < 0) {
		fd_close(sock);
		return r;
	}
	return sock;
}

/* The next frame of an answer: 1, 0 when it is done, or why it failed. */
static int next_fs_frame(int sock, struct wire_frame *f)
{
	int r = wire_recv(sock, f, WIRE_ON_FROM_OP);
	struct wire_failed failed;

	if (r <= 0)
		return r < 0 ? r : -EPIPE;
	if (f->head.type == WIRE_DONE)
		return 0;
	if (f->head.type != WIRE_FAILED)
		return 1;
	memcpy(&failed, f->data, sizeof(failed));
	return failed.err > 0 && failed.err < 4096 ? -failed.err : -EIO;
}

static int send_to_box(struct server_run *o, struct wire_frame *f, const char *path,
		       const unsigned char *data, size_t len)
{
	_cleanup_(fd_closep) int sock = start_fs(o, WIRE_FS_WRITE, 0, path);
	int r = sock < 0 ? sock : 0;

	for (size_t at = 0; r == 0 && at < len;) {
		size_t n = MIN(len - at, (size_t)WIRE_DATA_MAX);

		r = wire_send(sock, WIRE_DATA, data + at, n);
		at += n;
	}
	if (r == 0)
		r = wire_send(sock, WIRE_FILE_END, NULL, 0);
	/* Cut off while sending: it has said why. */
	if (sock >= 0 && (r == 0 || r == -EPIPE))
		while ((r = next_fs_frame(sock, f)) > 0)
			;
	return r;
}

static int server_run_send_files(struct server_run *o, struct fail *fail)
{
	_cleanup_(freep) struct wire_frame *f = malloc(sizeof(*f));
	const char *path = o->code_file;
	int r = 0;

	if (!f)
		return fail_set(fail, ENOMEM, "files", "out of memory");
	for (size_t i = 0; r == 0 && i < o->n_files; i++)
		r = send_to_box(o, f, path = o->files[i].path, o->files[i].data, o->files[i].len);
	if (r == 0 && o->code)
		r = send_to_box(o, f, path = o->code_file, (unsigned char *)o->code, o->code_len);
	if (r == -ENOSPC)
		return fail_set(fail, ENOSPC, "files",
				"%.100s does not fit: raise limits.disk_bytes or limits.files",
				path);
	return r < 0 ? fail_set(fail, -r, "files", "cannot write %.100s: %s", path, strerror(-r)) :
		       0;
}

/* One entry of the listing, checked: its path below RUN_OUT as text that ends. */
static int entry_path(const struct wire_frame *f, struct wire_fs_entry *ret,
		      char path[WIRE_PATH_MAX + 1])
{
	memcpy(ret, f->data, sizeof(*ret));
	if (ret->path_len > WIRE_PATH_MAX || ret->path_len > wire_len(f) - sizeof(*ret) ||
	    memchr(f->data + sizeof(*ret), '\0', ret->path_len))
		return -EPROTO;
	memcpy(path, f->data + sizeof(*ret), ret->path_len);
	path[ret->path_len] = '\0';
	return 0;
}

static int add_refused(struct run_result *r, const char *path, uint32_t type)
{
	struct run_refused *list;

	if (r->n_refused >= SERVER_RUN_OUTPUT_FILES_MAX) {
		r->refused_more++;
		return 0;
	}
	list = reallocarray(r->refused, r->n_refused + 1, sizeof(*list));
	if (!list)
		return -ENOMEM;
	r->refused = list;
	list[r->n_refused] = (struct run_refused){ .path = strdup(path), .type = type };
	return list[r->n_refused].path ? (r->n_refused++, 0) : -ENOMEM;
}

static int add_output_file(struct run_result *r, const char *path)
{
	struct run_output *list;

	if (r->n_outputs >= SERVER_RUN_OUTPUT_FILES_MAX)
		return -EFBIG;
	list = reallocarray(r->outputs, r->n_outputs + 1, sizeof(*list));
	if (!list)
		return -ENOMEM;
	r->outputs = list;
	list[r->n_outputs] = (struct run_output){ .path = strdup(path) };
	return list[r->n_outputs].path ? (r->n_outputs++, 0) : -ENOMEM;
}

static int list_outputs(struct server_run *o, struct wire_frame *f)
{
	_cleanup_(fd_closep) int sock = start_fs(o, WIRE_FS_LIST, UINT32_MAX, RUN_OUT);
	char path[WIRE_PATH_MAX + 1];
	int r = sock;

	if (sock < 0)
		return sock;
	while ((r = next_fs_frame(sock, f)) > 0) {
		struct wire_fs_entry entry;

		if (f->head.type != WIRE_ENTRY || entry_path(f, &entry, path) < 0)
			return -EPROTO;
		if (strncmp(path, RUN_OUT "/", sizeof(RUN_OUT)) != 0)
			return -EPROTO;
		if (entry.is_link || entry.type == WIRE_FS_OTHER)
			r = add_refused(&o->result, path + sizeof(RUN_OUT),
					entry.is_link ? S_IFLNK : 0);
		else if (entry.type == WIRE_FS_FILE)
			r = add_output_file(&o->result, path + sizeof(RUN_OUT));
		if (r < 0)
			return r;
	}
	return r == -ENOENT ? 0 : r; /* it left nothing */
}

static int fetch_from_box(struct server_run *o, struct wire_frame *f, struct run_output *out,
			  uint64_t *left)
{
	_cleanup_(buf_done) struct buf data = BUF_INIT((size_t)*left);
	_cleanup_(fd_closep) int sock = -EBADF;
	char path[WIRE_PATH_MAX + sizeof(RUN_OUT) + 2];
	int r;

	(void)snprintf(path, sizeof(path), RUN_OUT "/%s", out->path);
	sock = start_fs(o, WIRE_FS_READ, 0, path);
	if (sock < 0)
		return sock;
	while ((r = next_fs_frame(sock, f)) > 0) {
		if (f->head.type == WIRE_ENTRY)
			continue;
		if (f->head.type != WIRE_DATA)
			return -EPROTO;
		r = server_run_hold(o, wire_len(f));
		if (r == 0)
			r = buf_add(&data, f->data, wire_len(f));
		if (r < 0)
			return r == -ENOBUFS ? -EFBIG : r;
	}
	if (r < 0)
		return r;
	*left -= data.len;
	out->size = data.len;
	(void)crypto_hash_sha256(out->sha256, data.data ? data.data : (const unsigned char *)"",
				 data.len);
	return json_array_append_new(o->contents, run_base64_json(data.data, data.len)) < 0 ?
		       -ENOMEM :
		       0;
}

static int server_run_fetch_outputs(struct server_run *o, struct fail *fail)
{
	_cleanup_(freep) struct wire_frame *f = malloc(sizeof(*f));
	uint64_t left = SERVER_RUN_OUTPUT_BYTES_MAX;
	int r;

	o->contents = json_array();
	if (!f || !o->contents)
		return fail_set(fail, ENOMEM, "outputs", "out of memory");
	r = list_outputs(o, f);
	for (size_t i = 0; r == 0 && i < o->result.n_outputs; i++) {
		r = fetch_from_box(o, f, &o->result.outputs[i], &left);
		if (r < 0) /* the rest is not there to be told of */
			while (o->result.n_outputs > i)
				free(o->result.outputs[--o->result.n_outputs].path);
	}
	if (r == -EFBIG)
		return fail_set(fail, EFBIG, "outputs",
				"the outputs are larger than %llu MiB, or more than %d",
				(unsigned long long)SERVER_RUN_OUTPUT_BYTES_MAX >> 20,
				SERVER_RUN_OUTPUT_FILES_MAX);
	if (r == -EDQUOT)
		return fail_set(fail, EDQUOT, "outputs", SERVER_RUN_FULL);
	return r < 0 ? fail_set(fail, -r, "outputs", "cannot fetch the outputs: %s", strerror(-r)) :
		       0;
}

/* --- its network ------------------------------------------------------------------------------ */

/* The network of a run: what a sandbox has, for as long as the run lasts. */
/* What is the client's to mend is -EBADMSG. */
static int fail_network(const struct problem *p, struct fail *fail)
{
	return fail_set(fail, p->status == 400 ? EBADMSG : EIO, "network", "%s", p->message);
}

int server_run_read_network(struct server *s, const char *key_id, const json_t *settings,
			    struct server_run *o, struct fail *fail)
{
	struct problem p = { 0 };

	(void)snprintf(o->key_id, sizeof(o->key_id), "%s", key_id);
	if (!settings)
		return 0;
	if (network_compile(s, key_id, settings, &o->network, &p) < 0)
		return fail_network(&p, fail);
	return 0;
}

const char *const *server_run_network_env(const struct server_run *o)
{
	if (!network_allows(&o->network))
		return NULL;
	return run_network_env(*o->server->config.egress_ca_bundle != '\0');
}

static int server_run_open_network(struct server_run *o, struct fail *fail)
{
	struct problem p = { 0 };
	bool catches = false;

	if (!network_allows(&o->network))
		return 0;
	if (network_open_doors(o->server, o->id, &catches, &p) < 0)
		return fail_network(&p, fail);
	o->outlet = outlet_open(o->server->outlets, o->id, o->key_id, catches);
	if (!o->outlet)
		return fail_set(fail, ENOMEM, "network", "out of memory");
	return network_apply(o->outlet, &o->network, false, &p) < 0 ? fail_network(&p, fail) : 0;
}

/* The box is gone: what it did with its network goes into the result. */
static void server_run_end_network(struct server_run *o)
{
	if (o->outlet)
		o->result.network = outlet_result(o->outlet);
}

void server_run_forget_network(struct server_run *o)
{
	outlet_close(o->outlet);
	o->outlet = NULL;
	network_done(&o->network);
}

/* --- all of it -------------------------------------------------------------------------------- */

static int run_all_steps(struct server_run *o, struct fail *fail)
{
	int r = server_run_send_files(o, fail);

	if (r == 0 && o->has_compile) {
		o->result.step = "compile";
		o->result.compiled = true;
		r = server_run_do_step(o, &o->compile, &o->result.compile_usage, fail);
		if (r < 0 || o->result.status != RUN_OK)
			return r;
	}
	if (r < 0)
		return r;
	o->result.step = "run";
	return server_run_do_step(o, &o->run, &o->result.usage, fail);
}

int server_run_execute(struct server_run *o, struct fail *fail)
{
	int r = make_run_box(o, fail);

	o->result.exit_code = -1;
	if (r == 0)
		r = server_run_open_network(o, fail);
	if (r == 0)
		r = run_all_steps(o, fail);
	/* The run counts even when its files cannot be had; say so and go on. */
	if (r == 0 && o->fetch_outputs && o->result.status != RUN_SETUP_ERROR &&
	    server_run_fetch_outputs(o, fail) < 0)
		(void)snprintf(o->result.message, sizeof(o->result.message), "%s", fail->msg);
	if (r < 0) {
		o->result.status = RUN_SETUP_ERROR;
		(void)snprintf(o->result.message, sizeof(o->result.message), "%s", fail->msg);
	}
	end_run_box(o);
	server_run_end_network(o);
	return r;
}

json_t *server_run_json(const struct server_run *o)
{
	json_t *all = run_result_json(&o->result, &o->run.limits,
				      o->result.compiled ? &o->compile.limits : NULL);
	json_t *outputs = json_object_get(all, "outputs"), *content;
	size_t i;

	json_array_foreach(o->contents, i, content)
		(void)json_object_set(json_array_get(outputs, i), "content_base64", content);
	return all;
}
