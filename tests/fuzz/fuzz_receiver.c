// SPDX-License-Identifier: BSD-3-Clause
// A receiver and a hostile sender: any sequence of segments at any times, then an honest sender.
//
// After each event the out-of-order ranges are counted and compared with what is reported
// (check_host.h), and what was acknowledged stays acknowledged. When the input is used up, an
// honest sender goes on from the last acknowledgement: each segment of its data and its FIN must be
// acknowledged, unless a reset that TCP must believe had ended the connection.
//
// After an end, only a SYN beyond the old connection begins another.
//
// As in fuzz_flow.c, what the sender sent in its own name binds it, and what is forged changes
// nothing.
#include "fuzz.h"

#include "../unit/check_host.h"
#include "common/config/config.h"

#define HONEST_LEN 1000u
#define MORE_BYTES 3000u // the honest sender has so much more data

struct peer {
	struct input in;
	struct groups groups;
	struct host host;
	struct receiver *receiver;
	uint64_t now_ns, out_ns;
	uint32_t ts_ahead; // of the sender's clock
	bool reset; // by a segment that must be believed
	bool acked; // an ACK was sent, the last one is:
	struct seg ack;
	uint64_t acks;
};

static void output(void *ctx, uint32_t id, const struct seg *s, uint32_t n, uint8_t ecn,
	uint64_t due_ns, bool paced) {
	struct peer *p = ctx;
	const struct receiver *r = p->receiver;

	NEED(n == 1 && s->len == 0 && due_ns >= p->out_ns && ecn == ECN_NOT_ECT);
	NEED(s->sack_count <= (r->ts_ok ? 3 : 4) && (s->sack_count == 0 || r->sack_ok));
	p->out_ns = due_ns;
	p->acks++;
	if ((s->flags & SEG_SYN) != 0)
		return;
	NEED(!p->acked || seq_diff(s->ack, p->ack.ack) >= 0);
	for (uint8_t i = 0; i < s->sack_count; i++) {
		NEED(seq_diff(s->sack[i].end, s->sack[i].start) > 0);
		NEED(i == 0 || seq_diff(s->sack[i].start, s->ack) > 0); // the first may be a DSACK
	}
	p->acked = true;
	p->ack = *s;
}

static uint32_t tsval(const struct peer *p) {
	return flow_tsval(p->now_ns) + p->ts_ahead;
}

static uint32_t next_seq(const struct receiver *r) {
	return r->irs + 1 + (uint32_t)r->rcv_nxt;
}

// Its own ACK number first: a segment that spans it may set the timestamp (RFC 7323 section 4.3).
static bool echoes_ts(const struct receiver *r, const struct seg *s) {
	int32_t len = s->len + ((s->flags & SEG_FIN) != 0 ? 1 : 0);
	int32_t behind = seq_diff(next_seq(r), s->seq);

	return r->state == RECEIVER_OPEN && r->ts_ok && (s->options & SEG_OPT_TS) != 0
		&& (s->flags & (SEG_RST | SEG_SYN)) == 0 && seq_diff(s->tsval, r->ts_recent) >= 0
		&& seq_diff(s->seq, r->last_ack) <= 0
		&& (behind == 0 || (behind > 0 && behind < len));
}

// Whether a SYN begins the connection after one that is over.
static bool begins_next(const struct receiver *r, const struct seg *s) {
	if (r->state == RECEIVER_CLOSED)
		return s->seq != r->irs;
	return r->state == RECEIVER_OPEN && r->fin_seen && r->rcv_nxt == r->fin && s->seq != r->irs
		&& (seq_diff(s->seq, next_seq(r)) > 0
			|| (r->ts_ok && (s->options & SEG_OPT_TS) != 0
				&& seq_diff(s->tsval, r->ts_recent) > 0));
}

static void feed(struct peer *p, const struct seg *s, uint8_t ecn) {
	struct receiver *r = p->receiver;
	bool nothing = r->rcv_nxt == 0 && r->head == NULL && !r->fin_seen;
	bool syn = (s->flags & (SEG_SYN | SEG_RST)) == SEG_SYN;
	bool opens = syn && (s->flags & (SEG_ACK | SEG_FIN)) == 0;
	bool next = opens && begins_next(r, s);
	bool first = next || (opens && r->state == RECEIVER_LISTEN)
		|| (syn && r->state != RECEIVER_LISTEN && nothing && s->seq == r->irs); // again
	uint32_t irs = first ? s->seq : r->irs;
	int32_t newer = seq_diff(s->tsval, tsval(p));

	if ((echoes_ts(r, s) || (first && (s->options & SEG_OPT_TS) != 0)) && newer > 0)
		p->ts_ahead += (uint32_t)newer;
	if ((s->flags & SEG_RST) != 0)
		p->reset |= r->state == RECEIVER_OPEN && seq_diff(s->seq, next_seq(r)) >= 0
			&& seq_diff(s->seq, next_seq(r)) <= 1;
	if (next) {
		p->acked = p->reset = false;
		p->host.received = (struct receiver_count){0}; // check_host.h counts one connection
	}
	host_rx_receiver(&p->host, 0, s, ecn, p->now_ns);
	check_host(&p->host, p->now_ns);
	NEED(r->irs == irs);
	NEED(r->state != RECEIVER_CLOSED || p->reset);
}

static void run_until(struct peer *p, uint64_t until_ns) {
	uint64_t t_ns;

	while ((t_ns = host_next_ns(&p->host, until_ns)) <= until_ns) {
		p->now_ns = time_max(p->now_ns, t_ns);
		host_run(&p->host, p->now_ns);
		check_host(&p->host, p->now_ns);
	}
	p->now_ns = until_ns;
}

static struct seg segment(const struct peer *p, uint32_t seq, uint16_t len, uint8_t flags) {
	struct seg s = {.seq = seq,
		.ack = receiver_iss(p->receiver) + 1,
		.len = len,
		.window = 65535,
		.flags = flags};

	if (p->receiver->ts_ok) {
		s.options = SEG_OPT_TS;
		s.tsval = tsval(p);
	}
	return s;
}

static struct seg first_syn(const struct peer *p, uint32_t seq) {
	struct seg s = segment(p, seq, 0, SEG_SYN | SEG_ECE | SEG_CWR);

	s.options = SEG_OPT_TS | SEG_OPT_MSS | SEG_OPT_WSCALE | SEG_OPT_SACK_OK;
	s.tsval = tsval(p);
	s.mss = 1460;
	return s;
}

static void send_anything(struct peer *p) {
	struct receiver *r = p->receiver;
	struct input *in = &p->in;
	uint8_t flags = in_u8(in), shape = in_u8(in);
	struct seg s = segment(p, in_near(in, next_seq(r)), 0, flags);

	if ((shape & 1) != 0)
		s.len = in_u16(in);
	if ((shape & 2) != 0)
		s.options ^= SEG_OPT_TS;
	if ((shape & 4) != 0)
		s.tsval = in_near(in, s.tsval);
	if ((shape & 8) != 0)
		s.ack = in_near(in, s.ack);
	if ((shape & 16) != 0) // around the sequence number of the SYN
		s.seq = in_near(in, r->irs);
	if ((flags & SEG_SYN) != 0) {
		s.options |= in_u8(in) & (SEG_OPT_MSS | SEG_OPT_WSCALE | SEG_OPT_SACK_OK);
		s.mss = (s.options & SEG_OPT_MSS) != 0 ? in_u16(in) : 0;
	}
	if ((s.options & SEG_OPT_TS) == 0)
		s.tsval = s.tsecr = 0;
	feed(p, &s, shape >> 6);
}

// Data at a multiple of 256 bytes beyond the last ACK, so that ranges meet.
static void send_data(struct peer *p, uint8_t kind) {
	const struct receiver *r = p->receiver;
	uint32_t at = (uint32_t)in_u8(&p->in) * 256, len = 256 + 256 * (kind & 7u);
	uint8_t flags = (kind & 24) == 24 ? SEG_ACK | SEG_FIN : SEG_ACK;
	struct seg s = segment(p, next_seq(r) - 512 + at, (uint16_t)len, flags);

	feed(p, &s, kind >> 3 & 1 ? ECN_CE : ECN_ECT0);
}

static void hostile_event(struct peer *p) {
	uint8_t kind = in_u8(&p->in);
	struct seg s;

	switch (kind & 7) {
	case 0: // up to 17 s
		run_until(p, p->now_ns + ((UINT64_C(1) << (kind >> 3)) * (8 + in_u8(&p->in) % 8)));
		break;
	case 1:
		s = first_syn(p, p->receiver->state == RECEIVER_LISTEN ? 7 : p->receiver->irs);
		feed(p, &s, ECN_NOT_ECT);
		break;
	case 2:
		s = segment(p, next_seq(p->receiver), (uint16_t)(1000 + kind), SEG_ACK);
		feed(p, &s, ECN_ECT0);
		break;
	case 3:
	case 4:
	case 5:
		send_data(p, kind >> 3);
		break;
	default:
		send_anything(p);
		break;
	}
}

// The honest sender, one segment after the other: each is acknowledged, at the latest by the timer.
static void finish(struct peer *p) {
	struct receiver *r = p->receiver;
	struct seg s = first_syn(p, 7);

	if (r->state == RECEIVER_LISTEN)
		feed(p, &s, ECN_NOT_ECT);
	NEED(r->state == RECEIVER_OPEN);
	uint64_t total = r->tail != NULL ? r->tail->end : r->rcv_nxt;
	if (r->fin_seen && r->fin < total)
		return; // data behind a FIN: whichever is wrong, nothing is promised
	total = r->fin_seen ? r->fin : total + MORE_BYTES;
	for (bool fin = false; !fin;) {
		uint64_t start = r->rcv_nxt, len = min_u64(total - start, HONEST_LEN);
		uint32_t end = r->irs + 1 + (uint32_t)(start + len);

		fin = start + len == total;
		s = segment(
			p, next_seq(r), (uint16_t)len, (uint8_t)(SEG_ACK | (fin ? SEG_FIN : 0)));
		feed(p, &s, ECN_NOT_ECT);
		run_until(p, p->now_ns + NS_PER_S);
		NEED(p->acked && seq_diff(p->ack.ack, end + fin) >= 0);
		NEED(seq_diff(next_seq(r), end) >= 0);
	}
	NEED(r->head == NULL && (p->ack.flags & SEG_FIN) != 0);
}

static struct config *open_receiver(struct peer *p) {
	static const char *const rwnds[] = {"2000B", "64kB", "1MB", "1GB"};
	static const char *const delays[] = {"40ms", "0ms", "500ms", "1ms"};
	uint8_t a = in_u8(&p->in), b = in_u8(&p->in);
	struct err err = {""};
	char text[256];

	snprintf(text, sizeof(text),
		"flows: [{cc: newreno, rwnd: %s, ack_delay: %s, ack_every: %u, sack: %s, "
		"timestamps: %s, ecn: %s}]",
		rwnds[a & 3], delays[a >> 2 & 3], 1u + (a >> 4 & 3), (b & 1) != 0 ? "no" : "yes",
		(b & 2) != 0 ? "no" : "yes", (b & 4) != 0 ? "off" : "ect0");
	struct config *config = config_parse("fuzz", text, strlen(text), &err);
	NEED(config != NULL);
	NEED(groups_init(&p->groups, config_get(config_root(config), "flows"), &err) == 0);
	struct host_env env = {
		.output = output,
		.ctx = p,
		.start_ns = NS_PER_S,
		.virtual_time = true,
		.pipe_segs = b >> 6, // few ranges: they run out
		.receivers = 1,
	};
	NEED(host_init(&p->host, &p->groups, &env, &err) == 0);
	p->now_ns = env.start_ns;
	p->receiver = p->host.receiver;
	return config;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
	static struct peer peer;
	struct peer *p = &peer;

	peer = (struct peer){.in = {data, data + size}};
	struct config *config = open_receiver(p);
	while (p->in.at < p->in.end)
		hostile_event(p);
	if (p->receiver->state != RECEIVER_CLOSED)
		finish(p);
	host_fini(&p->host);
	groups_fini(&p->groups);
	config_free(config);
	return 0;
}
