// SPDX-License-Identifier: BSD-3-Clause
// What stages record of single packets, where it is done per packet: stage_tell is the same as a call.
#pragma once
#include "switch/stage/stage.h"

static inline uint32_t tell_u32(uint64_t v) {
	return v > UINT32_MAX ? UINT32_MAX : (uint32_t)v;
}

// `event` is a constant of the caller's.
static inline __attribute__((always_inline)) void tell(const struct stage_env *env,
	enum tel_packet_event event, const struct pkt *p, uint64_t ts_ns, uint64_t queue_bytes) {
	const struct tel_run *run = env->tel_run;
	struct tel_packets *r;

	if (run != NULL && !tel_flow_sampled(run, p->flow_id))
		return;
	r = tel_put(env->tel_packets);
	if (r == NULL)
		return;
	*r = (struct tel_packets){
		.ts_ns = ts_ns,
		.flow_id = p->flow_id,
		.pkt_id = p->id,
		.queue_bytes = tell_u32(queue_bytes),
		.sojourn_ns = tell_u32(time_since(ts_ns, p->arrival_ns)),
		.size_bytes = p->size_bytes,
		.event = (uint8_t)event,
		.reason = event == TEL_DROP ? p->drop_reason : DROP_NONE,
		.link = env->link_index,
		.ecn = p->ecn,
		.path = env->path_index,
		.stage = env->stage_index,
	};
}
