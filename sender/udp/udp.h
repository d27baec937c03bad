// SPDX-License-Identifier: BSD-3-Clause
// Flows of UDP datagrams at a constant rate, which nothing slows down: `source: udp`.
//
//	gaps: fixed        datagram n leaves at start + n * 8 size / rate, rounded down to a
//	                   nanosecond
//	gaps: exponential  a Poisson process of the same rate
//
// **Reports.** The receiver says what has arrived, once in UDP_REPORT_NS in which something did, in
// a datagram of its own. As in RTP's receiver reports (RFC 3550, section 6.4.1) these are the
// number behind the highest one that arrived, and how many did. What the flow's records and the
// summary call acknowledged and lost is from the last report. The sender does not react to them, so
// its datagrams are the same without.
//
//	data    number, 0, zeros
//	report  number behind the highest, how many arrived
#pragma once
#include "common/base/ns.h"
#include "common/net/wire.h"
#include "sender/transport.h"

#define UDP_BYTES_MAX 8972 // an MTU of 9000
#define UDP_REPORT_NS (10 * NS_PER_MS)

enum udp_gaps { UDP_FIXED, UDP_EXPONENTIAL };

struct udp_config {
	uint64_t rate_bps;
	uint64_t bytes;
	int gaps; // enum udp_gaps
};

extern const struct transport_ops transport_udp;
