/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One run of untrusted code: its limits and what came of it, for all that run something
 * (`glovebox run`, the service's /v1/run) and tells it in the same words.
 */
#pragma once

#include "base/buf.h"
#include "language/language.h"
#include "run/judge.h"
#include "run/net_log.h"
#include "wire/isolation.h"

#include <jansson.h>

#define RUN_HOME "/home/user"
#define RUN_OUT RUN_HOME "/out"

/* What may be asked for, the same for every way to ask. The rest depends on the machine. */
#define RUN_TIME_MIN_US UINT64_C(1000)
#define RUN_TIME_MAX_US (UINT64_C(86400) * 1000000)
#define RUN_MEMORY_MIN (UINT64_C(4) << 20)
#define RUN_DISK_MIN (UINT64_C(64) << 10)
#define RUN_OUTPUT_MAX (UINT64_C(1) << 32)
#define RUN_FILES_MAX (UINT64_C(1) << 24)
#define RUN_CPU_MILLI_MIN 10u

struct run_usage {
	uint64_t wall_us;
	uint64_t cpu_user_us;
	uint64_t cpu_system_us;
	uint64_t memory_peak;
	uint64_t processes_peak;
	uint64_t read_bytes;
	uint64_t written_bytes;
};

struct run_output {
	char *path;
	uint64_t size;
	unsigned char sha256[32];
};

struct run_refused {
	char *path;
	uint32_t type; /* S_IFMT bits */
};

struct run_result {
	enum run_status status;
	const char *step; /* "run" or "compile": the one that decided */
	int exit_code;    /* -1: none */
	int signal;       /* 0: none */
	bool truncated;
	char message[256]; /* what people should know beyond the status */
	struct buf out;
	struct buf err;
	uint64_t output_bytes; /* both streams, up to the limit */
	struct run_usage usage;
	bool compiled;
	struct run_usage compile_usage;
	uint64_t setup_us; /* from the start to the first command's start */
	struct run_output *outputs;
	size_t n_outputs;
	struct run_refused *refused;
	size_t n_refused;
	size_t refused_more; /* refused and not even named */
	bool isolated;       /* a box came to be: isolation tells the truth */
	struct isolation isolation;
	bool forked;      /* it was a fork of an interpreter that was loaded, not executed */
	int cancelled_by; /* a signal to us, or 0 */
	json_t *network;  /* run_network_json(); NULL: the box had none */
	json_t *learned;  /* rules that would have allowed what it did; NULL: nobody asked */
	json_t *service;  /* the result as a service told it, or NULL */
};

void run_result_done(struct run_result *r);

const char *run_status_name(enum run_status s);

/* The limits of a step: what was given (0: nothing), else what the language needs, else the
 * default. */
struct run_limits run_step_limits(const struct run_limits *given,
				  const struct language_limits *needs);

/* What compiling gets of what was asked for, which is meant for the program. */
struct run_limits run_compile_limits(const struct run_limits *given,
				     const struct language_limits *needs);

/* Where the certificates are in a box whose root has the operator's (egress.ca_bundle): all, and
 * only those. */
#define RUN_CA_FILE "/etc/ssl/certs/ca-certificates.crt"
#define RUN_CA_EXTRA "/opt/glovebox/ca-bundle.pem"

/* The variables of programs in a box with network, "NAME=value", NULL at the end: the proxy and,
 * with the operator's certificates in the box, where they are. What a user sets, in
 * either spelling, is not to be replaced. */
const char *const *run_network_env(bool with_ca);

/*
 * A program's whole environment: nothing of ours, then run_network_env() (NULL: no network), then
 * the language's (may be NULL), then what was asked for (may be NULL); "NAME=value" each, the last
 * one of a name counts.
 */
_must_check_ int run_env(const struct run_limits *limits, const char *const *language,
			 const char *const *network, const char *const *given, char ***ret);
void run_env_free(char **env);

/* By its name; -EINVAL. */
_must_check_ int run_status_parse(const char *name, enum run_status *ret);

/* The result as one JSON object; compile is NULL when nothing was compiled. NULL: no memory. */
json_t *run_result_json(const struct run_result *r, const struct run_limits *limits,
			const struct run_limits *compile);

/* What a box with network did with it: its field "network". catches: programs that know of no
 * proxy were served too. */
#define RUN_CONNECTIONS_SHOWN 100
json_t *run_network_json(const struct net_log *l, bool catches);

/* The protections of a box, as they appear in results. */
json_t *run_isolation_json(const struct isolation *i);

/* Bytes as a JSON string of base64. NULL: no memory. */
json_t *run_base64_json(const void *data, size_t len);
