// SPDX-License-Identifier: BSD-3-Clause
#include "common/watch/watch.h"

#include "test.h"

#include <stdio.h>
#include <string.h>

#define STEP_NS (100 * NS_PER_MS)
#define BEGUN_NS (2 * NS_PER_S)

static struct watch watch;
static struct watch_sample now;
static struct watch_lcore lcore;
static struct fact fact;
static struct facts facts;

static void begin(void) {
	memset(&watch, 0, sizeof(watch));
	memset(&now, 0, sizeof(now));
	watch.self = "sender";
	watch.packets = "paced packets";
	watch.cpu = 1;
	watch.ports = 2;
	watch.port_name[0] = "left";
	watch.port_name[1] = "right";
	watch.port_peer[0] = "the program at the other end of net_memif0, port left,";
	watch.port_peer[1] = "the kernel behind interface veth1, port right,";
	now.count.begun_ns = BEGUN_NS;
	now.count.now_ns = BEGUN_NS;
	now.port_up[0] = now.port_up[1] = true;
	ck_assert(watch_add(&watch, &now, false));
}

// 100 ms go by, half of them busy, a thousand packets leave; what the test changed before comes on
// top.
static void step(void) {
	now.count.now_ns += STEP_NS;
	now.count.busy_ns += STEP_NS / 2;
	now.count.pkts += 1000;
	ck_assert(watch_add(&watch, &now, false));
	now.stall_max_ns = now.late_max_ns = now.waiting_max[0] = now.waiting_max[1] = 0;
}

static void until(double run_s) {
	while (now.count.now_ns < BEGUN_NS + (uint64_t)(run_s * 1e9))
		step();
}

static const char *sentence(uint32_t i) {
	ck_assert_uint_lt(i, watch.episodes);
	watch_fact(&watch, &watch.episode[i], &fact);
	return fact.sentence;
}

TEST(an_iteration_may_take_its_work) {
	watch_lcore_init(&lcore, 1, 500, 10000);
	watch_time(&lcore, 7 * NS_PER_S); // the first has no length
	watch_time(&lcore, 7 * NS_PER_S + WATCH_STALL_NS);
	ck_assert_uint_eq(lcore.count.stalls, 0);
	lcore.moved = 32;
	watch_time(&lcore, lcore.began_ns + WATCH_STALL_NS + 16000);
	ck_assert_uint_eq(lcore.count.stalls, 0);
	lcore.moved = 32;
	uint64_t from_ns = lcore.began_ns;
	watch_time(&lcore, from_ns + WATCH_STALL_NS + 16001);
	ck_assert_uint_eq(lcore.count.stalls, 1);
	ck_assert_uint_eq(lcore.count.stalled_ns, 36001);
	ck_assert_uint_eq(lcore.stall_at_ns, from_ns);
	ck_assert_uint_eq(lcore.stall_max_ns, 36001);
	ck_assert_uint_eq(lcore.stall.total, 1);
	// Its own long work is none, and a longer stall is the worst.
	watch_resume(&lcore, lcore.began_ns + NS_PER_S);
	from_ns = lcore.began_ns;
	watch_time(&lcore, from_ns + NS_PER_MS);
	ck_assert_uint_eq(lcore.count.stalled_ns, NS_PER_MS + 36001);
	ck_assert_uint_eq(lcore.stall_at_ns, from_ns);
	// Disturbed is what was due in it or for four times as long.
	ck_assert(watch_disturbed(&lcore, 0, from_ns + 5 * NS_PER_MS - 1));
	ck_assert(!watch_disturbed(&lcore, 0, from_ns + 5 * NS_PER_MS));
	// To be quiesced for the drivers disturbs as much, and is no stall.
	uint64_t quiesced_ns = from_ns + NS_PER_S;
	watch_quiesced(&lcore, quiesced_ns, quiesced_ns + 300);
	ck_assert(watch_disturbed(&lcore, 0, quiesced_ns + 1499));
	ck_assert(!watch_disturbed(&lcore, 0, quiesced_ns + 1500));
	watch_time(&lcore, quiesced_ns + 300 + WATCH_STALL_NS);
	ck_assert_uint_eq(lcore.count.stalls, 2);
}

TEST(a_stall_is_over_when_there_is_nothing_to_do) {
	watch_lcore_init(&lcore, 1, 500, 10000);
	watch_time(&lcore, NS_PER_S);
	watch_time(&lcore, NS_PER_S + NS_PER_MS);
	lcore.moved = 32;
	watch_time(&lcore, NS_PER_S + NS_PER_MS + 9000);
	ck_assert(watch_disturbed(&lcore, 0, NS_PER_S + 4 * NS_PER_MS));
	watch_idle(&lcore, NS_PER_S + NS_PER_MS + 9100);
	ck_assert(watch_disturbed(&lcore, 0, NS_PER_S + NS_PER_MS + 8999));
	ck_assert(!watch_disturbed(&lcore, 0, NS_PER_S + NS_PER_MS + 9000));
	watch_idle(&lcore, NS_PER_S + NS_PER_MS + 9200); // no stall comes back
	ck_assert(!watch_disturbed(&lcore, 0, NS_PER_S + NS_PER_MS + 9000));
}

// What iterations may take for their packets follows from what they took: a burst of 64 hid 64 us.
TEST(work_is_learnt) {
	uint64_t now_ns = NS_PER_S;

	watch_lcore_init(&lcore, 1, 1000, 10000);
	watch_time(&lcore, now_ns);
	for (int i = 0; i < 128; i++) {
		lcore.moved = 32;
		watch_time(&lcore, now_ns += 3200);
	}
	lcore.moved = 64;
	watch_time(&lcore, now_ns += WATCH_STALL_NS + 64000);
	ck_assert_uint_eq(lcore.count.stalls, 0);
	watch_lcore_init(&lcore, 1, 1000, 10000);
	watch_time(&lcore, now_ns);
	for (int i = 0; i < 128; i++) {
		lcore.moved = 32;
		watch_time(&lcore, now_ns += 3200);
	}
	watch_show(&lcore, now_ns);
	ck_assert_uint_eq(lcore.pkt_ns, 200);
	lcore.moved = 64;
	watch_time(&lcore, now_ns += WATCH_STALL_NS + 64 * 200);
	ck_assert_uint_eq(lcore.count.stalls, 0);
	lcore.moved = 64;
	watch_time(&lcore, now_ns += WATCH_STALL_NS + 64 * 200 + 1);
	ck_assert_uint_eq(lcore.count.stalls, 1);
	// Never more than was allowed at first.
	for (int i = 0; i < 1000; i++) {
		lcore.moved = 32;
		watch_time(&lcore, now_ns += 20000);
	}
	watch_show(&lcore, now_ns);
	ck_assert_uint_eq(lcore.pkt_ns, 1000);
}

// 90 iterations of 100 ns and 10 of 9 us: a moment is in a long one for 10/11 of the time, and half
// of those moments are followed by 4.5 us or more of it.
TEST(floor_is_what_is_left_of_an_iteration) {
	uint64_t now_ns = NS_PER_S;

	watch_lcore_init(&lcore, 1, 500, 10000);
	ck_assert_uint_eq(watch_floor_ns(&lcore, 0.5), 0);
	watch_time(&lcore, now_ns);
	for (int i = 0; i < 100; i++) {
		now_ns += i % 10 == 0 ? 9000 : 100;
		watch_idle(&lcore, now_ns);
		watch_time(&lcore, now_ns);
	}
	ck_assert_double_eq_tol((double)watch_floor_ns(&lcore, 1 - 5 / 11.0), 4500, 200);
	ck_assert_double_eq_tol((double)watch_floor_ns(&lcore, 0.99), 9000 - 99, 200);
	ck_assert_uint_le(watch_floor_ns(&lcore, 0), 100);
	ck_assert_uint_le(watch_floor_ns(&lcore, 1), 9000);
}

TEST(a_full_port_is_timed) {
	struct watch_count seen;

	watch_lcore_init(&lcore, 2, 500, 10000);
	watch_waiting(&lcore, 1, 0, 1000);
	watch_waiting(&lcore, 1, 40, 2000);
	watch_waiting(&lcore, 1, 30, 3000);
	ck_assert(watch_disturbed(&lcore, 1, 2999));
	ck_assert(!watch_disturbed(&lcore, 1, 3000));
	ck_assert(!watch_disturbed(&lcore, 0, 2999));
	watch_show(&lcore, 4000); // counts what is not over yet
	watch_shown(&lcore, &seen);
	ck_assert_uint_eq(seen.port[1].full_ns, 2000);
	ck_assert_uint_eq(seen.now_ns, 4000);
	watch_waiting(&lcore, 1, 0, 5500);
	// Its backlog disturbs the others, until it is done.
	ck_assert(watch_disturbed(&lcore, 0, 5500 + 4 * 3500 - 1));
	ck_assert(!watch_disturbed(&lcore, 0, 5500 + 4 * 3500));
	lcore.began_ns = 6000;
	watch_idle(&lcore, 6100);
	ck_assert(!watch_disturbed(&lcore, 0, 6000));
	watch_waiting(&lcore, 1, 0, 9000);
	ck_assert_uint_eq(lcore.count.port[1].full_ns, 3500);
	ck_assert_uint_eq(lcore.count.port[0].full_ns, 0);
	ck_assert_uint_eq(lcore.waiting_max[1], 40);
	watch_shown(&lcore, &seen); // until it is shown again
	ck_assert_uint_eq(seen.port[1].full_ns, 2000);
}

TEST(what_leaves_late_is_counted) {
	watch_lcore_init(&lcore, 1, 500, 10000);
	watch_left(&lcore, 32, 0, 900);
	watch_left(&lcore, 16, 3, 12000);
	watch_left(&lcore, 16, 0, 400);
	ck_assert_uint_eq(lcore.count.pkts, 64);
	ck_assert_uint_eq(lcore.count.late_pkts, 3);
	ck_assert_uint_eq(lcore.late_max_ns, 12000);
}

TEST(a_quiet_run_is_ok) {
	begin();
	for (int i = 0; i < 50; i++) {
		now.count.stalled_ns +=
			1990 * NS_PER_US; // a timer's tick in a virtual machine, say
		now.stall_max_ns = 990 * NS_PER_US;
		now.count.late_pkts += 9;
		now.late_max_ns = 50 * NS_PER_US;
		now.count.port[0].full_ns += 9 * NS_PER_MS;
		now.clock_offset_ns = i % 2 == 0 ? 9000 : -9000;
		step();
	}
	watch_finish(&watch);
	ck_assert_uint_eq(watch.episodes, 0);
	facts.count = 0;
	watch_facts(&watch, 1, &facts);
	ck_assert_uint_eq(facts.count, 0);
}

TEST(one_long_stall_is_told) {
	begin();
	now.count.stalled_ns += NS_PER_MS;
	now.stall_max_ns = NS_PER_MS;
	now.stall_at_ns = now.count.now_ns + 5 * NS_PER_MS;
	step();
	ck_assert_uint_eq(watch.episodes, 1);
	ck_assert_uint_eq(watch.episode[0].to_ns - watch.episode[0].from_ns, NS_PER_MS);
}

// What it is said to have stolen in that time is that one's, and not what was beside it.
TEST(short_stalls_beside_a_long_one) {
	begin();
	now.count.stalled_ns += 10 * NS_PER_MS;
	now.stall_max_ns = 8 * NS_PER_MS;
	now.stall_at_ns = now.count.now_ns + 50 * NS_PER_MS;
	step();
	ck_assert_str_eq(sentence(0),
		"lcore 1 had no CPU for 100 % of the time from 0.05 s to 0.06 s (worst: 8.0 ms at "
		"0.05 s): other programs on it had 0.0 % of that, the hypervisor's other guests "
		"0.0 %, and the kernel or a stop of the process the rest");
}

TEST(before_the_run_nothing_counts) {
	begin();
	watch.begun = false;
	now.count.begun_ns = NEVER_NS;
	now.count.stalled_ns = 5 * NS_PER_S;
	ck_assert(watch_add(&watch, &now, false));
	ck_assert(!watch.begun);
	now.count.begun_ns = now.count.now_ns;
	step();
	ck_assert(watch.begun);
	step();
	ck_assert_uint_eq(watch.episodes, 0);
}

// The first sample after the run's begin set the count from which losses were taken: those before
// it were in no verdict.
TEST(losses_of_the_first_stretch_count) {
	begin();
	watch.begun = false;
	now.count.begun_ns = NEVER_NS;
	now.count.lost = 7; // before the run
	ck_assert(watch_add(&watch, &now, false));
	now.count.begun_ns = now.count.now_ns + 10 * NS_PER_MS;
	now.count.lost += 100;
	step();
	now.count.lost += 20;
	step();
	ck_assert_uint_eq(watch.episodes, 1);
	ck_assert_int_eq(watch.episode[0].cause, WATCH_TELEMETRY);
	ck_assert_uint_eq(watch.episode[0].count, 120);
	ck_assert_uint_eq(watch.episode[0].from_ns, now.count.begun_ns);
}

// A process that was stopped for 212 ms: sampled only after it, dated to the nanosecond.
TEST(a_stop_is_the_hosts) {
	begin();
	until(3.1);
	now.count.now_ns += 212 * NS_PER_MS;
	now.count.stalled_ns += 213 * NS_PER_MS;
	now.stall_max_ns = 212 * NS_PER_MS;
	now.stall_at_ns = BEGUN_NS + 3180 * NS_PER_MS;
	now.waited_ns += 21300 * NS_PER_US;
	now.missed += 7;
	now.count.late_pkts += 3; // its victims were not counted as late
	step();
	until(5);
	watch_finish(&watch);
	ck_assert_uint_eq(watch.episodes, 1);
	ck_assert_uint_eq(watch.episode[0].from_ns, BEGUN_NS + 3180 * NS_PER_MS);
	ck_assert_uint_eq(watch.episode[0].to_ns, BEGUN_NS + 3392 * NS_PER_MS);
	ck_assert_str_eq(sentence(0),
		"lcore 1 had no CPU for 100 % of the time from 3.18 s to 3.39 s (worst: 212 ms at "
		"3.18 s): other programs on it had 10 % of that, the hypervisor's other guests "
		"0.0 %, and the kernel or a stop of the process the rest, "
		"and 7 frames were not received");
	facts.count = 0;
	facts_say(&facts, "interrupted", "interrupted");
	watch_facts(&watch, 1, &facts);
	ck_assert_uint_eq(facts.count, 2); // how the run ended comes first
	ck_assert_str_eq(facts_verdict(&facts), "interrupted");
	ck_assert_str_eq(facts.fact[1].sentence, sentence(0));
}

TEST(many_short_stalls_are_one_episode) {
	begin();
	for (int i = 0; i < 10; i++) {
		now.count.stalled_ns += 3 * NS_PER_MS;
		now.steal_ns += 3 * NS_PER_MS;
		now.stall_max_ns = i == 6 ? 2 * NS_PER_MS : NS_PER_MS;
		now.stall_at_ns = now.count.now_ns + 10 * NS_PER_MS;
		step();
		step(); // an undisturbed one between two
	}
	watch_finish(&watch);
	ck_assert_uint_eq(watch.episodes, 1);
	ck_assert_str_eq(sentence(0),
		"lcore 1 had no CPU for 1.6 % of the time from 0.0 s to 1.9 s (worst: 2.0 ms at "
		"1.21 s): other programs on it had 0.0 % of that, the hypervisor's other guests "
		"100 %, and the kernel or a stop of the process the rest");
}

TEST(a_busy_lcore_is_the_bottleneck) {
	begin();
	until(12.3);
	for (int i = 0; i < 18; i++) {
		now.count.busy_ns += 49 * NS_PER_MS;
		now.count.late_pkts += 10;
		now.late_max_ns = i == 9 ? 300 * NS_PER_US : 40 * NS_PER_US;
		step();
	}
	until(16);
	now.missed += 5; // and once it only lost frames
	step();
	watch_finish(&watch);
	ck_assert_uint_eq(watch.episodes, 2);
	ck_assert_str_eq(sentence(0),
		"the sender was the bottleneck from 12.3 s to 14.1 s: its lcore was 99 % busy and "
		"1.0 % of its paced packets left late, up to 300 us");
	ck_assert_str_eq(sentence(1),
		"the sender fell behind from 16.00 s to 16.10 s: its lcore was 50 % busy, "
		"and 5 frames were not received");
}

TEST(a_slow_consumer_is_named) {
	begin();
	until(2);
	for (int i = 0; i < 3; i++) {
		now.count.port[1].full_ns += 70 * NS_PER_MS;
		now.count.port[1].dropped += i == 2 ? 12 : 0;
		now.waiting_max[1] = 512;
		now.port_up[1] = i < 2; // found to be down at the third
		step();
	}
	until(4);
	watch_finish(&watch);
	ck_assert_uint_eq(watch.episodes, 1);
	ck_assert_str_eq(sentence(0),
		"the kernel behind interface veth1, port right, was the bottleneck from 2.00 s to "
		"2.20 s: the port was full for 140 ms, up to 512 packets waited and "
		"0 were dropped");
}

// After our own stall a port may be full for as long, in this stretch or in the next.
TEST(a_stall_excuses_full_ports) {
	begin();
	now.count.stalled_ns += 20 * NS_PER_MS;
	now.stall_max_ns = 20 * NS_PER_MS;
	now.stall_at_ns = now.count.now_ns + 75 * NS_PER_MS;
	now.count.port[0].full_ns += 25 * NS_PER_MS;
	step();
	now.count.port[0].full_ns += 15 * NS_PER_MS;
	now.missed += 100;
	step();
	until(1);
	ck_assert_uint_eq(watch.episodes, 1);
	ck_assert_int_eq(watch.episode[0].cause, WATCH_HOST);
	now.count.port[0].full_ns += 15 * NS_PER_MS;
	step();
	ck_assert_uint_eq(watch.episodes, 2);
}

// Packets late beside stalls are theirs, unless the lcore had no rest between them either.
TEST(a_stall_excuses_lateness_of_an_lcore_with_rests) {
	begin();
	for (int saturated = 0; saturated < 2; saturated++) {
		now.count.stalled_ns += 10 * NS_PER_MS;
		now.stall_max_ns = 2 * NS_PER_MS;
		now.count.busy_ns +=
			saturated * 42 * NS_PER_MS; // 92 ms of 100, 10 of them stalled: 91 %
		now.count.late_pkts += 50;
		now.late_max_ns = NS_PER_MS;
		step();
		ck_assert_uint_eq(watch.episodes, 1 + (uint32_t)saturated);
	}
	ck_assert_int_eq(watch.episode[0].cause, WATCH_HOST);
	ck_assert_int_eq(watch.episode[1].cause, WATCH_LCORE);
}

TEST(losses_come_last) {
	begin();
	until(1);
	for (int i = 0; i < 5; i++) {
		now.count.lost += 100;
		now.count.no_buffer += 2;
		now.clock_offset_ns = -23000;
		step();
	}
	now.clock_offset_ns = 0;
	now.count.stalled_ns += 2 * NS_PER_MS;
	now.stall_max_ns = 400 * NS_PER_US;
	step();
	watch_finish(&watch);
	ck_assert_uint_eq(watch.episodes, 4);
	ck_assert_int_eq(watch.episode[0].cause, WATCH_HOST);
	ck_assert_str_eq(
		sentence(1), "no buffers were left from 1.00 s to 1.50 s: 10 packets were dropped");
	ck_assert_str_eq(sentence(2),
		"telemetry lost 500 records from 1.00 s to 1.50 s: "
		"a larger ring_size or a lower level loses none");
	ck_assert_str_eq(sentence(3),
		"the clock was up to 23 us away from the kernel's from 1.00 s to 1.50 s");
}

// Which of several lcores was late is not known: the port is named, beside what the run's own
// course was.
TEST(without_times_only_losses_are_judged) {
	begin();
	watch.untimed = true;
	until(1);
	now.count.stalled_ns += 60 * NS_PER_MS;
	now.stall_max_ns = 60 * NS_PER_MS;
	now.count.port[1].full_ns += STEP_NS;
	now.count.late_pkts += 1000;
	now.clock_offset_ns = NS_PER_MS;
	step();
	ck_assert_uint_eq(watch.episodes, 0);
	now.count.no_buffer += 3;
	step();
	watch_finish(&watch);
	ck_assert_uint_eq(watch.episodes, 1);
	ck_assert_str_eq(
		sentence(0), "no buffers were left from 1.10 s to 1.20 s: 3 packets were dropped");
}

TEST(what_a_port_missed_is_no_lcores) {
	begin();
	until(1);
	now.port_missed[1] += 30;
	now.missed += 5;
	step();
	now.port_missed[1] += 12;
	step();
	until(4);
	watch_finish(&watch);
	ck_assert_uint_eq(watch.episodes, 2);
	ck_assert_str_eq(sentence(0),
		"the sender fell behind from 1.00 s to 1.10 s: its lcore was 50 % busy, "
		"and 5 frames were not received");
	ck_assert_str_eq(sentence(1),
		"port right lost 42 frames from 1.00 s to 1.20 s: "
		"an lcore that receives there was late");
	ck_assert_str_eq(fact.cause, "missed");
}

// However many there are, they fit, and nothing of them is lost.
TEST(episodes_are_bounded) {
	uint64_t bad_ns = 0;

	begin();
	for (uint64_t i = 0; i < 500; i++) {
		now.count.stalled_ns += (2 + i % 7) * NS_PER_MS;
		now.stall_max_ns = NS_PER_MS;
		now.stall_at_ns = now.count.now_ns;
		now.count.port[i % 2].full_ns += 50 * NS_PER_MS;
		step();
		for (uint64_t k = 0; k < 12 + i % 5; k++)
			step();
		ck_assert_uint_le(watch.episodes, WATCH_EPISODES_MAX);
	}
	watch_finish(&watch);
	for (uint32_t i = 0; i < watch.episodes; i++) {
		ck_assert_uint_lt(watch.episode[i].from_ns, watch.episode[i].to_ns);
		bad_ns += watch.episode[i].cause == WATCH_HOST ? watch.episode[i].bad_ns : 0;
		if (i > 0)
			ck_assert_uint_ge(watch.episode[i - 1].bad_ns, watch.episode[i].bad_ns);
	}
	ck_assert_uint_eq(bad_ns, now.count.stalled_ns);
}

TEST(a_sample_too_soon_waits) {
	begin();
	now.count.now_ns += 49 * NS_PER_MS;
	ck_assert(!watch_add(&watch, &now, false));
	ck_assert(watch_add(&watch, &now, true));
	ck_assert(!watch_add(&watch, &now, true)); // no time passed
}

TEST(facts_name_times_and_causes) {
	char *out = NULL;
	size_t size = 0;
	FILE *f = open_memstream(&out, &size);
	struct json j;

	begin();
	until(1);
	now.count.port[0].full_ns += 49 * NS_PER_MS;
	step();
	now.count.late_pkts += 100;
	now.late_max_ns = 20 * NS_PER_US;
	step();
	watch_finish(&watch);
	json_begin(&j, f);
	facts.count = 0;
	watch_facts(&watch, 1, &facts);
	facts_json(&facts, &j);
	json_end(&j);
	fclose(f);
	char *port = strstr(out, "\"cause\": \"port\"");
	char *sender = strstr(out, "\"cause\": \"lcore\"");
	ck_assert_ptr_nonnull(port);
	ck_assert_ptr_nonnull(sender);
	ck_assert_ptr_nonnull(strstr(port, "other end of net_memif0, port left, held packets up"));
	ck_assert(sender < port); // it was trouble for longer
	ck_assert_ptr_nonnull(strstr(port, "\"port\": \"left\""));
	ck_assert_ptr_nonnull(strstr(sender, "\"from_s\": 1,"));
	ck_assert_ptr_nonnull(strstr(sender, "\"to_s\": 1.1"));
	free(out);
}

// Each lcore has its own sentences; the worst of all comes first.
TEST(several_lcores_are_told_apart) {
	static struct watch both[2];
	char *out = NULL, *first, *second;
	size_t size = 0;
	FILE *f = open_memstream(&out, &size);
	struct json j;

	for (uint32_t i = 0; i < 2; i++) {
		begin();
		watch.several = true;
		watch.cpu = 2 + i;
		until(1);
		for (uint32_t k = 0; k <= i; k++) {
			now.count.late_pkts += 100;
			now.late_max_ns = 20 * NS_PER_US;
			step();
		}
		watch_finish(&watch);
		both[i] = watch;
	}
	facts.count = 0;
	watch_facts(both, 2, &facts);
	ck_assert_str_eq(facts_verdict(&facts),
		"the sender's lcore 3 fell behind from 1.00 s to 1.20 s: it was 50 % busy and 10 % "
		"of its paced packets left late, up to 20 us");
	json_begin(&j, f);
	facts_json(&facts, &j);
	json_end(&j);
	fclose(f);
	first = strstr(out, "\"cpu\": 3");
	second = strstr(out, "\"cpu\": 2");
	ck_assert_ptr_nonnull(first);
	ck_assert_ptr_nonnull(second);
	ck_assert(first < second);
	free(out);
}

TEST(proc_is_read) {
	static const char stat[] = "cpu  1 2 3 4 5 6 7 800 9 10\n"
				   "cpu0 10 20 30 40 50 60 70 81 0 0\n"
				   "cpu1 1 2 3 4 5 6 7 9 0 0\ncpu11 1 1 1 1 1 1 1 3 0 0\nintr 5\n";

	ck_assert_uint_eq(watch_number(stat, "\ncpu0 ", 8), 81);
	ck_assert_uint_eq(watch_number(stat, "\ncpu1 ", 8), 9);
	ck_assert_uint_eq(watch_number(stat, "\ncpu11 ", 8), 3);
	ck_assert_uint_eq(watch_number(stat, "\ncpu2 ", 8), 0);
	ck_assert_uint_eq(watch_number(stat, "\ncpu11 ", 11), 0); // the next line begins
	ck_assert_uint_eq(watch_number("", "\ncpu0 ", 8), 0);
	ck_assert_uint_eq(watch_number("123456 789 12\n", "", 2), 789);
	ck_assert_uint_eq(watch_number("", "", 2), 0);
	ck_assert_uint_eq(watch_number("Name:\tx\nvoluntary_ctxt_switches:\t9\n"
				       "nonvoluntary_ctxt_switches:\t42\n",
				  "\nnonvoluntary_ctxt_switches:", 1),
		42);
}
