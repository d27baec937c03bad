// SPDX-License-Identifier: BSD-3-Clause
// What stages record of single packets.
#include "stage.h"

static uint32_t saturate32(uint64_t v) {
	return v > UINT32_MAX ? UINT32_MAX : (uint32_t)v;
}

__attribute__((noinline)) void stage_tell(const struct stage_env *env, enum tel_packet_event event,
	const struct pkt *p, uint64_t ts_ns, uint64_t queue_bytes) {
	const struct tel_run *run = env->tel_run;

	if (!tel_on(env->tel_packets) || (run != NULL && !tel_flow_sampled(run, p->flow_id)))
		return;

	struct tel_packets *r = tel_put(env->tel_packets);

	if (r == NULL)
		return;
	*r = (struct tel_packets){
		.ts_ns = ts_ns,
		.flow_id = p->flow_id,
		.pkt_id = p->id,
		.queue_bytes = saturate32(queue_bytes),
		.sojourn_ns = saturate32(time_since(ts_ns, p->arrival_ns)),
		.size_bytes = p->size_bytes,
		.event = (uint8_t)event,
		.reason = event == TEL_DROP ? p->drop_reason : DROP_NONE,
		.link = env->link_index,
		.ecn = p->ecn,
		.path = env->path_index,
		.stage = env->stage_index,
	};
}

void stage_drop(
	const struct stage_env *env, struct pkt_list *drops, struct pkt *p, enum drop_reason why) {
	pkt_drop(drops, p, why);
	stage_tell(env, TEL_DROP, p, p->arrival_ns, 0);
}
