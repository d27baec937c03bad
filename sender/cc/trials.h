// SPDX-License-Identifier: BSD-3-Clause
// What PCC Allegro and PCC Vivace share: rates are tried in monitor intervals (monitor.h), and what
// follows from a result is the control's.
//
//	STARTING  one interval at the present rate, and its result is awaited; so in modes beyond
//	          PROBING
//	PROBING   pairs of intervals, of rate (1 + eps) and rate (1 - eps), each pair in an order
//	          drawn at random
//
// While results are awaited, the rate is sent. A timeout halves the rate and starts PROBING again,
// but not that of a retransmission, which was not sent at that rate; so does the end of a pause,
// without halving.
#pragma once
#include "sender/cc/monitor.h"

#define TRIALS_SEGS_MIN 4.0 // of the window: receivers with delayed ACKs keep sending them

#define TRIALS_MODES(V) V(TRIALS_STARTING, "starting") V(TRIALS_PROBING, "probing")
enum trials_mode { TRIALS_MODES(CC_MODE_CONSTANT) TRIALS_MORE };
enum trials_tag { TRIALS_WAIT, TRIALS_TRY, TRIALS_UP, TRIALS_DOWN };

// A control's config begins with this.
struct trials_config {
	double initial_segs, min_bps;
	double epsilon;
};
// clang-format off
#define TRIALS_PARAMS                                                                              \
	{"initial", "10", "segments per round trip at the start", UNIT_NONE,                       \
		PARAM_F64(struct trials_config, initial_segs), 1, 1000},                           \
	{"min_rate", "100kbit", "smallest rate", UNIT_RATE_BPS,                                    \
		PARAM_F64(struct trials_config, min_bps), 1000, 1e12}
// clang-format on

struct trials;

struct trials_rules {
	// An interval's length in round trips: the least, and what is drawn beyond.
	double rtts_min, rtts_spread;
	uint8_t probes; // intervals of PROBING
	// The result of an interval with a tag, which sent what it was to. True: the rate may have
	// changed, so that a new interval starts at once.
	bool (*result)(
		struct trials *t, const void *config, const struct monitor *m, uint64_t now_ns);
};

// And this is its state: a struct around it would take a cache line more.
struct trials {
	const struct trials_rules *rules;
	struct monitors q;
	float rate_mbps;
	float last_u; // the result to beat
	float u[2]; // PROBING: of a pair's rates, above and below
	uint32_t mss_bytes, seed;
	uint8_t mode; // enum trials_mode, or beyond
	uint8_t sent, known; // intervals of this mode with a tag, and results
	uint8_t order; // a bit per pair: the rate above comes first
	uint8_t eps; // of PROBING, in steps of `epsilon`
	int8_t dir; // where the rate is moving
	uint8_t step; // the control's own: PCC's n, Vivace's tau
	int8_t tally; // likewise: PCC's votes, Vivace's k
};
static_assert(sizeof(struct trials) <= CC_STATE_MAX_BYTES, "state too large");

void trials_set_rate(struct trials *t, const void *config, double rate_mbps);
// From now on: PROBING, at its beginning.
void trials_probe(struct trials *t, uint64_t now_ns);

// For a control's table, and for its init.
void trials_init(struct trials *t, const struct trials_rules *rules, const void *config,
	uint32_t mss_bytes, uint64_t rtt_ns, uint64_t now_ns, struct cc_out *out);
double trials_given_window(const void *config);
void trials_on_ack(void *state, const void *config, const struct cc_ack *ack, struct cc_out *out);
void trials_on_loss(
	void *state, const void *config, const struct cc_loss *loss, struct cc_out *out);
void trials_on_rto(void *state, const void *config, const struct cc_loss *loss, struct cc_out *out);
void trials_on_idle(
	void *state, const void *config, uint64_t now_ns, uint64_t idle_ns, struct cc_out *out);
uint8_t trials_mode(const void *state, const void *config);
