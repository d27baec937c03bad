// SPDX-License-Identifier: BSD-3-Clause
// The data path: moves packets from stage to stage in the order of their theoretical times.
//
// Stage i + 1 sees all packets that leave stage i up to a time before it is itself served to that
// time, so every stage works in order however far ahead path_pop is called.
#include "path.h"

#include "stage/link.h"

#include <assert.h>

// Counts what the stages have just dropped and hands it to the owner.
__attribute__((noinline)) static void path_count_drops(struct path *p) {
	struct pkt *pkt;

	while ((pkt = pkt_list_pop(&p->fresh)) != NULL) {
		assert(pkt->drop_reason > DROP_NONE && pkt->drop_reason < DROP_REASONS);
		p->drop[pkt->drop_reason].pkts++;
		p->drop[pkt->drop_reason].bytes += pkt->size_bytes;
		pkt_list_push(&p->drops, pkt);
	}
}

void path_push(struct path *p, struct pkt *pkt, uint64_t now_ns) {
	struct path_stage *first = &p->stage[0];

	pkt->arrival_ns = time_max(pkt->arrival_ns, p->last_arrival_ns);
	p->last_arrival_ns = pkt->arrival_ns;
	pkt->id = p->next_id++;
	p->in.pkts++;
	p->in.bytes += pkt->size_bytes;
	p->served_ns = NEVER_NS;
	first->ops->push(first->state, pkt, now_ns, &p->fresh);
	if (__builtin_expect(p->fresh.head != NULL, 0))
		path_count_drops(p);
}

static inline void stage_advance(struct path *p, uint32_t i, uint64_t now_ns) {
	const struct path_stage *from = &p->stage[i];
	const struct path_stage *to = &p->stage[i + 1];
	struct pkt *pkt;

	while ((pkt = from->ops->pop(from->state, now_ns, &p->fresh)) != NULL)
		to->ops->push(to->state, pkt, now_ns, &p->fresh);
}

// Moves all that is due to leave the path by now_ns to the last stage. A stage is served only as far
// as that needs, up to what the stages behind it take at least: what enters it later than that is
// not missed, which is virtual time's lookahead.
static void path_advance(struct path *p, uint64_t now_ns) {
	for (uint32_t i = 0; i + 1 < p->stages; i++)
		stage_advance(p, i, time_since(now_ns, p->stage[i].after_ns));
	p->served_ns = now_ns;
}

struct pkt *path_pop(struct path *p, uint64_t now_ns) {
	const struct path_stage *last = &p->stage[p->stages - 1];

	if (p->served_ns != now_ns)
		path_advance(p, now_ns);

	struct pkt *pkt = last->ops->pop(last->state, now_ns, &p->fresh);

	if (__builtin_expect(p->fresh.head != NULL, 0))
		path_count_drops(p);
	if (pkt != NULL) {
		p->out.pkts++;
		p->out.bytes += pkt->size_bytes;
	}
	return pkt;
}

void path_serve(struct path *p, uint64_t now_ns) {
	for (uint32_t i = 0; i + 1 < p->stages; i++)
		stage_advance(p, i, now_ns);
	for (uint32_t i = 0; i < p->stages; i++) {
		if (p->stage[i].ops == &stage_link)
			link_serve(p->stage[i].state, now_ns, &p->fresh);
	}
	path_count_drops(p);
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
	return pkts == p->in.pkts && bytes == p->in.bytes;
}
