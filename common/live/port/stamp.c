// SPDX-License-Identifier: BSD-3-Clause
#define ALLOW_EXPERIMENTAL_API // rte_eth_read_clock is, in 22.11
#include "common/live/port/stamp.h"

#define ANCHOR_NS (100 * NS_PER_MS)
#define ANCHOR_TRIES 3 // each takes about a microsecond, because the card is read over PCIe
#define WIDTH_NS_MAX (5 * NS_PER_US)

void stamp_ask(struct stamp *st, uint16_t port, bool tx, struct rte_eth_conf *conf) {
	struct rte_eth_dev_info info;

	*st = (struct stamp){0};
	if (rte_eth_dev_info_get(port, &info) < 0)
		return;
	conf->rxmode.offloads |= info.rx_offload_capa & RTE_ETH_RX_OFFLOAD_TIMESTAMP;
	if (tx)
		conf->txmode.offloads |=
			info.tx_offload_capa & RTE_ETH_TX_OFFLOAD_SEND_ON_TIMESTAMP;
	st->rx = (conf->rxmode.offloads & RTE_ETH_RX_OFFLOAD_TIMESTAMP) != 0;
	st->tx = (conf->txmode.offloads & RTE_ETH_TX_OFFLOAD_SEND_ON_TIMESTAMP) != 0;
}

void stamp_start(struct stamp *st, uint16_t port) {
	uint64_t tick;
	bool clock = (st->rx || st->tx) && rte_eth_read_clock(port, &tick) == 0;

	st->rx = st->rx && clock
		&& rte_mbuf_dyn_rx_timestamp_register(&st->offset, &st->rx_flag) == 0;
	st->tx = st->tx && clock
		&& rte_mbuf_dyn_tx_timestamp_register(&st->offset, &st->tx_flag) == 0;
}

void stamp_follow(struct stamp *st, uint16_t port, const struct clock *c, uint64_t now_ns) {
	uint64_t width_ns = WIDTH_NS_MAX, best_tick = 0, best_ns = 0;

	if (!(st->rx || st->tx) || now_ns < st->next_ns)
		return;
	st->next_ns = now_ns + ANCHOR_NS;
	for (int i = 0; i < ANCHOR_TRIES; i++) {
		uint64_t before_ns = clock_now(c), tick;

		if (rte_eth_read_clock(port, &tick) < 0)
			return;
		uint64_t took_ns = clock_now(c) - before_ns;
		if (took_ns >= width_ns)
			continue;
		width_ns = took_ns;
		best_tick = tick;
		best_ns = before_ns + took_ns / 2;
	}
	if (width_ns < WIDTH_NS_MAX)
		card_clock_anchor(&st->clock, best_tick, best_ns);
}
