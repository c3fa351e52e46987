/* SPDX-License-Identifier: Apache-2.0 */
/* A stream of bytes as a stream of gzip: for clients who ask for nothing but that. */
#pragma once

#include "server/http/http.h"

/* Takes over inner_arg, also when it fails (NULL then). The result goes with gzip_stream. */
void *gzip_new(const struct stream *inner, void *inner_arg);
extern const struct stream gzip_stream;
