// SPDX-License-Identifier: BSD-3-Clause
// The live switch's config, `live.switch`, and what follows from it: which port sends through
// which path, how many packet buffers that takes, which flow belongs to which group. Pure.
//
// Buffers. A path holds at most what its queues may hold and what is under way in its delays:
//
//	queue:  min(limit in packets, limit in bytes / smallest packet)
//	delay:  packet rate x longest delay,  packet rate = rate / (smallest packet + overhead)
//
// The rate is that of the link before the delay. Where there is none, the rate of the fastest link
// of the run: a path without a link carries the ACKs of one with. The smallest packet is a mean
// over the packets inside, `min_packet`, 512 B by default: a third of a full frame, so that a path
// takes three ACKs per full frame in the other direction, and small enough that a mix of sizes
// fits. For 64 B at line rate set it to 64B: there is room for 8 times as many packets then, of
// which only small frames use it, as these wait outside their buffers in 128 B each: all but the
// first SWITCH_SHORT_PKTS. For all others the mean is taken to be 512 B at least.
//
// `pool` sets what all paths and ports together may hold instead, each in proportion; less than the
// sum is refused without `force`.
//
// Each path has its quota of the pool to itself. Beyond it packets are dropped as no_mbuf, counted
// apart from the queue's drops, so that one path cannot starve another.
//
// Routes. Where a group of `flows` names its paths, its packets pass these, one after the other,
// whichever port they leave by; other packets pass the path before their port, if it has one. One
// lcore then serves all paths (a config with more is refused), and each port's quota holds what all
// paths may hold.
//
// Lcores. One lcore serves a port and the path before it: the one that the port names, else the
// first lcore serves the first port, the second lcore the second port and so on, beginning again
// with the first lcore. The port's receive queues are spread over the lcores from that one on.
#pragma once
#include "common/config/base_rtt.h"
#include "common/config/live.h"
#include "common/net/wire.h"
#include "switch/path/path.h"

#define SWITCH_MTU_BYTES 1518 // with FCS, of captures
#define SWITCH_STATIC_MAX 256

// A path with fewer packets is short: small frames wait in their buffers too, which takes no copy.
#define SWITCH_SHORT_PKTS 512

enum switch_start { SWITCH_START_NOW, SWITCH_START_TRAFFIC };

struct run_list;

struct switch_config_port {
	struct live_port_common common;
	char path_name[PARAM_TEXT_SIZE];
	uint64_t min_packet; // bytes, FCS included
	uint64_t rx_queues;
	char lcore_text[PARAM_TEXT_SIZE];
	uint32_t lcore; // that serves it and its path: an index in `lcores`
	struct path *path; // what leaves here goes through it; NULL: straight out
	uint64_t quota; // packets the path may hold
	uint64_t large_quota; // of these, as many may need a buffer of their own
};

struct switch_config_static {
	struct wire_mac mac;
	uint32_t port;
};

struct switch_config {
	struct live_process process;
	int start; // enum switch_start
	uint64_t pool; // packets that may be inside; 0: what follows from the paths
	struct switch_config_port port[LIVE_PORTS_MAX];
	uint32_t ports;
	bool routed; // packets of flows take the paths that their group names
	struct switch_config_static fixed[SWITCH_STATIC_MAX];
	uint32_t fixed_count;
	// Flows of weir-sender: which group each belongs to.
	uint32_t flow_base_ip; // of the first sending port
	uint32_t flows;
	uint16_t *group_of; // per flow
	uint64_t group_base_rtt_ns[GROUPS_MAX];
	struct base_rtts base_rtts;
	struct flows_route group_route[GROUPS_MAX][FLOWS_DIRECTIONS];
	uint32_t groups;
};

// Reads live.mtu, the number and base RTT of each flow group, and the sender's address. Base RTTs
// are drawn for a run of this seed and duration; 0: it has no end.
int switch_config_flows(struct switch_config *p, struct config *c, uint64_t seed,
	uint64_t duration_ns, struct err *err);
// Reads the keys of live.switch and of its ports, before there are paths: a mistyped key of theirs
// is named first.
int switch_config_keys(struct switch_config *p, struct config *c, struct err *err);
// What follows from them, after switch_config_keys. `ps` must be initialised; ports point into it.
int switch_config_ports(
	struct switch_config *p, struct config *c, struct paths *ps, struct err *err);
// Which lcore receives from a port's queue.
static inline uint32_t switch_config_receiver(
	const struct switch_config *p, uint32_t port, uint32_t queue) {
	return (p->port[port].lcore + queue) % p->process.lcores;
}
// The keys of live.switch, for --list.
void switch_config_list(struct run_list *l);
void switch_config_free(struct switch_config *p);
// The sum as a user reads it: "forward 73014 packets, reverse 24011 packets, ports 3072"; its
// length.
int switch_config_text(
	const struct switch_config *p, uint64_t port_buffers, char *text, size_t size);
