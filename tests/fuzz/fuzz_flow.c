// SPDX-License-Identifier: BSD-3-Clause
// A sending flow and a hostile peer: any sequence of segments at any times, then an honest peer.
//
// The input chooses the flow's configuration, then one event after the other: time passes, or the
// peer sends an ACK, SACK blocks, a SYN/ACK, or any segment that wire_parse_tcp can return. After
// each event the flow's state is counted again from its records (check_host.h). When the input is
// used up, nothing that was sent so far has arrived, and the peer becomes an honest one: it
// acknowledges each segment that comes from then on and answers probes. The flow must send all its
// data and its FIN within a bounded time, unless a reset that TCP must believe had ended it, or it
// had given up.
//
// What the peer sent in its own name binds it: the honest peer goes on from the sequence number and
// the timestamp that an acceptable segment has set. Other segments may be forged and must change
// nothing.
#include "fuzz.h"

#include "../unit/check_host.h"
#include "common/config/config.h"
#include "sender/source/source.h"

#define SEGS_MAX 1024
#define REPLIES 8192 // more than the segments of a flow that can be in flight
#define FINISH_NS (3600 * NS_PER_S) // a stall is for ever; the longest timeout is 60 s
#define EVENTS_MAX 200000 // of one input

struct reply {
	uint64_t t_ns;
	struct seg seg;
};

struct peer {
	struct input in;
	struct groups groups;
	struct host host;
	struct flow *flow;
	uint64_t now_ns, out_ns, events;
	uint64_t edge; // highest right edge of a window that was ever offered
	uint32_t ts_ahead; // of the peer's clock
	bool reset; // by a segment that must be believed
	bool reneges; // honest: what was SACKed is not there

	bool honest, heard; // heard: something was sent since
	uint64_t delay_ns;
	uint64_t start; // offset up to which all had arrived before
	bool got[SEGS_MAX];
	uint64_t prefix; // all segments below it are there
	uint64_t first, last; // replies on their way
};

static struct reply replies[REPLIES];

static uint32_t peer_tsval(const struct peer *p, uint64_t t_ns) {
	return flow_tsval(t_ns) + p->ts_ahead;
}

static struct seg peer_ack(const struct peer *p, uint32_t ack, uint16_t window, uint64_t t_ns) {
	const struct flow *f = p->flow;
	struct seg s = {.seq = f->rcv_nxt, .ack = ack, .window = window, .flags = SEG_ACK};

	if (f->ts_ok) {
		s.options = SEG_OPT_TS;
		s.tsval = peer_tsval(p, t_ns);
		s.tsecr = flow_tsval(f->last_send_ns);
	}
	return s;
}

static struct seg peer_syn_ack(const struct peer *p, uint64_t t_ns) {
	const struct group *g = &p->groups.group[0];

	return (struct seg){
		.seq = 1000,
		.ack = p->flow->iss + 1,
		.tsval = peer_tsval(p, t_ns),
		.tsecr = flow_tsval(p->flow->last_send_ns),
		.window = 65535,
		.flags = (uint8_t)(SEG_SYN | SEG_ACK | (g->ecn != 0 ? SEG_ECE : 0)),
		.options = SEG_OPT_MSS | SEG_OPT_WSCALE | SEG_OPT_SACK_OK | SEG_OPT_TS,
		.wscale = 7,
		.mss = 1460,
	};
}

// ---- The honest peer ----

static void reply(struct peer *p, const struct seg *s, uint64_t t_ns) {
	NEED(p->last - p->first < REPLIES);
	replies[p->last++ % REPLIES] = (struct reply){t_ns, *s};
}

static void honest_rx(struct peer *p, const struct seg *s, uint64_t t_ns) {
	const struct flow *f = p->flow;
	uint64_t index = 0, start, end; // 0: no data, never beyond a hole
	struct seg ack;

	p->heard = true;
	if ((s->flags & SEG_SYN) != 0) {
		ack = peer_syn_ack(p, t_ns);
		reply(p, &ack, t_ns);
		return;
	}
	if (f->state != FLOW_OPEN)
		return;
	if (s->len > 0 || (s->flags & SEG_FIN) != 0) {
		for (index = f->una; index < f->data_segs; index++) {
			if (seq_diff(flow_seq(f, index + 1), s->seq) > 0)
				break;
		}
		NEED(seq_diff(s->seq, flow_seq(f, index)) >= 0);
		// Part of a segment, for the window of before, is not kept.
		p->got[index] |= s->len == 0 || s->seq + s->len == flow_seq(f, index + 1);
	} else if (seq_diff(s->seq, flow_seq_nxt(f)) >= 0) {
		return; // a bare ACK; a probe is below what is expected next
	}
	while (p->prefix <= f->data_segs && p->got[p->prefix])
		p->prefix++;
	ack = peer_ack(p, f->iss + 1 + (uint32_t)max_u64(p->start, flow_offset(f, p->prefix)),
		65535, t_ns);
	if (f->ts_ok)
		ack.tsecr = s->tsval;
	if (f->sack_ok && index > p->prefix) {
		for (start = index; p->got[start - 1]; start--)
			;
		for (end = index + 1; end <= f->data_segs && p->got[end]; end++)
			;
		ack.sack[ack.sack_count++] =
			(struct seg_sack){flow_seq(f, start), flow_seq(f, end)};
	}
	reply(p, &ack, t_ns);
}

static void output(void *ctx, uint32_t id, const struct seg *seg, uint32_t n, uint8_t ecn,
	uint64_t due_ns, bool paced) {
	struct peer *p = ctx;
	const struct flow *f = p->flow;
	struct seg s = *seg;

	NEED(!p->host.env.virtual_time || due_ns >= p->out_ns);
	p->out_ns = due_ns;
	for (uint32_t i = 0; i < n; i++, s.seq += s.len) {
		if (s.len > 0 && f->state == FLOW_OPEN) {
			uint32_t ahead = s.seq - (f->iss + 1 + (uint32_t)flow_offset(f, f->una));
			uint64_t offset = flow_offset(f, f->una) + ahead;

			// A whole segment of our data, the rest of one, or what fits into a window
			// that holds less; and not beyond any window but by a probe.
			uint64_t end = offset + s.len;
			bool ends = end % f->payload == 0 || end == f->total_bytes;

			NEED(end <= f->total_bytes && s.len <= f->payload);
			NEED(offset % f->payload == 0 || offset == f->una_bytes);
			NEED(ends || (offset == f->una_bytes && end == f->wnd_bytes));
			NEED(end <= p->edge + f->payload);
		}
		if (p->honest)
			honest_rx(p, &s, time_max(due_ns, p->now_ns) + p->delay_ns);
	}
}

// ---- Time and segments ----

static void check(struct peer *p) {
	NEED(++p->events < EVENTS_MAX);
	check_host(&p->host, p->now_ns);
	NEED(p->flow->state != FLOW_FAILED || p->reset
		|| p->flow->timeouts >= p->groups.group[0].retries);
}

// Timers in order, one time after the other.
static void run_until(struct peer *p, uint64_t until_ns) {
	uint64_t t_ns;

	while ((t_ns = host_next_ns(&p->host, until_ns)) <= until_ns) {
		p->now_ns = time_max(p->now_ns, t_ns);
		host_run(&p->host, p->now_ns);
		check(p);
	}
	p->now_ns = until_ns;
}

// Would TCP take it for the peer's (RFC 9293 section 3.10.7.4)? Only what begins where the peer is,
// or spans it, and acknowledges something that is in flight.
static bool acceptable(const struct flow *f, const struct seg *s) {
	int32_t behind = seq_diff(f->rcv_nxt, s->seq);
	int32_t len = s->len + ((s->flags & SEG_FIN) != 0 ? 1 : 0);

	return (s->flags & (SEG_ACK | SEG_SYN)) == SEG_ACK
		&& (behind == 0 || (behind > 0 && behind < len))
		&& seq_diff(s->ack, f->iss + 1 + (uint32_t)f->una_bytes) >= 0
		&& seq_diff(s->ack, flow_seq_nxt(f)) <= 0;
}

static void note_edge(struct peer *p, const struct seg *s) {
	const struct flow *f = p->flow;
	uint32_t ahead = s->ack - (f->iss + 1 + (uint32_t)f->una_bytes);

	if ((s->flags & SEG_SYN) != 0)
		p->edge = max_u64(p->edge, s->window);
	else if (f->una_bytes + ahead <= flow_sent_bytes(f))
		p->edge = max_u64(
			p->edge, f->una_bytes + ahead + ((uint64_t)s->window << f->snd_wscale));
}

static void feed(struct peer *p, const struct seg *s) {
	const struct flow *f = p->flow;
	bool acks_syn = (s->flags & SEG_ACK) != 0 && s->ack == f->iss + 1;
	int32_t newer = seq_diff(s->tsval, peer_tsval(p, p->now_ns));
	bool echoes_ts = f->state == FLOW_SYN_SENT ? acks_syn && (s->flags & SEG_SYN) != 0
						   : f->state == FLOW_OPEN && f->ts_ok
			&& (s->options & SEG_OPT_TS) != 0 && (s->flags & SEG_RST) == 0
			&& acceptable(f, s) && seq_diff(s->tsval, f->ts_recent) >= 0;

	if (echoes_ts && newer > 0)
		p->ts_ahead += (uint32_t)newer;
	if ((s->flags & SEG_RST) != 0)
		p->reset |= f->state == FLOW_SYN_SENT ? acks_syn : s->seq == f->rcv_nxt;
	note_edge(p, s);
	host_rx_flow(&p->host, 0, s, (uint8_t)(p->events & 3), p->now_ns);
	check(p);
}

// ---- The hostile peer ----

// Number of a segment, from una on; a little beyond nxt too.
static uint32_t any_edge(struct peer *p) {
	const struct flow *f = p->flow;

	return flow_seq(f, f->una + in_u8(&p->in) % (f->nxt - f->una + 2));
}

static uint16_t any_window(struct input *in) {
	uint8_t x = in_u8(in);

	return x < 128 ? (uint16_t)(65535 - x * 512) : (uint16_t)(255 - x);
}

// A peer that acknowledges as it likes what is there, with blocks that may well be right.
static void ack_something(struct peer *p, uint32_t blocks) {
	struct seg s = peer_ack(
		p, p->flow->iss + 1 + (uint32_t)p->flow->una_bytes, any_window(&p->in), p->now_ns);
	uint8_t how = in_u8(&p->in);

	if ((how & 1) != 0)
		s.ack = any_edge(p);
	if ((how & 2) != 0)
		s.flags |= SEG_ECE;
	if ((how & 4) != 0) // an old echo
		s.tsecr -= in_u8(&p->in);
	if ((how & 8) != 0) // in the middle of a segment
		s.ack += in_u8(&p->in);
	for (uint32_t i = 0; i < blocks; i++) {
		uint32_t from = any_edge(p), to = any_edge(p);

		s.sack[s.sack_count++] = (struct seg_sack){from, to};
	}
	feed(p, &s);
}

// Any segment that wire_parse_tcp can return.
static void send_anything(struct peer *p) {
	const struct flow *f = p->flow;
	struct input *in = &p->in;
	uint8_t flags = in_u8(in), shape = in_u8(in);
	struct seg s = peer_ack(p, 0, any_window(in), p->now_ns);

	s.flags = flags;
	s.seq = in_near(in, f->rcv_nxt);
	s.ack = in_near(in, (shape & 1) != 0 ? flow_seq(f, f->nxt) : flow_seq(f, f->una));
	if ((shape & 2) != 0)
		s.options ^= SEG_OPT_TS;
	if ((shape & 4) != 0)
		s.tsval = in_near(in, s.tsval);
	if ((shape & 8) != 0)
		s.tsecr = in_near(in, s.tsecr);
	if ((s.options & SEG_OPT_TS) == 0)
		s.tsval = s.tsecr = 0;
	if ((shape & 16) != 0)
		s.len = in_u16(in);
	s.sack_count = (uint8_t)((shape >> 5) % (SEG_SACK_MAX + 1));
	for (uint32_t i = 0; i < s.sack_count; i++) {
		s.sack[i].start = in_near(in, any_edge(p));
		s.sack[i].end = in_near(in, any_edge(p));
	}
	if ((flags & SEG_SYN) != 0) {
		s.options |= in_u8(in) & (SEG_OPT_MSS | SEG_OPT_WSCALE | SEG_OPT_SACK_OK);
		s.mss = (s.options & SEG_OPT_MSS) != 0 ? in_u16(in) : 0;
		s.wscale = (s.options & SEG_OPT_WSCALE) != 0 ? in_u8(in) % 15 : 0;
	}
	feed(p, &s);
}

static void hostile_event(struct peer *p) {
	uint8_t kind = in_u8(&p->in);
	uint64_t t_ns;
	struct seg s;

	switch (kind & 7) {
	case 0: // up to 17 s
		run_until(p, p->now_ns + ((UINT64_C(1) << (kind >> 3)) * (8 + in_u8(&p->in) % 8)));
		break;
	case 1: // the next timer, all that it lets out
		t_ns = p->now_ns + 60 * NS_PER_S;
		run_until(p, time_max(p->now_ns, time_min(t_ns, host_next_ns(&p->host, t_ns))));
		break;
	case 2:
		s = peer_syn_ack(p, p->now_ns);
		feed(p, &s);
		break;
	case 3: // all of it
		s = peer_ack(p, flow_seq(p->flow, p->flow->nxt), 65535, p->now_ns);
		feed(p, &s);
		break;
	case 4:
	case 5:
		ack_something(p, (kind >> 3) % 5);
		break;
	default:
		send_anything(p);
		break;
	}
}

// ---- The honest end ----

static void become_honest(struct peer *p) {
	const struct flow *f = p->flow;

	p->honest = true;
	p->edge = UINT64_MAX / 2;
	if (f->state != FLOW_OPEN)
		return;
	NEED(f->data_segs < SEGS_MAX);
	p->start = f->una_bytes;
	p->prefix = f->una;
	for (uint64_t i = f->una; i < f->nxt && !p->reneges && f->sack_ok; i++)
		p->got[i] = (flow_seg(f, i)->flags & SENT_SACKED) != 0;
}

static void finish(struct peer *p) {
	uint64_t limit_ns = p->now_ns + FINISH_NS;

	// That SACKed segments are not there, a flow learns from a timeout, and it had its last
	// one.
	if (p->reneges && p->flow->timeouts >= p->groups.group[0].retries)
		return;
	become_honest(p);
	while (p->flow->state != FLOW_DONE) {
		uint64_t t_ns = host_next_ns(&p->host, limit_ns);

		if (p->flow->state == FLOW_FAILED && !p->heard)
			return; // that was its last timeout
		NEED(p->flow->state != FLOW_FAILED);
		if (p->first < p->last && replies[p->first % REPLIES].t_ns <= t_ns) {
			const struct reply *r = &replies[p->first++ % REPLIES];

			p->now_ns = time_max(p->now_ns, r->t_ns);
			host_run(&p->host, p->now_ns);
			struct seg s = r->seg;
			if ((s.flags & SEG_SYN) == 0)
				s.seq = p->flow->rcv_nxt;
			feed(p, &s);
			continue;
		}
		NEED(t_ns <= limit_ns); // else the flow has stalled
		run_until(p, time_max(p->now_ns, t_ns));
	}
	NEED(p->host.arena.used == 0);
}

static struct config *open_flow(struct peer *p) {
	static const char *const ccs[] = {"newreno", "cubic", "bbr", "copa"};
	static const char *const ecns[] = {"off", "ect0", "ect1", "off"};
	static const char *const pacings[] = {"cc", "srtt", "off", "cc"};
	static const uint32_t mss[] = {1460, 536, 100, 9000};
	uint8_t a = in_u8(&p->in), b = in_u8(&p->in);
	struct err err = {""};
	char text[256];

	snprintf(text, sizeof(text),
		"flows: [{cc: %s, ecn: %s, pacing: %s, mss: %uB, sack: %s, timestamps: %s, "
		"tlp: %s, source: {size: {bytes: %uB}}}]",
		ccs[a & 3], ecns[a >> 2 & 3], pacings[a >> 4 & 3], mss[a >> 6],
		(b & 1) != 0 ? "no" : "yes", (b & 2) != 0 ? "no" : "yes",
		(b & 4) != 0 ? "no" : "yes", 1u + in_u16(&p->in) % 20000u);
	struct config *config = config_parse("fuzz", text, strlen(text), &err);
	NEED(config != NULL);
	struct host_env env = {
		.output = output,
		.ctx = p,
		.start_ns = NS_PER_S,
		.virtual_time = (b & 8) == 0,
		.pipe_segs = (b & 16) == 0 ? 64 : 2, // the latter: room for a few segments only
		.flows = true,
	};
	p->reneges = (b & 32) != 0;
	p->delay_ns = NS_PER_MS << (b >> 6) * 3; // 1 to 512 ms
	if (groups_init(&p->groups, config_get(config_root(config), "flows"), &err) == 0)
		NEED(host_init(&p->host, &p->groups, &env, &err) == 0);
	p->host.heard_ns = NEVER_NS; // no segment ever waits to be processed
	p->now_ns = env.start_ns;
	p->flow = p->host.flow;
	return config;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
	static struct peer peer;
	struct peer *p = &peer;

	peer = (struct peer){.in = {data, data + size}};
	struct config *config = open_flow(p);
	if (p->flow != NULL) {
		run_until(p, p->now_ns);
		while (p->in.at < p->in.end)
			hostile_event(p);
		if (p->flow->state != FLOW_DONE && p->flow->state != FLOW_FAILED)
			finish(p);
		host_fini(&p->host);
		groups_fini(&p->groups);
	}
	config_free(config);
	return 0;
}
