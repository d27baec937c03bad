// SPDX-License-Identifier: BSD-3-Clause
// Packets of guests that are of no flow of their group: UDP and QUIC, ICMP, SCTP, IPv6, fragments,
// and TCP from or to another port than a flow's. Paths carry them as any other packet. They are
// counted here, by 5-tuple and direction, from where they enter the first path to where they leave
// the last; of what only their transport knows, nothing is known.
//
// Their flow_id is the hash that a live switch has for the 5-tuple, the same in both directions. A
// guest has the flows that it sends; what enters and leaves paths is counted while no guest runs.
#pragma once
#include "common/base/err.h"
#include "common/base/pkt.h"
#include "common/net/flow_addr.h"
#include "common/net/wire.h"

#include <stdbool.h>
#include <stdint.h>

#define IP_FLOWS_MAX 4096 // that a guest may send in a run
#define IP_FLOW_NOWHERE UINT16_MAX

struct json;
struct tel;

struct ip_flow_count {
	uint64_t sent_pkts, sent_bytes; // bytes are payload: behind the IP header and that of UDP
	uint64_t received_pkts, received_bytes, ce_pkts;
	uint64_t drops;
	uint64_t delay_sum_ns, delay_min_ns, delay_max_ns; // one way, of those received
};

struct ip_flow {
	struct wire_flow key;
	uint8_t src[16], dst[16]; // 4 bytes of IPv4
	uint32_t id; // flow_id
	uint16_t to; // the guest that gets it
	struct ip_flow_count interval, all; // of this interval; since the start or the warm-up
};

struct ip_flows {
	struct ip_flow *flow; // NULL: the guest sends none
	uint32_t count;
	uint16_t slot[2 * IP_FLOWS_MAX]; // place + 1, by hash; 0: free
};

// What a packet has of its flow, behind its frame.
struct ip_flow_ref {
	uint64_t sent_ns; // when it entered the first path
	uint32_t flow; // its place among those of its guest
};

int ip_flows_init(struct ip_flows *fs, struct err *err);
void ip_flows_fini(struct ip_flows *fs);
static inline bool ip_flow_is(const struct pkt *p) {
	return (p->flow_id & FLOW_ADDR_HASHED) != 0;
}
// The flow of a frame of IPv4 or IPv6 whose flow_id is `id`, as wire_read_flow has read it. A new
// one goes to no guest yet (IP_FLOW_NOWHERE). NULL: there are too many.
struct ip_flow *ip_flows_find(struct ip_flows *fs, const struct wire_flow *key, uint32_t id,
	const uint8_t *frame, uint32_t size);
// Name of a protocol; NULL: it has none here.
const char *ip_flow_protocol(uint8_t number);
// Payload of a frame, in bytes.
uint16_t ip_flow_payload(const struct wire_flow *key, const uint8_t *frame, uint32_t size);
void ip_flow_sent(struct ip_flow *f, uint32_t payload);
void ip_flow_received(struct ip_flow *f, uint32_t payload, bool ce, uint64_t delay_ns);

// The end of an interval: its records, in the order in which the flows began. `forward`: the
// sender's.
void ip_flows_interval(
	struct ip_flows *fs, struct tel *tel, uint64_t now_ns, uint16_t group, bool forward);
// From now on `all` counts what is measured.
void ip_flows_measure(struct ip_flows *fs);
// Objects of an array, one for each flow.
void ip_flows_summary(
	const struct ip_flows *fs, struct json *j, uint16_t group, bool forward, double seconds);
