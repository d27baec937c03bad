// SPDX-License-Identifier: BSD-3-Clause
// Copa (Arun, Balakrishnan: "Copa: Practical Delay-Based Congestion Control for the Internet", NSDI
// 2018), with default, competitive and automatic mode.
//
// On every ACK, with windows in segments:
//
//	RTTmin       smallest RTT of the last max(10 s, 100 RTTmin) or of the flow's age
//	RTTstanding  smallest RTT of the last srtt/2
//	dq           = RTTstanding - RTTmin
//	lambda       = (window - 1/2) / RTTstanding      the rate, window as explained below
//	lambda_t     = 1 / (delta dq)                    the target rate; infinite for dq = 0
//	up           = lambda <= lambda_t                i.e. (window - 1/2) delta dq <= RTTstanding
//	cwnd        += or -= acked v / (delta cwnd)      v/delta segments per round trip
//	pacing       = 2 cwnd / RTTstanding              (`pacing_gain`, beyond slow start)
//
// Slow start: cwnd += acked (doubles every round trip) while up. It ends at the first ACK that says
// down, with what of the window which that ACK has measured needs no queue, or by heavy loss, or an
// ECN echo.
//
// Velocity v (>= 1): once per window, the first ACK of a segment sent after the last check compares
// cwnd with the window when that segment was sent. Same direction as at the last check: one more
// round trip in this direction; another, or none: v = 1. After 6 further round trips upward, or 3
// downward, v doubles at each check. In equilibrium the direction changes every 2.5 round trips, so
// v stays 1, the queue swings between 0 and 2.5/delta^ packets (1/delta^ = sum of all 1/delta_i)
// with period 5 RTT and mean 1.25/delta^, and the median dq is 1/(lambda delta).
//
// Modes: `default` uses the delta given. `competitive` does AIMD on 1/delta: + 1 per round trip
// without a loss, halved by a loss at most once per round trip, never below 1/delta as given.
// `auto` is in default mode if the queue was nearly empty in one of the last 8 round trips, which
// happens if all flows are Copa, and else in competitive mode: other traffic keeps it filled.
// Nearly empty: dq <= 0.1 (RTTmax - RTTmin), RTTmax over the last 4 round trips.
//
// Where we differ from the paper, genericCC (its authors' code) and mvfst, and why
//
//  1. Which window lambda uses (`window`): the one in force when the acknowledged segment was sent.
//     The RTT results from that window, not from the present one. In equilibrium they differ by at
//     most 1/delta; while cwnd changes fast, or is small, the present one would react to a queue
//     that it has not caused. All three sources use it (`now`). Model, 1000 flows, 10 Gbit/s,
//     20 ms, started over 5 s: JFI 0.995 and 2.8 packets per flow queued with `now`, 0.9999 and 2.4
//     with `sent`.
//  2. Half a segment: the transport sends while pipe + 1 <= cwnd, so a window of w real segments
//     has floor(w) in flight, w - 1/2 on average. At 16 segments that is 3 % of the rate, at 5 it
//     is 10 %.
//  3. Slow start's exit (`slow_start_exit: empty`) returns to what of the window in force when the
//     acknowledged segment was sent needs no queue, that window times RTTmin/RTTstanding, and takes
//     0.95 of it (`exit_gain`): the window as it was sent is known to be too large, and the growth
//     since is untested. The paper and genericCC keep cwnd (`keep`), twice as much, so that flows
//     starting one after another build a queue whose delay later flows include in their RTTmin;
//     these see no dq and keep growing. Model, 1000 flows as above, started over 1 and 5 s: JFI
//     0.32 to 0.995 and up to 24,000 drops with `keep`, against 0.9999 and none. weir-sim,
//     3000 flows within a second, 1 BDP of buffer, the first 12 s: 16,464 of 10 million packets
//     dropped and JFI 0.990; with the window that was sent (`sent`, `exit_gain` 1) 1.5 million and
//     0.54, with 0.7 of it 11,756 and 0.990. But 0.7 of it leaves a long path to be filled by
//     velocity, which overshoots: one and two flows at 42 Mbit/s, 800 ms, 0.74 % loss, 100 s from
//     the start, use 0.873 and 0.894 with 90 and 19 ms queued; with `empty` 0.905 and 0.919 with 7
//     and 11 ms, of which 2 ms stand and the others are slow start's overshoot.
//  4. A loss does not end slow start (`loss_exit: no`), as in all three sources: it may be random,
//     and 0.74 % of loss ended it at 130 of 2700 segments (42 Mbit/s, 800 ms: 0.83 to 0.85 used,
//     130 ms queued). Where a buffer is too shallow for a delay signal, or RTTmin was learned in a
//     full queue, heavy loss ends it (12), and an ECN echo does. The cost: two flows on a buffer of
//     0.1 BDP lose 761 packets in 40 s, 648 where a loss ends it.
//  5. Slow start paces at 2 cwnd/RTT, so beyond half a BDP its window is sent as a train above the
//     link's rate, followed by a gap, and ACK clocking preserves it. Within the train the queue
//     always looks full, so that v is reset at once and the window grows slowly. Hence the two
//     round trips after slow start are paced at 1.1 cwnd/RTTstanding (`spread`), which spreads the
//     train. Model, one flow, 10 Gbit/s, 20 ms: utilisation of the first 10 s 0.97 (slow start
//     costs 0.02) instead of 0.86. No source has it; at their rates the train is short.
//  6. Velocity is reset as soon as the needed direction opposes the current one (mvfst does this
//     when v > 1, the paper waits for the next check) and the window for the next check starts
//     there. Without it v goes on for up to a round trip and a half beyond the target.
//  7. Velocity waits for 6 further round trips upward (`velocity_rtts`) and for 3 downward
//     (`drain_rtts`); all sources have one number, 3 (genericCC: 1). A swing lasts 5 round trips of
//     the flows that make it. One with a shorter round trip sees more of its own go by in one
//     direction, and with 3 it doubled in each swing: of 20 flows with 15 to 300 ms that of 60 ms
//     had 2.6 and that of 300 ms 7.2 of 100 Mbit/s (JFI 0.895); with 6 and 3 they have 4.2 to 5.2
//     (0.997). What drains is bounded by the queue itself (below), so that it need not wait: with 6
//     both ways a queue of 60 ms stood for 12 s on the path of 800 ms. With mode switching the
//     index is 0.936, with 3 and 3 0.838. Velocity has two ceilings. Up: delta cwnd, no more than
//     slow start's doubling (genericCC; the paper has none). Down: 2/3 (lambda/lambda_t - 1)
//     (`drain_cap`): lambda/lambda_t - 1 is the flow's own queue beyond its target in units of
//     1/delta, and a decrease shows in dq 1.5 round trips later, so this drains exactly that queue.
//     Near the target it is below 1, where v = 1 rules: equilibrium is untouched. Model, one flow,
//     20 ms, utilisation of the first 10 s at 1 and 10 Gbit/s: 0.98 and 0.97; without 6 and the
//     second ceiling 0.90 and 0.91, without any of them 0.54 and 0.84, and without 1, 3 and 5 as
//     well 0.46 at 10 Gbit/s.
//     On a long path the first ceiling is too high: v doubles six times before the queue that it
//     makes is seen. Two flows at 42 Mbit/s, 800 ms, 0.74 % loss, six seeds, have 35 ms queued at
//     18 to 28 s and 2 ms afterwards. With `velocity_cap: 0.1`, 10 % of the window per round trip,
//     it is 6 ms, as much is used (0.917), and 20 flows with 15 to 300 ms share as well (0.998).
//     Its cost: where the rate of one flow's link goes from 10 to 100 Mbit/s, 90 % of it are used
//     after 0.55 s instead of 0.30 (20 ms; at 100 ms after 3.1 instead of 1.5 s) though with 1
//     instead of 17 ms of queue, and where it goes back the queue is below 10 ms after 2.35 s
//     instead of 1.65. As a ceiling upward only it has the same 6 ms and the same climb (0.53 s, at
//     100 ms 3.0); the way back is 1.74 s where it is 2.82 with both and 1.54 without (other start
//     and buffer). Of the claims of `weir study copa` 75 of 88 hold as it is and 74 with it:
//     with mode switching Jain's index over round trips of 15 to 300 ms is 0.87, and no longer
//     near the published 0.76, where it is 0.81 as it is. So the default stays.
//  8. RTTmin's window: the paper's 10 s are 500 round trips at 20 ms but 12.5 on an 800 ms path,
//     less than slow start's overshoot takes to drain (3 + log2 of the BDP): the standing queue
//     would become RTTmin. Hence at least 100 RTTmin (genericCC: 20; mvfst: 10 s). Model, 42
//     Mbit/s, 800 ms, 0.74 % loss: 8 packets queued instead of 1800. The filter keeps three samples
//     (minmax.h), which is exact here: every trough renews the minimum.
//  9. RTTstanding: eight sub-windows of srtt/14, the current one included, so that every sample of
//     the last srtt/2 counts and none older than 4/7 srtt. The queue's swing depends on the lag of
//     this minimum (1 % of the mean queue per srtt/100), so a three-sample filter, which
//     after an expiry covers only half of its window, is not exact enough. A falling RTT is seen at
//     once, a rising one 0.50 to 0.57 srtt later. srtt is of the newest segment that each ACK
//     acknowledges, as in genericCC and mvfst. The transport's is of the oldest: the wait of a
//     delayed ACK in it lets the swing of one flow at 4.5 Mbit/s grow from 13 to 29 ms.
// 10. Ties: lambda = lambda_t counts as up (as in mvfst; for dq = 0 it must). cwnd equal to the
//     window at sending is no direction: v = 1 (mvfst: down). Windows are compared as floats, as
//     the transport keeps them. Nearly empty is dq <= 0.1 spread, which includes a constant RTT
//     (with genericCC's < a flow is competitive on an idle link).
// 11. cwnd grows only if the window was the limit: an application-limited flow would otherwise
//     reach a window that it never tested. It may always shrink (a gate on that once kept a window
//     at 6 BDP).
// 12. Loss. Default mode ignores it, as the paper says, up to a loss rate of 10 % (`heavy_loss`)
//     over two round trips and at least 10 segments, beyond chance: three sigma, so 10 % of random
//     loss is ignored as the paper demands. Then cwnd is halved (`backoff`) once per such period,
//     and the direction is down until a period has less. Such loss is a full queue, whatever dq
//     says: RTTmin is wrong, or the buffer smaller than 2.5/delta^. genericCC: x 0.7 beyond 30 %
//     and 20 packets. A bare threshold of 10 % halves again and again at 10 % random loss (model,
//     12 Mbit/s, 50 ms: utilisation 0.11); with three sigma weir-sim has 0.98 there and 0.992 at
//     5 %.
// 13. An ECN echo is never random: cwnd is halved once per window (RFC 3168). No source has it.
// 14. A timeout sets the minimum window and restarts slow start, which losses do not end below half
//     (`backoff`) of the window that timed out: if losses are random, the path carried that much.
//     The sources all differ here. After a spurious timeout or loss, window and slow start are as
//     before (1/delta of competitive mode stays halved). After an idle RTO: slow start, from the
//     initial window at most, because the old window is out of date.
// 15. Nearly empty also where the flow's own share of the queue is below a quarter of a segment
//     (`empty_segs`): at 100 Mbit/s 10 % of one flow's swing is less than one packet's time.
// 16. delta keeps its meaning in competitive mode: 1/delta never falls below the configured one and
//     returns to it on leaving. genericCC clamps to 0.5 whatever was configured.
// 17. The nearly-empty test looks back 8 round trips (`empty_rtts`). The paper's 5 are one period
//     of the swing: a flow that misses one trough takes its own queue for that of other traffic,
//     adds to it and hides the next one. weir-sim, alone, 5 to 100 Mbit/s, 10 to 100 ms, 1 to
//     10 flows, 70 cells with a swing up to 1.6 BDP: with 5, 7, 8 and 10 at most 22, 6, 2 and 6 %
//     of the time competitive, the queue at most 1.94, 1.17, 1.15 and 1.41 of theory (default mode:
//     1.15). Against CUBIC and NewReno (108 cells each) shares are off the fair one by 0.175 and
//     0.077 on average with 5, by 0.173 and 0.074 with 8; they are noticed after 8.5 and 13 round
//     trips (medians). With 9 and 12 at most 16 and 0 % competitive alone; 8 is the shortest
//     without a cell beyond 5 %.
// 18. The window never falls below 2 (`min_cwnd`): with 1, a delayed ACK would stop the ACK clock.
//     So this algorithm cannot use a fair rate of less than 2 segments per RTT: expect losses.
//
// 19. Datacenter (section 5.5 of the paper; `dialect: datacenter`): the propagation delay is known
//     (`rtt_min`, no dialect can set it; with 0s it is measured), the latest RTT stands for
//     RTTstanding in dq and lambda, and a round trip has a direction only if more than 2/3 of its
//     ACKs moved cwnd that way (`votes`). The paper names no mode but the default. Everything else
//     is as here, but for the reset by a single ACK, which the votes replace.
//
// Dialects (`dialect`) set parameters, which a config may set otherwise:
//
//	                     here          paper      genericcc      mvfst
//	delta                0.5           0.5        0.5            0.05
//	rtt_min_window       10s           10s        10s            10s
//	rtt_min_rtts         100           0          20             0
//	dq                   standing      standing   standing       latest   (an RTT)
//	window               sent          now        now            now
//	bias                 0.5           0          0              0
//	slow_start_exit      empty         keep       keep           keep
//	spread               1.1           2          2              2
//	velocity_rtts        6             3          1              3
//	drain_rtts           3             3          1              3
//	velocity_reset       yes           no         no             yes
//	velocity_cap         1             1          1              0
//	drain_cap            0.67          0          0              0
//	heavy_loss, backoff  10%, 0.5      0%         30%, 0.7       0%
//	pacing_rtt           standing      standing   standing       srtt
//	empty_segs           0.25          0          0              0
//	empty_rtts           8             5          4              5
//	min_cwnd             2             1          2              2
//
// `datacenter`: dq latest, rate_rtt latest, votes 66.7%, velocity_reset no.
//
// They leave `mode` alone: mvfst has the default mode only. The paper has no velocity_cap, but its
// authors' code has: without it v doubles on where no dq is seen, one flow of 20 with 15 to 300 ms
// (`mode: auto`) sends 9 times what arrives within 45 s, and the 100 s take 110 s of CPU; with it
// 1,221 of 813,000 packets are dropped. Not covered are genericCC's srtt gain of 1/16, its votes of
// ups and downs, its first 19 ACKs without a window update and its strict comparisons; mvfst's
// doubling by a timer of srtt in slow start, and its direction `down` where the window is the same.
//
// Without `heavy_loss` (paper, mvfst) nothing but the peer's window bounds cwnd: a flow that starts
// into a full queue, or sees no other for the 10 s of RTTmin's window, takes it for RTTmin, sees no
// dq and goes on growing whatever it loses. That is the law's, not the transport's: with samples of
// what was retransmitted (Karn), by its timestamp's echo or by RACK, two `mvfst` flows beside BBR
// on 75 packets of buffer send 2.4 and 2100 times what arrives, without 2.5; with `rtt_min` known
// 0.1. Behind a policer there is never a dq. 100 flows of `paper` at 1 Gbit/s, 20 ms and 1 BDP of
// buffer: windows of 13,000 segments where the path and its buffer hold 3,300, 95 % of what is sent
// is lost, JFI 0.05. The group's `rwnd: 6MB`, Linux's, bounds them (JFI 0.17).
//
// Limits: with 2.5/delta^ beyond half a BDP the queue no longer empties and the mean leaves the
// theory (at 100 Mbit/s, 20 ms: 0.86 of it for n = 20). One flow's window and queue are whole
// packets, so its median dq is on a lattice of one packet's time. Jitter beyond 1/(delta lambda)
// (2.5 us for one flow at 10 Gbit/s) hides the signal and costs throughput. `auto` alone still errs
// with a swing beyond 2 BDP (10 flows, 10 Mbit/s, 20 ms: 41 % competitive), and after some starts
// of few flows with large windows (2 flows, 100 Mbit/s, 100 ms: 15 % with one seed of three); it
// gets 0.03 to 0.31 of the link from CUBIC where 0.5 is fair with 4 BDP of buffer at 100 ms.
#include "common/base/f64.h"
#include "common/base/likely.h"
#include "common/base/minmax.h"
#include "sender/cc/copa_params.h"

#include <math.h>

#define STANDING_CLOSED 7 // closed sub-windows
#define STANDING_WIDTH (1.0 / STANDING_CLOSED) // of the window
#define RTTMAX_EPOCHS 4 // RTTmax is that of so many round trips
#define SPREAD_CHECKS 2 // round trips after slow start: 5 above
#define LOSS_SAMPLE_SEGS 10 // with fewer segments a loss rate is not significant
#define NO_RTT INFINITY

enum direction { DIR_DOWN = -1, DIR_NONE = 0, DIR_UP = 1 };

// RTTs are kept as floats: any length, to a part in ten million. Each ACK touches the members up to
// the flags.
struct copa {
	struct minmax rtt_min;

	uint64_t sub_end_ns; // of the current sub-window of RTTstanding
	float sub_ns[STANDING_CLOSED]; // minima of the closed ones, NO_RTT: no sample
	float sub_now_ns; // of the current one
	float sub_closed_ns; // smallest of sub_ns
	float standing_ns;
	float dq_ns;
	float srtt_ns; // RFC 6298, of the newest segments' RTTs; NO_RTT: no sample yet
	float rtt_max_now_ns; // RTTmax of this round trip
	uint32_t lost, acked; // segments in this loss period

	double velocity;
	double inv_delta;
	uint64_t check_ns; // segments sent from here on make the next direction check
	uint64_t epoch_ns; // the same for the round trips losses and RTTmax are counted in
	uint16_t mss_bytes;
	uint8_t sub_next; // next of sub_ns to be replaced
	int8_t dir;
	uint8_t spread : 2; // checks left in which slow start's train is paced apart
	bool slow_start : 1;
	bool undo_slow_start : 1; // as undo_segs
	bool lossy : 1; // the last loss period had heavy loss
	bool competitive : 1;
	bool seen_loss : 1; // in this round trip, for AIMD

	uint8_t same; // successive checks with the same dir
	uint8_t not_empty; // round trips since the queue was nearly empty
	uint8_t epoch; // next of rtt_max_ns to be replaced
	uint16_t acks, ups; // since the last direction check; of those, how many said up
	uint32_t prior_lost, prior_acked; // in the last loss period
	float rtt_max_ns[RTTMAX_EPOCHS]; // of the last round trips
	float proven_segs; // losses do not end slow start below this window
	float undo_segs; // the window before the last loss or timeout
};
static_assert(sizeof(struct copa) <= CC_STATE_MAX_BYTES, "state too large");

static void restart_velocity(struct copa *c, int8_t dir, uint64_t now_ns) {
	c->velocity = 1;
	c->same = 0;
	c->dir = dir;
	c->check_ns = now_ns;
	c->acks = c->ups = 0;
}

static void leave_slow_start(struct copa *c) {
	if (c->slow_start)
		c->spread = SPREAD_CHECKS;
	c->slow_start = false;
	c->proven_segs = 0;
}

static void set_out(
	const struct copa *c, const struct config *cfg, double cwnd_segs, struct cc_out *out) {
	double gain = c->spread > 0 ? cfg->spread_gain : c->slow_start ? 2 : cfg->pacing_gain;
	float rtt_ns = likely(cfg->pacing_rtt == PACING_STANDING) ? c->standing_ns : c->srtt_ns;

	out->cwnd_segs = max_f64(cwnd_segs, cfg->min_segs);
	if (c->standing_ns < NO_RTT)
		out->pacing_bps = gain * 1e9 * out->cwnd_segs * (8u * c->mss_bytes)
			/ max_f64((double)rtt_ns, 1);
}

static double copa_given_window(const void *config) {
	const struct config *cfg = config;

	if (cfg->heavy_loss <= 0)
		return (double)INFINITY;
	return max_f64(cfg->initial_segs, cfg->min_segs);
}

static void copa_init(void *state, const void *config, uint32_t mss_bytes, uint64_t rtt_ns,
	uint64_t now_ns, struct cc_out *out) {
	const struct config *cfg = config;
	struct copa *c = state;

	*c = (struct copa){
		.inv_delta = 1 / cfg->delta,
		.mss_bytes = (uint16_t)mss_bytes,
		.srtt_ns = rtt_ns > 0 ? (float)rtt_ns : NO_RTT,
		.slow_start = true,
		.competitive = cfg->mode == MODE_COMPETITIVE,
		.sub_now_ns = NO_RTT,
		.sub_closed_ns = NO_RTT,
		.standing_ns = NO_RTT,
		.epoch_ns = now_ns,
	};
	for (int i = 0; i < STANDING_CLOSED; i++)
		c->sub_ns[i] = NO_RTT;
	minmax_reset(&c->rtt_min, now_ns, UINT64_MAX);
	restart_velocity(c, DIR_NONE, now_ns);
	out->pacing_bps = 0;
	set_out(c, cfg, cfg->initial_segs, out);
}

// Closes the sub-windows that end by now.
static void rotate_standing(struct copa *c, uint64_t now_ns, double window_ns) {
	uint64_t width_ns = (uint64_t)max_f64(window_ns * STANDING_WIDTH, 1);
	float closing_ns = c->sub_now_ns, least_ns = NO_RTT;

	if (now_ns - c->sub_end_ns >= (STANDING_CLOSED + 1) * width_ns) {
		for (int i = 0; i < STANDING_CLOSED; i++)
			c->sub_ns[i] = NO_RTT;
		c->sub_end_ns = now_ns + width_ns;
	} else {
		while (now_ns >= c->sub_end_ns) {
			c->sub_ns[c->sub_next] = closing_ns;
			if (++c->sub_next == STANDING_CLOSED)
				c->sub_next = 0;
			c->sub_end_ns += width_ns;
			closing_ns = NO_RTT;
		}
	}
	c->sub_now_ns = NO_RTT;
	for (int i = 0; i < STANDING_CLOSED; i++)
		least_ns = c->sub_ns[i] < least_ns ? c->sub_ns[i] : least_ns;
	c->sub_closed_ns = least_ns;
}

static float rtt_min_ns(const struct copa *c, const struct config *cfg) {
	return unlikely(cfg->rtt_min_ns > 0) ? (float)cfg->rtt_min_ns
					     : (float)(int64_t)minmax_get(&c->rtt_min);
}

// RTTmin, RTTstanding and dq after this sample. Times are converted to and from double as signed
// numbers, which takes one instruction where unsigned ones take five.
static void measure(struct copa *c, const struct config *cfg, const struct cc_ack *ack) {
	float rtt_ns = (float)(int64_t)ack->rtt_ns;
	double window_ns = max_f64(
		cfg->rtt_min_window_ns, cfg->rtt_min_rtts * f64_of(minmax_get(&c->rtt_min)));

	minmax_running_min(&c->rtt_min, u64_of(window_ns), ack->now_ns, ack->rtt_ns);
	c->srtt_ns =
		likely(c->srtt_ns < NO_RTT) ? c->srtt_ns - c->srtt_ns / 8 + rtt_ns / 8 : rtt_ns;
	if (ack->now_ns >= c->sub_end_ns)
		rotate_standing(c, ack->now_ns, cfg->standing_srtts * (double)c->srtt_ns);
	if (rtt_ns < c->sub_now_ns)
		c->sub_now_ns = rtt_ns;
	if (rtt_ns > c->rtt_max_now_ns)
		c->rtt_max_now_ns = rtt_ns;
	c->standing_ns = c->sub_now_ns < c->sub_closed_ns ? c->sub_now_ns : c->sub_closed_ns;
	if (likely(cfg->dq == RTT_STANDING))
		rtt_ns = c->standing_ns;
	rtt_ns -= rtt_min_ns(c, cfg);
	c->dq_ns = rtt_ns > 0 ? rtt_ns : 0;
}

static bool nearly_empty(const struct copa *c, const struct config *cfg, double window_segs) {
	float max_ns = c->rtt_max_now_ns;
	double dq_ns = (double)c->dq_ns;

	for (int i = 0; i < RTTMAX_EPOCHS; i++)
		if (c->rtt_max_ns[i] > max_ns)
			max_ns = c->rtt_max_ns[i];
	return dq_ns <= cfg->empty_spread * max_f64((double)(max_ns - rtt_min_ns(c, cfg)), 0)
		|| window_segs * dq_ns <= cfg->empty_segs * (double)c->standing_ns;
}

// What of the window that was sent needs no queue.
static double without_queue(const struct copa *c, const struct config *cfg) {
	if (cfg->slow_start_exit == EXIT_SENT)
		return 1;
	return (double)(rtt_min_ns(c, cfg) / c->standing_ns);
}

// The mode for the next round trip, and its 1/delta.
static void choose_mode(struct copa *c, const struct config *cfg) {
	double inv_delta = 1 / cfg->delta;
	bool competitive = cfg->mode == MODE_COMPETITIVE
		|| (cfg->mode == MODE_AUTO && (double)c->not_empty > cfg->empty_rtts);

	if (!competitive || !c->competitive)
		c->inv_delta = inv_delta; // also follows a change of the parameter
	else if (!c->seen_loss)
		c->inv_delta = max_f64(c->inv_delta + 1, inv_delta);
	c->competitive = competitive;
	c->seen_loss = false;
}

static void halve_inv_delta(struct copa *c, const struct config *cfg) {
	if (c->competitive && !c->seen_loss)
		c->inv_delta = max_f64(c->inv_delta / 2, 1 / cfg->delta);
	c->seen_loss = true;
}

// Whether `lost` of `total` exceeds random loss with probability p by more than three sigma.
static bool beyond_chance(double lost, double total, double p) {
	double over = lost - p * total;

	return p > 0 && over > 0 && over * over > 9 * p * (1 - p) * total;
}

// Once per round trip: the loss rate, RTTmax, the mode. True if the window must be cut.
static bool end_epoch(struct copa *c, const struct config *cfg, uint64_t now_ns) {
	uint32_t lost = c->lost + c->prior_lost;
	uint32_t total = lost + c->acked + c->prior_acked;

	c->epoch_ns = now_ns;
	c->rtt_max_ns[c->epoch] = c->rtt_max_now_ns;
	c->epoch = (uint8_t)((c->epoch + 1) % RTTMAX_EPOCHS);
	c->rtt_max_now_ns = 0;
	c->not_empty = c->slow_start ? 0 : (uint8_t)(c->not_empty + (c->not_empty < UINT8_MAX));
	choose_mode(c, cfg);

	if (total < LOSS_SAMPLE_SEGS)
		return false;
	c->lossy = beyond_chance(lost, total, cfg->heavy_loss);
	c->prior_lost = c->lossy ? 0 : c->lost;
	c->prior_acked = c->lossy ? 0 : c->acked;
	c->lost = c->acked = 0;
	return c->lossy;
}

static void vote(struct copa *c, bool up) {
	if (c->acks == UINT16_MAX) {
		c->acks /= 2;
		c->ups /= 2;
	}
	c->acks++;
	c->ups = (uint16_t)(c->ups + up);
}

// The direction of the last window.
static int8_t direction(const struct copa *c, const struct config *cfg, const struct cc_ack *ack,
	double cwnd_segs) {
	float now = (float)cwnd_segs, sent = (float)ack->cwnd_at_send;
	double needed = cfg->votes * c->acks;

	if (cfg->votes > 0)
		return c->ups > needed ? DIR_UP : c->acks - c->ups > needed ? DIR_DOWN : DIR_NONE;
	return now > sent ? DIR_UP : now < sent ? DIR_DOWN : DIR_NONE;
}

// The direction of the last window, and v.
static void check_velocity(
	struct copa *c, const struct config *cfg, const struct cc_ack *ack, double cwnd_segs) {
	int8_t dir = direction(c, cfg, ack, cwnd_segs);

	c->check_ns = ack->now_ns;
	c->acks = c->ups = 0;
	if (c->spread > 0)
		c->spread = c->spread == SPREAD_CHECKS; // 2, 1, 0
	if (dir != c->dir || dir == DIR_NONE) {
		restart_velocity(c, dir, ack->now_ns);
		return;
	}
	c->same = (uint8_t)(c->same + (c->same < UINT8_MAX));
	if (c->same >= (dir == DIR_UP ? cfg->velocity_rtts : cfg->drain_rtts))
		c->velocity *= 2;
}

// One step of the law; load = lambda / lambda_t.
static double step(struct copa *c, const struct config *cfg, const struct cc_ack *ack, bool up,
	double load, double cwnd_segs) {
	double cap = cfg->velocity_cap * cwnd_segs;

	if (cfg->velocity_cap > 0 && c->velocity * c->inv_delta > cap)
		c->velocity = max_f64(cap / c->inv_delta, 1);
	cap = max_f64(cfg->drain_cap * (load - 1), 1);
	if (!up && cfg->drain_cap > 0 && c->velocity > cap)
		c->velocity = cap;
	if (up && !ack->cwnd_limited)
		return cwnd_segs;

	double delta_segs = ack->acked_segs * c->velocity * c->inv_delta / cwnd_segs;
	return up ? cwnd_segs + delta_segs : cwnd_segs - delta_segs;
}

static void copa_on_ack(
	void *state, const void *config, const struct cc_ack *ack, struct cc_out *out) {
	const struct config *cfg = config;
	struct copa *c = state;
	double cwnd_segs = out->cwnd_segs, window_segs, load, limit;
	bool check = ack->sent_ns >= c->check_ns, up;

	c->lost += ack->lost_segs;
	c->acked += ack->acked_segs;
	if (ack->rtt_ns == 0) { // no RTT sample; but slow start after a timeout grows on such ACKs
		if (c->slow_start && ack->cwnd_limited)
			set_out(c, cfg, cwnd_segs + ack->acked_segs, out);
		return;
	}
	measure(c, cfg, ack);
	window_segs = max_f64(
		(cfg->window == WINDOW_SENT ? ack->cwnd_at_send : cwnd_segs) - cfg->bias_segs, 0);
	if (cfg->mode == MODE_AUTO && nearly_empty(c, cfg, window_segs))
		c->not_empty = 0;
	if (ack->sent_ns >= c->epoch_ns && end_epoch(c, cfg, ack->now_ns)) {
		cwnd_segs *= cfg->backoff;
		leave_slow_start(c);
		restart_velocity(c, DIR_DOWN, ack->now_ns);
		check = false;
	}

	// lambda / lambda_t = load / limit, without a division where none is needed
	load = window_segs * (double)c->dq_ns;
	limit = c->inv_delta
		* (likely(cfg->rate_rtt == RTT_STANDING) ? (double)c->standing_ns
							 : f64_of(ack->rtt_ns));
	up = load <= limit && !c->lossy;
	if (c->slow_start) {
		if (up) {
			if (ack->cwnd_limited)
				cwnd_segs += ack->acked_segs;
			set_out(c, cfg, cwnd_segs, out);
			return;
		}
		leave_slow_start(c);
		if (cfg->slow_start_exit != EXIT_KEEP && ack->cwnd_at_send < cwnd_segs)
			cwnd_segs = cfg->exit_gain * ack->cwnd_at_send * without_queue(c, cfg);
		restart_velocity(c, DIR_DOWN, ack->now_ns);
		check = false;
	}
	if (check)
		check_velocity(c, cfg, ack, cwnd_segs);
	if (unlikely(cfg->votes > 0))
		vote(c, up);
	if (c->velocity > 1) {
		if (cfg->velocity_reset && c->dir != (up ? DIR_UP : DIR_DOWN))
			restart_velocity(c, up ? DIR_UP : DIR_DOWN, ack->now_ns);
		load /= limit;
	}
	set_out(c, cfg, step(c, cfg, ack, up, load, cwnd_segs), out);
}

static void remember(struct copa *c, const struct cc_out *out) {
	c->undo_segs = (float)out->cwnd_segs;
	c->undo_slow_start = c->slow_start;
}

static void copa_on_loss(
	void *state, const void *config, const struct cc_loss *loss, struct cc_out *out) {
	const struct config *cfg = config;
	struct copa *c = state;

	remember(c, out);
	halve_inv_delta(c, cfg);
	if (c->slow_start && !loss->ecn
		&& (!cfg->loss_exit || out->cwnd_segs < (double)c->proven_segs))
		return;
	if (c->slow_start || loss->ecn)
		restart_velocity(c, DIR_DOWN, loss->now_ns);
	leave_slow_start(c);
	if (loss->ecn)
		set_out(c, cfg, out->cwnd_segs * cfg->backoff, out);
}

static void restart(struct copa *c, const struct config *cfg, uint64_t now_ns, double segs,
	struct cc_out *out) {
	c->slow_start = true;
	c->spread = 0;
	c->lossy = false;
	c->lost = c->prior_lost = c->acked = c->prior_acked = 0;
	restart_velocity(c, DIR_NONE, now_ns);
	set_out(c, cfg, segs, out);
}

static void copa_on_rto(
	void *state, const void *config, const struct cc_loss *loss, struct cc_out *out) {
	const struct config *cfg = config;
	struct copa *c = state;

	if (!loss->repeated)
		remember(c, out);
	halve_inv_delta(c, cfg);
	c->proven_segs = (float)(cfg->backoff * max_f64(out->cwnd_segs, (double)c->proven_segs));
	restart(c, cfg, loss->now_ns, cfg->min_segs, out);
}

static void copa_on_spurious(void *state, const void *config, uint64_t now_ns, struct cc_out *out) {
	struct copa *c = state;

	c->slow_start = c->undo_slow_start;
	if (!c->slow_start)
		c->proven_segs = 0;
	restart_velocity(c, DIR_NONE, now_ns);
	set_out(c, config, max_f64(out->cwnd_segs, (double)c->undo_segs), out);
}

static void copa_on_idle(
	void *state, const void *config, uint64_t now_ns, uint64_t idle_ns, struct cc_out *out) {
	const struct config *cfg = config;

	if (out->cwnd_segs < cfg->initial_segs)
		restart(state, cfg, now_ns, out->cwnd_segs, out);
	else
		restart(state, cfg, now_ns, cfg->initial_segs, out);
}

static void copa_observe(const void *state, const void *config, float out[CC_OBSERVED]) {
	const struct copa *c = state;

	out[0] = (float)c->velocity;
	out[1] = (float)(1 / c->inv_delta);
	out[2] = c->dq_ns;
	out[3] = rtt_min_ns(c, config);
}

#define MODES(V)                                                                                   \
	V(IN_SLOW_START, "slow_start")                                                             \
	V(IN_DEFAULT, "default")                                                                   \
	V(IN_COMPETITIVE, "competitive")
enum { MODES(CC_MODE_CONSTANT) };

static uint8_t copa_mode(const void *state, const void *config) {
	const struct copa *c = state;

	return c->slow_start ? IN_SLOW_START : c->competitive ? IN_COMPETITIVE : IN_DEFAULT;
}

const struct cc_ops cc_copa = {
	.name = "copa",
	.summary = "Copa with default, competitive and automatic mode (NSDI 2018)",
	.reference = "Arun, Balakrishnan: Copa: Practical Delay-Based Congestion "
		     "Control for the Internet, NSDI 2018",
	.params = params,
	.preset = "dialect",
	.presets = dialects,
	.config_size = sizeof(struct config),
	.state_size = sizeof(struct copa),
	.ecn = true,
	.samples = true,
	.observed = {"velocity", "delta", "dq_ns", "rtt_min_ns"},
	.given_window = copa_given_window,
	.init = copa_init,
	.on_ack = copa_on_ack,
	.on_loss = copa_on_loss,
	.on_rto = copa_on_rto,
	.on_spurious = copa_on_spurious,
	.on_idle = copa_on_idle,
	.observe = copa_observe,
	.mode = copa_mode,
	.modes = {MODES(CC_MODE_TEXT)},
};
