// SPDX-License-Identifier: BSD-3-Clause
// Loaded before a live program (LD_PRELOAD). From the first "/test/foreign" on that rte_telemetry
// is asked for, every frame a port receives lies in memory that is not its buffer's own, as with
// drivers that receive many frames into one piece. The answer counts how often such memory was
// lent, and how often it came back.
//
// From the first "/test/segments" on every frame is in two buffers, as those that are longer than
// one. The answer counts them.
#include <rte_ethdev.h>
#include <rte_mbuf.h>
#include <rte_telemetry.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define FRAME_MAX 2048

struct loan {
	struct rte_mbuf_ext_shared_info shared;
	char frame[FRAME_MAX];
};

static _Atomic int lent, returned;

static void give_back(void *frame, void *loan) {
	memset(frame, 0xee, FRAME_MAX);
	free(loan);
	atomic_fetch_add(&returned, 1);
}

static uint16_t lend(
	uint16_t port, uint16_t queue, struct rte_mbuf **m, uint16_t n, uint16_t max, void *user) {
	for (uint16_t i = 0; i < n; i++) {
		struct loan *l = calloc(1, sizeof(*l));
		uint16_t len = m[i]->data_len;

		if (l == NULL || len > FRAME_MAX || m[i]->nb_segs > 1)
			abort();
		memcpy(l->frame, rte_pktmbuf_mtod(m[i], const void *), len);
		l->shared.free_cb = give_back;
		l->shared.fcb_opaque = l;
		rte_mbuf_ext_refcnt_set(&l->shared, 1);
		rte_pktmbuf_attach_extbuf(m[i], l->frame, 0, FRAME_MAX, &l->shared);
		m[i]->data_len = len;
		atomic_fetch_add(&lent, 1);
	}
	return n;
}

static _Atomic int split;

static uint16_t split_up(
	uint16_t port, uint16_t queue, struct rte_mbuf **m, uint16_t n, uint16_t max, void *user) {
	for (uint16_t i = 0; i < n; i++) {
		uint16_t half = m[i]->data_len / 2;
		struct rte_mbuf *rest = rte_pktmbuf_copy(m[i], m[i]->pool, half, UINT32_MAX);

		if (rest == NULL || rte_pktmbuf_trim(m[i], m[i]->data_len - half) < 0
			|| rte_pktmbuf_chain(m[i], rest) < 0)
			abort();
		atomic_fetch_add(&split, 1);
	}
	return n;
}

static int segments(const char *cmd, const char *params, struct rte_tel_data *d) {
	static bool splits;
	uint16_t port;

	for (port = 0; !splits && port < rte_eth_dev_count_avail(); port++) {
		if (rte_eth_add_rx_callback(port, 0, split_up, NULL) == NULL)
			abort();
	}
	splits = true;
	rte_tel_data_start_dict(d);
	rte_tel_data_add_dict_int(d, "split", atomic_load(&split));
	return 0;
}

static int handle(const char *cmd, const char *params, struct rte_tel_data *d) {
	static bool lends;
	uint16_t port;

	for (port = 0; !lends && port < rte_eth_dev_count_avail(); port++) {
		if (rte_eth_add_rx_callback(port, 0, lend, NULL) == NULL)
			abort();
	}
	lends = true;
	rte_tel_data_start_dict(d);
	rte_tel_data_add_dict_int(d, "lent", atomic_load(&lent));
	rte_tel_data_add_dict_int(d, "returned", atomic_load(&returned));
	return 0;
}

RTE_INIT(foreign) {
	rte_telemetry_register_cmd("/test/foreign", handle, "Lends memory to received frames");
	rte_telemetry_register_cmd("/test/segments", segments, "Splits received frames");
}
