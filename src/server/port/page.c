/* SPDX-License-Identifier: Apache-2.0 */
/* What we say about a port ourselves: JSON for programs, a page for people. */
#include "server/port/port.h"

#define PAGE_MAX ((size_t)8 << 10)

bool port_wants_page(const struct request *r)
{
	const char *accept = request_header(r, "Accept");

	return accept && strstr(accept, "text/html");
}

/* Nothing in a page is taken for anything but text. */
static int add_escaped(struct buf *b, const char *text)
{
	int r = 0;

	for (; *text && r == 0; text++) {
		const char *as = *text == '&'  ? "&amp;" :
				 *text == '<'  ? "&lt;" :
				 *text == '>'  ? "&gt;" :
				 *text == '"'  ? "&quot;" :
				 *text == '\'' ? "&#39;" :
						 NULL;

		r = as ? buf_add(b, as, strlen(as)) : buf_add(b, text, 1);
	}
	return r;
}

static int add(struct buf *b, const char *text)
{
	return buf_add(b, text, strlen(text));
}

/* No script, nothing from elsewhere: the policy in its header says so to the browser. */
static int make_page(struct buf *b, unsigned status, const char *id, const char *message,
		     const char *detail)
{
	char code[16];
	int r;

	(void)snprintf(code, sizeof(code), "%u", status);
	r = add(b, "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\">"
		   "<meta name=\"viewport\" content=\"width=device-width\"><title>");
	if (r == 0)
		r = add(b, code);
	if (r == 0)
		r = add(b, "</title><style>body{font:16px/1.5 sans-serif;max-width:36em;"
			   "margin:15vh auto;padding:0 1em}code{color:#666}</style><h1>");
	if (r == 0)
		r = add_escaped(b, message);
	if (r == 0)
		r = add(b, detail ? "</h1><p>" : "</h1>");
	if (r == 0 && detail)
		r = add_escaped(b, detail);
	if (r == 0)
		r = add(b, "<p>Sandbox <code>");
	if (r == 0)
		r = add_escaped(b, id);
	return r == 0 ? add(b, "</code></html>\n") : r;
}

int port_page(struct request *r, unsigned status, const char *id, const char *message,
	      const char *detail)
{
	_cleanup_(buf_done) struct buf page = BUF_INIT(PAGE_MAX);
	int n = make_page(&page, status, id, message, detail);

	if (n < 0)
		return n;
	reply_header(r, "Content-Security-Policy",
		     "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'");
	reply_header(r, "Cache-Control", "no-store");
	return reply_text(r, status, "text/html; charset=utf-8", (const char *)page.data);
}

int port_say(struct request *r, unsigned status, const char *sandbox_id, const char *message,
	     const char *detail, bool with_port)
{
	json_t *body;

	if (port_wants_page(r))
		return port_page(r, status, sandbox_id, message, detail);
	body = json_pack("{s:s, s:s, s:i}", "sandboxId", sandbox_id, "message", message, "code",
			 (int)status);
	if (body && with_port)
		(void)json_object_set_new(body, "port", json_integer(r->port));
	if (body && detail)
		(void)json_object_set_new(body, "detail", reply_safe_string(detail));
	return reply_json(r, status, body);
}
