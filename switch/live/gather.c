// SPDX-License-Identifier: BSD-3-Clause
// When packets arrived at ports that know it, and which packets leave together.
#include "switch/live/lcore.h"

void switch_set_arrivals(const struct switch_lcore *s, struct port *from,
	const struct switch_port *out, struct rte_mbuf *const *m, size_t n,
	struct pkt *const *batch) {
	const struct switch_gather *g = &s->gather;
	uint64_t behind_ns = out->path != NULL ? out->path->stage[0].after_ns : 0;
	uint64_t served_ns = g->served_ns + switch_lead_ns(s, out);
	uint64_t decided_ns = time_max(time_since(served_ns, behind_ns), g->stepped_ns) + 1;

	for (size_t i = 0; i < n; i++) {
		uint64_t own_ns = from->kernel != NULL
			? port_pkt(m[i])->release_ns
			: stamp_arrival(&from->stamp, m[i], s->lcore.now_ns);

		batch[i]->arrival_ns = time_max(own_ns, decided_ns);
	}
}

void switch_gather(struct switch_lcore *s, uint64_t now_ns, uint32_t nb_rx) {
	struct switch_gather *g = &s->gather;

	if (now_ns >= g->window_ns) {
		uint64_t sent = 0;

		for (uint32_t i = 0; i < s->lcore.ports; i++)
			sent += s->port[i].egress.tx.pkts;
		g->dense = sent - g->sent >= SWITCH_GATHER_PKTS;
		g->sent = sent;
		g->window_ns = now_ns + SWITCH_GATHER_WINDOW_NS;
	}
	g->until_ns = g->dense && nb_rx < s->burst ? now_ns + SWITCH_GATHER_NS : 0;
}
