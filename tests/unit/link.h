// SPDX-License-Identifier: BSD-3-Clause
// Two hosts joined by a pipe of constant delay, in virtual time: whole connections in microseconds.
//
// Masks say exactly which packets die, are marked or come late: bit i is the i-th data packet that
// leaves the sender, retransmissions counted. After every event the sender's counters are counted
// again from its records, and the receiver's state is compared with a bitmap of what arrived.
// With `hand` there is no receiver: the test answers, at the nanosecond it likes.
#pragma once
#include "common/base/rng.h"
#include "common/config/config.h"
#include "common/net/clear.h"
#include "common/net/wire.h"
#include "sender/host/host.h"
#include "sender/source/source.h"
#include "test.h"

#include <string.h>

#define US NS_PER_US
#define MS NS_PER_MS
#define S NS_PER_S
#define LINK_LOG 16384
#define LINK_SEGS 65536 // segments the bitmap can hold
#define HAND_RTT (20 * MS)

// For loops of millions: a ck_assert writes a message to Check's parent even when it holds.
#define NEED(cond)                                                                                 \
	do {                                                                                       \
		if (!(cond))                                                                       \
			ck_abort_msg("%s", #cond);                                                 \
	} while (0)
#include "check_host.h"

struct link_opts {
	const char *group; // as in a config: "{cc: newreno}"
	const char *hosts; // the config's `hosts`; NULL: none
	uint64_t delay_ns; // one way; 0: 10 ms
	uint64_t lose, late, mark; // data packets
	uint64_t lose_syn, lose_ack; // ACKs: those of the receiver, its SYN/ACK is bit 0
	uint64_t late_ns;
	double loss, ack_loss, reorder; // and at random
	uint64_t seed;
	uint64_t pipe_segs; // sizes the arena and the range pool; 0: plenty
	uint64_t start_ns;
	uint32_t check_every; // events; 0: all. For gigabytes
	uint32_t iss_offset; // the flows' initial sequence number moves by this
	// From the mtu_from-th data packet on, those that are larger (of IPv4) die; unless it is a
	// black hole, a router at the receiver says so. 0: all pass.
	uint32_t mtu;
	uint64_t mtu_from;
	bool black_hole;
	bool hand;
	uint16_t window; // hand: of the SYN/ACK; 0: 65535
	uint8_t clear; // options that segments to the sender lose: PKT_CLEARED
	bool live; // timers are served when the loop comes round, not at their own time
	bool samples; // segments have them, whatever the control
};

struct link_pkt {
	struct link_pkt *next;
	uint64_t t_ns;
	uint32_t id;
	uint8_t ecn;
	bool forward;
	bool too_big; // of seg, which a router tells its sender
	struct seg seg;
};

struct link_log {
	uint64_t t_ns;
	uint64_t index; // segment number; of data
	struct seg seg;
	uint8_t ecn;
	bool paced;
};

struct link {
	struct link_opts o;
	struct config *config;
	struct hosts hosts;
	struct groups groups;
	struct host tx, rx;
	struct link_pkt *head, *tail; // in order of arrival
	uint64_t now_ns;
	struct rng rng;
	// The last of what left: data and FIN, the sender's other segments, the receiver's.
	struct link_log data[LINK_LOG], ctl[LINK_LOG], acks[LINK_LOG];
	uint64_t data_count, ctl_count, acks_count, syn_count;
	uint64_t events;
	uint64_t died; // data packets lost
	// Segments of flow 0 that arrived; those below `prefix` are all there.
	bool got[LINK_SEGS];
	uint64_t prefix;
	bool oracle;
};

static inline struct flow *link_flow(struct link *l) {
	return &l->tx.flow[0];
}

// ---- The checker ----

static inline void link_check(struct link *l) {
	if (l->o.check_every > 0 && l->events++ % l->o.check_every != 0)
		return;

	if (l->groups.datagrams) // which have no scoreboard
		return;
	check_host(&l->tx, l->now_ns);
	check_host(&l->rx, l->now_ns);
	if (l->oracle && l->rx.receivers > 0) {
		const struct flow *f = link_flow(l);
		uint64_t bytes = l->prefix * f->payload;

		NEED(l->rx.receiver[0].rcv_nxt == min_u64(bytes, f->total_bytes));
	}
}

// ---- The pipe ----

static inline struct link_pkt *link_push(struct link *l, bool forward, uint32_t id,
	const struct seg *seg, uint8_t ecn, uint64_t t_ns) {
	struct link_pkt *p = malloc(sizeof(*p)), **at = &l->head;

	NEED(p != NULL);
	*p = (struct link_pkt){.t_ns = t_ns, .id = id, .ecn = ecn, .forward = forward, .seg = *seg};
	if (l->head != NULL && l->tail->t_ns <= t_ns)
		at = &l->tail->next;
	while (*at != NULL && (*at)->t_ns <= t_ns)
		at = &(*at)->next;
	p->next = *at;
	*at = p;
	if (p->next == NULL)
		l->tail = p;
	return p;
}

static inline bool bit(uint64_t mask, uint64_t i) {
	return i < 64 && (mask >> i & 1) != 0;
}

static inline uint64_t link_index(const struct flow *f, uint32_t seq) {
	int64_t ahead = (int32_t)(seq - (f->iss + 1 + (uint32_t)f->una_bytes));
	uint64_t offset = (uint64_t)((int64_t)f->una_bytes + ahead);

	if (offset >= f->total_bytes)
		return f->data_segs;
	return f->writes ? writes_segment(f, offset, false) : offset / f->payload;
}

static inline void link_tx_one(struct link *l, uint32_t id, const struct seg *seg, uint8_t ecn,
	uint64_t t_ns, bool paced) {
	struct link_log log = {.t_ns = t_ns, .seg = *seg, .ecn = ecn, .paced = paced};
	uint64_t at_ns = t_ns + l->o.delay_ns;

	NEED(l->o.live || t_ns >= l->now_ns); // live, t_ns is when it was due
	if (seg->len > 0 || (seg->flags & SEG_FIN) != 0) {
		uint64_t i = l->data_count++;

		log.index = link_index(&l->tx.flow[id], seg->seq);
		l->data[i % LINK_LOG] = log;
		if (l->o.mtu > 0 && i >= l->o.mtu_from
			&& wire_tcp_frame(seg, WIRE_IPV4) - WIRE_ETH > l->o.mtu) {
			l->died++;
			if (!l->o.black_hole)
				link_push(l, false, id, seg, ecn, t_ns + 2 * l->o.delay_ns)
					->too_big = true;
			return;
		}
		if (bit(l->o.lose, i)
			|| (l->o.loss > 0 && rng_below(&l->rng, rng_threshold(l->o.loss)))) {
			l->died++;
			return;
		}
		if (bit(l->o.mark, i) && ecn != ECN_NOT_ECT)
			ecn = ECN_CE;
		if (bit(l->o.late, i)
			|| (l->o.reorder > 0 && rng_below(&l->rng, rng_threshold(l->o.reorder))))
			at_ns += l->o.late_ns;
	} else {
		l->ctl[l->ctl_count++ % LINK_LOG] = log;
		if ((seg->flags & SEG_SYN) != 0 && bit(l->o.lose_syn, l->syn_count++))
			return;
	}
	if (!l->o.hand)
		link_push(l, true, id, seg, ecn, at_ns);
}

static inline void link_tx(void *ctx, uint32_t id, const struct seg *seg, uint32_t n, uint8_t ecn,
	uint64_t t_ns, bool paced) {
	struct seg s = *seg;

	for (uint32_t i = 0; i < n; i++) {
		link_tx_one(ctx, id, &s, ecn, t_ns, paced);
		s.seq += s.len;
	}
}

static inline void link_rx(void *ctx, uint32_t id, const struct seg *seg, uint32_t n, uint8_t ecn,
	uint64_t t_ns, bool paced) {
	struct link *l = ctx;
	uint64_t i = l->acks_count++;
	struct seg s = *seg;

	NEED(n == 1 && t_ns >= l->now_ns && ecn == ECN_NOT_ECT);
	l->acks[i % LINK_LOG] = (struct link_log){.t_ns = t_ns, .seg = *seg};
	if (bit(l->o.lose_ack, i)
		|| (l->o.ack_loss > 0 && rng_below(&l->rng, rng_threshold(l->o.ack_loss))))
		return;
	clear_seg(&s, l->o.clear);
	link_push(l, false, id, &s, ecn, t_ns + l->o.delay_ns);
}

// ---- Life of a link ----

static inline void link_free(void *link) {
	struct link *l = link;

	while (l->head != NULL) {
		struct link_pkt *p = l->head;

		l->head = p->next;
		free(p);
	}
	host_fini(&l->tx);
	if (!l->o.hand)
		host_fini(&l->rx);
	groups_fini(&l->groups);
	config_free(l->config);
	free(l);
}

// Closes it before the test's end.
static inline void link_close(struct link *l) {
	test_close(l);
}

static inline struct link *link_open(const struct link_opts *o) {
	struct link *l = calloc(1, sizeof(*l));
	struct err err = {""};
	char text[512];

	ck_assert_ptr_nonnull(l);
	test_closes(link_free, l);
	l->o = *o;
	if (l->o.delay_ns == 0)
		l->o.delay_ns = 10 * MS;
	l->oracle = !o->hand && o->mtu == 0;
	snprintf(text, sizeof(text), "flows: [%s]%s%s", o->group,
		o->hosts != NULL ? "\nhosts: " : "", o->hosts != NULL ? o->hosts : "");
	l->config = config_parse("test", text, strlen(text), &err);
	ck_assert_msg(l->config != NULL, "%s", err.msg);
	struct config_node *root = config_root(l->config), *flows = config_get(root, "flows");

	ck_assert_msg(hosts_read(&l->hosts, root, flows, &err) == 0, "%s", err.msg);
	ck_assert_msg(groups_init(&l->groups, flows, &err) == 0, "%s", err.msg);
	groups_share(&l->groups, &l->hosts);
	l->groups.group[0].samples |= o->samples;
	rng_init(&l->rng, o->seed, "link");

	struct host_env env = {
		.output = link_tx,
		.ctx = l,
		.seed = o->seed,
		.start_ns = o->start_ns,
		.virtual_time = !o->live,
		.pipe_segs = o->pipe_segs > 0 ? o->pipe_segs : 16384,
		.flows = true,
	};
	ck_assert_msg(host_init(&l->tx, &l->groups, &env, &err) == 0, "%s", err.msg);
	env.output = link_rx;
	env.flows = false;
	env.receivers = l->groups.flows;
	if (!o->hand)
		ck_assert_msg(host_init(&l->rx, &l->groups, &env, &err) == 0, "%s", err.msg);
	for (uint32_t i = 0; i < l->tx.flows; i++)
		l->tx.flow[i].iss += o->iss_offset;
	l->now_ns = o->start_ns;
	return l;
}
#define LINK(...) link_open(&(const struct link_opts){__VA_ARGS__})

static inline void link_arrived(struct link *l, const struct link_pkt *p) {
	const struct flow *f = link_flow(l);

	if (!l->oracle || p->id != 0 || p->seg.len == 0)
		return;
	uint64_t i = link_index(f, p->seg.seq);

	NEED(i < LINK_SEGS);
	NEED(p->seg.len == (i + 1 < f->data_segs ? f->payload : f->total_bytes - i * f->payload));
	l->got[i] = true;
	while (l->prefix < LINK_SEGS && l->got[l->prefix])
		l->prefix++;
}

static inline void link_deliver(struct link *l, uint64_t now_ns) {
	while (l->head != NULL && l->head->t_ns <= now_ns) {
		struct link_pkt *p = l->head;

		l->head = p->next;
		if (p->forward) {
			uint64_t refused = l->rx.count.rx_bad + l->rx.ranges.refused;

			host_rx_receiver(&l->rx, p->id, &p->seg, p->ecn, now_ns);
			if (refused == l->rx.count.rx_bad + l->rx.ranges.refused)
				link_arrived(l, p);
		} else if (p->too_big) {
			host_too_big(&l->tx, p->id, p->seg.seq, l->o.mtu, now_ns);
		} else {
			host_rx_flow(&l->tx, p->id, &p->seg, p->ecn, now_ns);
		}
		free(p);
		link_check(l);
	}
}

// The next event up to limit_ns; false: there is none.
static inline bool link_step(struct link *l, uint64_t limit_ns) {
	uint64_t t_ns = l->head == NULL ? NEVER_NS : l->head->t_ns;
	uint64_t cap_ns = time_min(t_ns, limit_ns);

	t_ns = time_min(t_ns, host_next_ns(&l->tx, cap_ns));
	if (!l->o.hand)
		t_ns = time_min(t_ns, host_next_ns(&l->rx, cap_ns));
	if (t_ns > limit_ns)
		return false;
	l->now_ns = time_max(t_ns, l->now_ns);
	host_run(&l->tx, t_ns);
	if (!l->o.hand)
		host_run(&l->rx, t_ns);
	link_check(l);
	link_deliver(l, t_ns);
	if (l->o.live)
		l->tx.heard_ns = l->rx.heard_ns = t_ns;
	return true;
}

static inline void link_run(struct link *l, uint64_t until_ns) {
	while (link_step(l, until_ns))
		;
	l->now_ns = until_ns;
}

// Runs until every flow has ended; fails at limit_ns.
static inline void link_finish(struct link *l, uint64_t limit_ns) {
	while (l->tx.open + l->tx.waiting > 0)
		NEED(link_step(l, limit_ns));
}

// All of it arrived, all of it is acknowledged, nothing is held.
static inline void link_complete(const struct link *l) {
	ck_assert_uint_eq(l->tx.done, l->tx.flows);
	ck_assert_uint_eq(l->tx.arena.used, 0);
	for (uint32_t i = 0; i < l->tx.flows; i++) {
		const struct flow *f = &l->tx.flow[i];

		ck_assert_uint_eq(f->count.acked_bytes, f->total_bytes);
		ck_assert_uint_eq(l->rx.receiver[i].rcv_nxt, f->total_bytes);
		ck_assert_uint_eq(l->rx.receiver[i].fin, f->total_bytes);
		ck_assert_ptr_null(l->rx.receiver[i].head);
	}
}

// ---- The test as the peer ----

static inline void hand_feed(struct link *l, const struct seg *s, uint64_t now_ns) {
	while (link_step(l, now_ns))
		;
	l->now_ns = now_ns;
	host_rx_flow(&l->tx, 0, s, ECN_NOT_ECT, now_ns);
	link_check(l);
}

// An ACK up to segment `una`, with the largest window.
static inline struct seg hand_ack(struct link *l, uint64_t una, uint64_t now_ns) {
	const struct flow *f = link_flow(l);
	struct seg s = {
		.seq = f->rcv_nxt, .ack = flow_seq(f, una), .window = 65535, .flags = SEG_ACK};

	if (f->ts_ok) {
		s.options = SEG_OPT_TS;
		s.tsval = flow_tsval(now_ns);
		s.tsecr = s.tsval;
	}
	return s;
}

// Adds the block of segments [from, to).
static inline void hand_sack(struct link *l, struct seg *s, uint64_t from, uint64_t to) {
	const struct flow *f = link_flow(l);

	s->sack[s->sack_count++] = (struct seg_sack){flow_seq(f, from), flow_seq(f, to)};
}

static inline void hand_ack_at(struct link *l, uint64_t una, uint64_t now_ns) {
	struct seg s = hand_ack(l, una, now_ns);

	hand_feed(l, &s, now_ns);
}

// ACK `una` with one block [from, to).
static inline void hand_sack_at(
	struct link *l, uint64_t una, uint64_t from, uint64_t to, uint64_t now_ns) {
	struct seg s = hand_ack(l, una, now_ns);

	hand_sack(l, &s, from, to);
	hand_feed(l, &s, now_ns);
}

// As if the segments had been sent again.
static inline void hand_resent(struct link *l, uint64_t from, uint64_t to) {
	struct flow *f = link_flow(l);

	f->count.retransmits += to - from;
	resent_add(&f->resent, flow_seq(f, from), flow_seq(f, to));
}

static inline struct seg hand_syn_ack(const struct link *l, uint64_t now_ns) {
	return (struct seg){
		.seq = 1000,
		.ack = l->tx.flow[0].iss + 1,
		.tsval = flow_tsval(now_ns),
		.tsecr = flow_tsval(now_ns),
		.window = 65535,
		.flags = SEG_SYN | SEG_ACK,
		.options = SEG_OPT_MSS | SEG_OPT_WSCALE | SEG_OPT_SACK_OK | SEG_OPT_TS,
		.wscale = 14,
		.mss = 1460,
	};
}

// A connection by hand: SYN at start, SYN/ACK after HAND_RTT, window opened.
static inline struct link *hand_open(const struct link_opts *o) {
	struct link_opts opts = *o;

	opts.hand = true;
	struct link *l = link_open(&opts);
	uint64_t t_ns = o->start_ns + HAND_RTT;

	link_run(l, o->start_ns);
	struct seg s = hand_syn_ack(l, t_ns);

	if (l->groups.group[0].ecn != 0)
		s.flags |= SEG_ECE;
	s.window = o->window > 0 ? o->window : s.window;
	hand_feed(l, &s, t_ns);
	ck_assert_int_eq(link_flow(l)->state, FLOW_OPEN);
	return l;
}
#define HAND(...) hand_open(&(const struct link_opts){__VA_ARGS__})

// Segment number and time of the i-th data packet.
#define SENT(l, i, number, t)                                                                      \
	do {                                                                                       \
		ck_assert_uint_gt((l)->data_count, (i));                                           \
		ck_assert_uint_eq((l)->data[(i)].index, (number));                                 \
		ck_assert_uint_eq((l)->data[(i)].t_ns, (t));                                       \
	} while (0)
