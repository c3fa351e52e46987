/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/isolation.h"

const char *ids_kind_name(uint32_t kind)
{
	static const char *const names[_IDS_KIND_MAX] = {
		[IDS_RANGE] = "range",
		[IDS_SUBIDS] = "subids",
		[IDS_SINGLE] = "single",
	};

	return kind < _IDS_KIND_MAX ? names[kind] : "unknown";
}
