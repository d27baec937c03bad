// SPDX-License-Identifier: BSD-3-Clause
#include "switch/path/schedule.h"
#include "switch_test.h"

static const char paths_text[] =
	"paths: {forward: [{link: {rate: 10Gbit, queue: {fifo: {limit: 99pkt}}}}, "
	"{delay: {delay: 10ms}}], reverse: [{loss: {rate: 0%}}, {delay: {delay: 10ms}}]}\n";

struct world {
	struct config *config;
	struct paths *ps;
	struct schedule s;
	struct err err;
};

static int open_schedule(struct world *w, const char *schedule) {
	static const struct paths_env env = {.mtu_bytes = MTU, .groups = 1};
	char text[2000];

	*w = (struct world){.ps = test_paths()};
	snprintf(text, sizeof(text), "%s%s", paths_text, schedule);
	w->config = test_config("x.yaml", text, &w->err);
	struct config_node *root = config_root(w->config);
	ck_assert_int_eq(paths_init(w->ps, config_get(root, "paths"), &env, &w->err), 0);
	return schedule_init(&w->s, config_get(root, "schedule"), w->ps, NULL, &w->err);
}

TEST(no_schedule_changes_nothing) {
	struct world w;

	ck_assert_int_eq(open_schedule(&w, ""), 0);
	ck_assert_uint_eq(schedule_next_ns(&w.s), NEVER_NS);
	ck_assert_uint_eq(schedule_apply(&w.s, NEVER_NS, NULL), 0);
	schedule_fini(&w.s);
}

TEST(changes_apply_in_order_and_are_recorded) {
	static struct tel_events record[8];
	static struct tel_header header;
	struct tel events = {.ring = &header,
		.records = (uint8_t *)record,
		.record_size = sizeof(record[0]),
		.limit = 8,
		.mask = 7};
	struct world w;
	void *link;

	ck_assert_msg(open_schedule(&w,
			      "schedule:\n"
			      "  - {at: 12s, forward.delay.delay: 30ms}\n"
			      "  - {at: 10s, forward.link.rate: 5Gbit, reverse.loss.rate: 1%}\n"
			      "  - {at: 12s, forward.delay.delay: 40ms}\n")
			== 0,
		"%s", w.err.msg);
	ck_assert_int_eq(config_unused(w.config, &w.err), 0);
	link = w.ps->path[0].stage[0].state;
	ck_assert_uint_eq(schedule_next_ns(&w.s), 10 * NS_PER_S);
	ck_assert_uint_eq(schedule_apply(&w.s, 10 * NS_PER_S - 1, &events), 0);
	ck_assert_uint_eq(stage_link.capacity->rate_bps(link), 10000000000);
	ck_assert_uint_eq(schedule_apply(&w.s, 10 * NS_PER_S, &events), 2);
	ck_assert_uint_eq(stage_link.capacity->rate_bps(link), 5000000000);
	ck_assert_uint_eq(schedule_next_ns(&w.s), 12 * NS_PER_S);
	// Applied late, recorded at its own time; the last of one time wins.
	ck_assert_uint_eq(schedule_apply(&w.s, 20 * NS_PER_S, &events), 2);
	ck_assert_uint_eq(path_min_delay_ns(&w.ps->path[0]), 40 * MS);
	ck_assert_uint_eq(schedule_next_ns(&w.s), NEVER_NS);
	ck_assert_uint_eq(schedule_apply(&w.s, NEVER_NS, &events), 0);

	ck_assert_uint_eq(events.written, 4);
	ck_assert_uint_eq(record[0].ts_ns, 10 * NS_PER_S);
	ck_assert_uint_eq(record[0].event, TEL_EV_PARAM);
	ck_assert_double_eq(record[0].value, 5e9);
	ck_assert_float_eq(record[0].before, 1e10f);
	ck_assert_uint_eq(record[0].group, 0);
	ck_assert_uint_eq(record[0].detail, 1);
	ck_assert_uint_eq(record[0].flow_id, TEL_NO_FLOW);
	ck_assert_double_eq(record[1].value, 0.01);
	ck_assert_uint_eq(record[1].group, UINT16_MAX);
	ck_assert_uint_eq(record[2].ts_ns, 12 * NS_PER_S);
	ck_assert_uint_eq(record[2].detail, 0);
	ck_assert_uint_eq(record[3].detail, 2);
	schedule_fini(&w.s);
}

// What comes later is known at the start, and nothing of it holds yet.
TEST(capacity_is_that_of_all_times) {
	struct world w;

	ck_assert_msg(open_schedule(&w,
			      "schedule:\n"
			      "  - {at: 1s, forward.link.rate: 1kbit, forward.delay.delay: 300ms}\n"
			      "  - {at: 2s, forward.link.rate: 40Gbit, forward.delay.delay: 0ms}\n"
			      "  - {at: 3s, reverse.delay.delay: 0ms}\n")
			== 0,
		"%s", w.err.msg);
	struct path_capacity c = path_capacity(&w.ps->path[0], MTU);
	ck_assert_uint_eq(c.rate_bps, 40000000000);
	ck_assert_uint_eq(c.delay_ns, 300 * MS);
	ck_assert_uint_eq(c.queue_pkts, 99);
	ck_assert_uint_eq(stage_link.capacity->rate_bps(w.ps->path[0].stage[0].state), 10000000000);
	ck_assert_uint_eq(path_min_delay_ns(&w.ps->path[0]), 10 * MS);
	ck_assert_uint_eq(path_min_delay_ns(&w.ps->path[1]), 10 * MS);
	static const uint64_t ahead_ms[] = {10, 300, 300, 10, 0};
	for (uint32_t i = 0; i < 5; i++)
		ck_assert_uint_eq(w.s.entry[i].ahead_ns, ahead_ms[i] * MS);
	ck_assert_ptr_eq(schedule_unreached(&w.s, 2 * NS_PER_S), w.s.entry[2].node);
	ck_assert_ptr_null(schedule_unreached(&w.s, 3 * NS_PER_S + 1));
	schedule_fini(&w.s);
}

// Where paths belong to several lcores, each lcore changes its own paths only.
TEST(part_of_a_schedule_changes_its_paths_only) {
	struct schedule mine, other, none;
	struct path *paths[2];
	struct world w;

	ck_assert_msg(open_schedule(&w,
			      "schedule:\n"
			      "  - {at: 3s, forward.delay.delay: 40ms}\n"
			      "  - {at: 1s, forward.link.rate: 5Gbit, reverse.loss.rate: 1%}\n"
			      "  - {at: 2s, reverse.delay.delay: 30ms}\n")
			== 0,
		"%s", w.err.msg);
	paths[0] = paths_find(w.ps, "forward");
	paths[1] = paths_find(w.ps, "reverse");
	ck_assert_int_eq(schedule_part(&mine, &w.s, &paths[0], 1, &w.err), 0);
	ck_assert_int_eq(schedule_part(&other, &w.s, &paths[1], 1, &w.err), 0);
	ck_assert_int_eq(schedule_part(&none, &w.s, paths, 0, &w.err), 0);
	ck_assert_uint_eq(schedule_next_ns(&none), NEVER_NS);
	ck_assert_uint_eq(schedule_apply(&mine, 1 * NS_PER_S, NULL), 1);
	ck_assert_uint_eq(stage_link.capacity->rate_bps(paths[0]->stage[0].state), 5000000000);
	ck_assert_uint_eq(schedule_next_ns(&mine), 3 * NS_PER_S);
	ck_assert_uint_eq(schedule_apply(&mine, 9 * NS_PER_S, NULL), 1);
	ck_assert_uint_eq(path_min_delay_ns(paths[0]), 40 * MS);
	ck_assert_uint_eq(path_min_delay_ns(paths[1]), 10 * MS);
	ck_assert_uint_eq(schedule_apply(&other, 1 * NS_PER_S, NULL), 1);
	ck_assert_uint_eq(schedule_next_ns(&other), 2 * NS_PER_S);
	ck_assert_uint_eq(schedule_apply(&other, 9 * NS_PER_S, NULL), 1);
	ck_assert_uint_eq(path_min_delay_ns(paths[1]), 30 * MS);
	schedule_fini(&mine);
	schedule_fini(&other);
	schedule_fini(&none);
	schedule_fini(&w.s);
}

TEST(mistakes_are_found_at_the_start) {
	static const struct {
		const char *text, *says;
	} cases[] = {
		{"schedule: 3", "x.yaml:2:11: schedule: must be a list"},
		{"schedule: [3]", "must be a map"},
		{"schedule: [{forward.link.rate: 1Gbit}]", "must be a map such as {at:"},
		{"schedule: [{at: 10, forward.link.rate: 1Gbit}]", "x.yaml:2:17: schedule: at:"},
		{"schedule: [{at: -1s, forward.link.rate: 1Gbit}]", "schedule: at:"},
		{"schedule: [{at: 10s}]", "nothing changes"},
		{"schedule: [{at: 1s, link.rate: 1Gbit}]", "name of a path"},
		{"schedule: [{at: 1s, forward.link2.rate: 1Gbit}]", "no such stage"},
		{"schedule: [{at: 1s, forward.link.rat: 1Gbit}]", "no parameter 'rat'"},
		{"schedule: [{at: 1s, forward.link.rate: 10}]", "rate"},
		{"schedule: [{at: 1s, forward.link.rate: 2Tbit}]", "x.yaml:2:40"},
		{"schedule: [{at: 1s, forward.link.rate: [1]}]", "single value"},
		{"schedule: [{at: 1s, forward.link.overhead: 0B}]", "while running"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct world w;

		ck_assert_msg(open_schedule(&w, cases[i].text) < 0, "%s", cases[i].text);
		ck_assert_msg(strstr(w.err.msg, cases[i].says) != NULL, "%s: %s", cases[i].text,
			w.err.msg);
		schedule_fini(&w.s);
	}
}
