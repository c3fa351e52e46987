/* SPDX-License-Identifier: Apache-2.0 */
/* What a single setting's kind cannot say: addresses, paths, and settings that need one another. */
#include "service/config_priv.h"

#include "base/parse.h"

#include <arpa/inet.h>
#include <netinet/in.h>

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

/* As much of a host name's rules as keeps anything but a name, with or without a port, out of Host headers and
 * addresses. */
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

/* Whoever types a flag knows where he is; a file or a unit's environment does not. */
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
