/* SPDX-License-Identifier: Apache-2.0 */
/* What the settings of [egress] must be. Whether the sets that they name are there is seen when those are read: sets.c. */
#include "service/config_priv.h"

#include "service/sets.h"

struct names {
	size_t n;
	struct fail *fail;
};

static int check_set_name(const char *word, size_t len, void *arg)
{
	struct names *names = arg;
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

int config_check_egress(const struct config *c, struct fail *fail)
{
	struct names names = { 0, fail };
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
