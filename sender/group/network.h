// SPDX-License-Identifier: BSD-3-Clause
// What the sender must know of the network that a switch makes of the config's `paths` and
// `schedule`: it sizes the scoreboard, which holds what is under way at any time of the run.
#pragma once
#include "common/config/config.h"
#include "common/config/flows.h"

#include <stdint.h>

#define NETWORK_RATE_BPS UINT64_C(10000000000) // without a link
#define NETWORK_PIPE_NS UINT64_C(200000000)

struct network {
	uint64_t rate_bps; // at its fastest, of all paths in which flows begin
	// The longest time that a packet and its ACK can be under way, queues included.
	uint64_t pipe_ns;
};

// The switch checks these sections; what cannot be read here is left out. `base_rtt_ns`: the
// longest that a flow group asks for, 0: none does; `frame_bytes`: the largest, with FCS.
void network_read(
	struct network *n, struct config_node *root, uint64_t base_rtt_ns, uint32_t frame_bytes);

// The network of a flow group without its queues.
struct network_empty {
	uint64_t rate_bps; // of its slowest link, as the run begins; 0: not known
	uint64_t rtt_ns;
};
// For each group of the config.
void network_read_empty(struct network_empty empty[GROUPS_MAX], struct config_node *root);
