// SPDX-License-Identifier: BSD-3-Clause
#include "switch/serialiser/stats.h"

// Includes the present rate in the run's minimum and maximum, if it has applied for some time.
static void rate_held(struct stage_stats *s, uint64_t now_ns) {
	struct stats_peak *run = &s->peak[STATS_RUN];

	if (now_ns <= time_max(s->rate_since_ns, run->from.at_ns))
		return;
	run->rate_max_bps = max_u64(run->rate_max_bps, s->rate_bps);
	run->rate_min_bps = run->rates ? min_u64(run->rate_min_bps, s->rate_bps) : s->rate_bps;
	run->rates = true;
}

static uint64_t down_ns(const struct stage_stats *s, uint64_t now_ns) {
	return s->down_ns + (s->rate_bps == 0 ? time_since(now_ns, s->rate_since_ns) : 0);
}

static stats_u128 capacity(const struct stage_stats *s, uint64_t now_ns) {
	if (s->slots)
		return s->capacity;
	return s->capacity + (stats_u128)s->rate_bps * time_since(now_ns, s->rate_since_ns);
}

void stats_rate(struct stage_stats *s, uint64_t now_ns, uint64_t rate_bps) {
	rate_held(s, now_ns);
	s->capacity = capacity(s, now_ns);
	s->down_ns = down_ns(s, now_ns);
	s->rate_since_ns = now_ns;
	s->rate_bps = rate_bps;
}

struct stats_totals stats_totals(const struct stage_stats *s, uint64_t now_ns) {
	struct link_count count = s->count;

	count.out_pkts = s->sent - s->wire_pkts;
	count.out_bytes = s->sent_bytes - s->wire_bytes;
	return (struct stats_totals){
		.at_ns = now_ns,
		.count = count,
		.dequeued = s->sent,
		.sojourn_ns = s->sojourn_ns,
		.queue_pkt_ns = now_ns * s->queue_pkts - s->moment_pkts,
		.queue_byte_ns = (stats_u128)now_ns * s->queue_bytes - s->moment_bytes,
		.capacity = capacity(s, now_ns),
		.down_ns = down_ns(s, now_ns),
		.wire_bits =
			8.0 * (double)(s->sent_bytes + s->sent * s->extra_bytes + s->padding_bytes)
			- s->unsent_bits,
	};
}

struct stats_figures stats_figures(const struct stats_totals *from, const struct stats_totals *to) {
	double ns = (double)time_since(to->at_ns, from->at_ns);
	double capacity_bits = (double)(to->capacity - from->capacity) / 1e9;
	uint64_t dequeued = to->dequeued - from->dequeued;
	struct stats_figures f = {0};

	if (ns > 0)
		f.rate_mean_bps = capacity_bits / ns * 1e9;
	if (capacity_bits > 0) {
		f.utilisation = (to->wire_bits - from->wire_bits) / capacity_bits;
		// Rounding to nanoseconds and to a double may exceed the range.
		f.utilisation = f.utilisation > 1 ? 1 : f.utilisation < 0 ? 0 : f.utilisation;
	}
	if (ns > 0) {
		f.queue_mean_pkts = (double)(to->queue_pkt_ns - from->queue_pkt_ns) / ns;
		f.queue_mean_bytes = (double)(to->queue_byte_ns - from->queue_byte_ns) / ns;
	}
	if (dequeued > 0)
		f.sojourn_mean_ns = (double)(to->sojourn_ns - from->sojourn_ns) / (double)dequeued;
	return f;
}

const struct stats_peak *stats_peak(struct stage_stats *s, enum stats_window window) {
	for (uint32_t w = 0; w < STATS_WINDOWS; w++) {
		s->peak[w].queue_pkts = max_u64(s->peak[w].queue_pkts, s->peak_pkts);
		s->peak[w].sojourn_ns = time_max(s->peak[w].sojourn_ns, s->peak_ns);
	}
	s->peak_pkts = s->queue_pkts;
	s->peak_ns = 0;
	return &s->peak[window];
}

const struct stats_peak *stats_run(struct stage_stats *s, uint64_t now_ns) {
	rate_held(s, now_ns);
	return stats_peak(s, STATS_RUN);
}

void stats_restart(struct stage_stats *s, enum stats_window window, uint64_t now_ns) {
	stats_peak(s, window);
	s->peak[window] = (struct stats_peak){
		.queue_pkts = s->queue_pkts,
		.from = stats_totals(s, now_ns),
	};
	if (window == STATS_RUN)
		hist_reset(&s->sojourn);
}

const struct hist *stats_sojourn(struct stage_stats *s) {
	const struct stats_peak *run = stats_peak(s, STATS_RUN);

	s->sojourn.total = s->sent - run->from.dequeued;
	s->sojourn.sum = s->sojourn_ns - run->from.sojourn_ns;
	s->sojourn.max = run->sojourn_ns;
	return &s->sojourn;
}
