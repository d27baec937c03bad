// SPDX-License-Identifier: BSD-3-Clause
// The transmit queue over DPDK's ring port, which takes 1023 frames and no more until they are
// received again.
#include "common/live/lcore/egress.h"

#include "test.h"

#include <math.h>
#include <rte_eal.h>

#define PORT_ROOM 1023
#define SLOTS 64
#define BURST 32
#define TX_TIMEOUT_NS 1000
#define LATE_NS 100

static struct rte_mempool *pool;
static struct port port;
static struct lcore lcore;
static struct egress egress;
static const struct live_process process = {.burst = BURST, .tx_timeout_ns = TX_TIMEOUT_NS};
static uint32_t made, received; // frames; each holds its number

// The clock stands still at a time.
static void at(uint64_t now_ns) {
	lcore.clock.line = (struct ticks_line){.ns = now_ns};
	lcore.now_ns = now_ns;
	watch_resume(&lcore.watch, now_ns);
}

static void init(uint32_t slots) {
	struct err err;

	ck_assert_int_eq(egress_init(&egress, &lcore, 0, slots, &process, &err), 0);
}

static void set_up(void) {
	static char *argv[] = {(char *)(uintptr_t) "egress_test", (char *)(uintptr_t) "--no-huge",
		(char *)(uintptr_t) "--no-pci", (char *)(uintptr_t) "-m", (char *)(uintptr_t) "64",
		(char *)(uintptr_t) "--no-telemetry", (char *)(uintptr_t) "--log-level=4",
		(char *)(uintptr_t) "--no-shconf", (char *)(uintptr_t) "--vdev=net_ring0"};
	struct rte_eth_conf conf = {0};

	ck_assert_int_ge(rte_eal_init(sizeof(argv) / sizeof(argv[0]), argv), 0);
	pool = rte_pktmbuf_pool_create(
		"test", 4095, 0, sizeof(struct pkt), RTE_MBUF_DEFAULT_BUF_SIZE, 0);
	ck_assert_ptr_nonnull(pool);
	ck_assert_int_eq(rte_eth_dev_configure(0, 1, 1, &conf), 0);
	ck_assert_int_eq(rte_eth_rx_queue_setup(0, 0, 0, 0, NULL, pool), 0);
	ck_assert_int_eq(rte_eth_tx_queue_setup(0, 0, 0, 0, NULL), 0);
	ck_assert_int_eq(rte_eth_dev_start(0), 0);
	port.started = port.was_up = true;
	lcore.port[0] = &port;
	lcore.owns_port[0] = true;
	watch_lcore_init(&lcore.watch, 1, 500, LATE_NS);
	at(1);
	init(SLOTS);
}

static struct rte_mbuf *frame(void) {
	struct rte_mbuf *m = rte_pktmbuf_alloc(pool);

	ck_assert_ptr_nonnull(m);
	*(uint32_t *)(void *)rte_pktmbuf_append(m, 60) = made++;
	return m;
}

static void enqueue(uint32_t n, uint64_t due_ns) {
	for (uint32_t i = 0; i < n; i++)
		egress_enqueue(&egress, frame(), due_ns, 64);
}

// Takes frames from the far side of the port: all of them in order, none left out.
static void receive(uint32_t n) {
	struct rte_mbuf *m;

	for (uint32_t i = 0; i < n; i++) {
		ck_assert_uint_eq(rte_eth_rx_burst(0, 0, &m, 1), 1);
		ck_assert_uint_eq(*rte_pktmbuf_mtod(m, uint32_t *), received++);
		rte_pktmbuf_free(m);
	}
}

// Fills the port but for so many frames.
static void fill(uint32_t but) {
	enqueue(PORT_ROOM - but, 0);
	egress_flush(&egress);
	ck_assert_uint_eq(egress.tx.pkts, PORT_ROOM - but);
	ck_assert_uint_eq(egress.count, 0);
}

TEST(a_burst_taken_in_part_keeps_the_order) {
	fill(10);
	enqueue(20, 0);
	egress_flush(&egress);
	ck_assert_uint_eq(egress.count, 10);
	ck_assert_uint_eq(egress.tx.pkts, PORT_ROOM);
	ck_assert_uint_eq(egress.tx.bytes, PORT_ROOM * 64);
	ck_assert_uint_eq(egress_bytes(&egress), 10 * 64);
	receive(PORT_ROOM);
	egress_flush(&egress);
	receive(10);
	ck_assert_uint_eq(egress.dropped.pkts, 0);
	ck_assert_uint_eq(lcore.watch.count.port[0].dropped, 0);
}

TEST(the_ring_of_slots_wraps_around_and_begins_anew) {
	fill(40);
	enqueue(SLOTS, 0); // the first burst leaves at once
	egress_flush(&egress);
	ck_assert_uint_eq(egress.first, 8);
	ck_assert_uint_eq(egress.count, SLOTS - 40);
	enqueue(40, 0);
	ck_assert_uint_eq(egress.count, SLOTS);
	ck_assert_uint_eq(egress_room(&egress), 0);
	receive(PORT_ROOM);
	egress_flush(&egress);
	ck_assert_uint_eq(egress.count, 0);
	ck_assert_uint_eq(egress.first, 0);
	receive(SLOTS);
}

TEST(room_is_counted_to_the_last_slot) {
	fill(40);
	enqueue(SLOTS, 0);
	egress_flush(&egress);
	ck_assert_uint_eq(egress_slot(&egress), 32);
	ck_assert_uint_eq(egress_room(&egress), 32);
	enqueue(32, 0);
	ck_assert_uint_eq(egress_slot(&egress), 0);
	ck_assert_uint_eq(egress_room(&egress), 8);
}

TEST(what_finds_no_room_is_dropped) {
	fill(0);
	enqueue(SLOTS + 5, 0);
	ck_assert_uint_eq(egress.count, SLOTS);
	ck_assert_uint_eq(egress.dropped.pkts, 5);
	ck_assert_uint_eq(egress.dropped.bytes, 5 * 64);
	ck_assert_uint_eq(lcore.watch.count.port[0].dropped, 5);
	ck_assert_uint_eq(rte_mempool_in_use_count(pool), PORT_ROOM + SLOTS);
}

TEST(a_port_is_given_up_after_tx_timeout) {
	fill(0);
	enqueue(10, 0);
	at(5000);
	egress_flush(&egress);
	at(5000 + TX_TIMEOUT_NS);
	egress_flush(&egress);
	ck_assert_uint_eq(egress.count, 10);
	at(5000 + TX_TIMEOUT_NS + 1);
	egress_flush(&egress);
	ck_assert_uint_eq(egress.count, 0);
	ck_assert_uint_eq(egress.first, 0);
	ck_assert_uint_eq(egress.dropped.pkts, 10);
	ck_assert_uint_eq(rte_mempool_in_use_count(pool), PORT_ROOM);
	ck_assert_uint_eq(lcore.watch.count.port[0].dropped, 10);
}

TEST(a_frame_that_is_taken_begins_the_timeout_anew) {
	fill(0);
	enqueue(10, 0);
	at(5000);
	egress_flush(&egress);
	receive(1);
	at(5000 + TX_TIMEOUT_NS);
	egress_flush(&egress);
	ck_assert_uint_eq(egress.count, 9);
	at(5000 + 2 * TX_TIMEOUT_NS);
	egress_flush(&egress);
	at(5000 + 3 * TX_TIMEOUT_NS);
	egress_flush(&egress);
	ck_assert_uint_eq(egress.count, 9);
}

TEST(a_port_that_is_down_is_given_up_by_its_owner) {
	fill(0);
	port.was_up = false;
	lcore.owns_port[0] = false;
	enqueue(10, 0);
	egress_flush(&egress);
	ck_assert_uint_eq(egress.count, 10);
	lcore.owns_port[0] = true;
	egress_flush(&egress);
	ck_assert_uint_eq(egress.count, 0);
	ck_assert_uint_eq(egress.dropped.pkts, 10);
}

static struct rte_mbuf *long_frame(uint16_t len, uint16_t ethertype) {
	struct rte_mbuf *m = rte_pktmbuf_alloc(pool);
	char *data = rte_pktmbuf_append(m, len);

	memset(data, 0, len);
	data[12] = (char)(ethertype >> 8);
	data[13] = (char)ethertype;
	return m;
}

// The kernel takes frames above the MTU of an interface and sends none: they counted as
// transmitted.
TEST(frames_above_the_mtu_are_dropped_and_counted) {
	static const struct {
		uint16_t len, ethertype;
		bool sent;
	} frames[] = {
		{1515, 0x0800, false},
		{1514, 0x0800, true},
		{1518, 0x8100, true}, // the tag comes on top
		{1519, 0x8100, false},
		{1518, 0x88a8, false}, // but for a second one
		{1600, 0x0800, false},
		{60, 0x0800, true},
		{1515, 0x86dd, false},
	};
	uint32_t n = sizeof(frames) / sizeof(frames[0]), sent = 0;
	struct rte_mbuf *m;

	port.frame_max = 1514;
	for (uint32_t i = 0; i < n; i++)
		egress_enqueue(&egress, long_frame(frames[i].len, frames[i].ethertype), 0,
			(uint16_t)(frames[i].len + 4));
	egress_flush(&egress);
	ck_assert_uint_eq(egress.count, 0);
	for (uint32_t i = 0; i < n; i++) {
		if (!frames[i].sent)
			continue;
		ck_assert_uint_eq(rte_eth_rx_burst(0, 0, &m, 1), 1);
		ck_assert_uint_eq(m->pkt_len, frames[i].len);
		rte_pktmbuf_free(m);
		sent++;
	}
	ck_assert_uint_eq(egress.tx.pkts, sent);
	ck_assert_uint_eq(egress.too_long.pkts, n - sent);
	ck_assert_uint_eq(egress.too_long.bytes, 1519 + 1523 + 1522 + 1604 + 1519);
	ck_assert_uint_eq(egress.dropped.pkts, 0);
	ck_assert_uint_eq(rte_mempool_in_use_count(pool), 0);
}

TEST(lateness_is_from_due_to_sent) {
	enqueue(1, 1000);
	enqueue(2, 1150);
	enqueue(1, 0); // not paced
	at(1200);
	egress_flush(&egress);
	ck_assert_uint_eq(egress.late.total, 3);
	ck_assert_uint_eq(egress.late.sum, 200 + 2 * 50);
	ck_assert_uint_eq(egress.late.max, 200);
	ck_assert_uint_eq(egress.late_disturbed.total, 0);
	ck_assert_uint_eq(lcore.watch.count.pkts, 3);
	ck_assert_uint_eq(lcore.watch.count.late_pkts, 1); // by more than LATE_NS
	ck_assert_uint_eq(egress.early + egress.scheduled, 0);
	ck_assert_uint_eq(egress.tx.pkts, 4);
	egress_measure(&egress);
	ck_assert_uint_eq(egress.late.total, 0);
}

TEST(a_stall_disturbs_what_was_due_until_it_is_made_up_for) {
	lcore.watch.stalled_until_ns = 1100;
	enqueue(1, 1099);
	enqueue(1, 1100);
	enqueue(1, 0);
	at(1200);
	egress_flush(&egress);
	ck_assert_uint_eq(egress.late_disturbed.total, 1);
	ck_assert_uint_eq(egress.late_disturbed.max, 101);
	ck_assert_uint_eq(egress.late.total, 1);
	ck_assert_uint_eq(egress.late.max, 100);
	ck_assert_uint_eq(lcore.watch.count.pkts, 1);
}

TEST(everything_is_disturbed_while_a_stall_lasts) {
	lcore.watch.stalled_until_ns = 3000;
	enqueue(2, 1100);
	at(1200);
	egress_flush(&egress);
	ck_assert_uint_eq(egress.late_disturbed.total, 2);
	ck_assert_uint_eq(egress.late.total, 0);
	ck_assert_uint_eq(egress.trend.slot + egress.trend.due_ns, 0);
}

TEST(a_frame_that_leaves_early_is_counted) {
	enqueue(1, 1201);
	enqueue(1, 1200);
	at(1200);
	egress_flush(&egress);
	ck_assert_uint_eq(egress.early, 1);
	ck_assert_uint_eq(egress.scheduled, 0);
	ck_assert_uint_eq(egress.late.total, 2);
	ck_assert_uint_eq(egress.late.max, 0);
}

TEST(a_port_that_keeps_times_gets_them_as_stamps) {
	struct rte_mbuf *m[3];

	ck_assert_int_eq(
		rte_mbuf_dyn_tx_timestamp_register(&port.stamp.offset, &port.stamp.tx_flag), 0);
	port.stamp.tx = true;
	port.lead_ns = 500;
	card_clock_anchor(&port.stamp.clock, 0, 0);
	card_clock_anchor(&port.stamp.clock, NS_PER_S, NS_PER_S); // a tick is a nanosecond
	ck_assert(egress_keeps_times(&egress));
	enqueue(1, 2 * NS_PER_S);
	enqueue(1, 2 * NS_PER_S + 400);
	enqueue(1, 0);
	at(2 * NS_PER_S + 10);
	egress_flush(&egress);
	ck_assert_uint_eq(egress.scheduled, 1);
	ck_assert_uint_eq(egress.early, 0);
	ck_assert_uint_eq(egress.late.total, 1);
	ck_assert_uint_eq(rte_eth_rx_burst(0, 0, m, 3), 3);
	for (int i = 0; i < 3; i++)
		ck_assert_int_eq((m[i]->ol_flags & port.stamp.tx_flag) != 0, i == 1);
	ck_assert_uint_eq(*RTE_MBUF_DYNFIELD(m[1], port.stamp.offset, rte_mbuf_timestamp_t *),
		2 * NS_PER_S + 400);
}

static struct {
	uint32_t slot, n;
	uint64_t sent_ns;
} traced[4];
static uint32_t bursts;

static void trace(struct egress *e, uint32_t slot, uint32_t n, uint64_t sent_ns) {
	ck_assert_ptr_eq(e, &egress);
	traced[bursts].slot = slot;
	traced[bursts].n = n;
	traced[bursts++].sent_ns = sent_ns;
}

TEST(what_the_port_took_is_traced) {
	fill(40);
	egress.trace = trace;
	for (uint32_t i = 0; i < SLOTS; i++, egress.count++) {
		egress.mbuf[i] = frame();
		egress.due_ns[i] = 7;
		egress.bytes[i] = 64;
	}
	at(9);
	egress_flush(&egress);
	ck_assert_uint_eq(bursts, 2);
	ck_assert_uint_eq(traced[0].slot, 0);
	ck_assert_uint_eq(traced[0].n, 32);
	ck_assert_uint_eq(traced[0].sent_ns, 9);
	ck_assert_uint_eq(traced[1].slot, 32);
	ck_assert_uint_eq(traced[1].n, 8);
}

// Lateness that grows by 2 us per second is a rate that is 2 ppm too low, whatever chance adds to
// other bursts.
TEST(the_trend_of_lateness_is_the_rate_error) {
	uint64_t due_ns = NS_PER_S;

	for (int i = 0; i < 8; i++) {
		for (int k = 0; k < 3; k++) {
			enqueue(1, due_ns + (uint64_t)k * 1000);
			at(due_ns + (uint64_t)k * 1000 + due_ns / 500000 + (k != 1) * 5000u);
			egress_flush(&egress);
		}
		receive(3);
		if (i == 4)
			ck_assert(isnan(egress_rate_error_ppm(&egress)));
		due_ns += NS_PER_S;
	}
	ck_assert_double_eq_tol(egress_rate_error_ppm(&egress), -2, 1e-3);
}

TEST(everything_is_accounted_for) {
	uint64_t now_ns = 1000, random = 1;
	uint32_t in_port = 0;

	for (int i = 0; i < 2000; i++) {
		random = random * UINT64_C(6364136223846793005) + 1;
		uint32_t n = (uint32_t)(random >> 33) % 48;
		uint64_t taken = egress.tx.pkts;

		at(now_ns += n * 20);
		switch (random >> 60) {
		case 0: // the far side stands still for a while, and is read to the end
			for (uint32_t k = 0; k < in_port; k++) {
				struct rte_mbuf *m;

				ck_assert_uint_eq(rte_eth_rx_burst(0, 0, &m, 1), 1);
				ck_assert_uint_ge(*rte_pktmbuf_mtod(m, uint32_t *), received);
				received = *rte_pktmbuf_mtod(m, uint32_t *) + 1;
				rte_pktmbuf_free(m);
			}
			in_port = 0;
			break;
		case 1:
			egress_flush(&egress);
			break;
		default:
			enqueue(n, random >> 62 == 3 ? now_ns : 0);
		}
		in_port += (uint32_t)(egress.tx.pkts - taken);
		ck_assert_uint_eq(made, egress.tx.pkts + egress.dropped.pkts + egress.count);
		ck_assert_uint_eq(
			made * 64, egress.tx.bytes + egress.dropped.bytes + egress_bytes(&egress));
		ck_assert_uint_eq(rte_mempool_in_use_count(pool), in_port + egress.count);
	}
	ck_assert_uint_gt(egress.dropped.pkts, 100);
	ck_assert_uint_gt(egress.tx.pkts, 1000);
}

static struct lcore_ring ring;

static void to_ring(bool drops) {
	struct err err;

	ck_assert_int_eq(lcore_ring_init(&ring, 50, &err), 0);
	lcore.owns_port[0] = false;
	egress.ring = &ring;
	egress.ring_drops = drops;
}

TEST(frames_for_another_lcore_keep_their_times) {
	struct rte_mbuf *m[SLOTS];

	to_ring(false);
	enqueue(32, 500);
	enqueue(32, 600);
	egress_flush(&egress);
	ck_assert_uint_eq(egress.tx.pkts, 0);
	ck_assert_uint_eq(egress.count, 14);
	ck_assert_uint_eq(ring.nb_handed, 50);
	ck_assert_uint_eq(lcore_ring_take(&ring, m, SLOTS), 50);
	for (uint32_t i = 0; i < 50; i++) {
		ck_assert_uint_eq(*rte_pktmbuf_mtod(m[i], uint32_t *), i);
		ck_assert_uint_eq(port_pkt(m[i])->release_ns, i < 32 ? 500 : 600);
	}
	egress_flush(&egress);
	ck_assert_uint_eq(egress.count, 0);
	ck_assert_uint_eq(lcore_ring_waiting(&ring), 14);
	ck_assert_uint_eq(ring.nb_handed, ring.nb_taken + lcore_ring_waiting(&ring));
	ck_assert_uint_eq(atomic_load(&ring.dropped), 0);
	ck_assert_uint_eq(egress.late.total, 0);
}

TEST(a_full_ring_may_drop) {
	struct pkt_count left;

	to_ring(true);
	enqueue(31, 0);
	egress_flush(&egress);
	enqueue(31, 0);
	egress_flush(&egress);
	ck_assert_uint_eq(egress.count, 0);
	ck_assert_uint_eq(egress.dropped.pkts, 12);
	ck_assert_uint_eq(egress.dropped.bytes, 12 * 64);
	ck_assert_uint_eq(atomic_load(&ring.dropped), 12);
	ck_assert_uint_eq(lcore.watch.count.port[0].dropped, 0);
	left = lcore_ring_clear(&ring);
	ck_assert_uint_eq(left.pkts, 50);
	ck_assert_uint_eq(left.bytes, 50 * 64);
	ck_assert_uint_eq(rte_mempool_in_use_count(pool), 0);
}

// Each test is a process of its own, with a DPDK of its own.

TEST_FIXTURE(set_up, NULL)
