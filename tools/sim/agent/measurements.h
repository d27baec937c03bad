// SPDX-License-Identifier: BSD-3-Clause
// What a control in Python is given: one list, of which the record, its names in Python and the
// table in tools/docs/how-to/python-controls.md are made. All members have 8 bytes.
#pragma once
#include <stdint.h>

// Sums, means and extremes are over the interval, which ends with this call; MEASUREMENTS_LAST are
// as of its last ACK.
#define MEASUREMENTS_INTERVAL(V)                                                                   \
	V(uint64_t, interval_ns, "time since the interval began")                                  \
	V(uint64_t, acks, "ACKs that acknowledged segments or marked some lost")                   \
	V(uint64_t, acked_segs, "segments newly acknowledged, cumulatively or by SACK")            \
	V(uint64_t, passed_segs, "segments that the cumulative ACK passed")                        \
	V(uint64_t, lost_segs, "segments newly declared lost")                                     \
	V(uint64_t, ce_segs, "segments that arrived with CE; classic_ecn: 0, it is not known")     \
	V(uint64_t, losses, "loss episodes that began")                                            \
	V(uint64_t, ecn_echoes, "episodes that began with an ECN echo")                            \
	V(uint64_t, timeouts, "retransmission timeouts")                                           \
	V(double, throughput_bps, "payload acknowledged, over the interval")                       \
	V(uint64_t, rtt_samples, "valid RTT samples (Karn)")                                       \
	V(double, rtt_mean_ns, "their mean; 0: none")                                              \
	V(uint64_t, rtt_lowest_ns, "the smallest of them; 0: none")                                \
	V(uint64_t, rtt_ns, "the last of them; 0: none")                                           \
	V(uint64_t, app_limited, "1: a rate sample was limited by the application")                \
	V(uint64_t, cwnd_limited, "1: the window, not pacing or the application, limited sending") \
	V(uint64_t, in_sequence, "1: the cumulative ACK advanced")

#define MEASUREMENTS_LAST(V)                                                                       \
	V(uint64_t, now_ns, "time of this call")                                                   \
	V(uint64_t, srtt_ns, "smoothed RTT (RFC 6298)")                                            \
	V(uint64_t, rtt_min_ns, "smallest RTT of the connection")                                  \
	V(uint64_t, sent_ns, "when the newest acknowledged segment was sent")                      \
	V(uint64_t, tick_ns, "tick of the host's clock (hz:); 0: it is exact")                     \
	V(double, cwnd_at_send, "window when that segment was sent, in segments")                  \
	V(uint64_t, inflight_segs, "segments in flight, after the ACK")                            \
	V(uint64_t, prior_inflight_segs, "and before it")                                          \
	V(uint64_t, delivered_segs, "segments delivered since the start")                          \
	V(uint64_t, prior_delivered_segs, "when the newest acknowledged segment was sent")         \
	V(double, delivery_bps, "delivery rate sample; 0: none")                                   \
	V(uint64_t, sample_ns, "length of that sample; 0: none")                                   \
	V(uint64_t, next_send_ns, "the next pacing slot")                                          \
	V(uint64_t, host_paced, "1: the host paces, whatever the control does")                    \
	V(uint64_t, in_recovery, "1: fast recovery")                                               \
	V(uint64_t, in_loss, "1: recovery by slow start, after a timeout")                         \
	V(uint64_t, classic_ecn, "1: the peer says that there was a mark, not how many")           \
	V(double, cwnd_segs, "window before this call, in segments")                               \
	V(double, pacing_bps, "pacing rate before this call; 0: not paced")                        \
	V(uint64_t, mss_bytes, "payload of a full segment")                                        \
	V(uint64_t, episode_lost_segs, "on_loss: lost so far in this episode")                     \
	V(uint64_t, ecn, "on_loss: 1: an ECN echo, not a loss")                                    \
	V(uint64_t, repeated, "on_rto: 1: the retransmission timed out too")                       \
	V(uint64_t, idle_ns, "on_idle: for how long")

#define MEASUREMENT_MEMBER(type, name, meaning) type name;
struct measurements_interval {
	MEASUREMENTS_INTERVAL(MEASUREMENT_MEMBER)
};
struct measurements {
	struct measurements_interval; // zero when an interval begins
	MEASUREMENTS_LAST(MEASUREMENT_MEMBER)
};

// One line each: type, name, meaning, with tabs between them.
#define MEASUREMENT_LINE(type, name, meaning) #type "\t" #name "\t" meaning "\n"
#define MEASUREMENT_LINES                                                                          \
	MEASUREMENTS_INTERVAL(MEASUREMENT_LINE) MEASUREMENTS_LAST(MEASUREMENT_LINE)
