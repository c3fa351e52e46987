/* SPDX-License-Identifier: Apache-2.0 */
/* The texts of the control plane: times, template names, filters. Nothing here knows of a
 * request. */
#pragma once

#include "server/sandbox/id.h"

#include <jansson.h>
#include <sys/socket.h>

/* --- times ------------------------------------------------------------------------------------ */

/* RFC 3339, any zone; what is finer than a millisecond is cut off. -EINVAL. */
_must_check_ int time_parse(const char *text, int64_t *ret_ms);
/* "5 s", "3 min", "2 h", "4 days": for people. */
void time_span(int64_t ms, char *ret, size_t size);

/* --- names of templates and snapshots --------------------------------------------------------- */

#define NAME_PART_MAX 128

/* [NAMESPACE/]NAME[:TAG], in lower case; a part that is not there is "". */
struct name {
	char space[NAME_PART_MAX + 1];
	char name[NAME_PART_MAX + 1];
	char tag[NAME_PART_MAX + 1];
};

_must_check_ int template_name_parse(const char *text, struct name *ret); /* -EINVAL */
/* Is it one of the tags that every template has? "" is. */
bool name_tag_is_default(const char *tag);

/* --- filters ---------------------------------------------------------------------------------- */

#define FILTER_PAIRS_MAX 64

/*
 * The pairs of a metadata filter, as an object of strings. The text is the query's value after one
 * decoding: pairs that are form-encoded, whose parts were URI-encoded before that. -EINVAL.
 */
_must_check_ int filter_metadata(const char *text, json_t **ret);
bool filter_matches(const json_t *metadata, const json_t *filter);

#define FILTER_RUNNING 1u
#define FILTER_PAUSED 2u

/* "running,paused" as bits. -EINVAL. */
_must_check_ int filter_states(const char *text, unsigned *ret);

/* Where a page of sandboxes ended. */
struct cursor {
	int64_t started_ms;
	char id[ID_SIZE];
};

#define CURSOR_TEXT_SIZE 64

void cursor_text(const struct cursor *c, char ret[static CURSOR_TEXT_SIZE]);
_must_check_ int cursor_parse(const char *text, struct cursor *ret); /* -EINVAL */
/* Order of start, then of id: < 0, 0, > 0. */
int cursor_compare(const struct cursor *a, const struct cursor *b);

/* --- signatures of webhooks ------------------------------------------------------------------- */

#define SIGNATURE_SIZE 48

/* base64(SHA-256(secret, body)) without padding. */
void signature_text(const char *secret, const char *body, size_t len,
		    char ret[static SIGNATURE_SIZE]);

/* --- addresses -------------------------------------------------------------------------------- */

/* Is it an address of the public Internet? Those that are not are the ones that no box gets to
 * either (policy/special.c), and IPv4 addresses written as IPv6. */
bool address_is_public(const struct sockaddr *address);
/* The same for text without brackets. Text that is no address at all is a name and passes. */
bool address_text_is_public(const char *host);
