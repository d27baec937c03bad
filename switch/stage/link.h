// SPDX-License-Identifier: BSD-3-Clause
// What all kinds of links share: a queue discipline before a wire. The functions without a comment
// are a stage's operations for a struct that begins with a struct link.
#pragma once
#include "switch/serialiser/serialiser.h"

struct link {
	const struct aqm_ops *aqm;
	void *q;
	bool in_bursts; // the discipline's operations for bursts can be used
	struct serialiser serialiser;
};

// The table's entry for a struct that begins with a struct link, and the key `queue`.
#define LINK_FRAMING_PARAM(T)                                                                      \
	FRAMING_PARAM(T, link.serialiser.framing, "ethernet", "what a frame is carried in")
#define LINK_QUEUE_PARAM                                                                           \
	{ "queue", "fifo", "discipline of the queue before it", UNIT_NONE, PARAM_PLUGIN("aqm") }

struct stage_part link_part(void *self);
int link_configure(void *self, struct config_node *node, struct err *err);
// For init: rate_bps is the rate at the start, and limit_bps the one that limits in time and BDP
// refer to.
int link_begin(struct link *l, const struct stage_env *env, uint64_t rate_bps, uint64_t limit_bps,
	struct err *err);
void link_fini(void *self);
void link_serve(void *self, uint64_t now_ns, struct pkt_list *drops);
void link_push(void *self, struct pkt *const *pkts, uint32_t n, struct pkt_list *drops);
uint32_t link_pop(
	void *self, uint64_t now_ns, struct pkt **pkts, uint32_t max, struct pkt_list *drops);
uint64_t link_next_ns(const void *self);
bool link_defer(void *self, struct pkt *const *pkts, uint32_t n); // at a rate that is constant
struct backlog link_backlog(const void *self);
struct stage_stats *link_figures(void *self, uint64_t now_ns);
bool link_random(const void *self);
bool link_flows(const void *self);
bool link_headers(const void *self);
struct aqm_limit link_limit(const void *self);

// The discipline with a call per packet; packets are recorded if there is a stream.
struct serialiser_queue link_queue(const struct link *l);

extern const struct stage_observer link_observer;
