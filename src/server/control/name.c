/* SPDX-License-Identifier: Apache-2.0 */
#include "server/control/text.h"

static bool is_name_char(char c, bool dots)
{
	return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_' ||
	       (dots && c == '.');
}

/* Takes text[0..n) as one part: at least one character, upper case becomes lower case. */
static int part(const char *text, size_t n, bool dots, char ret[static NAME_PART_MAX + 1])
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
		r = part(text, (size_t)(slash - text), false, n.space);
	if (r == 0)
		r = part(name, colon ? (size_t)(colon - name) : strlen(name), false, n.name);
	if (r == 0 && colon)
		r = part(colon + 1, strlen(colon + 1), true, n.tag);
	if (r < 0)
		return r;
	*ret = n;
	return 0;
}

bool name_tag_is_default(const char *tag)
{
	return !*tag || strcmp(tag, "default") == 0 || strcmp(tag, "latest") == 0;
}
