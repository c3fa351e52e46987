/* SPDX-License-Identifier: Apache-2.0 */
#include "service/config_priv.h"

#include "base/utf8.h"

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

/* The form of a setting's name that flags ("sandbox-memory") or variables ("SANDBOX_MEMORY") have. */
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
