/* SPDX-License-Identifier: Apache-2.0 */
/*
 * After the death of a server or of the whole service: the next one takes up what it was at. The
 * record holds. A sandbox that is on record as paused without memory but still has a box was being
 * paused, or resumed: the box goes (sandbox/boxes.c). A layer that is on record as pending was being made: it
 * goes unless somebody stands on it by now.
 */
#include "server/control/control_priv.h"

#include "server/sandbox/reason.h"

/* In the worker's thread. */
static void finish(struct sandbox *b)
{
	struct sandbox_config c;

	if (change_begin(b) < 0)
		return;
	sandbox_config_of(b, &c);
	c.n_layers = 0;
	layers_release(b->server, &c);
	if (change_snapshot_done(b) < 0)
		sandbox_log(b, "error", "a snapshot that was not finished could not be forgotten");
	change_end(b);
}

static void take_up(struct sandbox *b)
{
	struct sandbox_config c;

	sandbox_config_of(b, &c);
	if (*c.pending)
		worker_add(b, finish);
	if (!c.cold)
		worker_add(b, network_take_up);
}

int finish_changes(struct server *s)
{
	struct sandbox **list;
	size_t n;
	int r = sandbox_list(s, NULL, &list, &n);

	if (r < 0)
		return r;
	for (size_t i = 0; i < n; i++)
		take_up(list[i]);
	sandbox_list_free(list, n);
	return 0;
}

bool control_needs_no_box(const struct store_sandbox *info)
{
	struct sandbox_config c;

	sandbox_config_read(info->config, &c);
	return c.cold;
}

void control_limits(struct server *s, const struct store_sandbox *info, struct warden_limits *ret)
{
	struct sandbox_config c;

	sandbox_config_read(info->config, &c);
	if (c.limits.memory_bytes)
		*ret = c.limits;
	else
		template_limits(&s->config, ret);
}

void control_lost(struct server *s, const struct store_sandbox *info)
{
	struct sandbox_config c;

	sandbox_config_read(info->config, &c);
	event_add_lost(s, info, json_pack("{s:s}", "kill_reason", reason_word(info->reason)));
	if (c.n_layers || *c.pending)
		worker_add_layers(&c);
}
