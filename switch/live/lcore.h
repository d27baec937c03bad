// SPDX-License-Identifier: BSD-3-Clause
// The live switch's data path: one struct per lcore, one turn after another.
//
// A turn receives, reads the clock once, relays, moves packets through the paths and transmits
// what is due. Each departure is compared with its theoretical time: the emulation error. A port that
// sends at times (stamp.h) gets packets a little before theirs, from a path that ends in a delay.
//
// Several lcores. A port, with the path before it, is one lcore's: only that one sends there, and looks after
// the link. A frame that another one received goes to it through a ring between the two, which it reads
// like a port, before the clock. So a frame's arrival is the time of the turn that takes it off the ring:
// it may be taken for later than it was, never for earlier. A full ring drops what does not fit (reason `tx`),
// counted per ring. Frames of one flow keep their order: they pass through the same ring.
//
// Every packet is accounted for: received + copied (floods) == transmitted + dropped + inside.
#pragma once
#include "common/live/dpdk.h"

#include "common/base/hist.h"
#include "common/live/lcore.h"
#include "switch/arena.h"
#include "switch/fabric.h"
#include "switch/live/plan.h"
#include "switch/path.h"
#include "switch/schedule.h"

#include <stdatomic.h>

#define SWITCH_OUT_MAX 512 // due packets that wait for their port
#define SWITCH_FRESH_MAX 512
#define SWITCH_SMALL_MAX 80 // bytes of a frame without FCS that wait outside their mbuf: most ACKs

// What the switch keeps in a packet, for itself. Small frames wait beside their struct pkt, in two
// cache lines that lie together, and give their mbuf back at once: it is warm when the next one is
// received, and 3 million of them take 400 MB instead of 7 GB. Larger ones wait in their mbuf.
struct switch_mark {
	uint8_t ecn; // as received: written back only if a queue changed it
	uint8_t len; // of a small frame, which begins at `frame`; 0: it is in its mbuf
	uint8_t frame[] __attribute__((aligned(8)));
};
static_assert(offsetof(struct pkt, user) + offsetof(struct switch_mark, frame) + SWITCH_SMALL_MAX
		== ARENA_PKT_BYTES,
	"two lines");

static inline struct switch_mark *switch_mark(struct pkt *p) {
	return (struct switch_mark *)(void *)p->user;
}

static inline void switch_count(struct path_count *c, uint32_t bytes) {
	c->pkts++;
	c->bytes += bytes;
}

// A packet that is to leave: when it should, and what telemetry tells of it.
struct switch_departure {
	uint64_t due_ns;
	uint32_t flow_id; // from here on as in struct pkt: one move
	uint16_t size_bytes;
	uint8_t ecn, port;
	uint32_t id;
};
#define SWITCH_TOLD_BYTES 12
static_assert(offsetof(struct switch_departure, id) - offsetof(struct switch_departure, flow_id)
		== offsetof(struct pkt, id) - offsetof(struct pkt, flow_id),
	"as in struct pkt");

// Sums for the line that fits lateness over time best. A point is the most punctual burst of 134 ms:
// what delays others is chance.
#define SWITCH_TREND_SHIFT 27
struct switch_trend {
	uint64_t slot, due_ns, late_ns; // of 2^27 ns; its most punctual burst
	uint64_t first_due_ns;
	double n, x, y, xx, xy; // x: seconds since the first; y: ns late
};

// Frames on their way from one lcore to another.
struct switch_handover {
	struct rte_ring *ring; // NULL: there is no other
	uint64_t given; // the giver's count
	_Atomic uint64_t dropped; // likewise; the ring was full
};

// One port, with the path that leads out of it, as an lcore sees it: its own, or another's. What is not
// said to be another's is its own.
struct switch_port {
	struct port *port; // of all lcores
	struct switch_handover *to; // another's: frames for it, which wait in `out`, go there
	struct path *path; // NULL: straight out
	uint8_t last_link; // the path's last link in telemetry; 255: it has none
	uint64_t share, large_share; // packets the path may hold; of these, in their mbuf
	uint64_t inside, large; // and holds
	struct rte_mbuf *in[PORT_BURST_MAX]; // of this turn
	uint32_t came;
	struct pkt *batch[PORT_BURST_MAX]; // on their way into the path
	uint32_t batched;
	struct rte_mbuf *out[SWITCH_OUT_MAX]; // out of it, and what is known of each
	struct switch_departure due[SWITCH_OUT_MAX];
	uint32_t outs;
	uint64_t out_bytes;
	uint64_t refused_ns; // since when the port has taken nothing; NEVER_NS: it takes
	struct path_count rx, tx;
	uint64_t tx_dropped;
	// How late packets left, since the warm-up: undisturbed, and where a stall of the lcore or a full
	// port disturbed them. Whether the first grows: its trend is the rate error. `early` stays 0.
	struct hist late, late_disturbed;
	struct switch_trend trend;
	uint64_t early;
	uint64_t scheduled; // handed over before their time, for the port to keep
};

// What the control thread may ask the lcores for; answered between bursts.
enum switch_request { SWITCH_SNAPSHOT, SWITCH_PARAMS, SWITCH_SET, SWITCH_MEASURE };

struct switch_snapshot {
	uint64_t now_ns;
	struct path_count rx[LIVE_PORTS_MAX], tx[LIVE_PORTS_MAX];
	uint64_t tx_dropped[LIVE_PORTS_MAX];
	struct path_count in[PATHS_MAX], out[PATHS_MAX], drop[PATHS_MAX][DROP_REASONS];
	uint64_t inside[PATHS_MAX];
	// Departures since the warm-up, per port: how many, how late in all, how late at most.
	uint64_t left[LIVE_PORTS_MAX], late_sum_ns[LIVE_PORTS_MAX], late_max_ns[LIVE_PORTS_MAX];
	uint32_t links;
	struct {
		uint32_t path;
		char name[48];
		uint64_t rate_bps, queue_pkts, queue_bytes, out_pkts, out_bytes, drops, marks;
		double wire_bits, capacity_bits;
	} link[PATH_LINKS_MAX];
	uint64_t pool_free;
	// Of each lcore: handed to others; for others, but there was no room.
	uint64_t given[LIVE_LCORES_MAX], not_given[LIVE_LCORES_MAX];
};

// A question to an lcore and its answer. What all of them answer together is in the first one's.
struct switch_mailbox {
	struct path *path; // SWITCH_SET
	char key[64], value[64];
	int rc;
	struct err err;
	double before, after;
	uint32_t first; // SWITCH_PARAMS: as paths_next_param finds them, from this one on
	double param[CONTROL_STRINGS];
	struct switch_snapshot snapshot;
};

struct switch_lcore {
	struct lcore lcore;
	// Set up before the loop.
	struct switch_lcore *all; // lcores, the first of them
	const struct plan *plan;
	struct path *path[PATHS_MAX]; // its own
	uint32_t paths;
	struct paths *whole; // with those of other lcores
	uint32_t links; // of all paths
	struct schedule schedule; // of its own paths
	struct rte_mempool *pool;
	struct arena small; // frames of up to SWITCH_SMALL_MAX that are inside paths
	bool flows_matter; // a delay or the telemetry asks whose packet it is
	struct fabric fabric;
	uint32_t burst;
	uint64_t patience_ns;

	// The loop's own.
	struct switch_port port[LIVE_PORTS_MAX];
	struct switch_handover give[LIVE_LCORES_MAX]; // to each of the others
	struct rte_ring *take[LIVE_LCORES_MAX]; // from the others
	uint32_t takes;
	struct rte_mbuf *handed[PORT_BURST_MAX]; // of this iteration
	uint32_t handeds;
	struct path_count unread; // left in rings at the end
	struct rte_mbuf
		*fresh[SWITCH_FRESH_MAX]; // buffers whose frames were copied, for the next ones
	uint32_t freshes;
	uint64_t schedule_ns; // next change; NEVER_NS: none, or not yet started
	uint64_t copies, copied_bytes;
	struct path_count drop[DROP_REASONS]; // by the switch itself, not by paths

	struct switch_mailbox mailbox; // shared with the control thread
};

static inline struct switch_lcore *switch_lcore(struct lcore *l) {
	return (struct switch_lcore *)(void *)l;
}
static_assert(offsetof(struct switch_lcore, lcore) == 0, "the one is the other");

extern const struct lcore_ops switch_lcore_ops;
void switch_drop(struct switch_lcore *s, struct rte_mbuf *m, uint32_t bytes, enum drop_reason why);
// Frees packets that the port's path dropped: it has counted them.
void switch_free_drops(struct switch_lcore *s, struct switch_port *out);
// What waits for another lcore's port goes to that lcore.
void switch_hand_over(struct switch_lcore *s, struct switch_port *out);

// departures.c. What is due goes out, burst by burst, until nothing is or the port is full.
void switch_serve(struct switch_lcore *s, struct switch_port *out);
// Until when packets leave the path: until now, but for a port that keeps their times.
uint64_t switch_horizon(const struct switch_lcore *s, const struct switch_port *out);

// housekeeping.c, between iterations; as in struct lcore_ops.
bool switch_housekeep(struct lcore *l);
void switch_start(struct lcore *l);
void switch_measure(struct lcore *l);
bool switch_answer(struct lcore *l);
void switch_observe(const struct lcore *l, struct watch_count *c);
// Appends a record per link for the interval that ends now.
void switch_interval(struct switch_lcore *s);

// handover.c; what has `all` is about all lcores.
//
// Gives out ports, queues and paths, and makes the rings between lcores, once `ports` are known. The paths'
// records go to their lcore's streams.
int switch_share(struct switch_lcore *all, struct paths *paths, const struct schedule *schedule,
	struct err *err);
void switch_unshare(struct switch_lcore *all);
// Empties the rings, once all have ended.
void switch_clear(struct switch_lcore *all);
// Packets in all paths, in rings and waiting for ports.
struct path_count switch_inside(const struct switch_lcore *all);
bool switch_balanced(const struct switch_lcore *all);
// What the lcore that has the port knows of it.
static inline struct switch_port *switch_owner(struct switch_lcore *all, uint32_t port) {
	return &all[all->plan->port[port].lcore].port[port];
}
