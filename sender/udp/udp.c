// SPDX-License-Identifier: BSD-3-Clause
#include "sender/udp/udp.h"

#include "sender/endpoint/endpoint.h"
#include "sender/source/source.h"
#include "sender/tcp/receiver.h"

#include <stdio.h>

#define CATCH_UP_NS (200 * NS_PER_MS) // a live sender that is later than this leaves datagrams out

struct udp_flow {
	struct rng rng;
	uint64_t rest; // gaps: fixed: of the division by the rate, so that rounding never adds up
	uint64_t reported; // datagrams that have arrived
};

static const struct udp_config *config_of(const struct endpoint *e, const struct flow *f) {
	return flow_group(e, f)->source_config;
}

static void udp_reseed(struct endpoint *e, struct flow *f, uint64_t seed) {
	struct udp_flow *u = endpoint_connection(e, f->id);
	char name[48];

	snprintf(name, sizeof(name), "flows.%u.source.%u", f->group,
		f->id - flow_group(e, f)->first);
	rng_init(&u->rng, seed, name);
}

static void udp_open(struct endpoint *e, struct flow *f) {
	f->next_send_ns = f->start_ns;
	udp_reseed(e, f, e->env.seed);
	if (config_of(e, f)->gaps == UDP_FIXED)
		f->out.pacing_bps = (double)config_of(e, f)->rate_bps;
}

// Sets the time of the next datagram. A live sender that a stall has made late sends what it missed
// at once, as a program that writes to a socket would, but not without bound.
static void set_next(struct endpoint *e, struct flow *f, uint64_t now_ns) {
	const struct udp_config *c = config_of(e, f);
	struct udp_flow *u = endpoint_connection(e, f->id);

	if (c->gaps == UDP_FIXED) {
		u->rest += c->bytes * 8 * NS_PER_S;
		f->next_send_ns += u->rest / c->rate_bps;
		u->rest %= c->rate_bps;
	} else {
		f->next_send_ns += source_exponential_ns(
			&u->rng, (double)c->bytes * 8e9 / (double)c->rate_bps);
	}
	if (f->next_send_ns + CATCH_UP_NS < now_ns) {
		f->missed_ns += (int64_t)(now_ns - f->next_send_ns);
		f->next_send_ns = now_ns;
	}
	endpoint_arm(e, &f->pace, time_max(f->next_send_ns, now_ns));
}

static void udp_timer(struct endpoint *e, struct flow *f, uint64_t now_ns) {
	const struct group *g = flow_group(e, f);
	uint8_t ecn = g->ecn == CC_ECN_OFF ? ECN_NOT_ECT
		: g->ecn == CC_ECN_ECT1	   ? ECN_ECT1
					   : ECN_ECT0;
	struct seg s = {
		.seq = (uint32_t)f->nxt, .len = (uint16_t)f->payload, .options = SEG_OPT_UDP};

	if (f->state == FLOW_WAITING) {
		f->state = FLOW_OPEN;
		e->waiting--;
		e->open++;
		endpoint_flow_record(e, f, TEL_OPEN, now_ns);
	}
	if (f->state != FLOW_OPEN)
		return;
	if (f->next_send_ns >= f->stop_ns) {
		flow_end(e, f, FLOW_DONE, TEL_CLOSE, now_ns);
		return;
	}
	f->nxt++;
	f->count.sent_segs++;
	f->last_send_ns = now_ns;
	e->count.data_tx_segs++;
	e->count.tx_segs++;
	e->env.output(e->env.ctx, f->id, &s, 1, ecn, f->next_send_ns, true);
	set_next(e, f, now_ns);
}

static void udp_report_rx(
	struct endpoint *e, struct flow *f, const struct seg *s, uint64_t now_ns) {
	struct udp_flow *u = endpoint_connection(e, f->id);
	int32_t arrived = seq_diff(s->ack, (uint32_t)u->reported);
	int32_t ahead = seq_diff(s->seq, (uint32_t)f->una);

	if (arrived <= 0) // overtaken by a later report
		return;
	u->reported += (uint32_t)arrived;
	f->count.acked_bytes += (uint64_t)arrived * f->payload;
	if (ahead > 0)
		f->una = min_u64(f->una + (uint32_t)ahead, f->nxt);
	// Datagrams that arrive late may take some of this back; the total only grows, as that of
	// TCP's loss marks.
	f->count.lost_segs = max_u64(f->count.lost_segs, time_since(f->una, u->reported));
}

static void udp_data_rx(
	struct endpoint *e, struct receiver *r, const struct seg *s, uint8_t ecn, uint64_t now_ns) {
	int32_t ahead = seq_diff(s->seq + 1, (uint32_t)r->rcv_nxt);

	e->received.segs++;
	r->datagrams++;
	e->received.bytes += s->len;
	if (ahead > 0)
		r->rcv_nxt += (uint32_t)ahead;
	else
		e->received.out_of_order_segs++;
	if (!r->delack.armed)
		endpoint_arm(e, &r->delack, now_ns + UDP_REPORT_NS);
}

static void udp_report_timer(struct endpoint *e, struct receiver *r, uint64_t now_ns) {
	struct seg s = {.seq = (uint32_t)r->rcv_nxt, .ack = r->datagrams, .options = SEG_OPT_UDP};

	e->received.acks++;
	endpoint_send(e, r->id, &s, ECN_NOT_ECT, now_ns);
}

static uint32_t udp_payload(const void *source_config) {
	return (uint32_t)((const struct udp_config *)source_config)->bytes;
}

const struct transport_ops transport_udp = {
	.name = "udp",
	.summary = "datagrams at a constant rate",
	.connection_size = sizeof(struct udp_flow),
	.payload = udp_payload,
	.open = udp_open,
	.reseed = udp_reseed,
	.receive = udp_report_rx,
	.timer = udp_timer,
	.receive_data = udp_data_rx,
	.receiver_timer = udp_report_timer,
};
