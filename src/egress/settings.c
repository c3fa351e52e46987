/* SPDX-License-Identifier: Apache-2.0 */
#include "egress/start.h"

#include <gnutls/gnutls.h>
#include <netdb.h>

#define SCHEME "http://"
#define PROXY_VARIABLE "GLOVEBOX_EGRESS_PROXY"

/* From the environment: the proxy's password is in it, and everybody on the machine can read a
 * command line. */
static int read_proxy(struct egress *g, struct config *c, struct fail *fail)
{
	char *url = getenv(PROXY_VARIABLE);
	int r = 0;

	if (url && url[0]) {
		r = config_set(c, "egress.proxy", url, fail);
		explicit_bzero(url, strlen(url));
	}
	if (r == 0 && c->egress_proxy[0])
		r = settings_proxy(g, c->egress_proxy, fail);
	explicit_bzero(c->egress_proxy, sizeof(c->egress_proxy));
	return r;
}

int settings_read(int argc, char **argv, struct egress *g, struct config *ret, struct fail *fail)
{
	config_init(ret);
	for (int i = 1; i < argc; i++) {
		char *equals = strchr(argv[i], '=');
		int r;

		if (strcmp(argv[i], "--learn") == 0) {
			g->learn = true;
			continue;
		}
		if (strncmp(argv[i], "--", 2) != 0 || !equals)
			return fail_set(fail, EINVAL, "settings",
					"'%.100s' is neither --section.key=value nor --learn; this "
					"program is started by `glovebox serve` and `glovebox run`",
					argv[i]);
		*equals = '\0';
		r = config_set(ret, argv[i] + 2, equals + 1, fail);
		if (r < 0)
			return r;
	}
	g->conns_max = ret->egress_connections_total;
	g->proxy_resolves = ret->egress_proxy_resolves;
	return read_proxy(g, ret, fail);
}

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* "USER:PASSWORD" of a URL as the bytes that it stands for. */
static int url_unescape(const char *text, size_t len, char *ret, size_t size)
{
	size_t n = 0;

	for (size_t i = 0; i < len; i++) {
		int c = (unsigned char)text[i];

		if (c == '%') {
			int high = i + 2 < len ? hex_digit(text[i + 1]) : -1;
			int low = high >= 0 ? hex_digit(text[i + 2]) : -1;

			if (low < 0)
				return -EINVAL;
			c = high << 4 | low;
			i += 2;
		}
		if (n + 1 >= size)
			return -EINVAL;
		ret[n++] = (char)c;
	}
	ret[n] = '\0';
	return (int)n;
}

static int set_authorization(struct egress *g, const char *text, size_t len)
{
	char plain[256];
	gnutls_datum_t in = { .data = (unsigned char *)plain }, out = { 0 };
	int n = url_unescape(text, len, plain, sizeof(plain)), r = 0;

	if (n < 0)
		return n;
	in.size = (unsigned)n;
	if (gnutls_base64_encode2(&in, &out) < 0)
		r = -ENOMEM;
	else if (snprintf(g->proxy_authorization, sizeof(g->proxy_authorization), "Basic %s",
			  (const char *)out.data) >= (int)sizeof(g->proxy_authorization))
		r = -EINVAL;
	explicit_bzero(plain, sizeof(plain));
	if (out.data) {
		explicit_bzero(out.data, out.size);
		gnutls_free(out.data);
	}
	return r;
}

/* Splits "HOST:PORT" or "[ADDRESS]:PORT", perhaps with a slash behind, in place. */
static int split_port(char *text, char **ret_host, char **ret_port)
{
	size_t len = strlen(text);
	char *colon;

	if (len > 0 && text[len - 1] == '/')
		text[--len] = '\0';
	colon = strrchr(text, ':');
	if (!colon || !colon[1] || colon[1 + strspn(colon + 1, "0123456789")])
		return -EINVAL;
	*colon = '\0';
	*ret_port = colon + 1;
	*ret_host = text;
	if (text[0] == '[' && colon > text + 1 && colon[-1] == ']') {
		colon[-1] = '\0';
		*ret_host = text + 1;
	}
	return **ret_host ? 0 : -EINVAL;
}

static int find_proxy(struct egress *g, const char *host, const char *port, struct fail *fail)
{
	const struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV };
	struct addrinfo *found = NULL;
	int r = getaddrinfo(host, port, &hints, &found);

	if (r != 0)
		return fail_set(fail, EHOSTUNREACH, "egress.proxy",
				"egress.proxy: %s cannot be found: %s", host, gai_strerror(r));
	memcpy(&g->proxy, found->ai_addr, MIN(found->ai_addrlen, sizeof(g->proxy)));
	freeaddrinfo(found);
	return 0;
}

int settings_proxy(struct egress *g, const char *url, struct fail *fail)
{
	char text[CONFIG_TEXT_SIZE] = "", *at, *host = NULL, *port = NULL;
	int r = -EINVAL;

	if (strncmp(url, SCHEME, strlen(SCHEME)) == 0)
		r = 0;
	if (r == 0)
		(void)snprintf(text, sizeof(text), "%s", url + strlen(SCHEME));
	at = strrchr(text, '@');
	if (r == 0 && at)
		r = set_authorization(g, text, (size_t)(at - text));
	if (r == 0)
		r = split_port(at ? at + 1 : text, &host, &port);
	r = r < 0 ? fail_set(fail, EINVAL, "egress.proxy",
			     "egress.proxy must be http://[USER:PASSWORD@]HOST:PORT") :
		    find_proxy(g, host, port, fail);
	explicit_bzero(text, sizeof(text));
	return r;
}
