// SPDX-License-Identifier: BSD-3-Clause
// What probes measure, and the estimate that follows (probe.c).
#pragma once
#include "sender/source/source.h"

#define PROBE_MAX 64 // probes of a flow

// Parameters of the source.
struct probe_config {
	uint64_t count;
	uint64_t interval_ns;
	double delta; // Copa's
	uint64_t size_bytes; // of the transfer whose completion is estimated
	uint64_t rtt_min_ns; // 0: the smallest seen
};

struct probe_sample {
	uint64_t now_ns, rtt_ns;
	uint64_t standing_ns; // smallest RTT of the last srtt/2
};

// The probes of one flow that were answered.
struct probe {
	struct probe_sample sample[PROBE_MAX];
	uint32_t count;
	uint64_t rtt_min_ns; // of the connection, its handshake included
};

struct probe_estimate {
	double rtt_min_ns;
	double dq_ns; // queueing delay; 0: none was seen
	double rate_bps; // payload; INFINITY: no queue limits it
	double completion_ns; // of size_bytes
};

// Another probe was answered, after rtt_ns. `srtt_ns`, `rtt_min_ns`: the connection's after it.
void probe_add(
	struct probe *p, uint64_t rtt_ns, uint64_t srtt_ns, uint64_t rtt_min_ns, uint64_t now_ns);
// Of a flow with samples: its RTTmin and dq, in ns.
void probe_delays(const struct probe_config *c, const struct probe *p, struct probe_estimate *e);
// Rate and completion time from rtt_min_ns and dq_ns, for segments of so much payload.
void probe_rate(const struct probe_config *c, uint32_t payload, struct probe_estimate *e);
