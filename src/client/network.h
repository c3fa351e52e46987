/* SPDX-License-Identifier: Apache-2.0 */
/* What a sandbox may reach, as options of several verbs. */
#pragma once

#include "base/fail.h"

#include <getopt.h>
#include <jansson.h>

struct api;

#define NETWORK_CONNECTIONS_MAX 500 /* that the service remembers */

/* For getopt_long(): beyond what the verbs' own options are. */
enum { NETWORK_ALLOW = 1024, NETWORK_ALLOW_SET, NETWORK_DENY, NETWORK_OPTIONS_END };

#define NETWORK_OPTIONS                                                                            \
	{ "allow", required_argument, NULL, NETWORK_ALLOW },                                       \
		{ "allow-set", required_argument, NULL, NETWORK_ALLOW_SET },                       \
	{                                                                                          \
		"deny", required_argument, NULL, NETWORK_DENY                                      \
	}

/* Adds one of them to a sandbox's network settings; false: it is none. The service checks it. */
bool network_option(json_t *network, int option, const char *value);
/* After the last. */
void network_options_done(json_t *network);

/* Values of headers that are no placeholders may be secret, and are nobody's business on a screen.
 */
void network_hide_values(json_t *network);

/* What a sandbox did: GET /v1/sandboxes/{id}/connections. */
_must_check_ int network_ask(struct api *a, const char *id, size_t limit, json_t **ret,
			     struct fail *fail);
