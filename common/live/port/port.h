// SPDX-License-Identifier: BSD-3-Clause
// Ports and packet pools. The private area of a packet's mbuf is a struct pkt.
//
// Ports are promiscuous and use no offloads: virtual devices exchange frames as they are on the
// wire. Those at kernels' interfaces (kernel.h) are not DPDK's.
#pragma once
#include "common/live/base/dpdk.h"

#include "common/base/err.h"
#include "common/base/pkt.h"
#include "common/config/live.h"
#include "common/live/eal/eal.h"
#include "common/live/port/kernel.h"
#include "common/live/port/sockets.h"
#include "common/live/port/stamp.h"
#include "common/net/wire.h"
#include "common/telemetry/telemetry.h"

#include <rte_ethdev.h>
#include <rte_mbuf.h>
#include <stdatomic.h>

#define PORT_DESCRIPTORS 1024
#define PORT_BURST_MAX 256
#define PORT_POOL_CACHE 512

struct port {
	struct live_dev dev;
	char name[PARAM_TEXT_SIZE]; // from the config
	char peer[PARAM_TEXT_SIZE + 128]; // who takes its frames, in sentences
	uint16_t id; // ethdev's
	struct kernel *kernel; // instead of an ethdev; NULL: it is one
	const struct clock *clock; // that of the lcore of its first receive queue
	uint16_t rx_queues, tx_queues; // set before port_open; 0: one
	struct wire_mac mac;
	bool open;
	bool no_rss; // a card with several receive queues, whose driver spreads no frames
	bool memif, client; // a memif port; one that connects to its peer
	struct port_sockets sockets; // of a port at a kernel interface
	uint64_t dropped_before; // iface_dropped, before the port was opened
	struct stamp stamp; // receive and transmit stamps, if the device has them
	// How long before its time a frame may be given to the port. Set by the program before
	// port_open, which sets it to 0 if the port has no transmit stamps.
	uint64_t lead_ns;
	bool started; // changes only while the lcores are quiesced (quiesce.h)
	uint64_t connected_ns; // control thread, memif client: last attempt, CLOCK_MONOTONIC
	// Written by port_poll_link, for memif ports by port_handled; read by the lcore.
	_Atomic bool up;
	// Bytes without FCS or VLAN tag that its interface sends; 0: as many as a buffer holds. As
	// `up`: MTUs change.
	_Atomic uint32_t frame_max;
	atomic_bool removal; // the kernel asks for the card, which is to be taken away
	// Used by the lcore only; updated by port_changed.
	bool was_up; // true at first, so that a port that is down at the start is reported
	bool ever_up; // downs are counted only after this
	uint64_t downs, down_ns; // the number of times the link went down, and the total time
	uint64_t first_down_ns, last_down_ns;
};

static_assert(sizeof(struct rte_mbuf) == 128, "the private area follows the mbuf");
static_assert(PORT_BURST_MAX <= KERNEL_BURST_MAX, "a kernel's port takes a burst");
static_assert(RTE_CACHE_LINE_SIZE % sizeof(struct pkt) == 0, "struct pkt lies within one line");

static inline struct pkt *port_pkt(struct rte_mbuf *m) {
	return (struct pkt *)(void *)((char *)m + sizeof(struct rte_mbuf));
}

static inline struct rte_mbuf *port_mbuf(struct pkt *p) {
	return (struct rte_mbuf *)(void *)((char *)p - sizeof(struct rte_mbuf));
}

static inline const struct rte_mbuf *port_mbuf_const(const struct pkt *p) {
	return (const struct rte_mbuf *)(const void *)((const char *)p - sizeof(struct rte_mbuf));
}

// The length with which a frame is counted, in bytes with FCS and at least 64; `len` is without
// FCS.
static inline uint16_t port_frame_bytes(uint32_t len) {
	return (uint16_t)((len < WIRE_MIN_FRAME ? WIRE_MIN_FRAME : len) + WIRE_FCS);
}

// Buffers that a port keeps: in descriptors, fill queues and bursts in flight.
uint64_t port_own_buffers(const struct live_dev *dev, uint64_t burst);
// Memory of a pool for packets of up to `mtu` bytes.
uint64_t pool_bytes(uint64_t buffers, uint64_t mtu);
// Makes a pool with all pages present and zeroed data; `shared`: threads other than a single lcore
// use it. NULL: err has the reason.
struct rte_mempool *pool_create(
	const char *name, uint64_t buffers, uint64_t mtu, bool shared, struct err *err);

// Probes the device (except PCI devices, which the EAL has probed), configures and starts it. Its
// receive queues get frames by RSS over addresses and ports if it has that, else as its driver
// decides. -ENOTSUP: it has fewer queues than asked for.
int port_open(struct port *p, const struct live_port_common *config, struct rte_mempool *pool,
	const struct eal *eal, struct err *err);
void port_close(struct port *p);
// Control thread: reads the link's state from the kernel or the driver. Twice a second, a memif
// client that has lost its server tries to reconnect.
void port_poll_link(struct port *p);
// Lcore, after quiesce_pass: drivers may have connected or disconnected ports.
void port_handled(struct port *p);
// Lcore: whether the link has gone up or down (p->was_up) since the last call.
bool port_changed(struct port *p, uint64_t now_ns);
// Writes an event record about the change of the program's i-th port.
void port_trace(const struct port *p, struct tel *events, uint32_t i, uint64_t now_ns);
// Once the lcore has ended: writes "port right went down twice, first at 1.2 s, for 3.4 s in all";
// times count from start_ns. False: the link never went down.
bool port_fault(const struct port *p, uint64_t start_ns, uint64_t now_ns, struct fact *fault);

// If a card is to be taken away, which ends the run: "port right lost its card ...".
bool port_removed(const struct port *p, struct fact *fault);

// The driver's counters. Of net_af_packet and net_af_xdp, frames that were lost in front of the
// port are the kernel's counts: those without room in the port's sockets, and, for net_af_packet,
// those that its interface dropped before. Any thread but an lcore's.
void port_stats(struct port *p, struct rte_eth_stats *stats);
// Whether these count the frames that were lost in front of the port.
bool port_counts_missed(const struct port *p);
// Of `taken` frames that the driver took, how many it then did not send.
uint64_t port_unsent(const struct port *p, uint64_t taken);

// Whether the port sends such a frame. Of VLAN tags, the kernel lets one pass beyond the MTU.
static inline bool port_sends(const struct port *p, const uint8_t *frame, uint32_t len) {
	uint32_t most = atomic_load_explicit(&p->frame_max, memory_order_relaxed);

	return most == 0 || len <= most
		|| (len <= most + WIRE_TAG && frame[12] == WIRE_ETHERTYPE_VLAN >> 8
			&& frame[13] == (WIRE_ETHERTYPE_VLAN & 0xff));
}

// Receives and transmits bursts; each queue belongs to one lcore.
static inline uint16_t port_rx(struct port *p, uint16_t queue, struct rte_mbuf **m, uint16_t n) {
	if (unlikely(p->kernel != NULL))
		return kernel_rx(p->kernel, p->clock, m, n);
	return p->started ? rte_eth_rx_burst(p->id, queue, m, n) : 0;
}

static inline uint16_t port_tx(struct port *p, uint16_t queue, struct rte_mbuf **m, uint16_t n) {
	if (unlikely(p->kernel != NULL))
		return kernel_tx(p->kernel, m, n);
	return p->started ? rte_eth_tx_burst(p->id, queue, m, n) : 0;
}
