/* SPDX-License-Identifier: Apache-2.0 */
/* The network of a one-shot run: what a sandbox has, for as long as the run lasts. */
#include "server/run/run.h"

#include "server/changes/changes.h"
#include "server/sandbox/outlet.h"

/* What is the client's to mend is -EBADMSG. */
static int fail_with(const struct problem *p, struct fail *fail)
{
	return fail_set(fail, p->status == 400 ? EBADMSG : EIO, "network", "%s", p->message);
}

int oneshot_read_network(struct server *s, const char *key_id, const json_t *settings,
			 struct oneshot *o, struct fail *fail)
{
	struct problem p = { 0 };

	o->server = s;
	(void)snprintf(o->key_id, sizeof(o->key_id), "%s", key_id);
	if (!settings)
		return 0;
	if (network_compile(s, key_id, settings, &o->network, &p) < 0)
		return fail_with(&p, fail);
	return 0;
}

const char *const *oneshot_network_env(const struct oneshot *o)
{
	if (!network_allows(&o->network))
		return NULL;
	return run_network_env(*o->server->config.egress_ca_bundle != '\0');
}

int oneshot_open_network(struct oneshot *o, struct fail *fail)
{
	struct problem p = { 0 };
	bool catches = false;

	if (!network_allows(&o->network))
		return 0;
	if (network_open_doors(o->server, o->id, &catches, &p) < 0)
		return fail_with(&p, fail);
	o->outlet = outlet_open(o->server->outlets, o->id, o->key_id, catches);
	if (!o->outlet)
		return fail_set(fail, ENOMEM, "network", "out of memory");
	return network_apply(o->outlet, &o->network, false, &p) < 0 ? fail_with(&p, fail) : 0;
}

void oneshot_end_network(struct oneshot *o)
{
	if (o->outlet)
		o->result.network = outlet_result(o->outlet);
}

void oneshot_forget_network(struct oneshot *o)
{
	outlet_close(o->outlet);
	o->outlet = NULL;
	network_done(&o->network);
}
