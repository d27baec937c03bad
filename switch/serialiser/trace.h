// SPDX-License-Identifier: BSD-3-Clause
// stage_trace inline, for code that traces each packet of a burst. The caller has checked
// stage_traced.
#pragma once
#include "switch/stage.h"

// `event` should be a constant.
static inline __attribute__((always_inline)) void trace_packet(const struct stage_env *env,
	enum tel_packet_event event, const struct pkt *p, uint64_t ts_ns, uint64_t queue_bytes) {
	const struct tel_run *run = env->tel_run;
	struct tel_packets *r;

	if (unlikely(env->tap != NULL))
		env->tap->event(env->tap, env, event, p, ts_ns);
	if (!tel_on(env->tel_packets))
		return;
	if (run != NULL && !tel_flow_sampled(run, p->flow_id))
		return;
	r = tel_put(env->tel_packets);
	if (r == NULL)
		return;
	*r = (struct tel_packets){
		.ts_ns = ts_ns,
		.flow_id = p->flow_id,
		.pkt_id = p->id,
		.queue_bytes = queue_bytes,
		.sojourn_ns = time_since(ts_ns, p->arrival_ns),
		.size_bytes = p->size_bytes,
		.event = (uint8_t)event,
		.reason = event == TEL_DROP ? p->drop_reason : DROP_NONE,
		.link = env->link_index,
		.ecn = p->ecn,
		.path = env->path_index,
		.stage = env->stage_index,
	};
}
