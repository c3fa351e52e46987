/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/policy.h"

static const struct {
	unsigned number;
	const char *word;
	const char *text;
} reasons[] = {
#define REASON(name, number, word, text) { (number), (word), (text) },
#include "policy/reason.def"
#undef REASON
};

bool policy_reason_is(unsigned reason)
{
	for (size_t i = 0; i < ARRAY_SIZE(reasons); i++)
		if (reasons[i].number == reason)
			return true;
	return false;
}

const char *policy_reason_word(unsigned reason)
{
	for (size_t i = 0; i < ARRAY_SIZE(reasons); i++)
		if (reasons[i].number == reason)
			return reasons[i].word;
	return "unknown";
}

const char *policy_reason_text(unsigned reason)
{
	for (size_t i = 0; i < ARRAY_SIZE(reasons); i++)
		if (reasons[i].number == reason)
			return reasons[i].text;
	return "for a reason that is not known";
}

bool policy_reason_allows(unsigned reason)
{
	return reason == POLICY_ALLOWED || reason == POLICY_LEARNING;
}
