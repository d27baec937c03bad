// SPDX-License-Identifier: BSD-3-Clause
// Flows of UDP datagrams at a constant rate, which nothing slows down: `source: udp`.
//
//	gaps: fixed        datagram n leaves at start + n * 8 size / rate, rounded down to a nanosecond
//	gaps: exponential  a Poisson process of the same rate
//
// **Reports.** The receiver says what has arrived, once in UDP_REPORT_NS in which something did, in a datagram of its
// own. As in RTP's receiver reports (RFC 3550, section 6.4.1) these are the number behind the highest one that arrived,
// and how many did. What the flow's records and the summary call acknowledged and lost is from the last report. The
// sender does not react to them, so its datagrams are the same without.
//
//	data    number, 0, zeros
//	report  number behind the highest, how many arrived
#pragma once
#include "common/net/wire.h"
#include "sender/source/source.h"
#include "sender/tcp/receiver.h"

#define UDP_BYTES_MAX 8972 // an MTU of 9000
#define UDP_REPORT_NS (10 * NS_PER_MS)

enum udp_gaps { UDP_FIXED, UDP_EXPONENTIAL };

struct udp_config {
	uint64_t rate_bps;
	uint64_t bytes;
	int gaps; // enum udp_gaps
};

// A flow of a group with such a source was initialised.
void udp_init(struct host *h, struct flow *f);
// The next datagram is due.
void udp_timer(struct host *h, struct flow *f, uint64_t now_ns);
// A report arrives at the sender; a datagram at the receiver.
void udp_report_rx(struct flow *f, const struct seg *s);
void udp_data_rx(struct host *h, struct receiver *r, const struct seg *s, uint64_t now_ns);
// The receiver's report is due.
void udp_report_timer(struct host *h, struct receiver *r, uint64_t now_ns);
