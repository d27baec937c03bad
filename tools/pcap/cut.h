// SPDX-License-Identifier: BSD-3-Clause
// How two captures cut the same bytes of a TCP connection into packets. A host whose card cuts
// segments up (TSO), or puts them together (GRO), captures several segments as one packet; the
// other side has them one by one. A look at both captures finds such flows and the size of their
// segments; then both sides' packets are taken apart into these.
#pragma once
#include "tools/pcap/decode.h"
#include "tools/pcap/table.h"

// One direction of a connection.
struct cut_flow {
	struct flow_key key;
	uint8_t from;
	uint32_t most[2]; // bytes of payload of a packet, on each side
	uint64_t packets[2]; // with payload
	// Of all payloads but those that end what was written (PSH): whole segments.
	uint32_t divisor;
	uint32_t unit; // bytes of a segment; 0: both sides are cut alike
};

struct cut {
	struct table table;
	struct cut_flow *flow; // NULL: nothing was looked at
	uint32_t flows, flows_max;
	uint32_t units; // flows whose packets are taken apart
};

int cut_init(struct cut *c, uint32_t flows_max, struct err *err);
void cut_fini(struct cut *c);
// A packet of side 0 or 1.
void cut_add(struct cut *c, uint32_t side, const struct packet *p);
// When all were looked at.
void cut_decide(struct cut *c);
// Bytes of a segment of the packet's flow, or 0: its packets are compared as they are.
uint32_t cut_unit(const struct cut *c, const struct packet *p);
// Segment number n of a packet, with what TSO leaves of its header: IP identification and PSH are
// left out, since the sides may differ in them. False: it has fewer.
bool cut_part(const struct packet *p, uint32_t unit, uint32_t n, struct packet *part);
