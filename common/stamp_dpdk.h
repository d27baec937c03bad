// SPDX-License-Identifier: BSD-3-Clause
// When a frame arrived, where the card says so: its receive timestamps on our clock.
//
// A card counts its own ticks. Ten times a second the lcore reads the card's clock between two readings
// of ours; a line through the last 16 of these anchors (ticks.h) turns a frame's stamp into our
// nanoseconds. Without stamps a frame arrived when the turn that received it began: later than it did by
// up to a turn, or by a stall.
//
// No card was at hand where this was written: the line is tested (tests/unit/ticks_test.c), what is below
// has only been run on ports that offer no stamps. Transmitting on a timestamp is not done: it takes a
// path that gives packets out before they are due.
#pragma once
#include "base_dpdk.h"

#include "clock_dpdk.h"
#include "ticks.h"

#include <rte_ethdev.h>
#include <rte_mbuf.h>
#include <rte_mbuf_dyn.h>
#include <stdbool.h>

struct stamp {
	bool on;
	int offset; // of the stamp in an mbuf
	uint64_t flag; // that it has one
	// The lcore's.
	struct ticks_fit fit; // our clock over the card's
	struct ticks_line line;
	bool known; // the line
	uint64_t next_ns, last_ns; // next anchor; last arrival
};

// The offload to ask for when a port is configured; 0: it has none.
uint64_t stamp_offload(uint16_t port);
// Once the port has started with it: are there stamps, and a clock to compare them with?
void stamp_start(struct stamp *st, uint16_t port);
// Takes an anchor when one is due. Lcore.
void stamp_follow(struct stamp *st, uint16_t port, const struct clock *c, uint64_t now_ns);

// When a frame that a turn at now_ns received had arrived: never before the one before it.
static inline uint64_t stamp_arrival(struct stamp *st, const struct rte_mbuf *m, uint64_t now_ns) {
	if (!st->known || (m->ol_flags & st->flag) == 0)
		return now_ns;
	const rte_mbuf_timestamp_t *tick =
		RTE_MBUF_DYNFIELD(m, st->offset, const rte_mbuf_timestamp_t *);

	st->last_ns = ticks_moment(&st->line, *tick, st->last_ns, now_ns);
	return st->last_ns;
}
