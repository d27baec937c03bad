// SPDX-License-Identifier: BSD-3-Clause
// The config's `hosts`: machines that flows share, each with one network card.
//
//	hosts:
//	  sending: {count: 10, card: 25Gbit, tso: linux}
//	  receiving: {count: 10, coalesce: 200us, acks: linux}
//
// Flow i is one of host i modulo `count`. A side may have several kinds of hosts; a group of flows
// names its kind:
//
//	hosts:
//	  receiving: [{name: fast, count: 8}, {name: slow, count: 2, cpu: 1us}]
//	flows:
//	  - {count: 80, cc: cubic, hosts: fast}
//	  - {count: 20, cc: cubic, hosts: slow}
//
// Cards are stages at the ends of the paths (switch/path/path_hosts.c); what GRO joins is one to
// TCP (sender/tcp/receiver_gro.c). Virtual time only: in live runs the hosts are real.
#pragma once
#include "common/config/flows.h"

#include <stdbool.h>

#define HOSTS_KINDS_MAX 16

struct hosts_kind {
	struct config_node *node;
	char name[PARAM_TEXT_SIZE]; // "": it needs none
	uint32_t first; // number of its first host among those of its side
	uint64_t count;
	uint64_t card_bps; // rate at which a card sends; 0: it takes no time
	struct limit limit; // of the queue before it
	char qdisc[PARAM_TEXT_SIZE]; // its discipline
	uint64_t coalesce_ns; // least time between two interrupts of a card
	uint64_t cpu_ns; // a processor's time for a packet; 0: none
	uint64_t ring; // packets that a card holds
	bool gro;
	uint64_t gro_flows; // of which a card's GRO holds segments at a time
};

struct hosts_side {
	struct hosts_kind kind[HOSTS_KINDS_MAX];
	uint32_t kinds; // 0: not given, each flow has a host of its own
	uint32_t count; // of hosts
	bool guests; // they are Linux guests (group/stack.h), which have their cards themselves
	bool gro; // one of the kinds has
	uint8_t group_kind[GROUPS_MAX]; // of each group's flows
};

// A recording may have packets of groups that the config does not have.
static inline const struct hosts_kind *hosts_kind(const struct hosts_side *side, uint32_t group) {
	return &side->kind[group < GROUPS_MAX ? side->group_kind[group] : 0];
}
// The number of a flow's host among those of its side.
static inline uint32_t hosts_number(const struct hosts_side *side, uint32_t group, uint32_t flow) {
	const struct hosts_kind *kind = hosts_kind(side, group);

	return kind->first + flow % (uint32_t)kind->count;
}
// Whether their cards are ours.
static inline bool hosts_ours(const struct hosts_side *side) {
	return side->kinds > 0 && !side->guests;
}

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
