// SPDX-License-Identifier: BSD-3-Clause
// What is wrong with received frames, apart from the data path.
#include "common/net/wire_ip.h"
#include "switch/live/lcore.h"

enum drop_reason switch_invalid(const struct rte_mbuf *m) {
	if (m->nb_segs > 1)
		return DROP_TOO_LONG;
	switch (wire_check(rte_pktmbuf_mtod(m, const uint8_t *), m->data_len)) {
	case WIRE_TRUNCATED:
		return DROP_CUT;
	case WIRE_BAD_CHECKSUM:
		return DROP_CHECKSUM;
	default:
		return DROP_MALFORMED;
	}
}

void switch_find_offloads(struct switch_port *from) {
	for (uint32_t i = 0; i < from->nb_rx && from->checked < SWITCH_CHECKED; i++) {
		const struct rte_mbuf *m = from->rx_burst[i];
		enum wire_l4_sum sum =
			wire_l4_sum(rte_pktmbuf_mtod(m, const uint8_t *), m->data_len);

		from->checked += sum != WIRE_L4_NONE;
		from->offloaded += sum == WIRE_L4_PARTIAL && (m->ol_flags & KERNEL_PARTIAL) == 0;
	}
	from->inspected += from->nb_rx;
}
