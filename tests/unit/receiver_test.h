// SPDX-License-Identifier: BSD-3-Clause
// A receiver alone, fed by hand.
#pragma once
#include "link.h"

#define LEN 1448u
#define TS0 1000u

// A receiver alone: its flow would start in a thousand seconds, its ACKs go nowhere.
#define RCV(options) LINK(.group = "{cc: newreno, start: 1000s, " options "}", .ack_loss = 1)

static inline struct receiver *rcv(struct link *l) {
	l->oracle = false;
	return &l->rx.receiver[0];
}

static inline void feed(struct link *l, const struct seg *s, uint8_t ecn, uint64_t now_ns) {
	while (link_step(l, now_ns))
		;
	l->now_ns = now_ns;
	host_rx_receiver(&l->rx, 0, s, ecn, now_ns);
	link_check(l);
}

static inline void syn(
	struct link *l, uint32_t isn, uint8_t options, uint8_t flags, uint64_t now_ns) {
	struct seg s = {.seq = isn,
		.flags = SEG_SYN | flags,
		.options = options,
		.tsval = TS0,
		.mss = LEN + 12};

	rcv(l);
	feed(l, &s, ECN_NOT_ECT, now_ns);
}

#define ALL_OPTIONS (SEG_OPT_TS | SEG_OPT_MSS | SEG_OPT_WSCALE | SEG_OPT_SACK_OK)

// Data [start, start + len) by offset, with a timestamp that moves with time.
static inline struct seg data(struct link *l, uint64_t start, uint32_t len, uint64_t now_ns) {
	const struct receiver *r = rcv(l);
	struct seg s = {
		.seq = r->irs + 1 + (uint32_t)start,
		.ack = receiver_iss(r) + 1,
		.len = (uint16_t)len,
		.flags = SEG_ACK,
	};

	if (r->ts_ok) {
		s.options = SEG_OPT_TS;
		s.tsval = TS0 + (uint32_t)(now_ns / MS);
	}
	return s;
}

static inline void feed_data(struct link *l, uint64_t start, uint32_t len, uint64_t now_ns) {
	struct seg s = data(l, start, len, now_ns);

	feed(l, &s, ECN_NOT_ECT, now_ns);
}

// Segment number i of LEN bytes.
static inline void feed_seg(struct link *l, uint64_t i, uint64_t now_ns) {
	feed_data(l, i * LEN, LEN, now_ns);
}

static inline void feed_fin(struct link *l, uint64_t offset, uint64_t now_ns) {
	struct seg s = data(l, offset, 0, now_ns);

	s.flags |= SEG_FIN;
	feed(l, &s, ECN_NOT_ECT, now_ns);
}

static inline const struct seg *last_ack(const struct link *l) {
	return &l->acks[(l->acks_count - 1) % LINK_LOG].seg;
}

// How many ACKs left since; the last one acknowledges `offset`.
static inline void expect(struct link *l, uint64_t *acks, uint64_t more, uint64_t offset) {
	ck_assert_uint_eq(l->acks_count, *acks + more);
	*acks = l->acks_count;
	if (more > 0)
		ck_assert_uint_eq(last_ack(l)->ack, rcv(l)->irs + 1 + (uint32_t)offset);
}

static inline void block(struct link *l, int i, uint64_t from, uint64_t to) {
	const struct receiver *r = rcv(l);

	ck_assert_int_gt(last_ack(l)->sack_count, i);
	ck_assert_uint_eq(last_ack(l)->sack[i].start, r->irs + 1 + (uint32_t)(from * LEN));
	ck_assert_uint_eq(last_ack(l)->sack[i].end, r->irs + 1 + (uint32_t)(to * LEN));
}
