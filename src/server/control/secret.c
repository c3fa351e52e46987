/* SPDX-License-Identifier: Apache-2.0 */
/* Secrets of a key. A value comes in and never goes out. Each is its key's own: an admin
 * key does not see it either. */
#include "server/control/control_priv.h"

#include "server/sandbox/outlet.h"
#include "server/sandbox/secret.h"

#define SECRETS_PER_KEY_MAX 256
#define METADATA_KEY_MAX 128 /* as E2B has it */
#define METADATA_VALUE_MAX 1024
#define METADATA_MAX 8192
#define UPDATE_TRIES 8

static json_t *secret_json(const struct store_secret *s)
{
	return json_pack("{s:s, s:s, s:I, s:O, s:o, s:o}", "secretID", s->id, "name", s->name,
			 "currentVersion", (json_int_t)s->version, "metadata", s->metadata,
			 "createdAt", clock_json(s->created_ms), "updatedAt",
			 clock_json(s->updated_ms));
}

static int reply_no_secret(struct request *r, int e, const char *what)
{
	struct problem p = { 0 };

	if (e == -ENOENT)
		return reply_error(r, 404, "secret '%s' not found", r->params[0]);
	if (e == -EEXIST)
		return reply_error(r, 409, "there is a secret of this name already");
	if (e == -EDQUOT)
		return reply_error(r, 429, "a key can have %d secrets: delete one first",
				   SECRETS_PER_KEY_MAX);
	(void)problem_internal(&p, e, what);
	return problem_reply(r, &p);
}

/* Who reads it puts it into a header: nothing in it may end one. The text of the value is told in
 * no message. */
static int check_value(const char *value, size_t len, struct problem *p)
{
	if (len < 1 || len > SECRET_VALUE_MAX)
		return problem_set(p, 400, NULL, "value: must have 1 to %d bytes",
				   SECRET_VALUE_MAX);
	for (size_t i = 0; i < len; i++)
		if ((unsigned char)value[i] < ' ' || value[i] == 0x7f)
			return problem_set(p, 400, NULL,
					   "value: must not have control characters, such as the "
					   "end of a line");
	return 0;
}

static int check_metadata(const json_t *metadata, struct problem *p)
{
	size_t total = 0;
	const char *key;
	const json_t *value;

	json_object_foreach((json_t *)(uintptr_t)metadata, key, value) {
		size_t key_len = strlen(key), value_len = json_string_length(value);

		if (key_len > METADATA_KEY_MAX || value_len > METADATA_VALUE_MAX)
			return problem_set(p, 400, NULL,
					   "metadata: a key can have %d bytes, a value %d",
					   METADATA_KEY_MAX, METADATA_VALUE_MAX);
		total += key_len + value_len;
	}
	if (total > METADATA_MAX)
		return problem_set(p, 400, NULL, "metadata: can have %d bytes in all",
				   METADATA_MAX);
	return 0;
}

/* Metadata of the body replace what was there; without any, that stays. */
static int fill_secret(struct request *r, struct store_secret *secret, struct problem *p)
{
	const json_t *value = json_object_get(r->body, "value");
	json_t *metadata = json_object_get(r->body, "metadata");
	int e;

	if (check_value(json_string_value(value), json_string_length(value), p) < 0 ||
	    (metadata && check_metadata(metadata, p) < 0))
		return -EBADMSG;
	if (metadata) {
		json_decref(secret->metadata);
		secret->metadata = json_incref(metadata);
	}
	if (!secret->metadata)
		secret->metadata = json_object();
	e = secret->metadata ? secret_seal(r->server->secret_key, secret, json_string_value(value),
					   json_string_length(value)) :
			       -ENOMEM;
	return e < 0 ? problem_internal(p, e, "keep the secret") : 0;
}

static void new_id(char ret[static STORE_ID_SIZE])
{
	char id[ID_SIZE];

	id_new('s', id);
	(void)snprintf(ret, STORE_ID_SIZE, SECRET_ID_PREFIX "%.*s", ID_LEN, id);
}

int handle_secret_create(struct request *r)
{
	_cleanup_(store_secret_done) struct store_secret secret = { .version = 1,
								    .created_ms = clock_wall_ms() };
	const json_t *name = json_object_get(r->body, "name");
	struct problem p = { 0 };
	int e;

	if (secret_name_parse(json_string_value(name), json_string_length(name), secret.name) < 0)
		return reply_error(
			r, 400,
			"name: must be 1 to %d letters, digits, '_' and '-', begin with a "
			"letter or '_', and not with '" SECRET_ID_PREFIX "'",
			SECRET_NAME_MAX);
	new_id(secret.id);
	memcpy(secret.key_id, r->key.id, sizeof(secret.key_id));
	secret.updated_ms = secret.created_ms;
	if (fill_secret(r, &secret, &p) < 0)
		return problem_reply(r, &p);
	e = store_secret_add(r->server->store, &secret, SECRETS_PER_KEY_MAX);
	if (e < 0)
		return reply_no_secret(r, e, "keep the secret");
	/* a sandbox may have waited for it */
	outlets_secret_changed(r->server->outlets, secret.key_id, secret.name);
	return reply_json(r, 201, secret_json(&secret));
}

/* The one that the path names, by id or name, in any case of letters. */
static int find_secret(struct request *r, struct store_secret *ret)
{
	const char *text = r->params[0];
	char name[STORE_SECRET_NAME_SIZE];

	if (strncmp(text, SECRET_ID_PREFIX, strlen(SECRET_ID_PREFIX)) == 0)
		return store_secret_get(r->server->store, r->key.id, text, ret);
	if (secret_name_parse(text, strlen(text), name) < 0)
		return -ENOENT;
	return store_secret_get(r->server->store, r->key.id, name, ret);
}

int handle_secrets(struct request *r)
{
	const char *after = request_query(r, "nextToken");
	size_t limit = request_number(r, "limit", PAGE_DEFAULT), n = 0;
	struct store_secret *list = NULL;
	json_t *all;
	int e = store_secret_list(r->server->store, r->key.id, after && *after ? after : NULL,
				  limit + 1, &list, &n);

	if (e < 0)
		return reply_no_secret(r, e, "list the secrets");
	all = json_array();
	if (n > limit)
		reply_header(r, "X-Next-Token", list[limit - 1].id);
	for (size_t i = 0; i < n; i++) {
		if (i < limit)
			(void)json_array_append_new(all, secret_json(&list[i]));
		store_secret_done(&list[i]);
	}
	free(list);
	return reply_json(r, 200, all);
}

int handle_secret_get(struct request *r)
{
	_cleanup_(store_secret_done) struct store_secret secret = { 0 };
	int e = find_secret(r, &secret);

	return e < 0 ? reply_no_secret(r, e, "read the secret") :
		       reply_json(r, 200, secret_json(&secret));
}

/* -EBADMSG: *p says why. -ESTALE: somebody else was first. */
static int update_once(struct request *r, struct store_secret *secret, struct problem *p)
{
	int e = find_secret(r, secret);

	if (e < 0)
		return e;
	secret->version++;
	secret->updated_ms = clock_wall_ms();
	e = fill_secret(r, secret, p);
	return e < 0 ? e : store_secret_update(r->server->store, secret);
}

int handle_secret_update(struct request *r)
{
	_cleanup_(store_secret_done) struct store_secret secret = { 0 };
	struct problem p = { 0 };
	int e = -ESTALE;

	for (int i = 0; i < UPDATE_TRIES && e == -ESTALE; i++) {
		store_secret_done(&secret);
		e = update_once(r, &secret, &p);
	}
	if (e == -EBADMSG)
		return problem_reply(r, &p);
	if (e < 0)
		return reply_no_secret(r, e, "keep the secret");
	outlets_secret_changed(r->server->outlets, secret.key_id, secret.name);
	return reply_json(r, 200, secret_json(&secret));
}

int handle_secret_delete(struct request *r)
{
	_cleanup_(store_secret_done) struct store_secret secret = { 0 };
	int e = find_secret(r, &secret);

	if (e == 0)
		e = store_secret_remove(r->server->store, secret.key_id, secret.id);
	if (e < 0)
		return reply_no_secret(r, e, "delete the secret");
	outlets_secret_changed(r->server->outlets, secret.key_id, secret.name);
	return reply_empty(r, 204);
}
