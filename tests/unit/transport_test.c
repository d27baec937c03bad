// SPDX-License-Identifier: BSD-3-Clause
// A transport is a table of functions: one that is written here, with ACKs, timeouts and a window
// of one datagram, brings its data over a path that loses, and no file of the sender knows of it.
#include "sender/transport.h"

#include "link.h"

#define TOY_BYTES 1000
#define TOY_RTO_NS (50 * MS)
#define TOY_DATAGRAMS 200

struct toy_counts {
	uint32_t opened, timeouts, acks, arrived, repeated;
};
static struct toy_counts count;

static uint32_t toy_payload(const void *source_config) {
	return TOY_BYTES;
}

struct toy {
	uint32_t id, timeouts;
	char large[1000];
};

static void toy_open(struct endpoint *e, struct flow *f) {
	struct toy *t = endpoint_connection(e, f->id);

	ck_assert_uint_eq(t->timeouts, 0);
	t->id = f->id;
	count.opened++;
}

static void toy_send(struct endpoint *e, struct flow *f, uint64_t now_ns) {
	struct seg s = {.seq = (uint32_t)f->una, .len = TOY_BYTES, .options = SEG_OPT_UDP};

	f->nxt = f->una + 1;
	f->count.sent_segs++;
	endpoint_send(e, f->id, &s, ECN_NOT_ECT, now_ns);
	endpoint_arm(e, &f->pace, now_ns + TOY_RTO_NS);
}

static void toy_timer(struct endpoint *e, struct flow *f, uint64_t now_ns) {
	if (f->state == FLOW_WAITING) {
		f->state = FLOW_OPEN;
		e->waiting--;
		e->open++;
	} else {
		struct toy *t = endpoint_connection(e, f->id);

		ck_assert_uint_eq(t->id, f->id);
		count.timeouts = ++t->timeouts;
		f->count.retransmits++;
	}
	toy_send(e, f, now_ns);
}

static void toy_receive(struct endpoint *e, struct flow *f, const struct seg *s, uint64_t now_ns) {
	count.acks++;
	if (s->ack != f->una + 1)
		return;
	f->una++;
	f->count.acked_bytes += TOY_BYTES;
	endpoint_cancel(e, &f->pace);
	if (f->una < TOY_DATAGRAMS)
		toy_send(e, f, now_ns);
	else
		flow_end(e, f, FLOW_DONE, TEL_CLOSE, now_ns);
}

// The ACK waits a millisecond, so that the receiver's timer is used.
static void toy_receive_data(
	struct endpoint *e, struct receiver *r, const struct seg *s, uint8_t ecn, uint64_t now_ns) {
	if (s->seq == r->rcv_nxt) {
		r->rcv_nxt++;
		count.arrived++;
	} else {
		count.repeated++;
	}
	endpoint_arm(e, &r->delack, now_ns + MS);
}

static void toy_receiver_timer(struct endpoint *e, struct receiver *r, uint64_t now_ns) {
	struct seg s = {.ack = (uint32_t)r->rcv_nxt, .options = SEG_OPT_UDP};

	endpoint_send(e, r->id, &s, ECN_NOT_ECT, now_ns);
}

static const struct transport_ops toy = {
	.name = "toy",
	.summary = "stop and wait",
	.connection_size = sizeof(struct toy),
	.payload = toy_payload,
	.open = toy_open,
	.receive = toy_receive,
	.timer = toy_timer,
	.receive_data = toy_receive_data,
	.receiver_timer = toy_receiver_timer,
};

// A path of 10 ms each way that loses every seventh datagram, and every fifth ACK.
struct way {
	struct host *to;
	bool forward;
	struct way_item {
		uint64_t at_ns;
		uint32_t id;
		struct seg seg;
	} item[16];
	uint32_t count, sent, lose;
};

static void put(void *ctx, uint32_t id, const struct seg *seg, uint32_t n, uint8_t ecn,
	uint64_t due_ns, bool paced) {
	struct way *w = ctx;

	if (++w->sent % w->lose == 0)
		return;
	ck_assert_uint_lt(w->count, 16);
	w->item[w->count++] = (struct way_item){due_ns + 10 * MS, id, *seg};
}

static void deliver(struct way *w, uint64_t now_ns) {
	while (w->count > 0 && w->item[0].at_ns <= now_ns) {
		struct way_item i = w->item[0];

		memmove(w->item, w->item + 1, --w->count * sizeof(i));
		if (w->forward)
			host_rx_receiver(w->to, i.id, &i.seg, ECN_NOT_ECT, now_ns);
		else
			host_rx_flow(w->to, i.id, &i.seg, ECN_NOT_ECT, now_ns);
	}
}

TEST(a_transport_is_its_table) {
	static struct groups groups;
	static struct host tx, rx;
	struct way there = {.to = &rx, .forward = true, .lose = 7}, back = {.to = &tx, .lose = 5};
	struct err err = {""};
	char text[] = "flows: [{source: {udp: {rate: 1Mbit}}}, {cc: newreno, start: 1000s}]";
	struct config *config = config_parse("test", text, strlen(text), &err);
	uint64_t end_ns = 60 * NS_PER_S;

	ck_assert_int_eq(groups_init(&groups, config_get(config_root(config), "flows"), &err), 0);
	groups.group[0].transport = &toy;
	groups.group[0].payload = toy.payload(groups.group[0].source_config);
	struct host_env env = {.output = put,
		.ctx = &there,
		.virtual_time = true,
		.pipe_segs = 100,
		.flows = true};
	ck_assert_int_eq(host_init(&tx, &groups, &env, &err), 0);
	env = (struct host_env){.output = put,
		.ctx = &back,
		.virtual_time = true,
		.pipe_segs = 100,
		.receivers = groups.flows};
	ck_assert_int_eq(host_init(&rx, &groups, &env, &err), 0);
	ck_assert_uint_eq(count.opened, 1);
	for (uint64_t t = 0; t < end_ns && tx.done == 0; t += MS / 4) {
		host_run(&tx, t);
		deliver(&there, t);
		host_run(&rx, t);
		deliver(&back, t);
	}
	ck_assert_uint_eq(tx.done, 1);
	ck_assert_uint_eq(count.arrived, TOY_DATAGRAMS);
	ck_assert_uint_eq(tx.flow[0].count.acked_bytes, TOY_DATAGRAMS * TOY_BYTES);
	// What was lost was sent again, and nothing else.
	ck_assert_uint_eq(there.sent, TOY_DATAGRAMS + count.timeouts);
	ck_assert_uint_eq(there.sent, tx.flow[0].count.sent_segs);
	ck_assert_uint_eq(count.timeouts, there.sent / 7 + back.sent / 5);
	ck_assert_uint_eq(count.repeated, back.sent / 5);
	ck_assert_uint_eq(tx.count.rx_bad + rx.count.rx_bad, 0);
	// Of TCP it is none: a datagram for a connection of TCP is unacceptable.
	struct seg s = {.ack = 1, .options = SEG_OPT_UDP};

	host_rx_flow(&tx, 1, &s, ECN_NOT_ECT, end_ns);
	host_rx_receiver(&rx, 1, &s, ECN_NOT_ECT, end_ns);
	ck_assert_uint_eq(tx.count.rx_bad, 1);
	ck_assert_uint_eq(rx.count.rx_bad, 1);
	host_fini(&tx);
	host_fini(&rx);
	groups_fini(&groups);
	config_free(config);
}
