/* SPDX-License-Identifier: Apache-2.0 */
#include "server/sandbox/reason.h"

#include "wire/warden.h"

static const struct {
	const char *word;
	const char *text;
} reasons[_WARDEN_ENDED_MAX] = {
	[WARDEN_ENDED_KILLED] = { "killed", "it was killed" },
	[WARDEN_ENDED_TIMEOUT] = { "timeout", "its time-out was reached" },
	[WARDEN_ENDED_MEMORY] = { "memory", "it ran out of memory" },
	[WARDEN_ENDED_CRASHED] = { "crashed", "it crashed" },
	[WARDEN_ENDED_STOPPED] = { "stopped", "the service was stopped or restarted" },
};

const char *reason_word(uint32_t reason)
{
	return reason < _WARDEN_ENDED_MAX && reasons[reason].word ? reasons[reason].word :
								    "unknown";
}

void reason_text(const struct store_sandbox *info, char *ret, size_t size)
{
	const char *text = info->reason < _WARDEN_ENDED_MAX ? reasons[info->reason].text : NULL;

	(void)snprintf(ret, size, "%s%s%s", text ? text : "it has ended", info->detail ? ": " : "",
		       info->detail ? info->detail : "");
}
