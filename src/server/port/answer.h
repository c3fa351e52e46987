/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a program in a box answers, read strictly: an answer that two readers could understand
 * differently is none. Pure: bytes in, a structure out. The library does the grammar; what it is
 * lenient about is refused here.
 */
#pragma once

#include "base/http_parse.h"
#include "base/util.h"

#define PORT_HEAD_MAX ((size_t)32 << 10) /* of an answer's head */
#define PORT_FIELDS_MAX 128

enum port_body {
	PORT_BODY_NONE,   /* there is none: to HEAD, 1xx, 204, 304 */
	PORT_BODY_LENGTH, /* of a length that was said */
	PORT_BODY_CHUNKED,
	PORT_BODY_TO_END, /* until the connection ends */
};

/* In the head's own memory, each with a NUL behind it. */
struct port_field {
	char *name;
	char *value;
	size_t name_len, value_len;
};

struct port_answer {
	unsigned status; /* 100 to 599 */
	enum port_body body;
	uint64_t length; /* that was said, also of a body that does not follow; UINT64_MAX: none */
	bool keeps;      /* the connection can be used again after the body */
	struct port_field field[PORT_FIELDS_MAX];
	size_t n_fields;
	const char *broken; /* what is wrong with it, for people */
	http_parser parser; /* of the chunks */
};

/*
 * The HTTP library takes LF alone for a line end and joins folded lines. Others do not, so before
 * it sees anything: every line ends with CR LF, none begins with a blank, and nothing in one is a
 * control character.
 */
bool port_is_lines(const char *head, size_t len);

/* Where the head ends, with the empty line behind it; 0: not yet. */
size_t port_head_end(const char *data, size_t len);

/*
 * Reads a head of exactly len bytes, which is changed in place. to_head: the answer is to a HEAD
 * request. 0, or -EPROTO with ret->broken.
 */
_must_check_ int port_answer_read(struct port_answer *ret, char *head, size_t len, bool to_head);

const char *port_answer_get(const struct port_answer *a, const char *name);
/* Does a list like that of Connection have this word? */
bool port_list_has(const char *list, const char *word);

/*
 * Takes the chunks apart: len bytes of data, what was in them is moved to its front. Returns how
 * much that is, which may be nothing, or -EPROTO. *ret_end: the last one was seen; *ret_rest is how
 * many bytes behind it there are.
 */
ssize_t port_answer_unchunk(struct port_answer *a, char *data, size_t len, bool *ret_end,
			    size_t *ret_rest);
