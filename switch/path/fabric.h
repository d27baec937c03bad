// SPDX-License-Identifier: BSD-3-Clause
// The layer 2 switch (IEEE 802.1D relay and learning): which ports a frame goes to. Pure: addresses
// in, decisions out.
//
// Where several lcores relay, each has a fabric of its own, in which only it writes what it learns,
// and looks at those of the others too: where a station was seen last counts. A station and its
// port are one word, so that a reader sees both or neither, without a lock and without messages
// between lcores.
#pragma once
#include "common/base/err.h"
#include "common/base/ns.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define FABRIC_PORTS_MAX 64
#define FABRIC_AGE_NS (300 * NS_PER_S) // 802.1D table 7-5

enum fabric_action { FABRIC_DROP, FABRIC_FORWARD, FABRIC_FLOOD };

struct fabric_decision {
	enum fabric_action action;
	uint32_t port; // FABRIC_FORWARD
	uint64_t ports; // one bit per port; 0: drop
};

#define FABRIC_PEERS_MAX 15

struct fabric_entry {
	_Atomic uint64_t station; // the address in the lower 48 bits, its port above; 0: never used
	_Atomic uint64_t seen_ns; // NEVER_NS: static, does not age
};

struct fabric {
	uint32_t ports;
	uint64_t up; // one bit per port
	uint64_t age_ns;
	uint32_t mask; // table size - 1
	struct fabric_entry *table;
	const struct fabric *peer[FABRIC_PEERS_MAX]; // of other lcores
	uint32_t peers;
	uint64_t learned, moved, evicted; // counters
};

// A table for `addresses` stations (rounded up to a power of two, with room to spare). All ports
// are up.
int fabric_init(
	struct fabric *f, uint32_t ports, uint32_t addresses, uint64_t age_ns, struct err *err);
void fabric_fini(struct fabric *f);
// From now on f also knows what another lcore's fabric, of the same size, has learned.
void fabric_join(struct fabric *f, const struct fabric *other);
// A station that is known from the config: never ages, never moves. -ENOSPC: no room.
int fabric_add_static(struct fabric *f, const uint8_t mac[6], uint32_t port, struct err *err);
// A port that is down gets no frames, and its learned addresses are forgotten.
void fabric_set_up(struct fabric *f, uint32_t port, bool up);
static inline bool fabric_is_up(const struct fabric *f, uint32_t port) {
	return (f->up >> port & 1) != 0;
}
// Learns the source of a frame that came in on in_port and decides where it goes. Broadcast,
// multicast and unknown addresses flood; frames for the port they came from, and those for
// 01:80:c2:00:00:0x (pause, spanning tree, LLDP: never relayed), are dropped.
struct fabric_decision fabric_relay(struct fabric *f, const uint8_t dst[6], const uint8_t src[6],
	uint32_t in_port, uint64_t now_ns);
