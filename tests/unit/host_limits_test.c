// SPDX-License-Identifier: BSD-3-Clause
// What limits a flow, on both sides of each bound: connections by hand, whose peer the test is.
#include "link.h"

#define OPEN HAND_RTT // the connection is open, and the first window was sent

static void expect_of(const struct host *const *hosts, uint32_t n, const char *want) {
	struct fact limits;

	ck_assert(host_limits(hosts, n, &limits));
	ck_assert_str_eq(limits.sentence, want);
}

static void expect(const struct link *l, const char *want) {
	const struct host *host = &l->tx;

	expect_of(&host, 1, want);
}

TEST(before_its_start) {
	struct link *l = LINK(.group = "{cc: newreno, start: 1s}", .hand = true);

	link_run(l, NS_PER_S - 1);
	expect(l, "the flow had not begun");
	link_run(l, NS_PER_S + MS); // its SYN was sent, and nobody has answered
	ck_assert_uint_eq(l->ctl_count, 1);
	expect(l, "the flow had no answer to its SYN");
}

TEST(after_its_end) {
	struct link *l = LINK(.group = "{cc: newreno, source: {size: {bytes: 20000B}}}");

	link_finish(l, 10 * NS_PER_S);
	expect(l, "the flow had ended");
}

TEST(given_up_or_reset) {
	struct link *l = LINK(.group = "{cc: newreno, retries: 1, rto_max: 1s}", .loss = 1.0,
		.lose_syn = UINT64_MAX);

	link_finish(l, 1000 * NS_PER_S);
	expect(l, "the flow had given up after timeouts");
	link_close(l);
	l = LINK(.group = "{cc: newreno, stack: {weir: {reset_at: 100ms}}}");
	link_run(l, 200 * MS);
	expect(l, "the flow had been reset");
}

// Ten segments are the window, and the FIN behind the data is one of them. With nine segments of
// data and the FIN both the data and the window are used up; flow_send asks for the window first.
TEST(its_data_or_its_window) {
	static const struct {
		const char *group, *want;
	} cases[] = {
		{"{cc: {fixed: {cwnd: 10}}, tlp: no, source: {size: {bytes: 11584B}}}",
			"the flow had sent all its data"},
		{"{cc: {fixed: {cwnd: 10}}, tlp: no, source: {size: {bytes: 13032B}}}",
			"the flow was limited by its congestion window"},
		{"{cc: {fixed: {cwnd: 10}}, tlp: no, source: {size: {bytes: 100kB}}}",
			"the flow was limited by its congestion window"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct link *l = HAND(.group = cases[i].group);

		expect(l, cases[i].want);
		link_close(l);
	}
}

// A segment per millisecond, and none is acknowledged. Three fit into the congestion window, or
// into the peer's of 4344 B; one byte less is room for two.
TEST(its_pace_until_a_window_ends) {
	static const struct {
		const char *group;
		uint16_t window;
		uint64_t segs;
		const char *want;
	} cases[] = {
		{"{cc: {fixed: {cwnd: 3, rate: 11.584Mbit}}, tlp: no}", 0, 3,
			"the flow was limited by its congestion window"},
		{"{cc: {fixed: {cwnd: 100, rate: 11.584Mbit}}, tlp: no}", 4344, 3,
			"the flow was limited by its receive window"},
		{"{cc: {fixed: {cwnd: 100, rate: 11.584Mbit}}, tlp: no}", 4343, 2,
			"the flow was limited by its receive window"},
		{"{cc: {fixed: {cwnd: 100, rate: 11.584Mbit}}, tlp: no, source: "
		 "{size: {bytes: 4344B}}}",
			0, 3, "the flow had sent all its data"},
		{"{cc: {fixed: {cwnd: 100, rate: 11.584Mbit}}, tlp: no, wmem: 8192B}", 0, 45,
			"the flow was limited by its send buffer"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct link *l = HAND(.group = cases[i].group, .window = cases[i].window);

		for (uint64_t n = 1; n < cases[i].segs; n++) {
			link_run(l, OPEN + n * MS - 1);
			ck_assert_uint_eq(l->data_count, n);
			expect(l, "the flow was limited by its pacing rate");
		}
		link_run(l, OPEN + (cases[i].segs - 1) * MS);
		ck_assert_uint_eq(link_flow(l)->nxt, cases[i].segs);
		expect(l, cases[i].want);
		link_close(l);
	}
}

// Linux's hosts wait for more of the window to open before they send a small burst
// (tcp_tso_should_defer): there is room for one segment, and nothing is paced.
TEST(a_window_that_opened_by_less_than_a_burst) {
	struct link *l = HAND(.group = "{cc: {fixed: {cwnd: 40}}, tso: 20, tlp: no}");

	ck_assert_uint_eq(l->data_count, 40);
	hand_ack_at(l, 20, 2 * OPEN);
	ck_assert_uint_eq(l->data_count, 60);
	hand_ack_at(l, 21, 2 * OPEN + NS_PER_MS / 2);
	ck_assert_uint_eq(l->data_count, 60);
	ck_assert_uint_eq(flow_inflight(link_flow(l)), 39);
	expect(l, "the flow was limited by its congestion window");
}

TEST(datagrams_have_no_windows) {
	struct link *l = LINK(.group = "{source: {udp: {rate: 1Mbit}}}", .hand = true);

	link_run(l, 100 * MS);
	expect(l, "the flow sent at the constant rate of its datagrams");
}

// In the order of a connection's life, singular or plural; all flows of a host, or of several.
TEST(flows_are_counted) {
	struct link *l = LINK(.group = "{cc: newreno, count: 3, start: 1s}, "
				       "{cc: newreno, source: {size: {bytes: 20000B}}}, "
				       "{cc: {fixed: {cwnd: 10}}, count: 2}, "
				       "{cc: {fixed: {cwnd: 100, rate: 1Mbit}}}");
	struct link *other = LINK(.group = "{cc: newreno, count: 12, start: 1s}");
	const struct host *both[] = {&l->tx, &other->tx};

	expect(other, "all 12 flows had not begun");
	link_run(l, 905 * MS);
	expect(l,
		"of 7 flows 3 had not begun, 1 had ended, 2 were limited by their congestion "
		"window, 1 was limited by its pacing rate");
	expect_of(both, 2,
		"of 19 flows 15 had not begun, 1 had ended, 2 were limited by their congestion "
		"window, 1 was limited by its pacing rate");
}

TEST(a_host_without_flows_has_no_limits) {
	const struct host none = {0}, *host = &none;
	struct fact limits;

	ck_assert(!host_limits(&host, 1, &limits));
	ck_assert(!host_limits(NULL, 0, &limits));
}

// The figures beside the sentence: the flows of each limit, and as the cause the most frequent one.
TEST(limits_are_counted) {
	struct link *l = LINK(.group = "{cc: newreno, count: 3, start: 1s}, "
				       "{cc: newreno, source: {size: {bytes: 20000B}}}, "
				       "{cc: {fixed: {cwnd: 10}}, count: 2}");
	const struct host *host = &l->tx;
	double flows = 0;
	struct fact f;

	link_run(l, 905 * MS);
	ck_assert(host_limits(&host, 1, &f));
	ck_assert_str_eq(f.cause, "not_begun");
	ck_assert_str_eq(f.member[0].name, "flows");
	ck_assert_double_eq(f.member[0].number, 6);
	for (uint32_t i = 1; i < f.members; i++) {
		const struct fact_member *m = &f.member[i];
		double want = strcmp(m->name, "not_begun") == 0 ? 3
			: strcmp(m->name, "ended") == 0		? 1
			: strcmp(m->name, "cwnd") == 0		? 2
								: 0;

		ck_assert_double_eq(m->number, want);
		flows += m->number;
	}
	ck_assert_double_eq(flows, 6);
}
