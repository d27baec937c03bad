// SPDX-License-Identifier: BSD-3-Clause
// The config's `hosts`: machines that flows share, each with one network card.
//
//	hosts:
//	  sending: {count: 10, card: 25Gbit, tso: linux}
//	  receiving: {count: 10, coalesce: 200us, acks: linux}
//
// Flow i is one of host i modulo `count`. Cards are stages at the ends of the paths
// (switch/path/path_hosts.c); what GRO joins is one to TCP (sender/tcp/receiver_gro.c). Virtual
// time only: in live runs the hosts are real.
#pragma once
#include "common/config/flows.h"

#include <stdbool.h>

struct hosts_side {
	struct config_node *node; // NULL: not given, each flow has a host of its own
	bool guests; // they are Linux guests (group/stack.h), which have their cards themselves
	uint64_t count;
	uint64_t card_bps; // rate at which a card sends; 0: it takes no time
	struct limit limit; // of the queue before it
	uint64_t coalesce_ns; // least time between two interrupts of a card
	uint64_t cpu_ns; // a processor's time for a packet; 0: none
	uint64_t ring; // packets that a card holds
	bool gro;
	uint64_t gro_flows; // of which a card's GRO holds segments at a time
};

// By the direction in which they send: data forward, ACKs back.
struct hosts {
	struct hosts_side side[FLOWS_DIRECTIONS];
};

extern const struct param hosts_params[]; // the sides
extern const struct param hosts_side_params[];
extern const struct param *const hosts_group_params[FLOWS_DIRECTIONS]; // keys of groups, too

// Reads the section; without it no side is given. Those of its keys that are a group's, or of Linux
// guests its stack's, are added to the groups in `flows` that do not have them. `flows` may be
// NULL. -EINVAL or -ERANGE and a sentence.
int hosts_read(
	struct hosts *h, struct config_node *root, struct config_node *flows, struct err *err);
// For live programs: -EINVAL and a sentence if the section is there.
int hosts_none(struct config_node *root, struct err *err);
