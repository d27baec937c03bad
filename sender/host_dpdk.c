// SPDX-License-Identifier: BSD-3-Clause
#include "host_dpdk.h"

#include "intr_dpdk.h"
#include "run.h"

#include <errno.h>
#include <rte_eal.h>
#include <string.h>

#define HOUSEKEEPING_TURNS 256
// A turn of a survey looks at so many flows, at 30 to 110 ns each, and at one more for each so many there
// are: 5000 are seen in 300 turns, 100 000 in 2500.
#define SURVEY_FLOWS 16
#define SURVEY_SHARE 4096
#define INTERVAL_FLOWS 4 // of a turn
#define ANSWERS 4 // between two looks at the timers
#define ARP_RETRY_NS (100 * NS_PER_MS)
#define RESETS 32 // at a time
#define RESET_NS (20 * NS_PER_MS) // that a port may take for all of them
#define PORT_FULL 1024 // waiting frames; the rest of the room is for what one turn makes
#define TURN_TIMERS 64 // no more fire before ACKs are looked at again: what 32 of them let out

static void send_arp_request(struct sender_live *s, struct sender_port *p) {
	struct wire_arp arp = {.request = true,
		.sender_mac = p->port.mac,
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

static void out(struct sender_live *s) {
	for (uint32_t i = 0; i < s->ports; i++) {
		if (s->port[i].outs > 0)
			sender_flush(s, &s->port[i]);
	}
}

// At a port that does not take what it is given timers stay due, and nothing is lost. What comes is taken
// all the same, or two programs would wait for each other; it lets out no more than was acknowledged.
static bool has_room(const struct sender_port *p) {
	return p->outs < PORT_FULL;
}

static void fire(struct sender_live *s) {
	for (uint32_t i = 0; i < s->ports; i++) {
		if (s->port[i].host != NULL && has_room(&s->port[i]))
			host_run_some(s->port[i].host, s->now_ns, TURN_TIMERS);
	}
}

// What falls due while a burst is answered leaves before the rest of it is.
static void answer_port(struct sender_live *s, struct sender_port *p) {
	for (uint32_t i = 0; i < p->arrivals; i += ANSWERS) {
		if (i > 0 && s->sender.flows > 0) {
			uint64_t now_ns = clock_now(&s->clock) + s->lead_ns;

			s->busy_ns += time_since(now_ns, s->now_ns);
			s->now_ns = time_max(now_ns, s->now_ns);
			if (wheel_due(&s->sender.wheel, s->now_ns)) {
				fire(s);
				out(s);
			}
		}
		sender_deliver(s, p, i, ANSWERS);
	}
}

static void turn(struct sender_live *s) {
	uint32_t came = 0;

	// 1. What came in; the clock is read after it, so that nothing arrives before it was sent.
	for (uint32_t i = 0; i < s->ports; i++) {
		struct sender_port *p = &s->port[i];

		p->came = port_rx(&p->port, 0, p->in, (uint16_t)s->plan->process.burst);
		came += p->came;
	}
	// 2. The time of this turn; the turn before was busy until now.
	uint64_t clock_ns = clock_now(&s->clock), now_ns = clock_ns + s->lead_ns;
	if (s->busy) {
		s->busy_ns += time_since(now_ns, s->now_ns);
		s->turn_max_ns = time_max(s->turn_max_ns, time_since(now_ns, s->now_ns));
	} else {
		watch_idle(&s->watch, clock_ns);
	}
	s->now_ns = time_max(now_ns, s->now_ns);
	s->busy = came > 0;
	watch_time(&s->watch, clock_ns);
	s->watch.moved = came;
	// 3. Its headers, so that connections are on their way into the cache while timers fire.
	for (uint32_t i = 0; i < s->ports; i++)
		sender_receive(s, &s->port[i]);
	fire(s);
	for (uint32_t i = 0; i < s->ports; i++)
		sender_fetch(&s->port[i]);
	out(s); // what was due does not wait for what is not
	// 4. Answers to it.
	for (uint32_t i = 0; i < s->ports; i++)
		answer_port(s, &s->port[i]);
	if (s->sender.flows > 0)
		host_fetch_timers(&s->sender, s->now_ns);
	out(s);
	s->turns++;
}

// Records a few flows' interval: with all at once, paced segments would be late.
static void record_interval(struct sender_live *s) {
	uint32_t left = s->sender.flows - s->interval_flow;
	uint32_t n = left < INTERVAL_FLOWS ? left : INTERVAL_FLOWS;

	if (n == 0)
		return;
	host_interval_some(&s->sender, s->interval_flow, n, s->interval_end_ns);
	s->interval_flow += n;
}

static void publish(struct sender_live *s) {
	uint64_t records =
		s->tel_cc.head + s->tel_flows.head + s->tel_interval.head + s->tel_events.head;

	if (records == s->published)
		return;
	s->published = records;
	tel_publish(&s->tel_cc);
	tel_publish(&s->tel_flows);
	tel_publish(&s->tel_interval);
	tel_publish(&s->tel_events);
}

// Is there any sign of a peer?
static void check_peer(struct sender_live *s) {
	const struct host *h = &s->sender;

	if (h->flows == 0)
		return;
	if (h->failed == h->flows)
		s->all_failed = s->ended = true;
	if (h->count.rx_segs == 0 && h->waiting < h->flows
		&& time_since(s->now_ns, h->flow[0].start_ns) > s->plan->answer_ns
		&& h->flow[0].state == FLOW_SYN_SENT)
		s->unanswered = s->ended = true;
}

static void snapshot(const struct sender_live *s, struct sender_snapshot *snap) {
	snap->now_ns = s->now_ns;
	snap->elapsed_ns = time_since(s->now_ns, s->start_ns);
	snap->turns = s->turns;
	snap->busy_ns = s->busy_ns;
	snap->turn_max_ns = s->turn_max_ns;
	snap->waiting = s->sender.waiting;
	snap->open = s->sender.open;
	snap->done = s->sender.done;
	snap->failed = s->sender.failed;
	for (uint32_t i = 0; i < s->ports; i++) {
		snap->port[i] = s->port[i].count;
		snap->outs[i] = s->port[i].outs;
	}
}

static void answer(struct sender_live *s) {
	snapshot(s, &s->mailbox.snapshot);
	s->surveying = false;
	control_answered(&s->mailbox.box);
}

// A survey's next flows.
static void survey_on(struct sender_live *s) {
	if (!survey_step(&s->mailbox.survey, SURVEY_FLOWS + s->sender.flows / SURVEY_SHARE))
		answer(s);
}

static void look_for_questions(struct sender_live *s) {
	if (s->surveying || !control_posted(&s->mailbox.box))
		return;
	s->surveying = s->mailbox.request == SENDER_SURVEY;
	if (s->surveying)
		survey_begin(&s->mailbox.survey, &s->sender);
	else
		answer(s);
}

static void follow_link(struct sender_live *s, uint32_t i) {
	struct port *p = &s->port[i].port;

	if (port_changed(p, time_since(s->now_ns, s->start_ns)))
		port_tell(p, &s->tel_events, i, s->now_ns);
}

// Lets DPDK's interrupt thread do what it has to, and follows what that and the user did to ports.
static void follow_ports(struct sender_live *s) {
	uint64_t from_ns = clock_now(&s->clock);

	if (intr_pass()) {
		for (uint32_t i = 0; i < s->ports; i++)
			port_handled(&s->port[i].port);
		uint64_t to_ns = clock_now(&s->clock);
		watch_stood(&s->watch, from_ns, to_ns);
		s->stood++;
		s->stood_max_ns = time_max(s->stood_max_ns, to_ns - from_ns);
	}
	for (uint32_t i = 0; i < s->ports; i++)
		follow_link(s, i);
}

// Ahead by the lead of a port that keeps times, from when its clock is known.
static void follow_stamps(struct sender_live *s) {
	for (uint32_t i = 0; i < s->ports; i++) {
		struct port *p = &s->port[i].port;

		if (p->lead_ns == 0)
			continue;
		stamp_follow(&p->stamp, p->id, &s->clock, clock_now(&s->clock));
		s->lead_ns = stamp_holds(&p->stamp) ? p->lead_ns : 0;
	}
}

// What other threads may know of this one.
static void show(struct sender_live *s) {
	struct watch_count *c = &s->watch.count;

	c->begun_ns = s->start_ns;
	c->turns = s->turns;
	c->busy_ns = s->busy_ns;
	c->no_buffer = 0;
	for (uint32_t i = 0; i < s->ports; i++)
		c->no_buffer += s->port[i].count.no_mbuf;
	c->lost = s->tel_cc.lost + s->tel_flows.lost + s->tel_interval.lost + s->tel_events.lost;
	watch_show(&s->watch, s->now_ns);
}

// Returns false when the run is over.
static bool housekeeping(struct sender_live *s) {
	uint64_t bytes = 0;

	watch_time(&s->watch, clock_now(&s->clock));
	follow_ports(s);
	clock_follow(&s->clock);
	follow_stamps(s);
	show(s);
	if (s->now_ns >= s->measure_ns) {
		host_measure(&s->sender, s->now_ns);
		s->measure_ns = NEVER_NS;
		for (uint32_t i = 0; i < s->ports; i++) {
			hist_reset(&s->port[i].late);
			hist_reset(&s->port[i].late_disturbed);
		}
	}
	if (s->interval_ns > 0 && s->now_ns >= s->interval_next_ns
		&& s->interval_flow == s->sender.flows) {
		s->interval_flow = 0;
		s->interval_end_ns = s->now_ns;
		s->interval_next_ns += s->interval_ns;
		if (s->interval_next_ns <= s->now_ns) // the host took the CPU away for longer
			s->interval_next_ns = s->now_ns + s->interval_ns;
	}
	check_peer(s);
	look_for_questions(s);
	for (uint32_t i = 0; i < s->ports; i++)
		bytes += s->port[i].count.tx_bytes;
	atomic_store_explicit(
		&s->shown_ns, time_since(s->now_ns, s->start_ns), memory_order_relaxed);
	atomic_store_explicit(&s->shown_open, s->sender.open, memory_order_relaxed);
	atomic_store_explicit(&s->shown_bytes, bytes, memory_order_relaxed);
	if (time_since(s->now_ns, s->start_ns) >= s->duration_ns)
		s->ended = true;
	watch_resume(&s->watch, clock_now(&s->clock));
	return !s->ended && !run_stop && !atomic_load_explicit(&s->stop, memory_order_relaxed);
}

// The lcore takes over the ports, as DPDK's interrupt thread left them.
static void begin(struct sender_live *s) {
	intr_begin();
	for (uint32_t i = 0; i < s->ports; i++)
		port_handled(&s->port[i].port);
}

// The peer of a lone port is another program or a kernel, which would keep what is open for ever.
static void reset_open(struct sender_live *s) {
	struct sender_port *p = &s->port[0];
	uint32_t all = p->host->flows + p->host->receivers;
	uint64_t until_ns = clock_now(&s->clock) + RESET_NS;

	if (s->ports > 1)
		return;
	for (uint32_t first = 0; first < all; first += RESETS) {
		if (p->outs + RESETS > SENDER_OUT_MAX)
			sender_flush(s, p);
		if (p->outs + RESETS > SENDER_OUT_MAX)
			break;
		host_reset_some(p->host, first, RESETS, s->now_ns);
	}
	while (p->outs > 0 && clock_now(&s->clock) < until_ns)
		sender_flush(s, p);
}

void sender_loop(struct sender_live *s) {
	bool more = true;

	begin(s);
	watch_resume(&s->watch, clock_now(&s->clock));
	atomic_store(&s->watch.tid, rte_sys_gettid());
	s->interval_flow = s->sender.flows;
	atomic_store(&s->running, true);
	while (more) {
		for (int i = 0; i < HOUSEKEEPING_TURNS; i++) {
			turn(s);
			record_interval(s);
			publish(s);
			if (s->surveying)
				survey_on(s);
		}
		more = housekeeping(s);
	}
	reset_open(s);
	intr_end();
	if (s->interval_ns > 0) {
		host_interval_some(&s->sender, s->interval_flow, s->sender.flows - s->interval_flow,
			s->interval_end_ns);
		host_interval(&s->sender, s->now_ns);
	}
	host_still_open(&s->sender, s->now_ns);
	s->published = UINT64_MAX;
	publish(s);
	show(s);
	while (s->surveying)
		survey_on(s);
	atomic_store(&s->done, true);
}

static int resolve(struct sender_live *s, struct sender_port *sending, struct err *err) {
	uint64_t begin_ns = clock_now(&s->clock), next_ns = 0;
	char ip[16];

	while (!sending->peer_known) {
		turn(s);
		follow_ports(s);
		if (run_stop)
			return err_set(err, -EINTR, "interrupted before the first packet");
		if (s->now_ns - begin_ns > s->plan->answer_ns) {
			live_ip_text(sending->plan->next_hop, ip);
			return err_set(err, -EHOSTUNREACH,
				"port %s: %s does not answer ARP (%.3g s); is the other side up?",
				sending->plan->name, ip, (double)s->plan->answer_ns / 1e9);
		}
		if (s->now_ns < next_ns)
			continue;
		send_arp_request(s, sending);
		next_ns = s->now_ns + ARP_RETRY_NS;
	}
	return 0;
}

int sender_resolve(struct sender_live *s, struct err *err) {
	int rc = 0;

	begin(s);
	for (uint32_t i = 0; rc == 0 && i < s->ports; i++) {
		if (sender_sends(&s->port[i]))
			rc = resolve(s, &s->port[i], err);
	}
	intr_end();
	return rc;
}

bool sender_balanced(const struct sender_live *s) {
	for (uint32_t i = 0; i < s->ports; i++) {
		const struct sender_count *c = &s->port[i].count;
		const struct host *h = s->port[i].host;

		if (c->tx_wanted != c->tx_frames + c->tx_dropped + c->no_mbuf + s->port[i].outs)
			return false;
		if (c->rx_frames
			!= c->rx_tcp + c->rx_arp + c->rx_echo + c->rx_other + c->rx_outside
				+ c->rx_reset + c->rx_malformed)
			return false;
		if (h != NULL && h->count.rx_segs != c->rx_tcp)
			return false;
		if (c->tx_wanted != c->tx_own + (h != NULL ? h->count.tx_segs : 0))
			return false;
	}
	return true;
}
