/* SPDX-License-Identifier: Apache-2.0 */
/* Keys for people and programs to look at. Their texts are not known to anybody. */
#include "client/key/priv.h"

#include "client/key/time.h"

#include <time.h>

static const struct {
	unsigned bit;
	const char *name;
} scopes[] = {
	{ STORE_SCOPE_SANDBOXES, "sandboxes" },
	{ STORE_SCOPE_READ, "read" },
	{ STORE_SCOPE_ADMIN, "admin" },
};

unsigned key_read_scopes(const char *text)
{
	unsigned found = 0;

	while (*text) {
		size_t len = strcspn(text, ","), i = 0;

		while (i < ARRAY_SIZE(scopes) &&
		       (strlen(scopes[i].name) != len || strncmp(scopes[i].name, text, len) != 0))
			i++;
		if (i == ARRAY_SIZE(scopes))
			return 0;
		found |= scopes[i].bit;
		text += len;
		if (*text == ',' && !*++text)
			return 0;
	}
	return found;
}

static const char *key_state(const struct store_key *key)
{
	if (key->revoked_ms)
		return "revoked";
	if (key->expires_ms && key->expires_ms <= (int64_t)time(NULL) * 1000)
		return "expired";
	return "good";
}

static json_t *time_json(int64_t ms)
{
	char text[KEY_TIME_SIZE];

	if (ms == 0)
		return json_null();
	key_time_text(ms, text);
	return json_string(text);
}

static json_t *key_json(const struct store_key *key)
{
	json_t *names = json_array();

	for (size_t i = 0; i < ARRAY_SIZE(scopes); i++)
		if (key->scopes & scopes[i].bit)
			(void)json_array_append_new(names, json_string(scopes[i].name));
	return json_pack("{ss ss so ss so so so so}", "id", key->id, "name", key->name, "scopes",
			 names, "state", key_state(key), "created", time_json(key->created_ms),
			 "expires", time_json(key->expires_ms), "revoked",
			 time_json(key->revoked_ms), "lastUsed", time_json(key->last_used_ms));
}

/* To the minute, which is as exact as "last used" is. */
static void short_time(int64_t ms, char ret[KEY_TIME_SIZE])
{
	if (ms == 0) {
		(void)snprintf(ret, KEY_TIME_SIZE, "never");
		return;
	}
	key_time_text(ms, ret);
	if (strlen(ret) >= 16) {
		ret[10] = ' ';
		ret[16] = '\0';
	}
}

static void scopes_text(unsigned held, char *ret, size_t size)
{
	size_t len = 0;

	ret[0] = '\0';
	for (size_t i = 0; i < ARRAY_SIZE(scopes) && len < size; i++)
		if (held & scopes[i].bit)
			len += (size_t)snprintf(ret + len, size - len, "%s%s", len ? "," : "",
						scopes[i].name);
}

static void add_time(struct table *t, int64_t ms)
{
	char text[KEY_TIME_SIZE];

	short_time(ms, text);
	table_add(t, "%s", text);
}

static int print_table(const struct store_key *keys, size_t n, bool all)
{
	static const char *const columns[] = {
		"ID", "NAME", "SCOPES", "STATE", "CREATED (UTC)", "EXPIRES", "LAST USED", NULL
	};
	struct table t = { .columns = columns };

	for (size_t i = 0; i < n; i++) {
		char held[64];

		if (keys[i].revoked_ms && !all)
			continue;
		scopes_text(keys[i].scopes, held, sizeof(held));
		table_add(&t, "%s", keys[i].id);
		table_add(&t, "%s", keys[i].name);
		table_add(&t, "%s", held);
		table_add(&t, "%s", key_state(&keys[i]));
		add_time(&t, keys[i].created_ms);
		add_time(&t, keys[i].expires_ms);
		add_time(&t, keys[i].last_used_ms);
	}
	return table_print(&t);
}

int key_print_list(const struct store_key *keys, size_t n, bool json, bool all)
{
	json_t *list;
	int r;

	if (!json)
		return print_table(keys, n, all);
	list = json_array();
	for (size_t i = 0; i < n; i++)
		if (!keys[i].revoked_ms || all)
			(void)json_array_append_new(list, key_json(&keys[i]));
	r = client_print_json(list);
	json_decref(list);
	return r;
}
