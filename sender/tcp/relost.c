// SPDX-License-Identifier: BSD-3-Clause
// Segments whose retransmission was lost, by number, so that the lowest is found in O(log n). They
// are lost again in the order in which they were sent, not in that of their numbers, and with a
// window of 10^5 segments a search for the next one through the records took 95 % of a run.
//
// A treap (Seidel and Aragon 1996): a search tree by number and a heap by a hash of the number,
// which keeps it about as deep as a tree of random order. Its links are in the place of
// those of the list of retransmissions, in which a segment that waits to be sent again is not.
#include "common/base/rng.h"
#include "sender/tcp/loss.h"

#define NONE 0

// A link has the low 31 bits of a number, more than a window has segments (SEG_ORDER_MAX), and a 1.
static uint32_t link_to(uint64_t index) {
	return (uint32_t)index << 1 | 1;
}

static uint64_t index_of(const struct flow *f, uint32_t link) {
	return f->una + (((link >> 1) - (uint32_t)f->una) & (UINT32_MAX >> 1));
}

static struct seg_links *node(const struct flow *f, uint32_t link) {
	return flow_links(f, index_of(f, link));
}

// Whether the node is to be above the other.
static bool above(uint32_t link, uint32_t other) {
	return rng_mix(link) > rng_mix(other);
}

// Divides a tree into the segments below a number and those above it.
static void split(
	const struct flow *f, uint32_t tree, uint64_t index, uint32_t *low, uint32_t *high) {
	while (tree != NONE) {
		struct seg_links *r = node(f, tree);

		if (index_of(f, tree) < index) {
			*low = tree;
			low = &r->high;
			tree = r->high;
		} else {
			*high = tree;
			high = &r->low;
			tree = r->low;
		}
	}
	*low = *high = NONE;
}

// Makes one tree of two of which all in the first are below all in the second.
static void join(const struct flow *f, uint32_t low, uint32_t high, uint32_t *tree) {
	while (low != NONE && high != NONE) {
		if (above(low, high)) {
			*tree = low;
			tree = &node(f, low)->high;
			low = *tree;
		} else {
			*tree = high;
			tree = &node(f, high)->low;
			high = *tree;
		}
	}
	*tree = low != NONE ? low : high;
}

void relost_add(struct flow *f, uint64_t index) {
	uint32_t added = link_to(index), *tree = &f->relost;
	struct seg_links *r = flow_links(f, index);

	while (*tree != NONE && above(*tree, added)) {
		struct seg_links *at = node(f, *tree);

		tree = index < index_of(f, *tree) ? &at->low : &at->high;
	}
	split(f, *tree, index, &r->low, &r->high);
	*tree = added;
}

void relost_remove(struct flow *f, uint64_t index) {
	uint32_t *tree = &f->relost;
	struct seg_links *r = flow_links(f, index);

	while (*tree != link_to(index)) {
		struct seg_links *at = node(f, *tree);

		tree = index < index_of(f, *tree) ? &at->low : &at->high;
	}
	join(f, r->low, r->high, tree);
}

uint64_t relost_first(const struct flow *f) {
	uint32_t tree = f->relost;

	while (node(f, tree)->low != NONE)
		tree = node(f, tree)->low;
	return index_of(f, tree);
}
