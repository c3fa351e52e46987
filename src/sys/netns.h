/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Brings up `lo` in the current network namespace. */
int netns_lo_up(void);
