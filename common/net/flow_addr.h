// SPDX-License-Identifier: BSD-3-Clause
// Which addresses a flow of weir-sender uses, so that sender and switch name it alike.
//
//	flow i sends from  base + i / 50000 : 10000 + i % 50000   to   the peer : 5001
//
// Addresses come from 198.18.0.0/15, set aside for benchmarks (RFC 2544): sending sides from
// 198.18.0.1 on, receiving sides from 198.19.0.1 on.
#pragma once
#include <stdbool.h>
#include <stdint.h>

#define FLOW_ADDR_NET UINT32_C(0xc6120000) // 198.18.0.0/15
#define FLOW_ADDR_MASK UINT32_C(0xfffe0000)
#define FLOW_ADDR_SENDER UINT32_C(0xc6120001) // 198.18.0.1
#define FLOW_ADDR_RECEIVER UINT32_C(0xc6130001) // 198.19.0.1
#define FLOW_ADDR_PORT_FIRST 10000u
#define FLOW_ADDR_PORTS 50000u // per address
#define FLOW_ADDR_DST_PORT 5001u
#define FLOW_ADDR_NONE UINT32_MAX
// Flow ids that are a hash of the 5-tuple have the top bit set; flow indices never do.
#define FLOW_ADDR_HASHED UINT32_C(0x80000000)

static inline uint32_t flow_addr_ip(uint32_t base_ip, uint32_t flow) {
	return base_ip + flow / FLOW_ADDR_PORTS;
}

static inline uint16_t flow_addr_port(uint32_t flow) {
	return (uint16_t)(FLOW_ADDR_PORT_FIRST + flow % FLOW_ADDR_PORTS);
}

// Addresses that `flows` flows need.
static inline uint32_t flow_addr_count(uint32_t flows) {
	return flows == 0 ? 1 : (flows + FLOW_ADDR_PORTS - 1) / FLOW_ADDR_PORTS;
}

// The flow whose sending side is ip:port, or FLOW_ADDR_NONE.
static inline uint32_t flow_addr_index(
	uint32_t base_ip, uint32_t flows, uint32_t ip, uint16_t port) {
	uint32_t host = ip - base_ip; // wraps to something large when below

	if (port < FLOW_ADDR_PORT_FIRST || port >= FLOW_ADDR_PORT_FIRST + FLOW_ADDR_PORTS)
		return FLOW_ADDR_NONE;
	if (host > UINT32_MAX / FLOW_ADDR_PORTS - 1)
		return FLOW_ADDR_NONE;
	uint32_t flow = host * FLOW_ADDR_PORTS + (port - FLOW_ADDR_PORT_FIRST);
	return flow < flows ? flow : FLOW_ADDR_NONE;
}

// Spreads a 5-tuple over 31 bits; both directions of a connection give the same.
static inline uint32_t flow_addr_hash(
	uint32_t src_ip, uint32_t dst_ip, uint16_t src_port, uint16_t dst_port, uint8_t proto) {
	uint64_t a = (uint64_t)src_ip << 16 | src_port, b = (uint64_t)dst_ip << 16 | dst_port;
	uint64_t x =
		(a + b) * UINT64_C(0x9e3779b97f4a7c15) ^ (a ^ b) * UINT64_C(0xc2b2ae3d27d4eb4f);

	x = (x ^ x >> 32 ^ proto) * UINT64_C(0xd6e8feb86659fd93);
	return (uint32_t)(x >> 32) | FLOW_ADDR_HASHED;
}

// A host's number: a hash of its address in 15 bits, with the top bit set. Numbers of flow groups,
// which stand for hosts where weir-sender's flows share addresses, do not have it.
static inline uint32_t flow_addr_host(uint32_t ip) {
	return (uint32_t)(ip * UINT64_C(0x9e3779b97f4a7c15) >> 49) | 0x8000;
}

// The numbers of a packet's hosts: the source's in the upper half, the destination's in the lower
// one.
static inline uint32_t flow_addr_hosts(uint32_t src_ip, uint32_t dst_ip) {
	return flow_addr_host(src_ip) << 16 | flow_addr_host(dst_ip);
}
