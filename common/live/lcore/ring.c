// SPDX-License-Identifier: BSD-3-Clause
#include "common/live/lcore/ring.h"

#include "common/live/port/port.h"

#include <rte_errno.h>
#include <rte_lcore.h>

int lcore_ring_init(struct lcore_ring *r, uint64_t frames, struct err *err) {
	static unsigned int rings;
	char name[RTE_RING_NAMESIZE];

	snprintf(name, sizeof(name), "weir%u", rings++);
	*r = (struct lcore_ring){0};
	r->ring = rte_ring_create(name, (unsigned int)frames, (int)rte_socket_id(),
		RING_F_SP_ENQ | RING_F_SC_DEQ | RING_F_EXACT_SZ);
	if (r->ring == NULL)
		return err_set(err, -rte_errno, "handover: a ring of %llu frames: %s",
			(unsigned long long)frames, rte_strerror(rte_errno));
	return 0;
}

struct pkt_count lcore_ring_clear(struct lcore_ring *r) {
	struct pkt_count left = {0};
	struct rte_mbuf *m;

	while (r->ring != NULL && lcore_ring_take(r, &m, 1) == 1) {
		left.pkts++;
		left.bytes += port_frame_bytes(m->pkt_len);
		rte_pktmbuf_free(m);
	}
	return left;
}
