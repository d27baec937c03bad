// SPDX-License-Identifier: BSD-3-Clause
// What is due leaves its path for a buffer, and the buffer by a port. Each departure is compared with its
// theoretical time: the switch's emulation error.
#include "switch/live/lcore.h"

#include "common/net/wire.h"
#include "switch/stage/tell.h"

#include <rte_ethdev.h>
#include <string.h>

// Packets taken off a path at a time. Those to come are fetched as these are taken: a whole burst of them at
// once would be more than the processor has under way, and it would wait.
#define COLLECT_MAX 16

// One record per packet: when it should have left, and how late it did.
static void record_departures(struct switch_lcore *s, const struct switch_port *out,
	const struct switch_departure *d, uint32_t n, uint64_t sent_ns) {
	const struct tel_run *run = out->path->tel_run;
	uint8_t link = out->last_link, path = out->path->index;

	for (uint32_t i = 0; i < n; i++) {
		uint64_t due_ns = d[i].due_ns;
		struct tel_packets *r;

		if (!tel_flow_sampled(run, d[i].flow_id)
			|| (r = tel_put(&s->lcore.tel[TEL_STREAM_PACKETS])) == NULL)
			continue;
		*r = (struct tel_packets){
			.ts_ns = due_ns,
			.flow_id = d[i].flow_id,
			.pkt_id = d[i].id,
			.queue_bytes = 0,
			.sojourn_ns = tell_u32(time_since(sent_ns, due_ns)),
			.size_bytes = d[i].size_bytes,
			.event = TEL_DEPART,
			.reason = DROP_NONE,
			.link = link,
			.ecn = d[i].ecn,
			.path = path,
			.stage = UINT8_MAX,
		};
	}
}

// The slot's point joins the line.
static void trend_fold(struct switch_trend *t) {
	if (t->n == 0)
		t->first_due_ns = t->due_ns;
	double x = (double)time_since(t->due_ns, t->first_due_ns) * 1e-9;
	double y = (double)t->late_ns;
	t->n += 1;
	t->x += x;
	t->y += y;
	t->xx += x * x;
	t->xy += x * y;
}

static void trend_add(struct switch_trend *t, uint64_t due_ns, uint64_t late_ns) {
	uint64_t slot = due_ns >> SWITCH_TREND_SHIFT;

	if (slot == t->slot && late_ns >= t->late_ns)
		return;
	if (slot != t->slot && t->slot > 0)
		trend_fold(t);
	t->slot = slot;
	t->due_ns = due_ns;
	t->late_ns = late_ns;
}

// A burst left at sent_ns.
static void note_departures(struct switch_lcore *s, struct switch_port *out,
	const struct switch_departure *d, uint32_t n, uint64_t sent_ns) {
	uint64_t sum_ns = 0, max_ns = 0, late = 0;

	if (n == 0)
		return;
	bool disturbed = watch_disturbed(&s->lcore.watch, (uint32_t)(out - s->port), d[0].due_ns);
	struct hist *h = disturbed ? &out->late_disturbed : &out->late;
	uint64_t patience_ns = s->lcore.watch.late_ns;

	for (uint32_t i = 0; i < n; i++) {
		uint64_t late_ns = 0;

		if (__builtin_expect(sent_ns < d[i].due_ns, 0))
			out->early++;
		else
			late_ns = sent_ns - d[i].due_ns;
		hist_count(h, late_ns);
		sum_ns += late_ns;
		max_ns = time_max(max_ns, late_ns);
		late += late_ns > patience_ns;
	}
	hist_counted(h, n, sum_ns, max_ns);
	if (!disturbed) {
		watch_left(&s->lcore.watch, n, late, max_ns);
		trend_add(&out->trend, d[0].due_ns, time_since(sent_ns, d[0].due_ns));
	}
	if (s->lcore.tel[TEL_STREAM_PACKETS].ring != NULL)
		record_departures(s, out, d, n, sent_ns);
}

// The port answers for these; as far as the lcore knows they leave at their times.
static void note_scheduled(struct switch_lcore *s, struct switch_port *out,
	const struct switch_departure *d, uint32_t n) {
	out->scheduled += n;
	if (s->lcore.tel[TEL_STREAM_PACKETS].ring != NULL)
		record_departures(s, out, d, n, 0);
}

// How many of `n` buffers there are for small frames.
static uint32_t make_fresh(struct switch_lcore *s, uint32_t n) {
	if (s->freshes < n && rte_pktmbuf_alloc_bulk(s->pool, s->fresh + s->freshes, s->burst) == 0)
		s->freshes += s->burst;
	return s->freshes < n ? s->freshes : n;
}

// The first of `n` packets that have left their path, into the port's buffers: as many as are small if the
// first is, and as there are buffers for.
static inline __attribute__((always_inline)) uint32_t emerge(struct switch_lcore *s,
	struct switch_port *out, struct pkt *const *pkts, uint32_t n, const bool small) {
	struct switch_departure *d = out->due + out->outs;
	struct rte_mbuf **m = out->out + out->outs;
	size_t most = small ? make_fresh(s, n) : n, i;
	struct rte_mbuf **fresh = s->fresh + s->freshes;
	uint64_t bytes = 0;

	for (i = 0; i < most; i++) {
		const struct pkt *p = pkts[i];
		const struct switch_mark *mark = switch_mark(pkts[i]);

		if ((mark->len > 0) != small)
			break;
		d[i].due_ns = p->arrival_ns;
		memcpy(&d[i].flow_id, &p->flow_id, SWITCH_TOLD_BYTES);
		bytes += d[i].size_bytes;
		m[i] = small ? *--fresh : port_mbuf(pkts[i]);
		if (small) {
			m[i]->ol_flags = 0;
			m[i]->data_off = RTE_PKTMBUF_HEADROOM;
			m[i]->data_len = mark->len;
			m[i]->pkt_len = mark->len;
			memcpy(rte_pktmbuf_mtod(m[i], void *), mark->frame, SWITCH_SMALL_MAX);
		} else { // the driver reads both lines
			rte_prefetch0(m[i]);
			rte_prefetch0((const char *)m[i] + RTE_CACHE_LINE_SIZE);
		}
		if (__builtin_expect(p->ecn != mark->ecn, 0))
			wire_set_ecn(rte_pktmbuf_mtod(m[i], uint8_t *), m[i]->data_len, p->ecn);
	}
	if (small) {
		arena_put(&s->small, pkts, (uint32_t)i);
		s->freshes -= i;
	} else {
		out->large -= i;
	}
	out->outs += i;
	out->out_bytes += bytes;
	return i;
}

uint64_t switch_horizon(const struct switch_lcore *s, const struct switch_port *out) {
	if (out->port->lead_ns == 0 || !stamp_holds(&out->port->stamp))
		return s->lcore.now_ns;
	return s->lcore.now_ns + time_min(out->port->lead_ns, out->path->tail_ns);
}

// Takes up to `max` packets that are due off the path: COLLECT_MAX at most.
static uint32_t collect_some(struct switch_lcore *s, struct switch_port *out, uint32_t max) {
	struct pkt *pkts[COLLECT_MAX];
	uint32_t n = path_pop(out->path, switch_horizon(s, out), pkts, max);

	for (uint32_t i = 0, k; i < n; i += k) {
		k = switch_mark(pkts[i])->len > 0 ? emerge(s, out, pkts + i, n - i, true)
						  : emerge(s, out, pkts + i, n - i, false);
		if (k == 0) {
			switch_count(&s->drop[DROP_NO_MBUF], pkts[i]->size_bytes);
			arena_put(&s->small, pkts + i, k = 1);
		}
	}
	out->inside -= n;
	if (out->path->drops.head != NULL)
		switch_free_drops(s, out);
	return n;
}

// Takes what is due, a burst at most and as far as there is room.
static uint32_t collect(struct switch_lcore *s, struct switch_port *out) {
	uint32_t room = SWITCH_OUT_MAX - out->outs, most = room < s->burst ? room : s->burst;
	uint32_t n = 0, max, got;

	do {
		max = most - n < COLLECT_MAX ? most - n : COLLECT_MAX;
		n += got = collect_some(s, out, max);
	} while (got == max && n < most);
	return n;
}

// Keeps the order: what the port did not take stays first.
static void shift_out(struct switch_port *out, uint32_t taken) {
	out->tx.bytes += out->out_bytes;
	out->outs -= taken;
	out->out_bytes = 0;
	for (uint32_t i = 0; i < out->outs; i++)
		out->out_bytes += out->due[taken + i].size_bytes;
	out->tx.bytes -= out->out_bytes;
	if (out->outs == 0)
		return;
	memmove(out->out, out->out + taken, out->outs * sizeof(out->out[0]));
	memmove(out->due, out->due + taken, out->outs * sizeof(out->due[0]));
}

static void give_up(struct switch_lcore *s, struct switch_port *out) {
	for (uint32_t i = 0; i < out->outs; i++)
		switch_drop(s, out->out[i], out->due[i].size_bytes, DROP_TX);
	out->tx_dropped += out->outs;
	s->lcore.watch.count.port[out - s->port].dropped += out->outs;
	out->outs = 0;
	out->out_bytes = 0;
}

// Stamps those of a burst whose time is yet to come. How many are due, which come first.
static uint32_t stamp(struct switch_port *out, struct rte_mbuf *const *m,
	const struct switch_departure *d, uint32_t n, uint64_t sent_ns) {
	uint32_t due = 0;

	if (out->port->lead_ns == 0 || !stamp_holds(&out->port->stamp))
		return n;
	while (due < n && d[due].due_ns <= sent_ns)
		due++;
	for (uint32_t i = due; i < n; i++)
		stamp_departure(&out->port->stamp, m[i], d[i].due_ns);
	return due;
}

// Gives the port what is due. Turns that transmit read the clock again: the error counts to the real
// moment.
static void transmit(struct switch_lcore *s, struct switch_port *out) {
	uint32_t done = 0;

	while (done < out->outs) {
		uint32_t want = out->outs - done < s->burst ? out->outs - done : s->burst;
		uint64_t sent_ns = clock_now(&s->lcore.clock);

		watch_time(&s->lcore.watch, sent_ns);
		uint32_t due = stamp(out, out->out + done, out->due + done, want, sent_ns);
		uint16_t took = port_tx(out->port, 0, out->out + done, (uint16_t)want);

		out->tx.pkts += took;
		if (out->path != NULL)
			note_departures(s, out, out->due + done, due < took ? due : took, sent_ns);
		if (due < took)
			note_scheduled(s, out, out->due + done + due, took - due);
		s->lcore.watch.moved += took;
		done += took;
		if (took < want)
			break;
	}
	s->lcore.busy |= done > 0;
	shift_out(out, done);
	watch_waiting(&s->lcore.watch, (uint32_t)(out - s->port), out->outs, s->lcore.now_ns);
	if (done > 0 || out->outs == 0) {
		out->refused_ns = NEVER_NS;
		return;
	}
	if (out->refused_ns == NEVER_NS)
		out->refused_ns = s->lcore.now_ns;
	if (!out->port->was_up || s->lcore.now_ns - out->refused_ns > s->patience_ns)
		give_up(s, out);
}

void switch_serve(struct switch_lcore *s, struct switch_port *out) {
	uint32_t n;

	do {
		n = out->path != NULL ? collect(s, out) : 0;
		if (out->outs > 0 && out->to != NULL)
			switch_hand_over(s, out);
		else if (out->outs > 0)
			transmit(s, out);
	} while (n == s->burst && out->outs == 0);
}
