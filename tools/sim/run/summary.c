// SPDX-License-Identifier: BSD-3-Clause
#include "tools/sim/guest/guests.h"
#include "tools/sim/run/sim.h"

#include <math.h>
#include <xxhash.h>

// xxh64 over the streams' digests, in their order: equal runs have equal digests. Without the
// arrivals, which are input of the paths, and segments: recording them changes nothing. Transfers
// and IP flows, later streams, count if there are any.
static uint64_t run_digest(const struct tel *tel) {
	static const enum tel_stream later[] = {TEL_STREAM_TRANSFERS, TEL_STREAM_IP_FLOWS};
	uint64_t digest[TEL_STREAM_ARRIVALS + 2] = {0};
	size_t streams = TEL_STREAM_ARRIVALS;

	for (uint32_t i = 0; i < TEL_STREAM_ARRIVALS; i++) {
		if (tel[i].head > 0)
			digest[i] = tel_digest(&tel[i]);
	}
	for (size_t i = 0; i < sizeof(later) / sizeof(later[0]); i++) {
		if (tel[later[i]].head > 0)
			digest[streams++] = tel_digest(&tel[later[i]]);
	}
	return XXH64(digest, streams * sizeof(digest[0]), 0);
}

void summary_head(
	struct json *j, FILE *out, const char *kind, const struct run *run, const struct tel *tel) {
	char digest[17];

	snprintf(digest, sizeof(digest), "%016llx", (unsigned long long)run_digest(tel));
	run_summary_begin(run, kind, j, out);
	json_u64(j, "seed", run->seed);
	json_text(j, "digest", digest);
}

// Checks that each side's packets entered their first path, that those that left a path entered the
// next one or arrived at the other side, where it may have been discarded, and that the others are
// still in use in the pool.
static bool ledger_balanced(const struct sim *s) {
	const struct side *sender = &s->side[FLOWS_FORWARD], *receiver = &s->side[FLOWS_REVERSE];
	uint64_t inside = 0, in = 0, out = 0, passed = s->topology.passed;
	bool ok = true;

	for (uint32_t i = 0; i < s->paths.count; i++) {
		const struct path *p = &s->paths.path[i];

		inside += path_backlog(p).pkts;
		in += p->in.pkts;
		out += p->out.pkts;
		ok = ok && path_balanced(p);
	}
	return ok && s->sender.count.tx_segs == sender->given
		&& s->receiver.count.tx_segs == receiver->given
		&& s->sender.count.rx_segs + sender->checksum_errors == sender->taken
		&& s->receiver.count.rx_segs + receiver->checksum_errors == receiver->taken
		&& in == sender->given + receiver->given + passed
		&& out == sender->taken + receiver->taken + passed && s->pools.inside == inside;
}

static void write_ledger(struct sim *s, struct json *j, bool balanced) {
	json_object(j, "ledger");
	json_bool(j, "balanced", balanced);
	paths_ledger(&s->paths, j);
	json_object(j, "hosts");
	json_u64(j, "sender_tx", s->sender.count.tx_segs);
	json_u64(j, "sender_rx", s->sender.count.rx_segs);
	json_u64(j, "receiver_tx", s->receiver.count.tx_segs);
	json_u64(j, "receiver_rx", s->receiver.count.rx_segs);
	json_u64(j, "receiver_checksum_errors", s->side[FLOWS_REVERSE].checksum_errors);
	json_u64(j, "sender_checksum_errors", s->side[FLOWS_FORWARD].checksum_errors);
	json_close(j, '}');
	json_u64(j, "inside", s->pools.inside);
	json_close(j, '}');
}

static void write_receivers(struct sim *s, struct json *j) {
	struct receiver_count sum = {0};

	host_receivers(&s->receiver, &sum);
	json_object(j, "receivers");
	host_receivers_write(&sum, j);
	json_u64(j, "ranges_refused", s->receiver.ranges.refused);
	json_close(j, '}');
}

uint64_t sim_data_segs(const struct sim *s) {
	uint64_t segs = 0;

	for (uint32_t i = 0; i < s->receiver.receivers; i++)
		segs += s->receiver.receiver[i].count.segs;
	return segs;
}

// Writes the cost of the steady state, for `weir bench`.
static void write_measured(const struct sim *s, struct json *j) {
	const struct sim_cost *cost = &s->cost;

	if (cost->measured_wall_s <= 0) {
		json_null(j, "measured");
		return;
	}
	json_object(j, "measured");
	json_f64(j, "wall_s", cost->measured_wall_s);
	json_f64(j, "cpu_s", cost->measured_cpu_s);
	json_f64(j, "virtual_s", (double)(s->now_ns - s->run->warmup_ns) / 1e9);
	json_u64(j, "data_segs", cost->measured_segs);
	json_close(j, '}');
}

static void write_stop(const struct sim *s, struct json *j) {
	const struct stop *stop = &s->run->stop;

	if (stop->metric == STOP_NONE)
		return;
	json_object(j, "stop");
	json_text(j, "metric", stop_metric_name(stop));
	json_f64(j, "change", stop->change);
	json_f64(j, "over_s", (double)stop->over_ns / 1e9);
	json_f64(j, "moved", stop->moved);
	json_bool(j, "settled", stop->settled);
	json_f64(j, "at_s", (double)s->now_ns / 1e9);
	json_close(j, '}');
}

bool sim_summary(struct sim *s, FILE *out, const struct facts *verdict) {
	bool balanced = ledger_balanced(s);
	const struct host *sender = &s->sender;
	struct fact limits;
	struct json j;

	summary_head(&j, out, "simulation", s->run, s->tel);
	json_bool(&j, "seed_used",
		guests_random(s->guests) || paths_random(&s->paths) || groups_random(&s->groups));
	json_f64(&j, "virtual_s", (double)s->now_ns / 1e9);
	json_f64(&j, "warmup_s", (double)s->run->warmup_ns / 1e9);
	json_f64(&j, "wall_s", s->cost.wall_s);
	json_u64(&j, "threads", s->threads);
	write_measured(s, &j);
	facts_json(verdict, &j);
	write_stop(s, &j);
	write_ledger(s, &j, balanced);
	paths_summary(&s->paths, &j, s->now_ns);
	paths_why(&s->paths, &j, s->now_ns);
	if (host_limits(&sender, 1, &limits))
		fact_json(&limits, &j, "limits");
	host_summary(&sender, 1, &j, s->now_ns);
	write_receivers(s, &j);
	guests_summary(s->guests, &j, (double)time_since(s->now_ns, s->run->warmup_ns) / 1e9);
	run_summary_telemetry(s->run->telemetry_level, s->tel, &j);
	capture_summary(s->capture, &j);
	json_object(&j, "memory");
	json_u64(&j, "packets_max", s->pools.inside_max);
	json_u64(&j, "segments_max", s->sender.arena.used_max);
	json_close(&j, '}');
	json_end(&j);
	return balanced;
}

double sim_utilisation(struct sim *s) {
	const struct route *r = &s->paths.route[0][FLOWS_FORWARD];
	double used = (double)NAN;

	for (uint32_t i = 0; i < r->count && isnan(used); i++)
		used = path_utilisation(r->path[i], s->now_ns);
	return used;
}
