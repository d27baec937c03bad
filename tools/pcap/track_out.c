// SPDX-License-Identifier: BSD-3-Clause
// From what was counted to telemetry: events as they come, intervals as they end, flows when they
// have ended.
#include "common/base/likely.h"
#include "tools/pcap/track.h"

#include <string.h>

static uint64_t mean(uint64_t sum, uint64_t n) {
	return n == 0 ? 0 : sum / n;
}

void track_event(const struct track_at *a, uint32_t d, enum tel_event event, double before,
	double value, uint32_t detail) {
	const struct track_rare *rare = track_rare(a, d);
	struct tel_events *e = tel_put(&a->t->tel[TEL_STREAM_EVENTS]);

	if (e == NULL)
		return;
	*e = (struct tel_events){
		.ts_ns = a->now_ns,
		.value = value,
		.flow_id = rare->id,
		.detail = detail,
		.before = (float)before,
		.event = (uint16_t)event,
		.group = rare->group,
	};
}

void track_segment(const struct track_at *a) {
	const struct track_rare *own = track_rare(a, a->d), *other = track_rare(a, !a->d);
	bool forward = own->id != TEL_NO_FLOW && (a->p->payload > 0 || other->id == TEL_NO_FLOW);
	uint32_t id = forward ? own->id : other->id, window = a->f->snd[!a->d].window;
	struct tel_segments *r;

	if (!tel_flow_sampled(a->t->tel_run, id)
		|| (r = tel_put(&a->t->tel[TEL_STREAM_SEGMENTS])) == NULL)
		return;
	bool acks = (a->p->seg.flags & SEG_ACK) != 0;
	const struct seg_sack *sack = a->p->seg.sack_count > 0 ? a->p->seg.sack : NULL;
	bool known = (a->p->seg.flags & SEG_SYN) != 0 || track_scale_known(a->f, a->d);

	*r = (struct tel_segments){
		.ts_ns = a->now_ns,
		.flow_id = id,
		.seq = a->p->seg.seq - own->isn,
		.ack = acks ? a->p->seg.ack - other->isn : 0,
		.window_bytes = !acks ? a->p->seg.window
			: known	      ? window
				      : TEL_UNKNOWN(uint32_t),
		.sack_start = sack != NULL ? sack->start - other->isn : TEL_UNKNOWN(uint32_t),
		.sack_end = sack != NULL ? sack->end - other->isn : TEL_UNKNOWN(uint32_t),
		.payload_bytes = a->p->payload,
		.inflight_bytes = a->inflight,
		.rtt_ns = a->rtt_ns,
		.kind = (uint16_t)(a->kind
			| (acks && a->p->seg.window == 0 ? KIND_ZERO_WINDOW : 0)),
		.flags = a->p->seg.flags,
		.ecn = a->p->ecn,
		.forward = forward,
	};
}

// Flows are grouped by the port of the server.
static uint32_t group_of(struct track *t, const struct track_flow *f) {
	uint16_t port = f->port[!f->client];

	for (uint32_t i = 0; i < t->groups; i++) {
		if (t->group[i].port == port)
			return i;
	}
	if (t->groups == TRACK_GROUPS_MAX)
		return TRACK_GROUPS_MAX - 1; // all others
	// The last one is for whoever finds no other.
	t->group[t->groups].port = t->groups + 1 < TRACK_GROUPS_MAX ? port : 0;
	return t->groups++;
}

void track_new_flow(struct track_at *a, uint32_t d) {
	struct track_rare *rare = track_rare(a, d);

	a->f->snd[d].flags |= DIR_FLOW;
	rare->id = (uint32_t)a->t->count.flows++;
	rare->group = (uint8_t)group_of(a->t, a->f);
	a->t->group[rare->group].flows++;
	rare->first_data_ns = a->now_ns;
}

static void put_interval(struct track *t, const struct track_snd *snd, const struct track_dir *dir,
	const struct track_rare *rare) {
	struct tel_interval *r = tel_put(&t->tel[TEL_STREAM_INTERVAL]);
	uint32_t mss = dir->mss > 0 ? dir->mss : 1;

	if (r == NULL)
		return;
	*r = (struct tel_interval){
		.ts_ns = t->interval_end_ns,
		.acked_bytes = dir->back.acked_bytes,
		.delivered_bytes = dir->back.delivered_bytes,
		.flow_id = rare->id,
		.sent_segs = dir->sent.segs,
		.retransmits = rare->interval.retransmits,
		.lost_segs = rare->interval.lost_segs,
		.rtt_samples = dir->back.rtt_samples,
		.rtt_mean_ns = mean(dir->back.rtt_sum_ns, dir->back.rtt_samples),
		.rtt_max_ns = dir->back.rtt_max_ns,
		.cwnd_segs = (float)dir->sent.inflight_max_bytes / (float)mss,
		.inflight_segs = (snd->nxt - snd->una + mss - 1) / mss,
		.group = rare->group,
		.drops = TEL_UNKNOWN(uint64_t),
		.cwnd_reductions = rare->interval.reductions,
		.state = (snd->flags & DIR_LOSS) != 0	   ? TEL_CA_LOSS
			: (snd->flags & DIR_RECOVERY) != 0 ? TEL_CA_RECOVERY
							   : TEL_CA_OPEN,
	};
}

// Writes a direction's interval and adds it to its sums.
static void fold(struct track *t, uint32_t index) {
	struct track_snd *snd = &t->flow[index / 2].snd[index & 1];
	struct track_dir *dir = &t->flow[index / 2].dir[index & 1];
	struct track_rare *rare = &t->rare[index / 2][index & 1];

	if ((snd->flags & DIR_TOUCHED) == 0)
		return;
	snd->flags &= (uint16_t)~DIR_TOUCHED;
	put_interval(t, snd, dir, rare);
	rare->sent_bytes += dir->sent.bytes;
	rare->acked_bytes += dir->back.acked_bytes;
	if (t->measuring)
		rare->measured_bytes += dir->back.acked_bytes;
	rare->sent_segs += dir->sent.segs;
	rare->retransmits += rare->interval.retransmits;
	rare->lost_segs += rare->interval.lost_segs;
	rare->reductions += rare->interval.reductions;
	rare->rtt_sum_ns += dir->back.rtt_sum_ns;
	rare->rtt_samples += dir->back.rtt_samples;
	if (dir->back.rtt_max_ns > rare->rtt_max_ns)
		rare->rtt_max_ns = dir->back.rtt_max_ns;
	if (dir->back.rtt_min_ns > rare->rtt_min_ns)
		rare->rtt_min_ns = dir->back.rtt_min_ns;
	if (dir->sent.inflight_max_bytes > rare->inflight_max)
		rare->inflight_max = dir->sent.inflight_max_bytes;
	memset(&dir->sent, 0, sizeof(dir->sent));
	memset(&dir->back, 0, sizeof(dir->back));
	memset(&rare->interval, 0, sizeof(rare->interval));
}

void track_flush(struct track *t) {
	for (uint32_t i = 0; i < t->touched_count; i++) {
		uint32_t next = t->touched[i + 8 < t->touched_count ? i + 8 : i];
		const struct track_flow *f = &t->flow[next / 2];
		const struct track_rare *rare = &t->rare[next / 2][next & 1];

		prefetch_write(f);
		prefetch_write(&f->dir[next & 1]);
		prefetch_write(&f->dir[next & 1].back);
		prefetch_write(rare);
		prefetch_write(&rare->interval);
		fold(t, t->touched[i]);
	}
	t->touched_count = 0;
	for (enum tel_stream s = 0; s < TEL_STREAM_COUNT; s++)
		tel_publish(&t->tel[s]);
}

static uint8_t options(const struct track_flow *f, uint32_t d) {
	const struct track_snd *a = &f->snd[d], *b = &f->snd[!d];
	uint8_t both = a->options & b->options;

	return (uint8_t)((both & SEG_OPT_TS ? 1 : 0) | (both & SEG_OPT_SACK_OK ? 2 : 0)
		| (both & SEG_OPT_WSCALE ? 4 : 0)
		| (f->ecn == TRACK_ECN_CLASSIC || f->ecn == TRACK_ECN_ACCURATE ? 8 : 0)
		| (a->flags & DIR_SYN ? 16 : 0) | (b->flags & DIR_SYN ? 32 : 0));
}

static uint32_t ipv4(const struct endpoint *e) {
	return endpoint_is_ipv4(e) ? (uint32_t)e->low : 0;
}

static void put_flow(struct track *t, uint32_t place, uint32_t d, enum tel_flow_event event) {
	const struct track_flow *f = &t->flow[place];
	const struct track_rare *r = &t->rare[place][d];
	const struct track_dir *dir = &f->dir[d];
	const struct track_opening *o = &t->opening[place];
	struct tel_flows *flow = tel_put(&t->tel[TEL_STREAM_FLOWS]);

	if (flow == NULL)
		return;
	*flow = (struct tel_flows){
		.ts_ns = f->last_ns,
		.start_ns = o->start_ns,
		.acked_bytes = r->acked_bytes,
		.flow_id = r->id,
		.src_ip = ipv4(&o->key.end[d]),
		.dst_ip = ipv4(&o->key.end[!d]),
		.sent_segs = r->sent_segs,
		.retransmits = r->retransmits,
		.cwnd_reductions = r->reductions,
		.timeouts = r->timeouts,
		.srtt_ns = dir->rtt.srtt_ns,
		.src_port = o->key.port[d],
		.dst_port = o->key.port[!d],
		.group = r->group,
		.event = (uint8_t)event,
	};
}

static void put_captured(struct track *t, uint32_t place, uint32_t d, enum tel_flow_event event) {
	const struct track_flow *f = &t->flow[place];
	const struct track_rare *r = &t->rare[place][d];
	const struct track_dir *dir = &f->dir[d];
	const struct track_opening *o = &t->opening[place];
	struct tel_captured *c = tel_put(&t->tel[TEL_STREAM_CAPTURED]);

	if (c == NULL)
		return;
	*c = (struct tel_captured){
		.ts_ns = f->last_ns,
		.start_ns = o->start_ns,
		.src_high = o->key.end[d].high,
		.src_low = o->key.end[d].low,
		.dst_high = o->key.end[!d].high,
		.dst_low = o->key.end[!d].low,
		.sent_bytes = r->sent_bytes,
		.acked_bytes = r->acked_bytes,
		.measured_bytes = r->measured_bytes,
		.uncaptured_bytes = r->uncaptured_bytes,
		.flow_id = r->id,
		.connection = o->connection,
		.packets = f->snd[d].packets,
		.sent_segs = r->sent_segs,
		.inflight_max_bytes = r->inflight_max,
		.inflight_mean_bytes =
			r->sent_segs > 0 ? (float)dir->inflight_sum / (float)r->sent_segs : 0,
		.keep_alives = r->keep_alives,
		.bursts = r->bursts,
		.burst_max_segs = dir->burst_max,
		.out_of_window = r->out_of_window,
		.src_port = o->key.port[d],
		.dst_port = o->key.port[!d],
		.mss = dir->mss_allowed > 0 && dir->mss_allowed < dir->mss ? dir->mss_allowed
									   : dir->mss,
		.group = r->group,
		.event = (uint8_t)event,
		.options = options(f, d),
		.client = f->client == d,
	};
}

static void put_losses(struct track *t, uint32_t place, uint32_t d) {
	const struct track_rare *r = &t->rare[place][d];
	struct tel_losses *l = tel_put(&t->tel[TEL_STREAM_LOSSES]);

	if (l == NULL)
		return;
	*l = (struct tel_losses){
		.ts_ns = t->flow[place].last_ns,
		.retransmit_bytes = r->retransmit_bytes,
		.flow_id = r->id,
		.sent_segs = r->sent_segs,
		.retransmits = r->retransmits,
		.spurious = r->spurious,
		.lost_segs = r->lost_segs - r->dsack_spurious,
		.lost_before = r->lost_before,
		.out_of_order = r->out_of_order,
		.duplicates = r->duplicates,
		.cwnd_reductions = r->reductions,
		.ecn_reductions = r->ecn_reductions,
		.timeouts = r->timeouts,
		.tail_probes = r->tail_probes,
		.duplicate_acks = r->duplicate_acks,
		.sack_acks = r->sack_acks,
		.dsacks = r->dsacks,
		.ect = r->ect,
		.ce = r->ce,
		.ece = r->ece,
		.untracked = r->untracked,
		.group = r->group,
	};
}

static void put_delays(struct track *t, uint32_t place, uint32_t d) {
	const struct track_flow *f = &t->flow[place];
	const struct track_rare *r = &t->rare[place][d];
	const struct track_dir *dir = &f->dir[d];
	struct tel_delays *w = tel_put(&t->tel[TEL_STREAM_DELAYS]);
	const uint64_t *handshake = t->opening[place].handshake_ns;
	bool ts = dir->tsrtt_samples > 0;
	bool windows = track_scale_known(f, !d) && r->window_min <= r->window_max;

	if (w == NULL)
		return;
	*w = (struct tel_delays){
		.ts_ns = f->last_ns,
		.data_ns = time_since(dir->last_ack_ns, r->first_data_ns),
		.zero_window_ns = r->zero_window_ns,
		.gap_max_ns = dir->gap_max_ns,
		.ack_gap_max_ns = dir->ack_gap_max_ns,
		.flow_id = r->id,
		.rtt_samples = r->rtt_samples,
		.rtt_sack_samples = r->rtt_sack_samples,
		.rtt_mean_ns = mean(r->rtt_sum_ns, r->rtt_samples),
		.rtt_min_ns = r->rtt_samples > 0 ? NEVER_NS - r->rtt_min_ns : 0,
		.rtt_max_ns = r->rtt_max_ns,
		.srtt_ns = dir->rtt.srtt_ns,
		.tsrtt_samples = dir->tsrtt_samples,
		.tsrtt_mean_ns = mean(dir->tsrtt_sum_ns, dir->tsrtt_samples),
		.tsrtt_min_ns = ts ? dir->tsrtt_min_ns : 0,
		.tsrtt_max_ns = ts ? dir->tsrtt_max_ns : 0,
		.syn_rtt_ns =
			(f->snd[f->client].flags & DIR_ANSWERED) != 0 ? handshake[f->client] : 0,
		.syn_ack_rtt_ns =
			(f->snd[!f->client].flags & DIR_ANSWERED) != 0 ? handshake[!f->client] : 0,
		.syns = t->rare[place][0].syns + t->rare[place][1].syns,
		.zero_windows = r->zero_windows,
		.window_limited = windows ? r->window_limited : TEL_UNKNOWN(uint32_t),
		.window_min_bytes = windows ? r->window_min : TEL_UNKNOWN(uint32_t),
		.window_max_bytes = windows ? r->window_max : TEL_UNKNOWN(uint32_t),
		.acks = dir->acks,
		.stretch_acks = r->stretch_acks,
		.ack_gap_mean_ns = dir->acks > 1
			? mean(time_since(dir->last_ack_ns, r->first_ack_ns), dir->acks - 1)
			: 0,
		.group = r->group,
	};
}

// Adds a flow's sums, times 1; times UINT64_MAX, which is -1, it takes them away. A sum may be
// below zero, and wraps, until the flows end.
static void add_to_group(struct track *t, uint32_t place, uint32_t d, uint64_t times) {
	const struct track_rare *r = &t->rare[place][d];
	struct track_group *g = &t->group[r->group];

	g->acked_bytes += times * r->acked_bytes;
	g->sent_segs += times * r->sent_segs;
	g->retransmits += times * r->retransmits;
	g->lost_segs += times * (r->lost_segs - r->dsack_spurious);
	g->spurious += times * r->spurious;
	g->reductions += times * r->reductions;
	g->timeouts += times * r->timeouts;
	g->out_of_order += times * r->out_of_order;
	g->duplicates += times * r->duplicates;
	g->rtt_sum_ns += times * r->rtt_sum_ns;
	g->rtt_samples += times * r->rtt_samples;
}

// The groups' sums begin again. What the live flows have so far is taken away, because all that
// they have is added when they end.
void track_end_warmup(struct track *t) {
	track_flush(t);
	t->measuring = true;
	for (uint32_t i = 0; i < t->groups; i++)
		t->group[i] =
			(struct track_group){.port = t->group[i].port, .flows = t->group[i].flows};
	for (uint32_t i = 0; i < 2 * t->placed; i++) {
		const struct track_flow *f = &t->flow[i / 2];

		if ((f->flags & FLOW_USED) != 0 && (f->snd[i & 1].flags & DIR_FLOW) != 0)
			add_to_group(t, i / 2, i & 1, UINT64_MAX);
	}
}

void track_flow_records(struct track *t, uint32_t place, enum tel_flow_event event) {
	struct track_flow *f = &t->flow[place];
	struct track_at a = {.t = t, .f = f, .place = place, .now_ns = f->last_ns};

	for (uint32_t d = 0; d < 2; d++)
		fold(t, 2 * place + d);
	if (((f->snd[0].flags | f->snd[1].flags) & DIR_FLOW) == 0)
		track_new_flow(&a, f->client);
	for (uint32_t d = 0; d < 2; d++) {
		const struct track_rare *r = &t->rare[place][d];
		struct track_group *g = &t->group[r->group];

		if ((f->snd[d].flags & DIR_FLOW) == 0)
			continue;
		put_flow(t, place, d, event);
		put_captured(t, place, d, event);
		put_losses(t, place, d);
		put_delays(t, place, d);
		add_to_group(t, place, d, 1);
		g->goodput_sum += (double)r->measured_bytes;
		g->goodput_square_sum += (double)r->measured_bytes * (double)r->measured_bytes;
		t->count.payload_bytes += r->sent_bytes;
	}
}
