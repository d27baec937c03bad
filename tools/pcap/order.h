// SPDX-License-Identifier: BSD-3-Clause
// Packets in the order of time. A capture of a card with several queues, or of several interfaces,
// has packets that are some places or milliseconds late: each waits here until ORDER_PACKETS others
// have come, and goes out in its place. What is later than that goes out as it comes.
//
// A clock that is set back is another thing: what follows is earlier by more than any queue holds
// back. Times then go on from where they were, and what was sent before and acknowledged behind
// gives no RTT (`epoch`). A file that was merged from two clocks goes forth and back between them:
// both keep their distance.
#pragma once
#include "tools/pcap/decode.h"

#define ORDER_PACKETS 4096u
#define ORDER_STEP_NS NS_PER_S // a packet that is earlier by more is behind a step of the clock

struct order {
	// Figures.
	uint64_t moved; // packets that were put into their place
	uint64_t steps, step_max_ns; // back, of the clock
	uint64_t first_ns, last_ns; // the least and the largest time; first_ns NEVER_NS: none
	// Private.
	struct packet *ring;
	uint32_t head, tail;
	uint64_t ahead_ns, ahead_other_ns; // what is added to stamps: now, and before the last step
	uint16_t epoch; // steps so far
};

int order_init(struct order *o); // 0 or -ENOMEM
void order_fini(struct order *o);
// The time of the next packet of the file, of whatever kind, from its stamp.
uint64_t order_time(struct order *o, uint64_t stamp_ns);
// A packet is written to the place that order_room returns, and then added. At most READER_BATCH
// may be added before order_take returns 0.
struct packet *order_room(const struct order *o);
void order_add(struct order *o);
// Up to `max` packets that have waited long enough; `all`: that have come.
uint32_t order_take(struct order *o, struct packet *packets, uint32_t max, bool all);
