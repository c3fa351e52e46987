/* SPDX-License-Identifier: Apache-2.0 */
/*
 * POST /files, in three layers, with constant memory but for a few words about each file, which are bounded:
 *
 *	envd/upload.c  the request: what kind of body it is, gzip, the reply
 *	envd/parts.c   multipart: which part goes where
 *	envd/sink.c    one file on its way into the box
 *	envd/pour.c    the rest of a large one: the kernel moves it, nobody here sees it
 */
#pragma once

#include "server/envd/envd.h"

#include <zlib.h>

/* One file. What happened to it is in the upload. */
struct sink {
	struct talk *talk; /* NULL: none is being written */
	char *path;        /* where to, as the client says it */
	uint64_t bytes;
	size_t n; /* of: */
	unsigned char
		data[WIRE_DATA_MAX]; /* small pieces are collected, a frame is a system call */
};

struct upload {
	struct request *request;
	char user[RPC_USER_SIZE];
	const char *path; /* of the query, or NULL */
	struct buf attrs; /* key, NUL, value, NUL … */
	json_t *written;  /* the reply */
	uint64_t kept;    /* bytes of what the agent said of them */
	json_t *targets;  /* hashes of every path that was written to, as an object's keys */
	struct MHD_PostProcessor *parts; /* NULL: the body is the file */
	int part_error;                  /* what made the parser stop */
	z_stream gzip;
	bool gzipped;
	bool gzip_ended;
	unsigned char *piece; /* unpacked */
	uint64_t room;        /* how much a compressed body may still grow to */
	int error;            /* what went wrong, once something did, */
	uint64_t dropped;     /* and how much came after it */
	unsigned status;      /* what to reply with, once something went wrong, and why: */
	char why[512];
	struct sink sink;
};

/* Notes what to reply and returns -EREMOTEIO: "it is in the upload". */
int upload_fail(struct upload *u, unsigned status, const char *fmt, ...) _printf_(3, 4);

/* These return 0, -EREMOTEIO, or as talk_recv(). */
_must_check_ int sink_open(struct upload *u, const char *path);
_must_check_ int sink_write(struct upload *u, const void *data, size_t len);
_must_check_ int sink_flush(struct upload *u);   /* what was collected is on its way */
_must_check_ int sink_failure(struct upload *u); /* the agent gave up: why */
_must_check_ int sink_pour(struct upload *u);    /* all that is left of the body, if it is much */
_must_check_ int sink_finish(struct upload *u);  /* the file is there, or it is not */
void sink_drop(struct upload *u);                /* nothing of it stays */
/* The same, and waits until its space is free again, so that a client that is told can count on it. */
void sink_undo(struct upload *u);

_must_check_ int parts_open(struct upload *u);
_must_check_ int parts_feed(struct upload *u, const void *data, size_t len);
_must_check_ int parts_finish(struct upload *u);
void parts_drop(struct upload *u);
