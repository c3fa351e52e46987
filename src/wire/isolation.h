/* SPDX-License-Identifier: Apache-2.0 */
/* Which protections a box really has: found out when it was built, told on request. */
#pragma once

#include "base/util.h"

/* Protections that depend on the kernel or the user; the rest is always on or the box is
 * refused. */
enum setup_feature {
	SETUP_HAS_TIME_NS = 1 << 0,
	SETUP_HAS_CGROUP_NS = 1 << 1,
	SETUP_HAS_LANDLOCK = 1 << 2,
	SETUP_HAS_IDMAP = 1 << 3,
	SETUP_HAS_KEYRING = 1 << 4,
	SETUP_HAS_NO_NEW_PRIVS = 1 << 5,
	SETUP_HAS_SECCOMP = 1 << 6,
	SETUP_HAS_OWN_DEVICES = 1 << 7, /* nodes of the box's own, not views of the host's */
	SETUP_HAS_CORE_SCHEDULING = 1 << 8,
};

enum ids_kind {
	IDS_RANGE,  /* root: 65,536 ids that nobody else has */
	IDS_SUBIDS, /* ordinary user with /etc/subuid: 1,024 of them, through newuidmap */
	IDS_SINGLE, /* ordinary user without: its own id only; agent and payload share it */
	_IDS_KIND_MAX,
};

struct isolation {
	uint32_t features; /* enum setup_feature */
	int32_t landlock_abi;
	uint32_t masks;
	uint32_t ids_kind;        /* enum ids_kind */
	uint32_t cgroup_mode;     /* enum cgroup_mode */
	uint32_t cgroup_features; /* enum cgroup_feature */
};

static inline const char *ids_kind_name(uint32_t kind)
{
	static const char *const names[_IDS_KIND_MAX] = {
		[IDS_RANGE] = "range",
		[IDS_SUBIDS] = "subids",
		[IDS_SINGLE] = "single",
	};

	return kind < _IDS_KIND_MAX ? names[kind] : "unknown";
}
