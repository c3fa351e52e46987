/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/policy.h"

static bool is_digit(unsigned char c)
{
	return c >= '0' && c <= '9';
}

static char lower(unsigned char c)
{
	return (char)(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
}

/* NW-09: letters, digits, '-', '_'; nothing that any other reader could take for a border. */
static bool is_label_byte(unsigned char c)
{
	return is_digit(c) || (lower(c) >= 'a' && lower(c) <= 'z') || c == '-' || c == '_';
}

static bool is_label(const unsigned char *label, size_t len)
{
	if (len == 0 || len > POLICY_LABEL_MAX || label[0] == '-' || label[len - 1] == '-')
		return false;
	for (size_t i = 0; i < len; i++)
		if (!is_label_byte(label[i]))
			return false;
	return true;
}

/* NW-04: "127.1", "2130706433" and "0x7f000001" are addresses to some resolvers and proxies. All of
 * these end with a number, and no top-level domain is one. */
static bool label_is_number(const unsigned char *label, size_t len)
{
	bool hexadecimal = len >= 2 && label[0] == '0' && lower(label[1]) == 'x';

	for (size_t i = hexadecimal ? 2 : 0; i < len; i++)
		if (!is_digit(label[i]) &&
		    !(hexadecimal && lower(label[i]) >= 'a' && lower(label[i]) <= 'f'))
			return false;
	return true;
}

static bool label_is_name(const unsigned char *text, size_t len)
{
	size_t begin = 0;

	if (len == 0 || len > POLICY_NAME_MAX)
		return false;
	for (size_t i = 0; i < len; i++) {
		if (text[i] != '.')
			continue;
		if (!is_label(text + begin, i - begin))
			return false;
		begin = i + 1;
	}
	return is_label(text + begin, len - begin) && !label_is_number(text + begin, len - begin);
}

int name_parse(const void *text, size_t len, char ret[static POLICY_NAME_SIZE])
{
	const unsigned char *bytes = text;

	memset(ret, 0, POLICY_NAME_SIZE);
	if (len > 0 && bytes[len - 1] == '.')
		len--;
	if (!label_is_name(bytes, len))
		return -EINVAL;
	for (size_t i = 0; i < len; i++)
		ret[i] = lower(bytes[i]);
	return 0;
}

bool name_ok(const char name[static POLICY_NAME_SIZE])
{
	char canonical[POLICY_NAME_SIZE];

	return name_parse(name, strnlen(name, POLICY_NAME_SIZE), canonical) == 0 &&
	       memcmp(name, canonical, POLICY_NAME_SIZE) == 0;
}

/* NW-10 */
bool name_is_below(const char *name, const char *suffix)
{
	size_t len = strlen(name), suffix_len = strlen(suffix);

	return suffix_len > 0 && len > suffix_len + 1 && name[len - suffix_len - 1] == '.' &&
	       memcmp(name + len - suffix_len, suffix, suffix_len) == 0;
}
