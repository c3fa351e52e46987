/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The library that knows the grammar of HTTP/1: llhttp where the distribution has it, else
 * http-parser, which it came from and which is no longer maintained. What is written here once is
 * where they differ.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if __has_include(<llhttp.h>)
#include <llhttp.h>
typedef llhttp_t http_parser;
typedef llhttp_settings_t http_parser_settings;
#else
#include <http_parser.h>
#endif

static inline void http_parse_requests(http_parser *p)
{
#ifdef LLHTTP_VERSION_MAJOR
	llhttp_init(p, HTTP_REQUEST, NULL);
#else
	http_parser_init(p, HTTP_REQUEST);
#endif
}

static inline void http_parse_answers(http_parser *p)
{
#ifdef LLHTTP_VERSION_MAJOR
	llhttp_init(p, HTTP_RESPONSE, NULL);
	llhttp_set_lenient_spaces_after_chunk_size(p, 1); /* as http-parser: some servers fill up */
#else
	http_parser_init(p, HTTP_RESPONSE);
#endif
}

/*
 * Reads on. *ret_used: how much. False when that is no HTTP, or a callback returned anything but 0.
 * When a message is complete its flags may be gone: look at them in on_headers_complete.
 */
static inline bool http_parse(http_parser *p, const http_parser_settings *settings,
			      const char *data, size_t len, size_t *ret_used)
{
#ifdef LLHTTP_VERSION_MAJOR
	enum llhttp_errno e;

	p->settings = (void *)(uintptr_t)settings;
	e = llhttp_execute(p, data, len);
	*ret_used = e == HPE_OK ? len : (size_t)(llhttp_get_error_pos(p) - data);
	return e == HPE_OK || e == HPE_PAUSED_UPGRADE;
#else
	*ret_used = http_parser_execute(p, settings, data, len);
	return HTTP_PARSER_ERRNO(p) == HPE_OK;
#endif
}
