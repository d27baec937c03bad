// SPDX-License-Identifier: BSD-3-Clause
// Finds a packet's connection, opens and ends connections.
//
// Connections are in no order in memory, so that with many of them nearly every packet's is in no
// cache. What a packet needs is therefore fetched in steps, each of which has the time of another
// batch's work to come:
//
//	while this batch is decoded             the slots of the table
//	before the one before it is analysed    the connections
//	while the next one is decoded           (they come)
//	before the next one's are fetched       what they point to
#include "tools/pcap/track.h"

#include "common/base/likely.h"
#include "common/base/mem.h"
#include "tools/pcap/copies.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define SWEEP_PER_BATCH 32u // connections looked at for idle ones
#define EVICT_TRIES 64u // of so many the one that was quiet longest goes

// Of IPv4 all is in the flow's first cache line.
static inline bool is_at(const struct track *t, const struct packet *p, uint32_t place) {
	const struct track_flow *f = &t->flow[place];

	if (f->address[0] != (uint32_t)p->key.end[0].low
		|| f->address[1] != (uint32_t)p->key.end[1].low || f->port[0] != p->key.port[0]
		|| f->port[1] != p->key.port[1] || (f->flags & FLOW_USED) == 0)
		return false;
	if (likely(p->ipv4 && (f->flags & FLOW_IPV4) != 0))
		return true;
	return memcmp(&t->opening[place].key, &p->key, sizeof(p->key)) == 0;
}

static uint32_t find(const struct track *t, const struct packet *p) {
	uint32_t at = p->hash, place;

	while ((place = table_find(&t->table, p->hash, &at)) != TABLE_NONE && !is_at(t, p, place))
		continue;
	return place;
}

// How much of the connection the capture shows.
static void count_view(struct track *t, uint32_t place, enum tel_flow_event event) {
	const struct track_flow *f = &t->flow[place];
	const uint64_t *part = t->opening[place].handshake_ns;
	uint16_t either = f->snd[0].flags | f->snd[1].flags,
		 both = f->snd[0].flags & f->snd[1].flags;

	for (uint32_t d = 0; d < 2; d++)
		t->count.uncaptured_flows += t->rare[place][d].uncaptured_bytes > 0
			&& (f->snd[d].flags & DIR_KNOWN) != 0;
	if (event == TEL_HALF_OPEN)
		return;
	t->count.begun_before += (either & DIR_SYN) == 0;
	t->count.one_sided += (both & DIR_KNOWN) == 0;
	// At several points each part is a whole round trip.
	if ((f->flags & FLOW_COPIED) == 0 && (both & DIR_ANSWERED) != 0 && part[0] > 0
		&& part[1] > 0)
		t->count.middle += time_min(part[0], part[1]) * TRACK_MIDDLE > part[0] + part[1];
}

static void end_flow(struct track *t, uint32_t place, enum tel_flow_event event) {
	struct track_flow *f = &t->flow[place];

	track_flow_records(t, place, event);
	count_view(t, place, event);
	t->count.ended[event]++;
	for (uint32_t d = 0; d < 2; d++)
		sent_release(&t->pool, &f->dir[d].ring);
	table_remove(&t->table, t->opening[place].hash, place);
	f->flags = 0;
	t->spare[t->spares++] = place;
	t->live--;
}

// What ended a connection of which nothing more is expected.
static enum tel_flow_event verdict(const struct track_flow *f, enum tel_flow_event otherwise) {
	const struct track_snd *client = &f->snd[f->client], *server = &f->snd[!f->client];

	if ((client->flags & DIR_SYN) != 0
		&& ((server->flags & (DIR_KNOWN | DIR_ACKED)) == 0
			|| (f->flags & FLOW_REFUSED) != 0))
		return TEL_HALF_OPEN;
	if ((f->flags & FLOW_RESET) != 0)
		return TEL_RESET;
	return (f->flags & FLOW_CLOSED) != 0 ? TEL_CLOSE : otherwise;
}

static void restart_sweep(struct track *t) {
	t->swept = 0;
	t->sweep_ns = 0;
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
	restart_sweep(t); // it has not looked at those that were tried
}

// When the connection is to end, unless packets come.
static uint64_t expiry_ns(const struct track *t, const struct track_flow *f) {
	uint64_t closed_ns = time_min(t->limits.idle_ns, TRACK_CLOSED_NS);

	return f->last_ns + ((f->flags & FLOW_CLOSED) != 0 ? closed_ns : t->limits.idle_ns);
}

// Some of the connections after each batch, until all were looked at; then not before the first of
// them expires, or one that is opened or closed meanwhile may.
static void sweep(struct track *t) {
	if (t->now_ns < t->sweep_ns)
		return;
	if (t->swept == 0)
		t->expires_ns = t->now_ns + time_min(t->limits.idle_ns, TRACK_CLOSED_NS);
	for (uint32_t i = 0; i < SWEEP_PER_BATCH && i < t->placed; i++) {
		t->sweep = t->sweep + 1 < t->placed ? t->sweep + 1 : 0;
		struct track_flow *f = &t->flow[t->sweep];

		prefetch(&t->flow[t->sweep + 8]);
		if ((f->flags & FLOW_USED) != 0) {
			uint64_t at_ns = expiry_ns(t, f);

			if (t->now_ns > at_ns)
				end_flow(t, t->sweep, verdict(f, TEL_IDLE));
			else
				t->expires_ns = time_min(t->expires_ns, at_ns);
		}
		if (++t->swept >= t->placed) {
			t->sweep_ns = time_since(t->expires_ns, NS_PER_S); // packets may be as late
			t->swept = 0;
			return;
		}
	}
}

static uint32_t open_flow(struct track *t, const struct packet *p, uint64_t now_ns) {
	if (t->spares == 0 && t->placed == t->limits.connections)
		evict(t);
	bool used = t->spares > 0; // else the memory is all zero
	uint32_t place = used ? t->spare[--t->spares] : t->placed++;
	struct track_flow *f = &t->flow[place];

	if (used) {
		memset(f, 0, sizeof(*f));
		memset(t->rare[place], 0, sizeof(t->rare[place]));
	}
	f->flags = (uint8_t)(p->ipv4 ? FLOW_USED | FLOW_IPV4 : FLOW_USED);
	f->last_ns = now_ns;
	f->client = track_client_of(p);
	t->opening[place] = (struct track_opening){.key = p->key,
		.hash = p->hash,
		.connection = (uint32_t)t->count.connections++,
		.start_ns = now_ns,
		.last_ns = {NEVER_NS, NEVER_NS}};
	for (uint32_t d = 0; d < 2; d++) {
		f->address[d] = (uint32_t)p->key.end[d].low;
		f->port[d] = p->key.port[d];
		t->rare[place][d].id = TEL_NO_FLOW;
		t->rare[place][d].window_min = f->snd[d].window = UINT32_MAX;
		f->snd[d].wscale = WSCALE_UNKNOWN;
		f->dir[d].tsrtt_min_ns = NEVER_NS;
		rtt_init(&f->dir[d].rtt, NS_PER_S);
	}
	table_insert(&t->table, p->hash, place);
	if (++t->live > t->count.live_max)
		t->count.live_max = t->live;
	return place;
}

// Are both ends done, and has each acknowledged the other's FIN?
static bool closed(const struct track_snd snd[2]) {
	return (snd[0].flags & snd[1].flags & DIR_FIN) != 0 && snd[0].una == snd[0].nxt
		&& snd[1].una == snd[1].nxt;
}

// Behind a close it answers a late copy, whose receiver has no connection any more.
static void reset(struct track_at *a) {
	const struct track_snd *other = &a->f->snd[!a->d];

	if (closed(a->f->snd))
		return;
	a->f->flags |= FLOW_CLOSED | FLOW_RESET;
	// Nothing but a SYN came before: nobody listens there.
	if ((other->flags & DIR_SYN) != 0 && (other->flags & DIR_FLOW) == 0
		&& (a->f->snd[a->d].flags & DIR_KNOWN) == 0)
		a->f->flags |= FLOW_REFUSED;
}

// Where packets are seen at several points, before and behind a switch, an ACK counts at the last
// of them: it says nothing to its receiver before. Round trips are then those of the data's sender.
// Is this packet to be seen there yet? That holds once an earlier one of its sender was; for a
// SYN-ACK, once the SYN was seen again.
static bool acks_later(const struct track_at *a) {
	const struct track_opening *o = &a->t->opening[a->place];
	uint64_t first_ns = track_relative(a->t, a->p->first_ns);

	return first_ns >= o->last_ns[a->d]
		|| ((a->p->seg.flags & SEG_SYN) != 0 && first_ns >= o->last_ns[!a->d]);
}

// A packet that was seen at another point before.
static void elsewhere(struct track *t, const struct packet *p, uint32_t place, uint64_t now_ns) {
	struct track_at a = {.t = t,
		.p = p,
		.now_ns = now_ns,
		.place = place,
		.f = &t->flow[place],
		.d = p->from};
	struct track_opening *o = &t->opening[place];
	bool farther = p->others >= o->last_others[a.d];
	bool last = o->last_ns[a.d] == NEVER_NS || o->last[a.d] == p->point;
	bool counts = last && acks_later(&a) && (p->seg.flags & (SEG_ACK | SEG_RST)) == SEG_ACK;

	a.f->flags |= FLOW_COPIED;
	a.f->last_ns = now_ns;
	if (farther) {
		o->last[a.d] = p->point;
		o->last_others[a.d] = p->others;
	}
	o->last_ns[a.d] = time_min(o->last_ns[a.d], now_ns);
	if (!counts)
		return;
	track_handshake(&a);
	track_ack(&a);
	if (t->limits.level >= 2 && p->payload == 0)
		track_segment(&a);
}

static void packet(struct track *t, const struct packet *p, uint32_t place, uint64_t now_ns) {
	struct track_at a = {.t = t, .p = p, .now_ns = now_ns};

	if (unlikely(p->copy == COPY_OTHER)) {
		if (place != TABLE_NONE)
			elsewhere(t, p, place, now_ns);
		return;
	}
	if (unlikely(place == TABLE_NONE))
		place = open_flow(t, p, now_ns);
	a.place = place;
	a.f = &t->flow[place];
	a.d = p->from;
	bool alike = p->alike_ns > 0 && time_since(p->ts_ns, p->alike_ns) < track_round_trip_ns(&a);

	if (unlikely(p->copy == COPY_SAME || alike)) {
		track_duplicate(&a);
		if (t->limits.level >= 2)
			track_segment(&a);
		return;
	}
	if (unlikely((p->seg.flags & SEG_SYN) != 0) && track_reused(&a)) {
		end_flow(t, place, verdict(a.f, TEL_REPLACED));
		a.place = open_flow(t, p, now_ns);
		a.f = &t->flow[a.place];
	}
	a.f->last_ns = now_ns;
	struct track_snd *snd = &a.f->snd[a.d];
	bool waits = false;

	t->several |= p->point != 0;
	if (unlikely(t->several && p->payload > 0)) {
		if ((snd->flags & DIR_FLOW) == 0) {
			t->opening[a.place].first[a.d] = p->point;
		} else if (p->point != t->opening[a.place].first[a.d] && track_recut(&a)) {
			t->count.recut++;
			return;
		}
	}
	snd->packets++;
	if (p->ecn != ECN_NOT_ECT) {
		track_rare(&a, a.d)->ect += p->ecn != ECN_CE;
		track_rare(&a, a.d)->ce += p->ecn == ECN_CE;
	}
	if (unlikely((p->seg.flags & SEG_RST) != 0)) {
		reset(&a);
	} else {
		if (unlikely((p->seg.flags & SEG_SYN) != 0))
			track_syn(&a);
		waits = (a.f->flags & FLOW_COPIED) != 0 && acks_later(&a);
		if (likely(!waits))
			track_handshake(&a);
		track_data(&a);
		if (likely((p->seg.flags & SEG_ACK) != 0 && !waits))
			track_ack(&a);
		if (unlikely((a.f->snd[0].flags & a.f->snd[1].flags & DIR_FIN) != 0))
			a.f->flags |= FLOW_CLOSED;
	}
	if (unlikely(t->limits.level >= 2) && !(waits && p->payload == 0))
		track_segment(&a);
}

// An interval ends with the warm-up, too: what is measured is of whole ones.
static uint64_t end_after_ns(const struct track *t, uint64_t now_ns) {
	uint64_t end_ns = (now_ns / t->limits.interval_ns + 1) * t->limits.interval_ns;

	return now_ns < t->limits.warmup_ns ? time_min(end_ns, t->limits.warmup_ns) : end_ns;
}

// The clock of intervals: it follows the capture, but a packet that is a little earlier than the
// one before (several interfaces) does not bring the last interval back.
static void tick(struct track *t, uint64_t ts_ns, uint16_t epoch) {
	if (unlikely(!t->started)) {
		t->started = true;
		t->start_ns = t->last_ns = ts_ns;
		t->interval_end_ns = end_after_ns(t, 0);
		t->measuring = t->limits.warmup_ns == 0;
	}
	uint64_t now_ns = track_relative(t, ts_ns);

	t->count.backwards += ts_ns < t->last_ns;
	if (unlikely(epoch != t->epoch)) {
		t->epoch = epoch;
		t->step_ns = now_ns;
	}
	t->last_ns = ts_ns;
	if (unlikely(now_ns >= t->interval_end_ns || now_ns + NS_PER_S < t->now_ns)) {
		if (now_ns < t->now_ns)
			restart_sweep(t);
		track_flush(t);
		if (!t->measuring && now_ns >= t->limits.warmup_ns)
			track_end_warmup(t);
		t->interval_end_ns = end_after_ns(t, now_ns);
		t->now_ns = now_ns;
	}
	if (now_ns > t->now_ns)
		t->now_ns = now_ns;
}

// Of the direction whose counters change a segment needs the first cache line, an ACK all. Always
// inline: gcc takes a function that only prefetches for one without effect, and leaves out its
// calls.
static inline __attribute__((always_inline)) void fetch_flow(
	const struct track *t, const struct packet *p, uint32_t place) {
	const struct track_flow *f = &t->flow[place];
	const struct track_dir *dir = &f->dir[p->payload > 0 ? p->from : !p->from];

	prefetch_write(f);
	prefetch_write(dir);
	if (p->payload == 0) {
		prefetch_write(&dir->last_ack_ns);
		prefetch_write(&dir->rtt);
	}
	if (p->ecn != ECN_NOT_ECT)
		prefetch_write(&t->rare[place][p->from].ect);
}

// The record that a segment with payload goes to, or the one that an ACK takes away.
static inline __attribute__((always_inline)) void fetch_sent(
	const struct track *t, const struct packet *p, uint32_t place) {
	const struct track_flow *f = &t->flow[place];
	uint32_t data = p->payload > 0 ? p->from : !p->from;
	const struct sent_ring *r = &f->dir[data].ring;
	uint32_t next = p->payload > 0 ? r->tail : r->head;

	prefetch_write(sent_at(&t->pool, r, next));
	prefetch_write(sent_at(&t->pool, r, next + 2)); // of a burst, the next cache line
	if (p->payload > 0
		&& f->snd[data].nxt - f->snd[data].una + 2 * p->payload > f->snd[data].window)
		prefetch_write(&t->rare[place][data].window_limited);
	if (unlikely((f->snd[data].flags & (DIR_RECOVERY | DIR_LOSS | DIR_SACK)) != 0)) {
		const char *rare = (const char *)&t->rare[place][data];

		prefetch_write(sent_at(&t->pool, r, r->head));
		for (uint32_t line = 0; line < TRACK_RARE_HOT_BYTES; line += 64)
			prefetch_write(rare + line);
	}
}

static void find_batch(struct track *t, struct track_batch *b) {
	for (uint32_t i = 0; i < b->count; i++) {
		uint32_t at = b->packet[i].hash;

		b->place[i] = table_find(&t->table, b->packet[i].hash, &at);
		if (likely(b->place[i] != TABLE_NONE))
			fetch_flow(t, &b->packet[i], b->place[i]);
	}
}

static void analyse_batch(struct track *t, struct track_batch *b) {
	for (uint32_t i = 0; i < b->count; i++) {
		const struct packet *p = &b->packet[i];
		uint32_t place = b->place[i];

		tick(t, p->ts_ns, p->epoch);
		// A packet before it may have opened or ended a connection.
		if (unlikely(place == TABLE_NONE || !is_at(t, p, place)))
			place = find(t, p);
		packet(t, p, place, track_relative(t, p->ts_ns));
		t->count.packets += p->copy != COPY_OTHER;
	}
	b->count = 0;
	sweep(t);
	if (t->touched_count > 2 * t->limits.connections)
		track_flush(t); // connections came and went within one interval
}

void track_packets(struct track *t, uint32_t n) {
	struct track_batch *next = &t->batch[t->filled], *before = &t->batch[!t->filled];

	next->count = n;
	for (uint32_t i = 0; i < before->count; i++) {
		if (likely(before->place[i] != TABLE_NONE))
			fetch_sent(t, &before->packet[i], before->place[i]);
	}
	find_batch(t, next);
	if (likely(before->count > 0))
		analyse_batch(t, before);
	t->filled = !t->filled;
}

void track_end(struct track *t) {
	if (t->batch[!t->filled].count > 0)
		analyse_batch(t, &t->batch[!t->filled]);
	if (!t->measuring)
		track_end_warmup(t);
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
	// 16 more: fetched, not used.
	t->flow = mem_map((n + 16) * sizeof(*t->flow));
	t->rare = mem_map(n * sizeof(*t->rare));
	t->opening = mem_map(n * sizeof(*t->opening));
	t->spare = mem_map(n * sizeof(*t->spare));
	t->touched = mem_map((2 * n + (size_t)4 * READER_BATCH) * sizeof(*t->touched));
	if (t->flow != NULL && t->rare != NULL && t->opening != NULL && t->spare != NULL
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
	mem_unmap(t->opening, n * sizeof(*t->opening));
	mem_unmap(t->spare, n * sizeof(*t->spare));
	mem_unmap(t->touched, (2 * n + (size_t)4 * READER_BATCH) * sizeof(*t->touched));
	table_fini(&t->table);
	sent_pool_fini(&t->pool);
	memset(t, 0, sizeof(*t));
}
