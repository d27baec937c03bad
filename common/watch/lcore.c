// SPDX-License-Identifier: BSD-3-Clause
#include "common/watch/lcore.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#define WORK_PKTS_MIN 4096 // to learn the time per packet

static_assert(sizeof(struct watch_count) % sizeof(uint64_t) == 0, "words");

void watch_lcore_init(
	struct watch_lcore *w, uint32_t ports, uint64_t pkt_ns_max, uint64_t late_ns) {
	memset(w, 0, sizeof(*w));
	w->ports = ports;
	w->pkt_ns = w->pkt_ns_max = pkt_ns_max;
	w->late_ns = late_ns;
	w->began_ns = NEVER_NS; // until the first iteration
	w->count.begun_ns = NEVER_NS;
	for (uint32_t i = 0; i < LIVE_PORTS_MAX; i++)
		w->full_since_ns[i] = NEVER_NS;
	watch_show(w, 0);
}

void watch_stall(struct watch_lcore *w, uint64_t from_ns, uint64_t to_ns) {
	uint64_t took_ns = to_ns - from_ns;

	w->count.stalls++;
	w->count.stalled_ns += took_ns;
	w->stalled_until_ns = time_max(w->stalled_until_ns, to_ns + WATCH_BACKLOG * took_ns);
	hist_add(&w->stall, took_ns);
	if (took_ns > atomic_load_explicit(&w->stall_max_ns, memory_order_relaxed))
		atomic_store_explicit(&w->stall_at_ns, from_ns, memory_order_relaxed);
	watch_max(&w->stall_max_ns, took_ns);
}

uint64_t watch_floor_ns(const struct watch_lcore *w, double q) {
	const struct hist *h = &w->idle;
	double all = (double)h->sum, longer = 0, sum = 0;

	if (h->total == 0)
		return 0;
	// The total time with x or more left of its iteration is sum(length - x) over iterations
	// longer than x.
	for (uint32_t i = HIST_BUCKETS; i-- > 0;) {
		double low = (double)hist_bucket_low(i), n = (double)h->count[i];

		longer += n;
		sum += n
			* (i + 1 < HIST_BUCKETS ? ((double)hist_bucket_low(i + 1) - 1 + low) / 2
						: (double)h->max);
		if (longer > 0 && sum - longer * low >= (1 - q) * all)
			return (uint64_t)fmin((sum - (1 - q) * all) / longer, (double)h->max);
	}
	return 0;
}

// Sets pkt_ns to twice the recent average time per packet; any longer time is an interruption.
static void learn_work(struct watch_lcore *w) {
	if (w->work_pkts < WORK_PKTS_MIN)
		return;
	w->pkt_ns = time_min(w->pkt_ns_max, 2 * w->work_ns / w->work_pkts);
	w->work_ns /= 2;
	w->work_pkts /= 2;
}

void watch_show(struct watch_lcore *w, uint64_t now_ns) {
	size_t used = offsetof(struct watch_count, port) + w->ports * sizeof(struct watch_port);
	uint64_t word[WATCH_WORDS];

	for (uint32_t i = 0; i < w->ports; i++) {
		if (w->full_since_ns[i] == NEVER_NS)
			continue;
		w->count.port[i].full_ns += time_since(now_ns, w->full_since_ns[i]);
		w->full_since_ns[i] = now_ns;
	}
	learn_work(w);
	w->count.now_ns = now_ns;
	memcpy(word, &w->count, used);
	for (size_t i = 0; i < used / sizeof(word[0]); i++)
		atomic_store_explicit(&w->shown[i], word[i], memory_order_relaxed);
}

void watch_shown(const struct watch_lcore *w, struct watch_count *count) {
	uint64_t word[WATCH_WORDS];

	for (size_t i = 0; i < WATCH_WORDS; i++)
		word[i] = atomic_load_explicit(&w->shown[i], memory_order_relaxed);
	memcpy(count, word, sizeof(*count));
}
