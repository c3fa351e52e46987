/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From the agent's credentials to a payload's: no capability in any set, none obtainable, no groups
 * but its own. Only uid 0 of a box that was made with a root keeps something, and that is a short
 * list. no_new_privs, seccomp and Landlock are not set here: they were put on before the agent
 * itself was executed, so nothing in a box ever ran without them.
 */
#include "agent/agent.h"

#include "sys/payload.h"

#include <linux/capability.h>
#include <linux/securebits.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#define BIT(cap) (UINT64_C(1) << (cap))

/* What root of a box needs to change any file of it. */
#define FILE_CAPS (BIT(CAP_CHOWN) | BIT(CAP_DAC_OVERRIDE) | BIT(CAP_FOWNER) | BIT(CAP_FSETID))

/* And to install and run services: become their users, end them, listen on port 80. */
#define ROOT_CAPS                                                                                  \
	(FILE_CAPS | BIT(CAP_SETUID) | BIT(CAP_SETGID) | BIT(CAP_KILL) | BIT(CAP_NET_BIND_SERVICE))

/* The agent's own: to start commands as the user, to empty their bounding set, to end them. */
#define AGENT_CAPS (BIT(CAP_SETUID) | BIT(CAP_SETGID) | BIT(CAP_SETPCAP) | BIT(CAP_KILL))

/* Programs of the box's root: executing one gives it what the bounding set has, which is the short
 * list. Nobody can change these bits again: that takes SETPCAP, which is not on it. */
#define ROOT_BITS (SECBIT_NO_CAP_AMBIENT_RAISE | SECBIT_NO_CAP_AMBIENT_RAISE_LOCKED)

/* Read once: it can only shrink. */
static uint64_t bounding_set;

static int set_capabilities(uint64_t permitted, uint64_t effective)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	const struct __user_cap_data_struct caps[2] = {
		{ .permitted = (uint32_t)permitted, .effective = (uint32_t)effective },
		{ .permitted = (uint32_t)(permitted >> 32),
		  .effective = (uint32_t)(effective >> 32) },
	};

	return syscall(SYS_capset, &head, caps) < 0 ? -errno : 0;
}

static int get_permitted(uint64_t *ret)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct caps[2] = { 0 };

	if (syscall(SYS_capget, &head, caps) < 0)
		return -errno;
	*ret = caps[0].permitted | (uint64_t)caps[1].permitted << 32;
	return 0;
}

/* Executed as uid 0 we were permitted all that the bounding set has: one call instead of forty.
 * Nobody else drops anything. */
int agent_read_bounding_set(void)
{
	return get_permitted(&bounding_set);
}

bool agent_has_root(void)
{
	uint64_t permitted = 0;

	return getuid() == 0 && get_permitted(&permitted) == 0 &&
	       (permitted & ROOT_CAPS) == ROOT_CAPS;
}

int agent_lower_capabilities(void)
{
	uint64_t permitted = 0;
	int r = get_permitted(&permitted);

	/* Otherwise the kernel would put back what is about files whenever a pipe has been made as
	 * the user. A child that becomes a user sets these bits anew. */
	if (prctl(PR_SET_SECUREBITS, SECBIT_NO_SETUID_FIXUP, 0, 0, 0) < 0)
		return -errno;
	return r < 0 ? r : set_capabilities(permitted, permitted & AGENT_CAPS);
}

int agent_raise_capabilities(void)
{
	uint64_t permitted = 0;
	int r = get_permitted(&permitted);

	return r < 0 ? r : set_capabilities(permitted, permitted);
}

int agent_keep_kill(void)
{
	return set_capabilities(BIT(CAP_KILL), BIT(CAP_KILL));
}

static int become_with(const struct agent_user *user, uint64_t keep, unsigned long securebits)
{
	const struct payload_user payload = {
		.uid = user->uid,
		.gid = user->gid,
		.groups = user->groups,
		.n_groups = user->n_groups,
		.keep = keep,
		.securebits = securebits,
	};

	return payload_become(&payload, bounding_set);
}

/* Only one id is mapped: we are that user already and have had no capability since exec. */
static int become_single(const struct agent_user *user)
{
	return getuid() == user->uid && getgid() == user->gid ? 0 : -EPERM;
}

int agent_become_user(const struct agent_user *user)
{
	if (getuid() != 0)
		return become_single(user);
	if (user->uid != 0)
		return become_with(user, 0, payload_locked_bits);
	return agent_has_root() ? become_with(user, FILE_CAPS, payload_locked_bits) : -EPERM;
}

int agent_become_payload(const struct agent_user *user)
{
	if (getuid() != 0)
		return become_single(user);
	if (user->uid != 0)
		return become_with(user, 0, payload_locked_bits);
	return agent_has_root() ? become_with(user, ROOT_CAPS, ROOT_BITS) : -EPERM;
}

int agent_become(uint32_t uid, uint32_t gid)
{
	const struct agent_user user = { .uid = uid, .gid = gid };

	return agent_become_user(&user);
}
