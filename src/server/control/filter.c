/* SPDX-License-Identifier: Apache-2.0 */
#include "server/control/text.h"

#include "base/parse.h"
#include "server/http/uri.h"

/* One half of a pair: form-decoded, then URI-decoded, and then text. */
static int decode_part(char *text)
{
	int r = uri_decode(text, strlen(text), true, text);

	return r < 0 ? r : uri_decode(text, strlen(text), false, text);
}

static int add_pair(json_t *filter, char *pair)
{
	char *equals = strchr(pair, '=');
	char nothing[1] = "";
	char *value = nothing;

	if (json_object_size(filter) >= FILTER_PAIRS_MAX)
		return -EINVAL;
	if (equals) {
		*equals = '\0';
		value = equals + 1;
	}
	if (decode_part(pair) < 0 || decode_part(value) < 0)
		return -EINVAL;
	return json_object_set_new(filter, pair, json_string(value)) < 0 ? -ENOMEM : 0;
}

int filter_metadata(const char *text, json_t **ret)
{
	_cleanup_(freep) char *copy = strdup(text);
	json_t *filter = json_object();
	char *rest = copy;
	int r = copy && filter ? 0 : -ENOMEM;

	while (r == 0 && rest) {
		char *pair = strsep(&rest, "&");

		if (*pair)
			r = add_pair(filter, pair);
	}
	if (r < 0) {
		json_decref(filter);
		return r;
	}
	*ret = filter;
	return 0;
}

bool filter_matches(const json_t *metadata, const json_t *filter)
{
	const char *key;
	json_t *want;

	/* jansson iterates over what it could change; nothing is changed here. */
	json_object_foreach((json_t *)(uintptr_t)filter, key, want) {
		if (!json_equal(json_object_get(metadata, key), want))
			return false;
	}
	return true;
}

int filter_states(const char *text, unsigned *ret)
{
	unsigned states = 0;

	for (;;) {
		size_t n = strcspn(text, ",");

		if (n == 7 && memcmp(text, "running", n) == 0)
			states |= FILTER_RUNNING;
		else if (n == 6 && memcmp(text, "paused", n) == 0)
			states |= FILTER_PAUSED;
		else
			return -EINVAL;
		if (!text[n])
			break;
		text += n + 1;
	}
	*ret = states;
	return 0;
}

void cursor_text(const struct cursor *c, char ret[static CURSOR_TEXT_SIZE])
{
	(void)snprintf(ret, CURSOR_TEXT_SIZE, "%lld.%s", (long long)c->started_ms, c->id);
}

int cursor_parse(const char *text, struct cursor *ret)
{
	const char *dot = strchr(text, '.');
	struct cursor c = { 0 };
	char number[20];
	uint64_t started;
	size_t n, n_id;

	if (!dot)
		return -EINVAL;
	n = (size_t)(dot - text);
	n_id = strlen(dot + 1);
	if (n >= sizeof(number) || n_id == 0 || n_id >= sizeof(c.id))
		return -EINVAL;
	memcpy(number, text, n);
	number[n] = '\0';
	if (parse_u64(number, &started) < 0 || started > INT64_MAX)
		return -EINVAL;
	if (strspn(dot + 1, "abcdefghijklmnopqrstuvwxyz0123456789") != n_id)
		return -EINVAL;
	c.started_ms = (int64_t)started;
	memcpy(c.id, dot + 1, n_id);
	*ret = c;
	return 0;
}

int cursor_compare(const struct cursor *a, const struct cursor *b)
{
	if (a->started_ms != b->started_ms)
		return a->started_ms < b->started_ms ? -1 : 1;
	return strcmp(a->id, b->id);
}
