// SPDX-License-Identifier: BSD-3-Clause
#include "statistics.h"
#include "switch_test.h"

TEST(a_share_of_packets_is_damaged_and_goes_on) {
	static struct tel_packets records[64];
	struct tel tel;
	struct stage_bench b = {.env = {.run_seed = 1, .link_index = STAGE_NO_LINK}};
	double n = 1e6, damaged = 0;

	tel_memory(&tel, records, 64);
	b.env.tel_packets = &tel;
	ck_assert_int_eq(stage_open(&b, "{corrupt: {rate: 0.1%}}"), 0);
	for (uint32_t i = 0; i < n; i++) {
		struct pkt p = {.size_bytes = 100, .id = i, .flow_id = 7, .flags = PKT_POLL_END};

		stage_put(&b, &p, i);
		NEED(stage_take(&b, i) == &p && p.arrival_ns == i);
		NEED((p.flags & ~PKT_CORRUPT) == PKT_POLL_END);
		if ((p.flags & PKT_CORRUPT) != 0 && damaged++ < 64)
			NEED(records[(uint32_t)damaged - 1].pkt_id == i
				&& records[(uint32_t)damaged - 1].event == TEL_CORRUPT);
	}
	ck_assert_uint_eq(b.drops.count, 0);
	ck_assert_double_gt(normal_p((damaged - 0.001 * n) / sqrt(n * 0.001 * 0.999)), P_LEAST);
	stage_live(&b, "rate", "100%", 2000000);
	struct pkt p = {.size_bytes = 100};
	stage_put(&b, &p, 2000000);
	ck_assert_uint_eq(p.flags, PKT_CORRUPT);
}
