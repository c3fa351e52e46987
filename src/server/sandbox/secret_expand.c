/* SPDX-License-Identifier: Apache-2.0 */
#include "server/sandbox/secret.h"

int secret_name_parse(const char *text, size_t len, char ret[static STORE_SECRET_NAME_SIZE])
{
	char name[STORE_SECRET_NAME_SIZE] = "";

	if (len == 0 || len > SECRET_NAME_MAX)
		return -EINVAL;
	for (size_t i = 0; i < len; i++) {
		char c = (char)(text[i] >= 'A' && text[i] <= 'Z' ? text[i] - 'A' + 'a' : text[i]);
		bool inside = (c >= '0' && c <= '9') || c == '-';

		if (!((c >= 'a' && c <= 'z') || c == '_' || (i > 0 && inside)))
			return -EINVAL;
		name[i] = c;
	}
	if (strncmp(name, SECRET_ID_PREFIX, strlen(SECRET_ID_PREFIX)) == 0)
		return -EINVAL;
	memcpy(ret, name, sizeof(name));
	return 0;
}

struct out {
	char *text;
	size_t size, len;
};

static int add(struct out *o, const char *text, size_t len, struct fail *fail)
{
	if (len >= o->size - o->len)
		return fail_set(fail, ENOBUFS, "secrets",
				"with its secrets it is longer than %zu bytes", o->size - 1);
	memcpy(o->text + o->len, text, len);
	o->len += len;
	o->text[o->len] = '\0';
	return 0;
}

/* at: behind "${". Gives back the name's begin, and *ret_len, or NULL. */
static const char *name_in(const char *at, size_t *ret_len)
{
	static const char *const prefixes[] = { "secrets.", "e2b.secrets." };

	for (size_t i = 0; i < ARRAY_SIZE(prefixes); i++) {
		size_t n = strlen(prefixes[i]);
		const char *end = strchr(at, '}');

		if (!end || strncmp(at, prefixes[i], n) != 0)
			continue;
		*ret_len = (size_t)(end - at) - n;
		return at + n;
	}
	return NULL;
}

/* What stands at "${…}" is replaced; *at is behind it then. */
static int add_secret(struct out *o, const char **at, secret_lookup *value, void *arg,
		      struct fail *fail)
{
	char name[STORE_SECRET_NAME_SIZE];
	size_t len = 0;
	const char *begin = name_in(*at + 2, &len);
	int r;

	if (!begin || secret_name_parse(begin, len, name) < 0)
		return fail_set(
			fail, EINVAL, "secrets",
			"behind ${ only secrets.NAME} and e2b.secrets.NAME} are understood");
	r = value(arg, name, o->text + o->len, o->size - o->len, fail);
	if (r < 0)
		return r;
	o->len += strlen(o->text + o->len);
	*at = begin + len + 1;
	return 0;
}

int secret_expand_with(const char *text, secret_lookup *value, void *arg, char *ret, size_t size,
		       struct fail *fail)
{
	struct out o = { ret, size, 0 };
	int r = 0;

	ret[0] = '\0';
	while (r == 0 && *text) {
		const char *dollar = strstr(text, "${");
		size_t len = dollar ? (size_t)(dollar - text) : strlen(text);

		r = add(&o, text, len, fail);
		text += len;
		if (r == 0 && dollar)
			r = add_secret(&o, &text, value, arg, fail);
	}
	if (r < 0)
		explicit_bzero(ret, size);
	return r;
}
