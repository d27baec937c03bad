// SPDX-License-Identifier: BSD-3-Clause
// ACKs of a receiver as real hosts send them. receiver_gro.c has which segments reach TCP as one.
//
// Linux's ACKs (`acks: linux`, tcp_input.c and tcp_timer.c of Linux 6.12):
//
//	quick-ACK    the first 16 segments are acknowledged at once (fewer if the window holds less
//	             than 32), and 16 after one that brought nothing new (tcp_incr_quickack,
//	             tcp_enter_quickack_mode); each segment that lets the window grow (`rmem`),
//	             which in slow start are most of them (tcp_grow_window)
//	else         if more than one full segment is not acknowledged: at once
//	             (__tcp_ack_snd_check)
//	else         if it has PSH or is short, and the application has read all: at once
//	             (tcp_measure_rcv_mss, tcp_cleanup_rbuf)
//	else         after the ATO: 40 ms; if data arrives further apart, half of the last one and
//	             the distance; at most 200 ms and the RTT, if that is more than 40 ms; doubled
//	             when the timer fires (tcp_event_data_recv, tcp_send_delayed_ack,
//	             tcp_delack_timer_handler)
//	with a hole  three ACKs with one acknowledgement number at once, then one for up to
//	             44 segments, after 1/20 of the RTT and at most 1 ms, and 0.1 ms more
//	             (tcp_comp_sack_delay_ns, tcp_comp_sack_slack_ns, tcp_comp_sack_nr)
//
// Times of the ATO are in ticks if the host has them (`hz`), those of compressed SACKs never. Where
// we differ, and why: the RTO that bounds the ATO is that of the handshake's sample, the only one a
// receiver takes. There is no ping-pong mode, which a connection enters when it sends data itself;
// ours do not. An application reads at once: a kernel that gets more than one part of a flow in one
// poll of a card (receiver_gro.c), and would offer a smaller window before the application has read
// the first, acknowledges them together. Twelve flows behind a card of 730 us have 3.4 segments per
// ACK here and 3.7 there.
#include "common/base/jiffies.h"
#include "common/base/mem.h"
#include "sender/endpoint/endpoint.h"
#include "sender/tcp/receiver.h"

#include <errno.h>
#include <string.h>

#define QUICK_MAX 16
#define QUICK_ECN 2
#define ATO_MIN_NS (40 * NS_PER_MS) // and least of its bounds
#define ATO_MAX_NS (200 * NS_PER_MS)
#define DUP_ACKS 3 // sent one by one
#define COMPRESSED_MAX 44
#define COMPRESSED_NS_MAX NS_PER_MS
#define COMPRESSED_SLACK_NS                                                                        \
	(100 * NS_PER_US) // the timer may wait for others, and without others does

uint64_t receivers_acks_bytes(const struct groups *gs, uint32_t receivers) {
	for (uint32_t i = 0; i < gs->count; i++) {
		if (gs->group[i].receiver_modes != 0)
			return receivers * sizeof(struct receiver_acks);
	}
	return 0;
}

int receivers_acks_init(struct endpoint *e, struct err *err) {
	uint64_t bytes = receivers_acks_bytes(e->groups, e->env.receivers);

	if (bytes == 0)
		return 0;
	e->receiver_acks = mem_map(bytes);
	if (e->receiver_acks == NULL || receivers_gro_init(e) < 0)
		return err_set(err, -ENOMEM, "no memory for %u receivers", e->env.receivers);
	for (uint32_t i = 0; i < e->env.receivers; i++)
		e->receiver[i].acks = &e->receiver_acks[i];
	return 0;
}

void receivers_acks_fini(struct endpoint *e) {
	mem_unmap(e->receiver_acks, e->env.receivers * sizeof(*e->receiver_acks));
	e->receiver_acks = NULL;
	receivers_gro_fini(e);
}

void receiver_acks_reset(struct receiver *r) {
	memset(r->acks, 0, sizeof(*r->acks));
	r->acks->gro_ns = r->acks->syn_ack_ns = NEVER_NS;
}

// Of a connection with one RTT sample (rtt.h): srtt + max(4 * srtt / 2, 200 ms).
static uint64_t rto_ns(const struct receiver *r) {
	return r->acks->rtt_ns + time_max(2 * r->acks->rtt_ns, 200 * NS_PER_MS);
}

static void more_quick(struct receiver *r, uint32_t max) {
	uint64_t window = (uint64_t)r->window << (r->window_scaled ? r->wscale : 0);
	uint64_t quick = r->payload > 0 ? window / (2 * (uint64_t)r->payload) : 0;

	quick = min_u64(quick == 0 ? 2 : quick, max);
	if (quick > r->acks->quick)
		r->acks->quick = (uint8_t)quick;
}

// Data has arrived: adapts the ATO (tcp_event_data_recv).
static void data_event(struct receiver *r, uint64_t tick_ns, uint64_t now_ns) {
	struct receiver_acks *a = r->acks;
	uint64_t time_ns = jiffies_ns(tick_ns, now_ns), gap_ns = time_ns - a->data_ns;
	uint64_t half_ns = jiffies_ns(tick_ns, a->ato_ns / 2);

	if (a->ato_ns == 0) {
		more_quick(r, QUICK_MAX);
		a->ato_ns = ATO_MIN_NS;
	} else if (gap_ns <= ATO_MIN_NS / 2) {
		a->ato_ns = half_ns + ATO_MIN_NS / 2;
	} else if (gap_ns < a->ato_ns) {
		a->ato_ns = time_min(half_ns + gap_ns, rto_ns(r));
	} else if (gap_ns > rto_ns(r)) {
		more_quick(r, QUICK_MAX);
	}
	a->data_ns = time_ns;
}

void receiver_acks_arm(struct endpoint *e, struct receiver *r) {
	uint64_t due_ns = time_min(r->delack_ns, r->acks->gro_ns);

	if ((r->modes & RECEIVER_WINDOW) != 0)
		due_ns = time_min(due_ns, r->acks->window.update_ns);
	if (due_ns != NEVER_NS && (!r->delack.armed || due_ns < r->delack.t.expires_ns))
		endpoint_arm(e, &r->delack, due_ns);
}

// Arms the timer for the time at which a slow reader has made room.
static void expect_reading(struct endpoint *e, struct receiver *r, uint64_t now_ns) {
	if ((r->modes & RECEIVER_WINDOW) != 0
		&& receiver_window_update_ns(e, r, now_ns) != NEVER_NS)
		receiver_acks_arm(e, r);
}

// tcp_send_delayed_ack.
static void delay(struct endpoint *e, struct receiver *r, uint64_t now_ns) {
	uint64_t ato_ns = r->acks->ato_ns, max_ns = ATO_MAX_NS;
	uint64_t tick_ns = receiver_group(e, r)->tick_ns, soon_ns;

	if (r->acks->rtt_ns > 0)
		max_ns = time_min(max_ns, time_max(r->acks->rtt_ns, ATO_MIN_NS));
	ato_ns = time_min(ato_ns, max_ns);
	soon_ns = jiffies_timer_ns(tick_ns, now_ns, jiffies_ns(tick_ns, ato_ns / 4));
	if (r->delack_ns != NEVER_NS && r->delack_ns <= soon_ns) {
		receiver_send_ack(e, r, now_ns);
		return;
	}
	r->delack_ns = time_min(r->delack_ns, jiffies_timer_ns(tick_ns, now_ns, ato_ns));
	r->acks->compressed = false;
	receiver_acks_arm(e, r);
}

// Data beyond a hole (__tcp_ack_snd_check): whether its ACK waits for those of later segments.
static bool compress(struct endpoint *e, struct receiver *r, uint64_t now_ns) {
	struct receiver_acks *a = r->acks;
	uint64_t wait_ns = COMPRESSED_NS_MAX;

	if (!r->sack_ok || a->compressed_acks >= COMPRESSED_MAX)
		return false;
	if (a->dup_nxt != r->rcv_nxt) {
		a->dup_nxt = r->rcv_nxt;
		a->dup_acks = 0;
	}
	if (a->dup_acks < DUP_ACKS) {
		a->dup_acks++;
		return false;
	}
	a->compressed_acks++;
	if (a->compressed && r->delack_ns != NEVER_NS)
		return true;
	if (a->rtt_ns > 0)
		wait_ns = time_min(wait_ns, a->rtt_ns / 20);
	r->delack_ns = time_min(r->delack_ns, now_ns + wait_ns + COMPRESSED_SLACK_NS);
	a->compressed = true;
	receiver_acks_arm(e, r);
	return true;
}

static void ack_linux(struct endpoint *e, struct receiver *r, bool now, bool pushed, bool repeated,
	uint64_t now_ns) {
	data_event(r, receiver_group(e, r)->tick_ns, now_ns);
	if (r->acks->grew)
		r->acks->quick |= 1;
	r->acks->grew = false;
	if (repeated) {
		more_quick(r, QUICK_MAX);
		r->acks->ato_ns = ATO_MIN_NS;
	} else if (now && r->ecn_echo) {
		more_quick(r, QUICK_ECN);
	}
	pushed &= r->head == NULL && receiver_group(e, r)->read_bps == 0;
	if (now || pushed || r->acks->quick > 0
		|| (uint64_t)seq_diff(receiver_seq(r, r->rcv_nxt), r->last_ack) > r->payload)
		receiver_send_ack(e, r, now_ns);
	else if (r->head == NULL)
		delay(e, r, now_ns);
	else if (!compress(e, r, now_ns))
		receiver_send_ack(e, r, now_ns);
}

void receiver_acks_decide(struct endpoint *e, struct receiver *r, uint32_t bytes, bool now,
	bool pushed, bool repeated, uint64_t now_ns) {
	uint32_t segs = r->payload > 0 ? bytes / r->payload : 0;

	if ((r->modes & RECEIVER_LINUX_ACKS) != 0)
		ack_linux(e, r, now, pushed, repeated, now_ns);
	else
		receiver_ack_fixed(e, r, segs, now || repeated || r->head != NULL, now_ns);
}

void receiver_answered(struct receiver *r, uint64_t now_ns) {
	if (r->acks->syn_ack_ns == NEVER_NS)
		return;
	r->acks->rtt_ns = now_ns - r->acks->syn_ack_ns;
	r->acks->window.measured_ns = now_ns;
	r->acks->syn_ack_ns = NEVER_NS;
}

void receiver_ack_sent(struct receiver *r) {
	struct receiver_acks *a = r->acks;

	if (a->quick > 0)
		a->quick--;
	a->compressed_acks = 0;
	a->compressed = false;
}

void receiver_ack_host(struct endpoint *e, struct receiver *r, const struct seg *s, uint64_t end,
	uint8_t ecn, bool now, bool repeated, uint64_t now_ns) {
	bool pushed = s->len < r->payload || (s->flags & SEG_PSH) != 0;

	if ((r->modes & RECEIVER_GRO) == 0)
		receiver_acks_decide(e, r, s->len, now, pushed, repeated, now_ns);
	else
		receiver_gro_take(e, r, s, end, ecn, now, pushed, repeated, now_ns);
	expect_reading(e, r, now_ns);
}

void receiver_host_timer(struct endpoint *e, struct receiver *r, uint64_t now_ns) {
	if (r->acks->gro_ns <= now_ns)
		receiver_gro_flush(e, r, now_ns);
	if (r->delack_ns <= now_ns) {
		if ((r->modes & RECEIVER_LINUX_ACKS) != 0 && !r->acks->compressed)
			r->acks->ato_ns = time_min(2 * r->acks->ato_ns, rto_ns(r));
		receiver_send_ack(e, r, now_ns);
	}
	if ((r->modes & RECEIVER_WINDOW) != 0 && r->acks->window.update_ns <= now_ns)
		receiver_send_ack(e, r, now_ns);
	expect_reading(e, r, now_ns);
	receiver_acks_arm(e, r);
}
