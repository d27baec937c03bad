// SPDX-License-Identifier: BSD-3-Clause
// One lcore's transmit queue for a port: frames in the order in which they leave, each with its due
// time in ns.
//
//	program -> queue -> the port, in bursts
//	                 -> a ring to the lcore that owns the port, where that is another one
//
// When the port takes a burst, that moment is compared with the frames' due times: their lateness
// is the error that the program adds to its model. Unpaced frames have no due time (0) and are not
// compared. Frames delayed by a stall of the lcore or by a full port are counted apart (watch.h).
//
// A port that transmits at given times (stamp.h) gets frames a little before they are due. They are
// counted as `scheduled`: how exactly the port sends them is not known here.
//
// Frames that are longer than the MTU of the port's interface are dropped here: the kernel would do
// that without a word.
//
// If a port takes nothing for tx_timeout_ns, or its link is down, the frames that wait for it are
// dropped.
#pragma once
#include "common/live/base/dpdk.h"

#include "common/base/hist.h"
#include "common/base/pkt.h"
#include "common/live/lcore/lcore.h"
#include "common/live/lcore/ring.h"

// Sums for a least-squares line through lateness over time. A point is the most punctual burst of
// 134 ms, because the other bursts are delayed at random.
#define EGRESS_TREND_SHIFT 27
struct egress_trend {
	uint64_t slot, due_ns, late_ns; // slot of 2^27 ns; its most punctual burst
	uint64_t first_due_ns;
	double n, x, y, xx, xy; // x: seconds since the first; y: ns late
};

struct egress {
	// Set up before the loop.
	struct lcore *lcore;
	struct port *port;
	uint32_t index; // of the port in the program
	uint32_t slots; // a power of two
	uint32_t burst; // frames per call of the driver, at most
	uint16_t queue; // the port's
	bool ring_drops; // frames for which the ring has no room are dropped at once
	struct lcore_ring *ring; // to the lcore that owns the port; NULL: this lcore does
	uint64_t tx_timeout_ns;
	// Called when the port has taken the `n` frames from `slot` on; may be NULL.
	void (*trace)(struct egress *e, uint32_t slot, uint32_t n, uint64_t sent_ns);
	// The frames, in a ring of slots, which restarts at slot 0 when empty: these slots stay in
	// the cache.
	struct rte_mbuf **mbuf;
	uint64_t *due_ns; // 0: not paced
	uint16_t *bytes; // with FCS
	// Used by the loop only.
	uint32_t first, count;
	uint64_t refused_ns; // since when the port has taken nothing; NEVER_NS: it takes frames
	struct pkt_count tx, dropped; // taken by the port; refused by the port or the ring
	struct pkt_count too_long; // dropped: the port's interface does not send such frames
	uint64_t early; // left before their time though the port has no transmit stamps
	// Since the warm-up.
	struct hist late, late_disturbed; // ns
	struct egress_trend trend; // of `late`
	uint64_t scheduled;
};

// Allocates room for `slots` frames of the lcore's i-th port; 0 or -ENOMEM. The caller sets queue,
// ring, ring_drops and trace.
int egress_init(struct egress *e, struct lcore *l, uint32_t index, uint32_t slots,
	const struct live_process *process, struct err *err);
void egress_fini(struct egress *e);
// Resets the figures, at the end of the warm-up.
void egress_measure(struct egress *e);
// Gives the waiting frames to the port, or the ring, burst by burst, until none waits or a burst
// was not taken whole.
void egress_flush(struct egress *e);
// Drops and counts `m`, for which there is no room.
void egress_refuse(struct egress *e, struct rte_mbuf *m, uint16_t bytes);
// The error of the packets' rate in ppm, from the growth of lateness; negative if the rate is too
// low. NaN: too few points.
double egress_rate_error_ppm(const struct egress *e);
// Bytes of the waiting frames.
uint64_t egress_bytes(const struct egress *e);

// Whether frames may be given to the port before their time.
static inline bool egress_keeps_times(const struct egress *e) {
	return e->port->lead_ns > 0 && stamp_holds(&e->port->stamp);
}

// The slot for the next frame; and the number of contiguous free slots from there on. The caller
// fills some of them and adds their number to `count`.
static inline uint32_t egress_slot(const struct egress *e) {
	return (e->first + e->count) & (e->slots - 1);
}

static inline uint32_t egress_room(const struct egress *e) {
	uint32_t in_a_row = e->slots - egress_slot(e), all = e->slots - e->count;

	return all < in_a_row ? all : in_a_row;
}

// Appends one frame. A full burst is transmitted at once, unless the port has refused frames
// before; frames without room are then dropped.
static inline void egress_enqueue(
	struct egress *e, struct rte_mbuf *m, uint64_t due_ns, uint16_t bytes) {
	if (unlikely(e->count >= e->burst) && (e->refused_ns == NEVER_NS || e->count == e->slots))
		egress_flush(e);
	if (unlikely(e->count == e->slots)) {
		egress_refuse(e, m, bytes);
		return;
	}
	uint32_t slot = egress_slot(e);

	e->mbuf[slot] = m;
	e->due_ns[slot] = due_ns;
	e->bytes[slot] = bytes;
	e->count++;
}
