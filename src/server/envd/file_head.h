/* SPDX-License-Identifier: Apache-2.0 */
/* Headers of file transfers: reading what clients send, writing what they get. Pure. */
#pragma once

#include "base/util.h"

/* Range against a file of that size: 1 with the part, 0 for all of it (also for what is not one
 * range of bytes, which a server may ignore), -ERANGE when there is no such part. */
_must_check_ int envd_range_parse(const char *header, uint64_t size, uint64_t *ret_offset,
				  uint64_t *ret_length);

#define ENVD_ETAG_SIZE 64
void envd_etag(int64_t mtime_s, uint32_t mtime_ns, uint64_t size, char ret[ENVD_ETAG_SIZE]);
/* Is the tag in the list of If-None-Match (or is that "*")? */
bool envd_etag_matches(const char *header, const char *etag);

/* A date as HTTP writes it. */
bool envd_date_parse(const char *header, int64_t *ret);

/* Does Accept-Encoding leave the plain file as a possibility? */
bool envd_identity_accepted(const char *header);

/* Does it name gzip and nothing else that it would take? Then the client wants gzip. Most name
 * it because their HTTP library does; for them the plain file is faster. */
bool envd_gzip_wanted(const char *header);

/* "inline", with the last component of the path as the file's name: any bytes may be in it. */
#define ENVD_DISPOSITION_SIZE 1200
void envd_disposition(const char *path, char ret[ENVD_DISPOSITION_SIZE]);

/* Is the boundary in a multipart Content-Type one that RFC 2046 allows? Anything else is refused
 * here, before a parser sees it. */
bool envd_boundary_ok(const char *content_type);

/* The file name of a part, with what browsers' rules for forms escape in it (quote, line ends)
 * restored. 0, or -ENAMETOOLONG. */
_must_check_ int envd_part_name(const char *filename, char *ret, size_t size);

/* X-Metadata-KEY as a key, in lower case: printable, not too long. -ENOENT: another header. */
#define ENVD_ATTR_KEY_MAX 246
#define ENVD_ATTRS_MAX 4096 /* all keys and values together */
_must_check_ int envd_attr_key(const char *header, char ret[ENVD_ATTR_KEY_MAX + 1]);
bool envd_attr_value_ok(const char *value);
