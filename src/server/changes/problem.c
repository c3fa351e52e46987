/* SPDX-License-Identifier: Apache-2.0 */
/* AP-11: what a client is told. Never a path, an address or an errno of this machine. */
#include "server/changes/problem.h"

#include "server/http/http.h"

#include <stdarg.h>

void problem_fill(struct problem *p, unsigned status, const char *code, const char *fmt, ...)
{
	va_list ap;

	p->status = status;
	p->code = code;
	va_start(ap, fmt);
	(void)vsnprintf(p->message, sizeof(p->message), fmt, ap);
	va_end(ap);
}

void problem_fill_internal(struct problem *p, int r, const char *what)
{
	if (r == -ETIMEDOUT)
		problem_fill(p, 503, "busy", "the service is too busy to %s: try again in a moment",
			     what);
	else if (r == -ENOSPC)
		problem_fill(p, 503, "no_space", "the service has no space left to %s", what);
	else if (r == -ENOTCONN)
		problem_fill(p, 503, "stopping",
			     "the service is being restarted: try again in a moment");
	else
		problem_fill(p, 500, NULL, "%s: %s", what, strerror(-r));
}

void problem_fill_warden(struct problem *p, const struct warden_reply *reply, const char *what)
{
	switch (reply->err) {
	case EUSERS:
	case EAGAIN:
	case ENOSPC:
	case ENOMEM:
		problem_fill(p, 503, "sandbox_capacity_unavailable",
			     "no room for another sandbox now: try again in a moment");
		break;
	case EBUSY:
		problem_fill(p, 409, "busy", "the sandbox is not in a state to %s now", what);
		break;
	case EFBIG:
	case EDQUOT:
		problem_fill(p, 507, "no_space", "its files do not fit: could not %s", what);
		break;
	case ENOENT:
		problem_fill(p, 404, NULL, "the sandbox ended while it was to %s", what);
		break;
	default:
		problem_fill(p, 500, NULL, "%s: %s: %s", what, reply->where, reply->msg);
		break;
	}
}

json_t *problem_json(const struct problem *p)
{
	json_t *o;

	if (p->status == 500)
		return json_pack("{s:i, s:s}", "code", 500, "message",
				 "something failed in the service");
	o = json_pack("{s:i, s:s}", "code", (int)p->status, "message", p->message);
	if (p->code)
		(void)json_object_set_new(o, "error_code", json_string(p->code));
	return o;
}

int problem_reply(struct request *r, const struct problem *p)
{
	if (p->status == 500) {
		struct fail fail;

		(void)fail_set(&fail, EIO, r->route->operation, "%.200s", p->message);
		return reply_failure(r, &fail);
	}
	return reply_json(r, p->status, problem_json(p));
}
