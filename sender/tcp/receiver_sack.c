// SPDX-License-Identifier: BSD-3-Clause
// A receiver's out-of-order ranges, and the SACK (RFC 2018) and DSACK (RFC 2883) blocks that report
// them.
//
// The ranges are a list in the order of their offsets. Through a long queue a flow can leave
// thousands of holes, and each retransmission has to find its place among them. So the ranges are
// also the nodes of a treap (Seidel and Aragon, "Randomized Search Trees", 1996): a binary search
// tree by offset in which no node has a child of a higher rank. With independent random ranks its
// depth is O(log n), whatever the order of arrival. A range's rank is a hash of its place in the
// pool: it needs no memory, and no generator. Nothing that is sent depends on the shape of the
// tree.
#include "common/base/mem.h"
#include "common/base/rng.h"
#include "sender/endpoint/endpoint.h"
#include "sender/tcp/receiver.h"

#include <errno.h>
#include <string.h>

int range_pool_init(struct range_pool *p, uint32_t size, struct err *err) {
	memset(p, 0, sizeof(*p));
	p->base = mem_map((uint64_t)size * sizeof(*p->base));
	if (p->base == NULL && size > 0)
		return err_set(err, -ENOMEM, "no memory for %u out-of-order ranges", size);
	p->size = size;
	return 0;
}

void range_pool_fini(struct range_pool *p) {
	mem_unmap(p->base, p->size * sizeof(*p->base));
	p->base = NULL;
}

static struct range *range_get(struct range_pool *p) {
	struct range *g = p->free;

	if (g != NULL)
		p->free = g->next;
	else if (p->used < p->size)
		g = &p->base[p->used++];
	else
		p->refused++;
	return g;
}

static void range_put(struct range_pool *p, struct range *g) {
	g->next = p->free;
	p->free = g;
}

static struct range *range_at(const struct range_pool *p, uint32_t id) {
	return &p->base[id - 1];
}

static uint32_t range_id(const struct range_pool *p, const struct range *g) {
	return (uint32_t)(g - p->base) + 1;
}

// Link to the subtree below g that has the offset `start`.
static uint32_t *tree_side(struct range_pool *p, struct range *g, uint64_t start) {
	p->visits++;
	return g->start < start ? &g->above : &g->below;
}

// Puts g in the place of the first node on its way that ranks below it; what hangs there is split
// at g.
static void tree_insert(struct range_pool *p, uint32_t *at, struct range *g) {
	uint32_t id = range_id(p, g), *below = &g->below, *above = &g->above;
	uint64_t rank = rng_mix(id);

	while (*at != RANGE_NONE && rng_mix(*at) > rank)
		at = tree_side(p, range_at(p, *at), g->start);
	for (uint32_t rest = *at; rest != RANGE_NONE;) {
		struct range *n = range_at(p, rest);
		uint32_t *side = tree_side(p, n, g->start);

		if (side == &n->above) {
			*below = rest;
			below = side;
		} else {
			*above = rest;
			above = side;
		}
		rest = *side;
	}
	*below = *above = RANGE_NONE;
	*at = id;
}

// Joins the two subtrees of g in its place.
static void tree_remove(struct range_pool *p, uint32_t *at, const struct range *g) {
	uint32_t id = range_id(p, g), below = g->below, above = g->above;

	while (*at != id)
		at = tree_side(p, range_at(p, *at), g->start);
	while (below != RANGE_NONE && above != RANGE_NONE) {
		if (rng_mix(below) > rng_mix(above)) {
			*at = below;
			at = tree_side(p, range_at(p, below), g->start);
			below = *at;
		} else {
			*at = above;
			at = tree_side(p, range_at(p, above), g->start);
			above = *at;
		}
	}
	*at = below != RANGE_NONE ? below : above;
}

// The link in the list to the first range that ends at `start` or after it.
static struct range **range_find(struct range_pool *p, struct receiver *r, uint64_t start) {
	struct range **at = &r->head;
	uint32_t id = r->root;

	while (id != RANGE_NONE) {
		struct range *g = range_at(p, id);
		bool before = g->end < start;

		p->visits++;
		if (before)
			at = &g->next;
		id = before ? g->above : g->below;
	}
	return at;
}

// Puts a block first among those to be reported and removes the blocks that it contains (RFC 2018
// section 4).
static void sack_report(struct receiver *r, uint64_t start, uint64_t end) {
	struct seg_sack b = {receiver_seq(r, start), receiver_seq(r, end)};
	struct seg_sack old[SEG_SACK_MAX];
	uint8_t n = r->sack_count;

	memcpy(old, r->sack, sizeof(old));
	r->sack[0] = b;
	r->sack_count = 1;
	for (uint8_t i = 0; i < n && r->sack_count < SEG_SACK_MAX; i++) {
		if (seq_diff(old[i].start, b.start) < 0 || seq_diff(old[i].end, b.end) > 0)
			r->sack[r->sack_count++] = old[i];
	}
}

// Removes blocks at or below rcv_nxt.
static void sack_forget(struct receiver *r) {
	uint32_t nxt = receiver_seq(r, r->rcv_nxt);
	uint8_t kept = 0;

	for (uint8_t i = 0; i < r->sack_count; i++) {
		if (seq_diff(r->sack[i].end, nxt) > 0)
			r->sack[kept++] = r->sack[i];
	}
	r->sack_count = kept;
}

void receiver_report_repeated(struct receiver *r, uint64_t start, uint64_t end) {
	if (!r->sack_ok)
		return;
	if (r->sack_count == SEG_SACK_MAX)
		r->sack_count--;
	memmove(&r->sack[1], &r->sack[0], r->sack_count * sizeof(r->sack[0]));
	r->sack[0] = (struct seg_sack){receiver_seq(r, start), receiver_seq(r, end)};
	r->sack_count++;
	r->dsack = true;
}

void receiver_report_duplicate(
	struct endpoint *e, struct receiver *r, uint64_t start, uint64_t end) {
	e->received.duplicate_segs++;
	receiver_report_repeated(r, start, end);
}

void receiver_in_order(struct endpoint *e, struct receiver *r, uint64_t end) {
	uint64_t before = r->rcv_nxt;

	r->rcv_nxt = max_u64(r->rcv_nxt, end);
	while (r->head != NULL && r->head->start <= r->rcv_nxt) {
		struct range *g = r->head;

		if (g->end > r->rcv_nxt)
			r->rcv_nxt = g->end;
		r->head = g->next;
		r->range_bytes -= (uint32_t)(g->end - g->start);
		tree_remove(&e->ranges, &r->root, g);
		range_put(&e->ranges, g);
	}
	if (r->head == NULL)
		r->tail = NULL;
	e->received.bytes += r->rcv_nxt - before;
	if (r->sack_count > 0)
		sack_forget(r);
}

// Inserts a range into the list at *at. If the pool is empty, the segment counts as not received.
static void range_insert(
	struct endpoint *e, struct receiver *r, struct range **at, uint64_t start, uint64_t end) {
	struct range *g = range_get(&e->ranges);

	if (g == NULL)
		return;
	*g = (struct range){.next = *at, .start = start, .end = end};
	tree_insert(&e->ranges, &r->root, g);
	*at = g;
	r->range_bytes += (uint32_t)(end - start);
	if (g->next == NULL)
		r->tail = g;
	sack_report(r, start, end);
}

// Merges the following ranges that g now reaches into g.
static void range_merge(struct endpoint *e, struct receiver *r, struct range *g) {
	while (g->next != NULL && g->next->start <= g->end) {
		struct range *n = g->next;

		g->end = max_u64(g->end, n->end);
		g->next = n->next;
		r->range_bytes -= (uint32_t)(n->end - n->start);
		tree_remove(&e->ranges, &r->root, n);
		range_put(&e->ranges, n);
	}
	if (g->next == NULL)
		r->tail = g;
}

bool receiver_out_of_order(struct endpoint *e, struct receiver *r, uint64_t start, uint64_t end) {
	struct range **at, *g;

	// Usually the data begins or extends the last range.
	if (r->tail != NULL && start > r->tail->end)
		at = &r->tail->next;
	else if (r->tail != NULL && start >= r->tail->start)
		at = &r->tail;
	else
		at = range_find(&e->ranges, r, start);
	g = *at;
	if (g == NULL || end < g->start) {
		range_insert(e, r, at, start, end);
		return true;
	}
	if (start >= g->start && end <= g->end) {
		// The block around a duplicate follows its report (RFC 2883 section 4.1.3).
		sack_report(r, g->start, g->end);
		return false;
	}
	r->range_bytes -= (uint32_t)(g->end - g->start);
	g->start = min_u64(g->start, start);
	g->end = max_u64(g->end, end);
	range_merge(e, r, g);
	r->range_bytes += (uint32_t)(g->end - g->start);
	sack_report(r, g->start, g->end);
	return true;
}

// A FIN beyond a hole extends the block of the data before it, or is a block of its own. So the
// sender detects a lost tail before its timeout.
void receiver_report_fin(const struct receiver *r, struct seg *s, uint32_t room) {
	uint32_t fin = receiver_seq(r, r->fin), first = r->dsack ? 1 : 0;

	for (uint32_t i = first; i < s->sack_count; i++) {
		if (s->sack[i].end == fin) {
			s->sack[i].end++;
			return;
		}
	}
	if (r->tail != NULL && r->tail->end == r->fin)
		return; // that block was reported before: newer ones come first
	s->sack_count = (uint8_t)(s->sack_count < room ? s->sack_count + 1u : room);
	for (uint32_t i = s->sack_count - 1u; i > first; i--)
		s->sack[i] = s->sack[i - 1];
	s->sack[first] = (struct seg_sack){fin, fin + 1};
}

void receiver_drop_ranges(struct endpoint *e, struct receiver *r) {
	while (r->head != NULL) {
		struct range *range = r->head;

		r->head = range->next;
		range_put(&e->ranges, range);
	}
	r->range_bytes = 0;
}
