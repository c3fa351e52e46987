/* SPDX-License-Identifier: Apache-2.0 */
#include "kernel.h"

#define OOM_SCORE 800
#define FSIZE (UINT64_C(256) << 20)

/* clang-format off */
const char *const kernel_source =
"import os, signal, sys, threading, time, subprocess\n"
"def say(word, text=''):\n"
"    text = text.encode()\n"
"    data = b'%s %d\\n%s' % (word.encode(), len(text), text)\n"
"    while data:\n"
"        data = data[os.write(4, data):]\n"
"def read(n):\n"
"    data = b''\n"
"    while len(data) < n:\n"
"        more = os.read(3, n - len(data))\n"
"        if not more:\n"
"            os._exit(0)\n"
"        data += more\n"
"    return data\n"
"def take():\n"
"    line = b''\n"
"    while not line.endswith(b'\\n'):\n"
"        line += read(1)\n"
"    word, n = line.decode().split()\n"
"    return word, read(int(n)).decode()\n"
"os.set_inheritable(3, False)\n"
"os.set_inheritable(4, False)\n"
"signal.signal(signal.SIGINT, signal.SIG_IGN)\n"
"say('ready', str(os.getpid()))\n"
"space, number = {}, 0\n"
"for name in 'say os signal sys threading time subprocess'.split():\n"
"    space[name] = globals()[name]\n"
"while True:\n"
"    code, asked = '', []\n"
"    while True:\n"
"        word, text = take()\n"
"        if word == 'run':\n"
"            break\n"
"        if word == 'code':\n"
"            code += text\n"
"        else:\n"
"            asked.append(word + ' ' + text)\n"
"    space['asked'] = asked\n"
"    try:\n"
"        if code:\n"
"            number += 1\n"
"            signal.signal(signal.SIGINT, signal.default_int_handler)\n"
"            say('count', str(number))\n"
"        exec(code, space)\n"
"        signal.signal(signal.SIGINT, signal.SIG_IGN)\n"
"    except BaseException as e:\n"
"        say('error', '{\"name\":\"%s\"}' % type(e).__name__)\n"
"    signal.signal(signal.SIGINT, signal.SIG_IGN)\n"
"    sys.stdout.flush()\n"
"    say('end')\n";
/* clang-format on */

static void send_text(int sock, enum wire_type type, const char *text)
{
	/* One that is refused at once takes nothing of it. */
	if (text)
		(void)!wire_send(sock, type, text, strlen(text));
}

int kernel_start(struct box *b, const char *name, const char *const *argv)
{
	const char *const usual[] = { "/usr/bin/python3", "-ISc", kernel_source, NULL };
	struct wire_kernel q = {
		.exec = { .uid = PAYLOAD_USER,
			  .gid = PAYLOAD_USER,
			  .oom_score_adj = OOM_SCORE,
			  .fsize_max = FSIZE,
			  .nofile_max = 4096 },
		.context = { .language = "python" },
	};
	int sock;

	(void)snprintf(q.context.name, sizeof(q.context.name), "%s", name);
	sock = op_open(b, WIRE_KERNEL, &q, sizeof(q));
	send_text(sock, WIRE_USER, "user");
	send_text(sock, WIRE_ENV, "PATH=/opt/glovebox/bin:/usr/local/bin:/usr/bin:/bin");
	for (size_t i = 0; (argv ? argv : usual)[i]; i++)
		send_text(sock, WIRE_ARG, (argv ? argv : usual)[i]);
	send_text(sock, WIRE_GO, "");
	return sock;
}

uint32_t kernel_make(const char *name)
{
	int sock = kernel_start(&box, name, NULL);
	uint32_t pid = expect_started(sock);

	expect_done(sock);
	return pid;
}

int cell_open(const struct cell_spec *s)
{
	struct wire_cell q = {
		.wall_ms = s->wall_ms,
		.cpu_ms = s->cpu_ms,
		.memory_bytes = s->memory_bytes,
		.output_bytes = s->output_bytes,
	};

	(void)snprintf(q.context, sizeof(q.context), "%s", s->context ? s->context : "test");
	return op_open(s->box ? s->box : &box, WIRE_CELL, &q, sizeof(q));
}

int cell_start(const struct cell_spec *s, const char *code)
{
	int sock = cell_open(s);

	send_text(sock, WIRE_BASE, s->base);
	send_text(sock, WIRE_ENV, s->env);
	send_text(sock, WIRE_CWD, s->cwd);
	send_text(sock, WIRE_CODE, code);
	send_text(sock, WIRE_GO, "");
	return sock;
}

static void narrate_bytes(struct story *s, const void *data, size_t len)
{
	size_t fits = MIN(len, sizeof(s->text) - 1 - s->len);

	memcpy(s->text + s->len, data, fits);
	s->len += fits;
	s->text[s->len] = '\0';
}

static void narrate(struct story *s, const char *text)
{
	narrate_bytes(s, text, strlen(text));
}

static void tell_spilled(struct story *s)
{
	const struct wire_spilled *spilled = (const struct wire_spilled *)got.data;

	(void)snprintf(s->spilled[spilled->stream - 1], sizeof(s->spilled[0]), "%.*s",
		       (int)(wire_len(&got) - sizeof(*spilled)), (const char *)(spilled + 1));
}

void cell_follow(int sock, struct story *ret)
{
	static const char *const kinds[_WIRE_EVENT_MAX] = {
		[WIRE_EVENT_COUNT] = "count",
		[WIRE_EVENT_RESULT] = "result",
		[WIRE_EVENT_ERROR] = "error",
	};
	static char event[65536];
	size_t event_len = 0;
	unsigned before = 0, type;

	memset(ret, 0, sizeof(*ret));
	(void)expect_started(sock);
	while ((type = next_frame(sock)) != WIRE_CELL_END) {
		size_t len = wire_len(&got);

		if ((before == WIRE_OUT || before == WIRE_ERR) && before != type)
			narrate(ret, ")");
		if (type == WIRE_OUT || type == WIRE_ERR) {
			assert_int_equal(event_len, 0); /* nothing comes between the pieces */
			if (before != type)
				narrate(ret, type == WIRE_OUT ? "out(" : "err(");
			narrate_bytes(ret, got.data, len);
			*(type == WIRE_OUT ? &ret->n_out : &ret->n_err) += len;
		} else if (type == WIRE_EVENT) {
			memcpy(event + MIN(event_len, sizeof(event)), got.data,
			       MIN(len, sizeof(event) - MIN(event_len, sizeof(event))));
			event_len += len;
		} else if (type == WIRE_EVENT_END) {
			narrate(ret, kinds[((const struct wire_event *)got.data)->kind]);
			narrate(ret, "(");
			narrate_bytes(ret, event, MIN(event_len, sizeof(event)));
			narrate(ret, ")");
			event_len = 0;
		} else {
			assert_int_equal(type, WIRE_SPILLED);
			tell_spilled(ret);
		}
		before = type;
	}
	if (before == WIRE_OUT || before == WIRE_ERR)
		narrate(ret, ")");
	memcpy(&ret->end, got.data, sizeof(ret->end));
	expect_end(sock);
}

void cell_run(const struct cell_spec *s, const char *code, struct story *ret)
{
	cell_follow(cell_start(s, code), ret);
}

int context_tell(const char *name, uint32_t signal)
{
	struct wire_context_tell q = { .signal = signal };
	int sock, err = 0;

	(void)snprintf(q.context, sizeof(q.context), "%s", name);
	sock = op_open(&box, WIRE_CONTEXT_TELL, &q, sizeof(q));
	if (next_frame(sock) == WIRE_FAILED)
		err = ((const struct wire_failed *)got.data)->err;
	else
		assert_int_equal(got.head.type, WIRE_DONE);
	expect_end(sock);
	return err;
}

size_t contexts(char *text, size_t size)
{
	int sock = op_open(&box, WIRE_CONTEXTS, NULL, 0);
	size_t n = 0;

	text[0] = '\0';
	while (next_frame(sock) == WIRE_CONTEXT) {
		const struct wire_context_info *c = (const struct wire_context_info *)got.data;
		size_t at = strlen(text);

		(void)snprintf(text + at, size - at, "%s=%.*s ", c->context.name,
			       (int)(wire_len(&got) - sizeof(*c)), (const char *)(c + 1));
		n++;
	}
	assert_int_equal(got.head.type, WIRE_DONE);
	expect_end(sock);
	return n;
}
