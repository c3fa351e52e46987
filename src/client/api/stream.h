/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A command in a sandbox, followed over HTTP: events come as envelopes (a flag byte, a length,
 * JSON) until the one that ends the stream, while input, signals and window sizes go out as
 * requests of their own.
 */
#pragma once

#include "client/api/api.h"

struct stream_state;

struct stream_events {
	void *arg;
	void (*started)(void *arg, uint32_t pid);
	/* 0, or negative to stop following. */
	int (*output)(void *arg, bool is_err, const void *data, size_t len);
	/* Called whenever one of fds can be read; may call api_rpc(), or stream_post(). Negative to
	 * stop. */
	int (*readable)(void *arg, size_t which);
	/* What became of a stream_post(): as api_rpc(). Negative to stop. */
	int (*posted)(void *arg, int result, struct fail *fail);
	/* At least once a second; NULL: no. */
	void (*tick)(void *arg);
	const int *fds;
	size_t n_fds;               /* changed by readable() to stop listening to the last ones */
	struct stream_state *state; /* for stream_post(), while the stream is followed */
};

struct stream_end {
	bool exited;
	int exit_code;
	char status[64];
};

/* Starts what body (taken) says: a process.Process/Start message. 0 with *ret filled once it has
 * ended. */
_must_check_ int stream_start(struct api *a, const struct api_sandbox *b, json_t *body,
			      const char *user, struct stream_events *events,
			      struct stream_end *ret, struct fail *fail);

/*
 * A call as api_rpc() that may take its time: the stream is followed meanwhile, but of fds only the
 * first is listened to until posted() was told. One that the service refuses for coming too often
 * is made again when it says so. One at a time. Takes body.
 */
_must_check_ int stream_post(struct stream_events *events, struct api *a,
			     const struct api_sandbox *b, const char *method, json_t *body);

/* The exit status of a shell for this end. */
int stream_exit_status(const struct stream_end *end);
