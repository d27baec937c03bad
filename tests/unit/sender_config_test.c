// SPDX-License-Identifier: BSD-3-Clause
#include "sender/host/sender_config.h"
#include "test.h"

#include <string.h>

struct site {
	struct config *config;
	struct groups groups;
	struct sender_config live;
	struct err err;
};

static int site_open_flows(
	struct site *s, const char *paths, const char *flows, const char *sender) {
	char text[2048];
	int rc;

	memset(s, 0, sizeof(*s));
	snprintf(text, sizeof(text), "%sflows: %s\nlive: {sender: {lcores: [0], %s}}\n", paths,
		flows, sender);
	s->config = config_parse("t", text, strlen(text), &s->err);
	ck_assert_msg(s->config != NULL, "%s", s->err.msg);
	rc = groups_init(&s->groups, config_get(config_root(s->config), "flows"), &s->err);
	ck_assert_msg(rc == 0, "%s", s->err.msg);
	return sender_config_init(&s->live, s->config, &s->groups, &s->err);
}

static int site_open(struct site *s, const char *paths, const char *sender) {
	return site_open_flows(s, paths, "[{count: 60000, cc: copa}]", sender);
}

static void site_close(struct site *s) {
	groups_fini(&s->groups);
	config_free(s->config);
}

#define BOTH                                                                                       \
	"ports: [{name: a, role: sender, dev: net_null0}, {name: b, role: receiver, "              \
	"dev: net_null1}]"

TEST(addresses_have_defaults) {
	struct site s;

	ck_assert_msg(site_open(&s, "", BOTH) == 0, "%s", s.err.msg);
	const struct live_port *a = sender_config_port(&s.live, LIVE_SENDER);
	const struct live_port *b = sender_config_port(&s.live, LIVE_RECEIVER);
	ck_assert_uint_eq(a->ip, 0xc6120001);
	ck_assert_uint_eq(a->peer, 0xc6130001);
	ck_assert_uint_eq(a->next_hop, 0xc6130001);
	ck_assert_uint_eq(b->ip, a->peer);
	ck_assert_uint_eq(b->peer, a->ip);
	ck_assert_uint_eq(a->peer_port, 5001);
	ck_assert_uint_eq(a->common.lead_ns, 20000);
	ck_assert_uint_eq(s.live.rate_bps, 10000000000);
	ck_assert_uint_eq(s.live.pipe_ns, 200000000);
	site_close(&s);
}

TEST(dynamic_connections_are_a_count) {
	struct site s;

	ck_assert_msg(site_open(&s, "", "dynamic_connections: 5, " BOTH) == 0, "%s", s.err.msg);
	ck_assert_uint_eq(s.live.dynamic_connections, 5);
	site_close(&s);
	ck_assert_int_lt(site_open(&s, "", "dynamic_connections: [7], " BOTH), 0);
	ck_assert_ptr_nonnull(
		strstr(s.err.msg, "dynamic_connections: a single value is wanted, not a list"));
	site_close(&s);
}

// 30 ms of delay, 5 ms late, a queue of 2 BDP and one of 20 ms, 10 ms to spare.
TEST(network_follows_from_paths) {
	struct site s;

	ck_assert_msg(site_open(&s,
			      "paths:\n"
			      "  forward:\n"
			      "    - link: {rate: 1Gbit, queue: {fifo: {limit: 2BDP}}}\n"
			      "    - delay: {delay: 20ms, late_by: 5ms}\n"
			      "    - link: {rate: 500Mbit, queue: {codel: {limit: 20ms}}}\n"
			      "  reverse: [{link: {rate: 100Mbit, queue: {fifo: {limit: 125kB}}}}, "
			      "{delay: {delay: 10ms}}]\n",
			      BOTH)
			== 0,
		"%s", s.err.msg);
	ck_assert_uint_eq(s.live.rate_bps, 500000000);
	ck_assert_uint_eq(s.live.pipe_ns, 3 * 35000000 + 20000000 + 10000000 + 10000000);
	ck_assert_int_eq(config_unused(s.config, &s.err), 0);
	site_close(&s);
	ck_assert_int_eq(site_open(&s, "", "rate: 25Gbit, pipe: 1s, " BOTH), 0);
	ck_assert_uint_eq(s.live.rate_bps, 25000000000);
	ck_assert_uint_eq(s.live.pipe_ns, 1000000000);
	site_close(&s);
}

// A scoreboard for the first rate and the first delay was full once both had grown. A queue's limit
// in BDPs is that of the start; what is called by its own name or its place counts, another path's
// rate does not.
TEST(network_follows_from_the_schedule) {
	struct site s;

	ck_assert_msg(
		site_open(&s,
			"paths:\n"
			"  forward:\n"
			"    - link: {rate: 10Mbit, queue: {fifo: {limit: 2BDP}}}\n"
			"    - delay: {delay: 20ms}\n"
			"    - link: {rate: 20Mbit, name: last, queue: {fifo: {limit: 5ms}}}\n"
			"    - delay: {delay: 1ms}\n"
			"  reverse: [{delay: {delay: 10ms}}]\n"
			"schedule:\n"
			"  - {at: 2s, forward.delay2.late_by: 2ms, forward.link.rate: 5Mbit}\n"
			"  - {at: 1s, forward.link.rate: 1Gbit, forward.last.rate: 500Mbit}\n"
			"  - {at: 3s, forward.delay.delay: 600ms, reverse.link.rate: 2Gbit}\n"
			"  - {at: 4s, forward.delay.delay: 20ms}\n",
			BOTH)
			== 0,
		"%s", s.err.msg);
	ck_assert_uint_eq(s.live.rate_bps, 500000000);
	ck_assert_uint_eq(s.live.pipe_ns, 613000000 + 2 * 31000000 + 5000000 + 10000000);
	ck_assert_int_eq(config_unused(s.config, &s.err), 0);
	site_close(&s);
}

TEST(bad_ports_are_one_sentence) {
	static const struct {
		const char *sender, *sentence;
	} cases[] = {
		{"ports: []", "live.sender.ports: a list of 1 to 2 ports is required"},
		{"ports: [{name: a, role: sender, dev: net_null0}, "
		 "{name: b, role: sender, dev: net_null1}]",
			"two ports are sender"},
		{"ports: [{name: a, role: sender, dev: net_null0}, "
		 "{name: b, role: receiver, dev: net_null0}]",
			"'net_null0' is used twice"},
		{"ports: [{name: a, role: sender, dev: net_null0, ip: 198.18.0.256}]",
			"'198.18.0.256' is not an IPv4 address"},
		{"ports: [{name: a, role: sender, dev: net_null0, peer: 8.8.8.8}]",
			"peer: 8.8.8.8 is outside 198.18.0.0/15, the addresses for tests; "
			"live.allow_destinations: yes sends there all the same"},
		{"ports: [{name: a, role: receiver, dev: net_null0, peer: 8.8.8.8}]",
			"peer: 8.8.8.8 is outside 198.18.0.0/15"},
		// Its answers would go there.
		{"ports: [{name: a, role: sender, dev: net_null0, ip: 10.0.0.1}]",
			"ip: 10.0.0.1 is outside 198.18.0.0/15"},
		{"ports: [{name: a, role: sender, dev: net_null0, gateway: 192.168.1.1}]",
			"gateway: 192.168.1.1 is outside 198.18.0.0/15"},
		// The second of two addresses, which 60000 flows take.
		{"ports: [{name: a, role: sender, dev: net_null0, ip: 198.19.255.255}]",
			"ip: 198.20.0.0 is outside 198.18.0.0/15"},
		{"ports: [{name: a, role: receiver, dev: net_null0, peer: 198.19.255.255}]",
			"peer: 198.20.0.0 is outside 198.18.0.0/15"},
		{"ports: [{name: a, role: sender, dev: net_null0, peer: 198.18.0.2}]",
			"is one of the addresses of 60000 flows"},
		{"ports: [{name: a, role: sender, dev: net_null0, mac: 1}]",
			"'1' is not a MAC address"},
		{"ports: [{name: a, role: sender, dev: net_null0, queues: 2}]",
			"queues: 1, or one for each of lcores: 1"},
		{"ports: [{name: a, role: sender, dev: net_null0, delay: 10ms}]",
			"delay: only a receiver delays what it sends"},
		{"ports: [{name: a, role: both, dev: net_null0}]", "role"},
		{"ports: [{role: sender, dev: net_null0}]", "name is required"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct site s;

		ck_assert_int_lt(site_open(&s, "", cases[i].sender), 0);
		ck_assert_msg(strstr(s.err.msg, cases[i].sentence) != NULL, "%s", s.err.msg);
		site_close(&s);
	}
}

TEST(destinations_can_be_allowed) {
	struct site s;
	const char *text =
		"flows: [{cc: copa}]\nlive: {allow_destinations: yes, sender: {lcores: [0], "
		"ports: [{name: a, role: sender, dev: net_null0, ip: 10.0.0.1, peer: "
		"10.0.0.2, gateway: 10.0.0.254}]}}\n";

	memset(&s, 0, sizeof(s));
	s.config = config_parse("t", text, strlen(text), &s.err);
	ck_assert_ptr_nonnull(s.config);
	ck_assert_int_eq(
		groups_init(&s.groups, config_get(config_root(s.config), "flows"), &s.err), 0);
	ck_assert_msg(
		sender_config_init(&s.live, s.config, &s.groups, &s.err) == 0, "%s", s.err.msg);
	ck_assert_uint_eq(s.live.port[0].next_hop, 0x0a0000fe);
	site_close(&s);
}

// What flows can send together is what the paths carry in which they begin; a later hop adds to the
// time.
TEST(network_follows_from_the_paths_of_the_groups) {
	struct site s;

	ck_assert_msg(site_open_flows(&s,
			      "paths:\n"
			      "  hop1: [{link: {rate: 1Gbit, queue: {fifo: {limit: 10ms}}}}]\n"
			      "  hop2: [{link: {rate: 300Mbit, queue: {fifo: {limit: 10ms}}}}]\n"
			      "  hop3: [{link: {rate: 9Gbit, queue: {fifo: {limit: 10ms}}}}]\n"
			      "  back: [{delay: {delay: 10ms}}]\n",
			      "[{cc: copa, path: {forward: [hop1, hop3], reverse: back}}, "
			      "{cc: copa, path: {forward: hop2, reverse: back}}]",
			      BOTH)
			== 0,
		"%s", s.err.msg);
	ck_assert_uint_eq(s.live.rate_bps, 1300000000);
	ck_assert_uint_eq(s.live.pipe_ns, 3 * 10000000 + 10000000 + 10000000);
	site_close(&s);
}
