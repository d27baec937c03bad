// SPDX-License-Identifier: BSD-3-Clause
// The live sender's config, `live.sender`: ports, addresses, and how much may be under way. Pure.
//
//	live:
//	  sender:
//	    lcores: [0]            flow i is on the (i % n)th of n
//	    ports:
//	      - {name: a, role: sender, dev: "net_memif0,...", ip: 198.18.0.1, peer: 198.19.0.1}
//	      - {name: b, role: receiver, dev: "net_memif1,...", ip: 198.19.0.1, peer: 198.18.0.1}
//
// One port of each role at most. Either may be the only one: the other side is then another
// program, or another kernel.
#pragma once
#include "common/config/live.h"
#include "common/net/wire.h"
#include "sender/group/group.h"

struct live_port {
	struct live_port_common common;
	char ip_text[PARAM_TEXT_SIZE], peer_text[PARAM_TEXT_SIZE];
	char gateway_text[PARAM_TEXT_SIZE], mac_text[PARAM_TEXT_SIZE];
	int role; // enum live_role
	// Sender: the receiving side's TCP port; receiver: the one it listens on.
	uint64_t peer_port;
	uint32_t ip; // first of the port's addresses
	uint32_t peer; // sender: the receiving side; receiver: first address of the sending side
	uint32_t next_hop; // frames go to its MAC address: the gateway or the peer
	uint64_t delay_ns; // receiver: how long its ACKs wait before they are sent
	uint64_t queues; // to receive and to transmit: one, or one for each lcore
	struct wire_mac mac;
	bool mac_given;
};

struct sender_config {
	struct live_process process;
	uint64_t rate_bps; // the network's, at its fastest
	// The longest time that a packet and its ACK can be under way, queues included.
	uint64_t pipe_ns;
	uint64_t answer_ns; // how long a peer may take to answer
	uint64_t begin_utc_ns; // when flows begin; 0: at once
	uint64_t dynamic_connections; // that a receiver takes beside those of the config's flows
	bool checksum; // verify received TCP checksums
	struct live_port port[LIVE_ROLES];
	uint32_t ports;
};

// Reads live.sender; what is not given about the network follows from `paths` and `schedule`.
int sender_config_init(
	struct sender_config *p, struct config *c, const struct groups *gs, struct err *err);
// The keys of live.sender, for --list.
void sender_config_list(struct run_list *l);
// The port of a role, or NULL.
const struct live_port *sender_config_port(const struct sender_config *p, enum live_role role);
