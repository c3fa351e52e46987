/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Port 49983: what a client sends (messages in envelopes, headers) and what a hostile agent says about a file or a
 * command (AG-15). The first byte chooses which of them the rest is.
 */
#include "fuzz.h"

#include "server/envd/envd.h"
#include "server/envd/file_head.h"

static struct rpc_error e;

/* An error must have a code and a text; what is no error must not pretend to be one. */
static void check(int r)
{
	assert(r == 0 || r == -EREMOTEIO);
	if (r < 0)
		assert(e.code != RPC_OK && e.code < _RPC_CODE_MAX &&
		       strnlen(e.message, sizeof(e.message)) > 0);
	e = (struct rpc_error){ 0 };
}

static void decode(const json_t *message)
{
	struct envd_selector selector;
	struct envd_start start;
	enum wire_input_kind kind;
	unsigned char *bytes = NULL;
	uint32_t number;
	size_t len;
	int r = envd_decode_start(message, &start, &e);

	if (r == 0) {
		struct buf label = BUF_INIT(ENVD_LABEL_MAX);
		char line[201];

		envd_command_line(&start, line, sizeof(line));
		assert(envd_label_make(&start, &label) == 0 && label.len <= ENVD_LABEL_MAX);
		json_decref(envd_label_read(1, label.data, label.len));
		buf_done(&label);
	}
	check(r);
	check(envd_decode_selector(message, &selector, &e));
	check(envd_decode_signal(message, &number, &e));
	check(envd_decode_input(message, &kind, &bytes, &len, &e));
	free(bytes);
}

static void fuzz_messages(const uint8_t *data, size_t size)
{
	size_t len;

	while (rpc_envelope_next(data, size, &len) == 1) {
		json_t *message = NULL;
		int r = rpc_parse(data + RPC_ENVELOPE_HEAD, len - RPC_ENVELOPE_HEAD, &message, &e);

		assert(len >= RPC_ENVELOPE_HEAD && len <= size);
		check(r);
		if (r == 0)
			decode(message);
		json_decref(message);
		data += len;
		size -= len;
	}
}

static void fuzz_entry(const uint8_t *data, size_t size)
{
	/* As in a frame: aligned, and nothing behind it. */
	uint8_t *copy = malloc(size ? size : 1);
	struct envd_entry entry;

	assert(copy);
	memcpy(copy, data, size);
	if (envd_entry_read(copy, size, &entry) == 0) {
		json_t *info = envd_entry_json(&entry);
		char *text = info ? json_dumps(info, 0) : NULL;

		assert(text); /* whatever bytes the names have */
		free(text);
		json_decref(info);
	}
	free(copy);
}

static void fuzz_exit(const uint8_t *data, size_t size)
{
	struct buf out = BUF_INIT(4096);
	struct wire_exit end = { 0 };

	memcpy(&end, data, MIN(size, sizeof(end)));
	if (envd_event_end(&out, &end, "") == 0) {
		json_t *event = json_loadb((const char *)out.data, out.len, 0, NULL);

		assert(event);
		json_decref(event);
	}
	buf_done(&out);
}

static void fuzz_headers(const uint8_t *data, size_t size)
{
	char *text = strndup((const char *)data, size);
	char disposition[ENVD_DISPOSITION_SIZE], name[64], key[ENVD_ATTR_KEY_MAX + 1];
	uint64_t offset, length, ms;
	int64_t when;

	assert(text);
	if (envd_range_parse(text, size, &offset, &length) == 1)
		assert(length > 0 && offset < size && length <= size - offset);
	envd_disposition(text, disposition);
	for (const char *c = disposition; *c; c++)
		assert(*c >= ' ' && *c <= '~'); /* AG-14: nothing that could end a header */
	(void)envd_identity_accepted(text);
	(void)envd_etag_matches(text, "\"1-2-3\"");
	(void)envd_date_parse(text, &when);
	(void)envd_boundary_ok(text);
	(void)!envd_part_name(text, name, sizeof(name));
	if (envd_attr_key(text, key) == 0)
		assert(strlen(key) <= ENVD_ATTR_KEY_MAX && envd_attr_value_ok(key));
	(void)!rpc_timeout_parse(text, &ms);
	assert(rpc_keepalive_us(text) > 0);
	free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static void (*const kinds[])(const uint8_t *, size_t) = { fuzz_messages, fuzz_entry,
								  fuzz_exit, fuzz_headers };

	if (size == 0)
		return 0;
	kinds[data[0] % ARRAY_SIZE(kinds)](data + 1, size - 1);
	json_decref(envd_label_read(1, data + 1, MIN(size - 1, ENVD_LABEL_MAX)));
	return 0;
}
