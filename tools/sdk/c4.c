// SPDX-License-Identifier: BSD-3-Clause
// C4, Christian's Congestion Control Code (draft-huitema-ccwg-c4-spec, the text after -04 in
// github.com/private-octopus/c4, July 2026): a rate, and the longest RTT that the path has without
// a queue, which jitter such as Wi-Fi's makes a multiple of the shortest.
//
//	pacing  = alpha rate;  window = alpha rate (max_rtt + min(max_rtt / 4, 15 ms))
//	rate    = the largest delivery rate, until congestion lowers it
//	max_rtt = the longest RTT of an era sent with alpha <= 1, or 1/8 of the way down to it; at
//	          most 250 ms above min_rtt. An era is a round trip.
//
//	INITIAL   alpha 2; the window grows by acked >> 3n after n eras without growth of the rate.
//	          Ends at n = 3; by a delay or marks at n = 2; by losses after 20 packets; then
//	          max_rtt = window / 2 / rate
//	RECOVERY  15/16, 7/8 to drain what INITIAL or PUSHING queued; an era. If the cycle has not
//	          reached the rate, that becomes the mean of both; after congestion twice in a row
//	          what was reached
//	CRUISING  1; two eras
//	PROBING   17/16, or 33/32 once there were marks; an era, then RECOVERY, and PUSHING if
//	          the rate has grown without congestion
//	PUSHING   5/4; while an era brings 19/16 of the rate. After three, INITIAL
//
// Congestion, with sensitivity s from 0 (50 kB/s) over 0.92 (1 MB/s) to 1 (10 MB/s):
//	delay     RTT > max_rtt + d, d = min(25 ms, (1/16 + 3/16 (1 - s)) max_rtt)
//	loss      average of the last packets, gain 1/16, > 0.02 + (1 - s) / 2; beta 1/4
//	marks     average of ACKs, gain 1/16 (from 1/2 on at once), > t = 3/32 (2 - s)
//	beta      min(1/4, how far above d or t, in parts of it); rate *= 1 - beta in CRUISING
//
// What it takes from the interface: rate samples, RTTs, losses and marks of each ACK.
//
// Where it differs from the text, as picoquic's c4.c does
//   - A delay is congestion only after an era with alpha above 1: jitter alone is none.
//   - The rate has grown in INITIAL by a quarter of what alpha allows, or n counts; an era that the
//     application limits does not count.
//   - INITIAL begins again for jitter (min_rtt < 2/5 max_rtt) once, where max_rtt is above 50 ms
//     and the rate below 1 MB/s. A loss lowers max_rtt by beta, too.
// And from both: no quantum, which is a bucket's depth. A timeout, which it ignores, is TCP's.
#include <weir/cc.h>

#define MS 1000000.0
#define BYTES 8.0 // in bits
#define MAX_RTT_LEAST (1 * MS)
#define JITTER_MOST (250 * MS)
#define MARGIN_MOST (15 * MS)
#define DELAY_MOST (25 * MS)
#define BETA 0.25
#define PACING_INITIAL 1048576.0
#define INITIAL_SEGS 10
#define PACKETS_BEFORE_LOSS 20
#define CRUISING_ERAS 2
#define PUSHING_ERAS 3
#define PUSHED (19 / 16.0)

static const struct param params[] = {PARAM_END};

#define MODES(V)                                                                                   \
	V(INITIAL, "initial")                                                                      \
	V(RECOVERY, "recovery") V(CRUISING, "cruising") V(PROBING, "probing") V(PUSHING, "pushing")
enum mode { MODES(CC_MODE_CONSTANT) };
enum cause { DELAY, LOSS, MARKS };

struct state {
	double mss_bits, rate_bps, recent_bps, old_bps; // old: when the last growth was looked for
	double max_rtt, min_rtt, era_max, era_min, excess; // ns
	double alpha, alpha_before, probed; // probed: alpha of what growth is expected from
	double initial_segs, loss, marks;
	uint64_t era_end; // delivered segments: the era ends with what is sent from then on
	uint32_t mode, packets, eras, flat; // flat: eras without growth; eras: of the mode
	uint32_t congestions; // cycles in a row
	bool congested, limited, marked, restarted;
};
static_assert(sizeof(struct state) <= CC_STATE_MAX_BYTES, "state too large");

static double least(double a, double b) {
	return a < b ? a : b;
}

static double most(double a, double b) {
	return a > b ? a : b;
}

static double given_window(const void *config) {
	(void)config;
	return INITIAL_SEGS;
}

static double sensitivity(const struct state *s) {
	double rate = s->rate_bps / BYTES;

	if (rate < 1e6)
		return 0.92 * most(0, (rate - 5e4) / (1e6 - 5e4));
	return 0.92 + 0.08 * least(1, (rate - 1e6) / 9e6);
}

static double delay_threshold(const struct state *s) {
	return least(DELAY_MOST, (1 / 16.0 + 3 / 16.0 * (1 - sensitivity(s))) * s->max_rtt);
}

static void answer(struct state *s, struct cc_out *out) {
	double pacing = s->alpha * s->rate_bps, segs = pacing / s->mss_bits / 1e9;

	if (s->mode == INITIAL) {
		s->initial_segs = most(s->initial_segs, segs * s->max_rtt);
		out->cwnd_segs = s->initial_segs;
		out->pacing_bps = s->rate_bps > 0 ? most(pacing, PACING_INITIAL) : 0;
		return;
	}
	out->cwnd_segs = segs * (s->max_rtt + least(s->max_rtt / 4, MARGIN_MOST));
	if (s->alpha > 1) // by one segment more than in CRUISING at least
		out->cwnd_segs += most(0, 1 - (1 - 1 / s->alpha) * segs * s->max_rtt);
	out->cwnd_segs = most(2, out->cwnd_segs);
	out->pacing_bps = most(1, pacing);
}

static void enter(struct state *s, enum mode mode, double alpha, uint64_t delivered) {
	s->alpha_before = s->alpha;
	s->mode = mode;
	s->alpha = alpha;
	s->era_end = delivered;
	s->era_max = s->era_min = 0;
}

static void next_era(struct state *s, uint64_t delivered) {
	s->eras++;
	enter(s, s->mode, s->alpha, delivered);
}

static void watch_growth(struct state *s) {
	s->congested = false;
	s->limited = true;
	s->old_bps = s->rate_bps;
	s->probed = s->alpha;
}

static void enter_initial(struct state *s, double segs, uint64_t delivered) {
	enter(s, INITIAL, 2, delivered);
	s->initial_segs = segs;
	s->packets = s->flat = 0;
	s->marks = 0;
	watch_growth(s);
}

// `drains`: what is in flight is more than the path holds.
static void enter_recovery(struct state *s, bool drains, uint64_t delivered) {
	enter(s, RECOVERY, drains ? 7 / 8.0 : 15 / 16.0, delivered);
}

static bool overfull(const struct state *s, const struct cc_ack *ack) {
	return ack->prior_inflight_segs * s->mss_bits > s->rate_bps * s->min_rtt / 1e9;
}

static void exit_initial(struct state *s, const struct cc_ack *ack) {
	if (s->rate_bps == 0)
		return;
	s->max_rtt = most(MAX_RTT_LEAST, s->initial_segs / 2 * s->mss_bits * 1e9 / s->rate_bps);
	s->flat = 0;
	watch_growth(s);
	enter_recovery(s, overfull(s, ack), ack->delivered_segs);
}

static void init(void *state, const void *config, uint32_t mss_bytes, uint64_t rtt_ns,
	uint64_t now_ns, struct cc_out *out) {
	struct state *s = state;

	s->mss_bits = mss_bytes * BYTES;
	s->max_rtt = s->min_rtt = rtt_ns > 0 ? most(MAX_RTT_LEAST, (double)rtt_ns) : 0;
	enter_initial(s, INITIAL_SEGS, 0);
	answer(s, out);
	(void)config, (void)now_ns;
}

// Whether the rate has grown since watch_growth: where more was sent, a quarter as much.
static bool grown(const struct state *s) {
	if (s->probed > 17 / 16.0)
		return s->rate_bps >= s->old_bps * (3 + s->probed) / 4;
	return s->probed > 1 && s->rate_bps > s->old_bps && !s->congested;
}

// The RTTs of an era are of what was sent in the one before.
static void learn_rtts(struct state *s) {
	double longest;

	if (s->era_min == 0 || s->alpha_before > 1)
		return;
	s->min_rtt = s->era_min < s->min_rtt ? s->era_min : (7 * s->min_rtt + s->era_min) / 8;
	longest = least(s->era_max, s->min_rtt + JITTER_MOST);
	s->max_rtt = longest > s->max_rtt ? longest : (7 * s->max_rtt + longest) / 8;
	s->max_rtt = most(MAX_RTT_LEAST, s->max_rtt);
}

static void exit_recovery(struct state *s, uint64_t delivered) {
	bool pushes = grown(s);

	if (pushes || !s->congested)
		s->congestions = 0;
	else if (++s->congestions > 1 && s->recent_bps > 0)
		s->rate_bps = least(s->rate_bps, s->recent_bps);
	if (!pushes && !s->congested && !s->limited && s->recent_bps > 0)
		s->rate_bps = (s->rate_bps + least(s->rate_bps, s->recent_bps)) / 2;
	s->recent_bps = s->excess = s->loss = s->marks = 0;
	enter(s, pushes ? PUSHING : CRUISING, pushes ? 5 / 4.0 : 1, delivered);
	s->eras = 0;
	watch_growth(s);
}

static void end_era(struct state *s, const struct cc_ack *ack) {
	uint64_t delivered = ack->delivered_segs;

	learn_rtts(s);
	if (!s->restarted && s->max_rtt > 50 * MS && s->rate_bps < 8e6
		&& s->min_rtt < s->max_rtt * 2 / 5) {
		s->restarted = true;
		enter_initial(s, s->rate_bps * s->max_rtt / 1e9 / s->mss_bits, delivered);
	} else if (s->mode == RECOVERY) {
		exit_recovery(s, delivered);
	} else if (s->mode == CRUISING) {
		next_era(s, delivered);
		if (s->eras >= CRUISING_ERAS && !ack->app_limited) {
			enter(s, PROBING, s->marked ? 33 / 32.0 : 17 / 16.0, delivered);
			s->probed = s->alpha;
		}
	} else if (s->mode == PROBING) {
		enter_recovery(s, false, delivered);
	} else if (s->eras > 0 && s->rate_bps < PUSHED * s->old_bps) {
		enter_recovery(s, overfull(s, ack), delivered);
	} else if (s->eras >= PUSHING_ERAS) {
		enter_initial(s, s->rate_bps * s->max_rtt / 1e9 / s->mss_bits, delivered);
	} else {
		next_era(s, delivered);
		watch_growth(s);
	}
}

static void end_initial_era(struct state *s, const struct cc_ack *ack) {
	if (grown(s))
		s->flat = 0;
	else if (!s->limited && s->rate_bps > 0)
		s->flat++;
	next_era(s, ack->delivered_segs);
	if (s->flat >= 3)
		exit_initial(s, ack);
	else
		watch_growth(s);
}

static void congestion(struct state *s, enum cause cause, double above, uint64_t delivered) {
	double beta = least(BETA, above);

	s->congested = true;
	if (s->mode == RECOVERY) {
		if (s->alpha == 15 / 16.0) // the queue still grows
			enter_recovery(s, true, delivered);
		return;
	}
	if (s->mode == CRUISING) {
		s->rate_bps *= 1 - beta;
		if (cause == LOSS)
			s->max_rtt = most(MAX_RTT_LEAST, s->max_rtt * (1 - beta));
	}
	enter_recovery(s, false, delivered);
}

static void measure(struct state *s, const struct cc_ack *ack) {
	double rtt = (double)ack->rtt_ns;
	double sent = (double)(ack->delivered_segs - ack->prior_delivered_segs) * s->mss_bits;

	if (ack->rtt_ns > 0) {
		s->max_rtt = s->max_rtt > 0 ? s->max_rtt : most(MAX_RTT_LEAST, rtt);
		s->min_rtt = s->min_rtt > 0 ? least(s->min_rtt, rtt) : rtt;
		s->era_max = most(s->era_max, rtt);
		s->era_min = s->era_min > 0 ? least(s->era_min, rtt) : rtt;
		s->excess = most(0, rtt - s->max_rtt - delay_threshold(s));
	}
	if (ack->delivery_bps > 0) {
		s->recent_bps = most(s->recent_bps, ack->delivery_bps);
		if (sent > s->rate_bps * s->min_rtt / 1e9 || ack->delivery_bps > s->rate_bps)
			s->limited = false;
		if (ack->delivery_bps > s->rate_bps && !(s->mode == RECOVERY && s->congested))
			s->rate_bps = ack->delivery_bps;
	}
	for (uint32_t i = 0; i < ack->acked_segs && i < 256; i++)
		s->loss *= 15 / 16.0;
	for (uint32_t i = 0; i < ack->lost_segs && i < 256 && s->mode != RECOVERY; i++)
		s->loss = (1 + 15 * s->loss) / 16; // in RECOVERY it had been sent before
	if (ack->acked_segs > 0) {
		double part = (double)ack->ce_segs / ack->acked_segs;

		s->marks = part >= 0.5 ? part : s->marks + (part - s->marks) / 16;
		s->marked |= ack->ce_segs > 0;
	}
}

static void on_ack(void *state, const void *config, const struct cc_ack *ack, struct cc_out *out) {
	struct state *s = state;
	bool era = ack->acked_segs > 0 && ack->prior_delivered_segs >= s->era_end, lossy;
	double threshold;

	measure(s, ack);
	s->packets += ack->acked_segs + ack->lost_segs;
	if (s->mode == INITIAL) {
		s->initial_segs += (double)ack->acked_segs / (double)(1 << (3 * s->flat));
		if (era)
			end_initial_era(s, ack);
	} else if (era) {
		end_era(s, ack);
	}
	lossy = ack->lost_segs > 0 && s->loss > 0.02 + (1 - sensitivity(s)) / 2;
	threshold = 3 / 32.0 * (2 - sensitivity(s));
	if (s->mode == INITIAL) {
		bool fills = s->flat > 1 && s->rate_bps <= s->old_bps;

		if ((fills && (s->excess > 0 || s->marks > threshold))
			|| (lossy && s->packets > PACKETS_BEFORE_LOSS))
			exit_initial(s, ack);
	} else if (lossy) {
		congestion(s, LOSS, BETA, ack->delivered_segs);
	} else if (s->marks > threshold) {
		congestion(s, MARKS, s->marks / threshold - 1, ack->delivered_segs);
	} else if (s->excess > 0 && s->alpha_before > 1) {
		congestion(s, DELAY, s->excess / delay_threshold(s), ack->delivered_segs);
	}
	answer(s, out);
	(void)config;
}

// Losses are part of on_ack. Of marks the classic echo says only that there were some.
static void on_loss(
	void *state, const void *config, const struct cc_loss *loss, struct cc_out *out) {
	struct state *s = state;

	if (loss->ecn && loss->classic_ecn && s->mode != INITIAL) {
		s->marked = true;
		congestion(s, MARKS, BETA, s->era_end);
		answer(s, out);
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
