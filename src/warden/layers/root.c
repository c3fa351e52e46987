/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The template's root directory. It is made anew, under another name, when the host's /etc has
 * changed; boxes that stand on the old one keep it. Making a root removes those that look old, so
 * the ones in use are touched from time to time.
 */
#include "warden/layers/layers.h"

#include "base/clock.h"

#include <fcntl.h>
#include <sys/stat.h>

#define TOUCH_US (UINT64_C(3600) * 1000000)

static void touch_all(struct loop *l, struct timer *t)
{
	struct warden *w = warden_of(l);
	for (size_t i = 0; i < ARRAY_SIZE(w->roots); i++)
		if (w->roots[i].users || &w->roots[i] == w->root_now)
			(void)utimensat(AT_FDCWD, w->roots[i].path, NULL, AT_SYMLINK_NOFOLLOW);
	timer_set(&w->loop, t, clock_boot_us() + TOUCH_US);
}

/* The place of that path, or one that nobody stands on. */
static struct root *place_for(struct warden *w, const char *path)
{
	struct root *unused = NULL;

	for (size_t i = 0; i < ARRAY_SIZE(w->roots); i++) {
		if (strcmp(w->roots[i].path, path) == 0)
			return &w->roots[i];
		if (!w->roots[i].users && &w->roots[i] != w->root_now)
			unused = &w->roots[i];
	}
	if (unused)
		(void)snprintf(unused->path, sizeof(unused->path), "%s", path);
	return unused;
}

/* Without a place for a newer one: the last one is whole, and is kept. */
static void use_last(struct warden *w)
{
	memcpy(w->template.root, w->root_now->path, sizeof(w->template.root));
	if (!w->roots_full)
		say("boxes stand on too many states of this host's /etc: new ones get the last of "
		    "these, until nobody stands on one of them");
	w->roots_full = true;
}

int root_find(struct warden *w, struct fail *fail)
{
	struct root *root;
	int r = template_open("base", w->config->egress_ca_bundle, &w->template, fail);

	if (r < 0)
		return r;
	root = place_for(w, w->template.root);
	if (!root) {
		use_last(w);
		return 0;
	}
	w->roots_full = false;
	w->root_now = root;
	if (!w->roots_timer.place) {
		w->roots_timer.due = touch_all;
		timer_set(&w->loop, &w->roots_timer, clock_boot_us() + TOUCH_US);
	}
	return 0;
}
