// SPDX-License-Identifier: BSD-3-Clause
// One congestion control on a bench: parameters as text, ACKs by hand.
#pragma once
#include "common/base/param.h"
#include "sender/cc/cc.h"

#include "test.h"

#include <errno.h>
#include <string.h>

#define MS UINT64_C(1000000)
#define MSS 1000

struct cc_bench {
	const struct cc_ops *ops;
	_Alignas(16) char config[512];
	_Alignas(16) char state[CC_STATE_MAX_BYTES];
	struct cc_out out;
	// What cc_step counts, and what its ACKs say beyond that.
	uint64_t now_ns, delivered;
	uint64_t wait_ns; // from each ACK to the next pacing slot
	struct cc_ack next;
};

static inline int cc_set(struct cc_bench *b, const char *name, const char *text) {
	const struct param *p = param_find(b->ops->params, name);

	return p == NULL ? -ENOENT : param_set(p, b->config, text, NULL);
}

// `set` is a list of name, value pairs that ends with NULL.
static inline void cc_open(struct cc_bench *b, const char *name, const char *const *set) {
	struct err err = {""};

	memset(b, 0, sizeof(*b));
	b->ops = cc_find(name);
	ck_assert_ptr_nonnull(b->ops);
	ck_assert_uint_le(b->ops->config_size, sizeof(b->config));
	ck_assert_uint_le(b->ops->state_size, CC_STATE_MAX_BYTES);
	ck_assert_msg(param_defaults(b->ops->params, b->config, &err) == 0, "%s", err.msg);
	for (; set != NULL && *set != NULL; set += 2)
		ck_assert_msg(cc_set(b, set[0], set[1]) == 0, "%s: %s", set[0], set[1]);
	b->ops->init(b->state, b->config, MSS, 0, 0, &b->out);
}
#define CC_OPEN(b, name, ...) cc_open(b, name, (const char *const[]){__VA_ARGS__, NULL})

// An ACK of one segment that filled the window, sent one RTT ago with the window of today.
static inline struct cc_ack cc_ack_of(const struct cc_bench *b, uint64_t now_ns, uint64_t rtt_ns) {
	return (struct cc_ack){
		.now_ns = now_ns,
		.rtt_ns = rtt_ns,
		.srtt_ns = rtt_ns,
		.rtt_min_ns = rtt_ns,
		.sent_ns = now_ns - rtt_ns,
		.cwnd_at_send = b->out.cwnd_segs,
		.acked_segs = 1,
		.cwnd_limited = true,
		.in_sequence = true,
	};
}

static inline void cc_ack(struct cc_bench *b, const struct cc_ack *ack) {
	b->ops->on_ack(b->state, b->config, ack, &b->out);
}

static inline void cc_ack_n(struct cc_bench *b, int n, uint64_t now_ns, uint64_t rtt_ns) {
	for (int i = 0; i < n; i++) {
		struct cc_ack ack = cc_ack_of(b, now_ns, rtt_ns);

		cc_ack(b, &ack);
	}
}

// An ACK of `acked` segments, `after_ns` after the last; the newest of them left when `sent_at`
// segments had been delivered.
static inline void cc_step(
	struct cc_bench *b, uint64_t after_ns, uint32_t acked, uint64_t sent_at) {
	struct cc_ack ack = b->next;

	ack.now_ns = b->now_ns += after_ns;
	ack.next_send_ns = ack.now_ns + b->wait_ns;
	ack.srtt_ns = ack.rtt_min_ns = ack.interval_ns = ack.rtt_ns;
	ack.sent_ns = ack.now_ns - ack.rtt_ns;
	ack.prior_delivered_segs = sent_at;
	ack.delivered_segs = b->delivered += acked;
	ack.acked_segs = acked;
	ack.prior_inflight_segs = ack.inflight_segs + acked;
	ack.cwnd_at_send = b->out.cwnd_segs;
	ack.cwnd_limited = true;
	cc_ack(b, &ack);
}

static inline void cc_loss(struct cc_bench *b, uint64_t now_ns, uint32_t inflight, bool ecn) {
	struct cc_loss loss = {
		.now_ns = now_ns, .inflight_segs = inflight, .lost_segs = 1, .ecn = ecn};

	b->ops->on_loss(b->state, b->config, &loss, &b->out);
}

static inline void cc_rto(struct cc_bench *b, uint64_t now_ns, uint32_t inflight) {
	struct cc_loss loss = {.now_ns = now_ns, .inflight_segs = inflight, .lost_segs = inflight};

	b->ops->on_rto(b->state, b->config, &loss, &b->out);
}

// The retransmission timed out too.
static inline void cc_rto_repeated(struct cc_bench *b, uint64_t now_ns, uint32_t inflight) {
	struct cc_loss loss = {.now_ns = now_ns,
		.inflight_segs = inflight,
		.lost_segs = inflight,
		.repeated = true};

	b->ops->on_rto(b->state, b->config, &loss, &b->out);
}

static inline void cc_spurious(struct cc_bench *b) {
	b->ops->on_spurious(b->state, b->config, b->now_ns, &b->out);
}

static inline double cc_observed(const struct cc_bench *b, int i) {
	float out[CC_OBSERVED] = {0};

	b->ops->observe(b->state, b->config, out);
	return (double)out[i];
}

static inline int cc_mode(const struct cc_bench *b) {
	return b->ops->mode(b->state, b->config);
}

#define CWND_EQ(b, segs) ck_assert_double_eq_tol((b)->out.cwnd_segs, segs, 1e-9)
// Of values that are kept as floats.
#define NEAR(a, b) ck_assert_double_eq_tol(a, b, 1e-6 * (1 + (b)))

// RFC 5681 section 3.1: the retransmission times out too, and the ACK in between acknowledged
// nothing in sequence. This is the same congestion: ssthresh stays what the first timeout made of
// 100 segments.
static inline void cc_check_repeated_timeout(const char *name, double ssthresh_segs) {
	struct cc_bench b;

	CC_OPEN(&b, name, "initial", "100");
	cc_rto(&b, 1000 * MS, 100);
	ck_assert_double_eq_tol(b.ops->ssthresh(b.state, b.config), ssthresh_segs, 1e-9);
	struct cc_ack ack = cc_ack_of(&b, 1100 * MS, 100 * MS);

	ack.in_sequence = false;
	ack.in_loss = true;
	cc_ack(&b, &ack);
	cc_rto_repeated(&b, 1400 * MS, 100);
	ck_assert_double_eq_tol(b.ops->ssthresh(b.state, b.config), ssthresh_segs, 1e-9);
	CWND_EQ(&b, 1);
}
