/* SPDX-License-Identifier: Apache-2.0 */
#include "server_rest.h"

#include "server/envd/envd.h"
#include "server/http/exchange.h"

unsigned agent_broke_protocol;

void reply_header(struct request *r, const char *name, const char *value)
{
	(void)r;
	(void)name;
	(void)value;
}

int reply_gone(struct request *r, const char *sandbox_id)
{
	(void)sandbox_id;
	return reply_error(r, 502, " ");
}

void server_log(struct server *s, const char *level, const char *event, json_t *fields)
{
	(void)s;
	(void)level;
	agent_broke_protocol += strcmp(event, "agent_broke_protocol") == 0;
	json_decref(fields);
}

void sandbox_log(struct sandbox *b, const char *level, const char *fmt, ...)
{
	(void)b;
	(void)level;
	(void)fmt;
}

void op_close(struct op *op)
{
	fd_closep(&op->sock);
	fd_closep(&op->theirs);
}

enum run_limit judged_limit;

enum run_limit sandbox_judge(struct sandbox *b, const struct wire_exit *end, struct run_limits *l)
{
	l->memory_bytes = b->limits.memory_bytes;
	if (end->timed_out)
		return RUN_LIMIT_TIME;
	return end->code != 0 ? judged_limit : RUN_LIMIT_NONE;
}
