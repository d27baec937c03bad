// SPDX-License-Identifier: BSD-3-Clause
#include "common/live/lcore/egress.h"

#include "common/base/mem.h"

#include <errno.h>
#include <math.h>

#define SLOT_BYTES (sizeof(struct rte_mbuf *) + sizeof(uint64_t) + sizeof(uint16_t))

int egress_init(struct egress *e, struct lcore *l, uint32_t index, uint32_t slots,
	const struct live_process *process, struct err *err) {
	void *memory = mem_map(slots * SLOT_BYTES);

	*e = (struct egress){
		.lcore = l,
		.port = l->port[index],
		.index = index,
		.slots = slots,
		.burst = (uint32_t)process->burst,
		.tx_timeout_ns = process->tx_timeout_ns,
		.refused_ns = NEVER_NS,
	};
	if (memory == NULL)
		return err_set(err, -ENOMEM, "no memory for %u frames that wait for a port", slots);
	e->mbuf = memory;
	e->due_ns = (uint64_t *)(void *)(e->mbuf + slots);
	e->bytes = (uint16_t *)(void *)(e->due_ns + slots);
	return 0;
}

void egress_fini(struct egress *e) {
	mem_unmap(e->mbuf, e->slots * SLOT_BYTES);
	e->mbuf = NULL;
}

void egress_measure(struct egress *e) {
	hist_reset(&e->late);
	hist_reset(&e->late_disturbed);
	e->trend = (struct egress_trend){0};
	e->scheduled = 0;
}

// Adds the slot's point to the sums for the line.
static void trend_fold(struct egress_trend *t) {
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

static void trend_add(struct egress_trend *t, uint64_t due_ns, uint64_t late_ns) {
	uint64_t slot = due_ns >> EGRESS_TREND_SHIFT;

	if (slot == t->slot && late_ns >= t->late_ns)
		return;
	if (slot != t->slot && t->slot > 0)
		trend_fold(t);
	t->slot = slot;
	t->due_ns = due_ns;
	t->late_ns = late_ns;
}

double egress_rate_error_ppm(const struct egress *e) {
	const struct egress_trend *t = &e->trend;
	double spread = t->n * t->xx - t->x * t->x;

	if (t->n < 5 || spread <= 0)
		return NAN;
	return -(t->n * t->xy - t->x * t->y) / spread * 1e-3;
}

// Counts an early, scheduled or disturbed frame. True: the caller has yet to count its lateness.
static bool judge_special(
	struct egress *e, uint64_t due_ns, uint64_t sent_ns, uint64_t disturbed_ns) {
	if (due_ns == 0)
		return false;
	if (due_ns > sent_ns && egress_keeps_times(e)) {
		e->scheduled++;
		return false;
	}
	e->early += due_ns > sent_ns;
	if (due_ns >= disturbed_ns)
		return true;
	hist_add(&e->late_disturbed, time_since(sent_ns, due_ns));
	return false;
}

// Counts the lateness of frames of which some are not paced, early, disturbed or late.
__attribute__((noinline)) static void judge_each(
	struct egress *e, const uint64_t *due_ns, uint32_t n, uint64_t sent_ns) {
	struct watch_lcore *w = &e->lcore->watch;
	uint64_t disturbed_ns = time_max(watch_disturbed_ns(w, e->index), 1);
	uint64_t paced = 0, late = 0, sum_ns = 0, max_ns = 0;

	for (uint32_t i = 0; i < n; i++) {
		uint64_t late_ns = time_since(sent_ns, due_ns[i]);

		if ((due_ns[i] > sent_ns || due_ns[i] < disturbed_ns)
			&& !judge_special(e, due_ns[i], sent_ns, disturbed_ns))
			continue;
		hist_count(&e->late, late_ns);
		paced++;
		sum_ns += late_ns;
		max_ns = time_max(max_ns, late_ns);
		late += late_ns > w->late_ns;
	}
	hist_counted(&e->late, paced, sum_ns, max_ns);
	watch_left(w, paced, late, max_ns);
}

// Counts the first `n` frames, which the port took at sent_ns.
static void judge(struct egress *e, uint32_t n, uint64_t sent_ns) {
	struct watch_lcore *w = &e->lcore->watch;
	const uint64_t *due_ns = e->due_ns + e->first;
	const uint16_t *size = e->bytes + e->first;
	uint64_t disturbed_ns = time_max(watch_disturbed_ns(w, e->index), 1);
	// Less late than this are frames that are paced, due and undisturbed.
	uint64_t plain_ns = time_since(sent_ns + 1, disturbed_ns);
	uint64_t bytes = 0, sum_ns = 0, max_ns = 0;

	for (uint32_t i = 0; i < n; i++) {
		bytes += size[i];
		sum_ns += sent_ns - due_ns[i];
		max_ns = time_max(max_ns, sent_ns - due_ns[i]);
	}
	pkt_count_add(&e->tx, n, bytes);
	if (likely(max_ns < plain_ns && max_ns <= w->late_ns)) {
		for (uint32_t i = 0; i < n; i++)
			hist_count(&e->late, sent_ns - due_ns[i]);
		hist_counted(&e->late, n, sum_ns, max_ns);
		watch_left(w, n, 0, max_ns);
	} else {
		judge_each(e, due_ns, n, sent_ns);
	}
	if (sent_ns - due_ns[0] < plain_ns)
		trend_add(&e->trend, due_ns[0], sent_ns - due_ns[0]);
}

// Frames of the burst that are due later than now_ns get their time as a transmit stamp.
static void stamp(struct egress *e, uint32_t n, uint64_t now_ns) {
	for (uint32_t i = e->first; i < e->first + n; i++) {
		if (e->due_ns[i] > now_ns)
			stamp_departure(&e->port->stamp, e->mbuf[i], e->due_ns[i]);
	}
}

// Gives the port the first `n` frames; returns the number it took.
static uint32_t transmit(struct egress *e, uint32_t n, uint64_t now_ns) {
	if (unlikely(egress_keeps_times(e)))
		stamp(e, n, now_ns);
	uint32_t took = port_tx(e->port, e->queue, e->mbuf + e->first, (uint16_t)n);

	if (took == 0)
		return 0;
	judge(e, took, now_ns);
	if (e->trace != NULL)
		e->trace(e, e->first, took, now_ns);
	return took;
}

// The same through the ring to the owner lcore. A frame carries its due time in its struct pkt.
static uint32_t hand_over(struct egress *e, uint32_t n) {
	for (uint32_t i = e->first; i < e->first + n; i++)
		port_pkt(e->mbuf[i])->release_ns = e->due_ns[i];
	return lcore_ring_put(e->ring, e->mbuf + e->first, n);
}

static void remove_first(struct egress *e, uint32_t n) {
	e->count -= n;
	e->first = e->count > 0 ? (e->first + n) & (e->slots - 1) : 0;
}

static void count_dropped(struct egress *e, uint32_t pkts, uint64_t bytes) {
	pkt_count_add(&e->dropped, pkts, bytes);
	if (e->ring != NULL)
		lcore_ring_dropped(e->ring, pkts);
	else
		e->lcore->watch.count.port[e->index].dropped += pkts;
}

void egress_refuse(struct egress *e, struct rte_mbuf *m, uint16_t bytes) {
	count_dropped(e, 1, bytes);
	rte_pktmbuf_free(m);
}

uint64_t egress_bytes(const struct egress *e) {
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < e->count; i++)
		bytes += e->bytes[(e->first + i) & (e->slots - 1)];
	return bytes;
}

static bool is_sent(const struct egress *e, uint32_t i) {
	const struct rte_mbuf *m = e->mbuf[(e->first + i) & (e->slots - 1)];

	return port_sends(e->port, rte_pktmbuf_mtod(m, const uint8_t *), m->pkt_len);
}

// Drops the first frames as far as the port does not send them. Returns how many of `n` it sends
// then.
static uint32_t drop_too_long(struct egress *e, uint32_t n) {
	uint32_t sent = 0;

	for (; e->count > 0 && !is_sent(e, 0); remove_first(e, 1)) {
		pkt_count_add(&e->too_long, 1, e->bytes[e->first]);
		rte_pktmbuf_free(e->mbuf[e->first]);
	}
	while (sent < n && sent < e->count && is_sent(e, sent))
		sent++;
	return sent;
}

static void give_up(struct egress *e) {
	count_dropped(e, e->count, egress_bytes(e));
	for (; e->count > 0; remove_first(e, 1))
		rte_pktmbuf_free(e->mbuf[e->first]);
}

void egress_flush(struct egress *e) {
	struct lcore *l = e->lcore;
	uint32_t done = 0;

	while (e->count > 0) {
		uint32_t in_a_row = e->slots - e->first;
		uint32_t want = e->count < e->burst ? e->count : e->burst;
		uint64_t now_ns = clock_now(&l->clock); // lateness counts up to this moment

		if (unlikely(e->port->frame_max > 0 && e->ring == NULL)) {
			want = drop_too_long(e, want);
			in_a_row = e->slots - e->first;
		}
		if (unlikely(want == 0))
			break;
		want = want < in_a_row ? want : in_a_row;
		watch_time(&l->watch, now_ns);
		uint32_t took = e->ring != NULL ? hand_over(e, want) : transmit(e, want, now_ns);
		remove_first(e, took);
		l->watch.moved += took;
		done += took;
		if (took < want)
			break;
	}
	if (e->ring_drops)
		give_up(e);
	l->busy |= done > 0;
	watch_waiting(&l->watch, e->index, e->count, l->now_ns);
	if (done > 0 || e->count == 0) {
		e->refused_ns = NEVER_NS;
		return;
	}
	if (e->refused_ns == NEVER_NS)
		e->refused_ns = l->now_ns;
	if ((l->owns_port[e->index] && !e->port->was_up)
		|| l->now_ns - e->refused_ns > e->tx_timeout_ns)
		give_up(e);
}
