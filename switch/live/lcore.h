// SPDX-License-Identifier: BSD-3-Clause
// The live switch's data path: one struct per lcore, one iteration after another.
//
// An iteration receives, reads the clock once, relays, moves packets through the paths and
// transmits due frames. The difference of each departure from its theoretical time is the emulation
// error (egress.h). A port with transmit stamps gets packets a little before their time, from a
// path that ends in a delay.
//
// Several lcores: one lcore owns a port and the path before it; only this lcore sends there and
// watches the link. A frame received by another lcore goes to the owner through a ring
// (common/live/lcore/ring.h). Its arrival time is that of the iteration that takes it off the ring,
// which may be later than the real one, never earlier. Frames that find the ring full are dropped
// (reason `tx`) and counted per ring. Frames of one flow pass through the same ring, so they keep
// their order.
//
// Every packet is accounted for: received + replayed (captures) + copied (floods) + duplicated ==
// transmitted + dropped
// + inside.
#pragma once
#include "common/live/base/dpdk.h"

#include "common/live/lcore/egress.h"
#include "common/live/lcore/lcore.h"
#include "switch/live/arena.h"
#include "switch/live/source.h"
#include "switch/path/fabric.h"
#include "switch/path/path.h"
#include "switch/path/schedule.h"
#include "switch/path/switch_config.h"
#include "switch/serialiser/stats.h"

#define SWITCH_EGRESS_SLOTS 512 // frames that wait for their port, a power of two
#define SWITCH_MBUF_CACHE 512
#define SWITCH_CHECKED 64 // TCP and UDP frames of a port whose checksums are looked at
#define SWITCH_INSPECTED 4096 // first frames of a port, among which these are
#define SWITCH_SMALL_MAX 80 // bytes of a frame without FCS that waits outside its mbuf: most ACKs

// The switch's metadata of a packet. Small frames are copied beside their struct pkt, into two
// adjacent cache lines, and their mbuf is free at once: it is still in the cache for the next
// frame, and 3 million small frames take 400 MB instead of 7 GB. Larger frames wait in their mbuf,
// and so do small ones while their path holds few packets (SWITCH_SHORT_PKTS), which stay in the
// cache.
struct packet_metadata {
	uint8_t ecn; // as received: written back only if a queue changed it
	uint8_t len; // of a copied frame, which begins at `frame`; 0: it is in its mbuf
	uint8_t port; // by which it leaves, in the lcore that owns it
	uint8_t route; // its group's (routes.c); 0: it has none
	bool replayed; // from a capture; of packets whose flow matters
	uint8_t frame[] __attribute__((aligned(8)));
};
static_assert(
	offsetof(struct pkt, user) + offsetof(struct packet_metadata, frame) + SWITCH_SMALL_MAX
		== ARENA_PKT_BYTES,
	"two lines");

static inline struct packet_metadata *packet_metadata(struct pkt *p) {
	return (struct packet_metadata *)(void *)p->user;
}

// The packet's data for a departure record, laid out as in struct pkt, so that it is copied by one
// move.
struct switch_trace {
	uint32_t flow_id;
	uint16_t size_bytes;
	uint8_t ecn, pool;
	uint32_t id;
};
static_assert(offsetof(struct switch_trace, id)
		== offsetof(struct pkt, id) - offsetof(struct pkt, flow_id),
	"as in struct pkt");

// One port, with the path that leads out of it, as an lcore has it. Paths, their packets and
// departures are the owner's.
struct switch_port {
	struct path *path; // NULL: frames go to the port's queue, or to the owner
	struct switch_source *source; // the path's capture; NULL: none
	uint64_t quota, large_quota; // packets that the path may hold; of these, in their mbuf
	uint64_t inside, large; // that it holds
	struct pkt_list due; // have left the last path of their route and wait for the port
	uint32_t nb_rx, nb_batched;
	struct rte_mbuf *rx_burst[PORT_BURST_MAX]; // of this iteration
	struct pkt *batch[PORT_BURST_MAX]; // on their way into the path
	struct pkt_count rx;
	// Of its first frames; of these, TCP and UDP; of these, without their checksum.
	uint32_t inspected, checked, offloaded;
	struct egress egress;
	// Of each frame in `egress`, if departures are traced.
	struct switch_trace trace[SWITCH_EGRESS_SLOTS];
	uint8_t last_link; // the path's last link in telemetry; 255: it has none
};

// Requests of the control thread to the lcores, answered between bursts.
enum switch_request { SWITCH_SNAPSHOT, SWITCH_PARAMS, SWITCH_SET, SWITCH_MEASURE };

struct switch_snapshot {
	uint64_t now_ns;
	struct pkt_count rx[LIVE_PORTS_MAX], tx[LIVE_PORTS_MAX];
	uint64_t tx_dropped[LIVE_PORTS_MAX];
	struct pkt_count in[PATHS_MAX], duplicated[PATHS_MAX], out[PATHS_MAX];
	struct pkt_count drop[PATHS_MAX][DROP_REASONS];
	uint64_t inside[PATHS_MAX];
	// Departures since the warm-up, per port: how many, how late in all, how late at most.
	uint64_t left[LIVE_PORTS_MAX], late_sum_ns[LIVE_PORTS_MAX], late_max_ns[LIVE_PORTS_MAX];
	struct switch_link {
		uint32_t path;
		char name[48];
		uint64_t rate_bps, queue_pkts, queue_bytes;
		struct link_count count;
		double wire_bits, capacity_bits;
	} link[PATH_LINKS_MAX];
};

// A request to an lcore and its answer. The sum of all lcores' answers is in the first lcore's
// mailbox.
struct switch_mailbox {
	struct path *path; // SWITCH_SET
	char key[64], value[64];
	int rc;
	struct err err;
	double before, after;
	// SWITCH_PARAMS: as paths_next_param finds them, from box.first on.
	double param[CONTROL_STRINGS];
	struct switch_snapshot snapshot;
};

// The routes of groups that name their paths: of each one its first path, and the one behind each
// of its paths. NULL:
// the port. The first route is that of a port, which has one path or none.
#define SWITCH_ROUTES (1 + FLOWS_DIRECTIONS * GROUPS_MAX)
struct switch_routes {
	struct path *first[SWITCH_ROUTES];
	struct path *next[SWITCH_ROUTES][PATHS_MAX];
	// The order in which paths are served: one before those behind it, if it can be.
	struct path *order[PATHS_MAX];
	uint32_t paths;
	struct stage_env exit[PATHS_MAX]; // traces the departures of each path
};

// Packets are joined if they leave at the same time. So above about 1 Gbit/s, iterations of an
// lcore with a port that joins (offloads: on) are a gather time apart. Packets still arrive when
// they did, and leave later than they are due by at most that time.
#define SWITCH_GATHER_NS (50 * NS_PER_US)
#define SWITCH_GATHER_WINDOW_NS (128 * NS_PER_US)
#define SWITCH_GATHER_PKTS 8
struct switch_gather {
	bool joins; // a port of the lcore does
	bool dense; // at least SWITCH_GATHER_PKTS were sent in the window before
	bool waits; // in this iteration
	uint64_t sent; // by the start of this window, which ends at window_ns
	uint64_t window_ns, until_ns;
	uint64_t served_ns; // up to when packets were last taken off paths
	uint64_t stepped_ns; // up to when their first stages were last served out of turn
};

struct switch_lcore {
	struct lcore lcore;
	// Set up before the loop.
	struct switch_lcore *all; // lcores, the first of them
	const struct switch_config *config;
	struct path *path[PATHS_MAX]; // its own
	uint32_t paths;
	struct paths *all_paths; // with those of other lcores
	uint32_t links; // of all paths
	struct capture *capture; // --pcap; NULL: none
	uint32_t sources; // paths whose packets come from captures
	struct schedule schedule; // of its own paths
	struct rte_mempool *pool;
	struct arena small; // frames of up to SWITCH_SMALL_MAX that are inside paths
	struct switch_routes *routes; // NULL: packets pass the path of their port
	bool flows_matter; // a stage or the telemetry needs a packet's flow
	struct fabric fabric;
	uint32_t burst;

	// Used by the loop only.
	struct switch_port port[LIVE_PORTS_MAX];
	struct lcore_ring ring[LIVE_LCORES_MAX]; // to each of the other lcores
	struct lcore_ring *rx_ring[LIVE_LCORES_MAX]; // from them
	uint32_t rx_rings;
	struct rte_mbuf *handed[PORT_BURST_MAX]; // taken from them in this iteration
	uint32_t nb_handed;
	struct pkt_count unread; // left in rings at the end
	struct rte_mbuf *mbuf_cache[SWITCH_MBUF_CACHE]; // free mbufs of copied frames
	uint32_t nb_cached;
	struct switch_gather gather;
	uint64_t schedule_ns; // next change; NEVER_NS: none, or not yet started
	bool answers; // a stage has made one: there may be some in paths
	struct pkt_count copied;
	struct pkt_count drop[DROP_REASONS]; // without frames that waited for a port

	struct switch_mailbox mailbox; // shared with the control thread
};

static inline struct switch_lcore *switch_lcore(struct lcore *l) {
	return (struct switch_lcore *)(void *)l;
}
static_assert(offsetof(struct switch_lcore, lcore) == 0, "the one is the other");

extern const struct lcore_ops switch_lcore_ops;
// lcore.c. Relays a frame that the switch has made, as if it had come in at port `in`, by now.
void switch_relay_own(struct switch_lcore *s, uint32_t in, struct rte_mbuf *m);

// owner.c. The owner of the lcore's packets. It reads hosts and headers as they were received, and
// makes copies as far as the packet's port has room.
struct pkt_owner switch_pkt_owner(struct switch_lcore *s);

// gather.c. Sets the arrivals of `n` packets from a kernel's port, or one whose card stamps them:
// its own, but for those before the time up to which the first stage of their path has decided.
void switch_set_arrivals(const struct switch_lcore *s, struct port *from,
	const struct switch_port *out, struct rte_mbuf *const *m, size_t n,
	struct pkt *const *batch);
// Whether packets of the next iteration are gathered, and until when, after one that began at
// now_ns and got nb_rx. A full burst leaves others behind it.
void switch_gather(struct switch_lcore *s, uint64_t now_ns, uint32_t nb_rx);

// inspect.c. Why a frame is dropped that is longer than a buffer or that wire_check finds not good.
enum drop_reason switch_invalid(const struct rte_mbuf *m);
// Looks at the first frames of a port, in the present burst: if a host leaves checksums to its
// card, there are none behind a virtual one, and its packets are lost at their receiver.
void switch_find_offloads(struct switch_port *from);

// departures.c. Transmits due packets burst by burst, until none is due or the port takes no more.
void switch_serve(struct switch_lcore *s, struct switch_port *out);
// How much later than now packets leave the path: those for a port with transmit stamps.
static inline uint64_t switch_lead_ns(const struct switch_lcore *s, const struct switch_port *out) {
	return s->routes == NULL && egress_keeps_times(&out->egress)
		? time_min(out->egress.port->lead_ns, out->path->tail_ns)
		: 0;
}
// Starts the recording of departures, if telemetry is on for them.
void switch_trace_departures(struct switch_lcore *s);

// routes.c. Makes the routes, if a group names its paths. -ENOMEM and a sentence.
int switch_routes_init(struct switch_lcore *s, struct paths *paths, struct err *err);
// The route of a flow's packets in one direction; 0: it has none.
static inline uint8_t switch_route(
	const struct switch_lcore *s, uint32_t group, uint32_t direction) {
	uint32_t route = 1 + FLOWS_DIRECTIONS * group + direction;

	return s->routes != NULL && s->routes->first[route] != NULL ? (uint8_t)route : 0;
}
// Puts `n` packets of the port's batch into the first paths of their routes.
void switch_routes_push(struct switch_lcore *s, struct switch_port *out, uint32_t n);
// Moves packets that have left a path by now to the next one, or to their port.
void switch_routes_pass(struct switch_lcore *s);

// housekeeping.c, between iterations; as in struct lcore_ops.
bool switch_housekeep(struct lcore *l);
void switch_start(struct lcore *l);
void switch_measure(struct lcore *l);
bool switch_answer(struct lcore *l);
void switch_observe(const struct lcore *l, struct watch_count *c);
// Appends a record per link for the interval that ends now.
void switch_interval(struct switch_lcore *s);

// handover.c; functions with `all` act on all lcores.
//
// Assigns ports, queues and paths to lcores and makes the rings between these, once `ports` are
// known. The paths' records go to their lcore's streams.
int switch_assign(struct switch_lcore *all, struct paths *paths, const struct schedule *schedule,
	struct err *err);
void switch_unassign(struct switch_lcore *all);
// Empties the rings, once all have ended.
void switch_clear(struct switch_lcore *all);
// The lcore's own drops with a reason, outside paths.
struct pkt_count switch_dropped(const struct switch_lcore *s, enum drop_reason why);
// Packets in all paths, in rings and waiting for ports.
struct pkt_count switch_inside(const struct switch_lcore *all);
bool switch_balanced(const struct switch_lcore *all);
// The port's struct in its owner lcore.
static inline struct switch_port *switch_owner(struct switch_lcore *all, uint32_t port) {
	return &all[all->config->port[port].lcore].port[port];
}
