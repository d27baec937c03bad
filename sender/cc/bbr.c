// SPDX-License-Identifier: BSD-3-Clause
// BBR version 1 (Cardwell et al., "BBR: Congestion-Based Congestion Control", ACM Queue 2016;
// draft-cardwell-iccrg-bbr-congestion-control-00; draft-cheng-iccrg-delivery-rate-estimation),
// with the constants and the additions of Linux.
//
//	BtlBw   largest delivery rate of the last 10 rounds; a sample limited by the application
//	        may only raise it
//	RTprop  smallest RTT of the last 10 s, the handshake's included
//	round   ends with the ACK of the first segment sent after the last round's end
//	pacing  0.99 pacing_gain BtlBw
//	cwnd    towards cwnd_gain BtlBw RTprop + extra_acked + 3 quanta, by the acknowledged
//	        segments
//
// (state, pacing_gain, cwnd_gain; gains in 256ths as Linux has them)
//
//	STARTUP    739/256 = 2.89, 2.89   until BtlBw grew by less than 1/4 in 3 rounds (full pipe)
//	DRAIN       88/256 = 0.34, 2.89   until at most BtlBw RTprop is in flight
//	PROBE_BW   1.25, 0.75, 1 x 6; 2   a phase each RTprop; that of 1.25 goes on until 1.25 BtlBw
//	                                  RTprop is in flight or something is lost, that of 0.75
//	                                  ends once BtlBw RTprop is. Starts in any but 0.75.
//	                                  In flight is what will be when the next segments leave.
//	PROBE_RTT  1, 1                   when RTprop is 10 s old: at most 4 segments in flight for
//	                                  200 ms and a round; then PROBE_BW, or STARTUP if the
//	                                  pipe was never full
//
// extra_acked, the largest excess of acknowledged segments over BtlBw x time in 5 to 10 rounds, at
// most 100 ms of BtlBw, keeps the pipe full while ACKs are held back. A quantum is 1/1024 s of
// pacing, 1 (below 1.2 Mbit/s) or 2 segments to 64 KB; the window is rounded up to even, 2 more in
// 1.25.
//
// Whenever the application had left nothing in flight, it is paced with a gain of 1, and the next
// ACK does not begin PROBE_RTT: the pause has emptied the queue.
//
// Loss: in the first round of recovery the window is the segments in flight plus those acknowledged
// (packet conservation); at the end of recovery the earlier window is restored. A timeout
// leaves 1 segment and restarts the search for a full pipe. ECN echoes are ignored.
//
// Policers (`policer`) are detected by intervals of 4 to 16 rounds that begin and end with a loss
// and lost at least 50/256 of the segments they delivered. If two in a row have rates within 1/8,
// or 4 kbit/s, the mean of these is BtlBw for the next 48 rounds, without probing.
//
// Where we differ from Linux, and why
//   - Rates are real numbers, windows too until they are rounded as above. Time is nanoseconds.
//   - No generator of its own: the first phase of PROBE_BW is drawn by cc_draw.h.
//   - Samples of segments sent in PROBE_RTT count as application-limited here; in Linux the
//     transport marks them so.
//   - In Linux a delayed ACK does not renew an expired RTprop; our transport does not mark delayed
//     ACKs.
//   - A timeout neither starts nor ends a policer's interval; the losses it declares do not count.
#include "common/base/f64.h"
#include "common/base/minmax.h"
#include "sender/cc/cc.h"
#include "sender/cc/cc_draw.h"
#include "sender/cc/extra_acked.h"

struct config {
	double initial_segs;
	double cwnd_gain;
	double bw_rounds;
	double margin;
	double min_rtt_window_ns;
	double probe_rtt_ns;
	double extra_gain;
	bool policer;
};

#define F64(field, low, high) PARAM_F64(struct config, field), .min = (low), .max = (high)

static const struct param params[] = {
	{"initial", "10", "initial window in segments (RFC 6928)", UNIT_NONE,
		F64(initial_segs, 4, 1000)},
	{"cwnd_gain", "2", "window in PROBE_BW over BtlBw RTprop", UNIT_NONE,
		F64(cwnd_gain, 1, 10)},
	{"bw_rounds", "10", "window of BtlBw in round trips", UNIT_NONE, F64(bw_rounds, 1, 1000)},
	{"pacing_margin", "1%", "pace this much below the rate, so that no queue stays", UNIT_RATIO,
		F64(margin, 0, 0.5)},
	{"min_rtt_window", "10s", "window of RTprop and time between two PROBE_RTT", UNIT_TIME_NS,
		F64(min_rtt_window_ns, 1e8, 1e12)},
	{"probe_rtt", "200ms", "least time at 4 segments", UNIT_TIME_NS,
		F64(probe_rtt_ns, 1e6, 1e10)},
	{"extra_acked_gain", "1", "weight of extra_acked in the window; 0: none", UNIT_NONE,
		F64(extra_gain, 0, 10)},
	{"policer", "yes", "look for policers and use their rate (Linux lt_bw)", UNIT_NONE,
		PARAM_BOOL(struct config, policer)},
	PARAM_END,
};

#define HIGH_GAIN (739.0 / 256) // 2/ln 2: the minimum that doubles delivery each round
#define DRAIN_GAIN (88.0 / 256) // 1 / HIGH_GAIN
#define FULL_BW_GROWTH 1.25
#define FULL_BW_ROUNDS 3
#define MIN_SEGS 4.0 // enough that a receiver with delayed ACKs keeps sending them
#define CYCLE_PHASES 8
#define EXTRA_MAX_NS 100e6
#define POLICER_ROUNDS_MIN 4
#define POLICER_ROUNDS_MAX 16
#define POLICER_LOSS (50.0 / 256)
#define POLICER_RATIO (1.0 / 8)
#define POLICER_DIFF_BPS 4000.0
#define POLICER_USE_ROUNDS 48
#define NO_RTT UINT64_MAX
#define NOMINAL_RTT_NS 1e6 // used if the handshake measured none

static const double cycle_gain[CYCLE_PHASES] = {1.25, 0.75, 1, 1, 1, 1, 1, 1};

#define MODES(V)                                                                                   \
	V(MODE_STARTUP, "startup")                                                                 \
	V(MODE_DRAIN, "drain")                                                                     \
	V(MODE_PROBE_BW, "probe_bw")                                                               \
	V(MODE_PROBE_RTT, "probe_rtt")
enum mode { MODES(CC_MODE_CONSTANT) };

// Each ACK touches the members up to the flags.
struct bbr {
	struct minmax bw; // bit/s over rounds
	uint64_t min_rtt_ns;
	uint64_t min_rtt_stamp_ns;
	uint64_t probe_rtt_begin_ns; // samples of segments sent from then on
	uint64_t cycle_ns; // start of the phase
	uint64_t round_delivered; // a segment sent when this was delivered ends the round
	struct extra_acked extra;
	float pacing_gain;
	uint32_t round;
	uint32_t lost; // segments, ever
	uint32_t mss_bits;
	uint8_t mode, phase;
	uint8_t full_rounds;
	uint8_t lt_rounds;
	bool round_start : 1, full : 1, seen_rtt : 1, idle_restart : 1, probe_rtt_round : 1;
	bool enter : 1, recovery : 1, conserve : 1, timeout : 1;
	bool lt_sampling : 1, lt_use : 1;

	float full_bw_bps;
	float prior_segs; // window to restore
	uint64_t limited_until; // are application-limited, until this much is delivered
	uint64_t probe_rtt_done_ns; // 0: too much is in flight yet
	uint64_t lt_ns; // start of the policer's interval
	double lt_bw_bps; // 0: none yet
	uint32_t lt_lost, lt_delivered; // at lt_ns
	uint32_t seed;
};
static_assert(sizeof(struct bbr) <= CC_STATE_MAX_BYTES, "state too large");

static double max_bw_bps(const struct bbr *b) {
	return f64_of(minmax_get(&b->bw));
}

static double bw_bps(const struct bbr *b) {
	return b->lt_use ? b->lt_bw_bps : max_bw_bps(b);
}

static double bdp_segs(
	const struct bbr *b, const struct config *cfg, double rate_bps, double gain) {
	if (b->min_rtt_ns == NO_RTT)
		return cfg->initial_segs;
	return gain * rate_bps * f64_of(b->min_rtt_ns) * 1e-9 / b->mss_bits;
}

// Segments that Linux sends at once: 1/1024 s of pacing (sk_pacing_shift).
static double quantum_segs(const struct bbr *b, const struct cc_out *out) {
	double least = out->pacing_bps < 1.2e6 ? 1 : 2;
	double bits = min_f64(out->pacing_bps / 1024, 65536 * 8);

	return max_f64(f64_of(u64_of(bits / b->mss_bits)), least);
}

// Adds room for segments and ACKs that sender and receiver send in batches.
static double quantised(const struct bbr *b, const struct cc_out *out, double segs) {
	int64_t even;

	segs += 3 * quantum_segs(b, out);
	even = (int64_t)segs;
	even += (double)even < segs;
	even += even & 1;
	if (b->mode == MODE_PROBE_BW && b->phase == 0)
		even += 2;
	return (double)even;
}

// What will be in flight when the pacer lets the next segments go, if BtlBw is delivered until
// then: with them when the gain is there to put more into flight (bbr_packets_in_net_at_edt).
static double inflight_at_next_slot(const struct bbr *b, const struct cc_ack *ack,
	const struct cc_out *out, double gain, double inflight) {
	double wait_ns = f64_of(time_since(ack->next_send_ns, ack->now_ns));
	double delivered = f64_of(u64_of(bw_bps(b) * wait_ns * 1e-9 / b->mss_bits));

	inflight += gain > 1 ? quantum_segs(b, out) : 0;
	return max_f64(inflight - delivered, 0);
}

static void set_pacing(
	struct bbr *b, const struct config *cfg, double rate_bps, double gain, struct cc_out *out) {
	rate_bps *= gain * (1 - cfg->margin);
	if (b->full || rate_bps > out->pacing_bps)
		out->pacing_bps = max_f64(rate_bps, 1);
}

static void set_first_pacing(struct bbr *b, double rtt_ns, struct cc_out *out) {
	out->pacing_bps = HIGH_GAIN * out->cwnd_segs * b->mss_bits * 1e9 / rtt_ns;
}

static double bbr_given_window(const void *config) {
	const struct config *cfg = config;

	return cfg->initial_segs;
}

static void bbr_init(void *state, const void *config, uint32_t mss_bytes, uint64_t rtt_ns,
	uint64_t now_ns, struct cc_out *out) {
	const struct config *cfg = config;
	struct bbr *b = state;

	*b = (struct bbr){
		.min_rtt_ns = rtt_ns > 0 ? rtt_ns : NO_RTT,
		.min_rtt_stamp_ns = now_ns,
		.extra.start_ns = now_ns,
		.pacing_gain = (float)HIGH_GAIN,
		.mss_bits = 8 * mss_bytes,
		.seed = cc_seed(now_ns, mss_bytes),
	};
	minmax_reset(&b->bw, 0, 0);
	out->cwnd_segs = cfg->initial_segs;
	b->seen_rtt = rtt_ns > 0;
	set_first_pacing(b, rtt_ns > 0 ? (double)rtt_ns : NOMINAL_RTT_NS, out);
}

static void save_cwnd(struct bbr *b, double cwnd_segs) {
	bool known = b->recovery || b->timeout || b->mode == MODE_PROBE_RTT;

	b->prior_segs = (float)(known ? max_f64((double)b->prior_segs, cwnd_segs) : cwnd_segs);
}

static void start_phase(struct bbr *b, uint8_t phase, uint64_t now_ns) {
	b->phase = phase;
	b->cycle_ns = now_ns;
}

// Starts in a random phase, except 0.75, so that flows that start together probe at different
// times.
static void start_probe_bw(struct bbr *b, uint64_t now_ns) {
	uint64_t x = cc_draw(b->seed, now_ns);

	b->mode = MODE_PROBE_BW;
	start_phase(b, (uint8_t)((CYCLE_PHASES - (x >> 40) % (CYCLE_PHASES - 1)) % CYCLE_PHASES),
		now_ns);
}

static void leave_probe_rtt(struct bbr *b, uint64_t now_ns, struct cc_out *out) {
	if (b->probe_rtt_done_ns == 0 || now_ns <= b->probe_rtt_done_ns)
		return;
	b->min_rtt_stamp_ns = now_ns;
	out->cwnd_segs = max_f64(out->cwnd_segs, (double)b->prior_segs);
	if (b->full)
		start_probe_bw(b, now_ns);
	else
		b->mode = MODE_STARTUP;
}

static void lt_interval(struct bbr *b, const struct cc_ack *ack) {
	b->lt_ns = ack->now_ns;
	b->lt_delivered = (uint32_t)ack->delivered_segs;
	b->lt_lost = b->lost;
	b->lt_rounds = 0;
}

static void lt_reset(struct bbr *b, const struct cc_ack *ack) {
	b->lt_bw_bps = 0;
	b->lt_use = b->lt_sampling = false;
	lt_interval(b, ack);
}

// A policer's interval is over: compares its rate with that of the last one.
static void lt_interval_done(struct bbr *b, const struct cc_ack *ack, double rate_bps) {
	double diff = rate_bps > b->lt_bw_bps ? rate_bps - b->lt_bw_bps : b->lt_bw_bps - rate_bps;

	if (b->lt_bw_bps > 0
		&& (diff <= POLICER_RATIO * b->lt_bw_bps || diff <= POLICER_DIFF_BPS)) {
		b->lt_bw_bps = (rate_bps + b->lt_bw_bps) / 2;
		b->lt_use = true;
		b->lt_rounds = 0;
		return;
	}
	b->lt_bw_bps = rate_bps;
	lt_interval(b, ack);
}

static void detect_policer(struct bbr *b, const struct cc_ack *ack, bool limited) {
	uint32_t delivered, lost;

	if (b->lt_use) {
		if (b->mode == MODE_PROBE_BW && b->round_start
			&& ++b->lt_rounds >= POLICER_USE_ROUNDS) {
			lt_reset(b, ack);
			start_probe_bw(b, ack->now_ns);
		}
		return;
	}
	if (!b->lt_sampling) {
		if (ack->lost_segs == 0)
			return;
		lt_interval(b, ack);
		b->lt_sampling = true;
	}
	if (limited) {
		lt_reset(b, ack);
		return;
	}
	b->lt_rounds = (uint8_t)(b->lt_rounds + b->round_start);
	if (b->lt_rounds < POLICER_ROUNDS_MIN)
		return;
	if (b->lt_rounds > POLICER_ROUNDS_MAX) {
		lt_reset(b, ack);
		return;
	}
	if (ack->lost_segs == 0) // an interval ends with a loss: the policer's tokens are used up
		return;
	delivered = (uint32_t)ack->delivered_segs - b->lt_delivered;
	lost = b->lost - b->lt_lost;
	if (delivered == 0 || lost < POLICER_LOSS * delivered || ack->now_ns - b->lt_ns < NS_PER_MS)
		return;
	lt_interval_done(
		b, ack, (double)delivered * b->mss_bits * 1e9 / (double)(ack->now_ns - b->lt_ns));
}

static void update_bw(struct bbr *b, const struct config *cfg, const struct cc_ack *ack) {
	bool limited = ack->app_limited
		|| (b->probe_rtt_begin_ns > 0 && ack->sent_ns >= b->probe_rtt_begin_ns
			&& ack->prior_delivered_segs <= b->limited_until);

	b->round_start = false;
	if (ack->acked_segs > 0 && ack->prior_delivered_segs >= b->round_delivered) {
		b->round_delivered = ack->delivered_segs;
		b->round++;
		b->round_start = true;
		b->conserve = false;
	}
	if (cfg->policer)
		detect_policer(b, ack, limited);
	if (ack->delivery_bps > 0 && (!limited || ack->delivery_bps >= max_bw_bps(b)))
		minmax_running_max(
			&b->bw, u64_of(cfg->bw_rounds), b->round, u64_of(ack->delivery_bps));
	if (b->full || !b->round_start || limited)
		return;
	if (max_bw_bps(b) >= FULL_BW_GROWTH * (double)b->full_bw_bps) {
		b->full_bw_bps = (float)max_bw_bps(b);
		b->full_rounds = 0;
	} else {
		b->full = ++b->full_rounds >= FULL_BW_ROUNDS;
	}
}

static bool phase_over(const struct bbr *b, const struct config *cfg, const struct cc_ack *ack,
	const struct cc_out *out) {
	bool full_length = ack->now_ns - b->cycle_ns > b->min_rtt_ns;
	double gain = cycle_gain[b->phase];
	double inflight;

	if (b->lt_use || (gain >= 1 && gain <= 1))
		return full_length;
	inflight = inflight_at_next_slot(b, ack, out, gain, (double)ack->prior_inflight_segs);
	if (gain > 1)
		return full_length
			&& (ack->lost_segs > 0
				|| inflight >= quantised(
					   b, out, bdp_segs(b, cfg, max_bw_bps(b), gain)));
	return full_length || inflight <= quantised(b, out, bdp_segs(b, cfg, max_bw_bps(b), 1));
}

static void update_mode(struct bbr *b, const struct config *cfg, const struct cc_ack *ack,
	const struct cc_out *out) {
	if (b->mode == MODE_PROBE_BW && phase_over(b, cfg, ack, out))
		start_phase(b, (uint8_t)((b->phase + 1) % CYCLE_PHASES), ack->now_ns);
	if (b->mode == MODE_STARTUP && b->full)
		b->mode = MODE_DRAIN;
	if (b->mode == MODE_DRAIN
		&& inflight_at_next_slot(
			   b, ack, out, (double)b->pacing_gain, (double)ack->inflight_segs)
			<= quantised(b, out, bdp_segs(b, cfg, max_bw_bps(b), 1)))
		start_probe_bw(b, ack->now_ns);
}

static void update_min_rtt(
	struct bbr *b, const struct config *cfg, const struct cc_ack *ack, struct cc_out *out) {
	bool expired = f64_of(ack->now_ns - b->min_rtt_stamp_ns) > cfg->min_rtt_window_ns;

	if (ack->rtt_ns > 0 && (ack->rtt_ns < b->min_rtt_ns || expired)) {
		b->min_rtt_ns = ack->rtt_ns;
		b->min_rtt_stamp_ns = ack->now_ns;
	}
	if (expired && !b->idle_restart && b->mode != MODE_PROBE_RTT) {
		save_cwnd(b, out->cwnd_segs);
		b->mode = MODE_PROBE_RTT;
		b->probe_rtt_begin_ns = ack->now_ns;
		b->probe_rtt_done_ns = 0;
	}
	if (b->mode == MODE_PROBE_RTT) {
		b->limited_until = ack->delivered_segs + ack->inflight_segs;
		if (b->probe_rtt_done_ns == 0 && ack->inflight_segs <= MIN_SEGS) {
			b->probe_rtt_done_ns = ack->now_ns + (uint64_t)cfg->probe_rtt_ns;
			b->probe_rtt_round = false;
			b->round_delivered = ack->delivered_segs;
		} else if (b->probe_rtt_done_ns > 0) {
			b->probe_rtt_round |= b->round_start;
			if (b->probe_rtt_round)
				leave_probe_rtt(b, ack->now_ns, out);
		}
	}
	if (ack->acked_segs > 0)
		b->idle_restart = false;
}

static double cwnd_gain(struct bbr *b, const struct config *cfg) {
	switch ((enum mode)b->mode) {
	case MODE_STARTUP:
		b->pacing_gain = (float)HIGH_GAIN;
		return HIGH_GAIN;
	case MODE_DRAIN:
		b->pacing_gain = (float)DRAIN_GAIN;
		return HIGH_GAIN;
	case MODE_PROBE_BW:
		b->pacing_gain = b->lt_use ? 1 : (float)cycle_gain[b->phase];
		return cfg->cwnd_gain;
	case MODE_PROBE_RTT:
		break;
	}
	b->pacing_gain = 1;
	return 1;
}

// Sets the window during and after recovery. True: the window is final.
static bool recover(struct bbr *b, const struct cc_ack *ack, struct cc_out *out) {
	double inflight = (double)ack->inflight_segs + ack->acked_segs;

	out->cwnd_segs = max_f64(out->cwnd_segs - ack->lost_segs, 1);
	if (b->enter && !b->recovery) {
		b->recovery = b->conserve = true;
		b->round_delivered = ack->delivered_segs;
		out->cwnd_segs = inflight;
	} else if ((b->recovery || b->timeout) && !ack->in_recovery && !ack->in_loss) {
		b->recovery = b->conserve = b->timeout = false;
		out->cwnd_segs = max_f64(out->cwnd_segs, (double)b->prior_segs);
	}
	b->enter = false;
	if (b->conserve)
		out->cwnd_segs = max_f64(out->cwnd_segs, inflight);
	return b->conserve;
}

static void set_cwnd(struct bbr *b, const struct config *cfg, const struct cc_ack *ack, double gain,
	struct cc_out *out) {
	if (ack->acked_segs > 0 && !recover(b, ack, out)) {
		double rate = bw_bps(b), target = bdp_segs(b, cfg, rate, gain);

		if (b->full)
			target += min_f64(cfg->extra_gain * extra_acked_segs(&b->extra),
				rate * EXTRA_MAX_NS * 1e-9 / b->mss_bits);
		target = quantised(b, out, target);
		if (b->full)
			out->cwnd_segs = min_f64(out->cwnd_segs + ack->acked_segs, target);
		else if (out->cwnd_segs < target || f64_of(ack->delivered_segs) < cfg->initial_segs)
			out->cwnd_segs += ack->acked_segs;
		out->cwnd_segs = max_f64(out->cwnd_segs, MIN_SEGS);
	}
	if (b->mode == MODE_PROBE_RTT)
		out->cwnd_segs = min_f64(out->cwnd_segs, MIN_SEGS);
}

static void bbr_on_ack(
	void *state, const void *config, const struct cc_ack *ack, struct cc_out *out) {
	const struct config *cfg = config;
	struct bbr *b = state;
	double gain;

	b->lost += ack->lost_segs;
	update_bw(b, cfg, ack);
	if (ack->acked_segs > 0 && ack->interval_ns > 0) {
		if (b->round_start)
			extra_acked_round(&b->extra, EXTRA_ROUNDS);
		extra_acked_add(&b->extra, ack, bw_bps(b), b->mss_bits, out->cwnd_segs);
	}
	update_mode(b, cfg, ack, out);
	update_min_rtt(b, cfg, ack, out);
	gain = cwnd_gain(b, cfg);
	if (!b->seen_rtt && ack->rtt_ns > 0) {
		b->seen_rtt = true;
		set_first_pacing(b, (double)ack->srtt_ns, out);
	}
	set_pacing(b, cfg, bw_bps(b), (double)b->pacing_gain, out);
	set_cwnd(b, cfg, ack, gain, out);
}

static void bbr_on_loss(
	void *state, const void *config, const struct cc_loss *loss, struct cc_out *out) {
	struct bbr *b = state;

	if (loss->ecn)
		return;
	save_cwnd(b, out->cwnd_segs);
	b->enter = true;
}

static void bbr_on_rto(
	void *state, const void *config, const struct cc_loss *loss, struct cc_out *out) {
	struct bbr *b = state;

	save_cwnd(b, out->cwnd_segs);
	b->timeout = true;
	b->recovery = b->conserve = b->enter = false;
	b->full_bw_bps = 0;
	b->full_rounds = 0;
	out->cwnd_segs = 1;
}

// Restores the earlier window. As in Linux the search for a full pipe restarts, because it may have
// ended too early, and so does the detection of a policer.
static void bbr_on_spurious(void *state, const void *config, uint64_t now_ns, struct cc_out *out) {
	struct bbr *b = state;

	if (b->recovery || b->timeout || b->enter)
		out->cwnd_segs = max_f64(out->cwnd_segs, (double)b->prior_segs);
	b->recovery = b->conserve = b->enter = b->timeout = false;
	b->full_bw_bps = 0;
	b->full_rounds = 0;
	b->lt_bw_bps = 0;
	b->lt_use = b->lt_sampling = false;
}

static void bbr_on_idle(
	void *state, const void *config, uint64_t now_ns, uint64_t idle_ns, struct cc_out *out) {
	struct bbr *b = state;

	b->idle_restart = true;
	extra_acked_restart(&b->extra, now_ns);
	if (b->mode == MODE_PROBE_BW)
		set_pacing(b, config, bw_bps(b), 1, out);
	else if (b->mode == MODE_PROBE_RTT)
		leave_probe_rtt(b, now_ns, out);
}

static void bbr_observe(const void *state, const void *config, float out[CC_OBSERVED]) {
	const struct bbr *b = state;

	out[0] = (float)bw_bps(b);
	out[1] = b->min_rtt_ns == NO_RTT ? 0 : (float)b->min_rtt_ns;
	out[2] = b->pacing_gain;
	out[3] = (float)extra_acked_segs(&b->extra);
}

static uint8_t bbr_mode(const void *state, const void *config) {
	const struct bbr *b = state;

	return b->mode;
}

const struct cc_ops cc_bbr = {
	.name = "bbr",
	.summary = "BBR version 1 as in Linux (ACM Queue 2016)",
	.reference = "Cardwell, Cheng, Gunn, Yeganeh, Jacobson: BBR: Congestion-Based "
		     "Congestion Control, ACM Queue 2016; Linux tcp_bbr.c",
	.params = params,
	.config_size = sizeof(struct config),
	.state_size = sizeof(struct bbr),
	.rate = true,
	.any_idle = true,
	.observed = {"bw_bps", "min_rtt_ns", "pacing_gain", "extra_acked_segs"},
	.given_window = bbr_given_window,
	.init = bbr_init,
	.on_ack = bbr_on_ack,
	.on_loss = bbr_on_loss,
	.on_rto = bbr_on_rto,
	.on_spurious = bbr_on_spurious,
	.on_idle = bbr_on_idle,
	.observe = bbr_observe,
	.mode = bbr_mode,
	.modes = {MODES(CC_MODE_TEXT)},
};
