// SPDX-License-Identifier: BSD-3-Clause
// Hosts on ports: a lcore drives the sending and the receiving side. A turn receives, reads the
// clock once, lets timers fire and transmits.
//
// Several lcores share the flows (host.h). Each has a struct sender_lcore with all that it works on; frames
// that came to another, or leave through a port that another serves, pass through rings (shard.c).
// The first lcore looks after what there is one of: the clock, the state of ports, the ends of intervals.
//
// A port answers ARP and ping for its addresses, resolves its next hop before the run begins, and
// resets what belongs to no connection. The receiving side knows the connections of the config's
// flows by their addresses (flow_addr.h), and those of others, a kernel's for example, by connections.h.
//
// A port that sends at times (stamp.h) gets paced frames a little before theirs: the hosts live that
// much, `lead`, ahead of the clock. They learn of what comes in as much later, by their clock, so that an
// RTT reads longer by it.
//
// Everything is accounted for: what hosts, ARP and ping wanted to send is transmitted, dropped or
// waiting; what was received went to a host, was answered, or has a reason why not.
#pragma once
#include "common/live/dpdk.h"

#include "common/base/hist.h"
#include "common/live/lcore.h"
#include "sender/host.h"
#include "sender/live/plan.h"
#include "sender/survey.h"
#include "sender/tcp/connections.h"

#include <stdatomic.h>

#define SENDER_OUT_MAX 16384 // frames that wait for their port, a power of two
#define PORT_FULL 256 // waiting frames; the rest of the room is for what is not paced
#define SENDER_OUT_RING 1024 // frames on their way to the lcore that serves their port
#define SENDER_IN_MAX (2 * PORT_BURST_MAX) // frames that a turn takes from a port and other lcores
#define SENDER_STOCK 32 // empty frames at hand
#define SENDER_FETCH 4 // received frames whose headers are on their way while one is read

struct sender_count {
	uint64_t rx_frames, rx_bytes;
	uint64_t rx_tcp; // handed to the host
	uint64_t rx_arp, rx_echo;
	uint64_t rx_too_big; // "fragmentation needed": frames of ours that a router dropped
	uint64_t rx_other; // nothing we speak, or not for us
	uint64_t rx_outside; // from addresses that are not for tests: not answered
	uint64_t rx_reset; // TCP of no connection
	uint64_t rx_malformed;
	uint64_t tx_own; // ARP, ping and resets
	uint64_t tx_wanted; // these, and what the host wants to send
	uint64_t tx_frames, tx_bytes; // taken by the port
	uint64_t tx_dropped; // refused by it for too long, or no room to wait
	uint64_t no_mbuf; // no buffer to write them into
	// Between lcores; of one, these are 0.
	uint64_t rx_given, rx_got; // received by one, and another's
	uint64_t rx_no_room; // dropped: the ring to the other was full
	uint64_t tx_given, tx_got; // sent by one, through another
};

// All of it is totals.
static inline void sender_count_add(struct sender_count *sum, const struct sender_count *c) {
	const uint64_t *from = (const uint64_t *)c;
	uint64_t *to = (uint64_t *)sum;

	for (size_t i = 0; i < sizeof(*c) / sizeof(*from); i++)
		to[i] += from[i];
}

// A received segment of a connection.
struct sender_arrival {
	struct seg seg;
	struct wire_info info;
	uint32_t id; // index in the host, or FLOW_ADDR_NONE: somebody has to look
};

// What is known of a frame that waits for its port.
struct sender_waiting {
	uint64_t due_ns : 48; // when it was to leave (78 hours are enough); 0: it is not paced
	uint64_t bytes : 16;
};
static_assert(sizeof(struct sender_waiting) == 8, "one word");

struct sender_port {
	const struct live_port *plan;
	struct port *port; // all lcores'
	uint16_t queue;
	bool serves; // receives and transmits itself, on this queue
	bool leads; // looks after the port: serves its first queue
	struct host *host;
	struct sender_lcore *live; // for the host's output
	uint32_t addresses; // from plan->ip on
	struct wire_mac peer_mac; // the next hop's
	bool peer_known;
	_Atomic uint64_t peer_told; // of the first lcore's: peer_mac, for the others
	uint16_t ip_id;
	uint32_t path_mtu; // the smallest that a router has told; 0: none has
	struct rte_mbuf *in[SENDER_IN_MAX]; // of this turn
	uint32_t came;
	struct sender_arrival arrival[SENDER_IN_MAX]; // the segments among them
	uint32_t arrivals;
	struct wire_template head; // of what goes to the next hop
	struct rte_mbuf *out[SENDER_OUT_MAX]; // a ring
	struct sender_waiting waiting[SENDER_OUT_MAX]; // of the same frames
	uint32_t out_first, outs;
	uint64_t refused_ns; // since when the port has taken nothing; NEVER_NS: it takes
	struct sender_count count;
	// Paced segments since the warm-up: how long after their time they were handed to the port.
	struct hist late, late_disturbed; // by a stall of the lcore or while the port was full
	uint64_t early; // before it
	uint64_t scheduled; // handed over before their time, for the port to keep
	struct connections connections; // receiving side: those that are no flows'
	// Other lcores: of received frames theirs, and ours; of frames to send ours, and theirs. NULL: none.
	struct rte_ring *in_to[LIVE_LCORES_MAX], *in_from[LIVE_LCORES_MAX];
	struct rte_ring *out_to, *out_from[LIVE_LCORES_MAX];
	_Atomic uint64_t in_lost[LIVE_LCORES_MAX]; // theirs, of rx_no_room
};

// What may be asked of the lcore; answered between bursts, a survey over some turns.
enum sender_request { SENDER_SNAPSHOT, SENDER_SURVEY };

struct sender_snapshot {
	uint64_t now_ns, iteration_max_ns;
	uint32_t waiting, open, done, failed; // flows
	struct sender_count port[LIVE_ROLES];
	uint32_t outs[LIVE_ROLES];
};

// An lcore's answers.
struct sender_mailbox {
	struct sender_snapshot snapshot; // of a survey: at its end
	struct survey survey;
};

struct sender_lcore {
	struct lcore lcore;
	// Set up before the loop.
	struct sender_lcore *all; // lcores, the first of them
	const struct live_plan *plan;
	const struct groups *groups;
	struct rte_mempool *rx_pool,
		*tx_pool; // what is received is written over; payload stays zero
	struct rte_mbuf *stock[SENDER_STOCK]; // from tx_pool
	uint32_t stocked;

	// The hosts live by the clock and lcore.lead_ns, where the port keeps packets' times.
	struct host sender, receiver;
	struct sender_port port[LIVE_ROLES];
	// Of the interval that is being recorded: the first lcore's, so that all flows have the same.
	_Atomic uint64_t interval_end_ns;
	uint32_t interval_flow; // the next flow to record
	uint32_t measure_flow; // the next flow whose figures start anew
	_Atomic bool unanswered; // no SYN was answered in time
	_Atomic bool all_failed; // every flow gave up or was refused

	// Shared with the control thread.
	struct sender_mailbox mailbox;
	_Atomic uint64_t shown_open, shown_bytes;
};

static inline struct sender_lcore *sender_lcore(struct lcore *l) {
	return (struct sender_lcore *)(void *)l;
}
static_assert(offsetof(struct sender_lcore, lcore) == 0, "the one is the other");

extern const struct lcore_ops sender_lcore_ops;

// The calls with `all` are for all lcores at once, from the first one's thread.
//
// Resolves the next hop of the sending port: 0, or -EHOSTUNREACH after the plan's patience;
// -EINTR: a signal came first.
int sender_resolve(struct sender_lcore *all, struct err *err);
// Resets what is open and records what is left to record, once all have ended.
void sender_finish(struct sender_lcore *all);
// Is there nothing left to do for any lcore: flows that nobody answers, or that have all failed?
bool sender_hopeless(const struct sender_lcore *all);
bool sender_balanced(const struct sender_lcore *all);

static inline bool sender_sends(const struct sender_port *p) {
	return p->plan->role == LIVE_SENDER;
}

// Fetches the two lines of a frame's headers.
static inline void sender_fetch_frame(const struct rte_mbuf *m) {
	const char *frame = rte_pktmbuf_mtod(m, const char *);

	rte_prefetch0(frame);
	rte_prefetch0(frame + RTE_CACHE_LINE_SIZE);
}

// rx.c
// The MAC address that a port's frames go to.
void sender_learn_peer(struct sender_port *p, const struct wire_mac *mac);
// Takes over the address that another lcore has learned.
void sender_follow_peer(struct sender_lcore *s, struct sender_port *p);
// Reads all headers of the burst that came; segments are left for sender_deliver.
void sender_receive(struct sender_lcore *s, struct sender_port *p);
// What the first of them point to is fetched, once they are there themselves.
void sender_fetch(const struct sender_port *p);
// Hands over `n` of them, from the first on; fewer if there are no more.
void sender_deliver(struct sender_lcore *s, struct sender_port *p, uint32_t first, uint32_t n);
// The flow of the config that a segment belongs to, by its addresses, or FLOW_ADDR_NONE.
uint32_t sender_flow_of(const struct sender_port *p, const struct wire_addr *a);

// tx.c
// An empty frame from the pool whose payload is always zero; NULL: none is left, and counted.
struct rte_mbuf *sender_new_frame(struct sender_lcore *s, struct sender_port *p, uint8_t **data);
// Hands a frame over; `due_ns`: when it was to leave, 0: whenever.
void sender_put_frame(
	struct sender_lcore *s, struct sender_port *p, struct rte_mbuf *m, uint64_t due_ns);
// The same for one that was counted as wanted already.
void sender_queue_frame(
	struct sender_lcore *s, struct sender_port *p, struct rte_mbuf *m, uint64_t due_ns);
void sender_put_seg(struct sender_lcore *s, struct sender_port *p, const struct wire_addr *addr,
	const struct seg *seg);
void sender_flush(struct sender_lcore *s, struct sender_port *p);
// A host's output callback; ctx is its struct sender_port.
void sender_output(void *ctx, uint32_t id, const struct seg *seg, uint32_t n, uint8_t ecn,
	uint64_t due_ns, bool paced);

// shard.c
// Makes the rings between lcores, once the ports' queues are given out.
int sender_share(struct sender_lcore *all, struct err *err);
// Receives for all lcores and from all; the frames that were moved.
uint32_t sender_exchange(struct sender_lcore *s, struct sender_port *p);
// Takes frames of other lcores for a port that this one serves.
void sender_collect(struct sender_lcore *s, struct sender_port *p);
// Gives `n` waiting frames, from p->out[at] on, to the lcore that serves the port; how many it took.
uint32_t sender_hand_out(struct sender_port *p, uint32_t at, uint32_t n);
// Frames on their way to this lcore: received ones, or ones to send.
uint32_t sender_between(const struct sender_port *p, bool in);
