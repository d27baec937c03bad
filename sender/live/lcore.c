// SPDX-License-Identifier: BSD-3-Clause
#include "sender/live/lcore.h"

#include "common/live/intr.h"
#include "common/run/run.h"

#include <errno.h>
#include <rte_eal.h>
#include <string.h>

// A turn of a survey looks at so many flows, at 30 to 110 ns each, and at one more for each so many there
// are: 5000 are seen in 300 turns, 100 000 in 2500.
#define SURVEY_FLOWS 16
#define SURVEY_SHARE 4096
#define INTERVAL_FLOWS 4 // of a turn
#define MEASURE_FLOWS 32 // of a turn, once in a run
#define ANSWERS 4 // between two looks at the timers
#define ARP_RETRY_NS (100 * NS_PER_MS)
#define RESETS 32 // at a time
#define RESET_NS (20 * NS_PER_MS) // that a port may take for all of them
#define ITERATION_TIMERS 64 // at a time
#define FEW_TIMERS ANSWERS // while bursts come whole

static void send_arp_request(struct sender_lcore *s, struct sender_port *p) {
	struct wire_arp arp = {.request = true,
		.sender_mac = p->port->mac,
		.sender_ip = p->plan->ip,
		.target_ip = p->plan->next_hop};
	uint8_t *data;
	struct rte_mbuf *m = sender_new_frame(s, p, &data);

	p->count.tx_own++;
	if (m == NULL)
		return;
	m->pkt_len = m->data_len = (uint16_t)wire_write_arp(data, &arp, NULL);
	memset(data + m->data_len, 0, WIRE_HEADER_MAX - m->data_len);
	sender_put_frame(s, p, m, 0);
}

static void out(struct sender_lcore *s) {
	for (uint32_t i = 0; i < s->lcore.ports; i++) {
		if (s->port[i].outs > 0)
			sender_flush(s, &s->port[i]);
	}
}

// At a port that does not take what it is given timers stay due, and what ACKs let out of paced flows waits
// for timers (host->full): nothing is lost, and few frames wait, which whoever takes them has to fetch. What
// comes is taken all the same; only when ACKs let out unpaced windows, a sender leaves them in the port's
// ring. A receiver never does, or the two might wait for each other.
static bool has_room(const struct sender_port *p) {
	return p->outs < PORT_FULL;
}

static bool takes(const struct sender_port *p) {
	return !sender_sends(p) || p->outs < SENDER_OUT_MAX / 2;
}

// Fires timers, a few at a time, `max` of each host's at most. False: none had both come and room.
static bool fire(struct sender_lcore *s, uint32_t max) {
	bool fired = false;

	for (uint32_t i = 0; i < s->lcore.ports; i++) {
		struct host *h = s->port[i].host;

		if (h == NULL)
			continue;
		h->full = !has_room(&s->port[i]);
		for (uint32_t n = 0; n < max && wheel_due(&h->wheel, s->lcore.now_ns);
			n += FEW_TIMERS) {
			if (!has_room(&s->port[i]))
				break;
			host_fire_due(h, s->lcore.now_ns, FEW_TIMERS);
			host_fetch_timers(h, s->lcore.now_ns);
			fired = true;
		}
	}
	return fired;
}

// What falls due while a burst is answered leaves before the rest of it is: of ACKs one timer fires for
// each, so that those that wait get fewer, of what others send two.
static void answer_port(struct sender_lcore *s, struct sender_port *p) {
	uint32_t timers = sender_sends(p) ? FEW_TIMERS : 2 * FEW_TIMERS;

	for (uint32_t i = 0; i < p->arrivals; i += ANSWERS) {
		if (i > 0 && s->sender.flows > 0) {
			lcore_advance(&s->lcore);
			if (fire(s, timers))
				out(s);
		}
		sender_deliver(s, p, i, ANSWERS);
	}
}

// The first frames are on their way while the clock is read.
static uint32_t receive_port(struct sender_lcore *s, struct sender_port *p) {
	uint32_t moved;

	if (s->lcore.lcores > 1) {
		moved = sender_exchange(s, p);
	} else {
		moved = takes(p) ? port_rx(p->port, 0, p->in, (uint16_t)s->plan->process.burst) : 0;
		p->came = moved;
	}
	for (uint32_t i = 0; i < p->came && i < SENDER_FETCH; i++)
		sender_fetch_frame(p->in[i]);
	return moved;
}

static uint32_t receive(struct lcore *l) {
	struct sender_lcore *s = sender_lcore(l);
	uint32_t nb_rx = 0;

	for (uint32_t i = 0; i < l->ports; i++)
		nb_rx += receive_port(s, &s->port[i]);
	return nb_rx;
}

// What came and what is due, in this order: headers, so that connections are on their way into the cache
// while timers fire; timers; answers.
static void work(struct sender_lcore *s, uint32_t nb_rx) {
	uint32_t ports = s->lcore.ports;

	for (uint32_t i = 0; i < ports; i++)
		sender_receive(s, &s->port[i]);
	fire(s, nb_rx < s->plan->process.burst ? ITERATION_TIMERS : FEW_TIMERS);
	for (uint32_t i = 0; i < ports; i++)
		sender_fetch(&s->port[i]);
	out(s); // what was due does not wait for what is not
	for (uint32_t i = 0; i < ports; i++)
		answer_port(s, &s->port[i]);
	for (uint32_t i = 0; i < ports; i++) {
		struct sender_port *p = &s->port[i];

		if (p->host != NULL && p->came < s->plan->process.burst && takes(p))
			p->host->heard_ns = s->lcore.now_ns;
	}
	if (s->sender.flows > 0)
		host_fetch_timers(&s->sender, s->lcore.now_ns);
	out(s);
}

// The next few flows, of those from `first` on: with all at once, paced segments would be late.
static uint32_t next_few(const struct sender_lcore *s, uint32_t first, uint32_t max) {
	uint32_t left = s->sender.flows - first;

	return left < max ? left : max;
}

// Records their interval.
static void record_interval(struct sender_lcore *s) {
	uint32_t n = next_few(s, s->interval_flow, INTERVAL_FLOWS);

	if (n == 0)
		return;
	host_interval_some(&s->sender, s->interval_flow, n, s->interval_end_ns);
	s->interval_flow += n;
}

// Starts their figures anew.
static void measure_on(struct sender_lcore *s, uint32_t max) {
	uint32_t n = next_few(s, s->measure_flow, max);

	if (n == 0)
		return;
	host_measure_some(&s->sender, s->measure_flow, n, s->lcore.now_ns);
	s->measure_flow += n;
}

// Is there any sign of a peer?
static void check_peer(struct sender_lcore *s) {
	const struct host *h = &s->sender;

	if (h->flows == 0)
		return;
	s->all_failed = h->failed == h->flows;
	s->unanswered = h->count.rx_segs == 0 && h->waiting < h->flows
		&& time_since(s->lcore.now_ns, h->flow[0].start_ns) > s->plan->answer_ns
		&& h->flow[0].state == FLOW_SYN_SENT;
}

bool sender_hopeless(const struct sender_lcore *all) {
	for (uint32_t k = 0; k < all->lcore.lcores; k++) {
		if (!all[k].all_failed && !all[k].unanswered)
			return false;
	}
	return true;
}

static void snapshot(const struct sender_lcore *s, struct sender_snapshot *snap) {
	snap->now_ns = s->lcore.now_ns;
	snap->iteration_max_ns = s->lcore.load.iteration_max_ns;
	snap->waiting = s->sender.waiting;
	snap->open = s->sender.open;
	snap->done = s->sender.done;
	snap->failed = s->sender.failed;
	for (uint32_t i = 0; i < s->lcore.ports; i++) {
		snap->port[i] = s->port[i].count;
		snap->outs[i] = s->port[i].outs;
	}
}

// A survey's next flows; true: it has seen all of them.
static bool survey_on(struct sender_lcore *s) {
	if (survey_step(&s->mailbox.survey, SURVEY_FLOWS + s->sender.flows / SURVEY_SHARE))
		return false;
	snapshot(s, &s->mailbox.snapshot);
	return true;
}

static bool answer(struct lcore *l) {
	struct sender_lcore *s = sender_lcore(l);

	if (l->request == SENDER_SURVEY)
		survey_begin(&s->mailbox.survey, &s->sender);
	else
		snapshot(s, &s->mailbox.snapshot);
	return l->request != SENDER_SURVEY;
}

static void run(struct lcore *l, uint32_t nb_rx) {
	struct sender_lcore *s = sender_lcore(l);

	work(s, nb_rx);
	record_interval(s);
	measure_on(s, MEASURE_FLOWS);
	if (l->answering && survey_on(s))
		lcore_answered(l);
}

// Ahead by the lead of a port that keeps times, from when its clock is known.
static void follow_lead(struct lcore *l) {
	for (uint32_t i = 0; i < l->ports; i++) {
		const struct port *p = l->port[i];

		if (p->lead_ns > 0)
			l->lead_ns = stamp_holds(&p->stamp) ? p->lead_ns : 0;
	}
}

static void observe(const struct lcore *l, struct watch_count *c) {
	const struct sender_lcore *s = (const struct sender_lcore *)(const void *)l;

	for (uint32_t i = 0; i < l->ports; i++) {
		c->no_buffer += s->port[i].count.no_mbuf;
		for (uint32_t k = 0; k < l->lcores; k++)
			c->not_taken += atomic_load_explicit(
				&s->all[k].port[i].in_lost[l->index], memory_order_relaxed);
	}
}

// An interval ends when the first lcore says so.
static void end_interval(struct sender_lcore *s) {
	uint64_t end_ns = s->lcore.now_ns;

	if (s->lcore.index > 0)
		end_ns = atomic_load_explicit(&s->all->interval_end_ns, memory_order_relaxed);
	else if (!lcore_interval_over(&s->lcore))
		return;
	if (end_ns == s->interval_end_ns)
		return;
	s->interval_flow = 0;
	atomic_store_explicit(&s->interval_end_ns, end_ns, memory_order_relaxed);
}

static void measure(struct lcore *l) {
	struct sender_lcore *s = sender_lcore(l);

	s->measure_flow = 0;
	for (uint32_t i = 0; i < l->ports; i++) {
		hist_reset(&s->port[i].late);
		hist_reset(&s->port[i].late_disturbed);
		s->port[i].scheduled = 0;
	}
}

static bool housekeep(struct lcore *l) {
	struct sender_lcore *s = sender_lcore(l);
	uint64_t bytes = 0;

	follow_lead(l);
	if (l->interval_ns > 0 && s->interval_flow == s->sender.flows)
		end_interval(s);
	for (uint32_t i = 0; l->index > 0 && i < l->ports; i++) {
		if (sender_sends(&s->port[i]))
			sender_follow_peer(s, &s->port[i]);
	}
	check_peer(s);
	if (l->index == 0 && sender_hopeless(s)) {
		l->ended = true;
		l->stop = true;
	}
	for (uint32_t i = 0; i < l->ports; i++)
		bytes += s->port[i].count.tx_bytes;
	atomic_store_explicit(&s->shown_open, s->sender.open, memory_order_relaxed);
	atomic_store_explicit(&s->shown_bytes, bytes, memory_order_relaxed);
	return false;
}

static void loop(struct lcore *l) {
	struct sender_lcore *s = sender_lcore(l);

	s->interval_flow = s->measure_flow = s->sender.flows;
	lcore_loop(l, &sender_lcore_ops);
	measure_on(s, s->sender.flows);
	while (l->answering) {
		if (survey_on(s))
			lcore_answered(l);
	}
}

const struct lcore_ops sender_lcore_ops = {
	.loop = loop,
	.receive = receive,
	.run = run,
	.housekeep = housekeep,
	.measure = measure,
	.answer = answer,
	.observe = observe,
};

// This thread takes over all ports, for all lcores.
static void begin(struct sender_lcore *all) {
	for (uint32_t k = 0; k < all->lcore.lcores; k++)
		lcore_handle_ports(&all[k].lcore);
}

// What waits is given to the ports, whichever lcore has it; false: nothing waits any more.
static bool out_all(struct sender_lcore *all) {
	bool waits = false;

	for (uint32_t k = 0; k < all->lcore.lcores; k++) {
		struct sender_port *p = &all[k].port[0];

		if (all->lcore.lcores > 1 && p->serves)
			sender_collect(&all[k], p);
		out(&all[k]);
		waits |= p->outs > 0 || sender_between(p, false) > 0;
	}
	return waits;
}

// The peer of a lone port is another program or a kernel, which would keep what is open for ever.
static void reset_open(struct sender_lcore *all) {
	uint64_t until_ns = clock_now(&all->lcore.clock) + RESET_NS;

	if (all->lcore.ports > 1)
		return;
	intr_begin();
	begin(all);
	for (uint32_t k = 0; k < all->lcore.lcores; k++) {
		struct sender_port *p = &all[k].port[0];
		uint32_t here = p->host->flows + p->host->receivers;

		for (uint32_t first = 0; first < here; first += RESETS) {
			if (p->outs + RESETS > SENDER_OUT_MAX)
				out_all(all);
			if (p->outs + RESETS > SENDER_OUT_MAX)
				break;
			host_reset_some(p->host, first, RESETS, all[k].lcore.now_ns);
		}
	}
	while (out_all(all) && clock_now(&all->lcore.clock) < until_ns)
		;
	intr_end();
}

void sender_finish(struct sender_lcore *all) {
	uint64_t end_ns = all->lcore.now_ns;

	reset_open(all);
	for (uint32_t k = 1; k < all->lcore.lcores; k++)
		end_ns = time_max(end_ns, all[k].lcore.now_ns);
	for (uint32_t k = 0; k < all->lcore.lcores; k++) {
		struct sender_lcore *s = &all[k];

		if (s->lcore.interval_ns > 0) {
			host_interval_some(&s->sender, s->interval_flow,
				s->sender.flows - s->interval_flow, s->interval_end_ns);
			host_interval(&s->sender, end_ns);
		}
		host_still_open(&s->sender, end_ns);
		lcore_publish_all(&s->lcore);
	}
}

static int resolve(struct sender_lcore *all, uint32_t port, struct err *err) {
	const struct live_port *plan = all->port[port].plan;
	uint64_t begin_ns = clock_now(&all->lcore.clock), next_ns = 0;
	bool known = false;
	char ip[16];

	for (;;) {
		for (uint32_t k = 0; k < all->lcore.lcores; k++) {
			lcore_iterate(&all[k].lcore, &sender_lcore_ops);
			known |= all[k].port[port].peer_known;
			lcore_follow_ports(&all[k].lcore);
		}
		if (known)
			return 0;
		if (run_stop)
			return err_set(err, -EINTR, "interrupted before the first packet");
		if (all->lcore.now_ns - begin_ns > all->plan->answer_ns) {
			live_ip_text(plan->next_hop, ip);
			return err_set(err, -EHOSTUNREACH,
				"port %s: %s does not answer ARP (%.3g s); is the other side up?",
				plan->name, ip, (double)all->plan->answer_ns / 1e9);
		}
		// A port that is not yet connected would drop it.
		if (all->lcore.now_ns < next_ns || !all->port[port].port->was_up)
			continue;
		send_arp_request(all, &all->port[port]);
		next_ns = all->lcore.now_ns + ARP_RETRY_NS;
	}
}

int sender_resolve(struct sender_lcore *all, struct err *err) {
	int rc = 0;

	intr_begin();
	begin(all);
	for (uint32_t i = 0; rc == 0 && i < all->lcore.ports; i++) {
		if (sender_sends(&all->port[i]))
			rc = resolve(all, i, err);
	}
	intr_end();
	for (uint32_t k = 1; rc == 0 && k < all->lcore.lcores; k++) {
		for (uint32_t i = 0; i < all->lcore.ports; i++)
			sender_follow_peer(&all[k], &all[k].port[i]);
	}
	return rc;
}

static bool port_balanced(const struct sender_port *p) {
	const struct sender_count *c = &p->count;
	const struct host *h = p->host;

	return c->tx_wanted + c->tx_got
		== c->tx_frames + c->tx_given + c->tx_dropped + c->no_mbuf + p->outs
		&& c->rx_frames
		== c->rx_tcp + c->rx_arp + c->rx_echo + c->rx_too_big + c->rx_other + c->rx_outside
			+ c->rx_reset + c->rx_malformed
		&& (h == NULL || h->count.rx_segs == c->rx_tcp)
		&& c->tx_wanted == c->tx_own + (h != NULL ? h->count.tx_segs : 0);
}

bool sender_balanced(const struct sender_lcore *all) {
	for (uint32_t i = 0; i < all->lcore.ports; i++) {
		int64_t in = 0, out = 0; // on their way between lcores

		for (uint32_t k = 0; k < all->lcore.lcores; k++) {
			const struct sender_port *p = &all[k].port[i];

			if (!port_balanced(p))
				return false;
			in += (int64_t)(p->count.rx_given - p->count.rx_got)
				- sender_between(p, true);
			out += (int64_t)(p->count.tx_given - p->count.tx_got)
				- sender_between(p, false);
		}
		if (in != 0 || out != 0)
			return false;
	}
	return true;
}
