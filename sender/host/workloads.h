// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include "sender/host/host.h"

// "transfers" and "probe" of group `g` in the summary, of all hosts; nothing if its source has no
// schedule.
void host_workloads_summary(
	const struct host *const *hosts, uint32_t n, uint32_t g, struct json *j, uint64_t now_ns);
