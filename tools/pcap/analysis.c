// SPDX-License-Identifier: BSD-3-Clause
#include "tools/pcap/analysis.h"

#include "common/base/likely.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define PROGRESS_BATCHES 4096 // between two calls: a few times a second

int analysis_init(struct analysis *a, const struct track_limits *limits, struct tel *tel,
	const struct tel_run *tel_run, struct err *err) {
	memset(a, 0, sizeof(*a));
	return track_init(&a->track, limits, tel, tel_run, err);
}

static void note(struct analysis *a, const char *sentence) {
	if (a->notes < ANALYSIS_NOTES_MAX)
		snprintf(a->note[a->notes], sizeof(a->note[0]), "%s", sentence);
	a->notes++;
}

static void batch(struct analysis *a, const struct frame *frames, uint32_t n) {
	struct packet *packets = track_room(&a->track);
	uint32_t tcp = 0;

	if (unlikely(!a->begun))
		a->first_ns = frames[0].ts_ns;
	a->begun = true;
	a->last_ns = frames[n - 1].ts_ns;
	for (uint32_t i = 0; i < n; i++)
		prefetch(frames[i].data + 64);
	for (uint32_t i = 0; i < n; i++) {
		struct packet *p = &packets[tcp];
		enum decode what = decode_frame(&frames[i], p);

		a->decoded[what]++;
		if (unlikely(what != DECODE_TCP))
			continue;
		a->options_cut += p->options == DECODE_OPTIONS_CUT;
		a->options_bad += p->options == DECODE_OPTIONS_BAD;
		track_fetch(&a->track, p);
		tcp++;
	}
	if (likely(tcp > 0))
		track_packets(&a->track, tcp);
}

int analysis_read(struct analysis *a, analysis_progress_fn *progress, void *of, struct err *err) {
	struct frame frames[READER_BATCH];
	struct reader *r = &a->reader;
	bool more = true;
	int n = 0;

	a->files++;
	for (uint64_t i = 1; more && (n = reader_batch(r, frames, READER_BATCH, err)) > 0; i++) {
		batch(a, frames, (uint32_t)n);
		if (unlikely(i % PROGRESS_BATCHES == 0) && progress != NULL)
			more = progress(of, a);
	}
	if (n >= 0 && more && r->end != READER_WHOLE)
		note(a, r->said);
	a->read.packets += r->count.packets;
	a->read.bytes += r->count.bytes;
	a->read.no_time += r->count.no_time;
	a->read.skipped_blocks += r->count.skipped_blocks;
	a->read.unknown_interface += r->count.unknown_interface;
	return n < 0 ? n : !more;
}

void analysis_end(struct analysis *a) {
	track_end(&a->track);
}

void analysis_fini(struct analysis *a) {
	track_fini(&a->track);
}

bool analysis_balanced(const struct analysis *a) {
	uint64_t sum = 0, ended = 0;

	for (uint32_t i = 0; i < DECODE_COUNT; i++)
		sum += a->decoded[i];
	for (uint32_t i = 0; i <= TEL_HALF_OPEN; i++)
		ended += a->track.count.ended[i];
	return sum == a->read.packets && a->decoded[DECODE_TCP] == a->track.count.packets
		&& ended == a->track.count.connections;
}

static void write_ledger(const struct analysis *a, struct json *j) {
	static const char *const names[] = {
#define NAME_(constant, name, meaning) name,
		DECODE_VALUES(NAME_)};

	json_object(j, "ledger");
	json_bool(j, "balanced", analysis_balanced(a));
	json_object(j, "capture");
	json_u64(j, "read", a->read.packets);
	for (uint32_t i = 0; i < DECODE_COUNT; i++)
		json_u64(j, names[i], a->decoded[i]);
	json_close(j, '}');
	json_close(j, '}');
}

static void write_ended(const struct track_count *c, struct json *j) {
	static const struct {
		enum tel_flow_event event;
		const char *name;
	} names[] = {
#define EVENT_(constant, number, name, meaning) {constant, name},
		TEL_FLOW_EVENT_VALUES(EVENT_)};

	json_object(j, "ended");
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (c->ended[names[i].event] > 0)
			json_u64(j, names[i].name, c->ended[names[i].event]);
	}
	json_close(j, '}');
}

static void write_capture(const struct analysis *a, struct json *j) {
	const struct track *t = &a->track;
	const struct track_count *c = &t->count;

	json_object(j, "capture");
	json_u64(j, "files", a->files);
	json_u64(j, "packets", a->read.packets);
	json_u64(j, "bytes", a->read.bytes);
	json_u64(j, "start_utc_ns", a->first_ns);
	json_f64(j, "duration_s", (double)time_since(a->last_ns, a->first_ns) / 1e9);
	json_u64(j, "connections", c->connections);
	json_u64(j, "connections_max", c->live_max);
	json_u64(j, "flows", c->flows);
	json_u64(j, "payload_bytes", c->payload_bytes);
	write_ended(c, j);
	json_u64(j, "backwards", c->backwards);
	json_u64(j, "no_time", a->read.no_time);
	json_u64(j, "options_cut", a->options_cut);
	json_u64(j, "options_bad", a->options_bad);
	json_u64(j, "unknown_interface", a->read.unknown_interface);
	json_u64(j, "other_blocks", a->read.skipped_blocks);
	json_u64(j, "untracked", t->pool.refused);
	json_u64(j, "sent_memory_bytes", t->pool.used);
	json_u64(j, "rtt_samples", t->rtt.total);
	json_u64(j, "rtt_p50_ns", hist_quantile(&t->rtt, 0.5));
	json_u64(j, "rtt_p99_ns", hist_quantile(&t->rtt, 0.99));
	json_array(j, "notes");
	for (uint32_t i = 0; i < a->notes && i < ANALYSIS_NOTES_MAX; i++)
		json_text(j, NULL, a->note[i]);
	json_close(j, ']');
	json_close(j, '}');
}

// Jain's fairness index of n flows.
static void write_jfi(struct json *j, double sum, double square_sum, uint64_t n) {
	if (square_sum > 0)
		json_f64(j, "jfi", sum * sum / ((double)n * square_sum));
	else
		json_null(j, "jfi");
}

static void write_group(const struct track_group *g, double measured_s, struct json *j) {
	char name[32] = "other ports";

	if (g->port != 0)
		snprintf(name, sizeof(name), "port %u", g->port);
	json_object(j, NULL);
	json_text(j, "name", name);
	json_text(j, "cc", "");
	json_u64(j, "flows", g->flows);
	if (measured_s > 0)
		json_f64(j, "goodput_bps", (double)g->measured_bytes * 8 / measured_s);
	else
		json_null(j, "goodput_bps");
	write_jfi(j, g->goodput_sum, g->goodput_square_sum, g->flows);
	if (g->rtt_samples > 0)
		json_u64(j, "rtt_mean_ns", g->rtt_sum_ns / g->rtt_samples);
	else
		json_null(j, "rtt_mean_ns");
	json_u64(j, "acked_bytes", g->acked_bytes);
	json_u64(j, "sent_segs", g->sent_segs);
	json_u64(j, "retransmits", g->retransmits);
	json_u64(j, "spurious", g->spurious);
	json_u64(j, "lost_segs", g->lost_segs);
	json_u64(j, "out_of_order", g->out_of_order);
	json_u64(j, "duplicates", g->duplicates);
	json_u64(j, "cwnd_reductions", g->reductions);
	json_u64(j, "timeouts", g->timeouts);
	json_close(j, '}');
}

void analysis_summary(const struct analysis *a, struct json *j) {
	const struct track *t = &a->track;
	double sum = 0, square_sum = 0;
	double measured_s =
		(double)time_since(time_since(a->last_ns, a->first_ns), t->limits.warmup_ns) / 1e9;

	write_ledger(a, j);
	write_capture(a, j);
	json_array(j, "groups");
	for (uint32_t i = 0; i < t->groups; i++) {
		write_group(&t->group[i], measured_s, j);
		sum += t->group[i].goodput_sum;
		square_sum += t->group[i].goodput_square_sum;
	}
	json_close(j, ']');
	write_jfi(j, sum, square_sum, t->count.flows);
}
