// SPDX-License-Identifier: BSD-3-Clause
// A card's timestamps: when a frame arrived, and when one is to leave.
//
// Ten times a second the lcore reads the card's clock between two readings of ours, an anchor for
// card_clock.h. Without receive stamps a frame arrived when the turn that received it began: later than
// it did by up to a turn, or by a stall. With transmit stamps (DPDK's SEND_ON_TIMESTAMP) a frame is
// handed to the port a little before its time, `lead`, and the card keeps the time; how well it does is
// not seen here.
//
// No card was at hand where this was written: the clock is tested (tests/unit/card_clock_test.c), what
// is below has only been run on ports that offer neither.
#pragma once
#include "common/live/dpdk.h"

#include "common/base/card_clock.h"
#include "common/live/clock.h"

#include <rte_ethdev.h>
#include <rte_mbuf.h>
#include <rte_mbuf_dyn.h>
#include <stdbool.h>

struct stamp {
	bool rx, tx; // which of them the port has
	int offset; // of the stamp in an mbuf, for both
	uint64_t rx_flag, tx_flag; // that it has one
	// The lcore's.
	struct card_clock clock;
	uint64_t next_ns; // next anchor
};

// Asks for what the port offers, transmit stamps if `tx`, before it is configured.
void stamp_ask(struct stamp *st, uint16_t port, bool tx, struct rte_eth_conf *conf);
// Once the port has started with it: is there a clock to compare the stamps with?
void stamp_start(struct stamp *st, uint16_t port);
// Takes an anchor when one is due. Lcore.
void stamp_follow(struct stamp *st, uint16_t port, const struct clock *c, uint64_t now_ns);

// When a frame that a turn at now_ns received had arrived: never before the one before it.
static inline uint64_t stamp_arrival(struct stamp *st, const struct rte_mbuf *m, uint64_t now_ns) {
	if (!st->rx || (m->ol_flags & st->rx_flag) == 0)
		return now_ns;
	const rte_mbuf_timestamp_t *tick =
		RTE_MBUF_DYNFIELD(m, st->offset, const rte_mbuf_timestamp_t *);

	return card_clock_came(&st->clock, *tick, now_ns);
}

// Whether frames may be handed over before their time.
static inline bool stamp_holds(const struct stamp *st) {
	return st->tx && st->clock.known;
}

// Has the port hold a frame until due_ns. Frames get their stamps in the order in which they leave; one
// that has its stamp keeps it.
static inline void stamp_departure(struct stamp *st, struct rte_mbuf *m, uint64_t due_ns) {
	if ((m->ol_flags & st->tx_flag) != 0)
		return;
	m->ol_flags |= st->tx_flag;
	*RTE_MBUF_DYNFIELD(m, st->offset, rte_mbuf_timestamp_t *) =
		card_clock_leave(&st->clock, due_ns);
}
