// SPDX-License-Identifier: BSD-3-Clause
// Hosts on ports: an lcore runs the sending and the receiving host. An iteration receives, reads
// the clock once, fires timers and transmits.
//
// Several lcores share the flows (host.h). Each has a struct sender_lcore with all of its state.
// Frames received by another lcore, or sent through a queue that another lcore owns, pass through
// rings (shard.c). The first lcore handles the clock, the state of ports and the ends of intervals
// for all.
//
// A port answers ARP and ping for its addresses, resolves its next hop before the run begins, and
// resets segments of no connection. The receiving side finds the connections of the config's flows
// by their addresses (flow_addr.h), and those of other peers, such as a kernel, through
// connections.h.
//
// A port with transmit stamps (stamp.h) gets paced frames a little before their time: the hosts'
// clock is ahead by `lead`. They see arrivals later by as much, so that a measured RTT is longer by
// the lead.
//
// All frames are accounted for: those that hosts, ARP and ping wanted to send were transmitted or
// dropped, or wait; those received went to a host, were answered, or are counted with a reason.
#pragma once
#include "common/live/base/dpdk.h"

#include "common/live/lcore/egress.h"
#include "common/live/lcore/lcore.h"
#include "common/net/flow_addr.h"
#include "common/pcap/writer.h"
#include "sender/fields.h"
#include "sender/host/host.h"
#include "sender/host/scan.h"
#include "sender/host/seg_delay.h"
#include "sender/host/sender_config.h"
#include "sender/tcp/connections.h"

#include <stdatomic.h>

#define SENDER_EGRESS_SLOTS 16384 // frames that wait for their port, a power of two
#define PORT_FULL 256 // with this many waiting frames timers pause; the rest is for unpaced frames
#define SENDER_TX_RING 1024 // frames on their way to the lcore that owns their port's queue
#define SENDER_RX_MAX (2 * PORT_BURST_MAX) // frames per iteration, from a port and other lcores
#define SENDER_STOCK 32 // empty frames at hand
#define SENDER_FETCH 4 // headers are prefetched this many frames ahead

struct sender_count {
	SENDER_COUNTERS(COUNTERS_MEMBER)
};

static inline void sender_count_add(struct sender_count *sum, const struct sender_count *to) {
	const struct sender_count none = {0}, *from = &none;

	SENDER_COUNTERS(COUNTERS_ADD)
}

// A received segment of a connection.
struct sender_arrival {
	struct seg seg;
	struct wire_info info;
	uint32_t id; // index in the host; FLOW_ADDR_NONE: no flow of the config
};

struct sender_port {
	const struct live_port *config;
	struct port *port; // shared by all lcores
	uint16_t queue;
	bool owns_queue; // this lcore receives and transmits on `queue`
	bool is_primary; // this lcore owns the port's first queue and handles its link
	struct host *host;
	struct sender_lcore *live; // for sender_output, whose ctx is this struct
	uint32_t addresses; // number of addresses from config->ip on
	struct wire_mac peer_mac; // the next hop's
	bool peer_known;
	_Atomic uint64_t shared_peer; // in the first lcore: peer_mac for the other lcores
	uint16_t ip_id;
	uint32_t path_mtu; // the smallest that a flow has from a router; 0: none
	struct rte_mbuf *rx_burst[SENDER_RX_MAX]; // of this iteration
	uint32_t nb_rx;
	struct sender_arrival arrival[SENDER_RX_MAX]; // the segments among them
	uint32_t arrivals;
	struct wire_template head; // header of frames to the next hop
	struct seg_delay delay; // a receiver's ACKs on their way to the egress
	struct egress egress;
	struct sender_count count;
	struct connections connections; // receiving side: dynamic connections
	// To other lcores: received frames, to each of them; frames to be sent, to the lcore that
	// owns the queue.
	struct lcore_ring rx_ring[LIVE_LCORES_MAX], tx_ring;
};

// Requests to the lcore, answered between bursts; a group scan takes several iterations.
enum sender_request { SENDER_SNAPSHOT, SENDER_GROUP_SCAN };

struct sender_snapshot {
	uint64_t now_ns;
	struct sender_count port[LIVE_ROLES];
};

// Counters that an lcore publishes without a request: its flows by state, and bytes that ports
// took.
enum sender_shown {
	SENDER_SHOWN_WAITING,
	SENDER_SHOWN_OPEN,
	SENDER_SHOWN_DONE,
	SENDER_SHOWN_FAILED,
	SENDER_SHOWN_TX_BYTES,
	SENDER_SHOWN
};

// An lcore's answers to requests.
struct sender_mailbox {
	struct sender_snapshot snapshot; // with a group scan: taken at its end
	struct group_scan scan;
};

struct sender_lcore {
	struct lcore lcore;
	// Set up before the loop.
	struct sender_lcore *all; // the array of all lcores
	const struct sender_config *config;
	const struct groups *groups;
	// Received frames overwrite rx_pool's data; the payload in tx_pool stays zero.
	struct rte_mempool *rx_pool, *tx_pool;
	struct rte_mbuf *stock[SENDER_STOCK]; // from tx_pool
	uint32_t stocked;
	struct pcap_writer *capture; // --pcap; NULL: none

	// The hosts' time is the clock plus lcore.lead_ns, which is not 0 for a port with transmit
	// stamps.
	struct host sender, receiver;
	struct sender_port port[LIVE_ROLES];
	// End of the interval that is being recorded; all lcores use the first one's, so that all
	// flows have the same.
	_Atomic uint64_t interval_end_ns;
	uint32_t interval_flow; // the next flow to record
	uint32_t measure_flow; // the next flow whose figures are to be reset
	_Atomic bool unanswered; // no SYN was answered in time
	_Atomic bool all_failed; // every flow gave up or was refused

	// Shared with the control thread.
	struct sender_mailbox mailbox;
	_Atomic uint64_t shown[SENDER_SHOWN];
};

static inline struct sender_lcore *sender_lcore(struct lcore *l) {
	return (struct sender_lcore *)(void *)l;
}
static_assert(offsetof(struct sender_lcore, lcore) == 0, "the one is the other");

extern const struct lcore_ops sender_lcore_ops;

// Functions with `all` act for all lcores and are called on the first lcore's thread.
//
// Resolves the next hop of the sending port: 0, or -EHOSTUNREACH after the config's answer_ns;
// -EINTR: a signal arrived first.
int sender_resolve(struct sender_lcore *all, struct err *err);
// Resets open connections and writes the last records, once all lcores have ended.
void sender_finish(struct sender_lcore *all);
// Whether the run is pointless on all lcores: no SYN was answered, or all flows have failed.
bool sender_hopeless(const struct sender_lcore *all);

static inline bool sender_sends(const struct sender_port *p) {
	return p->config->role == LIVE_SENDER;
}

// Prefetches the two cache lines of a frame's headers.
static inline void sender_fetch_frame(const struct rte_mbuf *m) {
	const char *frame = rte_pktmbuf_mtod(m, const char *);

	rte_prefetch0(frame);
	rte_prefetch0(frame + RTE_CACHE_LINE_MIN_SIZE);
}

// rx.c
// Sets the MAC address of the port's next hop.
void sender_learn_peer(struct sender_port *p, const struct wire_mac *mac);
// Copies the address that the first lcore has learned.
void sender_follow_peer(struct sender_lcore *s, struct sender_port *p);
// Reads all headers of the burst; segments are kept for sender_deliver.
void sender_receive(struct sender_lcore *s, struct sender_port *p);
// Prefetches the data to which the first segments' connections point, once these are in the cache.
void sender_fetch(const struct sender_port *p);
// Delivers up to `n` segments to the hosts, from index `first` on.
void sender_deliver(struct sender_lcore *s, struct sender_port *p, uint32_t first, uint32_t n);
// The flow of the config that a segment belongs to, by its addresses, or FLOW_ADDR_NONE.
static inline uint32_t sender_flow_of(const struct sender_port *p, const struct wire_addr *a) {
	const struct groups *groups = p->live->groups;
	uint32_t flows = groups->flows, id = FLOW_ADDR_NONE;

	if (!sender_sends(p) && a->dst_port == p->config->peer_port)
		id = flow_addr_index(p->config->peer, flows, a->src_ip, a->src_port);
	else if (sender_sends(p) && a->src_ip == p->config->peer
		&& a->src_port == p->config->peer_port)
		id = flow_addr_index(p->config->ip, flows, a->dst_ip, a->dst_port);
	return likely(groups_ipv6(groups, id) == a->ipv6) ? id : FLOW_ADDR_NONE;
}

// capture.c
// A frame goes through a port, at ts_ns; s->capture is not NULL.
void sender_capture_frame(struct sender_lcore *s, const struct sender_port *p,
	const struct rte_mbuf *m, enum pcapng_direction direction, uint64_t ts_ns);

// tx.c
// An empty frame from tx_pool, with zero payload. NULL: the pool is empty (counted).
struct rte_mbuf *sender_new_frame(struct sender_lcore *s, struct sender_port *p, uint8_t **data);
// Puts a frame into the port's queue. `due_ns`: its transmit time; 0: unpaced.
static inline void sender_put_frame(
	struct sender_lcore *s, struct sender_port *p, struct rte_mbuf *m, uint64_t due_ns) {
	p->count.tx_wanted++;
	if (unlikely(s->capture != NULL))
		sender_capture_frame(
			s, p, m, PCAPNG_OUTBOUND, due_ns > 0 ? due_ns : s->lcore.now_ns);
	egress_enqueue(&p->egress, m, due_ns, port_frame_bytes(m->pkt_len));
	s->lcore.watch.moved++; // counted once more when the port takes it
}
void sender_put_seg(struct sender_lcore *s, struct sender_port *p, const struct wire_addr *addr,
	const struct seg *seg);
// Sends the segments whose delay is over, as long as the port has room.
void sender_send_delayed(struct sender_lcore *s, struct sender_port *p);
// The hosts' output callback; ctx is a struct sender_port.
void sender_output(void *ctx, uint32_t id, const struct seg *seg, uint32_t n, uint8_t ecn,
	uint64_t due_ns, bool paced);

// shard.c
// Makes the rings between lcores, once queues are assigned to them.
int sender_make_rings(struct sender_lcore *all, struct err *err);
// Gives received frames to their lcores and takes those from other lcores; returns the number of
// frames moved.
uint32_t sender_exchange(struct sender_lcore *s, struct sender_port *p);
// Takes other lcores' frames for a port whose queue this lcore owns.
void sender_collect(struct sender_lcore *s, struct sender_port *p);
// This lcore's counters of a port.
struct sender_count sender_count_port(const struct sender_lcore *s, const struct sender_port *p);
bool sender_balanced(const struct sender_lcore *all);
