/* SPDX-License-Identifier: Apache-2.0 */
#include "client/own.h"

#include "base/clock.h"
#include "client/client.h"

#define SANDBOX_SECONDS 3600 /* how long it outlives a session that breaks off */
#define REFRESH_US (UINT64_C(900) * 1000000)

static json_t *lifetime(json_t *body)
{
	if (json_object_set_new(body, "timeout", json_integer(SANDBOX_SECONDS)) == 0)
		return body;
	json_decref(body);
	return NULL;
}

int own_make(struct own_sandbox *o, json_t *body, struct fail *fail)
{
	struct api_sandbox *b = o->sandbox;
	json_t *made = NULL, *asked = lifetime(body);
	int r;

	if (!asked)
		return fail_set(fail, ENOMEM, "sandbox", "out of memory");
	o->put_off_us = clock_boot_us();
	r = api_call(o->api, "POST", "/v2/sandboxes", asked, &made, fail);
	if (r < 0)
		return r;
	(void)snprintf(b->id, sizeof(b->id), "%s", client_text(made, "sandboxID"));
	(void)snprintf(b->token, sizeof(b->token), "%s", client_text(made, "envdAccessToken"));
	json_decref(made);
	return 0;
}

void own_keep(struct own_sandbox *o)
{
	uint64_t now = clock_boot_us();
	struct fail ignored = { 0 }; /* there are several chances before it ends */
	char path[128];

	if (now - o->put_off_us < REFRESH_US)
		return;
	o->put_off_us = now;
	if (client_path(o->sandbox->id, "/timeout", path, sizeof(path)) == 0)
		(void)!api_call(o->api, "POST", path,
				json_pack("{sI}", "timeout", (json_int_t)SANDBOX_SECONDS), NULL,
				&ignored);
}

void own_remove(const struct own_sandbox *o)
{
	struct fail ignored = { 0 };
	char path[128];

	if (o->sandbox->id[0] && client_path(o->sandbox->id, "", path, sizeof(path)) == 0)
		(void)!api_call(o->api, "DELETE", path, NULL, NULL, &ignored);
}
