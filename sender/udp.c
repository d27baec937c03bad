// SPDX-License-Identifier: BSD-3-Clause
#include "sender/udp.h"

#include "sender/host.h"

#include <assert.h>
#include <stdio.h>

#define CATCH_UP_NS (200 * NS_PER_MS) // a live sender that is later than this leaves datagrams out

// In place of a congestion control's state.
struct udp_flow {
	struct rng rng;
	uint64_t rest; // gaps: fixed: of the division by the rate, so that rounding never adds up
	uint64_t reported; // datagrams that have arrived
};
static_assert(sizeof(struct udp_flow) <= CC_STATE_MAX_BYTES, "in a flow's state");

static struct udp_flow *state_of(struct flow *f) {
	return (struct udp_flow *)(void *)f->cc_state;
}

static const struct udp_config *config_of(const struct host *h, const struct flow *f) {
	return flow_group(h, f)->source_config;
}

void udp_init(struct host *h, struct flow *f) {
	struct udp_flow *u = state_of(f);
	char name[48];

	f->pace.kind = TIMER_UDP;
	f->next_send_ns = f->start_ns;
	snprintf(name, sizeof(name), "flows.%u.source.%u", f->group,
		f->id - flow_group(h, f)->first);
	rng_init(&u->rng, h->env.seed, name);
	if (config_of(h, f)->gaps == UDP_FIXED)
		f->out.pacing_bps = (double)config_of(h, f)->rate_bps;
}

// Sets the time of the next datagram. A live sender that a stall has made late sends what it missed at once, as a
// program that writes to a socket would, but not without bound.
static void set_next(struct host *h, struct flow *f, uint64_t now_ns) {
	const struct udp_config *c = config_of(h, f);
	struct udp_flow *u = state_of(f);

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
	host_arm(h, &f->pace, time_max(f->next_send_ns, now_ns));
}

void udp_timer(struct host *h, struct flow *f, uint64_t now_ns) {
	const struct group *g = flow_group(h, f);
	uint8_t ecn = g->ecn == CC_ECN_OFF ? ECN_NOT_ECT
		: g->ecn == CC_ECN_ECT1	   ? ECN_ECT1
					   : ECN_ECT0;
	struct seg s = {
		.seq = (uint32_t)f->nxt, .len = (uint16_t)f->payload, .options = SEG_OPT_UDP};

	if (f->state == FLOW_WAITING) {
		f->state = FLOW_OPEN;
		h->waiting--;
		h->open++;
		host_flow_record(h, f, TEL_OPEN, now_ns);
	}
	if (f->state != FLOW_OPEN)
		return;
	if (f->next_send_ns >= f->stop_ns) {
		flow_end(h, f, FLOW_DONE, TEL_CLOSE, now_ns);
		return;
	}
	f->nxt++;
	f->count.sent_segs++;
	f->last_send_ns = now_ns;
	h->count.data_tx_segs++;
	h->count.tx_segs++;
	h->env.output(h->env.ctx, f->id, &s, 1, ecn, f->next_send_ns, true);
	set_next(h, f, now_ns);
}

void udp_report_rx(struct flow *f, const struct seg *s) {
	struct udp_flow *u = state_of(f);
	int32_t arrived = seq_diff(s->ack, (uint32_t)u->reported);
	int32_t ahead = seq_diff(s->seq, (uint32_t)f->una);

	if (arrived <= 0) // overtaken by a later report
		return;
	u->reported += (uint32_t)arrived;
	f->count.acked_bytes += (uint64_t)arrived * f->payload;
	if (ahead > 0)
		f->una = min_u64(f->una + (uint32_t)ahead, f->nxt);
	// Datagrams that arrive late may take some of this back; the total only grows, as that of TCP's loss marks.
	f->count.lost_segs = max_u64(f->count.lost_segs, time_since(f->una, u->reported));
}

void udp_data_rx(struct host *h, struct receiver *r, const struct seg *s, uint64_t now_ns) {
	int32_t ahead = seq_diff(s->seq + 1, (uint32_t)r->rcv_nxt);

	r->count.segs++;
	r->count.bytes += s->len;
	if (ahead > 0)
		r->rcv_nxt += (uint32_t)ahead;
	else
		r->count.out_of_order_segs++;
	if (!r->delack.armed)
		host_arm(h, &r->delack, now_ns + UDP_REPORT_NS);
}

void udp_report_timer(struct host *h, struct receiver *r, uint64_t now_ns) {
	struct seg s = {.seq = (uint32_t)r->rcv_nxt,
		.ack = (uint32_t)r->count.segs,
		.options = SEG_OPT_UDP};

	r->count.acks++;
	host_send(h, r->id, &s, ECN_NOT_ECT, now_ns);
}
