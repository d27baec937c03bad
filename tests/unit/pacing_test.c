// SPDX-License-Identifier: BSD-3-Clause
// The pacer and the delivery-rate estimator: exact times, exact rates.
// draft-cheng-iccrg-delivery-rate-estimation-02.
#include "link.h"
#include "sender/tcp/pacer.h"

#define PAYLOAD 1448u

// ---- Pacing ----

TEST(gaps_are_exact) {
	// 1448 B at 1448 kbyte/s: one each millisecond.
	struct link *l = HAND(.group = "{cc: {fixed: {cwnd: 1000, rate: 11.584Mbit}}, tlp: no}");

	hand_ack_at(l, 0, 20 * MS); // opens the window
	link_run(l, 120 * MS);
	ck_assert_uint_eq(l->data_count, 101);
	for (uint64_t i = 0; i <= 100; i++)
		SENT(l, i, i, 20 * MS + i * MS);
}

// The live sender measured how late segments were that no pacer had let go: it took all data of a
// flow that was ever paced for paced.
TEST(only_what_the_pacer_let_go_is_paced) {
	struct link *l = HAND(.group = "{cc: {fixed: {cwnd: 3, rate: 11.584Mbit}}}");
	struct link *unpaced = HAND(.group = "{cc: {fixed: {cwnd: 3, rate: 0bit}}}");

	for (uint64_t i = 0; i < 2; i++)
		hand_ack_at(i == 0 ? l : unpaced, 0, 20 * MS);
	link_run(l, 2 * S);
	link_run(unpaced, 2 * S);
	ck_assert(!l->data[0].paced); // nothing was sent that its time could follow from
	ck_assert(l->data[1].paced && l->data[2].paced);
	ck_assert(!l->data[3].paced); // a tail loss probe
	ck_assert(!l->data[4].paced); // a timeout
	ck_assert_uint_eq(l->data[4].index, 0);
	ck_assert(l->data[5].paced && l->data[6].paced); // the repairs that follow
	for (uint64_t i = 0; i < unpaced->data_count; i++)
		ck_assert(!unpaced->data[i].paced);
	for (uint64_t i = 0; i < l->ctl_count; i++)
		ck_assert(!l->ctl[i].paced);
}

// Fractions of a nanosecond are kept: 7 Mbit/s is 1654857.142857 ns a segment, without drift.
TEST(long_run_rate_is_exact) {
	struct link *l =
		LINK(.group = "{cc: {fixed: {cwnd: 100, rate: 7Mbit}}}", .check_every = 100);
	const struct flow *f = link_flow(l);

	link_run(l, 20 * MS + 16 * S);
	// 16 s * 7 Mbit/s / 8 / 1448 B = 9668.508 segments after the first.
	ck_assert_uint_eq(l->data_count, 9669);
	ck_assert_uint_eq(f->next_send_ns, 20 * MS + UINT64_C(16000813714)); // 9669 gaps: ...714.28
	ck_assert_double_eq_tol(f->next_send_frac, 2.0 / 7, 1e-3);
}

// Picoquic's bound: a volume V leaves within [(V - quantum) / rate, V / rate]. At any rate.
TEST(any_volume_leaves_in_its_time) {
	static const double mbits[] = {0.7, 1, 9.87654321, 100, 1234.5};

	for (int r = 0; r < 5; r++) {
		char group[100];

		snprintf(group, sizeof(group),
			"{cc: {fixed: {cwnd: 100000, rate: %.8fMbit}}, tlp: no, rto_min: 60s}",
			mbits[r]);
		struct link *l = HAND(.group = group, .check_every = 1000);
		double gap_ns = PAYLOAD * 8e3 / mbits[r];

		hand_ack_at(l, 0, 20 * MS); // opens the window
		link_run(l, 20 * MS + (uint64_t)(2000 * gap_ns));
		for (uint64_t n = 1; n <= 2000; n++) { // the n-th has left after n - 1 gaps
			double t_ns = (double)(l->data[n - 1].t_ns - 20 * MS);

			NEED(t_ns <= (double)n * gap_ns);
			NEED(t_ns >= (double)(n - 1) * gap_ns - 1);
		}
		link_close(l);
	}
}

TEST(ack_does_not_hurry_the_pacer) {
	struct link *l = HAND(.group = "{cc: {fixed: {cwnd: 1000, rate: 11.584Mbit}}}");

	for (uint64_t t = 0; t < 50; t++)
		hand_ack_at(l, t, 20 * MS + t * MS + 500 * US);
	for (uint64_t i = 0; i < 50; i++)
		SENT(l, i, i, 20 * MS + i * MS);
}

TEST(silence_earns_no_burst) {
	struct link *l = HAND(.group = "{cc: {fixed: {cwnd: 2, rate: 11.584Mbit}}, tlp: no}");

	link_run(l, 30 * MS);
	ck_assert_uint_eq(l->data_count, 2);
	hand_ack_at(l, 2, 50 * MS);
	link_run(l, 60 * MS);
	SENT(l, 2, 2, 50 * MS);
	SENT(l, 3, 3, 51 * MS);
}

// A live loop comes round when it can.
static struct link *late_loop(void) {
	struct link *l = HAND(.group = "{cc: {fixed: {cwnd: 1000, rate: 115.84Mbit}}, tlp: no}",
		.live = true); // one each 100 us

	ck_assert_uint_eq(l->data_count, 1);
	return l;
}

TEST(late_loop_catches_up) {
	struct link *l = late_loop();

	l->now_ns = 20 * MS + 750 * US;
	host_run(&l->tx, l->now_ns);
	ck_assert_uint_eq(l->data_count, 8); // 0 and 100 to 700 us
	for (uint64_t i = 0; i < 8; i++)
		SENT(l, i, i, 20 * MS + i * 100 * US); // each is handed out with its own time
	ck_assert_uint_eq(link_flow(l)->next_send_ns, 20 * MS + 800 * US);
}

TEST(late_loop_catches_up_a_millisecond_at_most) {
	struct link *l = late_loop();

	l->now_ns = 20 * MS + 50 * MS;
	host_run(&l->tx, l->now_ns);
	ck_assert_uint_eq(l->data_count, 1 + 11);
	SENT(l, 1, 1, 20 * MS + 100 * US); // how late it really is
	for (uint64_t i = 2; i < 12; i++)
		SENT(l, i, i, 69 * MS + (i - 1) * 100 * US);
	ck_assert_uint_eq(link_flow(l)->next_send_ns, 70 * MS + 75 * US);
}

// Flows that one stall held up would all go on in step, and be a burst for ever after.
TEST(late_loop_keeps_its_step) {
	struct link *l = HAND(.group = "{cc: {fixed: {cwnd: 1000, rate: 40Mbit}}, tlp: no}",
		.live = true); // one each 289.6 us

	l->now_ns = 20 * MS + 50 * MS;
	host_run(&l->tx, l->now_ns);
	ck_assert_uint_eq(l->data_count, 1 + 4);
	SENT(l, 1, 1, 20 * MS + UINT64_C(289600));
	for (uint64_t i = 2; i < 5; i++)
		SENT(l, i, i, 20 * MS + (168 + i) * UINT64_C(289600)); // 69.2 to 69.8 ms
	ck_assert_uint_eq(link_flow(l)->next_send_ns, 20 * MS + 173 * UINT64_C(289600) - 72400);
	ck_assert_uint_eq(link_flow(l)->owed_ns, 168 * UINT64_C(289600) - 72400);
}

// Linux (tcp_update_skb_after_send) counts the gap from now and takes off what it is late, up to
// half.
TEST(lateness_is_made_up_for_as_in_linux) {
	static const uint64_t late_us[] = {0, 1, 25, 49, 50};

	for (int i = 0; i < 5; i++) {
		struct link *l = late_loop();
		uint64_t late_ns = late_us[i] * US, gap_ns = 100 * US;

		l->now_ns = 20 * MS + gap_ns + late_ns;
		host_run(&l->tx, l->now_ns);
		ck_assert_uint_eq(l->data_count, 2);
		ck_assert_uint_eq(link_flow(l)->next_send_ns,
			l->now_ns + gap_ns - time_min(gap_ns / 2, late_ns));
		link_close(l);
	}
}

// The loop comes round each microsecond.
static void poll_until(struct link *l, uint64_t until_ns) {
	while (l->now_ns < until_ns) {
		l->now_ns += US;
		host_run(&l->tx, l->now_ns);
	}
}

// What Linux would forget: the loop stands still for 20 ms, 60 ms later all has been sent.
TEST(missed_turns_are_made_up_for_a_quarter_of_a_gap_at_a_time) {
	struct link *l = late_loop();
	uint64_t n;

	hand_ack_at(l, 0, 20 * MS); // opens the window
	l->now_ns = 40 * MS + 7 * US;
	host_run(&l->tx, l->now_ns);
	n = l->data_count;
	ck_assert_uint_eq(n, 12);
	ck_assert_uint_gt(link_flow(l)->owed_ns, 18 * MS);
	for (uint64_t t = 41 * MS; t < 110 * MS; t += 75 * US) {
		poll_until(l, t);
		ck_assert_uint_le(l->data_count,
			n + (t == 41 * MS ? 14 : 1)); // a third more than its rate at most
		n = l->data_count;
		NEED(n <= 1 + (t - 20 * MS) / (100 * US)); // and no more than without the stall
	}
	ck_assert_uint_eq(link_flow(l)->owed_ns, 0);
	ck_assert_int_eq(link_flow(l)->missed_ns, 0);
	poll_until(l, 110 * MS);
	SENT(l, 900, 900, 110 * MS); // what it should have sent
	// Where the stall caught it decides when it sends: those that it caught together do not
	// stay so.
	for (uint64_t i = 1; i <= 900; i++)
		NEED((l->data[i].t_ns - 20 * MS) % (25 * US) == 0);
	ck_assert_uint_eq(link_flow(l)->next_send_ns, 110 * MS + 100 * US);
}

TEST(a_fifth_of_a_second_is_made_up_for_at_most) {
	struct link *l = HAND(.group = "{cc: {fixed: {cwnd: 9000, rate: 11.584Mbit}}, "
				       "tlp: no, rto_min: 60s}",
		.live = true); // one each ms
	uint64_t missed_ns = 978 * MS; // of 979 one is sent at once

	hand_ack_at(l, 0, 20 * MS); // opens the window
	l->now_ns = S;
	host_run(&l->tx, l->now_ns);
	poll_until(l, 2 * S);
	ck_assert_uint_eq(link_flow(l)->owed_ns, 0);
	ck_assert_int_eq(link_flow(l)->missed_ns, (int64_t)(missed_ns - 200 * MS));
	ck_assert_uint_eq(l->data_count, 1 + 1980 - 778);
}

TEST(nothing_is_owed_to_a_flow_that_its_window_held_up) {
	struct link *l =
		HAND(.group = "{cc: {fixed: {cwnd: 8, rate: 115.84Mbit}}, tlp: no}", .live = true);

	l->now_ns = 40 * MS;
	host_run(&l->tx, l->now_ns);
	ck_assert_uint_eq(l->data_count, 8);
	ck_assert_uint_eq(link_flow(l)->owed_ns, 0);
	ck_assert_int_gt(link_flow(l)->missed_ns, 0);
	hand_ack_at(l, 2, 41 * MS);
	SENT(l, 8, 8, 41 * MS);
	ck_assert_uint_eq(link_flow(l)->next_send_ns, 41 * MS + 100 * US);
}

// The loop serves what arrived before the timers: gaps counted from the ACK, and what was late was
// lost to the rate.
TEST(ack_before_a_late_timer_costs_no_rate) {
	struct link *l = late_loop();
	struct seg s = hand_ack(l, 0, 20 * MS + 750 * US);

	l->now_ns = 20 * MS + 750 * US;
	host_rx_flow(&l->tx, 0, &s, ECN_NOT_ECT, l->now_ns);
	ck_assert_uint_eq(l->data_count, 8);
	for (uint64_t i = 0; i < 8; i++)
		SENT(l, i, i, 20 * MS + i * 100 * US);
	ck_assert_uint_eq(link_flow(l)->next_send_ns, 20 * MS + 800 * US);
}

// Nothing more is to leave: the ACK lets out what leaves with the timer, as of the ACK's time.
TEST(at_a_full_port_an_ack_leaves_sending_to_the_pacer) {
	struct link *l =
		HAND(.group = "{cc: {fixed: {cwnd: 8, rate: 115.84Mbit}}, tlp: no}", .live = true);

	l->now_ns = 40 * MS;
	host_run(&l->tx, l->now_ns);
	ck_assert_uint_eq(l->data_count, 8);
	l->tx.tx_backpressure = true;
	hand_ack_at(l, 2, 41 * MS);
	ck_assert_uint_eq(l->data_count, 8);
	l->tx.tx_backpressure = false;
	l->now_ns = 41 * MS + 350 * US;
	host_run(&l->tx, l->now_ns);
	ck_assert_uint_eq(l->data_count, 10);
	SENT(l, 8, 8, 41 * MS);
	SENT(l, 9, 9, 41 * MS + 100 * US);
}

TEST(at_a_full_port_an_unpaced_window_goes_on) {
	struct link *l = HAND(.group = "{cc: {fixed: {cwnd: 10}}}", .live = true);

	l->tx.tx_backpressure = true;
	hand_ack_at(l, 10, 40 * MS);
	ck_assert_uint_eq(l->data_count, 20);
}

static struct host_conformance conformance(const struct link *l) {
	const struct host *h = &l->tx;

	return host_conformance(&h, 1);
}

// As the summary tells it; a flow that its window holds up does not keep its rate.
TEST(conformance_is_what_was_sent_over_what_was_asked) {
	struct link *l = LINK(.group = "{cc: {fixed: {cwnd: 100, rate: 7Mbit}}}");
	struct host_conformance c;

	link_run(l, 500 * MS);
	host_measure(&l->tx, l->now_ns);
	link_run(l, 1499 * MS);
	ck_assert_uint_eq(conformance(l).flows, 0); // less than a second
	link_run(l, 3 * S);
	c = conformance(l);
	ck_assert_uint_eq(c.flows, 1);
	ck_assert_double_le(c.worst, 1e-8);
	ck_assert_double_le(c.p99, c.worst);
	link_close(l);

	l = LINK(.group = "{cc: {fixed: {cwnd: 10, rate: 11.584Mbit}}, ack_every: 1}");
	link_run(l, 500 * MS);
	host_measure(&l->tx, l->now_ns);
	link_run(l, 3 * S);
	c = conformance(l);
	ck_assert_uint_eq(c.flows, 1);
	ck_assert_double_eq_tol(c.worst, 0.5, 0.01); // ten a round trip of 20 ms, not twenty
}

TEST(srtt_pacing_spreads_any_window) {
	struct link *l = HAND(.group = "{cc: {fixed: {cwnd: 10}}, pacing: srtt}");
	double gap_ns = 20e6 / (1.2 * 10);

	link_run(l, 40 * MS);
	ck_assert_uint_eq(l->data_count, 10);
	for (uint64_t i = 0; i < 10; i++)
		ck_assert_uint_eq(l->data[i].t_ns, 20 * MS + (uint64_t)((double)i * gap_ns));
}

// Slow start doubles the window each round trip, which takes the pacer twice its rate; from half of
// ssthresh on it grows by less (tcp_update_pacing_rate). A window that has shrunk below what is not
// yet acknowledged does not slow its repair down. The handshake measured 20 ms.
TEST(srtt_pacing_has_two_gains_as_linux_has) {
	struct link *l = HAND(.group = "{cc: {newreno: {initial: 20}}, pacing: srtt, tlp: no,"
				       " frto: no, rto_min: 180ms}");
	const struct flow *f = link_flow(l);

	link_run(l, 220 * MS); // the timeout: ssthresh is 10
	for (uint64_t i = 0; i < 20; i++)
		SENT(l, i, i, 20 * MS + i * 500 * US);
	ck_assert_double_eq(f->out.cwnd_segs, 1);
	for (uint64_t una = 1; una < 8; una++) { // of retransmissions: no sample
		double cwnd = (double)una + 1, gain = cwnd < 5 ? 2.0 : 1.2, out = 20 - (double)una;

		hand_ack_at(l, una, 220 * MS + una * 20 * MS);
		ck_assert_double_eq(f->out.cwnd_segs, cwnd);
		ck_assert_double_eq_tol(
			pacer_bps(&l->groups.group[0], f), gain * out * PAYLOAD * 8 / 20e-3, 1e-3);
	}
}

// Not by a nominal millisecond, at which all ten would leave within 350 us.
TEST(first_window_of_bbr_is_spread_over_a_third_of_the_handshake) {
	struct link *l = HAND(.group = "{cc: bbr, tlp: no}");
	double gap_ns = 20e6 / (739.0 / 256 * 10);

	link_run(l, 39 * MS);
	ck_assert_uint_eq(l->data_count, 10);
	for (uint64_t i = 0; i < 10; i++)
		ck_assert_double_eq_tol((double)l->data[i].t_ns, 20e6 + (double)i * gap_ns, 1.0);
}

TEST(pacing_can_be_off) {
	struct link *l = HAND(.group = "{cc: {fixed: {cwnd: 10, rate: 1Mbit}}, pacing: off}");

	ck_assert_uint_eq(l->data_count, 10);
}

TEST(retransmissions_are_paced_too) {
	struct link *l =
		LINK(.group = "{cc: {fixed: {cwnd: 50, rate: 11.584Mbit}}}", .lose = 0x3f0);

	link_run(l, 200 * MS);
	ck_assert_uint_eq(link_flow(l)->count.retransmits, 6);
	for (uint64_t i = 1; i < l->data_count; i++)
		ck_assert_uint_eq(l->data[i].t_ns - l->data[i - 1].t_ns, MS);
}

// ---- Delivery rate. A spy control keeps the ACK's measurements ----

static struct cc_ack spied[4096];
static uint64_t spied_count;

static void spy_init(void *state, const void *config, uint32_t mss, uint64_t rtt_ns,
	uint64_t now_ns, struct cc_out *out) {
	*out = *(const struct cc_out *)config;
	spied_count = 0;
}

static void spy_on_ack(
	void *state, const void *config, const struct cc_ack *a, struct cc_out *out) {
	NEED(spied_count < 4096);
	spied[spied_count++] = *a;
}

static void spy_on_loss(
	void *state, const void *config, const struct cc_loss *loss, struct cc_out *out) {
}

static uint64_t idle_calls, idle_ns_last;

static void spy_on_idle(
	void *state, const void *config, uint64_t now_ns, uint64_t idle_ns, struct cc_out *out) {
	idle_calls++;
	idle_ns_last = idle_ns;
}

static const struct cc_ops spy = {
	.name = "spy",
	.init = spy_init,
	.on_ack = spy_on_ack,
	.on_loss = spy_on_loss,
	.on_rto = spy_on_loss,
	.rate = true,
	.on_idle = spy_on_idle,
};

static void spy_on(struct link *l) {
	l->groups.group[0].cc = &spy;
	l->groups.group[0].samples = true;
}

TEST(rate_of_a_paced_flow_is_its_rate) {
	struct link *l =
		LINK(.group = "{cc: {fixed: {cwnd: 1000, rate: 11.584Mbit}}, ack_every: 1}");

	spy_on(l);
	link_run(l, 500 * MS);
	ck_assert_uint_ge(spied_count, 400);
	for (uint64_t i = 25; i < spied_count; i++) {
		NEED(spied[i].delivery_bps == 11.584e6);
		uint64_t segs = spied[i].delivered_segs - spied[i].prior_delivered_segs;

		NEED(segs >= 20 && segs <= 21 && spied[i].interval_ns == segs * MS);
		NEED(!spied[i].app_limited && spied[i].rtt_ns == 20 * MS);
		NEED(spied[i].sent_ns + 20 * MS == spied[i].now_ns
			&& spied[i].cwnd_at_send == 1000);
	}
}

TEST(rate_of_a_window_is_window_over_rtt) {
	struct link *l = LINK(.group = "{cc: {fixed: {cwnd: 10}}, ack_every: 10}");

	spy_on(l);
	link_run(l, 500 * MS);
	for (uint64_t i = 1; i < spied_count; i++)
		ck_assert_double_eq(spied[i].delivery_bps, 10 * PAYLOAD * 8 / 0.02);
}

// ACKs that were held back and come together do not show the rate of their coming.
TEST(compressed_acks_do_not_raise_the_rate) {
	struct link *l = HAND(.group = "{cc: {fixed: {cwnd: 1000, rate: 11.584Mbit}}, tlp: no}");

	spy_on(l);
	hand_ack_at(l, 1, 40 * MS);
	for (uint64_t i = 2; i <= 20; i++)
		hand_ack_at(l, i, 60 * MS + i);
	for (uint64_t i = 0; i < spied_count; i++)
		ck_assert_double_le(spied[i].delivery_bps, 11.584e6 * 1.001);
}

// Section 3.4: nothing to send, so the samples until all of that is delivered say nothing.
TEST(samples_at_the_end_of_data_are_app_limited) {
	struct link *l = LINK(.group = "{cc: {fixed: {cwnd: 10}}, ack_every: 1, "
				       "source: {size: {bytes: 22000B}}}");
	uint64_t marked = 0;

	spy_on(l);
	link_finish(l, S);
	for (uint64_t i = 0; i < spied_count; i++) {
		marked += spied[i].app_limited;
		NEED(i >= 10 || !spied[i].app_limited);
	}
	ck_assert_uint_eq(spied_count, 16);
	ck_assert_uint_le(marked, 1); // all of it had left before the limit was met
}

TEST(window_of_the_peer_is_no_application) {
	struct link *l = HAND(.group = "{cc: {fixed: {cwnd: 100}}}", .window = 4 * PAYLOAD);

	ck_assert_uint_eq(l->data_count, 4);
	ck_assert_uint_eq(link_flow(l)->app_limited, 0);
}

// A timeout marks all of a flight, its ACK comes after all: the interval began with the last
// delivery, not with the retransmission. Ten segments in one RTT were reported at no such rate.
TEST(spurious_timeout_does_not_raise_the_rate) {
	struct link *l = HAND(.samples = true,
		.group = "{cc: {fixed: {cwnd: 10}}, tlp: no, rto_min: 180ms}");

	spy_on(l);
	hand_ack_at(l, 10, 40 * MS); // ten more leave
	link_run(l, 300 * MS);
	ck_assert_uint_eq(link_flow(l)->count.timeouts, 1);
	spied_count = 0;
	hand_ack_at(l, 20, 320 * MS);
	ck_assert_uint_eq(spied_count, 1);
	ck_assert_double_le(spied[0].delivery_bps, 10 * PAYLOAD * 8 / 0.25);
}

TEST(window_limited_is_told_from_pacing_limited) {
	struct link *w = LINK(.group = "{cc: {fixed: {cwnd: 10}}}");
	struct link *p;

	spy_on(w);
	link_run(w, 100 * MS);
	ck_assert_uint_gt(spied_count, 0);
	for (uint64_t i = 0; i < spied_count; i++)
		ck_assert(spied[i].cwnd_limited);
	link_close(w);
	p = LINK(.group = "{cc: {fixed: {cwnd: 1000, rate: 10Mbit}}}");
	spy_on(p);
	link_run(p, 100 * MS);
	ck_assert_uint_gt(spied_count, 1);
	for (uint64_t i = 0; i < spied_count; i++)
		ck_assert(!spied[i].cwnd_limited);
}

// cc.h promises it; nobody called it.
TEST(control_hears_of_silence) {
	struct link *l = HAND(.group = "{cc: {fixed: {cwnd: 10}}}");
	struct seg s;

	spy_on(l);
	idle_calls = 0;
	s = hand_ack(l, 10, 40 * MS);
	s.window = 0;
	hand_feed(l, &s, 40 * MS);
	hand_ack_at(l, 10, 500 * MS);
	ck_assert_uint_eq(l->data_count, 20);
	ck_assert_uint_eq(idle_calls, 1);
	ck_assert_uint_eq(idle_ns_last, 480 * MS);
	hand_ack_at(l, 20, 520 * MS);
	ck_assert_uint_eq(idle_calls, 1);
}

TEST(acks_in_any_repair_say_so) {
	struct link *l =
		LINK(.group = "{cc: {fixed: {cwnd: 4}}, tlp: no, ack_every: 1}", .lose = 0xf);
	uint64_t repair = 0;

	spy_on(l);
	link_run(l, 400 * MS);
	ck_assert_uint_eq(link_flow(l)->count.timeouts, 1);
	for (uint64_t i = 0; i < spied_count; i++)
		repair += spied[i].in_loss && !spied[i].in_recovery;
	ck_assert_uint_eq(repair, 3); // the fourth ends it
}

// ACKs that were held back and come together say less than the segments' own spacing: the longer of
// the two intervals counts (section 3.3).
TEST(rate_is_no_larger_than_that_of_sending) {
	struct link *l = HAND(.samples = true,
		.group = "{cc: {fixed: {cwnd: 1000, rate: 11.584Mbit}}, "
			 "tlp: no, rto_min: 60s}");

	spy_on(l);
	hand_ack_at(l, 1, 60 * MS + 1); // the first at last; then one left each millisecond
	hand_ack_at(l, 42, 81 * MS);
	ck_assert_uint_eq(spied_count, 2);
	ck_assert_uint_eq(spied[1].interval_ns, 41 * MS); // not 20: since the first delivery
	ck_assert_double_eq_tol(spied[1].delivery_bps, 11.584e6, 1);
}

// Of what was sent again the original may be acknowledged at once: a segment in a millisecond where
// a round trip takes 20 is no rate.
TEST(rate_over_less_than_a_round_trip_is_none) {
	struct link *l = HAND(.samples = true,
		.group = "{cc: {fixed: {cwnd: 10}}, tlp: no, timestamps: no}");

	spy_on(l);
	hand_sack_at(l, 0, 1, 4, 40 * MS); // 0 is sent again
	hand_sack_at(l, 4, 5, 8, 41 * MS); // for nothing; and 4, since 0 was acknowledged
	SENT(l, 10, 0, 40 * MS);
	ck_assert_uint_eq(l->data[l->data_count - 1].t_ns, 41 * MS);
	hand_ack_at(l, 8, 42 * MS);
	ck_assert_uint_eq(spied_count, 3);
	ck_assert_uint_eq(spied[2].sent_ns, 41 * MS);
	ck_assert_uint_eq(spied[2].acked_segs, 1);
	ck_assert_uint_eq(spied[2].interval_ns, 0);
	ck_assert_double_eq(spied[2].delivery_bps, 0);
}

TEST(control_hears_what_was_in_flight_before_and_after) {
	struct link *l = HAND(.group = "{cc: {fixed: {cwnd: 10}}}");

	spy_on(l);
	hand_ack_at(l, 4, 40 * MS);
	ck_assert_uint_eq(spied[0].prior_inflight_segs, 10);
	ck_assert_uint_eq(spied[0].inflight_segs, 6);
	hand_ack_at(l, 14, 60 * MS); // all that was out when the window held the rest back
	ck_assert(spied[1].cwnd_limited);
}

// From one RTO after the last segment on, and only if all of them are acknowledged.
TEST(silence_is_an_rto_without_a_segment) {
	for (uint64_t early = 0; early < 2; early++) {
		struct link *l = HAND(.group = "{cc: {fixed: {cwnd: 10}}}");
		struct seg s;

		spy_on(l);
		idle_calls = 0;
		s = hand_ack(l, 10, 40 * MS);
		s.window = 0;
		hand_feed(l, &s, 40 * MS);
		hand_ack_at(l, 10, 20 * MS + link_flow(l)->rtt.rto_ns - early);
		ck_assert_uint_eq(l->data_count, 20);
		ck_assert_uint_eq(idle_calls, 1 - early);
		link_close(l);
	}
}

// Responses with pauses of 50 ms, a fourth of a timeout: a control that asks for any pause is
// called before each, the first one's pause since the handshake included, one that does not is not.
TEST(a_control_may_ask_for_any_pause) {
	static struct cc_ops any;

	any = spy;
	any.any_idle = true;
	for (int asks = 0; asks < 2; asks++) {
		struct link *l =
			HAND(.group = "{cc: {fixed: {cwnd: 10}}, source: {request: {"
				      "think: 50ms, times: fixed, sizes: {mean: 2896B}}}}");

		l->groups.group[0].cc = asks ? &any : &spy;
		idle_calls = 0;
		for (uint64_t n = 1; n <= 3; n++) {
			link_run(l, n * 70 * MS - MS); // the response exists
			hand_ack_at(l, 2 * n, n * 70 * MS);
			ck_assert_uint_eq(l->data_count, 2 * n);
			ck_assert_uint_eq(idle_calls, asks ? n : 0);
		}
		link_close(l);
	}
}

// The first after silence has nothing to be compared with: its rate is that of its own round trip.
TEST(silence_is_no_part_of_a_rate) {
	struct link *l = HAND(.samples = true, .group = "{cc: {fixed: {cwnd: 10}}}");
	struct seg s;

	spy_on(l);
	s = hand_ack(l, 10, 40 * MS);
	s.window = 0;
	hand_feed(l, &s, 40 * MS);
	hand_ack_at(l, 10, 500 * MS);
	spied_count = 0;
	hand_ack_at(l, 20, 520 * MS);
	ck_assert_double_eq(spied[0].delivery_bps, 10 * PAYLOAD * 8 / 0.02);
}

// Until the last segment that was out is delivered, what is sent again too.
TEST(repairs_after_the_end_of_data_are_app_limited) {
	struct link *l = HAND(.group = "{cc: {fixed: {cwnd: 20}}, tlp: no, source: {"
				       "size: {bytes: 14480B}}}");

	spy_on(l);
	ck_assert_uint_eq(l->data_count, 11); // with the FIN
	hand_sack_at(l, 0, 1, 4, 40 * MS);
	SENT(l, 11, 0, 40 * MS);
	hand_ack_at(l, 4, 60 * MS);
	ck_assert_uint_eq(spied[1].sent_ns, 40 * MS);
	ck_assert(spied[1].app_limited);
}
