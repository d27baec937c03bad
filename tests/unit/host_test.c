// SPDX-License-Identifier: BSD-3-Clause
// Many connections on one host: long random runs in which every byte must arrive exactly once,
// memory that runs out, and determinism.
#include "link.h"

// Loss, lost ACKs, reordering and marks, by seed; the checker counts after every event.
static void random_world(const char *group, uint64_t seed) {
	struct link *l = LINK(.group = group, .seed = seed, .loss = (double)(seed % 7) * 0.05,
		.ack_loss = (double)(seed % 5) * 0.05, .reorder = (double)(seed % 3) * 0.05,
		.late_ns = (seed % 4) * 3 * MS, .delay_ns = seed % 2 == 0 ? 10 * MS : 300 * US,
		.iss_offset = seed % 3 == 0 ? 0u - 0x9e3779b1u - 100000u : 0, // wraps on the way
		.mark = seed * 0x9e3779b97f4a7c15u & 0x8888888888888888u);

	link_finish(l, 100000 * S);
	link_complete(l);
	ck_assert_uint_eq(l->tx.count.seg_refused + l->rx.ranges.refused, 0);
	link_close(l);
}

#define ENDS "retries: 100, rto_max: 2s, source: {size: {bytes: 400001B}}"

TEST(newreno_brings_every_byte) {
	for (uint64_t seed = 1; seed <= 42; seed++)
		random_world("{cc: newreno, " ENDS "}", seed);
}

TEST(newreno_without_sack_brings_every_byte) {
	for (uint64_t seed = 1; seed <= 42; seed++)
		random_world("{cc: newreno, sack: no, " ENDS "}", seed);
}

TEST(newreno_without_timestamps_brings_every_byte) {
	for (uint64_t seed = 1; seed <= 42; seed++)
		random_world("{cc: newreno, timestamps: no, tlp: no, " ENDS "}", seed);
}

TEST(copa_brings_every_byte) {
	for (uint64_t seed = 1; seed <= 42; seed++)
		random_world("{cc: copa, ecn: ect0, " ENDS "}", seed);
}

TEST(fixed_rate_brings_every_byte) {
	for (uint64_t seed = 1; seed <= 42; seed++)
		random_world(
			"{cc: {fixed: {cwnd: 100, rate: 20Mbit}}, ack_every: 1, " ENDS "}", seed);
}

TEST(offloading_hosts_bring_every_byte) {
	static const char *const groups[] = {"{cc: newreno, tso: linux, " ENDS "}",
		"{cc: copa, tso: 8, " ENDS "}", "{cc: cubic, tso: linux, pacing: fq, " ENDS "}",
		"{cc: bbr, pacing: fq, ecn: off, " ENDS "}", "{cc: newreno, acks: linux, " ENDS "}",
		"{cc: cubic, gro: 20us, acks: linux, tso: linux, " ENDS "}",
		"{cc: dctcp, gro: 4ms, ecn: ect0, " ENDS "}", "{cc: cubic, host: linux, " ENDS "}",
		"{cc: newreno, rwnd: 20kB, read_rate: 5Mbit, " ENDS "}"};

	for (uint64_t seed = 1; seed <= 42; seed++)
		random_world(groups[seed % 9], seed);
}

TEST(many_flows_share_a_host) {
	for (uint64_t seed = 1; seed <= 5; seed++) {
		struct link *l =
			LINK(.group = "{cc: newreno, count: 50, stagger: 1ms, jitter: 5ms, "
				      "source: {size: {bytes: 60000B}}}",
				.seed = seed, .loss = 0.05, .ack_loss = 0.05, .reorder = 0.1,
				.late_ns = MS);

		link_finish(l, 1000 * S);
		link_complete(l);
		link_close(l);
	}
}

// A flow that sends at 100 Gbit/s loses more than 65535 packets, or 2^32, in an interval: the
// record has them all.
TEST(an_interval_has_room_for_all_that_it_counts) {
	const uint64_t many = UINT32_MAX + 150000ull;
	struct link *l = LINK(.group = "{cc: newreno, source: {size: {bytes: 60000B}}}");
	const struct tel_run run = {.virtual_time = true};
	const struct tel_interval *record;
	struct tel tel;
	struct err err;

	link_finish(l, 1000 * S);
	ck_assert_int_eq(tel_open(&tel, TEL_STREAM_INTERVAL, &run, "", 16, &err), 0);
	l->tx.env.tel_interval = &tel;
	host_interval(&l->tx, 1001 * S);
	record = (const void *)tel.records;
	l->tx.flow[0].count.drops = record->drops + many;
	l->tx.flow[0].count.sent_segs = record->sent_segs + many;
	l->tx.flow[0].count.cwnd_reductions = record->cwnd_reductions + 150000u;
	host_interval(&l->tx, 1002 * S);
	host_interval(&l->tx, 1003 * S);
	ck_assert_uint_eq(tel.head, 2);
	ck_assert_uint_eq(record[1].drops, many);
	ck_assert_uint_eq(record[1].sent_segs, many);
	ck_assert_uint_eq(record[1].cwnd_reductions, 150000);
	l->tx.env.tel_interval = NULL;
	ck_assert_int_eq(tel_close(&tel, &err), 0);
}

// The arena is sized for a network of one packet, which this one is not: a flow that wants more is
// held back, its data are safe, and the count says so.
TEST(full_arena_holds_flows_back) {
	struct link *l = LINK(.group = "{cc: newreno, count: 4, "
				       "source: {size: {bytes: 400000B}}}",
		.pipe_segs = 1, .loss = 0.002, .seed = 3);

	link_finish(l, 1000 * S);
	link_complete(l);
	ck_assert_uint_gt(l->tx.count.seg_refused, 0);
	ck_assert_uint_gt(l->tx.arena.refused, 0);
	ck_assert_uint_le(l->tx.arena.used_max, (uint64_t)l->tx.arena.blocks << SEG_ORDER_MIN);
}

// Windows that the config asks for need no network to be large.
TEST(configured_windows_have_their_records) {
	static const char *const groups[] = {
		"{cc: {fixed: {cwnd: 2000}}, count: 4, source: {size: {bytes: 3MB}}}",
		"{cc: {newreno: {initial: 1000}}, count: 4, source: {size: {bytes: 1400kB}}}",
		"{cc: {copa: {min_cwnd: 1000}}, count: 4, source: {size: {bytes: 3MB}}}",
	};

	for (size_t i = 0; i < sizeof(groups) / sizeof(groups[0]); i++) {
		struct link *l = LINK(.group = groups[i], .pipe_segs = 1, .check_every = 1000);

		link_finish(l, 1000 * S);
		link_complete(l);
		ck_assert_uint_eq(l->tx.count.seg_refused, 0);
		link_close(l);
	}
}

TEST(flow_without_a_single_record_waits_its_turn) {
	struct link *l = LINK(.group = "{cc: {fixed: {cwnd: 16}}, count: 3, rto_max: 1s, "
				       "source: {size: {bytes: 30000B}}}",
		.pipe_segs = 1);
	struct seg_rec *hog[16];
	int n = 0;

	while ((hog[n] = seg_arena_get(&l->tx.arena, SEG_ORDER_MIN)) != NULL)
		n++;
	l->o.check_every = UINT32_MAX; // the hog is no flow's
	l->events = 1;
	link_run(l, 3 * S);
	ck_assert_uint_eq(l->tx.open, 3);
	ck_assert_uint_eq(l->data_count, 0);
	while (n-- > 0)
		seg_arena_put(&l->tx.arena, hog[n]);
	l->o.check_every = 0;
	link_finish(l, 10 * S);
	link_complete(l);
}

TEST(few_ranges_cost_retransmissions_not_bytes) {
	struct link *l = LINK(.group = "{cc: newreno, retries: 100, rto_max: 2s, "
				       "source: {size: {bytes: 400000B}}}",
		.loss = 0.2, .seed = 9);

	l->rx.ranges.size = 3;
	link_finish(l, 10000 * S);
	link_complete(l);
	ck_assert_uint_gt(l->rx.ranges.refused, 0);
}

TEST(same_seed_same_packets) {
	uint64_t hash[3];

	for (int i = 0; i < 3; i++) {
		struct link *l = LINK(.group = "{cc: copa, count: 5, jitter: 3ms, "
					       "source: {size: {bytes: 100000B}}}",
			.seed = i < 2 ? 1 : 2, .loss = 0.05, .reorder = 0.05, .late_ns = MS);

		link_finish(l, 1000 * S);
		hash[i] = 14695981039346656037u;
		for (uint64_t k = 0; k < min_u64(l->data_count, LINK_LOG); k++)
			hash[i] = (hash[i] ^ l->data[k].t_ns ^ l->data[k].seg.seq) * 1099511628211u;
		link_close(l);
	}
	ck_assert_uint_eq(hash[0], hash[1]);
	ck_assert_uint_ne(hash[0], hash[2]);
}

// Nothing could ever be sent: the flow probed a window it took for closed.
TEST(window_smaller_than_a_segment_is_refused) {
	static const char text[] = "flows: [{cc: newreno, mss: 9000B, rwnd: 2000B}]";
	static struct groups gs;
	struct err err;
	struct config *c = config_parse("test", text, strlen(text), &err);

	ck_assert_int_lt(groups_init(&gs, config_get(config_root(c), "flows"), &err), 0);
	ck_assert_ptr_nonnull(strstr(err.msg, "rwnd must hold a segment"));
	config_free(c);
}

// Segments of an adversary: any flags, numbers, options. Nothing crashes, nothing miscounts.
TEST(nonsense_is_survived) {
	struct rng rng;

	rng_init(&rng, 5, "nonsense");
	for (int round = 0; round < 60; round++) {
		struct link *l = HAND(.group = "{cc: newreno, ecn: ect0, retries: 100}");
		struct flow *f = link_flow(l);
		uint64_t now_ns = 40 * MS;

		for (int n = 0; n < 400 && f->state == FLOW_OPEN; n++) {
			struct seg s = hand_ack(l, f->una, now_ns);
			uint64_t draw = rng_u64(&rng);

			s.ack += (uint32_t)(draw % 5) * 1000;
			if (draw >> 8 & 1)
				s.ack = flow_seq(f,
					f->una
						+ (f->nxt > f->una ? (draw >> 16)
									% (f->nxt - f->una + 1)
								   : 0));
			if ((draw >> 9 & 15) == 0)
				s.flags = (uint8_t)(rng_u64(&rng) & ~(uint64_t)SEG_RST);
			if ((draw >> 13 & 15) == 0)
				s.ack = (uint32_t)rng_u64(&rng);
			if ((draw >> 17 & 15) == 0)
				s.seq = (uint32_t)rng_u64(&rng);
			if ((draw >> 21 & 15) == 0)
				s.window = (uint16_t)rng_u64(&rng);
			if ((draw >> 25 & 15) == 0)
				s.tsecr = (uint32_t)rng_u64(&rng);
			if ((draw >> 29 & 15) == 0)
				s.len = (uint16_t)(rng_u64(&rng) % 1448);
			s.sack_count = (uint8_t)(rng_u64(&rng) % 5);
			for (uint32_t i = 0; i < s.sack_count; i++) {
				uint64_t from = f->una + 1 + rng_u64(&rng) % 20;

				s.sack[i].start = flow_seq(f, from);
				s.sack[i].end = flow_seq(f, from + rng_u64(&rng) % 5);
				if (rng_u64(&rng) % 8 == 0)
					s.sack[i].end = (uint32_t)rng_u64(&rng);
				if (rng_u64(&rng) % 8 == 0)
					s.sack[i].start = (uint32_t)rng_u64(&rng);
			}
			hand_feed(l, &s, now_ns);
			now_ns += rng_u64(&rng) % (10 * MS);
			if (rng_u64(&rng) % 50 == 0)
				now_ns += S;
		}
		link_close(l);
	}
}

TEST(counts_and_totals_agree) {
	struct link *l = LINK(.group = "{cc: newreno, source: {size: {bytes: 500000B}}}",
		.loss = 0.03, .seed = 2);
	const struct flow *f = link_flow(l);

	link_finish(l, 1000 * S);
	link_complete(l);
	ck_assert_uint_eq(l->tx.count.data_tx_segs, l->data_count);
	ck_assert_uint_eq(f->count.sent_segs, l->data_count - 1); // without the FIN
	ck_assert_uint_eq(f->count.sent_segs, f->data_segs + f->count.retransmits);
	ck_assert_uint_eq(f->delivered, f->data_segs + 1);
	ck_assert_uint_eq(l->tx.count.tx_segs, l->data_count + l->ctl_count);
	ck_assert_uint_eq(l->rx.count.tx_segs, l->acks_count);
	ck_assert_uint_ge(l->died + f->count.spurious, f->count.retransmits - f->count.spurious);
}

// Live, the figures start anew for a few flows at a time. What is counted from then on by each,
// over the time since the mean of those moments, is the goodput.
TEST(figures_start_by_and_by) {
	struct link *l = LINK(.group = "{count: 10, cc: {fixed: {cwnd: 50, rate: 8Mbit}}}");
	const struct host *h = &l->tx;
	uint64_t counted = 0;

	link_run(l, 1 * S);
	host_measure_some(&l->tx, 0, 4, l->now_ns);
	ck_assert_uint_eq(h->measure_ns, 1 * S);
	link_run(l, 2 * S);
	host_measure_some(&l->tx, 4, 4, l->now_ns);
	link_run(l, 2 * S + 500 * MS);
	host_measure_some(&l->tx, 8, 2, l->now_ns);
	ck_assert_uint_eq(h->measure_ns, (4 * 1000 + 4 * 2000 + 2 * 2500) * MS / 10);
	link_run(l, 10 * S);
	for (uint32_t i = 0; i < h->flows; i++)
		counted += h->flow[i].count.acked_bytes - h->flow[i].at_measure.acked_bytes;
	double goodput_bps = host_figures(h, l->now_ns).goodput_bps;
	ck_assert_double_eq_tol(
		goodput_bps, (double)counted * 8e9 / (double)(10 * S - h->measure_ns), 1);
	ck_assert_double_eq_tol(goodput_bps, 80e6, 0.2e6);
}

static void ignore(void *ctx, uint32_t id, const struct seg *seg, uint32_t n, uint8_t ecn,
	uint64_t due_ns, bool paced) {
}

// Whatever number of hosts shares the flows, each flow and its receiver are on one of them, as they
// would be on the only one.
TEST(shares_are_all_flows_once_and_the_same) {
	struct link *l = LINK(.group = "{count: 7, cc: newreno, jitter: 1s, source: "
				       "{size: {bytes: 1MB}}}, {count: 60, cc: copa, start: 5s}",
		.seed = 5);
	const struct host *all = &l->tx;

	for (uint32_t n = 1; n <= 16; n++) {
		uint32_t flows = 0;

		for (uint32_t k = 0; k < n; k++) {
			struct host_env env = {.output = ignore,
				.seed = 5,
				.pipe_segs = 100,
				.flows = true,
				.shard_id = k,
				.shards = n,
				.receivers = host_shard_flows(67, k, n) + 3};
			struct host h;

			ck_assert_int_eq(host_init(&h, &l->groups, &env, NULL), 0);
			for (uint32_t i = 0; i < h.flows; i++) {
				uint32_t id = h.flow[i].id;
				const struct flow *f = &h.flow[i], *same = &all->flow[id];

				ck_assert_uint_eq(endpoint_index(&h.endpoint, id), i);
				ck_assert_uint_eq(id, k + i * n);
				ck_assert_uint_eq(f->group, same->group);
				ck_assert_uint_eq(f->start_ns, same->start_ns);
				ck_assert_uint_eq(f->total_bytes, same->total_bytes);
				ck_assert_uint_eq(f->iss, same->iss);
				ck_assert_uint_eq(h.receiver[i].id, id);
				ck_assert_uint_eq(h.receiver[i].group_index, f->group);
			}
			ck_assert_uint_eq(h.receiver[h.flows].ack_every, 0); // a spare
			flows += h.flows;
			host_fini(&h);
		}
		ck_assert_uint_eq(flows, all->flows);
	}
}

// Each control says what its parameters give a flow at once; small windows are in the rings all
// flows have.
TEST(given_windows_are_counted) {
	static const struct {
		const char *group;
		uint64_t segs;
	} cases[] = {
		{"{count: 3, cc: {fixed: {cwnd: 1000}}}", 3000},
		{"{count: 3, cc: {newreno: {initial: 100}}}", 300},
		{"{count: 3, cc: {cubic: {initial: 200}}}", 600},
		{"{count: 3, cc: {bbr: {initial: 300}}}", 900},
		{"{count: 3, cc: {copa: {initial: 400, min_cwnd: 20}}}", 1200},
		{"{count: 3, cc: {copa: {initial: 20, min_cwnd: 500}}}", 1500},
		{"{count: 3, cc: {cubic: {initial: 16}}}", 0},
		{"{count: 3, cc: {copa: {dialect: paper, initial: 400}}}", 0}, // has no bound
		{"{count: 3, cc: {fixed: {cwnd: 1000}}, rwnd: 144800}", 303},
		{"{count: 3, cc: {fixed: {cwnd: 1000}}}, {count: 2, cc: {bbr: {initial: 17}}}",
			3034},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct link *l = LINK(.group = cases[i].group);

		ck_assert_msg(host_window_segs(&l->groups) == cases[i].segs, "%s: %llu",
			cases[i].group, (unsigned long long)host_window_segs(&l->groups));
		link_close(l);
	}
}

// CoreScale's cell with round trips of 200 ms has 5000 flows with windows of 6 MiB, 4346 segments,
// and kept 8.2 million records while holes waited for timeouts: more than came of its network.
TEST(peers_windows_bound_the_scoreboard) {
	struct link *l = LINK(.group = "{count: 4999, cc: bbr, rwnd: 6MiB}, {count: 1, "
				       "cc: cubic, rwnd: 1MiB}");

	ck_assert_uint_eq(host_peer_window_segs(&l->groups), 5001 * 8192);
}

// Telemetry calls a flow's ends by the addresses it has: the usual ones, or those of a live port.
TEST(flow_records_name_both_ends) {
	static struct tel_flows record[8];
	static struct tel_header header;
	struct tel stream = {.ring = &header,
		.records = (uint8_t *)record,
		.record_size = sizeof(record[0]),
		.limit = 8,
		.mask = 7};
	struct host_env env = {.tel_flows = &stream, .flows = true};
	struct link *l = LINK(.group = "{cc: newreno, count: 2}");
	struct err err;
	struct host h;

	env.segs_per_s = env.pipe_segs = 1024;
	for (int live = 0; live < 2; live++) {
		env.src_ip = live ? 0x0a000001 : 0;
		env.dst_ip = live ? 0x0a000100 : 0;
		env.dst_port = live ? 443 : 0;
		ck_assert_msg(host_init(&h, l->tx.groups, &env, &err) == 0, "%s", err.msg);
		h.flow[1].state = FLOW_SYN_SENT;
		host_still_open(&h, MS);
		ck_assert_uint_eq(stream.head, live + 1u);
		ck_assert_uint_eq(record[live].src_ip, live ? 0x0a000001 : 0xc6120001);
		ck_assert_uint_eq(record[live].dst_ip, live ? 0x0a000100 : 0xc6130001);
		ck_assert_uint_eq(record[live].src_port, 10001);
		ck_assert_uint_eq(record[live].dst_port, live ? 443 : 5001);
		host_fini(&h);
	}
}

// What is not known is null: of a kernel its losses and reductions, without a sample the RTT, live
// the path's drops.
TEST(summary_has_no_number_that_is_not_known) {
	static const char *const unknown[] = {"lost_segs", "cwnd_reductions", "ecn_echoes",
		"timeouts", "spurious_timeouts", "spurious_recoveries", "rtt_mean_ns",
		"rtx_overhead", "drops"};
	struct link *l = LINK(.group = "{cc: newreno}");
	struct group *g = (struct group *)(uintptr_t)&l->tx.groups->group[0];
	const struct host *tx = &l->tx;
	char *text = NULL;
	size_t size = 0, nulls[2] = {3, 9}; // of our own before any segment: RTT, overhead, drops

	l->tx.env.virtual_time = false;
	for (int guest = 0; guest < 2; guest++) {
		FILE *out = open_memstream(&text, &size);
		struct json j;

		g->stack.guest = guest != 0;
		json_begin(&j, out);
		host_summary(&tx, 1, &j, S);
		json_end(&j);
		fclose(out);
		for (size_t i = 0; i < sizeof(unknown) / sizeof(unknown[0]); i++) {
			char field[64];

			snprintf(field, sizeof(field), "\"%s\": null", unknown[i]);
			ck_assert_int_eq(strstr(text, field) != NULL, i >= 9 - nulls[guest]);
		}
		free(text);
	}
	g->stack.guest = false;
}

// Who ends first leaves the other none of its connections; its own figures say that they were open.
TEST(resets_close_what_is_open) {
	for (int receiver = 0; receiver < 2; receiver++) {
		struct link *l = LINK(.group = "{cc: {fixed: {cwnd: 10}}, count: 3}");
		struct host *h = receiver ? &l->rx : &l->tx;
		uint64_t before;

		link_run(l, 200 * MS);
		before = h->count.tx_segs;
		host_reset_some(h, 1, 5, l->now_ns);
		ck_assert_uint_eq(h->count.tx_segs, before + 2);
		link_run(l, 400 * MS);
		for (uint32_t i = 0; i < 3; i++) {
			bool reset = i > 0;

			ck_assert_int_eq(
				l->tx.flow[i].state, reset && receiver ? FLOW_FAILED : FLOW_OPEN);
			ck_assert_int_eq(l->rx.receiver[i].state,
				reset && !receiver ? RECEIVER_CLOSED : RECEIVER_OPEN);
		}
		link_close(l);
	}
}

// Two groups of one control are one observer; controls that no group has are none.
TEST(only_controls_of_the_groups_are_named_as_observers) {
	struct link *l = LINK(.group = "{count: 2, cc: copa}, {cc: fixed}, {cc: copa}");
	static struct tel_run run;

	groups_observers(&l->groups, &run);
	ck_assert_uint_eq(run.observers, 1);
	ck_assert_uint_eq(tel_observer_number(&run, TEL_STREAM_CC, "copa"), 0);
	ck_assert_uint_eq(tel_observer_number(&run, TEL_STREAM_CC, "cubic"), UINT32_MAX);
}

// An lcore without a port of a role has a host that holds nothing: zeros, never initialised.
TEST(a_host_that_holds_nothing_ends_like_any_other) {
	static struct host none;

	host_still_open(&none, MS);
	ck_assert_uint_eq(host_interval_some(&none, 0, 100, MS), 0);
	host_reset_some(&none, 0, 100, MS);
	ck_assert_uint_eq(workload_waiting(&none.endpoint, 0, MS), 0);
	ck_assert_uint_eq(receivers_done(&none.endpoint), 0);
	ck_assert_int_eq(host_had_memory(&none, NULL), 0);
	host_fini(&none);
}
