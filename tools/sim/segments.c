// SPDX-License-Identifier: BSD-3-Clause
#include "tools/sim/segments.h"

#include "common/base/mem.h"
#include "sender/tcp/flow.h"

#include <errno.h>

// What the records of a connection count from, and its highest number sent.
struct segments_flow {
	uint32_t iss, irs; // first sequence numbers, its own and its peer's
	uint32_t end; // from iss
};

int segments_init(struct segments *x, struct tel *tel, const struct tel_run *run,
	const struct groups *groups, struct err *err) {
	struct segments_flow *flow = mem_map(groups->flows * sizeof(*flow));

	if (flow == NULL)
		return err_set(err, -ENOMEM, "no memory for %u flows", groups->flows);
	*x = (struct segments){.tel = tel, .run = run, .groups = groups, .flow = flow};
	return 0;
}

void segments_fini(struct segments *x) {
	if (x->flow != NULL)
		mem_unmap(x->flow, x->groups->flows * sizeof(*x->flow));
	x->flow = NULL;
}

static bool wanted(const struct segments *x, const struct flow *f) {
	return x->groups->group[f->group].transport == NULL && tel_flow_sampled(x->run, f->id);
}

// Sequence numbers that it takes: SYN and FIN have one each.
static uint32_t length(const struct seg *s) {
	return s->len + ((s->flags & SEG_SYN) != 0 ? 1u : 0u)
		+ ((s->flags & SEG_FIN) != 0 ? 1u : 0u);
}

// Whether it was sent before.
static bool sent_before(struct segments_flow *own, const struct seg *s, uint32_t seq) {
	if ((s->flags & SEG_SYN) != 0 && own->iss != s->seq)
		*own = (struct segments_flow){.iss = s->seq}; // the flow's next connection
	if (length(s) == 0 || seq_diff(own->end, seq + length(s)) >= 0)
		return length(s) > 0;
	own->end = seq + length(s);
	return false;
}

static void record_sent(struct segments *x, const struct flow *f, const struct seg *s, uint32_t seq,
	uint8_t ecn, uint64_t now_ns) {
	struct segments_flow *own = &x->flow[f->id];
	bool resent = sent_before(own, s, seq);
	struct tel_segments *r = tel_put(x->tel);

	if (r == NULL)
		return;
	*r = (struct tel_segments){
		.ts_ns = now_ns,
		.flow_id = f->id,
		.seq = seq,
		.ack = (s->flags & SEG_ACK) != 0 ? s->ack - own->irs : 0,
		.window_bytes = TEL_UNKNOWN(uint32_t),
		.sack_start = TEL_UNKNOWN(uint32_t),
		.sack_end = TEL_UNKNOWN(uint32_t),
		.payload_bytes = s->len,
		.inflight_bytes = s->len > 0 ? own->end - 1 - (uint32_t)f->una_bytes : 0,
		.kind = resent ? KIND_RETRANSMIT : 0,
		.flags = s->flags,
		.ecn = ecn,
		.forward = 1,
	};
}

void segments_sent(struct segments *x, const struct flow *f, const struct seg *first, uint32_t n,
	uint8_t ecn, uint64_t now_ns) {
	if (!wanted(x, f))
		return;
	for (uint32_t i = 0; i < n; i++)
		record_sent(x, f, first, first->seq - f->iss + i * first->len, ecn, now_ns);
}

void segments_received(struct segments *x, const struct flow *f, const struct seg *s, uint8_t ecn,
	uint64_t now_ns) {
	struct segments_flow *own = &x->flow[f->id];
	bool syn = (s->flags & SEG_SYN) != 0, acks = (s->flags & SEG_ACK) != 0;
	const struct seg_sack *sack = s->sack_count > 0 ? s->sack : NULL;
	struct tel_segments *r;

	if (syn)
		own->irs = s->seq;
	if (!wanted(x, f) || (r = tel_put(x->tel)) == NULL)
		return;
	*r = (struct tel_segments){
		.ts_ns = now_ns,
		.flow_id = f->id,
		.seq = s->seq - own->irs,
		.ack = acks ? s->ack - f->iss : 0,
		.window_bytes = (uint32_t)s->window << (syn ? 0 : f->snd_wscale),
		.sack_start = sack != NULL ? sack->start - f->iss : TEL_UNKNOWN(uint32_t),
		.sack_end = sack != NULL ? sack->end - f->iss : TEL_UNKNOWN(uint32_t),
		.payload_bytes = s->len,
		.kind = sack != NULL ? KIND_SACK : 0,
		.flags = s->flags,
		.ecn = ecn,
	};
}
