// SPDX-License-Identifier: BSD-3-Clause
// Packets of two captures, for which there is little memory.
#include "tools/pcap/match.h"

#include "common/base/ns.h"

#include "test.h"

// The second of two places is wanted for the fourth packet while the second one is on its way, and
// the other capture has gone on: with more memory it might have been seen there.
TEST(a_packet_that_is_forgotten_is_not_lost) {
	const struct match_limits limits = {
		.packets = 2, .flows = 2, .lost_ns = NS_PER_S, .interval_ns = NS_PER_S};
	static const struct {
		uint32_t side, seq;
	} seen[] = {{0, 0}, {1, 0}, {0, 1}, {0, 2}, {1, 2}, {0, 3}};
	static struct tel off[TEL_STREAM_COUNT];
	static struct match m;
	struct err err;

	ck_assert_int_eq(match_init(&m, &limits, off, &err), 0);
	for (uint32_t i = 0; i < sizeof(seen) / sizeof(seen[0]); i++)
		match_packet(&m, seen[i].side,
			&(struct packet){.ts_ns = 1000 + i,
				.data = (const uint8_t *)"",
				.wire_bytes = 100,
				.seg.seq = seen[i].seq});
	ck_assert_uint_eq(m.forgotten, 1);
	ck_assert_uint_eq(m.path[0].unjudged, 1);
	ck_assert_uint_eq(m.path[0].lost, 0);
	ck_assert_uint_eq(m.path[0].matched, 2);
	match_fini(&m);
}
