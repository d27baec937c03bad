// SPDX-License-Identifier: BSD-3-Clause
// Schedules on hosts: which transfers begin when, on which connection, and what is noted of them.
#include "link.h"
#include "sender/workload/workload.h"

#define POISSON                                                                                    \
	"{cc: newreno, count: 4, source: {poisson: {interval: 50ms, sizes: {"                      \
	"law: exponential, mean: 30kB}}}"
#define NOTED 512

static const struct workload_count *counted(const struct link *l) {
	return l->tx.workloads->group[0];
}

// Runs, and notes each transfer as it begins, by its number.
struct noted {
	uint64_t start_ns[NOTED], bytes[NOTED];
	uint32_t count;
};

static void note_begun(struct noted *n, const struct host *h) {
	for (uint32_t i = 0; i < h->flows; i++) {
		const struct flow *f = &h->flow[i];

		for (uint32_t k = 0; k < f->transfers; k++) {
			const struct flow_transfer *t =
				&f->transfer[f->transfer_first]; // one at a time

			if (t->number >= NOTED)
				continue;
			n->start_ns[t->number] = t->start_ns - h->env.start_ns;
			n->bytes[t->number] = t->bytes;
			n->count = t->number + 1 > n->count ? t->number + 1 : n->count;
		}
	}
}

static void run_noting(struct link *l, struct noted *n, uint64_t until_ns) {
	while (link_step(l, until_ns))
		note_begun(n, &l->tx);
	l->now_ns = until_ns;
}

// Each connection's bytes arrive, whichever flow carries it: what receivers count is what was
// begun.
TEST(every_arrival_is_carried) {
	struct link *l = LINK(.group = POISSON ", stop: 10s}", .seed = 3);
	struct noted n = {0};
	uint64_t bytes = 0, acked = 0;

	l->oracle = false;
	run_noting(l, &n, 15 * S);
	for (uint32_t i = 0; i < n.count; i++)
		bytes += n.bytes[i];
	for (uint32_t i = 0; i < 4; i++)
		acked += l->tx.flow[i].count.acked_bytes;
	ck_assert_uint_gt(n.count, 150); // 200 are expected
	ck_assert_uint_lt(n.count, 250);
	ck_assert_uint_eq(counted(l)->begun, n.count);
	ck_assert_uint_eq(counted(l)->finished, n.count);
	ck_assert_uint_eq(counted(l)->failed, 0);
	ck_assert_uint_eq(workload_waiting(&l->tx.endpoint, 0, 15 * S), 0);
	ck_assert_uint_eq(l->rx.received.bytes, bytes);
	ck_assert_uint_eq(acked, bytes);
	ck_assert_uint_eq(l->tx.open, 0);
	ck_assert_uint_eq(l->rx.count.rx_bad + l->tx.count.rx_bad, 0);
}

// A lossy network with reordering: packets of old connections meet new ones on the same flow, and
// harm none.
TEST(old_packets_do_not_harm_the_next_connection) {
	struct link *l = LINK(.group = POISSON ", stop: 10s}", .seed = 4, .loss = 0.05,
		.ack_loss = 0.05, .reorder = 0.1, .late_ns = 60 * MS);
	struct noted n = {0};
	uint64_t bytes = 0;

	l->oracle = false;
	run_noting(l, &n, 60 * S);
	for (uint32_t i = 0; i < n.count; i++)
		bytes += n.bytes[i];
	ck_assert_uint_eq(counted(l)->finished, n.count);
	ck_assert_uint_eq(l->rx.received.bytes, bytes);
	ck_assert_uint_gt(l->rx.count.rx_bad, 0);
	ck_assert_uint_gt(l->tx.count.rx_bad, 0);
}

// One flow for all: transfers wait in the order of their arrival, and their completion counts from
// there.
TEST(arrivals_wait_for_a_free_flow) {
	struct link *l = LINK(.group = "{cc: newreno, source: {poisson: {interval: 20ms, sizes: "
				       "{mean: 1kB}}}, stop: 1s}",
		.seed = 5);
	struct noted n = {0};

	l->oracle = false;
	link_run(l, 500 * MS);
	// 60 ms each: the handshake, the data and the answer to the FIN, which travels with it.
	uint64_t waiting = workload_waiting(&l->tx.endpoint, 0, 500 * MS);
	ck_assert_uint_gt(waiting, 5);
	run_noting(l, &n, 10 * S);
	ck_assert_uint_eq(counted(l)->finished, counted(l)->begun);
	ck_assert_uint_ge(counted(l)->waited, waiting);
	ck_assert_uint_eq(workload_waiting(&l->tx.endpoint, 0, 10 * S), 0);
	ck_assert_uint_gt(counted(l)->completion.max, 200 * MS);
	for (uint32_t i = 1; i < n.count; i++)
		ck_assert_uint_ge(n.start_ns[i], n.start_ns[i - 1]);
}

// A live host, whose loop comes round when it can and whose clock starts anywhere, is offered the
// same as one in virtual time.
TEST(live_and_virtual_schedules_are_the_same) {
	static struct noted virtual, live;
	struct link *l = LINK(.group = POISSON "}", .seed = 6);

	l->oracle = false;
	run_noting(l, &virtual, 5 * S);
	link_close(l);
	l = LINK(.group = POISSON "}", .seed = 6, .start_ns = 123456789, .delay_ns = 3 * MS,
		.live = true);
	l->oracle = false;
	run_noting(l, &live, 123456789 + 5 * S);
	link_close(l);
	ck_assert_uint_gt(virtual.count, 80);
	ck_assert_uint_eq(virtual.count, live.count);
	for (uint32_t i = 0; i < live.count; i++) {
		ck_assert_uint_eq(virtual.start_ns[i], live.start_ns[i]);
		ck_assert_uint_eq(virtual.bytes[i], live.bytes[i]);
	}
}

static void ignore(void *ctx, uint32_t id, const struct seg *seg, uint32_t n, uint8_t ecn,
	uint64_t due_ns, bool paced) {
}

// However many hosts share the flows, together they begin each transfer once, at its time.
TEST(lcores_share_the_schedule) {
	struct link *l = LINK(.group = "{cc: newreno, count: 300, source: {poisson: {interval: "
				       "50ms, sizes: {law: exponential}}}}",
		.seed = 6);
	static struct noted one;

	l->oracle = false;
	run_noting(l, &one, 5 * S);
	for (uint32_t shards = 2; shards <= 16; shards *= 2) {
		static struct noted many;
		uint64_t begun = 0;

		memset(&many, 0, sizeof(many));
		for (uint32_t k = 0; k < shards; k++) {
			struct host_env env = {.output = ignore,
				.seed = 6,
				.virtual_time = true,
				.pipe_segs = 100,
				.flows = true,
				.shard_id = k,
				.shards = shards};
			struct host h;

			ck_assert_int_eq(host_init(&h, &l->groups, &env, NULL), 0);
			host_run(&h, 5 * S); // nobody answers, so each keeps its flow
			note_begun(&many, &h);
			begun += h.workloads->group[0]->begun;
			host_fini(&h);
		}
		ck_assert_uint_eq(begun, one.count);
		ck_assert_uint_eq(many.count, one.count);
		for (uint32_t i = 0; i < one.count; i++) {
			ck_assert_uint_eq(many.start_ns[i], one.start_ns[i]);
			ck_assert_uint_eq(many.bytes[i], one.bytes[i]);
		}
	}
}

// A peer that answers no SYN: the connection fails, its flow takes the next arrival.
TEST(a_failed_connection_frees_its_flow) {
	struct link *l =
		LINK(.group = "{cc: newreno, retries: 1, rto_initial: 100ms, stop: 5s, source: "
			      "{poisson: {interval: 1s, sizes: {mean: 1kB}}}}",
			.seed = 8, .lose_syn = 3);

	l->oracle = false;
	link_run(l, 20 * S);
	ck_assert_uint_eq(counted(l)->failed, 1);
	ck_assert_uint_gt(counted(l)->finished, 1);
	ck_assert_uint_eq(counted(l)->begun, counted(l)->finished + 1);
	ck_assert_uint_eq(l->tx.failed, 0);
}

// Fixed times and a path of 10 ms each way: a response of one segment takes the service time and a
// round trip, and the next request follows a pause later. The connection is opened once.
TEST(requests_follow_responses) {
	struct link *l = LINK(.group = "{cc: newreno, stop: 990ms, source: {request: {think: 30ms, "
				       "service: 5ms, times: fixed, sizes: {mean: 100B}}}}");

	l->oracle = false;
	link_run(l, 2 * S);
	// Requests at 30 ms + k 55 ms and until 990 ms: 18, k from 0 to 17.
	ck_assert_uint_eq(counted(l)->finished, 18);
	ck_assert_uint_eq(counted(l)->completion.max, 25 * MS);
	ck_assert_uint_eq(counted(l)->completion.sum, 18 * 25 * MS);
	ck_assert_uint_eq(l->syn_count, 1);
	ck_assert_uint_eq(l->tx.done, 1); // closed at the stop
	ck_assert_uint_eq(l->rx.receiver[0].rcv_nxt, 18 * 100);
}

// Sizes that are no whole segments, on one connection: each byte arrives once, whatever is lost,
// reordered or SACKed. What was padded to segments made 1448 bytes of 100, on the wire and in the
// goodput.
TEST(what_is_written_arrives_and_no_more) {
	static const struct {
		const char *group;
		double loss;
		uint64_t seed;
	} cases[] = {
		{"closed: {think: 1ms, connection: keep", 0, 1},
		{"closed: {think: 1ms, connection: keep", 0.05, 2},
		{"request: {think: 1ms", 0.2, 3},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char group[256];
		struct link *l;
		struct noted n = {0};
		uint64_t bytes = 0;

		snprintf(group, sizeof(group),
			"{cc: newreno, stop: 10s, source: {%s, sizes: {law: exponential, "
			"mean: 3kB}}}}",
			cases[i].group);
		l = LINK(.group = group, .seed = cases[i].seed, .loss = cases[i].loss,
			.ack_loss = cases[i].loss, .reorder = cases[i].loss, .late_ns = 30 * MS);
		l->oracle = false;
		run_noting(l, &n, 200 * S);
		for (uint32_t k = 0; k < n.count; k++)
			bytes += n.bytes[k];
		ck_assert_uint_gt(n.count, 30);
		ck_assert_uint_lt(n.count, NOTED);
		ck_assert_uint_eq(counted(l)->finished, n.count);
		ck_assert_uint_eq(l->rx.received.bytes, bytes);
		ck_assert_uint_eq(l->tx.flow[0].count.acked_bytes, bytes);
		ck_assert_uint_eq(l->tx.done, 1);
		link_close(l);
	}
}

// Ten writes of 2000 bytes at once, the first segment lost: the ACKs of the others are SACKs of
// long and short segments.
TEST(short_segments_in_flight_are_sacked_and_sent_again) {
	struct link *l =
		LINK(.group = "{cc: {newreno: {initial: 40}}, stop: 3s, ack_every: 1, source: "
			      "{video: {ladder: 200kbit, segment: 80ms}}}",
			.lose = 0x55);
	const struct flow *f = link_flow(l);

	l->oracle = false;
	link_run(l, 20 * S);
	ck_assert_uint_ge(f->count.retransmits, 4);
	ck_assert_uint_eq(l->rx.received.bytes, f->total_bytes);
	ck_assert_uint_eq(f->count.acked_bytes, f->total_bytes);
	ck_assert_uint_eq(f->total_bytes % 2000, 0);
	ck_assert_uint_eq(counted(l)->finished, f->total_bytes / 2000);
}

// A transfer on a connection of its own takes a round trip more, for the handshake.
TEST(closed_loops_pause) {
	struct link *l = LINK(.group = "{cc: newreno, stop: 700ms, source: {closed: {think: 60ms, "
				       "times: fixed, sizes: {mean: 100B}}}}");

	l->oracle = false;
	link_run(l, 2 * S);
	// Begun at 60 ms + k 100 ms: 7.
	ck_assert_uint_eq(counted(l)->finished, 7);
	ck_assert_uint_eq(counted(l)->completion.max, 40 * MS);
	ck_assert_uint_eq(counted(l)->completion.sum, 7 * 40 * MS);
	ck_assert_uint_eq(l->syn_count, 7);
	ck_assert_uint_eq(l->rx.received.bytes, 700);
}

TEST(bulk_flows_come_and_go) {
	struct link *l =
		LINK(.group = "{cc: {fixed: {cwnd: 4}}, stop: 950ms, source: {on_off: {on: "
			      "100ms, off: 200ms, times: fixed}}}");

	l->oracle = false;
	link_run(l, 3 * S);
	// On from 200 ms; the FIN is acknowledged a round trip after the last data, at 320 ms at
	// the latest.
	ck_assert_uint_eq(l->syn_count, 3);
	ck_assert_uint_eq(counted(l)->finished, 3);
	// Data for 100 ms less the handshake: four round trips and the first window, of 4 segments.
	ck_assert_uint_ge(l->rx.received.bytes, 3 * 4 * 4 * 1448);
	ck_assert_uint_le(l->rx.received.bytes, 3 * 5 * 4 * 1448);
}

// Loss does not change what is asked for, only when: sizes and pauses are those of a network
// without loss.
TEST(closed_schedules_do_not_depend_on_the_network) {
	static const char *const groups[] = {
		"{cc: newreno, source: {closed: {think: 20ms, sizes: {law: pareto}}}}",
		"{cc: newreno, source: {closed: {think: 20ms, connection: keep, sizes: {law: "
		"exponential}}}}",
		"{cc: newreno, source: {request: {think: 20ms, service: 1ms, sizes: {law: "
		"exponential}}}}"};

	for (size_t i = 0; i < sizeof(groups) / sizeof(groups[0]); i++) {
		static struct noted clean, lossy;
		struct link *l = LINK(.group = groups[i], .seed = 9);

		memset(&clean, 0, sizeof(clean));
		memset(&lossy, 0, sizeof(lossy));
		l->oracle = false;
		run_noting(l, &clean, 20 * S);
		link_close(l);
		l = LINK(.group = groups[i], .seed = 9, .loss = 0.03, .start_ns = 987654321,
			.check_every = UINT32_MAX, .live = true);
		l->oracle = false;
		run_noting(l, &lossy, 987654321 + 20 * S);
		link_close(l);
		ck_assert_uint_gt(lossy.count, 20);
		ck_assert_uint_lt(lossy.count, clean.count);
		for (uint32_t k = 0; k < lossy.count; k++)
			ck_assert_uint_eq(clean.bytes[k], lossy.bytes[k]);
	}
}
