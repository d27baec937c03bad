// SPDX-License-Identifier: BSD-3-Clause
// BBR version 3 (draft-ietf-ccwg-bbr, text of 3 August 2026; Cardwell and others). bbr.c is
// version 1, with another model of losses.
//
//	max_bw    largest delivery rate of this probing cycle and the last one
//	min_rtt   smallest RTT of the last 10 s; renewed by what was seen since the last ProbeRTT
//	bw        min(max_bw, bw_shortterm)
//	pacing    0.99 pacing_gain bw
//	cwnd      towards cwnd_gain bw min_rtt + extra_acked, by the acknowledged segments, at most
//	          inflight_longterm or 0.85 of it, and inflight_shortterm
//
// (state, pacing_gain, cwnd_gain)
//
//	Startup  2.77, 2      until max_bw grew by less than 1/4 in 3 rounds, or a round lost more
//	                      than 2 % in 6 places
//	Drain    0.5, 2       until at most bw min_rtt is in flight, or more than three rounds are
//	                      over
//	DOWN     0.9, 2       until at most max_bw min_rtt, and at most 0.85 inflight_longterm, is
//	                      in flight
//	CRUISE   1, 2         until 2 to 3 s, or min(bw min_rtt, 62 or 63) rounds, are over since
//	                      the last DOWN began
//	REFILL   1, 2         one round: fills the pipe before it is probed
//	UP       1.25, 2.25   until a round lost more than 2 %, or the rate grew by less than 1/4 in
//	                      3 rounds; inflight_longterm grows by 1, 2, 4 ... segments per round
//	                      while it is the limit. After an UP that lost more than 2 %: until
//	                      inflight_longterm is in flight, and if that lost little, REFILL again
//	                      a round later (5.3.3.4)
//	ProbeRTT 1, 0.5       when the RTT was not below min_rtt for 5 s: 200 ms and a round at half
//	                      of bw min_rtt
//
// Losses (5.5.10). While it probes (Startup, REFILL, UP) 2 % of a flight may be lost; more than
// that sets inflight_longterm to the flight that lost it, once per probe, and no lower than 0.7 of
// the target. At other times each round with a loss sets bw_shortterm and inflight_shortterm to
// what that round has delivered, and no lower than 0.7 of themselves; the next REFILL forgets them.
// A timeout leaves 1 segment more than what is still in flight; the window of before comes back
// with the end of recovery. What was spurious is taken back: the bounds are at least those of
// before, and where losses had ended Startup or UP, Startup goes on, or a REFILL begins the next UP
// (5.5.11). ECN echoes are not answered, as in the draft.
//
// Beside BBRv3 of Linux (6.12 with Google's patch, a guest) in 54 networks of 10 to 200 Mbit/s and
// 10 to 100 ms its goodput differs by -2.1 to 0.1 % without loss and -1.9 to 0.8 % with 0.1 % of
// random loss. With 1 % it is -5 to 3 %, but for one network of 10 Mbit/s and 100 ms (21 %).
//
// Restarts (5.4.1). Whenever the application had left nothing in flight, it is paced at bw,
// ProbeRTT ends if its time is over, and the next ACK does not begin it.
//
// Where we differ from the draft, and why
//   - It keeps with each packet what was in flight and lost when it was sent. Of these the
//     transport keeps what was delivered, D. Then the packets that were in flight are those which
//     were delivered or lost since: tx_in_flight = delivered - D + lost. What was lost at its
//     sending is interpolated between the counts at the starts of rounds.
//   - Losses are judged when the next ACK comes, of the newest segment it acknowledges, but by
//     whether the application had limited the sending of the last lost one. The correction for half
//     a batch (InflightAtLoss) is below one segment and left out. Those of a timeout are judged at
//     once, by the flight it ended.
//   - Losses that end Startup are in 6 places if 6 ACKs report them, as in Linux's version 3.
//     Whether the connection has SACK is not asked, for the transport does not say; without it the
//     draft takes each loss for too much.
//   - The state to go back to is saved with the first loss of each round, but not after a loss has
//     ended Startup or UP in the same recovery: by the draft's pseudocode the next loss of that
//     burst would forget what is to be restored, because entering DOWN resets is_loss_in_round.
//   - inflight_longterm is reached when there was no room for another segment before the ACK; after
//     it, there always is.
//   - A quantum is 1 ms of pacing, 2 segments to 64 KB, as in the draft, though segments leave one
//     by one here.
//   - Samples of segments sent in ProbeRTT count as application-limited; in the draft the transport
//     marks them so.
//   - No generator of its own: waits are drawn by cc_draw.h.
//
// What this text costs and mends, at 100 Mbit/s and 40 ms (in brackets: that of version 05, without
// careful probes; means of three starts): beside CUBIC 0.74 (0.69) of the link with 1 BDP of
// buffer, as the second probe comes at once; 0.48 (0.48) with 4 BDP. Two flows lose 929 (1466)
// packets in a minute with 1 BDP, 1321 (657) with 0.3 BDP. At 50 Mbit/s, a delay that is 0.55 s
// longer for 0.55 s, in UP: 35.8 (29.8) of 47 Mbit/s in the 3.7 s from then on.
#include "sender/cc/bbr3_model.h"
#include "sender/cc/cc_draw.h"

#include <math.h>

#define UP_ROUNDS_MAX 30
#define NOMINAL_RTT_NS 1e6 // used if the handshake measured none

static double bbr3_given_window(const void *config) {
	const struct config *cfg = config;

	return cfg->initial_segs;
}

static void reset_short_term(struct bbr3 *b) {
	b->bw_short_bps = b->inflight_short = INFINITY;
}

static void reset_full_bw(struct bbr3 *b, double bps) {
	b->full_bw_bps = (float)bps;
	b->full_rounds = 0;
	b->full_now = false;
}

static void bbr3_init(void *state, const void *config, uint32_t mss_bytes, uint64_t rtt_ns,
	uint64_t now_ns, struct cc_out *out) {
	const struct config *cfg = config;
	float min_rtt_ns = rtt_ns > 0 ? (float)rtt_ns : NO_RTT;
	struct bbr3 *b = state;

	*b = (struct bbr3){
		.min_rtt_ns = min_rtt_ns,
		.min_rtt_stamp_ns = now_ns,
		.probe_rtt_ns = min_rtt_ns,
		.probe_rtt_stamp_ns = now_ns,
		.round_ns = {now_ns, now_ns},
		.extra.start_ns = now_ns,
		.inflight_long = INFINITY,
		.undo_mode = MODE_NONE,
		.mss_bits = 8 * mss_bytes,
		.seed = cc_seed(now_ns, mss_bytes),
		.seen_rtt = rtt_ns > 0,
	};
	reset_short_term(b);
	out->cwnd_segs = cfg->initial_segs;
	out->pacing_bps = cfg->startup_gain * out->cwnd_segs * b->mss_bits * 1e9
		/ (rtt_ns > 0 ? (double)rtt_ns : NOMINAL_RTT_NS);
}

static void save_cwnd(struct bbr3 *b, double cwnd_segs) {
	bool known = b->recovery || b->mode == MODE_PROBE_RTT;

	b->prior_segs = (float)(known ? max_f64((double)b->prior_segs, cwnd_segs) : cwnd_segs);
}

// BBRSaveStateUponLoss but for the window
static void save_state(struct bbr3 *b) {
	b->undo_mode = MODE_NONE;
	b->undo_bw_short_bps = b->bw_short_bps;
	b->undo_short = b->inflight_short;
	b->undo_long = b->inflight_long;
}

static void start_round(struct bbr3 *b) {
	b->round_delivered = b->delivered;
}

// Also draws the next wait: 2 to 3 s, or 62 to 63 rounds.
static void start_down(struct bbr3 *b, const struct config *cfg, uint64_t now_ns) {
	uint64_t x = cc_draw(b->seed, now_ns);

	b->loss_in_round = false;
	b->bw_latest_bps = b->inflight_latest = 0;
	b->up_count = INFINITY;
	b->rounds_since_probe = (uint16_t)(x & 1);
	b->wait_ns = (float)(cfg->wait_ns * (1 + 0.5 * (double)(x >> 40) / 0x1p24));
	b->cycle_ns = now_ns;
	b->ack_phase = PROBE_STOPPING;
	start_round(b);
	b->mode = MODE_DOWN;
}

static void start_refill(struct bbr3 *b) {
	reset_short_term(b);
	b->probe_careful = false;
	b->up_rounds = 0;
	b->up_acks = 0;
	b->ack_phase = REFILLING;
	start_round(b);
	b->mode = MODE_REFILL;
}

static void raise_slope(struct bbr3 *b, double cwnd_segs) {
	b->up_count = (float)max_f64(cwnd_segs / (double)(1u << b->up_rounds), 1);
	b->up_rounds = (uint8_t)(b->up_rounds + (b->up_rounds < UP_ROUNDS_MAX));
}

static void start_up(struct bbr3 *b, const struct cc_ack *ack, double cwnd_segs) {
	b->probing = true; // losses of what is sent from here on say how much was too much
	b->ack_phase = PROBE_STARTING;
	start_round(b);
	reset_full_bw(b, ack->delivery_bps);
	b->mode = MODE_UP;
	raise_slope(b, cwnd_segs);
}

static void update_round(struct bbr3 *b, const struct cc_ack *ack) {
	b->round_start = ack->prior_delivered_segs >= b->round_delivered;
	if (!b->round_start)
		return;
	start_round(b);
	b->rounds++;
	b->rounds_since_probe =
		(uint16_t)(b->rounds_since_probe + (b->rounds_since_probe < UINT16_MAX));
	b->round_ns[1] = b->round_ns[0];
	b->round_lost[1] = b->round_lost[0];
	b->round_ns[0] = ack->now_ns;
	b->round_lost[0] = b->lost;
}

// BBRUpdateLatestDeliverySignals, BBRUpdateMaxBw
static void update_rates(struct bbr3 *b, const struct cc_ack *ack) {
	double delivered = (double)(ack->delivered_segs - ack->prior_delivered_segs);

	b->limited = ack->app_limited
		|| (int32_t)(b->limited_until - (uint32_t)ack->prior_delivered_segs) > 0;
	b->bw_latest_bps = (float)max_f64((double)b->bw_latest_bps, ack->delivery_bps);
	b->inflight_latest = (float)max_f64((double)b->inflight_latest, delivered);
	b->loss_round_start = ack->prior_delivered_segs >= b->loss_round_delivered;
	if (b->loss_round_start)
		b->loss_round_delivered = ack->delivered_segs;
	update_round(b, ack);
	if (ack->delivery_bps > 0 && (!b->limited || ack->delivery_bps >= bbr3_max_bw_bps(b)))
		b->bw_bps[0] = (float)max_f64((double)b->bw_bps[0], ack->delivery_bps);
}

// BBRAdaptLowerBoundsFromCongestion: once per round with a loss, but for probing ones.
static void update_bounds(struct bbr3 *b, const struct config *cfg, double cwnd_segs) {
	bool probes = b->mode == MODE_STARTUP || b->mode == MODE_REFILL || b->mode == MODE_UP;

	if (!b->loss_round_start)
		return;
	if (b->loss_in_round && !probes) {
		double bps = min_f64((double)b->bw_short_bps, bbr3_max_bw_bps(b));
		double segs =
			isinf((double)b->inflight_short) ? cwnd_segs : (double)b->inflight_short;

		b->bw_short_bps = (float)max_f64((double)b->bw_latest_bps, cfg->beta * bps);
		b->inflight_short = (float)max_f64((double)b->inflight_latest, cfg->beta * segs);
	}
	b->loss_in_round = false;
}

// BBRUpdateACKAggregation
static void update_extra_acked(
	struct bbr3 *b, const struct config *cfg, const struct cc_ack *ack, double cwnd_segs) {
	double excess = extra_acked_excess(&b->extra, ack, bbr3_bw_bps(b), b->mss_bits, cwnd_segs);
	uint64_t rounds = b->filled ? (uint64_t)cfg->extra_rounds : 1;

	minmax_running_max(&b->extra_max, rounds, b->rounds, (uint64_t)(excess * EXTRA_UNIT));
}

static void check_full(struct bbr3 *b, const struct config *cfg, const struct cc_ack *ack) {
	if (b->full_now || !b->round_start || b->limited || ack->delivery_bps <= 0)
		return;
	if (ack->delivery_bps >= cfg->full_growth * (double)b->full_bw_bps) {
		reset_full_bw(b, ack->delivery_bps);
		return;
	}
	b->full_now = ++b->full_rounds >= cfg->full_rounds;
	b->filled |= b->full_now;
}

// Startup ends by losses too. Drain ends by what is in flight; where another flow keeps a queue of
// min_rtt or more, that is above bw min_rtt even at half of bw, and so Drain has a limit in rounds.
static void check_startup_and_drain(struct bbr3 *b, const struct config *cfg,
	const struct cc_ack *ack, const struct cc_out *out) {
	if (b->mode == MODE_STARTUP && b->loss_round_start) {
		if (ack->in_recovery && b->loss_events >= cfg->startup_losses
			&& bbr3_too_high(b, cfg, ack)) {
			b->undo_mode = MODE_STARTUP;
			b->filled = true;
			b->inflight_long = (float)max_f64(
				bbr3_bdp_segs(b, cfg, 1), (double)b->inflight_latest);
		}
		b->loss_events = 0;
	}
	if (b->mode == MODE_DRAIN)
		b->drain_rounds = (uint8_t)(b->drain_rounds + b->round_start);
	if (b->mode == MODE_STARTUP && b->filled) {
		b->mode = MODE_DRAIN;
		b->drain_rounds = 0;
	}
	if (b->mode == MODE_DRAIN
		&& (ack->inflight_segs <= bbr3_budget(b, cfg, out, bbr3_bdp_segs(b, cfg, 1))
			|| b->drain_rounds > cfg->drain_rounds)) {
		start_down(b, cfg, ack->now_ns);
	}
}

// BBRHandleInflightTooHigh; `segs`: the flight that has lost too much.
static void too_high(
	struct bbr3 *b, const struct config *cfg, uint64_t now_ns, double cwnd_segs, double segs) {
	b->probe_too_high = true;
	b->probing = false; // once per probe
	if (!b->loss_limited)
		b->inflight_long =
			(float)max_f64(segs, cfg->beta * bbr3_target_segs(b, cfg, cwnd_segs));
	if (b->mode != MODE_UP)
		return;
	b->undo_mode = MODE_UP;
	start_down(b, cfg, now_ns);
}

static void react_to_loss(
	struct bbr3 *b, const struct config *cfg, const struct cc_ack *ack, double cwnd_segs) {
	b->loss_new = false;
	if (b->probing && bbr3_too_high(b, cfg, ack))
		too_high(b, cfg, ack->now_ns, cwnd_segs, bbr3_tx_in_flight(b, ack));
}

// BBRProbeInflightLongtermUpward
static void raise_long_term(struct bbr3 *b, const struct cc_ack *ack, double cwnd_segs) {
	float more;

	if (!ack->cwnd_limited || cwnd_segs < (double)b->inflight_long)
		return;
	b->up_acks += (float)ack->acked_segs;
	if (b->up_acks >= b->up_count) {
		more = truncf(b->up_acks / b->up_count);
		b->up_acks -= more * b->up_count;
		b->inflight_long += more;
	}
	if (b->round_start)
		raise_slope(b, cwnd_segs);
}

// The round after a probe has shown what came of it. A careful one that lost little is followed by
// another at once.
static void end_probe(struct bbr3 *b) {
	b->ack_phase = NOT_PROBING;
	b->probing = false;
	if (!bbr3_in_probe_bw(b))
		return;
	if (!b->limited) {
		b->bw_bps[1] = b->bw_bps[0];
		b->bw_bps[0] = 0;
	}
	if (b->probe_careful && !b->probe_too_high)
		start_refill(b);
}

// BBRAdaptLongTermModel. True: it has begun another phase.
static bool adapt_long_term(
	struct bbr3 *b, const struct config *cfg, const struct cc_ack *ack, double cwnd_segs) {
	if (b->ack_phase == PROBE_STARTING && b->round_start)
		b->ack_phase = PROBE_FEEDBACK;
	if (b->ack_phase == PROBE_STOPPING && b->round_start) {
		end_probe(b);
		if (b->ack_phase == REFILLING)
			return true;
	}
	if (isinf((double)b->inflight_long) || bbr3_too_high(b, cfg, ack))
		return false;
	b->inflight_long = (float)max_f64((double)b->inflight_long, bbr3_tx_in_flight(b, ack));
	if (b->mode == MODE_UP)
		raise_long_term(b, ack, cwnd_segs);
	return false;
}

static bool time_to_probe(
	const struct bbr3 *b, const struct config *cfg, uint64_t now_ns, double cwnd_segs) {
	return (double)(now_ns - b->cycle_ns) > (double)b->wait_ns
		|| b->rounds_since_probe
		>= min_f64(bbr3_target_segs(b, cfg, cwnd_segs), cfg->reno_rounds);
}

// BBRIsTimeToCruise
static bool time_to_cruise(const struct bbr3 *b, const struct config *cfg, const struct cc_ack *ack,
	const struct cc_out *out) {
	double bdp = bbr3_bdp_at(b, cfg, bbr3_max_bw_bps(b));

	return ack->inflight_segs <= bbr3_with_headroom(b, cfg)
		&& ack->inflight_segs <= bbr3_budget(b, cfg, out, bdp);
}

// BBRIsTimeToGoDown
static bool time_to_go_down(struct bbr3 *b, const struct cc_ack *ack, double cwnd_segs) {
	if (b->probe_too_high && ack->prior_inflight_segs + 1 > (double)b->inflight_long) {
		b->probe_careful = true;
		return true;
	}
	if (ack->cwnd_limited && cwnd_segs >= (double)b->inflight_long) {
		reset_full_bw(b, ack->delivery_bps);
		return false;
	}
	return b->full_now;
}

static void update_cycle(struct bbr3 *b, const struct config *cfg, const struct cc_ack *ack,
	const struct cc_out *out) {
	double cwnd_segs = out->cwnd_segs;

	if (!b->filled || adapt_long_term(b, cfg, ack, cwnd_segs))
		return;
	if ((b->mode == MODE_DOWN || b->mode == MODE_CRUISE)
		&& time_to_probe(b, cfg, ack->now_ns, cwnd_segs)) {
		start_refill(b);
	} else if (b->mode == MODE_DOWN && time_to_cruise(b, cfg, ack, out)) {
		b->mode = MODE_CRUISE;
	} else if (b->mode == MODE_REFILL && b->round_start) {
		start_up(b, ack, cwnd_segs);
	} else if (b->mode == MODE_UP && time_to_go_down(b, ack, cwnd_segs)) {
		b->probe_too_high = false; // not yet
		start_down(b, cfg, ack->now_ns);
	}
}

static double probe_rtt_segs(const struct bbr3 *b, const struct config *cfg) {
	return max_f64(bbr3_bdp_segs(b, cfg, cfg->probe_rtt_gain), cfg->min_segs);
}

// BBRCheckProbeRTTDone
static void leave_probe_rtt(
	struct bbr3 *b, const struct config *cfg, uint64_t now_ns, struct cc_out *out) {
	if (b->probe_rtt_done_ns == 0 || now_ns <= b->probe_rtt_done_ns)
		return;
	b->probe_rtt_stamp_ns = now_ns;
	out->cwnd_segs = max_f64(out->cwnd_segs, (double)b->prior_segs);
	reset_short_term(b);
	b->mode = MODE_STARTUP;
	if (b->filled) {
		start_down(b, cfg, now_ns);
		b->mode = MODE_CRUISE;
	}
}

static void update_min_rtt(
	struct bbr3 *b, const struct config *cfg, const struct cc_ack *ack, struct cc_out *out) {
	bool expired = (double)(ack->now_ns - b->probe_rtt_stamp_ns) > cfg->probe_rtt_interval_ns;
	float rtt_ns = (float)ack->rtt_ns;

	if (rtt_ns > 0 && (rtt_ns < b->probe_rtt_ns || expired)) {
		b->probe_rtt_ns = rtt_ns;
		b->probe_rtt_stamp_ns = ack->now_ns;
	}
	if (b->probe_rtt_ns < b->min_rtt_ns
		|| (double)(ack->now_ns - b->min_rtt_stamp_ns) > cfg->min_rtt_window_ns) {
		b->min_rtt_ns = b->probe_rtt_ns;
		b->min_rtt_stamp_ns = b->probe_rtt_stamp_ns;
	}
	if (expired && b->mode != MODE_PROBE_RTT && !b->idle_restart) {
		save_cwnd(b, out->cwnd_segs);
		b->mode = MODE_PROBE_RTT;
		b->probe_rtt_done_ns = 0;
		b->ack_phase = PROBE_STOPPING;
		start_round(b);
	}
	if (b->mode == MODE_PROBE_RTT) {
		b->limited_until = (uint32_t)ack->delivered_segs + ack->inflight_segs;
		if (b->probe_rtt_done_ns == 0 && ack->inflight_segs <= probe_rtt_segs(b, cfg)) {
			b->probe_rtt_done_ns = ack->now_ns + (uint64_t)cfg->probe_rtt_ns;
			b->probe_rtt_round = false;
			start_round(b);
		} else if (b->probe_rtt_done_ns > 0) {
			b->probe_rtt_round |= b->round_start;
			if (b->probe_rtt_round)
				leave_probe_rtt(b, cfg, ack->now_ns, out);
		}
	}
	b->idle_restart = false;
}

static double pacing_gain(const struct bbr3 *b, const struct config *cfg) {
	switch ((enum mode)b->mode) {
	case MODE_STARTUP:
		return cfg->startup_gain;
	case MODE_DRAIN:
		return cfg->drain_gain;
	case MODE_DOWN:
		return cfg->down_gain;
	case MODE_UP:
		return cfg->up_gain;
	case MODE_CRUISE:
	case MODE_REFILL:
	case MODE_PROBE_RTT:
	case MODE_NONE:
		break;
	}
	return 1;
}

static void set_pacing(
	const struct bbr3 *b, const struct config *cfg, double gain, struct cc_out *out) {
	double rate_bps = gain * bbr3_bw_bps(b) * (1 - cfg->margin);

	if (rate_bps > 0 && (b->filled || rate_bps > out->pacing_bps))
		out->pacing_bps = max_f64(rate_bps, 1);
}

static void set_cwnd(const struct bbr3 *b, const struct config *cfg, const struct cc_ack *ack,
	struct cc_out *out) {
	double gain = b->mode == MODE_UP    ? cfg->up_cwnd_gain
		: b->mode == MODE_PROBE_RTT ? cfg->probe_rtt_gain
					    : cfg->cwnd_gain;
	double most = bbr3_budget(b, cfg, out, bbr3_bdp_segs(b, cfg, gain) + bbr3_extra_segs(b));
	double cap = (double)INFINITY;

	if (b->filled)
		out->cwnd_segs = min_f64(out->cwnd_segs + ack->acked_segs, most);
	else if (out->cwnd_segs < most || (double)ack->delivered_segs < cfg->initial_segs)
		out->cwnd_segs += ack->acked_segs;
	out->cwnd_segs = max_f64(out->cwnd_segs, cfg->min_segs);
	if (b->mode == MODE_PROBE_RTT)
		out->cwnd_segs = min_f64(out->cwnd_segs, probe_rtt_segs(b, cfg));
	if (b->mode == MODE_CRUISE || b->mode == MODE_PROBE_RTT)
		cap = bbr3_with_headroom(b, cfg);
	else if (bbr3_in_probe_bw(b))
		cap = (double)b->inflight_long;
	cap = max_f64(min_f64(cap, (double)b->inflight_short), cfg->min_segs);
	out->cwnd_segs = min_f64(out->cwnd_segs, cap);
}

// BBRNoteLoss. Once Startup or UP has ended by a loss, what comes back if all was spurious is of
// before that.
static void note_loss(struct bbr3 *b, uint32_t lost_segs, bool limited, double cwnd_segs) {
	if (lost_segs == 0)
		return;
	b->lost += lost_segs;
	b->loss_limited = limited;
	if (!b->loss_in_round) {
		b->loss_round_delivered = b->delivered;
		save_cwnd(b, cwnd_segs);
		if (b->undo_mode == MODE_NONE)
			save_state(b);
	}
	b->loss_in_round = b->loss_new = true;
	b->loss_events = (uint8_t)(b->loss_events + (b->loss_events < UINT8_MAX));
}

static void bbr3_on_ack(
	void *state, const void *config, const struct cc_ack *ack, struct cc_out *out) {
	const struct config *cfg = config;
	struct bbr3 *b = state;

	b->delivered = ack->delivered_segs;
	note_loss(b, ack->lost_segs, ack->lost_app_limited, out->cwnd_segs);
	if (ack->acked_segs == 0)
		return;
	if (b->recovery && !ack->in_recovery && !ack->in_loss) {
		b->recovery = false;
		out->cwnd_segs = max_f64(out->cwnd_segs, (double)b->prior_segs);
	}
	update_rates(b, ack);
	if (b->loss_new)
		react_to_loss(b, cfg, ack, out->cwnd_segs);
	update_bounds(b, cfg, out->cwnd_segs);
	update_extra_acked(b, cfg, ack, out->cwnd_segs);
	check_full(b, cfg, ack);
	check_startup_and_drain(b, cfg, ack, out);
	update_cycle(b, cfg, ack, out);
	update_min_rtt(b, cfg, ack, out);
	if (b->loss_round_start) {
		b->bw_latest_bps = (float)ack->delivery_bps;
		b->inflight_latest = (float)(ack->delivered_segs - ack->prior_delivered_segs);
	}
	if (!b->seen_rtt && ack->rtt_ns > 0) {
		b->seen_rtt = true;
		out->pacing_bps = cfg->startup_gain * out->cwnd_segs * b->mss_bits * 1e9
			/ (double)ack->srtt_ns;
	}
	set_pacing(b, cfg, pacing_gain(b, cfg), out);
	set_cwnd(b, cfg, ack, out);
}

static void bbr3_on_loss(
	void *state, const void *config, const struct cc_loss *loss, struct cc_out *out) {
	struct bbr3 *b = state;

	if (loss->ecn)
		return;
	save_cwnd(b, out->cwnd_segs);
	save_state(b);
	b->recovery = true;
}

// The segments that it declares lost are judged at once: nearly all of a flight.
static void bbr3_on_rto(
	void *state, const void *config, const struct cc_loss *loss, struct cc_out *out) {
	double before = out->cwnd_segs, flight = loss->inflight_segs;
	const struct config *cfg = config;
	struct bbr3 *b = state;

	save_cwnd(b, before);
	if (!loss->repeated)
		save_state(b);
	b->recovery = true;
	note_loss(b, loss->lost_segs, b->limited, before);
	out->cwnd_segs = max_f64(flight - loss->lost_segs, 0) + 1;
	if (b->probing && loss->lost_segs > cfg->loss_thresh * flight)
		too_high(b, cfg, loss->now_ns, before, flight);
}

static void go_back(struct bbr3 *b) {
	if (b->undo_mode == MODE_STARTUP && b->mode != MODE_STARTUP) {
		b->filled = false;
		if (b->mode != MODE_PROBE_RTT)
			b->mode = MODE_STARTUP;
	} else if (b->undo_mode == MODE_UP && b->mode != MODE_UP && b->mode != MODE_PROBE_RTT) {
		start_refill(b);
	}
	b->undo_mode = MODE_NONE;
}

// BBRHandleSpuriousLossDetection
static void bbr3_on_spurious(void *state, const void *config, uint64_t now_ns, struct cc_out *out) {
	struct bbr3 *b = state;

	out->cwnd_segs = max_f64(out->cwnd_segs, (double)b->prior_segs);
	b->recovery = b->loss_in_round = b->loss_new = false;
	reset_full_bw(b, 0);
	b->bw_short_bps = fmaxf(b->bw_short_bps, b->undo_bw_short_bps);
	b->inflight_short = fmaxf(b->inflight_short, b->undo_short);
	b->inflight_long = fmaxf(b->inflight_long, b->undo_long);
	go_back(b);
}

static void bbr3_on_idle(
	void *state, const void *config, uint64_t now_ns, uint64_t idle_ns, struct cc_out *out) {
	struct bbr3 *b = state;

	b->idle_restart = true;
	extra_acked_restart(&b->extra, now_ns);
	if (bbr3_in_probe_bw(b))
		set_pacing(b, config, 1, out);
	else if (b->mode == MODE_PROBE_RTT)
		leave_probe_rtt(b, config, now_ns, out);
}

static void bbr3_observe(const void *state, const void *config, float out[CC_OBSERVED]) {
	const struct bbr3 *b = state;

	out[0] = (float)bbr3_bw_bps(b);
	out[1] = b->min_rtt_ns == NO_RTT ? 0 : (float)b->min_rtt_ns;
	out[2] = isinf((double)b->inflight_long) ? 0 : b->inflight_long;
	out[3] = isinf((double)b->inflight_short) ? 0 : b->inflight_short;
}

static uint8_t bbr3_mode(const void *state, const void *config) {
	const struct bbr3 *b = state;

	return b->mode;
}

const struct cc_ops cc_bbr3 = {
	.name = "bbr3",
	.summary = "BBR version 3: bounds from losses and shorter probes (draft-ietf-ccwg-bbr)",
	.reference = "Cardwell, Swett, Beshay: BBR Congestion Control, draft-ietf-ccwg-bbr",
	.params = params,
	.config_size = sizeof(struct config),
	.state_size = sizeof(struct bbr3),
	.rate = true,
	.any_idle = true,
	.observed = {"bw_bps", "min_rtt_ns", "inflight_longterm_segs", "inflight_shortterm_segs"},
	.given_window = bbr3_given_window,
	.init = bbr3_init,
	.on_ack = bbr3_on_ack,
	.on_loss = bbr3_on_loss,
	.on_rto = bbr3_on_rto,
	.on_spurious = bbr3_on_spurious,
	.on_idle = bbr3_on_idle,
	.observe = bbr3_observe,
	.mode = bbr3_mode,
	.modes = {MODES(CC_MODE_TEXT)},
};
