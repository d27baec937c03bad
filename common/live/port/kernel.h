// SPDX-License-Identifier: BSD-3-Clause
// Ports at a kernel's interface that carry super-frames: `dev: kernel0,iface=X`.
//
// An AF_PACKET socket with PACKET_VNET_HDR, which DPDK's driver does not have. Hosts keep their
// offloads. A super-frame is cut into the packets that its host's card would send
// (common/net/super_frame.h): one after the other, as fast as a card of KERNEL_LINE_BPS sends,
// from the kernel's timestamp on. Packets come out of kernel_rx once they have arrived.
//
// With `offloads: on` packets that leave together are joined to super-frames: the kernel's work is
// per frame, and so are the ACKs of its TCP.
//
// Partial sums. The packet of a host that leaves its checksums to its card is marked
// RTE_MBUF_F_RX_L4_CKSUM_NONE if its sum is still partial. Sums are filled in on the way in, unless
// all ports of the program are of this kind (kernel_keep_sums). Those of small frames, which wait
// outside their mbuf, always are.
#pragma once
#include "common/live/base/dpdk.h"

#include "common/base/err.h"
#include "common/live/base/clock.h"
#include "common/net/wire.h"

#include <rte_ethdev.h>
#include <rte_mbuf.h>

#define KERNEL_LINE_BPS (10 * UINT64_C(1000000000)) // a veth's, as the kernel says
#define KERNEL_BURST_MAX 256
#define KERNEL_SMALL_MAX 128 // bytes
#define KERNEL_PARTIAL RTE_MBUF_F_RX_L4_CKSUM_NONE

struct kernel;

struct kernel_count {
	uint64_t frames, packets, bytes; // the kernel's, ours, and without FCS
};

// Opens the interface. -ENOTSUP and a sentence; the interface has been checked (iface.h).
int kernel_open(struct kernel **kernel, const char *iface, bool joins, struct rte_mempool *pool,
	struct err *err);
void kernel_close(struct kernel *k); // NULL is allowed
int kernel_socket(const struct kernel *k);
struct wire_mac kernel_mac(const struct kernel *k);
bool kernel_joins(const struct kernel *k);
// Before the lcores run: partial sums stay as they are.
void kernel_keep_sums(struct kernel *k);
void kernel_stats(const struct kernel *k, struct rte_eth_stats *stats);
// What has been received, or sent.
struct kernel_count kernel_received(const struct kernel *k);
struct kernel_count kernel_sent(const struct kernel *k);

// As rte_eth_rx_burst; a packet's arrival time is in its struct pkt, as release_ns.
uint16_t kernel_rx(struct kernel *k, const struct clock *clock, struct rte_mbuf **m, uint16_t n);
// As rte_eth_tx_burst, at most KERNEL_BURST_MAX packets.
uint16_t kernel_tx(struct kernel *k, struct rte_mbuf **m, uint16_t n);
