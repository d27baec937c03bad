// SPDX-License-Identifier: BSD-3-Clause
// A packet that was seen on one side only is lost if the other capture would have seen it: it went
// in the least delay before that began or later, and the longest delay before that ended. Else it
// is not judged. So losses are exact too where the captures begin and end at different times.
#include "tools/pcap/match.h"

#include "common/base/likely.h"
#include "common/base/mem.h"
#include "common/base/ns.h"

#include <errno.h>
#include <string.h>
#include <xxhash.h>

int match_init(
	struct match *m, const struct match_limits *limits, struct tel *tel, struct err *err) {
	memset(m, 0, sizeof(*m));
	m->limits = *limits;
	m->tel = tel;
	m->pending = mem_map(limits->packets * sizeof(*m->pending));
	m->bucket = mem_map(limits->packets * sizeof(*m->bucket));
	m->flow = mem_map(limits->flows * sizeof(*m->flow));
	for (uint32_t side = 0; side < 2; side++) {
		m->first_ns[side] = NEVER_NS;
		m->path[side].delay_min_ns = NEVER_NS;
	}
	if (m->pending != NULL && m->bucket != NULL && m->flow != NULL
		&& table_init(&m->table, limits->flows) == 0) {
		memset(m->bucket, 0xff, limits->packets * sizeof(*m->bucket));
		return 0;
	}
	match_fini(m);
	return err_set(err, -ENOMEM, "no memory for %u packets on their way", limits->packets);
}

void match_fini(struct match *m) {
	mem_unmap(m->pending, m->limits.packets * sizeof(*m->pending));
	mem_unmap(m->bucket, m->limits.packets * sizeof(*m->bucket));
	mem_unmap(m->flow, m->limits.flows * sizeof(*m->flow));
	table_fini(&m->table);
}

// How many bytes of a payload its parts have.
static const uint32_t part_bytes[MATCH_PARTS] = {16, 64, 256};

static struct match_payload payload_of(const struct packet *p) {
	struct match_payload of = {.captured = p->captured};
	uint64_t digest = 0;
	uint32_t at = 0;

	for (uint32_t i = 0; i < MATCH_PARTS && part_bytes[i] <= p->captured; i++) {
		digest = XXH64(p->data + at, part_bytes[i] - at, digest);
		of.part[i] = (uint32_t)digest;
		at = part_bytes[i];
	}
	of.whole = (uint32_t)XXH64(p->data + at, p->captured - at, digest);
	return of;
}

static bool same_payload(const struct match_payload *a, const struct match_payload *b) {
	uint32_t captured = a->captured < b->captured ? a->captured : b->captured, i = MATCH_PARTS;

	if (likely(a->captured == b->captured))
		return a->whole == b->whole;
	while (i > 0 && part_bytes[i - 1] > captured)
		i--;
	return i == 0 || a->part[i - 1] == b->part[i - 1];
}

static uint64_t digest_of(const struct packet *p) {
	struct {
		struct flow_key key;
		uint32_t seq, ack, tsval, tsecr, payload;
		uint16_t window, ip_id;
		uint8_t flags, options, from, sack_count;
		uint32_t unused; // bytes between members would be any
	} d = {
		.key = p->key,
		.seq = p->seg.seq,
		.ack = p->seg.ack,
		.tsval = p->seg.tsval,
		.tsecr = p->seg.tsecr,
		.payload = p->payload,
		.window = p->seg.window,
		.ip_id = p->ip_id,
		.flags = p->seg.flags,
		.options = p->seg.options,
		.from = p->from,
		.sack_count = p->seg.sack_count,
	};
	static_assert(sizeof(d) == sizeof(d.key) + 32, "no bytes between members");

	return XXH64(
		p->seg.sack, p->seg.sack_count * sizeof(p->seg.sack[0]), XXH64(&d, sizeof(d), 0));
}

static uint32_t flow_of(struct match *m, const struct packet *p) {
	uint32_t hash = p->hash + p->from, at = hash, i;

	while ((i = table_find(&m->table, hash, &at)) != TABLE_NONE) {
		if (m->flow[i].from == p->from
			&& memcmp(&m->flow[i].key, &p->key, sizeof(p->key)) == 0)
			return i;
	}
	if (m->flows == m->limits.flows) {
		m->without_flow++;
		return 0;
	}
	m->flow[m->flows] = (struct match_flow){
		.key = p->key, .hash = hash, .from = p->from, .delay_min_ns = NEVER_NS};
	table_insert(&m->table, hash, m->flows);
	return m->flows++;
}

static void put_links(struct match *m) {
	for (uint32_t side = 0; side < 2; side++) {
		struct match_path *path = &m->path[side];
		struct tel_links *r = path->in > 0 ? tel_put(&m->tel[TEL_STREAM_LINKS]) : NULL;

		if (r != NULL)
			*r = (struct tel_links){
				.ts_ns = m->interval_end_ns,
				.out_bytes = path->now.bytes,
				.link = side,
				.out_pkts = path->now.pkts,
				.drops = path->now.drops,
				.marks = path->now.marks,
				.sojourn_mean_ns = path->now.pkts == 0
					? 0
					: path->now.delay_sum_ns / path->now.pkts,
				.sojourn_max_ns = path->now.delay_max_ns,
			};
		memset(&path->now, 0, sizeof(path->now));
	}
}

static void put_packet(struct match *m, const struct match_pending *e, uint64_t ts_ns,
	uint64_t delay_ns, enum tel_packet_event event, uint8_t ecn) {
	struct tel_packets *r = tel_put(&m->tel[TEL_STREAM_PACKETS]);

	if (r == NULL)
		return;
	*r = (struct tel_packets){
		.ts_ns = time_since(ts_ns, m->start_ns),
		.flow_id = e->flow,
		.sojourn_ns = delay_ns,
		.size_bytes = e->size_bytes,
		.event = (uint8_t)event,
		.link = e->side,
		.ecn = ecn,
		.path = e->side,
	};
}

// The oldest of the same digests that the other side saw; *more: there is another.
static uint32_t find(const struct match *m, uint64_t digest, const struct match_payload *payload,
	uint32_t side, bool *more) {
	uint32_t found = TABLE_NONE, mask = m->limits.packets - 1;

	*more = false;
	for (uint32_t i = m->bucket[digest & mask];
		i != TABLE_NONE && i - m->head < m->tail - m->head; i = m->pending[i & mask].next) {
		const struct match_pending *e = &m->pending[i & mask];

		if (e->digest != digest || e->side == side || e->flow == TABLE_NONE
			|| !same_payload(&e->payload, payload))
			continue;
		*more = found != TABLE_NONE;
		found = i;
	}
	return found;
}

// It left where the other side sees it.
static void seen_repeatedly(
	struct match *m, struct match_pending *e, const struct packet *p, bool more) {
	struct match_path *path = &m->path[e->side];
	struct match_flow *f = &m->flow[e->flow];
	uint64_t delay_ns = time_since(p->ts_ns, e->ts_ns);
	bool marked = p->ecn == ECN_CE && e->ecn != ECN_CE;

	path->matched++;
	f->matched++;
	f->side = e->side;
	path->ambiguous += more;
	f->ambiguous += more;
	if (e->ts_ns < f->last_in_ns) {
		path->reordered++;
		f->reordered++;
	} else {
		f->last_in_ns = e->ts_ns;
	}
	if (marked) {
		path->marked++;
		f->marked++;
		path->now.marks++;
		put_packet(m, e, p->ts_ns, delay_ns, TEL_MARK, p->ecn);
	}
	f->delay_sum_ns += delay_ns;
	f->delay_min_ns = time_min(f->delay_min_ns, delay_ns);
	f->delay_max_ns = time_max(f->delay_max_ns, delay_ns);
	path->delay_min_ns = time_min(path->delay_min_ns, delay_ns);
	hist_add(&path->delay, delay_ns);
	path->bytes += e->size_bytes;
	path->now.pkts++;
	path->now.bytes += e->size_bytes;
	path->now.delay_sum_ns += delay_ns;
	path->now.delay_max_ns = time_max(path->now.delay_max_ns, delay_ns);
	put_packet(m, e, p->ts_ns, delay_ns, TEL_DEQUEUE, p->ecn);
	e->flow = TABLE_NONE;
}

// The oldest packet on its way will not be seen any more; or, if it is forgotten, may still be.
static void give_up(struct match *m, bool forgotten) {
	struct match_pending *e = &m->pending[m->head++ & (m->limits.packets - 1)];
	struct match_path *path = &m->path[e->side];
	uint32_t other = !e->side;

	if (e->flow == TABLE_NONE)
		return;
	m->forgotten += forgotten;
	// It would have come out after the other capture had begun, however fast, and before it
	// ended, however slowly.
	bool begun = m->first_ns[other] <= e->ts_ns + (path->matched > 0 ? path->delay_min_ns : 0);
	bool lasted = e->ts_ns + path->delay.max <= m->last_ns[other];
	const struct match_flow *f = &m->flow[e->flow];
	// One that came out, and had gone in before the other capture began.
	bool left = f->matched > 0 ? f->side != e->side
				   : e->ts_ns < m->first_ns[other] + m->path[other].delay.max;

	if (forgotten || !begun || !lasted || left) {
		path->unjudged++;
		m->flow[e->flow].unjudged++;
		return;
	}
	path->lost++;
	path->now.drops++;
	m->flow[e->flow].lost++;
	put_packet(m, e, e->ts_ns, 0, TEL_DROP, e->ecn);
}

static void tick(struct match *m, uint64_t ts_ns) {
	if (m->interval_end_ns == 0) {
		m->start_ns = ts_ns;
		m->interval_end_ns = m->limits.interval_ns;
	}
	uint64_t now_ns = time_since(ts_ns, m->start_ns);

	if (now_ns < m->interval_end_ns)
		return;
	put_links(m);
	m->interval_end_ns = (now_ns / m->limits.interval_ns + 1) * m->limits.interval_ns;
}

void match_packet(struct match *m, uint32_t side, const struct packet *p) {
	struct match_payload payload = payload_of(p);
	uint64_t digest = digest_of(p);
	uint32_t mask = m->limits.packets - 1;
	bool more;

	tick(m, p->ts_ns);
	m->first_ns[side] = time_min(m->first_ns[side], p->ts_ns);
	m->last_ns[side] = time_max(m->last_ns[side], p->ts_ns);
	uint32_t i = find(m, digest, &payload, side, &more);

	if (i != TABLE_NONE) {
		seen_repeatedly(m, &m->pending[i & mask], p, more);
		return;
	}
	while (m->head != m->tail
		&& p->ts_ns > m->pending[m->head & mask].ts_ns + m->limits.lost_ns)
		give_up(m, false);
	if (m->tail - m->head == m->limits.packets)
		give_up(m, true);
	struct match_pending *e = &m->pending[m->tail & mask];

	*e = (struct match_pending){
		.digest = digest,
		.payload = payload,
		.ts_ns = p->ts_ns,
		.next = m->bucket[digest & mask],
		.flow = flow_of(m, p),
		.size_bytes = (uint16_t)(p->wire_bytes < UINT16_MAX ? p->wire_bytes : UINT16_MAX),
		.side = (uint8_t)side,
		.ecn = p->ecn,
	};
	m->bucket[digest & mask] = m->tail++;
	m->path[side].in++;
	m->flow[e->flow].seen++;
	if (m->flow[e->flow].matched == 0)
		m->flow[e->flow].side = (uint8_t)side;
}

void match_end(struct match *m) {
	while (m->head != m->tail)
		give_up(m, false);
	put_links(m);
}
