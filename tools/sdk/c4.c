// SPDX-License-Identifier: BSD-3-Clause
// C4, Christian's Congestion Control Code (draft-huitema-ccwg-c4-spec and, where that says less,
// picoquic's c4.c, both of July 2026): a rate, and the longest RTT that the path has without a
// queue, which jitter such as Wi-Fi's makes a multiple of the shortest.
//
//	pacing  = alpha rate;  window = alpha rate (max_rtt + min(max_rtt / 4, 15 ms))
//	rate    = the largest delivery rate, until congestion lowers it
//	max_rtt = the longest RTT of an era sent with alpha <= 1, or 1/8 of the way down to it; at
//	          most 250 ms above min_rtt. An era is a round trip.
//
//	INITIAL   alpha 2; the window grows by acked >> 3n after n eras without growth of the rate.
//	          It is half of peak RTT at least, pacing the mean of 2 rate and peak: the largest
//	          rate between two ACKs. Ends at n = 3; by a delay at n = 2; by marks before the era
//	          has brought growth; by losses after 20 packets; max_rtt = window / 2 / rate
//	RECOVERY  15/16, 7/8 from congestion on, and an era more. Then growth raises the level, if
//	          there were no marks: to 2 or 3 for PUSHING, to 4 for INITIAL. Without it the level
//	          is 1, 0 after marks, unless the application limits. After congestion twice in a
//	          row the rate is what was reached
//	CRUISING  1; two eras, one at level 0
//	PROBING   17/16, or 33/32 at level 0; an era
//	PUSHING   1256/1024; until an era does not bring 3/4 of that
//
// Congestion, with sensitivity s from 0 (50 kB/s) over 0.94 (1 MB/s) to 1 (10 MB/s):
//	delay     RTT > max_rtt + min(25 ms, (1/16 + 3/16 (1 - s)) max_rtt), with alpha > 1 in this
//	          era or the one before: jitter alone is none
//	loss      average of the packets up to a lost one, gain 1/16, > 0.02 + (1 - s) / 2
//	marks     average of what an ACK of picoquic's has: a quarter of a window or RTT, at most
//	          64 packets or 10 ms; gain 1/16 (from 1/2 on at once), > t = 3/32 (2 - s)
// In CRUISING, where no delay counts, rate *= 1 - beta: (1 + s) / 8 after a loss, which lowers
// max_rtt, too; after marks what they are above t, in parts of it, at most 1/4.
//
// INITIAL begins again for jitter (min_rtt < 2/5 max_rtt) once, where max_rtt is above 50 ms and
// the rate below 1 MB/s.
// Where it differs from picoquic's
//   - No quantum: that one's packets leave in trains of 4 ms, by which INITIAL finds a fast link's
//     rate early. So 20 MB at 200 Mbit/s take 12 % longer than published. With trains of 45
//     segments it is 1.5 %, but then 40 % beside our BBR, in place of 5 %.
//   - Below 16 segments, where a probe is no segment more, a rate that nothing has limited becomes
//     the mean with what was reached.
//   - That one heeds no marks in INITIAL. The full queue raises the probability of RFC 9332's
//     DualPI2, for which it pays seconds later: 26 % of 20 Mbit/s were used, and 96 % are.
//   - No faster pacing below 1 ms of RTT, no remembered window; a timeout is TCP's.
#include <weir/cc.h>

#define MS 1000000.0
#define BYTES 8.0 // in bits
#define MAX_RTT_LEAST (1 * MS)
#define INITIAL_SEGS 10
#define PUSHING_ALPHA (1256 / 1024.0)
#define GROWN (1 / 4.0) // of what was sent more
#define GROWN_FAST (3 / 4.0)
#define LEVEL 1 // that of PROBING with 17/16; 0: with 33/32; above: PUSHING
#define LEVEL_MOST 3

static const struct param params[] = {PARAM_END};

#define MODES(V)                                                                                   \
	V(INITIAL, "initial")                                                                      \
	V(RECOVERY, "recovery") V(CRUISING, "cruising") V(PROBING, "probing") V(PUSHING, "pushing")
enum mode { MODES(CC_MODE_CONSTANT) };

struct state {
	double mss_bits, rate_bps, recent_bps, old_bps; // old: when the last growth was looked for
	double peak_bps; // between two ACKs
	double max_rtt, min_rtt, era_max, era_min; // ns
	double alpha, alpha_before, probed; // probed: alpha of what growth is expected from
	double initial_segs, window_segs, loss, marks;
	uint64_t delivered, era_end; // segments: the era ends with what is sent from then on
	uint64_t peak_delivered, peak_ns, peak_sent_ns; // when the last peak was looked for
	uint32_t packets, flat; // in INITIAL; flat: eras without growth
	uint64_t frame_ns; // since when, and for how many, picoquic's receiver would owe an ACK
	uint32_t since_loss, frame_segs, ce_segs, seen_segs; // ce, seen: since the last average
	uint32_t congestions; // cycles in a row
	uint8_t mode, level, cruises; // cruises: eras of CRUISING before PROBING
	bool congested, limited, restarted;
	bool marked; // in the present RECOVERY or before it
};
static_assert(sizeof(struct state) <= CC_STATE_MAX_BYTES, "state too large");

static double least(double a, double b) {
	return a < b ? a : b;
}

static double most(double a, double b) {
	return a > b ? a : b;
}

static double given_window(const void *config) {
	return (void)config, INITIAL_SEGS;
}

static double sensitivity(const struct state *s) {
	double rate = s->rate_bps / BYTES;

	if (rate < 1e6)
		return 0.94 * most(0, (rate - 5e4) / (1e6 - 5e4));
	return 0.94 + 0.06 * least(1, (rate - 1e6) / 9e6);
}

static double delay_threshold(const struct state *s) {
	return least(25 * MS, (1 / 16.0 + 3 / 16.0 * (1 - sensitivity(s))) * s->max_rtt);
}

static void answer(struct state *s, double srtt, struct cc_out *out) {
	double pacing = s->alpha * s->rate_bps, segs = pacing / s->mss_bits / 1e9, half;

	if (s->mode == INITIAL) {
		s->initial_segs = most(s->initial_segs, segs * s->max_rtt);
		pacing = pacing > 0 ? most(pacing, 1048576) : 0;
		if (pacing > 0 && s->peak_bps > pacing) {
			pacing = (pacing + s->peak_bps) / 2;
			half = s->peak_bps / s->mss_bits * srtt / 1e9 / 2;
			s->initial_segs = most(s->initial_segs, half);
		}
		s->window_segs = s->initial_segs;
	} else {
		s->window_segs = segs * (s->max_rtt + least(s->max_rtt / 4, 15 * MS));
		if (s->alpha > 1) // by one segment more than in CRUISING at least
			s->window_segs += most(0, 1 - (1 - 1 / s->alpha) * segs * s->max_rtt);
		s->window_segs = most(2, s->window_segs);
		pacing = most(1, pacing);
	}
	out->cwnd_segs = s->window_segs;
	out->pacing_bps = pacing;
}

static void average_marks(struct state *s) {
	double part = s->seen_segs > 0 ? (double)s->ce_segs / s->seen_segs : s->marks;

	s->marks = part >= 0.5 && part > s->marks ? part : s->marks + (part - s->marks) / 16;
	s->ce_segs = s->seen_segs = 0;
}

static void next_era(struct state *s) {
	s->era_end = s->delivered;
	s->era_max = s->era_min = 0;
	s->alpha_before = s->alpha;
	average_marks(s);
}

static void watch_growth(struct state *s) {
	s->congested = false;
	s->limited = true;
	s->old_bps = s->rate_bps;
	s->probed = s->alpha;
}

static void enter_initial(struct state *s, double segs) {
	s->mode = INITIAL;
	s->level = LEVEL;
	s->initial_segs = segs;
	s->alpha = 2;
	s->packets = s->flat = 0;
	next_era(s);
	s->marks = 0;
	watch_growth(s);
}

static void enter_recovery(struct state *s) {
	if (s->mode == INITIAL)
		watch_growth(s);
	s->mode = RECOVERY;
	s->marked = false;
	next_era(s);
	s->alpha = 15 / 16.0;
}

static void exit_initial(struct state *s) {
	if (s->rate_bps == 0)
		return;
	s->max_rtt = most(MAX_RTT_LEAST, s->initial_segs / 2 * s->mss_bits * 1e9 / s->rate_bps);
	enter_recovery(s);
}

static void enter(struct state *s, enum mode mode, double alpha) {
	s->mode = (uint8_t)mode;
	s->alpha = s->probed = alpha;
	next_era(s);
}

static void init(void *state, const void *config, uint32_t mss_bytes, uint64_t rtt_ns,
	uint64_t now_ns, struct cc_out *out) {
	struct state *s = state;

	s->mss_bits = mss_bytes * BYTES;
	s->max_rtt = s->min_rtt = rtt_ns > 0 ? most(MAX_RTT_LEAST, (double)rtt_ns) : 0;
	enter_initial(s, INITIAL_SEGS);
	answer(s, 0, out);
	(void)config, (void)now_ns;
}

// Whether the rate has grown since watch_growth by so much of what was sent more.
static bool grown(const struct state *s, double part) {
	if (s->probed <= 17 / 16.0)
		return s->rate_bps > s->old_bps && !s->congested;
	return s->rate_bps > 0 && s->rate_bps >= s->old_bps * (1 + part * (s->probed - 1));
}

static void learn_rtts(struct state *s) {
	double longest;

	if (s->era_min == 0 || s->alpha_before > 1)
		return;
	s->min_rtt = s->era_min < s->min_rtt ? s->era_min : (7 * s->min_rtt + s->era_min) / 8;
	longest = least(s->era_max, s->min_rtt + 250 * MS);
	s->max_rtt = longest > s->max_rtt ? longest : (7 * s->max_rtt + longest) / 8;
	s->max_rtt = most(MAX_RTT_LEAST, s->max_rtt);
}

static void exit_recovery(struct state *s) {
	bool grows = grown(s, GROWN);
	double reached = s->recent_bps > 0 ? least(s->rate_bps, s->recent_bps) : s->rate_bps;

	if (grows && !s->marked)
		s->level++;
	else if (!grows && !s->limited)
		s->level = s->marked ? LEVEL - 1 : LEVEL;
	s->congestions = s->congested && !grows ? s->congestions + 1 : 0;
	if (s->congestions > 1)
		s->rate_bps = reached;
	else if (!s->congested && !grows && !s->limited && s->window_segs < 16)
		s->rate_bps = (s->rate_bps + reached) / 2;
	s->recent_bps = s->loss = s->marks = 0;
	watch_growth(s);
	if (s->level > LEVEL_MOST) {
		enter_initial(s, s->window_segs);
	} else if (s->level > LEVEL) {
		enter(s, PUSHING, PUSHING_ALPHA);
	} else {
		s->mode = CRUISING;
		if (s->cruises == 0)
			s->cruises = s->level < LEVEL ? 1 : 2;
		next_era(s);
		s->alpha = 1;
	}
}

static void end_era(struct state *s, bool app_limited) {
	learn_rtts(s);
	if (!s->restarted && s->max_rtt > 50 * MS && s->rate_bps < 8e6
		&& s->min_rtt < s->max_rtt * 2 / 5) {
		s->restarted = true;
		enter_initial(s, s->window_segs);
	} else if (s->mode == RECOVERY) {
		exit_recovery(s);
	} else if (s->mode == CRUISING) {
		s->cruises -= s->cruises > 0;
		next_era(s);
		if (s->cruises == 0 && !app_limited)
			enter(s, PROBING, s->level < LEVEL ? 33 / 32.0 : 17 / 16.0);
	} else {
		enter_recovery(s);
	}
}

static void end_initial_era(struct state *s) {
	if (grown(s, GROWN))
		s->flat = 0;
	else if (!s->limited && s->rate_bps > 0)
		s->flat++;
	next_era(s);
	if (s->flat >= 3)
		exit_initial(s);
	else
		watch_growth(s);
}

// `beta`: what a rate that has been reached before is lowered by.
static void congestion(struct state *s, double beta, bool loss) {
	s->congested = true;
	if (s->mode == RECOVERY) {
		if (s->alpha == 15 / 16.0) { // the queue still grows
			s->alpha = 7 / 8.0;
			s->era_end = s->delivered;
		}
		return;
	}
	if (s->mode == CRUISING) {
		s->rate_bps *= 1 - beta;
		if (loss)
			s->max_rtt = most(MAX_RTT_LEAST, s->max_rtt * (1 - beta));
	}
	enter_recovery(s);
}

static void measure_rtt(struct state *s, const struct cc_ack *ack) {
	double rtt = (double)ack->rtt_ns;

	if (rtt == 0)
		return;
	s->max_rtt = s->max_rtt > 0 ? s->max_rtt : most(MAX_RTT_LEAST, rtt);
	s->min_rtt = s->min_rtt > 0 ? least(s->min_rtt, rtt) : rtt;
	s->era_max = most(s->era_max, rtt);
	s->era_min = s->era_min > 0 ? least(s->era_min, rtt) : rtt;
	if (rtt <= s->max_rtt + delay_threshold(s))
		return;
	if (s->mode == INITIAL && s->flat > 1 && s->rate_bps <= s->old_bps)
		exit_initial(s);
	else if (s->mode != INITIAL && s->alpha_before > 1)
		congestion(s, 0, false);
}

static void measure_losses(struct state *s, const struct cc_ack *ack) {
	s->since_loss += ack->acked_segs;
	if (s->mode == RECOVERY) // what it loses had been sent before
		return;
	for (uint32_t i = 0; i < ack->lost_segs && i < 256; i++) {
		for (uint32_t n = 0; n <= s->since_loss && n < 32; n++)
			s->loss *= 15 / 16.0;
		s->loss += (1 - s->loss) / 16;
		s->since_loss = 0;
	}
	if (ack->lost_segs == 0 || s->loss <= 0.02 + (1 - sensitivity(s)) / 2)
		return;
	if (s->mode != INITIAL)
		congestion(s, (1 + sensitivity(s)) / 8, true);
	else if (s->packets > 20)
		exit_initial(s);
}

static void measure_peak(struct state *s, const struct cc_ack *ack) {
	uint64_t interval = ack->now_ns - s->peak_ns, sent = ack->sent_ns - s->peak_sent_ns;
	double bits = (double)(ack->delivered_segs - s->peak_delivered) * s->mss_bits;

	if (ack->acked_segs == 0 || ack->sent_ns < s->peak_sent_ns || interval <= MS)
		return;
	if (s->peak_ns > 0)
		s->peak_bps =
			most(s->peak_bps, bits * 1e9 / (double)(interval > sent ? interval : sent));
	s->peak_delivered = ack->delivered_segs;
	s->peak_ns = ack->now_ns, s->peak_sent_ns = ack->sent_ns;
}

static void measure_rate(struct state *s, const struct cc_ack *ack) {
	double sent = (double)(ack->delivered_segs - ack->prior_delivered_segs) * s->mss_bits;

	if (ack->delivery_bps == 0)
		return;
	s->recent_bps = most(s->recent_bps, ack->delivery_bps);
	if (sent > s->rate_bps * s->min_rtt / 1e9)
		s->limited = false;
	if (ack->delivery_bps > s->rate_bps && !(s->mode == RECOVERY && s->congested)) {
		s->limited = false;
		s->rate_bps = ack->delivery_bps;
	}
}

static void measure_marks(struct state *s, const struct cc_ack *ack) {
	double t = 3 / 32.0 * (2 - sensitivity(s)), gap = most(2, least(64, s->window_segs / 4)),
	       delay = most(MS, least(10 * MS, s->min_rtt / 4));

	s->ce_segs += ack->ce_segs;
	s->seen_segs += ack->acked_segs;
	s->frame_ns = s->frame_segs == 0 ? ack->now_ns : s->frame_ns;
	s->frame_segs += ack->acked_segs;
	if (s->frame_segs < gap && (double)(ack->now_ns - s->frame_ns) < delay)
		return;
	s->frame_segs = 0;
	if (s->ce_segs == 0)
		return;
	average_marks(s);
	if (s->marks > t && s->mode != INITIAL) {
		congestion(s, least(1 / 4.0, s->marks / t - 1), false);
		s->marked = true;
	} else if (s->marks > t && s->rate_bps <= s->old_bps) {
		exit_initial(s);
	}
}

static void on_ack(void *state, const void *config, const struct cc_ack *ack, struct cc_out *out) {
	struct state *s = state;

	s->delivered = ack->delivered_segs;
	s->packets += ack->acked_segs + ack->lost_segs;
	measure_rtt(s, ack);
	measure_peak(s, ack);
	measure_losses(s, ack);
	measure_rate(s, ack);
	if (s->mode == INITIAL)
		s->initial_segs += (double)ack->acked_segs / (double)(1 << (3 * s->flat));
	if (s->mode == PUSHING && grown(s, GROWN_FAST)) {
		watch_growth(s);
		next_era(s);
	} else if (ack->acked_segs > 0 && ack->prior_delivered_segs >= s->era_end) {
		s->mode == INITIAL ? end_initial_era(s) : end_era(s, ack->app_limited);
	}
	measure_marks(s, ack);
	answer(s, (double)ack->srtt_ns, out);
	(void)config;
}

// Losses are part of on_ack. Of marks the classic echo says only that there were some.
static void on_loss(
	void *state, const void *config, const struct cc_loss *loss, struct cc_out *out) {
	struct state *s = state;

	if (loss->ecn && loss->classic_ecn && s->mode != INITIAL) {
		congestion(s, 1 / 4.0, false);
		s->marked = true;
		answer(s, 0, out);
	}
	(void)config;
}

static void on_rto(
	void *state, const void *config, const struct cc_loss *loss, struct cc_out *out) {
	(void)state, (void)config, (void)loss, (void)out;
}

static void observe(const void *state, const void *config, float values[CC_OBSERVED]) {
	const struct state *s = state;

	values[0] = (float)s->rate_bps;
	values[1] = (float)(s->max_rtt / MS);
	values[2] = (float)(s->min_rtt / MS);
	values[3] = (float)s->alpha;
	(void)config;
}

static uint8_t mode(const void *state, const void *config) {
	(void)config;
	return (uint8_t)((const struct state *)state)->mode;
}

static const struct cc_ops ops = {
	.name = "c4",
	.summary = "C4: a rate and the longest RTT without a queue, for media on Wi-Fi",
	.reference = "draft-huitema-ccwg-c4-spec (C4)",
	.params = params,
	.state_size = sizeof(struct state),
	.rate = true,
	.ecn = true,
	.answers_in_on_ack = true,
	.codepoint = CC_ECN_ECT1,
	.feedback = CC_FEEDBACK_ACCECN,
	.ack_each = true,
	.samples = true,
	.observed = {"rate_bps", "max_rtt_ms", "min_rtt_ms", "alpha"},
	.modes = {MODES(CC_MODE_TEXT)},
	.given_window = given_window,
	.init = init,
	.on_ack = on_ack,
	.on_loss = on_loss,
	.on_rto = on_rto,
	.observe = observe,
	.mode = mode,
};

CC_PLUGIN(ops);
