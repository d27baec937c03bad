// SPDX-License-Identifier: BSD-3-Clause
#include "tools/pcap/copies.h"

#include "common/base/likely.h"
#include "common/base/mem.h"
#include "common/base/ns.h"
#include "common/base/rng.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#define WAYS 2u // in a set, which is a cache line
#define SETS_ONE 1024u // of one point: copies follow at once, and the table stays in the cache
#define SETS_SEVERAL (1u << 19) // 2 million packets on their way
#define BYTES (SETS_SEVERAL * WAYS * sizeof(struct copies_seen))

// When and where a packet was seen first, and where else.
struct copies_seen {
	uint64_t print, first_ns;
	uint64_t others; // a bit for each point, by its last six
	uint16_t point;
};
static_assert(WAYS * sizeof(struct copies_seen) == 64, "a cache line");

int copies_init(struct copies *c) {
	memset(c, 0, sizeof(*c));
	c->mask = SETS_ONE - 1;
	c->points = 1;
	c->seen = mem_map(BYTES);
	return c->seen != NULL ? 0 : -ENOMEM;
}

void copies_fini(struct copies *c) {
	mem_unmap(c->seen, BYTES);
	c->seen = NULL;
}

static inline uint64_t both(uint32_t a, uint32_t b) {
	return (uint64_t)a << 32 | b;
}

static uint64_t print_of(const struct packet *p) {
	const struct seg *s = &p->seg;
	uint64_t h = rng_mix(both(p->hash, s->seq) ^ p->from);

	h = rng_mix(h ^ both(s->ack, (uint32_t)p->ip_id << 16 | s->window));
	h = rng_mix(h
		^ both(p->payload,
			(uint32_t)s->flags << 16 | (uint32_t)s->options << 8 | s->sack_count));
	if ((s->options & SEG_OPT_TS) != 0)
		h = rng_mix(h ^ both(s->tsval, s->tsecr));
	for (uint32_t i = 0; i < s->sack_count; i++)
		h = rng_mix(h ^ both(s->sack[i].start, s->sack[i].end));
	return h | 1; // 0 is no packet
}

// A second point: a packet takes its time from one to the other.
static void grow(struct copies *c, uint32_t points) {
	if (c->points == 1 && points > 1) {
		memset(c->seen, 0, SETS_ONE * WAYS * sizeof(*c->seen));
		c->mask = SETS_SEVERAL - 1;
	}
	c->points = points;
}

static bool same(const struct packet *p, uint64_t age_ns) {
	if (p->ip_id != 0)
		return age_ns <= COPIES_SAME_NS;
	return (p->seg.flags & SEG_SYN) != 0 && age_ns <= COPIES_SYN_NS;
}

static bool has_data(const struct packet *p) {
	return p->payload > 0 || (p->seg.flags & SEG_FIN) != 0;
}

static enum copy seen_elsewhere(struct copies_seen *s, struct packet *p) {
	uint64_t bit = UINT64_C(1) << (p->point & 63);

	if ((s->others & bit) != 0)
		return COPY_REPEATED;
	s->others |= bit;
	p->others = (uint8_t)__builtin_popcountll(s->others);
	return COPY_OTHER;
}

static enum copy find(struct copies *c, struct packet *p, uint64_t print) {
	struct copies_seen *set = &c->seen[(size_t)((print >> 8) & c->mask) * WAYS], *oldest = set;

	p->alike_ns = 0;
	for (uint32_t i = 0; i < WAYS; i++) {
		struct copies_seen *s = &set[i];

		if (unlikely(s->print == print)) {
			uint64_t age_ns = time_since(p->ts_ns, s->first_ns);

			p->first_ns = s->first_ns;
			if (s->point != p->point && age_ns <= COPIES_POINTS_NS)
				return seen_elsewhere(s, p);
			if (s->point == p->point && same(p, age_ns))
				return COPY_SAME;
			if (s->point == p->point && has_data(p))
				p->alike_ns = s->first_ns;
			oldest = s;
			break;
		}
		if (s->first_ns < oldest->first_ns)
			oldest = s;
	}
	p->first_ns = p->ts_ns;
	*oldest = (struct copies_seen){.print = print, .first_ns = p->ts_ns, .point = p->point};
	return COPY_NONE;
}

void copies_find(struct copies *c, struct packet *packets, uint32_t n) {
	uint64_t print[READER_BATCH];

	assert(n <= READER_BATCH);
	for (uint32_t i = 0; i < n; i++) {
		if (unlikely(packets[i].point >= c->points))
			grow(c, packets[i].point + 1u);
		print[i] = print_of(&packets[i]);
	}
	for (uint32_t i = 0; i < n; i++)
		prefetch_write(&c->seen[(size_t)((print[i] >> 8) & c->mask) * WAYS]);
	for (uint32_t i = 0; i < n; i++)
		packets[i].copy = (uint8_t)find(c, &packets[i], print[i]);
}
