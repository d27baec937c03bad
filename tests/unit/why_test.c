// SPDX-License-Identifier: BSD-3-Clause
// Each sentence of the summary's `why`, and both sides of each bound. A link of 8 Mbit/s without
// overhead sends one of these packets in exactly 1 ms, so that `n` packets in a second are n/10 %
// of it.
#include "common/base/json.h"
#include "common/config/flows.h"
#include "switch/path/path_route.h"
#include "switch_test.h"

#define FRAME 1004u // with 4 B of FCS, which framing `none` leaves out
#define LINK(rate, queue) "{link: {rate: " rate ", framing: none, queue: " queue "}}"
#define WIDE LINK("8Mbit", "{fifo: {limit: 1000pkt}}")
#define WIDER LINK("16Mbit", "{fifo: {limit: 1000pkt}}")

struct world {
	struct config *config;
	struct paths *ps;
	struct flows flows;
	struct pkt *pkts;
	uint32_t used;
	uint8_t ecn; // of the packets that are offered
	struct err err;
};

#define PKTS 5000u

// `flows` may be missing: then no path is known to be a group's.
static struct world open_world(const char *text) {
	struct world w = {.ps = test_paths(), .pkts = pkts_new(PKTS, FRAME), .ecn = ECN_ECT0};
	struct paths_env env = {.run_seed = 1, .mtu_bytes = MTU};
	struct config_node *flows;

	w.config = test_config("x.yaml", text, &w.err);
	flows = config_get(config_root(w.config), "flows");
	if (flows != NULL) {
		ck_assert_msg(flows_read(&w.flows, flows, &w.err) == 0, "%s", w.err.msg);
		env.group_base_rtt_ns = w.flows.base_rtt_ns;
		env.group_route = w.flows.route;
		env.groups = w.flows.groups;
		env.flows = flows;
	}
	ck_assert_msg(
		paths_init(w.ps, config_get(config_root(w.config), "paths"), &env, &w.err) == 0,
		"%s", w.err.msg);
	return w;
}

// n packets, the first at from_ns; each of them enters `path` every_ns after the one before.
static void offer(
	struct world *w, const char *path, uint32_t n, uint64_t from_ns, uint64_t every_ns) {
	struct path *p = paths_find(w->ps, path);
	struct pkt *out;

	ck_assert_uint_le(w->used + n, PKTS);
	for (uint32_t i = 0; i < n; i++) {
		struct pkt *pkt = &w->pkts[w->used++];

		pkt->arrival_ns = from_ns + i * every_ns;
		pkt->ecn = w->ecn;
		while (path_pop(p, pkt->arrival_ns, &out, 1) == 1)
			;
		path_push(p, &pkt, 1);
		NEED(path_balanced(p));
	}
}

// n packets in the second from 0 on, one per millisecond.
static void busy(struct world *w, const char *path, uint32_t n) {
	offer(w, path, n, 0, MS);
}

// The facts of the summary's `why`: each one's sentence is wanted, in quotation marks.
static void expect(struct world *w, uint64_t now_ns, const char *want) {
	static const char key[] = "\"sentence\": ";
	char *text, said[1024] = "", *at;
	size_t size;
	FILE *out = open_memstream(&text, &size);
	struct json j;

	json_begin(&j, out);
	paths_why(w->ps, &j, now_ns);
	json_end(&j);
	fclose(out);
	for (at = text; (at = strstr(at, key)) != NULL;) {
		at += sizeof(key) - 1;
		snprintf(said + strlen(said), sizeof(said) - strlen(said), "%s%.*s",
			said[0] != '\0' ? "," : "", (int)strcspn(at, "\n"), at);
	}
	ck_assert_str_eq(said, want);
	free(text);
}

TEST(nothing_came) {
	struct world w = open_world("paths: {forward: [" WIDE "]}");

	expect(&w, NS_PER_S, "\"forward: no standing queue: no packet came\"");
}

// Four SYNs were lost before the link, and "no packet came".
TEST(all_was_lost_before_the_link) {
	struct world w = open_world("paths: {forward: [{loss: {rate: 100%}}, " WIDE "]}");

	busy(&w, "forward", 4);
	expect(&w, NS_PER_S,
		"\"forward: no standing queue: no packet came; other stages dropped 100 % of the "
		"path's packets (loss)\"");
	// What was lost before the measurement is no part of it.
	paths_measure(w.ps, NS_PER_S);
	expect(&w, 2 * NS_PER_S, "\"forward: no standing queue: no packet came\"");
}

// A packet on its way is in nobody's statistics yet, but the stages are asked after they were
// served to this moment.
TEST(stages_are_served_first) {
	struct world w = open_world("paths: {forward: [" WIDE "]}");

	busy(&w, "forward", 1);
	expect(&w, 10 * MS, "\"forward: no standing queue: the senders offered 10 % of the link\"");
}

TEST(what_was_before_the_measurement_does_not_count) {
	struct world w =
		open_world("paths: {forward: [" LINK("8Mbit", "{fifo: {limit: 10pkt}}") "]}");

	offer(&w, "forward", 100, 0, 0);
	paths_measure(w.ps, NS_PER_S);
	expect(&w, 2 * NS_PER_S, "\"forward: no standing queue: no packet came\"");
	offer(&w, "forward", 12, 2 * NS_PER_S, 0);
	expect(&w, 4 * NS_PER_S,
		"\"forward: no standing queue: its own queue dropped 8.33 % of its packets and "
		"marked 0 %, and holds at most 10 packets\"");
}

// 950 ms of a second are use enough; 949 are not.
TEST(a_link_in_use_for_95_percent_has_a_queue) {
	struct world w = open_world("paths: {forward: [" WIDE "]}");

	busy(&w, "forward", 949);
	expect(&w, NS_PER_S,
		"\"forward: no standing queue: the senders offered 94.9 % of the link\"");
	offer(&w, "forward", 1, 949 * MS, 0);
	expect(&w, NS_PER_S, "");
}

// Of 12 packets at once one goes to the wire, 10 wait for 1 to 10 ms, 55 ms in all, and one is
// dropped. In 55 ms one packet has waited on average. 11 packets wait as long, but a burst without
// a drop is no standing queue.
TEST(drops_with_one_packet_waiting_are_a_queue) {
	struct world w =
		open_world("paths: {forward: [" LINK("8Mbit", "{fifo: {limit: 10pkt}}") "]}");

	offer(&w, "forward", 12, 0, 0);
	expect(&w, 55 * MS, "");
	expect(&w, 56 * MS,
		"\"forward: no standing queue: its own queue dropped 8.33 % of its packets and "
		"marked 0 %, and holds at most 10 packets\"");

	w = open_world("paths: {forward: [" WIDE "]}");
	offer(&w, "forward", 11, 0, 0);
	expect(&w, 55 * MS, "\"forward: no standing queue: the senders offered 20 % of the link\"");
}

// The third and fourth of four packets find more than one packet in the queue. They wait 2 and 3
// ms, the second 1 ms.
TEST(marks_count_as_drops_do) {
	struct world w = open_world("paths: {forward: [" LINK(
		"8Mbit", "{step: {limit: 20000B, threshold: 1pkt}}") "]}");

	offer(&w, "forward", 4, 0, 0);
	expect(&w, 6 * MS, "");
	expect(&w, 7 * MS,
		"\"forward: no standing queue: its own queue dropped 0 % of its packets and marked "
		"50 %, and holds at most 20000 B\"");
}

TEST(all_packets_lost_are_100_percent) {
	struct world w = open_world("paths: {forward: [" WIDE ", {loss: {rate: 100%}}]}");

	busy(&w, "forward", 100);
	expect(&w, NS_PER_S,
		"\"forward: no standing queue: the senders offered 10 % of the link; other stages "
		"dropped 100 % of the path's packets (loss)\"");
}

// The first link of the path is in use for 90 % of the second, which says nothing, then for 90.2 %.
// It never names itself.
TEST(another_link_is_the_bottleneck_above_90_percent) {
	struct world w = open_world("paths: {forward: [" WIDE ", " WIDER "]}");

	busy(&w, "forward", 900);
	expect(&w, NS_PER_S,
		"\"forward: no standing queue: the senders offered 90 % of the link\","
		"\"forward.link2: no standing queue: the senders offered 45 % of the link\"");
	offer(&w, "forward", 2, 900 * MS, MS);
	expect(&w, NS_PER_S,
		"\"forward: no standing queue: the senders offered 90.2 % of the link\","
		"\"forward.link2: no standing queue: the senders offered 45.1 % of the link; the "
		"bottleneck is elsewhere: forward.link was 90.2 % used\"");
}

// Edges have no figures of their own in the summary: of two edges the busier one counts. All
// packets are flow 0's.
TEST(edges_may_be_the_bottleneck) {
	struct world w = open_world("paths: {forward: [{edges: {count: 2, rate: 8Mbit, "
				    "overhead: 0B}}, " WIDER "]}");

	busy(&w, "forward", 1000);
	expect(&w, NS_PER_S,
		"\"forward: no standing queue: the senders offered 50 % of the link; the "
		"bottleneck is elsewhere: forward.edges was 100 % used\"");
}

#define HOPS                                                                                       \
	"paths:\n"                                                                                 \
	"  hop1: [" WIDE "]\n"                                                                     \
	"  hop2: [" WIDE "]\n"                                                                     \
	"  back: [" WIDE "]\n"                                                                     \
	"  aside: [" WIDE "]\n"

#define HOP1 "\"hop1: no standing queue: the senders offered 50 % of the link"
#define HOP2(use) "\"hop2: no standing queue: the senders offered " use " % of the link"
#define ELSEWHERE "; the bottleneck is elsewhere: "

// The busiest of all, wherever it stands on the route: behind the link or on the way back. A path
// of another group's packets is none of them.
TEST(the_bottleneck_may_be_in_another_path_of_the_route) {
	static const struct {
		uint32_t hop2, back;
		const char *want;
	} cases[] = {
		{920, 910,
			HOP1 ELSEWHERE "hop2.link was 92 % used\"," HOP2("92") ELSEWHERE
			"back.link was 91 % used\""},
		{910, 920,
			HOP1 ELSEWHERE "back.link was 92 % used\"," HOP2("91") ELSEWHERE
			"back.link was 92 % used\""},
		{900, 900, HOP1 "\"," HOP2("90") "\""},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct world w =
			open_world(HOPS "flows:\n"
					"  - {path: {forward: [hop1, hop2], reverse: back}}\n"
					"  - {path: {forward: aside, reverse: back}}\n");

		busy(&w, "hop1", 500);
		busy(&w, "hop2", cases[i].hop2);
		busy(&w, "back", cases[i].back);
		busy(&w, "aside", 1000);
		expect(&w, NS_PER_S, cases[i].want);
	}
}

// hop1 comes first on the route of hop2's data.
TEST(the_bottleneck_may_be_before_the_link) {
	struct world w = open_world(HOPS "flows:\n"
					 "  - {path: {forward: [hop1, hop2], reverse: back}}\n");

	busy(&w, "hop1", 1000);
	busy(&w, "hop2", 400);
	expect(&w, NS_PER_S,
		"\"hop2: no standing queue: the senders offered 40 % of the link; the bottleneck "
		"is elsewhere: hop1.link was 100 % used\","
		"\"aside: no standing queue: no packet came\"");
}

// Without groups the name says it. With groups: `both` carries the data of one and the ACKs of the
// other; `back` ACKs alone; no group passes `aside`, whose packets may be data; `reverse` is a
// group's way there.
TEST(paths_of_acks_alone_are_not_asked) {
	struct world w = open_world("paths: {forward: [" WIDE "], reverse: [" WIDE "], "
				    "aside: [" WIDE "]}");

	expect(&w, MS,
		"\"forward: no standing queue: no packet came\","
		"\"aside: no standing queue: no packet came\"");

	w = open_world("paths: {both: [" WIDE "], back: [" WIDE "], reverse: [" WIDE "], "
		       "aside: [" WIDE "]}\n"
		       "flows:\n"
		       "  - {path: {forward: both, reverse: back}}\n"
		       "  - {path: {forward: reverse, reverse: both}}\n");
	expect(&w, MS,
		"\"both: no standing queue: no packet came\","
		"\"reverse: no standing queue: no packet came\","
		"\"aside: no standing queue: no packet came\"");
}

// Of 100 packets the loss stage drops 25. Of the other 75 the policer has tokens for 60, whose IP
// packets have 986 B.
TEST(drops_of_other_stages_are_named) {
	struct world w = open_world("paths: {forward: [" WIDER ", {loss_periodic: {every: 4}}, "
				    "{policer: {rate: 1kbit, burst: 60000B}}]}");

	busy(&w, "forward", 100);
	expect(&w, NS_PER_S,
		"\"forward: no standing queue: the senders offered 5 % of the link; other stages "
		"dropped 40 % of the path's packets (loss, policed)\"");
}

// Of 8 packets at once one is on the edge and one waits for it. The others are dropped with the
// reason of a link's full queue, which is not the link's.
TEST(drops_of_edges_are_named) {
	struct world w =
		open_world("paths: {forward: [{edges: {count: 1, rate: 8Mbit, overhead: 0B, limit: "
			   "1pkt}}, " WIDER "]}");

	offer(&w, "forward", 8, 0, 0);
	expect(&w, NS_PER_S,
		"\"forward: no standing queue: the senders offered 0.1 % of the link; other stages "
		"dropped 75 % of the path's packets (queue_full)\"");
}

// Two links: what one of them drops is said at that one, and does not count as another stage's at
// the other.
TEST(drops_of_another_link_are_its_own) {
	struct world w = open_world("paths: {forward: [" LINK(
		"8Mbit", "{fifo: {limit: 1pkt}}") ", " WIDER ", {loss_periodic: {every: 2}}]}");

	offer(&w, "forward", 8, 0, 0);
	expect(&w, NS_PER_S,
		"\"forward: no standing queue: its own queue dropped 75 % of its packets and "
		"marked 0 %, and holds at most 1 packet\","
		"\"forward.link2: no standing queue: the senders offered 0.1 % of the link; other "
		"stages dropped 12.5 % of the path's packets (loss)\"");
}

// The same if its discipline drops them, which is another reason than a full queue: the third and
// fourth of four.
TEST(drops_of_another_discipline_are_its_own) {
	struct world w = open_world("paths: {forward: [" LINK(
		"8Mbit", "{step: {limit: 9pkt, threshold: 1pkt, others: drop}}") ", " WIDER "]}");

	w.ecn = ECN_NOT_ECT;
	offer(&w, "forward", 4, 0, 0);
	expect(&w, NS_PER_S,
		"\"forward: no standing queue: its own queue dropped 50 % of its packets and "
		"marked 0 %, and holds at most 9 packets\","
		"\"forward.link2: no standing queue: the senders offered 0.1 % of the link\"");
}
