/* SPDX-License-Identifier: Apache-2.0 */
#include "service/config_priv.h"

#include "base/parse.h"
#include "base/utf8.h"
#include "service/config.h"
#include "service/sets.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <netinet/in.h>

/* --- numbers as text: sizes, durations, shares of CPUs, switches ----------------------------- */

static int read_flag(const char *text, uint64_t *ret)
{
	if (strcmp(text, "true") != 0 && strcmp(text, "false") != 0)
		return -EINVAL;
	*ret = text[0] == 't';
	return 0;
}

static int read_millis(const char *text, uint64_t *ret)
{
	uint64_t us;
	int r = parse_duration_us(text, &us);

	if (r < 0)
		return r;
	*ret = us / 1000;
	return 0;
}

static int read_cpus(const char *text, uint64_t *ret)
{
	uint32_t milli;
	int r = parse_cpus_milli(text, &milli);

	if (r < 0)
		return r;
	*ret = milli;
	return 0;
}

static int config_value_read(const struct setting *s, const char *text, uint64_t *ret)
{
	uint64_t number;
	int r = -EINVAL;

	switch (s->kind) {
	case KIND_BYTES:
		r = parse_bytes(text, &number);
		break;
	case KIND_COUNT:
		r = parse_u64(text, &number);
		break;
	case KIND_MILLIS:
		r = read_millis(text, &number);
		break;
	case KIND_CPUS:
		r = read_cpus(text, &number);
		break;
	case KIND_FLAG:
		r = read_flag(text, &number);
		break;
	case KIND_TEXT:
		return -EINVAL;
	}
	if (r < 0)
		return r;
	if (number < s->min || number > s->max)
		return -ERANGE;
	*ret = number;
	return 0;
}

static int config_value_text(const struct setting *s, uint64_t number, char *ret, size_t size)
{
	static const struct unit {
		enum kind kind;
		const char *name;
		uint64_t factor;
	} units[] = {
		{ KIND_BYTES, "T", UINT64_C(1) << 40 },
		{ KIND_BYTES, "G", UINT64_C(1) << 30 },
		{ KIND_BYTES, "M", UINT64_C(1) << 20 },
		{ KIND_BYTES, "K", UINT64_C(1) << 10 },
		{ KIND_MILLIS, "h", 3600000 },
		{ KIND_MILLIS, "m", 60000 },
		{ KIND_MILLIS, "s", 1000 },
		{ KIND_MILLIS, "ms", 1 },
	};
	const char *unit = "";
	char text[48];
	int n;

	if (s->kind == KIND_FLAG) {
		n = snprintf(ret, size, "%s", number ? "true" : "false");
		return n < 0 || (size_t)n >= size ? -ENOBUFS : 0;
	}
	if (s->kind == KIND_CPUS) {
		n = snprintf(text, sizeof(text), "%" PRIu64 ".%03" PRIu64, number / 1000,
			     number % 1000);
		while (n > 0 && text[n - 1] == '0')
			text[--n] = '\0';
		if (n > 0 && text[n - 1] == '.')
			text[--n] = '\0';
		n = snprintf(ret, size, "%s", text);
		return n < 0 || (size_t)n >= size ? -ENOBUFS : 0;
	}
	for (size_t i = 0; i < ARRAY_SIZE(units) && !*unit; i++) {
		if (units[i].kind != s->kind || number == 0 || number % units[i].factor != 0)
			continue;
		unit = units[i].name;
		number /= units[i].factor;
	}
	n = snprintf(ret, size, "%" PRIu64 "%s", number, unit);
	return n < 0 || (size_t)n >= size ? -ENOBUFS : 0;
}

/* For the message about a number that is none, or too small or too large. */
static int config_value_refuse(const struct setting *s, int err, const char *where,
			       struct fail *fail)
{
	static const char *const like[] = {
		[KIND_TEXT] = "text",
		[KIND_BYTES] = "a size like 512M",
		[KIND_COUNT] = "a number",
		[KIND_MILLIS] = "a duration like 30s or 2h",
		[KIND_CPUS] = "a number of CPUs like 2 or 0.5",
		[KIND_FLAG] = "true or false",
	};
	char min[32] = "", max[32] = "";

	if (s->kind == KIND_FLAG)
		return fail_set(fail, -err, "setting", "%s must be %s", where, like[s->kind]);
	if (config_value_text(s, s->min, min, sizeof(min)) < 0 ||
	    config_value_text(s, s->max, max, sizeof(max)) < 0)
		return fail_set(fail, -err, "setting", "%s must be %s", where, like[s->kind]);
	return fail_set(fail, -err, "setting", "%s must be %s, from %s to %s", where, like[s->kind],
			min, max);
}

/* What the settings of [egress] must be. Whether the sets that they name are there is seen when
 * those are read: sets.c. */

struct egress_names {
	size_t n;
	struct fail *fail;
};

static int check_set_name(const char *word, size_t len, void *arg)
{
	struct egress_names *names = arg;
	char name[POLICY_SET_NAME_SIZE] = "";

	if (len < sizeof(name))
		memcpy(name, word, len);
	if (!set_name_ok(name))
		return fail_set(names->fail, EINVAL, "settings",
				"egress.default: '%.*s' cannot be the name of a rule set",
				(int)MIN(len, (size_t)40), word);
	if (++names->n > POLICY_USES_MAX)
		return fail_set(names->fail, E2BIG, "settings",
				"egress.default can name %d rule sets", POLICY_USES_MAX);
	return 0;
}

/* ADDRESS, ADDRESS:PORT or [ADDRESS]:PORT */
static int check_resolver(const char *word, size_t len, void *arg)
{
	struct sockaddr_storage ss;
	struct net_address address;
	char text[64] = "";
	socklen_t ss_len;

	if (address_parse(word, len, &address) == 0)
		return 0;
	if (len < sizeof(text))
		memcpy(text, word, len);
	if (config_parse_listen(text, &ss, &ss_len) < 0)
		return fail_set(arg, EINVAL, "settings",
				"egress.resolver: '%.*s' is not an address, or one with a port",
				(int)MIN(len, (size_t)60), word);
	return 0;
}

static int config_check_egress(const struct config *c, struct fail *fail)
{
	struct egress_names names = { 0, fail };
	int r;

	if (strcmp(c->egress_internet, "listed") != 0 && strcmp(c->egress_internet, "all") != 0)
		return fail_set(fail, EINVAL, "settings",
				"egress.internet must be listed or all, not '%.40s'",
				c->egress_internet);
	/* The password in it is not repeated. */
	if (*c->egress_proxy && (strncmp(c->egress_proxy, "http://", strlen("http://")) != 0 ||
				 strchr(c->egress_proxy, ' ')))
		return fail_set(fail, EINVAL, "settings",
				"egress.proxy must be http://[USER:PASSWORD@]HOST:PORT");
	if (!*c->egress_user || strlen(c->egress_user) > 32 || c->egress_user[0] == '-' ||
	    strpbrk(c->egress_user, "/: "))
		return fail_set(fail, EINVAL, "settings", "egress.user must be the name of a user");
	r = sets_each_word(c->egress_default, check_set_name, &names);
	if (r == 0)
		r = sets_each_word(c->egress_resolver, check_resolver, fail);
	return r < 0 ? r : sets_check_settings(c, fail);
}

/* --- what a single setting's kind cannot say: addresses, paths, settings together ------------ */

#define PORT_MAX 65535
#define DOMAIN_MAX 253

/* Splits "address:port" or "[address]:port". */
static int split_address(const char *text, char *address, size_t size, const char **ret_port)
{
	const char *colon = strrchr(text, ':'), *start = text, *end = colon;

	if (!colon)
		return -EINVAL;
	if (*text == '[') {
		start = text + 1;
		end = colon - 1;
		if (end < start || *end != ']')
			return -EINVAL;
	} else if (memchr(text, ':', (size_t)(colon - text))) {
		return -EINVAL;
	}
	if (end == start || (size_t)(end - start) >= size)
		return -EINVAL;
	memcpy(address, start, (size_t)(end - start));
	address[end - start] = '\0';
	*ret_port = colon + 1;
	return 0;
}

int config_parse_listen(const char *text, struct sockaddr_storage *ret, socklen_t *ret_len)
{
	struct sockaddr_in *v4 = (struct sockaddr_in *)ret;
	struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)ret;
	char address[INET6_ADDRSTRLEN];
	const char *port_text;
	struct in6_addr in6;
	struct in_addr in;
	uint64_t port;
	int r = split_address(text, address, sizeof(address), &port_text);

	if (r < 0)
		return r;
	if (parse_u64(port_text, &port) < 0 || port > PORT_MAX)
		return -EINVAL;
	if (*text != '[' && inet_pton(AF_INET, address, &in) == 1) {
		*ret = (struct sockaddr_storage){ 0 };
		*v4 = (struct sockaddr_in){
			.sin_family = AF_INET,
			.sin_port = htons((uint16_t)port),
			.sin_addr = in,
		};
		*ret_len = sizeof(*v4);
		return 0;
	}
	if (*text == '[' && inet_pton(AF_INET6, address, &in6) == 1) {
		*ret = (struct sockaddr_storage){ 0 };
		*v6 = (struct sockaddr_in6){
			.sin6_family = AF_INET6,
			.sin6_port = htons((uint16_t)port),
			.sin6_addr = in6,
		};
		*ret_len = sizeof(*v6);
		return 0;
	}
	return -EINVAL;
}

/* As much of a host name's rules as keeps anything but a name, with or without a port, out of Host
 * headers and addresses. */
static bool is_domain(const char *text)
{
	size_t len = strcspn(text, ":");
	uint64_t port;

	if (text[len] &&
	    (len == 0 || parse_u64(text + len + 1, &port) < 0 || port < 1 || port > 65535))
		return false;
	if (len > DOMAIN_MAX || strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789-.") != len)
		return false;
	return len == 0 || (text[0] != '.' && text[0] != '-' && text[len - 1] != '.' &&
			    text[len - 1] != '-' && !strstr(text, ".."));
}

/* A flag is typed where the path is known; a file or a unit's environment is read anywhere. */
static int check_path(const struct config *c, size_t i, const char *path, struct fail *fail)
{
	if (*path && *path != '/' && c->source[i] != CONFIG_FLAG)
		return fail_set(fail, EINVAL, "settings", "%s must be a path that begins with /",
				config_name(i));
	return 0;
}

/* What sandboxes get when nobody asks is no more than what one may ask for. */
static int check_defaults(const struct config *c, struct fail *fail)
{
	const struct {
		const char *what;
		uint64_t given, largest;
	} pairs[] = {
		{ "cpus", c->sandbox_cpus, c->limits_cpus },
		{ "memory", c->sandbox_memory, c->limits_memory },
		{ "disk", c->sandbox_disk, c->limits_disk },
		{ "files", c->sandbox_files, c->limits_files },
		{ "pids", c->sandbox_pids, c->limits_pids },
	};

	for (size_t i = 0; i < ARRAY_SIZE(pairs); i++)
		if (pairs[i].given > pairs[i].largest)
			return fail_set(
				fail, EINVAL, "settings",
				"sandbox.%s is more than limits.%s, the largest that one may have",
				pairs[i].what, pairs[i].what);
	return 0;
}

int config_check(const struct config *c, struct fail *fail)
{
	struct sockaddr_storage address;
	socklen_t len;
	int r;

	if (config_parse_listen(c->server_listen, &address, &len) < 0)
		return fail_set(fail, EINVAL, "settings",
				"server.listen must be an address and a port in numbers, like "
				"127.0.0.1:7070 or [::1]:7070, not '%.60s'",
				c->server_listen);
	r = check_path(c, CONFIG_server_state, c->server_state, fail);
	if (r == 0)
		r = check_path(c, CONFIG_server_tls_cert, c->server_tls_cert, fail);
	if (r == 0)
		r = check_path(c, CONFIG_server_tls_key, c->server_tls_key, fail);
	if (r < 0)
		return r;
	if (!*c->server_tls_cert != !*c->server_tls_key)
		return fail_set(
			fail, EINVAL, "settings",
			"server.tls_cert and server.tls_key go together: give both or neither");
	if (!is_domain(c->server_domain))
		return fail_set(
			fail, EINVAL, "settings",
			"server.domain must be a name of a-z 0-9 - and dots, like example.org, or "
			"example.org:8443");
	if (!*c->server_user || strlen(c->server_user) > 32 || c->server_user[0] == '-' ||
	    strpbrk(c->server_user, "/: "))
		return fail_set(fail, EINVAL, "settings", "server.user must be the name of a user");
	r = check_path(c, CONFIG_egress_sets, c->egress_sets, fail);
	if (r == 0)
		r = check_path(c, CONFIG_egress_ca_bundle, c->egress_ca_bundle, fail);
	if (r == 0)
		r = config_check_egress(c, fail);
	return r < 0 ? r : check_defaults(c, fail);
}

/* Where things are when nobody says: for root in the system's directories, for a user in their own.
 */

#define SYSTEM_STATE "/var/lib/glovebox"
#define SYSTEM_FILE "/etc/glovebox/glovebox.toml"

/* $variable/name, or $HOME/below/name. */
static int user_place(const char *variable, const char *below, const char *name, char *ret,
		      size_t size)
{
	const char *dir = getenv(variable), *home = getenv("HOME");
	int n;

	if (dir && *dir == '/')
		n = snprintf(ret, size, "%s/%s", dir, name);
	else if (home && *home == '/')
		n = snprintf(ret, size, "%s/%s/%s", home, below, name);
	else
		return -ENOENT;
	return n < 0 || (size_t)n >= size ? -ENAMETOOLONG : 0;
}

static int copy(const char *text, char *ret, size_t size)
{
	int n = snprintf(ret, size, "%s", text);

	return n < 0 || (size_t)n >= size ? -ENAMETOOLONG : 0;
}

int config_state_dir(const struct config *c, char *ret, size_t size)
{
	if (*c->server_state)
		return copy(c->server_state, ret, size);
	if (geteuid() == 0)
		return copy(SYSTEM_STATE, ret, size);
	return user_place("XDG_DATA_HOME", ".local/share", "glovebox", ret, size);
}

int config_usual_file(char *ret, size_t size)
{
	if (geteuid() == 0)
		return copy(SYSTEM_FILE, ret, size);
	return user_place("XDG_CONFIG_HOME", ".config", "glovebox/glovebox.toml", ret, size);
}

int config_sets_dir(const struct config *c, char *ret, size_t size)
{
	char file[CONFIG_TEXT_SIZE];
	int r, n;

	if (*c->egress_sets)
		return copy(c->egress_sets, ret, size);
	r = config_usual_file(file, sizeof(file));
	if (r < 0)
		return r;
	*strrchr(file, '/') = '\0'; /* the path is absolute */
	n = snprintf(ret, size, "%s/egress", file);
	return n < 0 || (size_t)n >= size ? -ENAMETOOLONG : 0;
}

int config_load(struct config *c, const char *path, char *const *environ_, struct fail *fail)
{
	char usual[CONFIG_TEXT_SIZE];
	int r = 0;

	if (path)
		r = config_read_file(c, path, fail);
	else if (config_usual_file(usual, sizeof(usual)) == 0)
		r = config_read_file(c, usual, fail);
	if (r == -ENOENT && !path)
		r = 0;
	if (r == 0)
		r = config_read_environment(c, environ_, fail);
	if (r == 0)
		r = config_check(c, fail);
	return r;
}

#define VARIABLE_PREFIX "GLOVEBOX_"

static const struct setting settings[] = {
#define ROW(section, key, kind_, text_, number_, min_, max_, help_)                                \
	[CONFIG_##section##_##key] = {                                                             \
		.name = #section "." #key,                                                         \
		.section_len = sizeof(#section) - 1,                                               \
		.help = (help_),                                                                   \
		.text = (text_),                                                                   \
		.number = (number_),                                                               \
		.min = (min_),                                                                     \
		.max = (max_),                                                                     \
		.at = offsetof(struct config, section##_##key),                                    \
		.kind = (kind_),                                                                   \
	},
#define TEXT(section, key, def, help) ROW(section, key, KIND_TEXT, def, 0, 0, 0, help)
#define BYTES(section, key, def, min, max, help)                                                   \
	ROW(section, key, KIND_BYTES, NULL, def, min, max, help)
#define COUNT(section, key, def, min, max, help)                                                   \
	ROW(section, key, KIND_COUNT, NULL, def, min, max, help)
#define MILLIS(section, key, def, min, max, help)                                                  \
	ROW(section, key, KIND_MILLIS, NULL, def, min, max, help)
#define CPUS(section, key, def, min, max, help)                                                    \
	ROW(section, key, KIND_CPUS, NULL, def, min, max, help)
#define FLAG(section, key, def, help) ROW(section, key, KIND_FLAG, NULL, def, 0, 1, help)
#include "service/config.def"
#undef TEXT
#undef BYTES
#undef COUNT
#undef MILLIS
#undef CPUS
#undef FLAG
#undef ROW
};
static_assert(ARRAY_SIZE(settings) == _CONFIG_MAX, "a row for each setting");

const struct setting *config_setting(size_t i)
{
	return &settings[i];
}

int config_find(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(settings); i++)
		if (strcmp(settings[i].name, name) == 0)
			return (int)i;
	return -ENOENT;
}

static void store_number(struct config *c, const struct setting *s, uint64_t number)
{
	void *at = (char *)c + s->at;

	if (s->kind == KIND_FLAG)
		*(bool *)at = number != 0;
	else
		*(uint64_t *)at = number;
}

static uint64_t load_number(const struct config *c, const struct setting *s)
{
	const void *at = (const char *)c + s->at;

	return s->kind == KIND_FLAG ? *(const bool *)at : *(const uint64_t *)at;
}

void config_init(struct config *c)
{
	*c = (struct config){ 0 };
	for (size_t i = 0; i < ARRAY_SIZE(settings); i++) {
		const struct setting *s = &settings[i];

		if (s->kind == KIND_TEXT)
			(void)snprintf((char *)c + s->at, CONFIG_TEXT_SIZE, "%s", s->text);
		else
			store_number(c, s, s->number);
	}
}

/* What is printed of it, or passed on in an argument, is what one sees in the file. */
static bool is_plain_text(const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if ((unsigned char)text[i] < ' ' || text[i] == 0x7f)
			return false;
	return utf8_valid(text, len, NULL);
}

int config_apply(struct config *c, size_t i, const char *value, enum config_source source,
		 const char *where, struct fail *fail)
{
	const struct setting *s = &settings[i];
	bool wins = source >= c->source[i];
	uint64_t number;
	int r;

	if (s->kind == KIND_TEXT) {
		size_t len = strlen(value);

		if (len >= CONFIG_TEXT_SIZE || !is_plain_text(value, len))
			return fail_set(fail, EINVAL, "setting",
					"%s must be plain text of at most %d bytes", where,
					CONFIG_TEXT_SIZE - 1);
		if (wins)
			memcpy((char *)c + s->at, value, len + 1);
	} else {
		r = config_value_read(s, value, &number);
		if (r < 0)
			return config_value_refuse(s, r, where, fail);
		if (wins)
			store_number(c, s, number);
	}
	if (wins)
		c->source[i] = (uint8_t)source;
	return 0;
}

int config_set(struct config *c, const char *name, const char *value, struct fail *fail)
{
	int i = config_find(name);

	if (i < 0)
		return fail_set(fail, ENOENT, "setting", "there is no setting %.60s", name);
	return config_apply(c, (size_t)i, value, CONFIG_FLAG, name, fail);
}

/* The form of a setting's name that flags ("sandbox-memory") or variables ("SANDBOX_MEMORY") have.
 */
static bool same_name(const char *name, const char *given, size_t len, char between, bool capitals)
{
	size_t i;

	for (i = 0; i < len && name[i]; i++) {
		char ch = name[i] == '.' || name[i] == '_' ? between : name[i];

		if (capitals && ch >= 'a' && ch <= 'z')
			ch = (char)(ch - 'a' + 'A');
		if (given[i] != ch)
			return false;
	}
	return i == len && !name[i];
}

const char *config_flag_name(const char *flag)
{
	static const char unnamed[] = "server."; /* its flags do without the section */

	if (strncmp(flag, "--", 2) != 0)
		return NULL;
	for (size_t i = 0; i < ARRAY_SIZE(settings); i++) {
		const char *name = settings[i].name;

		if (strncmp(name, unnamed, sizeof(unnamed) - 1) == 0)
			name += sizeof(unnamed) - 1;
		if (same_name(name, flag + 2, strlen(flag + 2), '-', false))
			return settings[i].name;
	}
	return NULL;
}

/* Other programs of ours have variables too, but none that begins with the name of a section. */
static bool is_section_variable(const char *name, size_t len)
{
	for (size_t i = 0; i < ARRAY_SIZE(settings); i++) {
		char section[32];
		size_t n = settings[i].section_len + 1;

		(void)snprintf(section, sizeof(section), "%.*s", (int)n, settings[i].name);
		if (len > n && same_name(section, name, n, '_', true))
			return true;
	}
	return false;
}

static int read_variable(struct config *c, const char *variable, struct fail *fail)
{
	const char *equals = strchr(variable, '='), *name = variable + strlen(VARIABLE_PREFIX);
	char where[80];
	size_t len;

	if (!equals || equals < name)
		return 0;
	len = (size_t)(equals - name);
	(void)snprintf(where, sizeof(where), "%.*s", (int)MIN(equals - variable, 79), variable);
	for (size_t i = 0; i < ARRAY_SIZE(settings); i++)
		if (same_name(settings[i].name, name, len, '_', true))
			return config_apply(c, i, equals + 1, CONFIG_ENVIRONMENT, where, fail);
	if (is_section_variable(name, len))
		return fail_set(
			fail, ENOENT, "environment",
			"there is no setting for the variable %s; see 'glovebox config show'",
			where);
	return 0;
}

int config_read_environment(struct config *c, char *const *environ_, struct fail *fail)
{
	for (; *environ_; environ_++) {
		int r = 0;

		if (strncmp(*environ_, VARIABLE_PREFIX, strlen(VARIABLE_PREFIX)) == 0)
			r = read_variable(c, *environ_, fail);
		if (r < 0)
			return r;
	}
	return 0;
}

size_t config_count(void)
{
	return ARRAY_SIZE(settings);
}

const char *config_name(size_t i)
{
	return settings[i].name;
}

const char *config_help(size_t i)
{
	return settings[i].help;
}

bool config_is_quoted(size_t i)
{
	return settings[i].kind == KIND_TEXT || settings[i].kind == KIND_BYTES ||
	       settings[i].kind == KIND_MILLIS;
}

int config_text(const struct config *c, size_t i, char *ret, size_t size)
{
	const struct setting *s = &settings[i];
	int n;

	if (s->kind != KIND_TEXT)
		return config_value_text(s, load_number(c, s), ret, size);
	n = snprintf(ret, size, "%s", (const char *)c + s->at);
	return n < 0 || (size_t)n >= size ? -ENOBUFS : 0;
}
