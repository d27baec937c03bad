// SPDX-License-Identifier: BSD-3-Clause
#include "sender/cc/trials.h"

#include "sender/cc/cc_draw.h"

double trials_given_window(const void *config) {
	return MONITOR_UNACKED_SEGS;
}

void trials_set_rate(struct trials *t, const void *config, double rate_mbps) {
	const struct trials_config *cfg = config;

	t->rate_mbps = monitor_bounded(rate_mbps, cfg->min_bps);
}

void trials_probe(struct trials *t, uint64_t now_ns) {
	t->mode = TRIALS_PROBING;
	t->sent = t->known = 0;
	monitors_forget(&t->q, TRIALS_WAIT);
	t->order = (uint8_t)(cc_draw(t->seed, now_ns) >> 40 & ((1u << t->rules->probes / 2) - 1));
}

static void start_interval(struct trials *t, const struct trials_config *cfg, uint64_t now_ns) {
	double rate = (double)t->rate_mbps;
	enum trials_tag tag = TRIALS_WAIT;

	if (t->mode != TRIALS_PROBING && t->sent == 0) {
		tag = TRIALS_TRY;
		t->sent = 1;
	} else if (t->mode == TRIALS_PROBING && t->sent < t->rules->probes) {
		bool up_first = (t->order >> t->sent / 2 & 1) != 0;

		tag = (t->sent % 2 == 0) == up_first ? TRIALS_UP : TRIALS_DOWN;
		rate *= tag == TRIALS_UP ? 1 + t->eps * cfg->epsilon : 1 - t->eps * cfg->epsilon;
		t->sent++;
	}
	monitors_start(&t->q, rate, (uint8_t)tag, now_ns);
}

void trials_init(struct trials *t, const struct trials_rules *rules, const void *config,
	uint32_t mss_bytes, uint64_t rtt_ns, uint64_t now_ns, struct cc_out *out) {
	const struct trials_config *cfg = config;

	*t = (struct trials){
		.rules = rules,
		.mss_bytes = mss_bytes,
		.seed = cc_seed(now_ns, mss_bytes),
		.last_u = -1e30f,
		.eps = 1,
	};
	trials_set_rate(t, cfg, monitor_rate_mbps(cfg->initial_segs, mss_bytes, rtt_ns));
	start_interval(t, cfg, now_ns);
	monitor_set_out((double)t->rate_mbps, mss_bytes, rtt_ns,
		cfg->initial_segs > TRIALS_SEGS_MIN ? cfg->initial_segs : TRIALS_SEGS_MIN, out);
}

// True: the rate may have changed.
static bool learn(struct trials *t, const void *config, const struct monitor *m, uint64_t now_ns) {
	if (m->tag == TRIALS_WAIT || m->acked + m->lost == 0
		|| (m->tag == TRIALS_TRY) == (t->mode == TRIALS_PROBING))
		return false;
	if (monitor_used(m, t->q.m[0].start_ns, t->mss_bytes))
		return t->rules->result(t, config, m, now_ns);
	if (monitor_overloads(m)) // else the same again
		trials_set_rate(t, config, (double)t->rate_mbps / 2);
	if (t->mode == TRIALS_PROBING)
		trials_probe(t, now_ns);
	else
		t->sent = 0;
	return true;
}

static bool interval_over(const struct trials *t, const struct monitor *now, uint64_t srtt_ns,
	double least_ns, uint64_t now_ns) {
	double age_ns = (double)(now_ns - now->start_ns);
	double drawn = (double)(cc_draw(t->seed, now->start_ns) >> 11) * 0x1p-53;
	double rtts = t->rules->rtts_min + t->rules->rtts_spread * drawn;

	return age_ns >= rtts * (double)srtt_ns && age_ns >= least_ns;
}

void trials_on_ack(void *state, const void *config, const struct cc_ack *ack, struct cc_out *out) {
	struct trials *t = state;
	struct monitor done;
	bool next = false;

	monitors_ack(&t->q, ack);
	while (monitors_done(&t->q, ack, &done))
		next |= learn(t, config, &done, ack->now_ns);
	next |= interval_over(t, monitors_now(&t->q), ack->srtt_ns,
		monitors_least_ns(&t->q, t->mss_bytes), ack->now_ns);
	if (next && t->q.count < MONITORS)
		start_interval(t, config, ack->now_ns);
	monitor_set_out((double)monitors_now(&t->q)->rate_mbps, t->mss_bytes, ack->srtt_ns,
		TRIALS_SEGS_MIN, out);
}

void trials_on_loss(
	void *state, const void *config, const struct cc_loss *loss, struct cc_out *out) {
	// It is part of an interval's result.
}

static void restart(struct trials *t, const void *config, uint64_t now_ns) {
	t->q.count = 0;
	t->eps = 1;
	trials_probe(t, now_ns);
	start_interval(t, config, now_ns);
}

void trials_on_rto(
	void *state, const void *config, const struct cc_loss *loss, struct cc_out *out) {
	struct trials *t = state;

	if (!loss->repeated)
		trials_set_rate(t, config, (double)t->rate_mbps / 2);
	restart(t, config, loss->now_ns);
	out->pacing_bps = (double)t->rate_mbps * 1e6;
	out->cwnd_segs = TRIALS_SEGS_MIN;
}

void trials_on_idle(
	void *state, const void *config, uint64_t now_ns, uint64_t idle_ns, struct cc_out *out) {
	restart(state, config, now_ns);
}

uint8_t trials_mode(const void *state, const void *config) {
	const struct trials *t = state;

	return t->mode;
}
