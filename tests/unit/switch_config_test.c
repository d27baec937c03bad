// SPDX-License-Identifier: BSD-3-Clause
#include "switch/path/switch_config.h"
#include "test.h"

#include <string.h>

struct site {
	struct config *config;
	struct paths paths;
	struct switch_config live;
	struct err err;
};

static int site_open_flows(
	struct site *s, const char *paths, const char *flows, const char *ports) {
	struct paths_env env = {.run_seed = 1, .mtu_bytes = 1518};
	char text[2048];
	int rc;

	memset(s, 0, sizeof(*s));
	snprintf(text, sizeof(text),
		"paths: %s\n"
		"flows: %s\n"
		"live:\n"
		"  switch: {%s%s}\n"
		"  sender: {ports: [{role: receiver, ip: 198.19.0.9}, {role: sender, "
		"ip: 198.18.7.1}]}\n",
		paths, flows, strstr(ports, "lcores") != NULL ? "" : "lcores: [1], ", ports);
	s->config = config_parse("t", text, strlen(text), &s->err);
	ck_assert_msg(s->config != NULL, "%s", s->err.msg);
	if ((rc = switch_config_flows(&s->live, s->config, 1, 0, &s->err)) < 0)
		return rc;
	if ((rc = switch_config_keys(&s->live, s->config, &s->err)) < 0)
		return rc;
	env.groups = s->live.groups;
	env.group_base_rtt_ns = s->live.group_base_rtt_ns;
	env.base_rtts = &s->live.base_rtts;
	env.group_route = s->live.group_route;
	rc = paths_init(&s->paths, config_get(config_root(s->config), "paths"), &env, &s->err);
	ck_assert_msg(rc == 0, "%s", s->err.msg);
	return switch_config_ports(&s->live, s->config, &s->paths, &s->err);
}

static int site_open(struct site *s, const char *paths, const char *ports) {
	return site_open_flows(s, paths,
		"[{count: 3}, {count: 2, base_rtt: 40ms, cc: {copa: {delta: 1}}}]", ports);
}

static void site_close(struct site *s) {
	if (s->paths.count > 0)
		paths_fini(&s->paths);
	switch_config_free(&s->live);
	config_free(s->config);
}

#define PATHS                                                                                      \
	"{forward: [{link: {rate: 10Gbit, queue: {fifo: {limit: 1MB}}}}, {delay: {"                \
	"delay: 15ms}}], reverse: [{delay: {delay: 5ms}}]}"
#define PORTS                                                                                      \
	"ports: [{name: a, dev: net_null0, path: reverse}, {name: b, dev: net_null1, "             \
	"path: forward}]"

TEST(flows_belong_to_their_groups) {
	struct site s;

	ck_assert_msg(site_open(&s, PATHS, PORTS) == 0, "%s", s.err.msg);
	ck_assert_uint_eq(s.live.flows, 5);
	for (uint32_t i = 0; i < 5; i++)
		ck_assert_uint_eq(s.live.group_of[i], i < 3 ? 0 : 1);
	ck_assert_uint_eq(s.live.group_base_rtt_ns[1], 40000000);
	ck_assert_uint_eq(s.live.flow_base_ip, 0xc6120701);
	ck_assert_int_eq(config_unused(s.config, &s.err), 0);
	site_close(&s);
}

// 10 Gbit/s for 15 ms are 35244 packets of 512 B with 20 B around them; the queue holds 1 MB of
// them. The path back has no link: as many packets per second, for 25 ms (20 ms for group 1).
TEST(pool_follows_from_rate_delay_queue_and_packet) {
	struct site s;
	uint64_t queue = 1000000 / 512;

	ck_assert_msg(site_open(&s, PATHS, PORTS) == 0, "%s", s.err.msg);
	ck_assert_ptr_eq(s.live.port[0].path, paths_find(&s.paths, "reverse"));
	ck_assert_ptr_eq(s.live.port[1].path, paths_find(&s.paths, "forward"));
	ck_assert_uint_ge(s.live.port[1].quota, 1024 + queue + 35244);
	ck_assert_uint_le(s.live.port[1].quota, 1024 + queue + 35244 + 2);
	ck_assert_uint_eq(s.live.port[0].quota, 1024 + 58740);
	site_close(&s);
}

TEST(smaller_packets_take_more_buffers) {
	struct site s;

	ck_assert_msg(site_open(&s, PATHS,
			      "ports: [{name: a, dev: net_null0, path: reverse}, "
			      "{name: b, dev: net_null1, path: forward, min_packet: 64B}]")
			== 0,
		"%s", s.err.msg);
	// 14.88 million packets per second for 15 ms, and the queue's.
	ck_assert_uint_ge(s.live.port[1].quota, 1024 + 223214 + 15625);
	site_close(&s);
}

TEST(a_smaller_pool_is_forced_and_shared_in_proportion) {
	struct site s, whole;

	ck_assert_msg(site_open(&whole, PATHS, PORTS) == 0, "%s", whole.err.msg);
	ck_assert_int_lt(site_open(&s, PATHS, "pool: 1000, " PORTS), 0);
	ck_assert_ptr_nonnull(strstr(s.err.msg, "pool: 1000 packets are fewer than the "));
	ck_assert_ptr_nonnull(strstr(s.err.msg, "force: yes starts all the same"));
	site_close(&s);
	ck_assert_msg(site_open(&s, PATHS, "force: yes, pool: 1000, " PORTS) == 0, "%s", s.err.msg);
	ck_assert_uint_le(s.live.port[0].quota + s.live.port[1].quota, 1000);
	ck_assert_uint_ge(s.live.port[0].quota + s.live.port[1].quota, 998);
	for (uint32_t i = 0; i < 2; i++) {
		double sum = (double)(whole.live.port[0].quota + whole.live.port[1].quota);

		ck_assert_double_eq_tol((double)s.live.port[i].quota / 1000,
			(double)whole.live.port[i].quota / sum, 0.001);
	}
	site_close(&s);
	site_close(&whole);
}

TEST(bad_ports_are_one_sentence) {
	static const struct {
		const char *ports, *sentence;
	} cases[] = {
		{"ports: [{name: a, dev: net_null0, path: forward}]",
			"live.switch.ports: a list of 2 to 16 ports is required"},
		{"ports: [{name: a, dev: net_null0}, {name: b, dev: net_null1, path: forward}]",
			"no port sends through path 'reverse'"},
		{"ports: [{name: a, dev: net_null0, path: forward}, "
		 "{name: b, dev: net_null1, path: forward}]",
			"'forward' is used by port 'a' too"},
		{"ports: [{name: a, dev: net_null0, path: up}, {name: b, dev: net_null1}]",
			"there is no path 'up'; there is forward, reverse"},
		{"ports: [{name: a, dev: net_null0}, {name: a, dev: net_null1}]",
			"'a' is used twice"},
		{"ports: [{name: a, dev: net_null0}, {name: b, dev: net_null0}]",
			"'net_null0' is used twice"},
		{PORTS ", static: [{mac: zz, port: a}]", "'zz' is not a MAC address"},
		{PORTS ", static: [{mac: \"02:00:00:00:00:01\", port: c}]", "no port 'c'"},
		{PORTS ", start: later", "start"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct site s;

		ck_assert_int_lt(site_open(&s, PATHS, cases[i].ports), 0);
		ck_assert_msg(strstr(s.err.msg, cases[i].sentence) != NULL, "%s", s.err.msg);
		ck_assert_msg(strncmp(s.err.msg, "t:", 2) == 0, "%s", s.err.msg);
		site_close(&s);
	}
}

// Any packet may pass any path and leave by any port; no port needs a path for that.
TEST(flows_with_paths_of_their_own_need_none_of_a_port) {
	static const char paths[] =
		"{one: [{link: {rate: 10Gbit, queue: {fifo: {limit: 1MB}}}}, {delay: {delay: "
		"15ms}}], two: [{delay: {delay: 5ms}}], back: [{delay: {delay: 5ms}}]}";
	static const char flows[] = "[{path: {forward: [one, two], reverse: back}}, {count: 2}]";
	static const char ports[] = "ports: [{name: a, dev: net_null0}, {name: b, dev: net_null1}]";
	uint64_t queue = 1000000 / 512, all = 1024 + 3 * 1024 + queue + 35244 + 2 * 11748;
	struct site s;

	ck_assert_msg(site_open_flows(&s, paths, flows, ports) == 0, "%s", s.err.msg);
	ck_assert(s.live.routed);
	for (uint32_t i = 0; i < 2; i++) {
		ck_assert_ptr_null(s.live.port[i].path);
		ck_assert_uint_ge(s.live.port[i].quota, all);
		ck_assert_uint_le(s.live.port[i].quota, all + 2);
	}
	site_close(&s);
	ck_assert_int_lt(
		site_open_flows(&s, paths, "[{path: {forward: one, reverse: back}}]", ports), 0);
	ck_assert_ptr_nonnull(strstr(s.err.msg, "no port sends through path 'two'"));
	site_close(&s);
	ck_assert_msg(site_open(&s, PATHS, PORTS) == 0, "%s", s.err.msg);
	ck_assert(!s.live.routed);
	site_close(&s);
}

TEST(paths_of_flows_need_one_lcore) {
	struct site s;

	ck_assert_int_lt(site_open_flows(&s, PATHS, "[{path: {forward: forward}}]",
				 "lcores: [1, 2], " PORTS),
		0);
	ck_assert_ptr_nonnull(strstr(s.err.msg,
		"lcores: 2 CPUs are named, but where groups of flows name their paths, one lcore "
		"serves all paths: name one CPU"));
	site_close(&s);
}
