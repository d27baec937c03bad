// SPDX-License-Identifier: BSD-3-Clause
// The retransmission timeout: when it fires, what it marks, how it backs off. RFC 6298, 8985 6.3.
#include "link.h"

// The timeout is 180 ms above srtt: 200 ms.
#define RTO "rto_min: 180ms, tlp: no, "
// Four segments leave at 20 ms.
#define FOUR(more) HAND(.group = "{cc: {newreno: {initial: 4}}, " RTO more "}")

TEST(fires_one_timeout_after_the_last_progress) {
	struct link *l = FOUR("");
	const struct flow *f = link_flow(l);

	link_run(l, 220 * MS - 1);
	ck_assert_uint_eq(l->data_count, 4);
	link_run(l, 220 * MS);
	ck_assert_uint_eq(l->data_count, 5);
	SENT(l, 4, 0, 220 * MS);
	ck_assert_int_eq(f->ca, FLOW_CA_LOSS);
	ck_assert_uint_eq(f->lost, 4);
	ck_assert_uint_eq(f->unsent_lost, 3);
	ck_assert_uint_eq(f->count.timeouts, 1);
	ck_assert_double_eq(f->cwnd_segs, 1);
}

TEST(progress_starts_it_again_news_by_sack_do_not) {
	struct link *l = FOUR("timestamps: no");

	hand_ack_at(l, 1, 40 * MS);
	hand_sack_at(l, 1, 3, 4, 41 * MS); // one segment is not yet a loss
	ck_assert_uint_eq(link_flow(l)->lost, 0);
	ck_assert_uint_eq(link_flow(l)->rtx_base_ns, 40 * MS);
}

// Short round trips shrink the timeout, which had begun long ago: it fires now, not in the past.
// The hole's repair, which would start it again, waits for the pacer.
TEST(timeout_shortened_by_a_sack_fires_now) {
	struct link *l = HAND(.group = "{cc: {fixed: {cwnd: 100, rate: 11.584Mbit}}, rto_min: 1ms, "
				       "tlp: no}");
	struct flow *f = link_flow(l); // one segment each millisecond from 20 ms on

	link_run(l, 49 * MS);
	f->next_send_ns = 70 * MS;
	hand_sack_at(l, 0, 10, 11, 50 * MS);
	hand_sack_at(l, 0, 15, 16, 55 * MS);
	ck_assert_uint_eq(f->rtt.rto_ns, 42500000);
	hand_sack_at(l, 0, 18, 19, 58 * MS);
	ck_assert_uint_eq(f->rtt.rto_ns, 36875000); // since 20 ms: at 56.9 ms
	ck_assert_uint_eq(f->rtx_deadline_ns, 58 * MS);
	link_run(l, 58 * MS);
	ck_assert_uint_eq(f->count.timeouts, 1);
}

TEST(stops_when_all_is_acknowledged) {
	struct link *l = HAND(.group = "{cc: newreno, tlp: no, source: {size: {bytes: 1000B}}}");

	ck_assert_uint_eq(l->data_count, 2); // and the FIN
	hand_ack_at(l, 2, 40 * MS);
	link_run(l, 100 * S);
	ck_assert_uint_eq(l->data_count, 2);
}

TEST(doubles_to_its_cap_and_gives_up) {
	struct link *l = FOUR("retries: 5, rto_max: 1s");
	const struct flow *f = link_flow(l);
	static const uint64_t at_ms[] = {220, 620, 1420, 2420, 3420};

	link_run(l, 4420 * MS - 1);
	ck_assert_uint_eq(l->data_count, 4 + 5);
	for (uint64_t i = 0; i < 5; i++)
		SENT(l, 4 + i, 0, at_ms[i] * MS);
	ck_assert_int_eq(f->state, FLOW_OPEN);
	ck_assert_uint_eq(f->count.timeouts, 5);
	link_run(l, 4420 * MS);
	ck_assert_int_eq(f->state, FLOW_FAILED);
	ck_assert_uint_eq(l->tx.failed, 1);
	ck_assert(!link_step(l, 1000 * S));
}

// The cap is of the backoff. Below a round trip it made each flight time out before its ACKs could
// arrive; four times the deviation of the first sample, half of it, is two round trips above.
TEST(cap_does_not_cut_what_was_measured) {
	struct link *l = LINK(.group = "{cc: {newreno: {initial: 4}}, rto_max: 60s, tlp: no, "
				       "source: {size: {bytes: 100000B}}}",
		.delay_ns = 40 * S);
	const struct flow *f = link_flow(l);

	while (f->state != FLOW_OPEN)
		NEED(link_step(l, 1000 * S));
	ck_assert_uint_eq(f->rtt.srtt_ns / S, 80);
	ck_assert_uint_eq(f->rtt.rto_ns / S, 240);
	ck_assert_uint_eq(f->rtx_deadline_ns, l->now_ns + f->rtt.rto_ns);
	link_finish(l, 10000 * S);
	link_complete(l);
	ck_assert_uint_eq(f->count.timeouts, 0);
}

// Karn, RFC 6298 section 5.7: the ACK of what was sent twice measures nothing and proves nothing
// about the timeout. It reset the backoff: on a path with an RTT above the timeout, every flight
// timed out for ever.
TEST(backoff_outlives_an_ambiguous_ack) {
	struct link *l = FOUR("timestamps: no, frto: no");
	const struct flow *f = link_flow(l);

	link_run(l, 620 * MS);
	ck_assert_uint_eq(f->backoff, 2);
	hand_ack_at(l, 1, 640 * MS);
	ck_assert_uint_eq(f->backoff, 2);
	ck_assert_uint_eq(f->timeouts, 0);
	ck_assert_uint_eq(f->count.rtt_samples, 0);
	ck_assert_uint_eq(f->rtx_deadline_ns, 640 * MS + 4 * 200 * MS);
	SENT(l, 6, 1, 640 * MS);
	SENT(l, 7, 2, 640 * MS); // slow start
	hand_ack_at(l, 4, 660 * MS);
	ck_assert_uint_eq(f->backoff, 2);
	hand_ack_at(l, 5, 680 * MS); // sent once
	ck_assert_uint_eq(f->backoff, 0);
	ck_assert_uint_eq(f->count.rtt_samples, 1);
}

// RFC 6298 section 3: a timestamp says which transmission arrived, so that Karn's rule is not
// needed (RFC 7323 section 4.1, tcp_ack_update_rtt). The last one was at 620 ms: 20.4 ms, an eighth
// of it in srtt, which was 20 ms. One of before, at 20 or 220 ms, may have arrived long ago: a
// duplicate, which is not in the receiver's window, sets no timestamp (RFC 7323 section 5.3). Where
// only the ACK was lost the timeout would measure itself, and each one double the next.
TEST(echo_of_the_last_transmission_is_a_sample) {
	static const uint64_t echo_ms[] = {620, 220, 20};

	for (size_t i = 0; i < sizeof(echo_ms) / sizeof(echo_ms[0]); i++) {
		struct link *l = FOUR("");
		const struct flow *f = link_flow(l);
		struct seg s;

		link_run(l, 620 * MS);
		s = hand_ack(l, 1, 640400000);
		s.tsecr = flow_tsval(echo_ms[i] * MS);
		hand_feed(l, &s, 640400000);
		ck_assert_uint_eq(f->una, 1);
		ck_assert_uint_eq(f->rtt.srtt_ns, i == 0 ? 20050000 : 20 * MS);
		ck_assert_uint_eq(f->backoff, i == 0 ? 0 : 2);
		// Neither the control nor the smallest RTT hears of it.
		ck_assert_uint_eq(f->rtt.min_ns, 20 * MS);
		ck_assert_uint_eq(f->count.rtt_samples, 0);
		link_close(l);
	}
}

// In a millisecond there may have been two transmissions: what it says is no smallest RTT.
TEST(echo_is_never_the_smallest_rtt) {
	struct link *l = FOUR("");
	const struct flow *f = link_flow(l);
	struct seg s;

	link_run(l, 620 * MS);
	s = hand_ack(l, 1, 630 * MS);
	s.tsecr = flow_tsval(620 * MS);
	hand_feed(l, &s, 630 * MS);
	ck_assert_uint_eq(f->rtt.srtt_ns, 18750000); // 7/8 of 20 ms and 1/8 of 10 ms
	ck_assert_uint_eq(f->rtt.min_ns, 20 * MS);
}

// A delayed ACK answers two repairs that were sent 4 ms apart and echoes the first one's timestamp
// (RFC 7323 section 4.3):
// srtt has the delay, as that of other segments.
TEST(delayed_ack_of_two_repairs_is_a_sample_of_the_first) {
	struct link *l = HAND(.group = "{cc: {fixed: {cwnd: 8, rate: 2.896Mbit}}, rto_min: 180ms}");
	const struct flow *f = link_flow(l); // a segment every 4 ms from 20 ms on
	struct seg s;

	hand_sack_at(l, 0, 2, 6, 60 * MS);
	link_run(l, 70 * MS);
	ck_assert_uint_eq(f->count.retransmits, 2);
	uint64_t first_ns = l->data[l->data_count - 2].t_ns, srtt_ns = f->rtt.srtt_ns;

	ck_assert_uint_eq(l->data[l->data_count - 1].t_ns, first_ns + 4 * MS);
	s = hand_ack(l, 6, first_ns + 30 * MS);
	s.tsecr = flow_tsval(first_ns);
	hand_feed(l, &s, first_ns + 30 * MS);
	ck_assert_uint_eq(f->rtt.srtt_ns, srtt_ns - srtt_ns / 8 + 30 * MS / 8);
}

TEST(path_slower_than_the_timeout_is_learnt) {
	struct link *l =
		LINK(.group = "{cc: {newreno: {initial: 2}}, rto_min: 10ms, rto_initial: 1s, "
			      "timestamps: no, source: {size: {bytes: 100000B}}}");

	link_run(l, 25 * MS);
	l->o.delay_ns = 500 * MS; // a new route
	link_finish(l, 1000 * S);
	link_complete(l);
	ck_assert_uint_ge(link_flow(l)->rtt.srtt_ns, 900 * MS);
	ck_assert_uint_le(link_flow(l)->count.timeouts, 10);
}

// RFC 8985 section 6.3: the first segment, and what was sent an RTT and reo_wnd ago. RFC 6298
// section 5.4: the first goes out at once; it waited for the pacer and for the window.
TEST(takes_the_head_and_what_is_old_and_sends_the_head) {
	// One segment each 64 ms: at 20, 84, 148 and 212 ms.
	struct link *l = HAND(.group = "{cc: {fixed: {cwnd: 100, rate: 181kbit}}, " RTO "}");
	const struct flow *f = link_flow(l);

	link_run(l, 220 * MS);
	ck_assert_uint_eq(l->data_count, 5);
	SENT(l, 3, 3, 212 * MS);
	SENT(l, 4, 0, 220 * MS);
	ck_assert_uint_eq(f->lost, 3);
	ck_assert_uint_eq(flow_seg(f, 3)->flags & SENT_LOST, 0);
	ck_assert_uint_eq(f->unsent_lost, 2);
	link_run(l, 276 * MS); // the pacer goes on
	SENT(l, 5, 1, 276 * MS);
}

TEST(lost_retransmission_is_sent_again_by_the_next_timeout) {
	struct link *l =
		LINK(.group = "{cc: {newreno: {initial: 4}}, source: {size: {bytes: 5000B}}}",
			.lose = 0x1ef); // all four, the FIN's probe, and the head three times

	link_finish(l, 60 * S);
	link_complete(l);
	ck_assert_uint_ge(link_flow(l)->count.timeouts, 2);
}

// Slow start repairs the window: 1, 2, 4 ... segments per round trip, each sent once.
TEST(recovers_by_slow_start) {
	struct link *l =
		LINK(.group = "{cc: {newreno: {initial: 8}}, " RTO "ack_every: 1, frto: no, "
			      "source: {size: {bytes: 100000B}}}",
			.lose = 0xff);
	const struct flow *f = link_flow(l);

	link_run(l, 260 * MS);
	ck_assert_uint_eq(l->data_count, 8 + 1 + 2 + 4);
	SENT(l, 8, 0, 220 * MS);
	SENT(l, 9, 1, 240 * MS);
	SENT(l, 10, 2, 240 * MS);
	for (uint64_t i = 0; i < 4; i++)
		SENT(l, 11 + i, 3 + i, 260 * MS);
	ck_assert_int_eq(f->ca, FLOW_CA_LOSS);
	link_run(l, 280 * MS); // the last lost one, then new ones
	SENT(l, 15, 7, 280 * MS);
	SENT(l, 16, 8, 280 * MS);
	link_run(l, 300 * MS);
	ck_assert_int_eq(f->ca, FLOW_CA_OPEN);
	ck_assert_uint_eq(f->count.retransmits, 8);
	ck_assert_uint_eq(f->count.timeouts, 1);
}

TEST(spurious_timeout_repairs_itself) {
	struct link *l = LINK(.group = "{cc: newreno, tlp: no, source: {size: {bytes: 200000B}}}",
		.late = 0x3ff, .late_ns = 400 * MS);
	const struct flow *f = link_flow(l);

	link_finish(l, 10 * S);
	link_complete(l);
	ck_assert_uint_ge(f->count.timeouts, 1);
	ck_assert_uint_ge(f->count.spurious, 1);
}

// RFC 2018 section 8: a receiver may drop what it had SACKed. Segments marked so were never sent
// again: every timeout marked nothing, until the flow gave up.
TEST(receiver_that_reneges_gets_it_again) {
	struct link *l = HAND(.group = "{cc: {newreno: {initial: 8}}, tlp: no}");
	const struct flow *f = link_flow(l);

	hand_sack_at(l, 0, 1, 5, 40 * MS);
	ck_assert_uint_eq(f->sacked, 4);
	ck_assert_uint_eq(l->data[8].index, 0); // the hole
	hand_ack_at(l, 1, 60 * MS); // filled, but 1 to 4 are gone
	uint64_t at_ns = f->rtx_deadline_ns, before = l->data_count;

	link_run(l, at_ns);
	ck_assert_uint_eq(f->count.timeouts, 1);
	ck_assert_uint_eq(f->sacked, 0);
	SENT(l, before, 1, at_ns);
	for (uint64_t i = 2; i < 9; i++)
		hand_ack_at(l, i, at_ns + i * 20 * MS);
	ck_assert_uint_eq(f->una, 8);
	ck_assert_uint_eq(f->count.timeouts, 1);
}

// CUBIC stood at one segment for ever: it was told that recovery went on, and does not grow in
// recovery.
TEST(every_control_grows_again_after_a_timeout) {
	static const char *const groups[] = {
		"{cc: {newreno: {initial: 32}}, " RTO "}",
		"{cc: {cubic: {initial: 32}}, " RTO "}",
		"{cc: {bbr: {initial: 32}}, " RTO "}",
		"{cc: {copa: {initial: 32}}, " RTO "}",
	};

	for (size_t i = 0; i < sizeof(groups) / sizeof(groups[0]); i++) {
		struct link *l = LINK(.group = groups[i], .lose = UINT32_MAX);
		const struct flow *f = link_flow(l);

		while (f->count.timeouts == 0)
			NEED(link_step(l, S));
		ck_assert_double_le(f->out.cwnd_segs, 2);
		link_run(l, l->now_ns + 200 * MS); // ten round trips
		ck_assert_uint_ge(f->una, 32);
		ck_assert_double_ge(f->out.cwnd_segs, 16);
		link_close(l);
	}
}

// RFC 6675 section 6, and Linux: the timeout is that of the head's repair. On a path longer than
// the timeout's margin every repair that was lost too became a timeout.
TEST(repair_of_the_head_starts_it_again) {
	struct link *l = HAND(.group = "{cc: {newreno: {initial: 10}}, " RTO "}");
	const struct flow *f = link_flow(l);

	hand_sack_at(l, 0, 1, 4, 60 * MS);
	SENT(l, 10, 0, 60 * MS);
	ck_assert_uint_eq(f->rtx_deadline_ns, 60 * MS + f->rtt.rto_ns);
}

// Live: a loop that stood still finds the timer due and the ACK in its port. The ACK came first.
TEST(ack_that_came_before_the_deadline_is_processed_first) {
	struct link *l = HAND(.group = "{cc: {newreno: {initial: 4}}, " RTO "}", .live = true);
	const struct flow *f = link_flow(l);
	struct seg s;

	link_run(l, 100 * MS);
	l->tx.heard_ns = 100 * MS; // the loop stands still until 260 ms; the timeout is at 220 ms
	host_run(&l->tx, 260 * MS);
	ck_assert_uint_eq(f->count.timeouts, 0);
	s = hand_ack(l, 4, 260 * MS);
	host_rx_flow(&l->tx, 0, &s, ECN_NOT_ECT, 260 * MS);
	l->tx.heard_ns = 260 * MS;
	host_run(&l->tx, 261 * MS);
	ck_assert_uint_eq(f->count.timeouts, 0);
	ck_assert_uint_eq(f->una, 4);
}

// But it does not wait for ever.
TEST(timeout_fires_though_nothing_is_heard) {
	struct link *l = HAND(.group = "{cc: {newreno: {initial: 4}}, " RTO "}", .live = true);

	link_run(l, 100 * MS);
	l->tx.heard_ns = 100 * MS;
	for (uint64_t t_ns = 220 * MS; t_ns <= 270 * MS; t_ns += MS) {
		ck_assert_uint_eq(link_flow(l)->count.timeouts, 0);
		host_run(&l->tx, t_ns);
	}
	ck_assert_uint_eq(link_flow(l)->count.timeouts, 1);
}

// RFC 5681 section 3.1: one segment after each timeout, whatever SACKs let the window grow to.
TEST(repeated_timeout_leaves_one_segment) {
	struct link *l = HAND(.group = "{cc: {newreno: {initial: 8}}, " RTO "}");
	const struct flow *f = link_flow(l);

	link_run(l, 220 * MS);
	for (uint64_t i = 1; i < 6; i++)
		hand_sack_at(l, 0, 1, 1 + i, 230 * MS + i);
	link_run(l, 2 * S);
	ck_assert_uint_ge(f->count.timeouts, 2);
	ck_assert_double_eq(f->out.cwnd_segs, 1);
}

TEST(repeated_timeouts_are_one_reduction) {
	struct link *l = FOUR("");
	struct flow *f = link_flow(l);
	float obs[CC_OBSERVED];

	link_run(l, 2 * S);
	ck_assert_uint_eq(f->count.timeouts, 3);
	cc_find("newreno")->observe(f->cc_state, l->groups.group[0].cc_config, obs);
	ck_assert_double_eq((double)obs[0], 2); // half of four
}
