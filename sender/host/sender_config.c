// SPDX-License-Identifier: BSD-3-Clause
#include "sender/host/sender_config.h"

#include "common/base/ns.h"
#include "common/net/address.h"
#include "common/run/run_list.h"
#include "sender/group/network.h"

#include <errno.h>

static const struct param section_params[] = {
	LIVE_PROCESS_PARAMS(struct sender_config, process, "4096"),
	{"rate", "0bit",
		"what the network carries at most; 0: from paths and schedule, else 10Gbit",
		UNIT_RATE_BPS, PARAM_U64(struct sender_config, rate_bps), .min = 0, .max = 1e12},
	{"pipe", "0s",
		"longest round trip, queues included; 0: from paths and schedule, else 200ms",
		UNIT_TIME_NS, PARAM_U64(struct sender_config, pipe_ns), .min = 0, .max = 60e9},
	{"answer", "10s", "how long a peer may take to answer ARP and the first SYN", UNIT_TIME_NS,
		PARAM_U64(struct sender_config, answer_ns), .min = 1e6, .max = 3600e9},
	{"begin", "0",
		"UTC in nanoseconds, at most a minute ahead, at which flows begin; 0: at once",
		UNIT_NONE, PARAM_U64(struct sender_config, begin_utc_ns), .min = 0, .max = 9e18},
	{"dynamic_connections", "64",
		"connections a receiver takes beside those of `flows`, each lcore", UNIT_NONE,
		PARAM_U64(struct sender_config, dynamic_connections), .min = 0, .max = 65536},
	{"checksum", "yes", "verify received TCP checksums", UNIT_NONE,
		PARAM_BOOL(struct sender_config, checksum)},
	PARAM_END,
};
static const struct param also[] = {LIVE_PROCESS_ALSO("live.sender.ports"), PARAM_END};

static const struct param port_params[] = {
	LIVE_PORT_PARAMS(struct live_port, common),
	LIVE_PORT_ROLE(struct live_port, role),
	LIVE_PORT_IP(struct live_port, ip_text),
	{"peer", "", "the other side's first address; default: as above", UNIT_NONE,
		PARAM_TEXT(struct live_port, peer_text)},
	{"queues", "1", "receive and transmit queues: 1, or one for each of lcores", UNIT_NONE,
		PARAM_U64(struct live_port, queues), .min = 1, .max = LIVE_LCORES_MAX},
	{"delay", "0s", "of a receiver: how long after the data its ACKs leave", UNIT_TIME_NS,
		PARAM_U64(struct live_port, delay_ns), .min = 0, .max = 10e9},
	{"gateway", "", "next hop, if the peer is not on this network", UNIT_NONE,
		PARAM_TEXT(struct live_port, gateway_text)},
	{"port", "5001", "TCP port of the receiving side", UNIT_NONE,
		PARAM_U64(struct live_port, peer_port), .min = 1, .max = 65535},
	{"mac", "", "MAC address; default: the device's", UNIT_NONE,
		PARAM_TEXT(struct live_port, mac_text)},
	PARAM_END,
};

static const struct live_section section = {
	.name = "sender",
	.params = section_params,
	.also = also,
	.port_params = port_params,
	.port_size = sizeof(struct live_port),
	.ports_min = 1,
	.ports_max = LIVE_ROLES,
};

void sender_config_list(struct run_list *l) {
	run_list_live_section(l, &section, "weir-sender");
}

// Both ends of all connections, and the next hop, must have addresses for tests: what is sent to
// other addresses, and what they answer, would leave the testbed.
static int in_range(const struct sender_config *p, struct config_node *n,
	const struct live_port *port, uint32_t flows, struct err *err) {
	uint32_t more = flow_addr_count(flows) - 1, sends = port->role == LIVE_SENDER;
	const struct {
		const char *key;
		uint32_t first, last;
	} range[] = {
		{"ip", port->ip, port->ip + (sends ? more : 0)},
		{"peer", port->peer, port->peer + (sends ? 0 : more)},
		{"gateway", port->next_hop, port->next_hop},
	};
	char ip[ADDRESS_IP_SIZE];

	for (size_t i = 0; i < sizeof(range) / sizeof(range[0]); i++) {
		bool first = live_may_send(&p->process, range[i].first);

		if (first && live_may_send(&p->process, range[i].last))
			continue;
		address_ip_text(first ? range[i].last : range[i].first, ip);
		return config_err(n, -EINVAL, err,
			"%s: %s is outside 198.18.0.0/15, the addresses for tests; "
			"live.allow_destinations: yes sends there all the same",
			range[i].key, ip);
	}
	return 0;
}

static int port_addresses(const struct sender_config *p, struct live_port *port,
	struct config_node *n, uint32_t flows, struct err *err) {
	bool sends = port->role == LIVE_SENDER;
	uint32_t ours = sends ? FLOW_ADDR_SENDER : FLOW_ADDR_RECEIVER;
	uint32_t theirs = sends ? FLOW_ADDR_RECEIVER : FLOW_ADDR_SENDER;
	int rc;

	if ((rc = live_address(n, "ip", port->ip_text, ours, &port->ip, err)) < 0)
		return rc;
	if ((rc = live_address(n, "peer", port->peer_text, theirs, &port->peer, err)) < 0)
		return rc;
	if ((rc = live_address(n, "gateway", port->gateway_text, port->peer, &port->next_hop, err))
		< 0)
		return rc;
	port->mac_given = port->mac_text[0] != '\0';
	if (port->mac_given && !address_mac(port->mac_text, &port->mac))
		return config_err(n, -EINVAL, err,
			"mac: '%s' is not a MAC address such as 02:00:00:00:00:01", port->mac_text);
	if ((rc = in_range(p, n, port, flows, err)) < 0)
		return rc;
	if (sends && port->peer - port->ip < flow_addr_count(flows))
		return config_err(
			n, -EINVAL, err, "peer: is one of the addresses of %u flows", flows);
	return 0;
}

static int port_check(struct sender_config *p, uint32_t i, struct config_node *n, uint32_t flows,
	struct err *err) {
	struct live_port *port = &p->port[i];

	if (port->queues != 1 && port->queues != p->process.lcores)
		return config_err(n, -EINVAL, err, "queues: 1, or one for each of lcores: %u",
			p->process.lcores);
	if (port->delay_ns > 0 && port->role != LIVE_RECEIVER)
		return config_err(n, -EINVAL, err, "delay: only a receiver delays what it sends");
	if (i > 0 && port->role == p->port[0].role)
		return config_err(
			n, -EINVAL, err, "role: two ports are %s", live_role_names[port->role]);
	return port_addresses(p, port, n, flows, err);
}

// What the config does not say about the network follows from what a switch would make of it.
static void complete_network(
	struct sender_config *p, struct config_node *root, const struct groups *gs) {
	uint64_t base_rtt_ns = 0;
	struct network n;

	for (uint32_t i = 0; i < gs->count; i++)
		base_rtt_ns = time_max(base_rtt_ns, gs->group[i].base_rtt_ns);
	network_read(&n, root, base_rtt_ns, live_frame_bytes(&p->process));
	if (p->rate_bps == 0)
		p->rate_bps = n.rate_bps;
	if (p->pipe_ns == 0)
		p->pipe_ns = n.pipe_ns;
}

int sender_config_init(
	struct sender_config *p, struct config *c, const struct groups *gs, struct err *err) {
	struct config_node *node;
	int rc;

	if ((rc = live_section_read(&section, c, p, &p->process, &node, err)) < 0)
		return rc;
	if (p->process.lcores > gs->flows)
		return config_err(p->process.lcores_node, -EINVAL, err,
			"lcores: %u CPUs for %u flows; each needs one at least", p->process.lcores,
			gs->flows);
	if ((rc = live_ports_read(&section, &p->process, node, p->port, &p->ports, err)) < 0)
		return rc;
	for (uint32_t i = 0; i < p->ports; i++) {
		struct config_node *n = config_at(config_get(node, "ports"), i);

		if ((rc = port_check(p, i, n, gs->flows, err)) < 0)
			return rc;
	}
	if (groups_mtu_bytes(gs) > live_frame_bytes(&p->process))
		return config_err(node, -EINVAL, err,
			"flows: packets of %u bytes do not fit live.mtu, %llu bytes: a larger mtu, "
			"up to 9000B, or a smaller mss or payload does",
			groups_mtu_bytes(gs) - WIRE_ETH - WIRE_FCS,
			(unsigned long long)p->process.mtu);
	complete_network(p, config_root(c), gs);
	return 0;
}

const struct live_port *sender_config_port(const struct sender_config *p, enum live_role role) {
	for (uint32_t i = 0; i < p->ports; i++) {
		if (p->port[i].role == (int)role)
			return &p->port[i];
	}
	return NULL;
}
