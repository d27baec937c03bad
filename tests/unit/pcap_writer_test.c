// SPDX-License-Identifier: BSD-3-Clause
// The order of a live capture: packets of several producers, through a small part of the memory, as
// long as it lasts.
#include "common/pcap/writer.h"

#include "test.h"

#include <string.h>
#include <unistd.h>

#define RING ((uint64_t)1 << 13)
#define STEP_NS (20 * NS_PER_MS) // the control thread's
#define STEP_PACKETS 400
#define KEPT_BYTES ((size_t)4 << 20) // six times what 250 ms of these packets are

static char file[] = "/tmp/weir-writer-XXXXXX";
static struct run_options options = {.program = "weir-switch"};
static struct run run = {.options = &options};
static struct pcap_writer w;
static struct err err;

static void begin(uint32_t rings) {
	struct pcap_writer_env env = {
		.run = &run, .rings = rings, .ring_records = RING, .kept_bytes = KEPT_BYTES};

	close(mkstemp(file));
	ck_assert_int_eq(pcap_writer_open(&w, file, &env, &err), 0);
	pcapng_interface(&w.file, "port");
}

static void put(uint32_t ring, uint64_t ts_ns) {
	struct pcap_place place;

	ck_assert(pcap_writer_place(&w, ring, 0, &place));
	memset(place.bytes, 0, 128);
	*place.record = (struct pcap_record){.ts_ns = ts_ns,
		.id = PCAP_NO_ID,
		.flow_id = PCAP_NO_FLOW,
		.length = 1514,
		.captured = 128};
	pcap_writer_put(&w, ring, &place);
}

// One step of a producer at now_ns: each packet is up to 20 ms old, in no order.
static void step(uint32_t ring, uint64_t now_ns) {
	for (uint64_t i = 0; i < STEP_PACKETS; i++)
		put(ring, now_ns - (i * 7919 % STEP_PACKETS + 1) * (STEP_NS / STEP_PACKETS));
	pcap_writer_reached(&w, ring, now_ns);
}

// Closes it; how many packets are in the file, and how many of them behind their time.
static uint64_t end(uint64_t *behind) {
	uint32_t head[2];
	uint8_t block[1024];
	uint64_t packets = 0, last_ns = 0;
	FILE *f;

	ck_assert_int_eq(pcap_writer_close(&w, &err), 0);
	*behind = 0;
	ck_assert_ptr_nonnull(f = fopen(file, "rb"));
	while (fread(head, 1, sizeof(head), f) == sizeof(head)) {
		size_t rest = head[1] - sizeof(head);

		ck_assert_uint_le(rest, sizeof(block));
		ck_assert_uint_eq(fread(block, 1, rest, f), rest);
		if (head[0] != 6)
			continue;
		uint32_t ts[2];
		memcpy(ts, block + 4, sizeof(ts));
		uint64_t ts_ns = (uint64_t)ts[0] << 32 | ts[1];
		*behind += ts_ns < last_ns;
		last_ns = time_max(last_ns, ts_ns);
		packets++;
	}
	fclose(f);
	unlink(file);
	return packets;
}

// 20 times the memory goes through it. What was written was never given back while any packet
// waited, so that each time it was used up all were written, and those that came then stood behind
// later ones.
TEST(a_long_capture_stays_in_order) {
	uint64_t behind, steps = 20 * KEPT_BYTES / (STEP_PACKETS * 128);

	begin(1);
	for (uint64_t i = 1; i <= steps; i++) {
		step(0, i * STEP_NS);
		pcap_writer_drain(&w);
	}
	ck_assert_uint_gt(w.count, 10 * STEP_PACKETS); // 250 ms wait
	ck_assert_uint_eq(end(&behind), steps * STEP_PACKETS);
	ck_assert_uint_eq(behind, 0);
	ck_assert_uint_eq(w.out_of_order, 0);
	pcap_writer_free(&w);
}

// The second producer has no CPU for 300 ms, as an lcore of a busy machine: what it puts then is
// older than 250 ms.
TEST(a_producer_that_stands_still_is_waited_for) {
	uint64_t behind;

	begin(2);
	for (uint64_t i = 1; i <= 40; i++) {
		step(0, i * STEP_NS);
		if (i < 10 || i >= 25) {
			uint64_t first = i == 25 ? 10 : i;

			for (uint64_t k = first; k <= i; k++)
				step(1, k * STEP_NS);
		}
		pcap_writer_drain(&w);
	}
	ck_assert_uint_eq(end(&behind), 2 * 40 * STEP_PACKETS);
	ck_assert_uint_eq(behind, 0);
	pcap_writer_free(&w);
}

// When it stands still for longer than the memory lasts, packets are written early; those behind
// their time are counted.
TEST(what_is_behind_its_time_is_counted) {
	uint64_t behind;

	begin(2);
	for (uint64_t i = 1; i <= 120; i++) {
		step(0, i * STEP_NS);
		pcap_writer_drain(&w);
	}
	ck_assert_uint_gt(w.file.count.packets, 0);
	ck_assert_uint_gt(w.count, 0);
	step(1, STEP_NS);
	ck_assert_uint_eq(end(&behind), 121 * STEP_PACKETS);
	ck_assert_uint_gt(behind, 0);
	ck_assert_uint_eq(behind, w.out_of_order);
	pcap_writer_free(&w);
}
