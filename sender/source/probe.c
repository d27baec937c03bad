// SPDX-License-Identifier: BSD-3-Clause
// Probes: a few small packets that estimate which rate a Copa flow would obtain on the path (Arun
// and Balakrishnan:
// Copa, NSDI 2018, appendix).
//
//	RTTstanding = smallest RTT of the last srtt/2, after each probe
//	dq          = median of RTTstanding - RTTmin
//	lambda      = 1 / (delta dq)                             segments per second
//	completion  = 2 (RTTmin + dq) + size / lambda            of a transfer with its handshake
//
// The median, because half of the time RTTstanding of a flow in equilibrium is above 1 / (delta
// lambda) and half of the time below (section 3 of the paper). RTTmin is the smallest RTT of the
// probes and of the handshake, or `rtt_min`: on a path whose queue never empties while probes are
// under way, nothing else can tell it from a longer path.
//
// A probe is a segment with one byte of payload, 67 bytes long: every TCP answers it, so the peer
// may be a kernel's. The handshake's packets count too. Probes begin when the connection is open;
// they should last for some round trips, as the queue behind Copa flows goes up and down once in
// five.
//
// Where we differ from the paper, and why
//   - The paper says neither how many packets nor how far apart: `count`, `interval`.
//   - Its probes carry no payload. Here they must, because no TCP answers a bare ACK.
//   - The estimate is that of the present queue. A new flow adds to it: beside n Copa flows of the
//     same delta it obtains 1/(n+1) of the link and the estimate is 1/n.
//   - Without a queue (dq = 0) Copa has no upper limit, and neither has the estimate: rate_bps is
//     null.
#include "sender/source/probe.h"

#include "common/base/ns.h"

#include <math.h>

void probe_add(
	struct probe *p, uint64_t rtt_ns, uint64_t srtt_ns, uint64_t rtt_min_ns, uint64_t now_ns) {
	uint64_t standing_ns = rtt_ns;

	p->rtt_min_ns = rtt_min_ns;
	if (p->count == PROBE_MAX)
		return;
	for (uint32_t i = p->count; i > 0 && now_ns - p->sample[i - 1].now_ns <= srtt_ns / 2; i--)
		standing_ns = time_min(standing_ns, p->sample[i - 1].rtt_ns);
	p->sample[p->count++] = (struct probe_sample){now_ns, rtt_ns, standing_ns};
}

static double median_standing_ns(const struct probe *p) {
	uint64_t sorted[PROBE_MAX];

	for (uint32_t i = 0; i < p->count; i++) {
		uint32_t at = i;

		for (; at > 0 && sorted[at - 1] > p->sample[i].standing_ns; at--)
			sorted[at] = sorted[at - 1];
		sorted[at] = p->sample[i].standing_ns;
	}
	return ((double)sorted[(p->count - 1) / 2] + (double)sorted[p->count / 2]) / 2;
}

void probe_delays(const struct probe_config *c, const struct probe *p, struct probe_estimate *e) {
	e->rtt_min_ns = (double)(c->rtt_min_ns > 0 ? c->rtt_min_ns : p->rtt_min_ns);
	e->dq_ns = fmax(median_standing_ns(p) - e->rtt_min_ns, 0);
}

void probe_rate(const struct probe_config *c, uint32_t payload, struct probe_estimate *e) {
	double segment_ns = c->delta * e->dq_ns; // from one segment to the next

	e->rate_bps = segment_ns > 0 ? payload * 8e9 / segment_ns : (double)INFINITY;
	e->completion_ns = 2 * (e->rtt_min_ns + e->dq_ns)
		+ (double)c->size_bytes / (double)payload * segment_ns;
}

static const struct param params[] = {
	{"count", "20", "probes of each flow", UNIT_NONE, PARAM_U64(struct probe_config, count), 1,
		PROBE_MAX},
	{"interval", "10ms", "time between two probes", UNIT_TIME_NS,
		PARAM_U64(struct probe_config, interval_ns), 1e3, 1e11},
	{"delta", "0.5", "of the Copa flow whose rate is estimated", UNIT_NONE,
		PARAM_F64(struct probe_config, delta), 1e-4, 100},
	{"size", "1MB", "payload of the transfer whose completion time is estimated", UNIT_BYTES,
		PARAM_U64(struct probe_config, size_bytes), 1, 1e15},
	{"rtt_min", "0s", "RTT without queues, where it is known; 0s: the smallest seen",
		UNIT_TIME_NS, PARAM_U64(struct probe_config, rtt_min_ns), 0, 1e11},
	PARAM_END,
};

static void probe_next(const void *config, void *state, struct rng *rng,
	const struct source_seen *seen, struct transfer *t) {
	const struct probe_config *c = config;
	uint64_t *drawn = state;

	t->gap_ns = *drawn == 0 ? 0 : c->interval_ns;
	t->bytes = 1;
	if ((*drawn)++ == c->count)
		t->gap_ns = NEVER_NS;
}

const struct source_ops source_probe = {
	.name = "probe",
	.summary = "a few small packets, which estimate the rate that a Copa flow would obtain",
	.reference = "Arun and Balakrishnan: Copa, NSDI 2018, appendix",
	.params = params,
	.config_size = sizeof(struct probe_config),
	.kind = SOURCE_WRITES,
	.probes = true,
	.next = probe_next,
};
