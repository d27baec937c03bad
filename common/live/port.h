// SPDX-License-Identifier: BSD-3-Clause
// Ports and packet pools. A packet is an mbuf whose private area is a struct pkt.
//
// One receive and one transmit queue per port, promiscuous, no offloads: what a virtual device
// takes and gives is what is on the wire.
#pragma once
#include "common/live/dpdk.h"

#include "common/base/err.h"
#include "common/base/pkt.h"
#include "common/live/eal.h"
#include "common/live/live.h"
#include "common/live/stamp.h"
#include "common/net/wire.h"
#include "common/telemetry/telemetry.h"

#include <rte_ethdev.h>
#include <rte_mbuf.h>
#include <stdatomic.h>

#define PORT_DESCRIPTORS 1024
#define PORT_BURST_MAX 256

struct port {
	struct live_dev dev;
	char name[PARAM_TEXT_SIZE]; // the user's
	uint16_t id; // ethdev's
	uint16_t rx_queues, tx_queues; // set before port_open; 0: one
	struct wire_mac mac;
	bool open;
	bool memif, client; // a memif port; one that connects to its peer
	struct stamp stamp; // when frames arrived, and are to leave, if a card keeps time
	// How long before its time a frame may be handed over; by the program before port_open, which
	// makes it 0 where the port holds none.
	uint64_t lead_ns;
	bool started; // changes only while the lcore stands still (intr.h)
	uint64_t connected_ns; // control thread, client: last attempt, monotonic
	// Written by port_poll_link, for memif ports by port_handled; read by the lcore.
	_Atomic bool up;
	// The lcore's, by port_changed.
	bool was_up; // at first true, so that a port that is down is said to be
	bool ever_up; // before that it does not count as gone down
	uint64_t downs, down_ns; // how often it went down, and for how long in all
	uint64_t first_down_ns, last_down_ns;
};

static_assert(sizeof(struct rte_mbuf) == 128, "the private area follows the mbuf");
static_assert(RTE_CACHE_LINE_SIZE == 64, "struct pkt is one line");

static inline struct pkt *port_pkt(struct rte_mbuf *m) {
	return (struct pkt *)(void *)((char *)m + sizeof(struct rte_mbuf));
}

static inline struct rte_mbuf *port_mbuf(struct pkt *p) {
	return (struct rte_mbuf *)(void *)((char *)p - sizeof(struct rte_mbuf));
}

// What a frame of so many bytes without FCS counts as.
static inline uint16_t port_frame_bytes(uint32_t len) {
	return (uint16_t)((len < WIRE_MIN_FRAME ? WIRE_MIN_FRAME : len) + WIRE_FCS);
}

// Buffers a port keeps for itself: descriptors, fill queues, bursts in flight.
uint64_t port_own_buffers(const struct live_dev *dev, uint64_t burst);
// Memory of a pool of so many buffers.
uint64_t pool_bytes(uint64_t buffers);
// Makes the pool, its pages present and its data zero. NULL: err says why.
struct rte_mempool *pool_create(const char *name, uint64_t buffers, struct err *err);

// Probes the device (not a PCI one: the EAL did), configures and starts it. Frames are spread over its
// receive queues by RSS of addresses and ports where it can do that, else as its driver does. More queues
// than it has: -ENOTSUP.
int port_open(struct port *p, const struct live_dev *dev, const char *name,
	struct rte_mempool *pool, const struct eal *eal, struct err *err);
void port_close(struct port *p);
// Control thread: asks the kernel or the driver whether the link is up. A memif client whose server
// has gone tries to connect again, twice a second.
void port_poll_link(struct port *p);
// Lcore, after intr_pass: drivers may have connected or disconnected ports.
void port_handled(struct port *p);
// Lcore: has the link gone up or down (p->was_up) since the last call?
bool port_changed(struct port *p, uint64_t now_ns);
// Records that, of the program's i-th port.
void port_tell(const struct port *p, struct tel *events, uint32_t i, uint64_t now_ns);
// Once the lcore has ended: "port right went down twice, first at 1.2 s, for 3.4 s in all", as the run
// counts that began at start_ns. False: it never did.
bool port_fault(const struct port *p, uint64_t start_ns, uint64_t now_ns, char *text, size_t size);

// The lcore's bursts; a queue is one lcore's.
static inline uint16_t port_rx(struct port *p, uint16_t queue, struct rte_mbuf **m, uint16_t n) {
	return p->started ? rte_eth_rx_burst(p->id, queue, m, n) : 0;
}

static inline uint16_t port_tx(struct port *p, uint16_t queue, struct rte_mbuf **m, uint16_t n) {
	return p->started ? rte_eth_tx_burst(p->id, queue, m, n) : 0;
}
