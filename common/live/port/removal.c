// SPDX-License-Identifier: BSD-3-Clause
#define ALLOW_EXPERIMENTAL_API // rte_dev_event_callback_register is, in 22.11
#include "common/live/port/removal.h"

#include <rte_dev.h>

// In DPDK's interrupt thread.
static void on_event(const char *device, enum rte_dev_event_type event, void *asked) {
	if (event == RTE_DEV_EVENT_REMOVE)
		atomic_store((atomic_bool *)asked, true);
}

void removal_watch(const char *device, atomic_bool *asked) {
	rte_dev_event_callback_register(device, on_event, asked);
}

void removal_unwatch(const char *device, atomic_bool *asked) {
	rte_dev_event_callback_unregister(device, on_event, asked);
}
