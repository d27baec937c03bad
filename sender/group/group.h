// SPDX-License-Identifier: BSD-3-Clause
// A flow group: flows that share a configuration, from one entry of the config's `flows` list.
#pragma once
#include "common/base/likely.h"
#include "common/base/param.h"
#include "common/config/base_rtt.h"
#include "common/config/hosts.h"
#include "common/net/wire.h"
#include "common/telemetry/telemetry.h"
#include "sender/cc/cc.h"
#include "sender/group/stack.h"

#include <stdbool.h>
#include <stdint.h>

struct source_ops; // source/source.h
struct transport_ops; // transport.h

enum group_ip { GROUP_IPV4, GROUP_IPV6 };
enum pacing_mode { PACING_CC, PACING_SRTT, PACING_FQ, PACING_OFF };
enum acks_mode { ACKS_FIXED, ACKS_LINUX };
enum tso_mode { TSO_NO, TSO_LINUX }; // larger numbers: segments per burst

// What a receiver does beyond the defaults. Segments take the short path only if it does none of
// this.
enum receiver_mode {
	RECEIVER_ECN = 1,
	RECEIVER_GRO = 2,
	RECEIVER_LINUX_ACKS = 4,
	RECEIVER_WINDOW = 8,
	RECEIVER_FIN = 16, // we have closed before the peer
	RECEIVER_FIN_ACKED = 32, // and the peer has acknowledged that
	RECEIVER_ACCECN = 64 // its ECN feedback is AccECN (in the hot lines, unlike what it counts)
};
#define RECEIVER_HOST (RECEIVER_GRO | RECEIVER_LINUX_ACKS | RECEIVER_WINDOW)

enum mtu_probing { MTU_PROBING_OFF, MTU_PROBING_BLACK_HOLE, MTU_PROBING_ALWAYS };

struct group {
	char name[PARAM_TEXT_SIZE]; // default: the congestion control's
	uint64_t count;
	uint64_t start_ns, stop_ns; // stop 0: never
	uint64_t stagger_ns; // between the starts of its flows
	uint64_t stop_stagger_ns; // between their stops
	uint64_t jitter_ns; // plus a uniform draw from [0, jitter)
	int ip; // enum group_ip
	uint64_t mss; // value of the MSS option: payload plus TCP options
	uint64_t base_rtt_ns; // 0: what the paths give; the longest of its flows
	int host; // the name that set other parameters
	uint64_t dscp;
	int ecn; // enum cc_ecn
	// 0: refuse ECN with a control that does not answer it, 1: its echoes are ignored.
	int ecn_unheard;
	int ecn_feedback; // 0: as the congestion control says, else 1 + enum cc_feedback
	bool dctcp_echo, accecn; // receiver: which of them it is
	int pacing; // enum pacing_mode
	uint64_t tso; // enum tso_mode, or segments per burst
	bool paced_by_cc; // pacing: cc, no bursts
	bool samples; // the algorithm needs them: rate, samples
	// Its control has, with these parameters: on_sample, requests or a service; a service
	// (tcp/service.h); on_packet.
	bool sampled, has_service, packets;
	bool host_paced; // pacing: srtt or fq
	bool bursts; // several segments may leave at once (tcp/bursts.c): tso, or pacing: fq
	uint64_t ack_every; // receiver: one ACK per this many full segments
	uint64_t ack_delay_ns; // receiver: at the latest after this
	int acks; // enum acks_mode
	uint64_t gro_ns; // receiver: how long adjacent segments are coalesced; 0: never
	uint8_t receiver_modes; // enum receiver_mode, of receiver.h
	uint64_t rwnd; // receive window, bytes
	uint64_t rmem; // largest receive buffer, of which half is window; 0: the window is rwnd
	uint64_t wmem; // largest send buffer; 0: none
	uint64_t read_bps; // rate of the receiving application; 0: it reads at once
	uint64_t rto_min_ns, rto_initial_ns, rto_max_ns;
	uint64_t hz; // ticks per second of its hosts' kernels; 0: their timers are exact
	uint64_t tick_ns; // 1 s / hz; 0: exact
	uint64_t retries; // timeouts in a row before a flow gives up
	bool sack, timestamps, tlp, frto;
	int mtu_probing; // enum mtu_probing

	struct stack stack, peer; // the sending and the receiving side's
	const char *control; // its name: cc's, the kernel's, or in its place the transport's
	const struct cc_ops *cc; // NULL: a kernel's, or none, of a transport beside TCP
	void *cc_config;
	const struct source_ops *source;
	void *source_config;
	const struct transport_ops *transport; // of its source; NULL: TCP
	bool probes; // its source sends segments of one byte (source/probe.h)
	bool keeps; // its source's transfers share one connection per flow
	uint32_t first; // index of its first flow
	uint32_t payload; // bytes per full segment
	uint32_t ip_header; // bytes of its packets' IP header
};

struct run_list;

struct groups {
	struct group group[GROUPS_MAX];
	uint32_t count;
	uint32_t flows; // sum of their counts
	bool dscp; // one of them has a DSCP
	bool ipv6; // one of them is of IPv6
	bool datagrams; // one of them has a transport beside TCP, in UDP
	struct base_rtts base_rtts; // once groups_draw has drawn them
	const struct hosts *hosts; // that the flows share; NULL: none
};

// Reads the `flows` list. On error nothing needs freeing.
int groups_init(struct groups *gs, struct config_node *node, struct err *err);
void groups_fini(struct groups *gs);
// From now on the flows share these hosts, which live as long.
void groups_share(struct groups *gs, const struct hosts *hosts);
// The receiving hosts whose cards join segments; NULL: there are none.
const struct hosts_side *groups_gro_side(const struct groups *gs);
// Draws the base RTTs of flows whose group has a distribution of them (base_rtts_init); base_rtt_ns
// of such a group is then its longest.
int groups_draw(struct groups *gs, struct config_node *flows, uint64_t seed, uint64_t duration_ns,
	struct err *err);
// Where `flows` has the first group that starts after duration_ns; NULL: all start before.
const struct config_node *groups_unreached(
	const struct groups *gs, struct config_node *flows, uint64_t duration_ns);
// Names what the groups' congestion controls observe, before the stream `cc` is opened.
void groups_observers(const struct groups *gs, struct tel_run *run);
// The keys of a group, for --list flows.
void groups_list(struct run_list *l);
// The first group that is like one before it and whose flows start at the same instants; that one's
// number in *with.
// NULL: none. Which is served better is then decided by their places in the list.
const struct config_node *groups_together(
	const struct groups *gs, struct config_node *flows, uint32_t *with);
// Start time of each flow of the group: start + i * stagger + U[0, jitter), drawn from a random
// stream named by group.
void group_starts(const struct group *g, uint32_t index, uint64_t seed, uint64_t *start_ns);
// The place of the first group with a Linux kernel at either side, for programs that have none;
// NULL: there is none.
const struct config_node *groups_guest(const struct groups *gs, struct config_node *flows);
// Does the seed decide when flows start, or what they send?
bool groups_random(const struct groups *gs);
// Are the packets of flow `id` IPv6's? Not those of a connection that is no flow.
bool groups_ipv6_of(const struct groups *gs, uint32_t id);
static inline bool groups_ipv6(const struct groups *gs, uint32_t id) {
	return unlikely(gs->ipv6) && groups_ipv6_of(gs, id);
}
// Bytes of the IP header of a group's packets.
static inline uint32_t groups_ip_header(const struct groups *gs, uint32_t group) {
	return likely(!gs->ipv6) ? WIRE_IPV4 : gs->group[group].ip_header;
}
// Does flow `id` send UDP?
bool groups_datagrams(const struct groups *gs, uint32_t id);
// Does a group's source have a schedule of transfers?
bool groups_scheduled(const struct groups *gs);
// Largest frame, with FCS, that any group sends.
uint32_t groups_mtu_bytes(const struct groups *gs);
// Smallest full-sized frame, with FCS, of any group.
uint32_t groups_min_frame(const struct groups *gs);
