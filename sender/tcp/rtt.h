// SPDX-License-Identifier: BSD-3-Clause
// Round-trip time estimator and retransmission timeout (RFC 6298).
#pragma once
#include "common/base/ns.h"

#include <stdint.h>

struct rtt {
	uint64_t srtt_ns; // 0: no sample yet
	uint64_t rttvar_ns;
	uint64_t min_ns; // smallest sample; NEVER_NS: none
	uint64_t rto_ns; // before backoff
};

static inline void rtt_init(struct rtt *r, uint64_t initial_rto_ns) {
	*r = (struct rtt){.min_ns = NEVER_NS, .rto_ns = initial_rto_ns};
}

// Sections 2.2 and 2.3: alpha 1/8, beta 1/4, K 4. The floor is under K rttvar, as in Linux, not
// under the sum as in section 2.4: on a steady path longer than the floor rttvar tends to 0, and a
// timeout of one srtt would fire for a delayed ACK.
//
// Every ACK gives a sample, without the gains for many samples per round trip of RFC 7323 appendix
// G. As in Linux srtt is of the oldest segment that the ACK acknowledges, which includes the wait
// of a delayed ACK, and the smallest RTT of the newest: `newest_ns`. Linux's rttvar is the largest
// of a round trip: the floor is above the difference, except where rttvar is more than a quarter of
// it.
static inline void rtt_sample(
	struct rtt *r, uint64_t sample_ns, uint64_t newest_ns, uint64_t rto_min_ns) {
	r->min_ns = time_min(r->min_ns, newest_ns);
	if (r->srtt_ns == 0) {
		r->srtt_ns = sample_ns;
		r->rttvar_ns = sample_ns / 2;
	} else {
		uint64_t diff =
			sample_ns > r->srtt_ns ? sample_ns - r->srtt_ns : r->srtt_ns - sample_ns;

		r->rttvar_ns = r->rttvar_ns - r->rttvar_ns / 4 + diff / 4;
		r->srtt_ns = r->srtt_ns - r->srtt_ns / 8 + sample_ns / 8;
	}
	r->rto_ns = r->srtt_ns + time_max(4 * r->rttvar_ns, rto_min_ns);
}
