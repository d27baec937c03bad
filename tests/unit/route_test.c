// SPDX-License-Identifier: BSD-3-Clause
#include "common/config/flows.h"
#include "switch/path/path_route.h"
#include "switch_test.h"

struct world {
	struct config *config;
	struct paths *ps;
	struct flows flows;
	struct base_rtts rtts;
	struct err err;
};

// A parking lot of two hops with a way back.
#define PATHS                                                                                      \
	"paths:\n"                                                                                 \
	"  hop1: [{link: {rate: 8Mbit, queue: {fifo: {limit: 1BDP}}}}, {delay: {delay: 5ms}}]\n"   \
	"  hop2: [{link: {rate: 8Mbit, queue: {fifo: {limit: 1BDP}}}}, {delay: {delay: 7ms}}]\n"   \
	"  back: [{delay: {delay: 10ms}}]\n"
#define FLOWS                                                                                      \
	"flows:\n"                                                                                 \
	"  - {path: {forward: [hop1, hop2], reverse: back}}\n"                                     \
	"  - {path: {forward: hop1, reverse: back}, base_rtt: 40ms}\n"                             \
	"  - {path: {forward: hop2, reverse: back}}\n"

static int try_routes(struct world *w, const char *text) {
	struct config_node *root;
	int rc;

	*w = (struct world){.ps = test_paths()};
	w->config = test_config("x.yaml", text, &w->err);
	root = config_root(w->config);
	if ((rc = flows_read(&w->flows, config_get(root, "flows"), &w->err)) < 0)
		return rc;
	if ((rc = base_rtts_init(
		     &w->rtts, &w->flows, config_get(root, "flows"), 1, 10 * NS_PER_S, &w->err))
		< 0)
		return rc;
	struct paths_env env = {
		.mtu_bytes = MTU,
		.group_base_rtt_ns = w->flows.base_rtt_ns,
		.base_rtts = &w->rtts,
		.group_route = w->flows.route,
		.groups = w->flows.groups,
		.flows = config_get(root, "flows"),
		.groups_only = true,
	};
	if ((rc = paths_init(w->ps, config_get(root, "paths"), &env, &w->err)) < 0)
		return rc;
	return routes_check(w->ps, config_get(root, "paths"), &w->err);
}

static struct world open_routes(const char *text) {
	struct world w;

	ck_assert_msg(try_routes(&w, text) == 0, "%s", w.err.msg);
	return w;
}

static struct route_order order_of(const struct world *w) {
	struct route_graph g;
	struct route_order o;

	routes_graph(w->ps, &g);
	routes_order(w->ps, &g, &o);
	return o;
}

// Of hop1: 5 + 7 + 10 ms of the first group, not the 15 ms of the second nor its base_rtt.
TEST(a_bdp_is_that_of_the_longest_round_trip_through_a_path) {
	struct world w = open_routes(PATHS FLOWS);

	ck_assert_uint_eq(w.ps->path[0].base_rtt_ns, 22 * MS);
	ck_assert_uint_eq(w.ps->path[1].base_rtt_ns, 22 * MS);
	ck_assert_uint_eq(w.ps->path[2].base_rtt_ns, 22 * MS);
	// 8 Mbit/s for 22 ms, in bytes with the overhead of a link: at most 22000 of frames.
	struct aqm_limit l = stage_link.capacity->limit(w.ps->path[0].stage[0].state);
	ck_assert_uint_eq(l.bytes, 22000);
	base_rtts_free(&w.rtts);
}

TEST(the_rest_of_a_base_rtt_is_in_the_last_delay_of_the_way_back) {
	struct world w = open_routes(PATHS FLOWS);

	for (uint32_t i = 0; i < 3; i++) {
		for (uint32_t g = 0; g < 3; g++)
			ck_assert_uint_eq(
				w.ps->class_extra_ns[i][g], i == 2 && g == 1 ? 25 * MS : 0);
	}
	ck_assert_ptr_null(w.ps->path[0].stage[1].env.class_extra_ns);
	ck_assert_ptr_eq(w.ps->path[2].stage[0].env.class_extra_ns, w.ps->class_extra_ns[2]);
	base_rtts_free(&w.rtts);
}

// The third group's flows, 5 to 8, draw base RTTs of 30 to 90 ms for paths of 17 ms; `back` carries
// all but that.
TEST(flows_have_the_rest_of_their_own_base_rtts) {
	struct world w = open_routes(
		PATHS "flows:\n"
		      "  - {path: {forward: [hop1, hop2], reverse: back}}\n"
		      "  - {count: 4, path: {forward: hop1, reverse: back}, base_rtt: 40ms}\n"
		      "  - {count: 4, path: {forward: hop2, reverse: back},\n"
		      "     base_rtt: {uniform: {min: 30ms, max: 90ms}}}\n");
	const struct stage_env *env = &w.ps->path[2].stage[0].env;
	struct pkt p = {.delay_class = 2};
	uint64_t longest_ns = 0;

	ck_assert_uint_eq(stage_extras(env), 3 + 4);
	for (p.flow_id = 5; p.flow_id < 9; p.flow_id++) {
		uint64_t rtt_ns = w.rtts.flow_ns[p.flow_id];

		ck_assert(rtt_ns >= 30 * MS && rtt_ns <= 90 * MS);
		ck_assert_uint_eq(stage_extra_ns(env, stage_extra_of(env, &p)), rtt_ns - 17 * MS);
		longest_ns = time_max(longest_ns, rtt_ns);
	}
	p = (struct pkt){.delay_class = 1, .flow_id = 2};
	ck_assert_uint_eq(stage_extra_ns(env, stage_extra_of(env, &p)), 25 * MS);
	p = (struct pkt){.delay_class = 0, .flow_id = 0};
	ck_assert_uint_eq(stage_extra_ns(env, stage_extra_of(env, &p)), 0);
	// Memory is for the longest, windows are for the shortest, and a BDP is that of the paths.
	ck_assert_uint_eq(w.ps->path[2].max_delay_ns, longest_ns - 7 * MS);
	ck_assert_uint_eq(routes_ahead_ns(w.ps), 10 * MS);
	ck_assert_uint_eq(w.ps->path[1].base_rtt_ns, 22 * MS);
	ck_assert(paths_random(w.ps) && paths_flows(w.ps));
	ck_assert_ptr_null(w.ps->path[1].stage[1].env.flow_delays);
	base_rtts_free(&w.rtts);
}

// The way back is the longest delay: windows of 10 ms, and what is before it in order from the
// sender on.
TEST(windows_are_as_long_as_the_delays_allow) {
	static const uint8_t order[] = {NODE_SENDER, NODE_PATHS, NODE_PATHS + 1, NODE_RECEIVER};
	struct world w = open_routes(PATHS FLOWS);
	struct route_order o = order_of(&w);

	ck_assert_uint_eq(o.ahead_ns, 10 * MS);
	ck_assert_uint_eq(o.ahead, 1u << (NODE_PATHS + 2));
	ck_assert_uint_eq(o.nodes, 4);
	ck_assert_int_eq(memcmp(o.node, order, sizeof(order)), 0);
	base_rtts_free(&w.rtts);

	// Two hops that two groups pass in opposite order are a circle of their own, which 7 ms
	// break.
	w = open_routes(PATHS "flows:\n"
			      "  - {path: {forward: [hop1, hop2], reverse: back}}\n"
			      "  - {path: {forward: [hop2, hop1], reverse: back}}\n");
	o = order_of(&w);
	ck_assert_uint_eq(o.ahead_ns, 7 * MS);
	ck_assert_uint_eq(o.ahead, 1u << (NODE_PATHS + 1) | 1u << (NODE_PATHS + 2));
	base_rtts_free(&w.rtts);

	// One path in both directions.
	w = open_routes("paths: {air: [{delay: {delay: 3ms}}]}\n"
			"flows: [{path: {forward: air, reverse: air}}]\n");
	o = order_of(&w);
	ck_assert_uint_eq(o.ahead_ns, 3 * MS);
	ck_assert_uint_eq(o.nodes, 2);
	ck_assert_uint_eq(w.ps->path[0].base_rtt_ns, 6 * MS);
	base_rtts_free(&w.rtts);
}

// Not in a path that the group's packets pass twice; of several on the way back, in the last one.
TEST(one_delay_carries_the_rest_of_a_base_rtt) {
	struct world w =
		open_routes("paths: {air: [{delay: {delay: 3ms}}], wire: [{delay: {delay: 1ms}}], "
			    "home: [{delay: {delay: 1ms}}]}\n"
			    "flows:\n"
			    "  - {base_rtt: 20ms, path: {forward: [wire, air], reverse: air}}\n"
			    "  - {base_rtt: 20ms, path: {forward: air, reverse: [wire, home]}}\n");

	ck_assert_uint_eq(w.ps->class_extra_ns[1][0], 13 * MS);
	ck_assert_uint_eq(w.ps->class_extra_ns[2][1], 15 * MS);
	ck_assert_uint_eq(w.ps->class_extra_ns[1][1], 0);
	ck_assert_ptr_null(w.ps->path[0].stage[0].env.class_extra_ns);
	base_rtts_free(&w.rtts);
	ck_assert_int_lt(try_routes(&w,
				 "paths: {air: [{delay: {delay: 3ms}}]}\n"
				 "flows: [{base_rtt: 20ms, path: {forward: air, reverse: air}}]\n"),
		0);
	ck_assert_ptr_nonnull(strstr(w.err.msg, "base_rtt needs a delay stage"));
	base_rtts_free(&w.rtts);
}

TEST(without_a_path_groups_go_forward_and_back) {
	struct world w = open_routes("paths: {reverse: [{delay: {delay: 3ms}}], "
				     "forward: [{delay: {delay: 3ms}}]}\n"
				     "flows: [{path: }, {path: {reverse: [reverse]}}]\n");
	struct route_order o = order_of(&w);

	for (uint32_t g = 0; g < 2; g++) {
		ck_assert_ptr_eq(w.ps->route[g][FLOWS_FORWARD].path[0], &w.ps->path[1]);
		ck_assert_ptr_eq(w.ps->route[g][FLOWS_REVERSE].path[0], &w.ps->path[0]);
	}
	ck_assert_uint_eq(o.ahead_ns, 3 * MS);
	ck_assert_uint_eq(o.node[0], NODE_SENDER);
	ck_assert_uint_eq(o.node[1], NODE_RECEIVER);
	base_rtts_free(&w.rtts);
}

TEST(bad_routes_are_refused_with_their_place) {
	static const struct {
		const char *text, *says;
	} bad[] = {
		{PATHS "flows: [{path: {forward: [hop1, hop9], reverse: back}}]\n",
			"x.yaml:5:26: path: there is no path 'hop9'; there is hop1, hop2, back"},
		{PATHS "flows: [{path: {forward: [hop1, hop1], reverse: back}}]\n",
			"x.yaml:5:26: path: 'hop1' is there twice; a packet passes a path once"},
		{PATHS "flows: [{path: {forward: hop1, reverse: back}}]\n",
			"paths: no group of flows passes 'hop2'; name it in the path: of one, or"},
		{PATHS "flows: [{path: {forward: {a: hop1}}}]\n",
			"x.yaml:5:26: forward: must be the name of a path, or a list of names"},
		{PATHS "flows: [{path: {forward: []}}]\n", "forward: must be the name of a path"},
		{PATHS "flows: [{path: {forward: [hop1, [hop2]]}}]\n", "must be the name"},
		{PATHS "flows: [{path: {forwards: hop1}}]\n",
			"x.yaml:5:17: path: unknown key 'forwards'; did you mean 'forward'?"},
		{PATHS "flows: [{path: hop1}]\n",
			"x.yaml:5:16: path: a map of parameters is wanted, not 'hop1'"},
		{PATHS "flows: [{path: {forward: [hop1, hop2]}}]\n",
			"paths: needs 'forward' and 'reverse', or a path: in each group"},
		{"paths: {a: [{loss: {rate: 0%}}], b: [{loss: {rate: 0%}}], "
		 "c: [{delay: {delay: 1ms}}]}\n"
		 "flows: [{path: {forward: [a, b], reverse: c}}, "
		 "{path: {forward: [b, a], reverse: c}}]\n",
			"delay stage of more than 0 in one of a, b, through which packets come "
			"back; 1ns will do"},
		{PATHS "flows: [{path: {forward: [hop1, hop2], reverse: back}, base_rtt: 21ms}]\n",
			"base_rtt 21 ms is less than the delay of the paths, 22 ms"},
		{PATHS "flows: [{path: {forward: [hop1, hop2], reverse: back}, "
		       "base_rtt: {uniform: {min: 21ms, max: 1s}}}]\n",
			"x.yaml:5:66: base_rtt: draws begin at 21 ms, which is less than the delay "
			"of the paths, 22 ms"},
		{"paths: {forward: [{link: {rate: 1Mbit}}], reverse: [{loss: {rate: 0%}}]}\n"
		 "flows: [{base_rtt: {uniform: {min: 1ms, max: 2ms}}}]\n",
			"base_rtt needs a delay stage"},
	};
	struct world w;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		ck_assert_int_lt(try_routes(&w, bad[i].text), 0);
		ck_assert_msg(strstr(w.err.msg, bad[i].says) != NULL, "%zu: %s", i, w.err.msg);
		base_rtts_free(&w.rtts);
	}
}
