/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The operator's further certificates (egress.ca_bundle), as they get into boxes: for OpenSSL,
 * GnuTLS and most others in one file with the host's, for Node alone in a file of their own, for
 * Java in its trust store.
 */
#pragma once

#include "base/buf.h"
#include "base/fail.h"

#define BUNDLE_MAX ((size_t)1 << 20)

/*
 * The certificates of a PEM text, one after the other; what stands between them stays out. A
 * private key, or anything else that is no certificate, is refused: it would be in every box.
 * -EINVAL.
 */
_must_check_ int bundle_parse(const char *text, size_t len, struct buf *ret, struct fail *fail);

/* The same of a file of at most BUNDLE_MAX bytes. */
_must_check_ int bundle_read(const char *path, struct buf *ret, struct fail *fail);

/* Puts them into a root that has got its copy of the host's /etc/ssl. */
_must_check_ int bundle_write(int root_fd, const struct buf *bundle, struct fail *fail);

/* The certificates as a Java key store whose checksum nobody has computed; `keytool` reads it
 * without. */
_must_check_ int bundle_java_source(const struct buf *bundle, struct buf *ret);
