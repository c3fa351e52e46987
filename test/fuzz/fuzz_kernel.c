/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an interpreter says to the agent (AG-16), cut into pieces by the first byte. However it is cut, the
 * same messages come of it, no piece goes beyond its message, and numbers stay numbers.
 */
#include "fuzz.h"

#include "agent/kernel/event.h"

/* What came of it: enough to tell two readings apart. */
struct sum {
	uint64_t begun, finished, bytes, hash;
	bool refused;
};

static void add(struct sum *s, const struct kernel_event *e, int token,
		const struct kernel_bytes *piece)
{
	static const uint64_t most[_KERNEL_WORD_MAX] = { KERNEL_NUMBER_DIGITS, KERNEL_NUMBER_DIGITS,
							 KERNEL_EVENT_MAX, KERNEL_EVENT_MAX, 0 };

	assert(e->word < _KERNEL_WORD_MAX && e->left <= most[e->word]);
	if (token == KERNEL_TOKEN_BEGIN) {
		assert(s->begun == s->finished);
		s->begun++;
		s->hash = s->hash * 31 + e->word;
	} else if (token == KERNEL_TOKEN_PIECE) {
		assert(piece->len > 0 && s->begun == s->finished + 1);
		s->bytes += piece->len;
		for (size_t i = 0; i < piece->len; i++)
			s->hash = s->hash * 31 + piece->at[i];
	} else {
		assert(token == KERNEL_TOKEN_FINISH && e->left == 0);
		if (e->word <= KERNEL_WORD_COUNT)
			assert(e->number > 0 && e->number <= UINT64_C(9999999999));
		s->finished++;
	}
}

static struct sum read_all(const uint8_t *data, size_t size, size_t at_a_time)
{
	struct kernel_event e = { 0 };
	struct sum s = { 0 };

	for (size_t at = 0; at < size; at += at_a_time) {
		struct kernel_bytes in = { .at = data + at, .len = MIN(at_a_time, size - at) };
		struct kernel_bytes piece = { 0 };
		int token;

		while ((token = kernel_event_next(&e, &in, &piece)) != KERNEL_TOKEN_NONE) {
			if (token < 0) {
				assert(token == -EPROTO);
				s.refused = true;
				return s;
			}
			add(&s, &e, token, &piece);
		}
		assert(in.len == 0);
	}
	return s;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct sum whole, cut;

	if (size < 2)
		return 0;
	whole = read_all(data + 1, size - 1, size);
	cut = read_all(data + 1, size - 1, 1 + data[0]);
	assert(whole.begun == cut.begun && whole.finished == cut.finished &&
	       whole.refused == cut.refused);
	/* A number that is refused is refused with all that came with it. */
	if (!whole.refused)
		assert(whole.bytes == cut.bytes && whole.hash == cut.hash);
	return 0;
}
