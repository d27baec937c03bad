// SPDX-License-Identifier: BSD-3-Clause
// Monitor intervals of PCC (Dong and others: "PCC: Re-architecting Congestion Control for
// Consistent High Performance", NSDI 2015, section 3.1): the sender holds one rate for about a
// round trip, and what becomes of the segments sent in that time is its result. It is complete a
// round trip later, with the ACK of the first segment sent after the interval; so up to three are
// under way: two whose results are awaited, and the present one.
//
// An ACK, its RTT and the losses it reveals count for the interval in which the newest segment that
// it acknowledges was sent. A loss of the last segments of an interval therefore counts for the
// next one.
#pragma once
#include "sender/cc/cc.h"

#define MONITORS 3
#define MONITOR_SEGS_MIN 50 // of 10, as in the paper, one that is lost is 10 %, whatever the rate
// What given_window() answers: a rate that ignores losses keeps many lost segments on the
// scoreboard.
#define MONITOR_UNACKED_SEGS 1024
#define MONITOR_USED_MIN 0.5 // the part of what it was to send, below which it has no result
#define MONITOR_RATE_MAX_MBPS 1e6 // bounds what doubling leads to where nothing is lost

struct monitor {
	uint64_t start_ns; // it ends where the next one starts
	float rate_mbps;
	uint32_t acked, lost; // segments
	float first_rtt_ns; // 0: none
	// For the slope of the RTT by least squares: time of sending since the start, and RTT above
	// the first, in ms.
	float n, t, y, tt, ty;
	uint8_t tag; // what the control tries with it
};

struct monitors {
	struct monitor m[MONITORS]; // the oldest first
	uint8_t count;
};

static inline void monitors_start(
	struct monitors *q, double rate_mbps, uint8_t tag, uint64_t now_ns) {
	q->m[q->count++] =
		(struct monitor){.start_ns = now_ns, .rate_mbps = (float)rate_mbps, .tag = tag};
}

// The results that are awaited no longer matter.
static inline void monitors_forget(struct monitors *q, uint8_t tag) {
	for (uint8_t i = 0; i < q->count; i++)
		q->m[i].tag = tag;
}

static inline struct monitor *monitors_now(struct monitors *q) {
	return &q->m[q->count - 1];
}

static inline void monitors_ack(struct monitors *q, const struct cc_ack *ack) {
	struct monitor *m = NULL;
	float t, y;

	for (uint8_t i = 0; i < q->count && q->m[i].start_ns <= ack->sent_ns; i++)
		m = &q->m[i];
	if (m == NULL)
		return;
	m->acked += ack->acked_segs;
	m->lost += ack->lost_segs;
	if (ack->rtt_ns == 0)
		return;
	if (m->first_rtt_ns <= 0)
		m->first_rtt_ns = (float)ack->rtt_ns;
	t = (float)(ack->sent_ns - m->start_ns) * 1e-6f;
	y = ((float)ack->rtt_ns - m->first_rtt_ns) * 1e-6f;
	m->n += 1;
	m->t += t;
	m->y += y;
	m->tt += t * t;
	m->ty += t * y;
}

// Takes the oldest interval into *done if its result is complete with this ACK.
static inline bool monitors_done(
	struct monitors *q, const struct cc_ack *ack, struct monitor *done) {
	if (q->count < 2 || ack->acked_segs == 0 || ack->sent_ns < q->m[1].start_ns)
		return false;
	*done = q->m[0];
	for (uint8_t i = 1; i < q->count; i++)
		q->m[i - 1] = q->m[i];
	q->count--;
	return true;
}

static inline double monitor_loss(const struct monitor *m) {
	uint32_t total = m->acked + m->lost;

	return total == 0 ? 0 : (double)m->lost / total;
}

// Whether the interval, which ended at end_ns, sent about what it was meant to: if the application
// or the receiver limited it, its result says nothing of its rate.
static inline bool monitor_used(const struct monitor *m, uint64_t end_ns, uint32_t mss_bytes) {
	double meant = (double)m->rate_mbps * (double)(end_ns - m->start_ns) / (8e3 * mss_bytes);

	return m->acked + m->lost >= MONITOR_USED_MIN * meant;
}

// Whether the rate of an interval that was not used (monitor_used) is to be halved: most of what it
// sent was lost. After a handshake that met no queue the window of two round trips can be so small
// that it limits every interval; then none would be used, and the rate would never fall.
static inline bool monitor_overloads(const struct monitor *m) {
	return m->lost > m->acked;
}

// How long the present interval takes at least, to send MONITOR_SEGS_MIN segments.
static inline double monitors_least_ns(struct monitors *q, uint32_t mss_bytes) {
	return MONITOR_SEGS_MIN * 8e3 * mss_bytes / (double)monitors_now(q)->rate_mbps;
}

// dRTT / dt, without a unit; 0: too few samples.
static inline double monitor_slope(const struct monitor *m) {
	double n = (double)m->n, t = (double)m->t, spread = n * (double)m->tt - t * t;

	if (m->n < 2 || spread <= 0)
		return 0;
	return (n * (double)m->ty - t * (double)m->y) / spread;
}

static inline float monitor_bounded(double rate_mbps, double least_bps) {
	double least = least_bps * 1e-6;

	rate_mbps = rate_mbps < MONITOR_RATE_MAX_MBPS ? rate_mbps : MONITOR_RATE_MAX_MBPS;
	return (float)(rate_mbps > least ? rate_mbps : least);
}

// The rate in Mbit/s that sends `segs` segments in a round trip; of 10 ms if none was measured.
static inline double monitor_rate_mbps(double segs, uint32_t mss_bytes, uint64_t rtt_ns) {
	return segs * mss_bytes * 8e3 / (rtt_ns > 0 ? (double)rtt_ns : 10e6);
}

// Windows only bound what is in flight where rates rule: two round trips.
static inline void monitor_set_out(double rate_mbps, uint32_t mss_bytes, uint64_t srtt_ns,
	double segs_min, struct cc_out *out) {
	double segs = 2 * rate_mbps * (double)srtt_ns * 1e-3 / (8.0 * mss_bytes);

	out->pacing_bps = rate_mbps * 1e6;
	out->cwnd_segs = segs > segs_min ? segs : segs_min;
}
