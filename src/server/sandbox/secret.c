/* SPDX-License-Identifier: Apache-2.0 */
#include "server/sandbox/secret.h"

#include "server/server.h"

int secret_value(struct server *s, const char *key_id, const char *name, char *ret, size_t size)
{
	_cleanup_(store_secret_done) struct store_secret secret = { 0 };
	char canonical[STORE_SECRET_NAME_SIZE];
	int r = secret_name_parse(name, strlen(name), canonical);

	if (r < 0)
		return -ENOENT;
	r = store_secret_get(s->store, key_id, canonical, &secret);
	return r < 0 ? r : secret_unseal(s->secret_key, &secret, ret, size);
}

struct owner {
	struct server *server;
	const char *key_id;
};

static int look_up(void *arg, const char *name, char *ret, size_t size, struct fail *fail)
{
	const struct owner *o = arg;
	int r = secret_value(o->server, o->key_id, name, ret, size);

	if (r == -ENOENT)
		return fail_set(fail, ENOENT, "secrets", "there is no secret %s", name);
	if (r == -EKEYREJECTED)
		return fail_set(
			fail, EKEYREJECTED, "secrets",
			"the secret %s cannot be read with this service's key: set it again", name);
	if (r == -ENOBUFS)
		return fail_set(fail, ENOBUFS, "secrets", "with the secret %s it is too long",
				name);
	return r < 0 ? fail_set(fail, -r, "secrets", "cannot read the secret %s: %s", name,
				strerror(-r)) :
		       0;
}

int secret_expand(struct server *s, const char *key_id, const char *text, char *ret, size_t size,
		  struct fail *fail)
{
	struct owner o = { s, key_id };

	return secret_expand_with(text, look_up, &o, ret, size, fail);
}
