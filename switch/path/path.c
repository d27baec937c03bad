// SPDX-License-Identifier: BSD-3-Clause
// The data path: moves packets from stage to stage in the order of their theoretical times.
//
// Stage i + 1 sees all packets that leave stage i up to a time before it is itself served to that
// time, so every stage works in order however far ahead path_pop is called.
#include "switch/path/path.h"

#include "common/base/likely.h"

#include <assert.h>

#define PATH_BURST 64 // twice that of the live loop: one that is not full is the last

// Counts what the stages have just dropped and gives it back to the owner.
__attribute__((noinline)) static void path_count_drops(struct path *p) {
	for (const struct pkt *pkt = p->drops.head; pkt != NULL; pkt = pkt->next) {
		assert(pkt->drop_reason > DROP_NONE && pkt->drop_reason < DROP_REASONS);
		p->drop[pkt->drop_reason].pkts++;
		p->drop[pkt->drop_reason].bytes += pkt->size_bytes;
	}
	if (p->owner.free != NULL)
		p->owner.free(p->owner.ctx, &p->drops);
	p->drops = (struct pkt_list){0};
}

void path_trace(struct path *p, const struct tel_arrivals *r) {
	struct tel_arrivals *slot = tel_on(p->tel_arrivals) ? tel_put(p->tel_arrivals) : NULL;

	if (slot == NULL)
		return;
	*slot = *r;
	slot->path = p->index;
}

static void trace_ack(struct path *p, const struct pkt *pkt, const struct pkt_headers *h) {
	path_trace(p,
		&(struct tel_arrivals){
			.ts_ns = pkt->arrival_ns,
			.value = h->tsval,
			.flow_id = h->ack,
			.pkt_id = pkt->id,
			.delay_class = h->timestamps,
			.event = TEL_ACK,
			.param = h->ace,
		});
	for (uint32_t i = 0; i < h->sacks; i++)
		path_trace(p,
			&(struct tel_arrivals){
				.ts_ns = pkt->arrival_ns,
				.value = h->sack[i].end,
				.flow_id = h->sack[i].start,
				.pkt_id = pkt->id,
				.event = TEL_SACK,
			});
}

static void trace_headers(struct path *p, const struct pkt *pkt) {
	struct pkt_headers h = pkt_headers(&p->owner, pkt);

	path_trace(p,
		&(struct tel_arrivals){
			.ts_ns = pkt->arrival_ns,
			.flow_id = h.seq,
			.pkt_id = pkt->id,
			.size_bytes = h.seq_count,
			.delay_class = h.syn,
			.event = TEL_HEADERS,
			.param = h.dscp,
		});
	if (h.pure_ack)
		trace_ack(p, pkt, &h);
}

__attribute__((noinline)) static void path_trace_arrivals(
	struct path *p, struct pkt *const *pkts, uint32_t n) {
	for (uint32_t i = 0; i < n; i++) {
		const struct pkt *pkt = pkts[i];

		if (p->reads_headers)
			trace_headers(p, pkt);
		path_trace(p,
			&(struct tel_arrivals){
				.ts_ns = pkt->arrival_ns,
				.value = pkt_hosts(&p->owner, pkt),
				.flow_id = pkt->flow_id,
				.pkt_id = pkt->id,
				.size_bytes = pkt->size_bytes,
				.delay_class = pkt->delay_class,
				.event = TEL_ARRIVED,
				.ecn = pkt->ecn,
			});
	}
}

static void stage_advance(struct path *p, uint32_t i, uint64_t now_ns) {
	const struct path_stage *from = &p->stage[i];
	const struct path_stage *to = &p->stage[i + 1];
	struct pkt *pkts[PATH_BURST];
	uint32_t n;

	do {
		n = from->ops->pop(from->state, now_ns, pkts, PATH_BURST, &p->drops);
		if (n > 0)
			to->ops->push(to->state, pkts, n, &p->drops);
	} while (n == PATH_BURST);
}

// Whether a link has taken packets without being served. It then keeps those before them until the
// next stage wants them, which has them in the cache when it passes them on.
static bool path_defer(struct path *p, struct pkt *const *pkts, uint32_t n) {
	const struct path_stage *first = &p->stage[0];

	return p->stages > 1 && first->ops->figures != NULL && first->ops->figures->defer != NULL
		&& first->ops->figures->defer(first->state, pkts, n);
}

void path_push(struct path *p, struct pkt *const *pkts, uint32_t n) {
	struct path_stage *first = &p->stage[0];
	uint64_t last_ns = p->last_arrival_ns, bytes = 0;

	if (n == 0)
		return;
	for (uint32_t i = 0; i < n; i++) {
		struct pkt *pkt = pkts[i];

		pkt->arrival_ns = last_ns = time_max(pkt->arrival_ns, last_ns);
		pkt->id = p->next_id + i;
		bytes += pkt->size_bytes;
	}
	p->last_arrival_ns = last_ns;
	p->next_id += n;
	p->in.pkts += n;
	p->in.bytes += bytes;
	p->idle_ns = 0;
	if (unlikely(tel_on(p->tel_arrivals)))
		path_trace_arrivals(p, pkts, n);
	if (unlikely(p->tap != NULL))
		p->tap->arrived(p->tap, p, pkts, n);
	p->deferred = path_defer(p, pkts, n);
	if (p->deferred)
		return;
	// What leaves a link before these come goes straight to the next stage; it is idle until
	// then.
	if (p->stages > 1 && first->ops->figures != NULL) {
		stage_advance(p, 0, pkts[0]->arrival_ns);
		if (p->stages == 2)
			p->idle_ns = pkts[0]->arrival_ns + first->after_ns;
	}
	first->ops->push(first->state, pkts, n, &p->drops);
	if (unlikely(p->drops.head != NULL))
		path_count_drops(p);
}

void path_push_nothing(struct path *p, uint32_t size_bytes) {
	p->in.pkts++;
	p->in.bytes += size_bytes;
	p->drop[DROP_NO_MBUF].pkts++;
	p->drop[DROP_NO_MBUF].bytes += size_bytes;
}

// Moves all that is due to leave the path by now_ns to the last stage. A stage is served only as
// far as that needs, up to what the stages behind it take at least: what enters it later than that
// is not missed, which is virtual time's lookahead.
static void path_advance(struct path *p, uint64_t now_ns) {
	for (uint32_t i = 0; i + 1 < p->stages; i++)
		stage_advance(p, i, time_since(now_ns, p->stage[i].after_ns));
	p->idle_ns = now_ns + 1;
}

uint32_t path_pop(struct path *p, uint64_t now_ns, struct pkt **pkts, uint32_t max) {
	const struct path_stage *last = &p->stage[p->stages - 1];
	uint64_t bytes = 0;
	uint32_t n;

	if (now_ns >= p->idle_ns)
		path_advance(p, now_ns);
	n = last->ops->pop(last->state, now_ns, pkts, max, &p->drops);
	if (unlikely(p->drops.head != NULL))
		path_count_drops(p);
	for (uint32_t i = 0; i < n; i++)
		bytes += pkts[i]->size_bytes;
	p->out.pkts += n;
	p->out.bytes += bytes;
	if (unlikely(p->tap != NULL))
		p->tap->departed(p->tap, p, pkts, n);
	return n;
}

void path_serve(struct path *p, uint64_t now_ns) {
	for (uint32_t i = 0; i + 1 < p->stages; i++)
		stage_advance(p, i, now_ns);
	for (uint32_t i = 0; i < p->stages; i++) {
		if (path_is_link(&p->stage[i]))
			p->stage[i].ops->figures->serve(p->stage[i].state, now_ns, &p->drops);
	}
	if (p->drops.head != NULL)
		path_count_drops(p);
}

void path_end(struct path *p, uint64_t now_ns) {
	path_serve(p, now_ns);
	path_trace(p,
		&(struct tel_arrivals){
			.ts_ns = now_ns,
			.flow_id = TEL_NO_FLOW,
			.pkt_id = p->next_id,
			.event = TEL_END,
		});
}

uint64_t path_next_ns(const struct path *p) {
	uint64_t next_ns = NEVER_NS;

	for (uint32_t i = 0; i < p->stages; i++) {
		const struct path_stage *s = &p->stage[i];
		uint64_t t_ns = s->ops->next_ns(s->state);

		if (t_ns != NEVER_NS)
			next_ns = time_min(next_ns, t_ns + s->after_ns);
	}
	return next_ns;
}

struct backlog path_backlog(const struct path *p) {
	struct backlog sum = {0};

	for (uint32_t i = 0; i < p->stages; i++) {
		struct backlog b = p->stage[i].ops->backlog(p->stage[i].state);

		sum.pkts += b.pkts;
		sum.bytes += b.bytes;
	}
	return sum;
}

bool path_balanced(const struct path *p) {
	struct backlog inside = path_backlog(p);
	uint64_t pkts = p->out.pkts + inside.pkts;
	uint64_t bytes = p->out.bytes + inside.bytes;

	for (uint32_t i = 0; i < DROP_REASONS; i++) {
		pkts += p->drop[i].pkts;
		bytes += p->drop[i].bytes;
	}
	return pkts == p->in.pkts + p->copies.made.pkts
		&& bytes == p->in.bytes + p->copies.made.bytes;
}
