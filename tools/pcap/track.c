// SPDX-License-Identifier: BSD-3-Clause
// Finds a packet's connection, opens and ends connections.
//
// Connections are in no order in memory, so that with many of them nearly every packet's is in no cache. A batch is
// therefore gone through three times: the table's slots are fetched, then the connections, then what those point to;
// in the fourth pass all is there.
#include "tools/pcap/track.h"

#include "common/base/likely.h"
#include "common/base/mem.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define SWEEP_PER_BATCH 32u // connections looked at for idle ones
#define EVICT_TRIES 64u // of so many the one that was quiet longest goes

static inline bool same_key(const struct flow_key *a, const struct flow_key *b) {
	return memcmp(a, b, sizeof(*a)) == 0;
}

static inline bool is_at(const struct track *t, const struct packet *p, uint32_t place) {
	const struct track_flow *f = &t->flow[place];

	return (f->flags & FLOW_USED) != 0 && same_key(&f->key, &p->key);
}

static uint32_t find(const struct track *t, const struct packet *p) {
	uint32_t at = p->hash, place;

	while ((place = table_find(&t->table, p->hash, &at)) != TABLE_NONE
		&& !same_key(&t->flow[place].key, &p->key))
		continue;
	return place;
}

static void end_flow(struct track *t, uint32_t place, enum tel_flow_event event) {
	struct track_flow *f = &t->flow[place];

	track_flow_records(t, place, event);
	t->count.ended[event]++;
	for (uint32_t d = 0; d < 2; d++)
		sent_release(&t->pool, &f->dir[d].ring);
	table_remove(&t->table, f->hash, place);
	f->flags = 0;
	t->spare[t->spares++] = place;
	t->live--;
}

// What ended a connection of which nothing more is expected.
static enum tel_flow_event verdict(const struct track_flow *f, enum tel_flow_event otherwise) {
	const struct track_dir *client = &f->dir[f->client], *server = &f->dir[!f->client];

	if ((client->flags & DIR_SYN) != 0
		&& ((server->flags & DIR_KNOWN) == 0 || (f->flags & FLOW_REFUSED) != 0))
		return TEL_HALF_OPEN;
	if ((f->flags & FLOW_RESET) != 0)
		return TEL_RESET;
	return (f->flags & FLOW_CLOSED) != 0 ? TEL_CLOSE : otherwise;
}

// The table is full: of the next few connections the one that was quiet longest.
static void evict(struct track *t) {
	uint32_t oldest = TABLE_NONE;

	for (uint32_t i = 0; i < EVICT_TRIES || oldest == TABLE_NONE; i++) {
		uint32_t place = t->sweep++ % t->placed;
		const struct track_flow *f = &t->flow[place];

		if ((f->flags & FLOW_USED) != 0
			&& (oldest == TABLE_NONE || f->last_ns < t->flow[oldest].last_ns))
			oldest = place;
	}
	end_flow(t, oldest, verdict(&t->flow[oldest], TEL_EVICTED));
}

static void sweep(struct track *t) {
	for (uint32_t i = 0; i < SWEEP_PER_BATCH && i < t->placed; i++) {
		t->sweep = t->sweep + 1 < t->placed ? t->sweep + 1 : 0;
		struct track_flow *f = &t->flow[t->sweep];

		prefetch(&t->flow[t->sweep + 8]);
		if ((f->flags & FLOW_USED) == 0)
			continue;
		uint64_t quiet_ns = time_since(t->now_ns, f->last_ns);

		if (quiet_ns > t->limits.idle_ns
			|| ((f->flags & FLOW_CLOSED) != 0 && quiet_ns > TRACK_CLOSED_NS))
			end_flow(t, t->sweep, verdict(f, TEL_IDLE));
	}
}

static uint32_t open_flow(struct track *t, const struct packet *p, uint64_t now_ns) {
	if (t->spares == 0 && t->placed == t->limits.connections)
		evict(t);
	uint32_t place = t->spares > 0 ? t->spare[--t->spares] : t->placed++;
	struct track_flow *f = &t->flow[place];
	bool answer = (p->seg.flags & (SEG_SYN | SEG_ACK)) == (SEG_SYN | SEG_ACK);

	memset(f, 0, sizeof(*f));
	memset(t->rare[place], 0, sizeof(t->rare[place]));
	f->key = p->key;
	f->hash = p->hash;
	f->flags = FLOW_USED;
	f->last_ns = now_ns;
	f->client = answer ? !p->from : p->from;
	f->connection = (uint32_t)t->count.connections++;
	t->handshake_ns[place][0] = t->handshake_ns[place][1] = 0;
	for (uint32_t d = 0; d < 2; d++) {
		f->dir[d].id = TEL_NO_FLOW;
		f->dir[d].window_min = f->dir[d].window = UINT32_MAX;
		f->dir[d].tsrtt_min_ns = UINT32_MAX;
		rtt_init(&f->dir[d].rtt, NS_PER_S);
		t->rare[place][d].start_ns = now_ns;
	}
	table_insert(&t->table, p->hash, place);
	if (++t->live > t->count.live_max)
		t->count.live_max = t->live;
	return place;
}

// A SYN on a connection that is there: sent again, or another connection of the same addresses and ports?
static bool reused(const struct track_at *a) {
	const struct track_dir *dir = &a->f->dir[a->d];

	if ((a->p->seg.flags & (SEG_SYN | SEG_ACK)) != SEG_SYN)
		return false;
	if ((dir->flags & DIR_SYN) != 0)
		return track_rare(a, a->d)->isn != a->p->seg.seq;
	return (dir->flags & DIR_KNOWN) != 0 || (a->f->dir[!a->d].flags & DIR_KNOWN) != 0;
}

// Options count from the SYNs on (RFC 7323 section 2.2): scaling only if both have it.
static void agree(struct track_flow *f) {
	struct track_dir *a = &f->dir[0], *b = &f->dir[1];

	if ((a->flags & b->flags & DIR_SYN) != 0 && (a->options & b->options & SEG_OPT_WSCALE) == 0)
		a->wscale = b->wscale = 0;
}

static void syn(struct track_at *a) {
	struct track_dir *dir = &a->f->dir[a->d];
	struct track_rare *rare = track_rare(a, a->d);
	const struct seg *s = &a->p->seg;
	uint64_t *first_ns = &a->t->handshake_ns[a->place][a->d];

	if ((dir->flags & DIR_SYN) == 0) {
		dir->flags |= DIR_SYN | DIR_KNOWN;
		rare->isn = s->seq;
		dir->nxt = dir->una = s->seq + 1;
		dir->wscale = (s->options & SEG_OPT_WSCALE) != 0 ? s->wscale : 0;
		dir->options = s->options;
		a->f->dir[!a->d].mss_allowed = s->mss;
		*first_ns = a->now_ns;
		agree(a->f);
		if ((s->flags & SEG_ACK) == 0
			&& (s->flags & (SEG_ECE | SEG_CWR)) == (SEG_ECE | SEG_CWR))
			a->f->ecn |= 1;
		else if ((s->flags & SEG_ACK) != 0 && (s->flags & (SEG_ECE | SEG_CWR)) == SEG_ECE)
			a->f->ecn |= 2;
	} else {
		a->kind |= KIND_RETRANSMIT;
		if ((dir->flags & DIR_ANSWERED) == 0)
			*first_ns = NEVER_NS;
	}
	rare->syns++;
}

// The answer to a SYN or to a SYN-ACK: an RTT sample, unless what it answers was sent twice (Karn).
static void handshake(struct track_at *a) {
	struct track_dir *sender = &a->f->dir[!a->d];
	uint64_t *ns = &a->t->handshake_ns[a->place][!a->d];

	if ((a->p->seg.flags & SEG_ACK) == 0
		|| a->p->seg.ack - track_rare(a, !a->d)->isn - 1 >= TRACK_SEQ_MAX)
		return;
	sender->flags |= DIR_ANSWERED;
	*ns = *ns == NEVER_NS || a->p->seg.ack != track_rare(a, !a->d)->isn + 1
		? 0
		: time_since(a->now_ns, *ns);
	if (*ns > 0)
		rtt_sample(&sender->rtt, *ns, TRACK_RTO_MIN_NS);
}

static void reset(struct track_at *a) {
	const struct track_dir *other = &a->f->dir[!a->d];

	a->f->flags |= FLOW_CLOSED | FLOW_RESET;
	// Nothing but a SYN came before: nobody listens there.
	if ((other->flags & DIR_SYN) != 0 && other->id == TEL_NO_FLOW
		&& (a->f->dir[a->d].flags & DIR_KNOWN) == 0)
		a->f->flags |= FLOW_REFUSED;
}

static void packet(struct track *t, const struct packet *p, uint32_t place, uint64_t now_ns) {
	struct track_at a = {.t = t, .p = p, .now_ns = now_ns};

	if (unlikely(place == TABLE_NONE))
		place = open_flow(t, p, now_ns);
	a.place = place;
	a.f = &t->flow[place];
	a.d = p->from;
	if (unlikely((p->seg.flags & SEG_SYN) != 0) && reused(&a)) {
		end_flow(t, place, verdict(a.f, TEL_REPLACED));
		a.place = open_flow(t, p, now_ns);
		a.f = &t->flow[a.place];
	}
	a.f->last_ns = now_ns;
	struct track_dir *dir = &a.f->dir[a.d];

	dir->packets++;
	if (p->ecn != ECN_NOT_ECT) {
		dir->ect += p->ecn != ECN_CE;
		dir->ce += p->ecn == ECN_CE;
	}
	if (unlikely((p->seg.flags & SEG_RST) != 0)) {
		reset(&a);
	} else {
		if (unlikely((p->seg.flags & SEG_SYN) != 0))
			syn(&a);
		if (unlikely((a.f->dir[!a.d].flags & (DIR_SYN | DIR_ANSWERED)) == DIR_SYN))
			handshake(&a);
		track_data(&a);
		if (likely((p->seg.flags & SEG_ACK) != 0))
			track_ack(&a);
		if (unlikely((a.f->dir[0].flags & a.f->dir[1].flags & DIR_FIN) != 0))
			a.f->flags |= FLOW_CLOSED;
	}
	if (unlikely(t->limits.level >= 2))
		track_segment(&a);
}

// The clock of intervals: it follows the capture, but a packet that is a little earlier than the one before
// (several interfaces) does not bring the last interval back.
static void tick(struct track *t, uint64_t ts_ns) {
	if (unlikely(!t->started)) {
		t->started = true;
		t->start_ns = t->last_ns = ts_ns;
		t->interval_end_ns = t->limits.interval_ns;
	}
	uint64_t now_ns = track_relative(t, ts_ns);

	t->count.backwards += ts_ns < t->last_ns;
	t->last_ns = ts_ns;
	if (unlikely(now_ns >= t->interval_end_ns || now_ns + NS_PER_S < t->now_ns)) {
		track_flush(t);
		t->interval_end_ns = (now_ns / t->limits.interval_ns + 1) * t->limits.interval_ns;
		t->now_ns = now_ns;
	}
	if (now_ns > t->now_ns)
		t->now_ns = now_ns;
}

static inline __attribute__((always_inline)) void fetch_flow(
	const struct track *t, const struct packet *p, uint32_t place) {
	const struct track_flow *f = &t->flow[place];
	uint32_t data = p->payload > 0 ? p->from : !p->from; // the direction whose counters change

	prefetch_write(f);
	for (uint32_t line = 0; line < sizeof(f->dir[0]); line += 64)
		prefetch_write((const char *)&f->dir[data] + line);
	prefetch_write(&f->dir[!data]);
}

// The record that a segment with payload goes to, or the one that an ACK takes away.
static inline __attribute__((always_inline)) void fetch_sent(
	const struct track *t, const struct packet *p, uint32_t place) {
	const struct track_flow *f = &t->flow[place];
	uint32_t data = p->payload > 0 ? p->from : !p->from;
	const struct sent_ring *r = &f->dir[data].ring;

	prefetch_write(sent_at(&t->pool, r, p->payload > 0 ? r->tail : r->head));
	if (unlikely((f->dir[data].flags & (DIR_RECOVERY | DIR_LOSS | DIR_SACK)) != 0)) {
		const char *rare = (const char *)&t->rare[place][data];

		prefetch_write(sent_at(&t->pool, r, r->head));
		for (uint32_t line = 0; line < sizeof(t->rare[0][0]); line += 64)
			prefetch_write(rare + line);
	}
}

void track_batch(struct track *t, const struct packet *p, uint32_t n) {
	uint32_t place[READER_BATCH];

	for (uint32_t i = 0; i < n; i++)
		prefetch(table_home(&t->table, p[i].hash));
	for (uint32_t i = 0; i < n; i++) {
		uint32_t at = p[i].hash;

		place[i] = table_find(&t->table, p[i].hash, &at);
		if (likely(place[i] != TABLE_NONE))
			fetch_flow(t, &p[i], place[i]);
	}
	for (uint32_t i = 0; i < n; i++) {
		if (likely(place[i] != TABLE_NONE))
			fetch_sent(t, &p[i], place[i]);
	}
	for (uint32_t i = 0; i < n; i++) {
		tick(t, p[i].ts_ns);
		// A packet before it may have opened or ended a connection.
		if (unlikely(place[i] == TABLE_NONE || !is_at(t, &p[i], place[i])))
			place[i] = find(t, &p[i]);
		packet(t, &p[i], place[i], track_relative(t, p[i].ts_ns));
	}
	t->count.packets += n;
	sweep(t);
	if (t->touched_count > 2 * t->limits.connections)
		track_flush(t); // connections came and went within one interval
}

void track_end(struct track *t) {
	for (uint32_t place = 0; place < t->placed; place++) {
		if ((t->flow[place].flags & FLOW_USED) != 0)
			end_flow(t, place, verdict(&t->flow[place], TEL_STILL_OPEN));
	}
	track_flush(t);
}

int track_init(struct track *t, const struct track_limits *limits, struct tel *tel,
	const struct tel_run *tel_run, struct err *err) {
	size_t n = limits->connections;

	memset(t, 0, sizeof(*t));
	t->limits = *limits;
	t->tel = tel;
	t->tel_run = tel_run;
	t->interval = 1;
	// 16 more: fetched, not used.
	t->flow = mem_map((n + 16) * sizeof(*t->flow));
	t->rare = mem_map(n * sizeof(*t->rare));
	t->handshake_ns = mem_map(n * sizeof(*t->handshake_ns));
	t->spare = mem_map(n * sizeof(*t->spare));
	t->touched = mem_map((2 * n + (size_t)4 * READER_BATCH) * sizeof(*t->touched));
	if (t->flow != NULL && t->rare != NULL && t->handshake_ns != NULL && t->spare != NULL
		&& t->touched != NULL && table_init(&t->table, limits->connections) == 0
		&& sent_pool_init(&t->pool, limits->sent_bytes) == 0)
		return 0;
	track_fini(t);
	return err_set(err, -ENOMEM, "no memory for %u connections at once: lower --connections",
		limits->connections);
}

void track_fini(struct track *t) {
	size_t n = t->limits.connections;

	mem_unmap(t->flow, (n + 16) * sizeof(*t->flow));
	mem_unmap(t->rare, n * sizeof(*t->rare));
	mem_unmap(t->handshake_ns, n * sizeof(*t->handshake_ns));
	mem_unmap(t->spare, n * sizeof(*t->spare));
	mem_unmap(t->touched, (2 * n + (size_t)4 * READER_BATCH) * sizeof(*t->touched));
	table_fini(&t->table);
	sent_pool_fini(&t->pool);
	memset(t, 0, sizeof(*t));
}
