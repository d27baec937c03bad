// SPDX-License-Identifier: BSD-3-Clause
#include "host_dpdk.h"

#include "flow_addr.h"
#include "intr_dpdk.h"
#include "run.h"

#include <errno.h>
#include <rte_eal.h>
#include <rte_ethdev.h>
#include <stdlib.h>
#include <string.h>

#define HOUSEKEEPING_TURNS 256
// A turn of a survey looks at so many flows, at 30 ns each, and at one more for each so many there
// are: 5000 are seen in 300 turns, 100 000 in 2500.
#define SURVEY_FLOWS 16
#define SURVEY_SHARE 4096
#define ARP_RETRY_NS (100 * NS_PER_MS)

static bool is_sender(const struct sender_port *p) {
	return p->plan->role == LIVE_SENDER;
}

// Frees what waits for a port that takes nothing.
static void give_up(struct sender_live *s, struct sender_port *p) {
	s->watch.count.port[p - s->port].dropped += p->outs;
	for (; p->outs > 0; p->outs--) {
		rte_pktmbuf_free(p->out[p->out_first++ & (SENDER_OUT_MAX - 1)]);
		p->count.tx_dropped++;
	}
}

static void flush(struct sender_live *s, struct sender_port *p) {
	uint32_t burst = (uint32_t)s->plan->process.burst, done = 0;

	while (p->outs > 0) {
		uint64_t bytes[PORT_BURST_MAX + 1];
		uint32_t at = p->out_first & (SENDER_OUT_MAX - 1);
		uint32_t want = p->outs < burst ? p->outs : burst;

		want = want < SENDER_OUT_MAX - at ? want : SENDER_OUT_MAX - at;
		bytes[0] = 0;
		for (uint32_t i = 0; i < want; i++)
			bytes[i + 1] = bytes[i] + port_frame_bytes(p->out[at + i]->pkt_len);
		uint16_t took = port_tx(&p->port, p->out + at, (uint16_t)want);
		p->count.tx_frames += took;
		p->count.tx_bytes += bytes[took];
		p->out_first += took;
		p->outs -= took;
		s->watch.moved += took;
		done += took;
		if (took < want)
			break;
	}
	s->busy |= done > 0;
	watch_waiting(&s->watch, (uint32_t)(p - s->port), p->outs, s->now_ns);
	if (done > 0 || p->outs == 0) {
		p->refused_ns = NEVER_NS;
		return;
	}
	if (p->refused_ns == NEVER_NS)
		p->refused_ns = s->now_ns;
	if (!p->port.was_up || s->now_ns - p->refused_ns > s->plan->process.patience_ns)
		give_up(s, p);
}

static void send_frame(struct sender_live *s, struct sender_port *p, struct rte_mbuf *m) {
	p->count.tx_wanted++;
	if (p->outs == SENDER_OUT_MAX)
		flush(s, p);
	if (p->outs == SENDER_OUT_MAX) {
		p->count.tx_dropped++;
		rte_pktmbuf_free(m);
		return;
	}
	p->out[(p->out_first + p->outs++) & (SENDER_OUT_MAX - 1)] = m;
}

// An empty frame from the pool whose payload is always zero.
static struct rte_mbuf *new_frame(struct sender_live *s, struct sender_port *p, uint8_t **data) {
	struct rte_mbuf *m = rte_pktmbuf_alloc(s->tx_pool);

	if (m == NULL) {
		p->count.tx_wanted++;
		p->count.no_mbuf++;
		return NULL;
	}
	*data = rte_pktmbuf_mtod(m, uint8_t *);
	return m;
}

static void send_seg(struct sender_live *s, struct sender_port *p, const struct wire_addr *addr,
	uint8_t ecn, const struct seg *seg) {
	uint8_t *data;
	struct rte_mbuf *m = new_frame(s, p, &data);

	if (m == NULL)
		return;
	size_t header = wire_write_tcp(data, addr, ecn, p->ip_id++, seg);
	// A longer header of an earlier use may reach into the payload.
	memset(data + header, 0, WIRE_HEADER_MAX - header);
	m->data_len = (uint16_t)wire_tcp_frame(seg);
	m->pkt_len = m->data_len;
	send_frame(s, p, m);
}

void sender_output(
	void *ctx, uint32_t id, const struct seg *seg, uint32_t n, uint8_t ecn, uint64_t t_ns) {
	struct sender_port *p = ctx;
	const struct live_port *plan = p->plan;
	uint32_t flows = p->live->groups->flows;
	struct wire_addr a = {.src_mac = p->port.mac, .dst_mac = p->peer_mac};

	if (is_sender(p)) {
		a.src_ip = flow_addr_ip(plan->ip, id);
		a.src_port = flow_addr_port(id);
		a.dst_ip = plan->peer;
		a.dst_port = (uint16_t)plan->peer_port;
	} else if (id < flows) {
		a.src_ip = plan->ip;
		a.src_port = (uint16_t)plan->peer_port;
		a.dst_ip = flow_addr_ip(plan->peer, id);
		a.dst_port = flow_addr_port(id);
	} else {
		a = p->stranger[id - flows].addr;
	}
	struct seg s = *seg;
	for (uint32_t i = 0; i < n; i++) {
		send_seg(p->live, p, &a, ecn, &s);
		s.seq += s.len;
	}
}

static bool is_ours(const struct sender_port *p, uint32_t ip) {
	return ip - p->plan->ip < p->addresses;
}

static void send_arp_request(struct sender_live *s, struct sender_port *p) {
	struct wire_arp arp = {.request = true,
		.sender_mac = p->port.mac,
		.sender_ip = p->plan->ip,
		.target_ip = p->plan->next_hop};
	uint8_t *data;
	struct rte_mbuf *m = new_frame(s, p, &data);

	p->count.tx_own++;
	if (m == NULL)
		return;
	m->pkt_len = m->data_len = (uint16_t)wire_write_arp(data, &arp, NULL);
	memset(data + m->data_len, 0, WIRE_HEADER_MAX - m->data_len);
	send_frame(s, p, m);
}

static void receive_arp(struct sender_live *s, struct sender_port *p, struct rte_mbuf *m) {
	uint8_t *frame = rte_pktmbuf_mtod(m, uint8_t *);
	struct wire_arp arp;

	if (wire_parse_arp(frame, m->data_len, &arp) != WIRE_OK) {
		p->count.rx_malformed++;
		rte_pktmbuf_free(m);
		return;
	}
	p->count.rx_arp++;
	if (arp.sender_ip == p->plan->next_hop) {
		p->peer_mac = arp.sender_mac;
		p->peer_known = true;
	}
	if (!arp.request || !is_ours(p, arp.target_ip)) {
		rte_pktmbuf_free(m);
		return;
	}
	struct wire_arp reply = {
		.sender_mac = p->port.mac, .sender_ip = arp.target_ip, .target_ip = arp.sender_ip};
	m->pkt_len = m->data_len = (uint16_t)wire_write_arp(frame, &reply, &arp.sender_mac);
	p->count.tx_own++;
	send_frame(s, p, m);
}

// A segment of no connection is answered with a reset (RFC 9293 section 3.10.7.1).
static void refuse(struct sender_live *s, struct sender_port *p, const struct wire_addr *from,
	const struct seg *seg) {
	struct wire_addr to = {from->dst_mac, from->src_mac, from->dst_ip, from->src_ip,
		from->dst_port, from->src_port};
	struct seg rst = {.flags = SEG_RST};

	p->count.rx_reset++;
	if ((seg->flags & SEG_RST) != 0)
		return;
	if ((seg->flags & SEG_ACK) != 0) {
		rst.seq = seg->ack;
	} else {
		rst.flags |= SEG_ACK;
		rst.ack = seg->seq + seg->len + ((seg->flags & SEG_SYN) != 0)
			+ ((seg->flags & SEG_FIN) != 0);
	}
	p->count.tx_own++;
	send_seg(s, p, &to, ECN_NOT_ECT, &rst);
}

int sender_strangers_init(struct sender_port *p, struct err *err) {
	uint64_t n = p->live->plan->strangers;

	memset(p->bucket, 0xff, sizeof(p->bucket));
	p->stranger = calloc(n + 1, sizeof(*p->stranger));
	return p->stranger != NULL ? 0 : err_set(err, -ENOMEM, "no memory for connections");
}

static uint32_t *stranger_bucket(struct sender_port *p, const struct wire_addr *from) {
	uint32_t h = flow_addr_hash(
		from->src_ip, from->dst_ip, from->src_port, from->dst_port, WIRE_PROTO_TCP);

	return &p->bucket[h & (STRANGER_BUCKETS - 1)];
}

static void stranger_forget(struct sender_port *p, uint32_t i) {
	struct wire_addr *a = &p->stranger[i].addr;
	struct wire_addr from = {.src_ip = a->dst_ip,
		.dst_ip = a->src_ip,
		.src_port = a->dst_port,
		.dst_port = a->src_port};
	uint32_t *at = stranger_bucket(p, &from);

	while (*at != i)
		at = &p->stranger[*at].next;
	*at = p->stranger[i].next;
	p->stranger[i].used = false;
}

static bool receiver_over(const struct receiver *r) {
	return r->state == RECEIVER_CLOSED || (r->state == RECEIVER_OPEN && r->rcv_nxt == r->fin);
}

// A receiver as it was before its first connection; its totals go on.
static void receiver_renew(struct host *h, struct receiver *r, uint16_t group) {
	struct receiver_count total = r->count;

	host_cancel(h, &r->delack);
	while (r->head != NULL) {
		struct range *range = r->head;

		r->head = range->next;
		range->next = h->ranges.free;
		h->ranges.free = range;
	}
	receiver_init(r, r->id, h->groups, group);
	r->count = total;
}

// The spare receiver of this connection, or one for it if it begins; STRANGER_NONE: none is free.
static uint32_t stranger_find(
	struct sender_port *p, const struct wire_addr *from, const struct seg *seg) {
	uint32_t *bucket = stranger_bucket(p, from), flows = p->live->groups->flows;
	uint32_t n = (uint32_t)p->live->plan->strangers, i;
	struct host *h = p->host;

	for (i = *bucket; i != STRANGER_NONE; i = p->stranger[i].next) {
		const struct wire_addr *a = &p->stranger[i].addr;

		if (a->dst_ip == from->src_ip && a->dst_port == from->src_port
			&& a->src_ip == from->dst_ip && a->src_port == from->dst_port)
			return i;
	}
	if ((seg->flags & (SEG_SYN | SEG_ACK)) != SEG_SYN)
		return STRANGER_NONE;
	for (i = 0; i < n && p->stranger[i].used; i++)
		;
	for (uint32_t k = 0; i == n && k < n; k++) {
		if (receiver_over(&h->receiver[flows + k]))
			i = k;
	}
	if (i == n) {
		p->strangers_refused++;
		return STRANGER_NONE;
	}
	if (p->stranger[i].used)
		stranger_forget(p, i);
	p->stranger[i] = (struct stranger){
		.addr = {from->dst_mac, from->src_mac, from->dst_ip, from->src_ip, from->dst_port,
			from->src_port},
		.next = *bucket,
		.used = true,
	};
	*bucket = i;
	h->receiver[flows + i].id = flows + i;
	receiver_renew(h, &h->receiver[flows + i], 0);
	return i;
}

// A segment for the receiving side: which receiver is it for?
static uint32_t receiver_of(
	struct sender_port *p, const struct wire_addr *a, const struct seg *seg) {
	uint32_t flows = p->live->groups->flows, id;

	if (a->dst_port != p->plan->peer_port)
		return FLOW_ADDR_NONE;
	id = flow_addr_index(p->plan->peer, flows, a->src_ip, a->src_port);
	if (id == FLOW_ADDR_NONE) {
		uint32_t i = stranger_find(p, a, seg);

		id = i == STRANGER_NONE ? FLOW_ADDR_NONE : flows + i;
	} else {
		p->peer_mac = a->src_mac;
	}
	if (id == FLOW_ADDR_NONE)
		return id;
	struct receiver *r = &p->host->receiver[id];
	// A new connection from the addresses of one that is over.
	if ((seg->flags & (SEG_SYN | SEG_ACK)) == SEG_SYN && receiver_over(r) && seg->seq != r->irs)
		receiver_renew(p->host, r, r->group_index);
	return id;
}

static uint32_t flow_of(const struct sender_port *p, const struct wire_addr *a) {
	if (a->src_ip != p->plan->peer || a->src_port != p->plan->peer_port)
		return FLOW_ADDR_NONE;
	return flow_addr_index(p->plan->ip, p->live->groups->flows, a->dst_ip, a->dst_port);
}

static void receive_tcp(struct sender_live *s, struct sender_port *p, const uint8_t *frame,
	const struct wire_info *w) {
	struct seg seg;
	uint32_t id;

	if (wire_parse_tcp(frame, w, s->plan->checksum, &seg) != WIRE_OK) {
		p->count.rx_malformed++;
		return;
	}
	id = is_sender(p) ? flow_of(p, &w->addr) : receiver_of(p, &w->addr, &seg);
	if (id == FLOW_ADDR_NONE || p->host == NULL) {
		refuse(s, p, &w->addr, &seg);
		return;
	}
	p->count.rx_tcp++;
	if (is_sender(p))
		host_rx_flow(p->host, id, &seg, w->ecn, s->now_ns);
	else
		host_rx_receiver(p->host, id, &seg, w->ecn, s->now_ns);
}

static void receive_frame(struct sender_live *s, struct sender_port *p, struct rte_mbuf *m) {
	uint8_t *frame = rte_pktmbuf_mtod(m, uint8_t *);
	struct wire_info w;

	p->count.rx_frames++;
	p->count.rx_bytes += port_frame_bytes(m->pkt_len);
	if (wire_parse(frame, m->data_len, &w) != WIRE_OK) {
		p->count.rx_malformed++;
		rte_pktmbuf_free(m);
		return;
	}
	if (w.ethertype == WIRE_ETHERTYPE_ARP) {
		receive_arp(s, p, m);
		return;
	}
	if (w.ethertype == WIRE_ETHERTYPE_IPV4
		&& !live_may_send(&s->plan->process, w.addr.src_ip)) {
		p->count.rx_outside++;
		rte_pktmbuf_free(m);
		return;
	}
	if (w.ethertype == WIRE_ETHERTYPE_IPV4 && !w.fragment && is_ours(p, w.addr.dst_ip)) {
		if (w.proto == WIRE_PROTO_TCP) {
			receive_tcp(s, p, frame, &w);
			rte_pktmbuf_free(m);
			return;
		}
		if (wire_echo_reply(frame, m->data_len, &w)) {
			p->count.rx_echo++;
			p->count.tx_own++;
			send_frame(s, p, m);
			return;
		}
	}
	p->count.rx_other++;
	rte_pktmbuf_free(m);
}

// Timers that were late, a stall's victims aside.
static void note_timing(struct sender_live *s) {
	struct host_timing *t = &s->sender.timing;

	if (t->fired == 0)
		return;
	if (!watch_disturbed(&s->watch, 0, s->now_ns))
		watch_left(&s->watch, t->fired, t->late, t->late_max_ns);
	*t = (struct host_timing){0};
}

static void turn(struct sender_live *s) {
	uint32_t came = 0;

	// 1. What came in; the clock is read after it, so that nothing arrives before it was sent.
	for (uint32_t i = 0; i < s->ports; i++) {
		struct sender_port *p = &s->port[i];

		p->came = port_rx(&p->port, p->in, (uint16_t)s->plan->process.burst);
		came += p->came;
	}
	// 2. The time of this turn; the turn before was busy until now.
	uint64_t now_ns = clock_now(&s->clock);
	if (s->busy) {
		s->busy_ns += now_ns - s->now_ns;
		s->turn_max_ns = time_max(s->turn_max_ns, time_since(now_ns, s->now_ns));
	}
	s->now_ns = time_max(now_ns, s->now_ns);
	s->busy = came > 0;
	watch_time(&s->watch, now_ns);
	s->watch.moved = came;
	// 3. Answers to it, then what is due by now.
	for (uint32_t i = 0; i < s->ports; i++) {
		struct sender_port *p = &s->port[i];

		for (uint32_t k = 0; k < p->came; k++) {
			if (k + 4 < p->came)
				rte_prefetch0(rte_pktmbuf_mtod(p->in[k + 4], void *));
			receive_frame(s, p, p->in[k]);
		}
	}
	for (uint32_t i = 0; i < s->ports; i++) {
		if (s->port[i].host != NULL)
			host_run(s->port[i].host, s->now_ns);
	}
	note_timing(s);
	// 4. Out.
	for (uint32_t i = 0; i < s->ports; i++) {
		if (s->port[i].outs > 0)
			flush(s, &s->port[i]);
	}
	s->turns++;
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
	struct tel_events *r;

	if (port_changed(p, time_since(s->now_ns, s->start_ns))
		&& (r = tel_put(&s->tel_events)) != NULL)
		*r = (struct tel_events){
			.ts_ns = s->now_ns,
			.value = p->was_up,
			.flow_id = TEL_NO_FLOW,
			.before = (float)!p->was_up,
			.event = TEL_EV_PORT,
			.group = (uint16_t)i,
		};
}

// Lets DPDK's interrupt thread do what it has to, and follows what that and the user did to ports.
static void follow_ports(struct sender_live *s) {
	uint64_t from_ns = clock_now(&s->clock);

	if (intr_pass()) {
		for (uint32_t i = 0; i < s->ports; i++)
			port_handled(&s->port[i].port);
		s->stood++;
		s->stood_max_ns = time_max(s->stood_max_ns, clock_now(&s->clock) - from_ns);
	}
	for (uint32_t i = 0; i < s->ports; i++)
		follow_link(s, i);
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
	show(s);
	if (s->now_ns >= s->measure_ns) {
		host_measure(&s->sender, s->now_ns);
		s->measure_ns = NEVER_NS;
	}
	if (s->interval_ns > 0 && s->now_ns >= s->interval_next_ns) {
		host_interval(&s->sender, s->now_ns);
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

void sender_loop(struct sender_live *s) {
	bool more = true;

	begin(s);
	watch_resume(&s->watch, clock_now(&s->clock));
	atomic_store(&s->watch.tid, rte_sys_gettid());
	atomic_store(&s->running, true);
	while (more) {
		for (int i = 0; i < HOUSEKEEPING_TURNS; i++) {
			turn(s);
			publish(s);
			if (s->surveying)
				survey_on(s);
		}
		more = housekeeping(s);
	}
	intr_end();
	if (s->interval_ns > 0)
		host_interval(&s->sender, s->now_ns);
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
		if (is_sender(&s->port[i]))
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
