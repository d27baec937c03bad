// SPDX-License-Identifier: BSD-3-Clause
// Packet tracing: the records that stages write of single packets, and of what becomes of them.
#include "switch/serialiser/trace.h"

__attribute__((noinline)) void stage_trace(const struct stage_env *env, enum tel_packet_event event,
	const struct pkt *p, uint64_t ts_ns, uint64_t queue_bytes) {
	if (stage_traced(env))
		trace_packet(env, event, p, ts_ns, queue_bytes);
}

struct pkt *stage_copy(const struct stage_env *env, const struct pkt *p) {
	struct stage_copies *c = env->copies;
	const struct pkt_owner *o = env->owner;
	struct pkt *copy = o != NULL && o->copy != NULL ? o->copy(o->ctx, p) : NULL;

	pkt_count_add(&c->made, 1, p->size_bytes);
	if (copy == NULL) {
		pkt_count_add(c->no_memory, 1, p->size_bytes);
		return NULL;
	}
	copy->id = p->id ^ env->copy_bit;
	stage_trace(env, TEL_DUPLICATE, copy, copy->arrival_ns, 0);
	return copy;
}

struct pkt *stage_too_big(const struct stage_env *env, const struct pkt *p, uint32_t mtu) {
	const struct pkt_owner *o = env->owner;
	struct pkt *answer = o != NULL && o->too_big != NULL ? o->too_big(o->ctx, p, mtu) : NULL;

	if (answer == NULL)
		return NULL;
	pkt_count_add(&env->copies->made, 1, answer->size_bytes);
	answer->id = p->id ^ env->copy_bit;
	stage_trace(env, TEL_DUPLICATE, answer, answer->arrival_ns, 0);
	return answer;
}

void stage_drop(
	const struct stage_env *env, struct pkt_list *drops, struct pkt *p, enum drop_reason why) {
	pkt_drop(drops, p, why);
	stage_trace(env, TEL_DROP, p, p->arrival_ns, 0);
}
