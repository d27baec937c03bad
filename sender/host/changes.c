// SPDX-License-Identifier: BSD-3-Clause
// Changes of a host while it runs.
#include "sender/host/host.h"
#include "sender/transport.h"

void host_reseed(struct host *h, uint64_t seed) {
	workloads_reseed(&h->endpoint, seed);
	for (uint32_t i = 0; i < h->flows; i++) {
		struct flow *f = &h->flow[i];
		const struct transport_ops *transport = flow_group(&h->endpoint, f)->transport;

		if (transport != NULL && transport->reseed != NULL)
			transport->reseed(&h->endpoint, f, seed);
	}
}

void host_move_start(struct host *h, const struct group *g, uint64_t start_ns) {
	for (uint32_t i = 0; i < g->count; i++) {
		struct flow *f = &h->flow[endpoint_index(&h->endpoint, g->first + i)];

		f->start_ns += start_ns - g->start_ns;
		endpoint_arm(&h->endpoint, &f->pace, f->start_ns);
	}
}
