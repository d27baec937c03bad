// SPDX-License-Identifier: BSD-3-Clause
#include "common/net/flow_addr.h"
#include "test.h"

#define FLOWS 1000000u

// Every flow has an address of its own, and the address gives the flow back.
TEST(addresses_and_flows_are_one_to_one) {
	uint64_t before = 0;

	for (uint32_t i = 0; i < FLOWS; i++) {
		uint32_t ip = flow_addr_ip(FLOW_ADDR_SENDER, i);
		uint16_t port = flow_addr_port(i);
		uint64_t both = (uint64_t)ip << 16 | port;

		ck_assert_uint_gt(both, before);
		before = both;
		ck_assert_uint_eq(flow_addr_index(FLOW_ADDR_SENDER, FLOWS, ip, port), i);
		ck_assert_uint_ge(port, 10000);
	}
	ck_assert_uint_eq(flow_addr_ip(FLOW_ADDR_SENDER, FLOWS - 1), FLOW_ADDR_SENDER + 19);
	ck_assert_uint_eq(flow_addr_count(FLOWS), 20);
	ck_assert_uint_eq(flow_addr_count(50000), 1);
	ck_assert_uint_eq(flow_addr_count(50001), 2);
	ck_assert_uint_eq(flow_addr_count(0), 1);
}

TEST(other_addresses_are_no_flows) {
	const uint32_t base = FLOW_ADDR_SENDER;

	ck_assert_uint_eq(flow_addr_index(base, 10, base, 10009), 9);
	ck_assert_uint_eq(flow_addr_index(base, 10, base, 10010), FLOW_ADDR_NONE);
	ck_assert_uint_eq(flow_addr_index(base, 10, base, 9999), FLOW_ADDR_NONE);
	ck_assert_uint_eq(flow_addr_index(base, FLOWS, base, 60000), FLOW_ADDR_NONE);
	ck_assert_uint_eq(flow_addr_index(base, FLOWS, base - 1, 10000), FLOW_ADDR_NONE);
	ck_assert_uint_eq(flow_addr_index(base, FLOWS, base + 20, 10000), FLOW_ADDR_NONE);
	ck_assert_uint_eq(flow_addr_index(base, FLOWS, 0, 10000), FLOW_ADDR_NONE);
	ck_assert_uint_eq(flow_addr_index(base, UINT32_MAX, UINT32_MAX, 10000), FLOW_ADDR_NONE);
}

// Both directions of a connection are one flow, and 10000 connections are nearly all distinct.
TEST(hashes_name_connections) {
	uint32_t same = 0, last = 0;

	for (uint16_t port = 1; port <= 10000; port++) {
		uint32_t there = flow_addr_hash(1, 2, port, 80, 6);

		ck_assert_uint_eq(there, flow_addr_hash(2, 1, 80, port, 6));
		ck_assert_uint_ge(there, FLOW_ADDR_HASHED);
		ck_assert_uint_ne(there, flow_addr_hash(1, 2, port, 80, 17));
		same += there == last;
		last = there;
	}
	ck_assert_uint_eq(same, 0);
}

// A subnet's hosts have different numbers, none of which is a flow group's; source and destination
// have their places.
TEST(hosts_have_numbers) {
	static bool used[65536];

	for (uint32_t i = 0; i < 256; i++) {
		uint32_t host = flow_addr_host(FLOW_ADDR_SENDER + i);

		ck_assert(host >= 0x8000 && host <= 0xffff && !used[host]);
		used[host] = true;
		ck_assert_uint_eq(
			flow_addr_hosts(FLOW_ADDR_SENDER + i, 7), host << 16 | flow_addr_host(7));
	}
}
