// SPDX-License-Identifier: BSD-3-Clause
// Unresponsive traffic: UDP datagrams at a constant rate, whatever becomes of them (sender/udp/
// sends them).
#include "sender/source/source.h"
#include "sender/udp/udp.h"

#include <errno.h>

#define GAP_NS_MIN 10

static const char *const gaps_names[] = {"fixed", "exponential", NULL};

static const struct param params[] = {
	{"rate", NULL, "payload of each flow, as iperf's -b", UNIT_RATE_BPS,
		PARAM_U64(struct udp_config, rate_bps), 1000, 1e12},
	{"size", "1200B", "payload of a datagram, as iperf's -l", UNIT_BYTES,
		PARAM_U64(struct udp_config, bytes), WIRE_UDP_NUMBERS, UDP_BYTES_MAX},
	{"gaps", "fixed", "times between datagrams; exponential: they are a Poisson process",
		UNIT_NONE, PARAM_ENUM(struct udp_config, gaps, gaps_names)},
	PARAM_END,
};

static int udp_configure(void *config, struct config_node *node, struct err *err) {
	const struct udp_config *c = config;
	double gap_ns = (double)c->bytes * 8e9 / (double)c->rate_bps;

	if (gap_ns < GAP_NS_MIN)
		return config_err(node, -ERANGE, err,
			"udp: a datagram each %.3g ns; 10 ns is the least", gap_ns);
	return 0;
}

static uint64_t udp_bytes(const void *config, struct rng *rng) {
	return SOURCE_ENDLESS;
}

const struct source_ops source_udp = {
	.name = "udp",
	.summary = "UDP datagrams at a constant rate, without congestion control",
	.reference = "RFC 768; receiver reports as in RFC 3550, section 6.4.1",
	.params = params,
	.config_size = sizeof(struct udp_config),
	.kind = SOURCE_ONCE,
	.transport = &transport_udp,
	.random = true,
	.configure = udp_configure,
	.bytes = udp_bytes,
};
