/* SPDX-License-Identifier: Apache-2.0 */
#include "server/control/text.h"

#include "base/parse.h"
#include "policy/policy.h"
#include "server/http/uri.h"

#include <sodium.h>
#include <time.h>

/* --- times ------------------------------------------------------------------------------------ */

/* Exactly n digits from *text on, which is advanced. */
static int time_digits(const char **text, int n, int max, int *ret)
{
	int value = 0;

	for (int i = 0; i < n; i++) {
		char c = *(*text)++;

		if (c < '0' || c > '9')
			return -EINVAL;
		value = value * 10 + (c - '0');
	}
	if (value > max)
		return -EINVAL;
	*ret = value;
	return 0;
}

static int time_separator(const char **text, const char *any)
{
	if (!**text || !strchr(any, **text))
		return -EINVAL;
	(*text)++;
	return 0;
}

/* ".123456789", or nothing. */
static int time_fraction(const char **text, int *ret_ms)
{
	int weight = 100;

	*ret_ms = 0;
	if (**text != '.')
		return 0;
	(*text)++;
	if (**text < '0' || **text > '9')
		return -EINVAL;
	for (; **text >= '0' && **text <= '9'; (*text)++, weight /= 10)
		*ret_ms += (**text - '0') * weight;
	return 0;
}

/* "Z" or "+02:00", and nothing behind it. */
static int time_zone(const char *text, int *ret_minutes)
{
	int sign, hours = 0, minutes = 0, r;

	if ((text[0] == 'Z' || text[0] == 'z') && !text[1]) {
		*ret_minutes = 0;
		return 0;
	}
	sign = *text == '-' ? -1 : 1;
	r = time_separator(&text, "+-");
	if (r == 0)
		r = time_digits(&text, 2, 23, &hours);
	if (r == 0)
		r = time_separator(&text, ":");
	if (r == 0)
		r = time_digits(&text, 2, 59, &minutes);
	if (r < 0 || *text)
		return -EINVAL;
	*ret_minutes = sign * (hours * 60 + minutes);
	return 0;
}

static int date_and_time(const char **text, struct tm *ret)
{
	const struct {
		int *field;
		int digits, max;
		const char *after;
	} parts[] = {
		{ &ret->tm_year, 4, 9999, "-" }, { &ret->tm_mon, 2, 12, "-" },
		{ &ret->tm_mday, 2, 31, "Tt " }, { &ret->tm_hour, 2, 23, ":" },
		{ &ret->tm_min, 2, 59, ":" },    { &ret->tm_sec, 2, 60, NULL },
	};

	for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
		int r = time_digits(text, parts[i].digits, parts[i].max, parts[i].field);

		if (r == 0 && parts[i].after)
			r = time_separator(text, parts[i].after);
		if (r < 0)
			return r;
	}
	ret->tm_year -= 1900;
	ret->tm_mon -= 1;
	return 0;
}

int time_parse(const char *text, int64_t *ret_ms)
{
	struct tm tm = { 0 }, normal;
	int ms = 0, minutes = 0, r;
	time_t seconds;

	r = date_and_time(&text, &tm);
	if (r == 0)
		r = time_fraction(&text, &ms);
	if (r == 0)
		r = time_zone(text, &minutes);
	if (r < 0)
		return r;
	normal = tm;
	normal.tm_sec = MIN(tm.tm_sec, 59); /* a leap second */
	seconds = timegm(&normal);
	/* A day that does not exist (31 April, month 0) comes back as another one. */
	if (normal.tm_mon != tm.tm_mon || normal.tm_mday != tm.tm_mday)
		return -EINVAL;
	*ret_ms = ((int64_t)seconds + (tm.tm_sec - normal.tm_sec) - (int64_t)minutes * 60) * 1000 +
		  ms;
	return 0;
}

void time_span(int64_t ms, char *ret, size_t size)
{
	int64_t seconds = MAX(ms, 0) / 1000;

	if (seconds < 120)
		(void)snprintf(ret, size, "%lld s", (long long)seconds);
	else if (seconds < 7200)
		(void)snprintf(ret, size, "%lld min", (long long)(seconds / 60));
	else if (seconds < 172800)
		(void)snprintf(ret, size, "%lld h", (long long)(seconds / 3600));
	else
		(void)snprintf(ret, size, "%lld days", (long long)(seconds / 86400));
}

/* --- names of templates and snapshots --------------------------------------------------------- */

static bool is_name_char(char c, bool dots)
{
	return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_' ||
	       (dots && c == '.');
}

/* Takes text[0..n) as one part: at least one character, upper case becomes lower case. */
static int name_part(const char *text, size_t n, bool dots, char ret[static NAME_PART_MAX + 1])
{
	if (n == 0 || n > NAME_PART_MAX)
		return -EINVAL;
	for (size_t i = 0; i < n; i++) {
		char c = text[i] >= 'A' && text[i] <= 'Z' ? (char)(text[i] - 'A' + 'a') : text[i];

		if (!is_name_char(c, dots))
			return -EINVAL;
		ret[i] = c;
	}
	ret[n] = '\0';
	return 0;
}

int template_name_parse(const char *text, struct name *ret)
{
	const char *slash = strchr(text, '/');
	const char *name = slash ? slash + 1 : text;
	const char *colon = strchr(name, ':');
	struct name n = { 0 };
	int r = 0;

	if (slash)
		r = name_part(text, (size_t)(slash - text), false, n.space);
	if (r == 0)
		r = name_part(name, colon ? (size_t)(colon - name) : strlen(name), false, n.name);
	if (r == 0 && colon)
		r = name_part(colon + 1, strlen(colon + 1), true, n.tag);
	if (r < 0)
		return r;
	*ret = n;
	return 0;
}

bool name_tag_is_default(const char *tag)
{
	return !*tag || strcmp(tag, "default") == 0 || strcmp(tag, "latest") == 0;
}

/* --- filters ---------------------------------------------------------------------------------- */

/* One half of a pair: form-decoded, then URI-decoded, and then text. */
static int decode_part(char *text)
{
	int r = uri_decode(text, strlen(text), true, text);

	return r < 0 ? r : uri_decode(text, strlen(text), false, text);
}

static int filter_add_pair(json_t *filter, char *pair)
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
			r = filter_add_pair(filter, pair);
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

/* --- signatures of webhooks ------------------------------------------------------------------- */

void signature_text(const char *secret, const char *body, size_t len,
		    char ret[static SIGNATURE_SIZE])
{
	crypto_hash_sha256_state state;
	unsigned char hash[crypto_hash_sha256_BYTES];

	(void)crypto_hash_sha256_init(&state);
	(void)crypto_hash_sha256_update(&state, (const unsigned char *)secret, strlen(secret));
	(void)crypto_hash_sha256_update(&state, (const unsigned char *)body, len);
	(void)crypto_hash_sha256_final(&state, hash);
	(void)sodium_bin2base64(ret, SIGNATURE_SIZE, hash, sizeof(hash),
				sodium_base64_VARIANT_ORIGINAL_NO_PADDING);
}

/* --- addresses -------------------------------------------------------------------------------- */

/* An IPv4 address in the form of IPv6 (::ffff:a.b.c.d) is not public: nobody needs to write one
 * so. */
static bool is_public_net(const struct net_address *a, bool is_v6_form)
{
	return !address_special(a) && !(is_v6_form && address_is_v4(a));
}

bool address_is_public(const struct sockaddr *address)
{
	struct net_address a;
	uint16_t port;

	return address_from_sockaddr(address, &a, &port) == 0 &&
	       is_public_net(&a, address->sa_family == AF_INET6);
}

bool address_text_is_public(const char *host)
{
	struct net_address a;

	return address_parse(host, strlen(host), &a) < 0 || is_public_net(&a, strchr(host, ':'));
}
