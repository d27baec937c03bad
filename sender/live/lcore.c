// SPDX-License-Identifier: BSD-3-Clause
#include "sender/live/lcore.h"

#include "common/live/base/quiesce.h"
#include "common/net/address.h"
#include "common/run/run.h"

#include <errno.h>
#include <rte_eal.h>
#include <string.h>

// A group scan reads this many flows per iteration, at 30 to 110 ns each, and one more for every
// SCAN_PART flows:
// 5000 flows take 300 iterations, 100 000 take 2500.
#define SCAN_FLOWS 16
#define SCAN_PART 4096
#define INTERVAL_FLOWS 4 // per iteration
#define MEASURE_FLOWS 32 // per iteration, once in a run
#define ANSWERS 4 // segments answered between two checks of the timers
#define ARP_RETRY_NS (100 * NS_PER_MS)
#define RESETS 32 // at a time
#define RESET_NS (20 * NS_PER_MS) // limit for sending all resets through a port
#define ITERATION_TIMERS 64 // at a time
#define FEW_TIMERS ANSWERS // while full bursts are received

// Asks for the next hop's MAC address: by ARP, or in IPv6 if the first flows are of it.
static void solicit(struct sender_lcore *s, struct sender_port *p) {
	struct wire_arp arp = {.request = true,
		.sender_mac = p->port->mac,
		.sender_ip = p->config->ip,
		.target_ip = p->config->next_hop};
	uint8_t *data;
	struct rte_mbuf *m = sender_new_frame(s, p, &data);

	p->count.tx_own++;
	if (m == NULL)
		return;
	if (groups_ipv6(s->groups, 0))
		wire_write_solicitation(data, &arp);
	else
		wire_write_arp(data, &arp, NULL);
	m->pkt_len = m->data_len = groups_ipv6(s->groups, 0) ? WIRE_NEIGHBOUR : WIRE_MIN_FRAME;
	memset(data + m->data_len, 0, WIRE_HEADER_MAX - m->data_len);
	sender_put_frame(s, p, m, 0);
}

static void transmit(struct sender_lcore *s) {
	for (uint32_t i = 0; i < s->lcore.ports; i++) {
		struct sender_port *p = &s->port[i];

		if (p->delay.count > 0)
			sender_send_delayed(s, p);
		if (p->egress.count > 0)
			egress_flush(&p->egress);
	}
}

// While a port does not take its frames, timers are not fired, and paced flows send on timers only,
// not on ACKs (host->tx_backpressure). So nothing is lost and few frames wait. Frames are still
// received, except that a sender leaves them in the port's ring when ACKs have released too many
// unpaced segments. A receiver always receives:
// otherwise the two might wait for each other.
static bool has_room(const struct sender_port *p) {
	return p->egress.count < PORT_FULL;
}

static bool may_receive(const struct sender_port *p) {
	return !sender_sends(p) || p->egress.count < SENDER_EGRESS_SLOTS / 2;
}

// Fires up to `max` due timers of each host, a few at a time. False: no timer was due at a port
// with room.
static bool fire(struct sender_lcore *s, uint32_t max) {
	bool fired = false;

	for (uint32_t i = 0; i < s->lcore.ports; i++) {
		struct host *h = s->port[i].host;

		if (h == NULL)
			continue;
		h->tx_backpressure = !has_room(&s->port[i]);
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

// Delivers a burst. Segments that fall due meanwhile are sent between its parts: one timer fires
// per received frame at a sending port, so that fewer ACKs wait at the peer, and two at a receiving
// port.
static void answer_port(struct sender_lcore *s, struct sender_port *p) {
	uint32_t timers = sender_sends(p) ? FEW_TIMERS : 2 * FEW_TIMERS;

	for (uint32_t i = 0; i < p->arrivals; i += ANSWERS) {
		if (i > 0 && s->sender.flows > 0) {
			lcore_advance(&s->lcore);
			if (fire(s, timers))
				transmit(s);
		}
		sender_deliver(s, p, i, ANSWERS);
	}
}

// Receives a burst and prefetches its first frames, which arrive in the cache while the clock is
// read.
static uint32_t receive_port(struct sender_lcore *s, struct sender_port *p) {
	uint32_t moved;

	if (s->lcore.lcores > 1) {
		moved = sender_exchange(s, p);
	} else {
		moved = may_receive(p)
			? port_rx(p->port, 0, p->rx_burst, (uint16_t)s->config->process.burst)
			: 0;
		p->nb_rx = moved;
	}
	for (uint32_t i = 0; i < p->nb_rx && i < SENDER_FETCH; i++)
		sender_fetch_frame(p->rx_burst[i]);
	return moved;
}

static uint32_t receive(struct lcore *l) {
	struct sender_lcore *s = sender_lcore(l);
	uint32_t nb_rx = 0;

	for (uint32_t i = 0; i < l->ports; i++)
		nb_rx += receive_port(s, &s->port[i]);
	return nb_rx;
}

// Processes received frames and due timers in this order: headers, so that connections are fetched
// into the cache while timers fire; timers; answers to the segments.
static void work(struct sender_lcore *s, uint32_t nb_rx) {
	uint32_t ports = s->lcore.ports;

	for (uint32_t i = 0; i < ports; i++)
		sender_receive(s, &s->port[i]);
	fire(s, nb_rx < s->config->process.burst ? ITERATION_TIMERS : FEW_TIMERS);
	for (uint32_t i = 0; i < ports; i++)
		sender_fetch(&s->port[i]);
	transmit(s); // due segments do not wait for the answers
	for (uint32_t i = 0; i < ports; i++)
		answer_port(s, &s->port[i]);
	for (uint32_t i = 0; i < ports; i++) {
		struct sender_port *p = &s->port[i];

		if (p->host != NULL && p->nb_rx < s->config->process.burst && may_receive(p))
			p->host->heard_ns = s->lcore.now_ns;
	}
	if (s->sender.flows > 0)
		host_fetch_timers(&s->sender, s->lcore.now_ns);
	transmit(s);
}

// Checks whether any flow has had an answer from the peer.
static void check_peer(struct sender_lcore *s) {
	const struct host *h = &s->sender;

	if (h->flows == 0)
		return;
	s->all_failed = h->failed == h->flows;
	s->unanswered = h->count.rx_segs == 0 && h->waiting < h->flows
		&& time_since(s->lcore.now_ns, h->flow[0].start_ns) > s->config->answer_ns
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
	for (uint32_t i = 0; i < s->lcore.ports; i++)
		snap->port[i] = sender_count_port(s, &s->port[i]);
}

// Reads the next flows of a group scan. True: it has read all flows.
static bool scan_some(struct sender_lcore *s) {
	if (group_scan_step(&s->mailbox.scan, SCAN_FLOWS + s->sender.flows / SCAN_PART))
		return false;
	snapshot(s, &s->mailbox.snapshot);
	return true;
}

static bool answer(struct lcore *l) {
	struct sender_lcore *s = sender_lcore(l);

	if (l->box.request == SENDER_GROUP_SCAN)
		group_scan_begin(&s->mailbox.scan, &s->sender);
	else
		snapshot(s, &s->mailbox.snapshot);
	return l->box.request != SENDER_GROUP_SCAN;
}

static void run(struct lcore *l, uint32_t nb_rx) {
	struct sender_lcore *s = sender_lcore(l);

	work(s, nb_rx);
	if (s->interval_flow < s->sender.flows)
		s->interval_flow = host_interval_some(
			&s->sender, s->interval_flow, INTERVAL_FLOWS, s->interval_end_ns);
	if (s->measure_flow < s->sender.flows)
		s->measure_flow =
			host_measure_some(&s->sender, s->measure_flow, MEASURE_FLOWS, l->now_ns);
	if (l->answering && scan_some(s))
		lcore_answered(l);
}

// Sets lead_ns to the lead of a port with transmit stamps, once its clock is known.
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
		struct sender_count count = sender_count_port(s, &s->port[i]);

		c->no_buffer += count.no_mbuf;
		c->handed_over += count.rx_given;
		c->handover_dropped += count.rx_no_room;
		c->not_taken += count.rx_not_taken;
	}
}

static void begin_interval_end(struct sender_lcore *s, uint64_t end_ns) {
	s->interval_flow = 0;
	atomic_store_explicit(&s->interval_end_ns, end_ns, memory_order_relaxed);
}

// Ends an interval at the time that the first lcore has set.
static void end_interval(struct sender_lcore *s) {
	uint64_t end_ns = s->lcore.now_ns;

	if (s->lcore.index > 0)
		end_ns = atomic_load_explicit(&s->all->interval_end_ns, memory_order_relaxed);
	else if (!lcore_interval_over(&s->lcore))
		return;
	if (end_ns == s->interval_end_ns)
		return;
	begin_interval_end(s, end_ns);
}

static void measure(struct lcore *l) {
	struct sender_lcore *s = sender_lcore(l);

	// An interval ends with the warm-up, unless one has just ended.
	if (l->index == 0 && l->interval_ns > 0 && s->interval_flow == s->sender.flows)
		begin_interval_end(s, l->now_ns);
	s->measure_flow = 0;
	for (uint32_t i = 0; i < l->ports; i++)
		egress_measure(&s->port[i].egress);
}

static void show(struct sender_lcore *s) {
	uint64_t shown[SENDER_SHOWN] = {
		[SENDER_SHOWN_WAITING] = s->sender.waiting,
		[SENDER_SHOWN_OPEN] = s->sender.open,
		[SENDER_SHOWN_DONE] = s->sender.done,
		[SENDER_SHOWN_FAILED] = s->sender.failed,
	};

	for (uint32_t i = 0; i < s->lcore.ports; i++)
		shown[SENDER_SHOWN_TX_BYTES] += s->port[i].egress.tx.bytes;
	for (int i = 0; i < SENDER_SHOWN; i++)
		atomic_store_explicit(&s->shown[i], shown[i], memory_order_relaxed);
}

static bool housekeep(struct lcore *l) {
	struct sender_lcore *s = sender_lcore(l);

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
	show(s);
	if (s->capture != NULL)
		pcap_writer_reached(s->capture, l->index, l->now_ns);
	return false;
}

static void loop(struct lcore *l) {
	struct sender_lcore *s = sender_lcore(l);

	s->interval_flow = s->measure_flow = s->sender.flows;
	lcore_loop(l, &sender_lcore_ops);
	if (s->measure_flow < s->sender.flows)
		host_measure_some(&s->sender, s->measure_flow, s->sender.flows, l->now_ns);
	while (l->answering) {
		if (scan_some(s))
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

// Takes over all ports of all lcores on this thread.
static void take_ports(struct sender_lcore *all) {
	for (uint32_t k = 0; k < all->lcore.lcores; k++)
		lcore_handle_ports(&all[k].lcore);
}

// Gives the waiting frames of all lcores to the ports. False: no frame waits any more.
static bool transmit_all(struct sender_lcore *all) {
	bool waits = false;

	for (uint32_t k = 0; k < all->lcore.lcores; k++) {
		struct sender_port *p = &all[k].port[0];

		if (all->lcore.lcores > 1 && p->owns_queue)
			sender_collect(&all[k], p);
		transmit(&all[k]);
		waits |= sender_count_port(&all[k], p).tx_waiting > 0;
	}
	return waits;
}

// Resets open connections if there is only one port: its peer is another program or a kernel, which
// would keep them open for ever.
static void reset_open(struct sender_lcore *all) {
	uint64_t until_ns = clock_now(&all->lcore.clock) + RESET_NS;

	if (all->lcore.ports > 1)
		return;
	quiesce_begin();
	take_ports(all);
	for (uint32_t k = 0; k < all->lcore.lcores; k++) {
		struct sender_port *p = &all[k].port[0];
		uint32_t here = p->host->flows + p->host->receivers;

		for (uint32_t first = 0; first < here; first += RESETS) {
			if (p->egress.count + RESETS > SENDER_EGRESS_SLOTS)
				transmit_all(all);
			if (p->egress.count + RESETS > SENDER_EGRESS_SLOTS)
				break;
			host_reset_some(p->host, first, RESETS, all[k].lcore.now_ns);
		}
	}
	while (transmit_all(all) && clock_now(&all->lcore.clock) < until_ns)
		;
	quiesce_end();
}

void sender_finish(struct sender_lcore *all) {
	uint64_t end_ns = all->lcore.now_ns;

	reset_open(all);
	for (uint32_t k = 1; k < all->lcore.lcores; k++)
		end_ns = time_max(end_ns, all[k].lcore.now_ns);
	for (uint32_t k = 0; k < all->lcore.lcores; k++) {
		struct sender_lcore *s = &all[k];

		if (s->lcore.interval_ns > 0) {
			host_interval_some(
				&s->sender, s->interval_flow, s->sender.flows, s->interval_end_ns);
			host_interval(&s->sender, end_ns);
		}
		host_still_open(&s->sender, end_ns);
		lcore_publish_all(&s->lcore);
	}
}

static int resolve(struct sender_lcore *all, uint32_t port, struct err *err) {
	const struct live_port *config = all->port[port].config;
	uint64_t begin_ns = clock_now(&all->lcore.clock), next_ns = 0;
	bool known = false;
	char ip[ADDRESS_HOST_SIZE];

	for (;;) {
		bool quiesced = false;

		for (uint32_t k = 0; k < all->lcore.lcores; k++) {
			lcore_iterate(&all[k].lcore, &sender_lcore_ops);
			known |= all[k].port[port].peer_known;
			quiesced |= lcore_follow_ports(&all[k].lcore);
		}
		if (quiesced)
			take_ports(all);
		if (known)
			return 0;
		if (run_stop)
			return err_set(err, -EINTR, "interrupted before the first packet");
		if (all->lcore.now_ns - begin_ns > all->config->answer_ns) {
			address_host_text(config->next_hop, groups_ipv6(all->groups, 0), ip);
			return err_set(err, -EHOSTUNREACH,
				"port %s: %s does not answer %s (%.3g s); is the other side up?",
				config->common.name, ip,
				groups_ipv6(all->groups, 0) ? "neighbour solicitations" : "ARP",
				(double)all->config->answer_ns / 1e9);
		}
		// A port that is not yet connected would drop the request.
		if (all->lcore.now_ns < next_ns || !all->port[port].port->was_up)
			continue;
		solicit(all, &all->port[port]);
		next_ns = all->lcore.now_ns + ARP_RETRY_NS;
	}
}

int sender_resolve(struct sender_lcore *all, struct err *err) {
	int rc = 0;

	quiesce_begin();
	take_ports(all);
	for (uint32_t i = 0; rc == 0 && i < all->lcore.ports; i++) {
		if (sender_sends(&all->port[i]))
			rc = resolve(all, i, err);
	}
	quiesce_end();
	for (uint32_t k = 1; rc == 0 && k < all->lcore.lcores; k++) {
		for (uint32_t i = 0; i < all->lcore.ports; i++)
			sender_follow_peer(&all[k], &all[k].port[i]);
	}
	return rc;
}
