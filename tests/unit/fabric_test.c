// SPDX-License-Identifier: BSD-3-Clause
#include "common/base/rng.h"
#include "switch/path/fabric.h"
#include "test.h"

#include <string.h>

struct mac {
	uint8_t b[6];
};

static struct mac station(uint32_t n) {
	return (struct mac){
		{0x02, 0, (uint8_t)(n >> 24), (uint8_t)(n >> 16), (uint8_t)(n >> 8), (uint8_t)n}};
}

static const struct mac broadcast = {{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}};

static struct fabric open_fabric(uint32_t ports, uint32_t addresses) {
	struct fabric f;
	struct err err;

	ck_assert_int_eq(fabric_init(&f, ports, addresses, FABRIC_AGE_NS, &err), 0);
	return f;
}

static struct fabric_decision relay(
	struct fabric *f, struct mac dst, struct mac src, uint32_t in_port, uint64_t now_ns) {
	return fabric_relay(f, dst.b, src.b, in_port, now_ns);
}

static void expect(struct fabric_decision d, enum fabric_action action, uint64_t ports) {
	ck_assert_int_eq(d.action, action);
	ck_assert_uint_eq(d.ports, ports);
	if (action == FABRIC_FORWARD)
		ck_assert_uint_eq(UINT64_C(1) << d.port, ports);
}

TEST(learns_where_stations_are) {
	struct fabric f = open_fabric(4, 100);

	expect(relay(&f, station(2), station(1), 0, 0), FABRIC_FLOOD, 0xe); // unknown
	expect(relay(&f, station(1), station(2), 3, 1), FABRIC_FORWARD, 0x1);
	expect(relay(&f, station(2), station(1), 0, 2), FABRIC_FORWARD, 0x8);
	expect(relay(&f, station(1), station(3), 0, 3), FABRIC_DROP, 0); // same port
	expect(relay(&f, station(9), station(1), 2, 4), FABRIC_FLOOD, 0xb); // it moved
	expect(relay(&f, station(1), station(2), 3, 5), FABRIC_FORWARD, 0x4);
	ck_assert_uint_eq(f.moved, 1);
	ck_assert_uint_eq(f.learned, 3);
	fabric_fini(&f);
}

TEST(groups_flood_and_are_never_learned) {
	struct fabric f = open_fabric(3, 100);
	struct mac group = {{0x01, 0, 0x5e, 0, 0, 1}}, zero = {{0}};

	expect(relay(&f, broadcast, station(1), 1, 0), FABRIC_FLOOD, 0x5); // ARP and the like
	expect(relay(&f, group, station(1), 1, 0), FABRIC_FLOOD, 0x5);
	expect(relay(&f, station(1), broadcast, 0, 0), FABRIC_FORWARD, 0x2);
	expect(relay(&f, broadcast, station(1), 2, 0), FABRIC_FLOOD, 0x3);
	expect(relay(&f, zero, zero, 0, 0), FABRIC_FLOOD, 0x6);
	ck_assert_uint_eq(f.learned, 1);
	fabric_fini(&f);
}

// All sixteen of 01:80:c2:00:00:0x: those, too, that no protocol has yet.
TEST(link_local_control_is_not_relayed) {
	struct fabric f = open_fabric(3, 100);
	struct mac mac = {{0x01, 0x80, 0xc2, 0, 0, 0}};

	for (mac.b[5] = 0x00; mac.b[5] < 0x10; mac.b[5]++)
		expect(relay(&f, mac, station(1), 0, 0), FABRIC_DROP, 0);
	expect(relay(&f, mac, station(1), 0, 0), FABRIC_FLOOD, 0x6);
	fabric_fini(&f);
}

TEST(addresses_age) {
	struct fabric f = open_fabric(2, 100);

	relay(&f, broadcast, station(1), 0, 1000);
	expect(relay(&f, station(1), station(2), 1, 1000 + FABRIC_AGE_NS), FABRIC_FORWARD, 0x1);
	expect(relay(&f, station(1), station(2), 1, 1001 + FABRIC_AGE_NS), FABRIC_FLOOD, 0x1);
	relay(&f, broadcast, station(1), 0, 2000 + FABRIC_AGE_NS); // seen again
	expect(relay(&f, station(1), station(2), 1, 2000 + 2 * FABRIC_AGE_NS), FABRIC_FORWARD, 0x1);
	fabric_fini(&f);
}

TEST(static_stations_stay) {
	struct fabric f = open_fabric(3, 100);
	struct err err;

	ck_assert_int_eq(fabric_add_static(&f, station(1).b, 2, &err), 0);
	expect(relay(&f, station(1), station(2), 0, 1), FABRIC_FORWARD, 0x4);
	relay(&f, broadcast, station(1), 1, 2); // claims to be elsewhere
	expect(relay(&f, station(1), station(2), 0, 100 * FABRIC_AGE_NS), FABRIC_FORWARD, 0x4);
	ck_assert_int_lt(fabric_add_static(&f, broadcast.b, 2, &err), 0);
	ck_assert_int_lt(fabric_add_static(&f, station(3).b, 3, &err), 0);
	fabric_fini(&f);
}

TEST(a_port_that_is_down_gets_nothing) {
	struct fabric f = open_fabric(3, 100);

	relay(&f, broadcast, station(1), 0, 0);
	fabric_set_up(&f, 0, false);
	expect(relay(&f, station(1), station(2), 1, 1), FABRIC_FLOOD, 0x4); // forgotten
	expect(relay(&f, broadcast, station(2), 1, 1), FABRIC_FLOOD, 0x4);
	relay(&f, broadcast, station(1), 2, 2); // it was plugged in elsewhere
	expect(relay(&f, station(1), station(2), 1, 3), FABRIC_FORWARD, 0x4);
	fabric_set_up(&f, 0, true);
	expect(relay(&f, broadcast, station(2), 1, 4), FABRIC_FLOOD, 0x5);
	fabric_fini(&f);
}

// The config says where the station is: its frames are not flooded to the other ports, nor sent to
// a port without a link. Once the link is back they are forwarded again, before the station has
// sent anything.
TEST(a_static_station_keeps_its_port_while_that_is_down) {
	struct fabric f = open_fabric(3, 100);
	struct err err;

	ck_assert_int_eq(fabric_add_static(&f, station(1).b, 2, &err), 0);
	fabric_set_up(&f, 2, false);
	expect(relay(&f, station(1), station(2), 0, 1), FABRIC_DROP, 0);
	fabric_set_up(&f, 2, true);
	expect(relay(&f, station(1), station(2), 0, 2), FABRIC_FORWARD, 0x4);
	fabric_fini(&f);
}

TEST(two_ports_and_all_ports) {
	struct fabric f = open_fabric(1, 10);

	expect(relay(&f, broadcast, station(1), 0, 0), FABRIC_DROP, 0);
	fabric_fini(&f);
	f = open_fabric(64, 10);
	expect(relay(&f, broadcast, station(1), 63, 0), FABRIC_FLOOD, UINT64_MAX >> 1);
	expect(relay(&f, station(1), station(2), 0, 0), FABRIC_FORWARD, UINT64_C(1) << 63);
	fabric_fini(&f);
}

// As many stations as asked for are all known, whatever their addresses.
TEST(the_table_holds_what_was_asked_for) {
	struct fabric f = open_fabric(8, 5000);
	uint32_t lost = 0;

	for (uint32_t i = 0; i < 5000; i++)
		relay(&f, broadcast, station(i * 257), i % 8, i);
	for (uint32_t i = 0; i < 5000; i++) {
		struct fabric_decision d =
			relay(&f, station(i * 257), station(i * 257), (i + 1) % 8, 5000);
		lost += d.action != FABRIC_DROP; // it has just moved to that port
	}
	ck_assert_uint_eq(lost, 0);
	ck_assert_uint_eq(f.evicted, 0);
	fabric_fini(&f);
}

// Far more stations than room: bounded, static ones stay, the newest are known.
TEST(a_flood_of_addresses_is_harmless) {
	struct fabric f = open_fabric(4, 16);
	struct err err;

	ck_assert_int_eq(fabric_add_static(&f, station(7).b, 3, &err), 0);
	for (uint32_t i = 100; i < 100000; i++) {
		relay(&f, broadcast, station(i), i % 4, i);
		struct fabric_decision d = relay(&f, station(i), station(7), (i + 1) % 4, i);
		if (d.action != FABRIC_FORWARD || d.port != i % 4)
			ck_abort_msg("station %u", i);
	}
	expect(relay(&f, station(7), station(100), 0, 100000), FABRIC_FORWARD, 0x8);
	ck_assert_uint_gt(f.evicted, 90000);
	fabric_fini(&f);
}

// A new address takes the entry that was seen longest ago: stations that send all the time stay
// known, however many addresses come and go.
TEST(stations_that_send_stay_known) {
	struct fabric f = open_fabric(4, 16);
	uint64_t now_ns = 0;

	for (uint32_t i = 100; i < 1100; i++) {
		now_ns += 2 * NS_PER_MS;
		for (uint32_t k = 0; k < 8; k++)
			relay(&f, broadcast, station(k), k % 4, now_ns);
		relay(&f, broadcast, station(i), 0, now_ns);
	}
	for (uint32_t k = 0; k < 8; k++)
		expect(relay(&f, station(k), station((k + 1) % 8), (k + 1) % 4, now_ns),
			FABRIC_FORWARD, UINT64_C(1) << k % 4);
	ck_assert_uint_eq(f.learned, 1000 + 8); // each once
	ck_assert_uint_gt(f.evicted, 900);
	fabric_fini(&f);
}

// An entry that has aged is forgotten already: `evicted` counts only stations that were still
// known.
TEST(reuse_of_an_aged_entry_is_no_eviction) {
	struct fabric f = open_fabric(4, 16);

	for (uint32_t i = 100; i < 1100; i++)
		relay(&f, broadcast, station(i), 0, 0);
	uint64_t evicted = f.evicted;

	ck_assert_uint_gt(evicted, 900);
	for (uint32_t i = 0; i < 16; i++)
		relay(&f, broadcast, station(i), 0, FABRIC_AGE_NS + 1);
	ck_assert_uint_eq(f.learned, 1000 + 16);
	ck_assert_uint_eq(f.evicted, evicted);
	fabric_fini(&f);
}

// Ports 0 and 1 are received on one lcore, 2 and 3 on another.
TEST(lcores_know_what_the_others_learned) {
	struct fabric f = open_fabric(4, 100), g = open_fabric(4, 100);
	struct mac zero = {{0}};

	fabric_join(&f, &g);
	fabric_join(&g, &f);
	relay(&f, broadcast, station(1), 0, 0);
	expect(relay(&g, station(1), station(2), 2, 10), FABRIC_FORWARD, 0x1);
	expect(relay(&f, station(2), station(1), 0, 20), FABRIC_FORWARD, 0x4);
	expect(relay(&g, zero, station(2), 2, 25), FABRIC_FLOOD, 0xb);
	// Station 1 moves from one lcore's port to the other's, and back.
	relay(&g, broadcast, station(1), 3, 5 * NS_PER_MS);
	expect(relay(&f, station(1), station(4), 1, 6 * NS_PER_MS), FABRIC_FORWARD, 0x8);
	expect(relay(&g, station(1), station(2), 2, 6 * NS_PER_MS), FABRIC_FORWARD, 0x8);
	relay(&f, broadcast, station(1), 0, 9 * NS_PER_MS);
	expect(relay(&g, station(1), station(2), 2, 10 * NS_PER_MS), FABRIC_FORWARD, 0x1);
	// Aged in one, seen in the other.
	relay(&g, broadcast, station(1), 3, FABRIC_AGE_NS + 10 * NS_PER_MS);
	expect(relay(&f, station(1), station(4), 1, FABRIC_AGE_NS + 11 * NS_PER_MS), FABRIC_FORWARD,
		0x8);
	expect(relay(&f, station(2), station(4), 1, 2 * FABRIC_AGE_NS), FABRIC_FLOOD, 0xd);
	// Each forgets what is behind a port that went down.
	fabric_set_up(&g, 3, false);
	expect(relay(&f, station(1), station(4), 1, FABRIC_AGE_NS + 12 * NS_PER_MS), FABRIC_FLOOD,
		0xd);
	fabric_fini(&f);
	fabric_fini(&g);
}

TEST(sizes_are_bounded) {
	struct fabric f;
	struct err err;

	ck_assert_int_lt(fabric_init(&f, 0, 10, FABRIC_AGE_NS, &err), 0);
	ck_assert_int_lt(fabric_init(&f, 65, 10, FABRIC_AGE_NS, &err), 0);
	ck_assert_int_lt(fabric_init(&f, 2, UINT32_MAX, FABRIC_AGE_NS, &err), 0);
}
