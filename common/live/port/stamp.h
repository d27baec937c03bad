// SPDX-License-Identifier: BSD-3-Clause
// A card's timestamps: the arrival time of a received frame, and the transmit time of a frame to be
// sent.
//
// Ten times a second the lcore reads the card's clock between two readings of the program's clock:
// an anchor for card_clock.h. Without receive stamps a frame's arrival time is the start of the
// iteration that received it, which is too late by up to an iteration, or by a stall. With transmit
// stamps (DPDK's SEND_ON_TIMESTAMP) a frame is given to the port `lead` before its time, and the
// card sends it at that time; how exactly is not known here.
//
// Tested without a card: the clock (tests/unit/card_clock_test.c), the stamps of a transmit queue
// (tests/unit/egress_test.c).
#pragma once
#include "common/live/base/dpdk.h"

#include "common/base/card_clock.h"
#include "common/live/base/clock.h"

#include <rte_ethdev.h>
#include <rte_mbuf.h>
#include <rte_mbuf_dyn.h>
#include <stdbool.h>

struct stamp {
	bool rx, tx; // receive stamps, transmit stamps: whether the port has them
	int offset; // of the stamp in an mbuf, for both kinds
	uint64_t rx_flag, tx_flag; // the mbuf has a receive stamp, a transmit stamp
	// Used by the lcore only.
	struct card_clock clock;
	uint64_t next_ns; // next anchor
};

// Requests receive stamps, and transmit stamps if `tx`, as far as the port has them; before it is
// configured.
void stamp_ask(struct stamp *st, uint16_t port, bool tx, struct rte_eth_conf *conf);
// Once the port has started: turns stamps off if its clock cannot be read.
void stamp_start(struct stamp *st, uint16_t port);
// Lcore: takes an anchor when one is due.
void stamp_follow(struct stamp *st, uint16_t port, const struct clock *c, uint64_t now_ns);

// The arrival time of a frame that the iteration at now_ns received; never earlier than the frame
// before.
static inline uint64_t stamp_arrival(struct stamp *st, const struct rte_mbuf *m, uint64_t now_ns) {
	if ((m->ol_flags & st->rx_flag) == 0)
		return st->clock.arrival_ns = now_ns;
	const rte_mbuf_timestamp_t *tick =
		RTE_MBUF_DYNFIELD(m, st->offset, const rte_mbuf_timestamp_t *);

	return card_clock_arrival_ns(&st->clock, *tick, now_ns);
}

// Whether frames may be given to the port before their time.
static inline bool stamp_holds(const struct stamp *st) {
	return st->tx && st->clock.known;
}

// Has the port send a frame at due_ns. To be called in the order in which frames leave; a frame
// that already has a stamp keeps it.
static inline void stamp_departure(struct stamp *st, struct rte_mbuf *m, uint64_t due_ns) {
	if ((m->ol_flags & st->tx_flag) != 0)
		return;
	m->ol_flags |= st->tx_flag;
	*RTE_MBUF_DYNFIELD(m, st->offset, rte_mbuf_timestamp_t *) =
		card_clock_departure_tick(&st->clock, due_ns);
}
