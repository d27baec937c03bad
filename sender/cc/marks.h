// SPDX-License-Identifier: BSD-3-Clause
// The moving average of the part of the segments that was marked (RFC 8257 section 3.3), for
// controls that reduce by it.
//
//	M      = marked / acknowledged segments of an observation window
//	alpha  = (1 - g) alpha + g M    at its end: with the first ACK of a segment sent after the
//	                                last one ended, and not before `least_ns`; `hold`: from the
//	                                first window on that has a mark
//
// `whole`: alpha is counted in 1024ths as Linux's DCTCP does (dctcp_update_alpha). What is less
// than one of them is lost, so that few marks in a window are none; and alpha falls to 0 from below
// 1 / g of them.
#pragma once
#include "sender/cc/cc.h"

#include <math.h>

#define MARKS_WHOLE 1024.0

struct marks {
	double alpha;
	uint64_t window_ns; // start of the observation window
	uint32_t acked, marked; // segments of this window
	float last_m; // of the last one
	bool hold; // alpha does not change, because nothing was ever marked
};

static inline double marks_whole(const struct marks *m, double g) {
	double before = round(m->alpha * MARKS_WHOLE), less = floor(before * g);
	double more = floor(m->marked * floor(MARKS_WHOLE * g) / m->acked);

	return fmin((before - (less > 0 ? less : before) + more) / MARKS_WHOLE, 1);
}

static inline void marks_observe(
	struct marks *m, double g, bool whole, uint64_t least_ns, const struct cc_ack *ack) {
	m->acked += ack->acked_segs;
	m->marked += ack->ce_segs;
	if (ack->acked_segs == 0 || ack->sent_ns < m->window_ns
		|| ack->now_ns - m->window_ns < least_ns)
		return;
	m->last_m = (float)m->marked / (float)m->acked;
	m->hold = m->hold && m->marked == 0;
	if (!m->hold && whole)
		m->alpha = marks_whole(m, g);
	else if (!m->hold)
		m->alpha += g * ((double)m->last_m - m->alpha);
	m->window_ns = ack->now_ns;
	m->acked = m->marked = 0;
}
