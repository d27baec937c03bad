// SPDX-License-Identifier: BSD-3-Clause
// NewReno (RFC 5681, 6582) in C++: each record of a run is what `cc: newreno` gives.
//
//	slow start, cwnd < ssthresh:  cwnd += min(acked, 2)
//	avoidance:                    cwnd += acked / cwnd              1 segment per round trip
//	loss or ECN echo:             ssthresh = cwnd = max(cwnd / 2, 2)   once per window
//	timeout:                      ssthresh likewise, cwnd = 1
//	idle for an RTO or more:      cwnd = min(cwnd, initial)
//	spurious loss:                cwnd and ssthresh as before, if that is more
#include <weir/cc.h>

#include <algorithm>
#include <new>

namespace {
constexpr double ssthresh_unset_segs = 1e9, ssthresh_min_segs = 2;

struct config {
	double initial_segs, beta;
};

const struct param params[] = {
	{"initial", "10", "initial and restart window in segments (RFC 6928)", UNIT_NONE,
		PARAM_F64(config, initial_segs), 1, 1000},
	{"beta", "50%", "what a loss leaves of the window", UNIT_RATIO, PARAM_F64(config, beta),
		0.01, 1},
	PARAM_END};

class newreno {
      public:
	void ack(const cc_ack &ack, cc_out &out) {
		episode_ &= ack.in_recovery;
		// An unused window was never tested (RFC 2861).
		if (ack.in_sequence && ack.cwnd_limited && !ack.in_recovery)
			grow(ack.acked_segs, out);
		slow_start_ = out.cwnd_segs < ssthresh_segs_;
	}
	void loss(const config &config, cc_out &out) {
		lower(config, out);
		episode_ = true;
		timeout_ = slow_start_ = false;
		out.cwnd_segs = ssthresh_segs_;
	}
	void timeout(const config &config, const cc_loss &loss, cc_out &out) {
		if (!episode_ && !loss.repeated)
			lower(config, out);
		episode_ = timeout_ = true;
		out.cwnd_segs = 1;
	}
	void spurious(cc_out &out) {
		out.cwnd_segs = std::max(out.cwnd_segs, prior_cwnd_segs_);
		ssthresh_segs_ = std::max(ssthresh_segs_, prior_ssthresh_segs_);
		episode_ = timeout_ = false;
	}
	uint8_t mode() const {
		return timeout_ ? 3 : episode_ ? 2 : slow_start_ ? 0 : 1;
	}
	double ssthresh_segs() const {
		return ssthresh_segs_;
	}

      private:
	double ssthresh_segs_ = ssthresh_unset_segs;
	double prior_cwnd_segs_ = 0, prior_ssthresh_segs_ = 0; // before the last reduction
	bool episode_ = false; // reduced already; ends with fast recovery
	bool timeout_ = false; // until the slow start after it is over
	bool slow_start_ = true;

	void lower(const config &config, const cc_out &out) {
		prior_cwnd_segs_ = out.cwnd_segs;
		prior_ssthresh_segs_ = ssthresh_segs_;
		ssthresh_segs_ = std::max(out.cwnd_segs * config.beta, ssthresh_min_segs);
	}
	// Slow start for `acked` segments; returns those left for congestion avoidance.
	double grow_slowly(double acked, cc_out &out) const {
		const double step = std::min(acked, timeout_ ? 1. : 2.); // RFC 3465 section 2.3
		const double room = ssthresh_segs_ - out.cwnd_segs;

		if (out.cwnd_segs + step <= ssthresh_segs_) {
			out.cwnd_segs += step;
			return 0;
		}
		out.cwnd_segs = ssthresh_segs_;
		return step - room;
	}
	void grow(double acked, cc_out &out) {
		if (out.cwnd_segs < ssthresh_segs_ && (acked = grow_slowly(acked, out)) <= 0)
			return;
		timeout_ = false;
		out.cwnd_segs += acked / out.cwnd_segs;
	}
};
static_assert(sizeof(newreno) <= CC_STATE_MAX_BYTES, "state too large");

newreno &of(void *state) {
	return *static_cast<newreno *>(state);
}

const config &read(const void *c) {
	return *static_cast<const config *>(c);
}

double given_window(const void *c) {
	return read(c).initial_segs;
}

void init(void *state, const void *c, uint32_t, uint64_t, uint64_t, cc_out *out) {
	new (state) newreno;
	*out = {read(c).initial_segs, 0};
}

void on_ack(void *state, const void *, const cc_ack *ack, cc_out *out) {
	of(state).ack(*ack, *out);
}

void on_loss(void *state, const void *c, const cc_loss *, cc_out *out) {
	of(state).loss(read(c), *out);
}

void on_rto(void *state, const void *c, const cc_loss *loss, cc_out *out) {
	of(state).timeout(read(c), *loss, *out);
}

void on_spurious(void *state, const void *, uint64_t, cc_out *out) {
	of(state).spurious(*out);
}

void on_idle(void *, const void *c, uint64_t, uint64_t, cc_out *out) {
	out->cwnd_segs = std::min(out->cwnd_segs, read(c).initial_segs);
}

void observe(const void *state, const void *, float values[CC_OBSERVED]) {
	values[0] = static_cast<float>(static_cast<const newreno *>(state)->ssthresh_segs());
}

uint8_t mode(const void *state, const void *) {
	return static_cast<const newreno *>(state)->mode();
}

double ssthresh(const void *state, const void *) {
	return static_cast<const newreno *>(state)->ssthresh_segs();
}

const cc_ops ops = {.name = "newreno_cpp", .summary = "NewReno with SACK and byte counting, in C++",
	.params = params, .config_size = sizeof(config), .state_size = sizeof(newreno), .prr = true,
	.ecn = true, .observed = {"ssthresh_segs"},
	.modes = {"slow_start", "avoidance", "recovery", "timeout"}, .given_window = given_window,
	.init = init, .on_ack = on_ack, .on_loss = on_loss, .on_rto = on_rto,
	.on_spurious = on_spurious, .on_idle = on_idle, .observe = observe, .mode = mode,
	.ssthresh = ssthresh};
} // namespace

CC_PLUGIN(ops);
