// SPDX-License-Identifier: BSD-3-Clause
// The definitions of the counters in summaries.
#include "sender/host/host.h"

const struct number host_numbers[] = {
#define COUNTERS_PLACE "groups"
#define COUNTERS_OVER NUMBER_MEASURED
	FLOW_COUNTERS(COUNTERS_NUMBER)
#undef COUNTERS_PLACE
#undef COUNTERS_OVER
#define COUNTERS_PLACE "receivers"
#define COUNTERS_OVER NUMBER_RUN
		RECEIVER_COUNTERS(COUNTERS_NUMBER)};
const size_t host_numbers_count = sizeof(host_numbers) / sizeof(host_numbers[0]);
