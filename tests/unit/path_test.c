// SPDX-License-Identifier: BSD-3-Clause
#include "common/run/run_list.h"
#include "switch_test.h"

#include <math.h>

struct world {
	struct config *config;
	struct paths *ps;
	struct err err;
};

// Packets that were dropped, until a test takes them.
static struct pkt_list dropped;

static int try_paths(struct world *w, const char *text, const struct paths_env *env) {
	*w = (struct world){.ps = test_paths()};
	w->config = test_config("test.yaml", text, &w->err);
	dropped = (struct pkt_list){0};
	return paths_init(w->ps, config_get(config_root(w->config), "paths"), env, &w->err);
}

static void keep(void *ctx, struct pkt_list *drops) {
	pkt_list_join(&dropped, drops);
}

static const struct paths_env env = {.run_seed = 1, .mtu_bytes = MTU, .owner = {.free = keep}};

static struct world open_paths(const char *text) {
	struct world w;

	ck_assert_msg(try_paths(&w, text, &env) == 0, "%s", w.err.msg);
	return w;
}

static void put(struct path *p, struct pkt *pkt, uint64_t arrival_ns) {
	pkt->arrival_ns = arrival_ns;
	path_push(p, &pkt, 1);
	NEED(path_balanced(p));
}

static struct pkt *take(struct path *p, uint64_t now_ns) {
	struct pkt *pkt = NULL;

	path_pop(p, now_ns, &pkt, 1);

	NEED(path_balanced(p));
	NEED(pkt == NULL || pkt->arrival_ns <= now_ns);
	return pkt;
}

TEST(config_makes_named_stages_and_a_base_rtt) {
	struct world w = open_paths("paths:\n"
				    "  forward:\n"
				    "    - loss: {rate: 0%}\n"
				    "    - link: {rate: 100Mbit, queue: {fifo: {limit: 1BDP}}}\n"
				    "    - delay: {delay: 10ms}\n"
				    "    - link: {rate: 200Mbit, queue: codel}\n"
				    "  reverse:\n"
				    "    - delay: {delay: 15ms}\n"
				    "  aside:\n"
				    "    - delay: {delay: 1s}\n");
	struct path *p = paths_find(w.ps, "forward");

	ck_assert_uint_eq(w.ps->count, 3);
	for (uint32_t i = 0; i < w.ps->count; i++)
		ck_assert_uint_eq(w.ps->path[i].base_rtt_ns, 25 * MS);
	ck_assert_str_eq(p->stage[1].name, "forward.link");
	ck_assert_str_eq(p->stage[3].name, "forward.link2");
	ck_assert_uint_eq(path_min_delay_ns(p), 10 * MS);
	ck_assert_uint_eq(p->tail_ns, 0); // it ends in a link
	ck_assert_uint_eq(paths_find(w.ps, "reverse")->tail_ns, 15 * MS);
	ck_assert_uint_eq(paths_links(w.ps), 2);
	ck_assert_ptr_null(paths_find(w.ps, "nosuch"));
	ck_assert_int_eq(config_unused(w.config, &w.err), 0);
}

TEST(a_stage_may_have_a_name_of_its_own) {
	struct world w =
		open_paths("paths:\n"
			   "  forward:\n"
			   "    - link: {rate: 1Gbit, queue: {fifo: {limit: 9pkt}}, name: access}\n"
			   "    - link: {rate: 2Gbit, queue: {fifo: {limit: 9pkt}}}\n"
			   "    - delay: {delay: 1ms, name: far}\n");
	struct path *p = paths_find(w.ps, "forward");
	double before, after;
	struct json j;
	char *text;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	ck_assert_str_eq(p->stage[0].name, "forward.access");
	ck_assert_str_eq(p->stage[1].name, "forward.link2");
	ck_assert_str_eq(p->stage[2].name, "forward.far");
	ck_assert_int_eq(path_set(p, "access.rate", "3Gbit", 0, &before, &after, &w.err), 0);
	ck_assert(after >= 3e9);
	json_begin(&j, out);
	paths_summary(w.ps, &j, 5000);
	json_end(&j);
	fclose(out);
	ck_assert_ptr_nonnull(strstr(text, "\"forward.access\""));
	ck_assert_ptr_nonnull(strstr(text, "\"forward.link2\""));
	ck_assert_int_eq(config_unused(w.config, &w.err), 0);
	free(text);
}

TEST(packets_pass_at_exact_times) {
	struct world w = open_paths("paths: {forward: [{loss: {rate: 0%}}, "
				    "{link: {rate: 10Gbit}}, {delay: {delay: 10ms}}]}");
	struct path *p = &w.ps->path[0];
	struct pkt *pkts = pkts_new(3, 1518);

	ck_assert_uint_eq(path_next_ns(p), NEVER_NS);
	for (int i = 0; i < 3; i++)
		put(p, &pkts[i], 1000);
	ck_assert_uint_eq(pkts[2].id, 2);
	// One event per packet: nothing need happen when the link is done at 2230.
	ck_assert_uint_ge(path_next_ns(p), 2230);
	ck_assert_uint_le(path_next_ns(p), 10 * MS + 2230);
	ck_assert_ptr_null(take(p, 10 * MS + 2229));
	ck_assert_uint_eq(path_next_ns(p), 10 * MS + 2230);
	ck_assert_ptr_eq(take(p, 10 * MS + 2230), &pkts[0]);
	ck_assert_ptr_null(take(p, 10 * MS + 2230));
	ck_assert_ptr_null(take(p, 10 * MS + 2230)); // no time passes
	ck_assert_ptr_eq(take(p, 900 * MS), &pkts[1]);
	ck_assert_ptr_eq(take(p, 900 * MS), &pkts[2]);
	ck_assert_uint_eq(pkts[1].arrival_ns, 10 * MS + 3460);
	ck_assert_uint_eq(pkts[2].arrival_ns, 10 * MS + 4691);
	ck_assert_uint_eq(path_next_ns(p), NEVER_NS);
	ck_assert_uint_eq(p->in.pkts, 3);
	ck_assert_uint_eq(p->out.bytes, 3 * 1518);
}

TEST(arrivals_out_of_order_are_moved_up) {
	struct world w = open_paths("paths: {forward: [{delay: {delay: 1ms}}]}");
	struct path *p = &w.ps->path[0];
	struct pkt *pkts = pkts_new(2, 100);

	put(p, &pkts[0], 500);
	put(p, &pkts[1], 400);
	ck_assert_ptr_eq(take(p, 2 * MS), &pkts[0]);
	ck_assert_ptr_eq(take(p, 2 * MS), &pkts[1]);
	ck_assert_uint_eq(pkts[1].arrival_ns, MS + 500);
}

// Everything in a path of many stages, under random load, conserved at each step; the history must
// not depend on how often the path is served.
#define LOAD 30000
struct outcome {
	uint32_t outs, drops;
	uint64_t out_ns[LOAD];
	uint32_t out_id[LOAD];
	uint8_t drop_reason[LOAD];
};

static const char everything[] =
	"paths: {forward: [{loss: {rate: 2%}},"
	" {link: {rate: 2Gbit, queue: {fifo: {limit: 30kB}}}},"
	" {delay: {delay: 40us, late: 5%, late_by: 7us}},"
	" {link: {rate: 1.7Gbit, queue: {codel: {limit: 40pkt, target: 20us, interval: 200us}}}},"
	" {loss: {rate: 1%}},"
	" {delay: {delay: 10us}}],"
	" reverse: [{delay: {delay: 5us}}]}";

static void collect(struct path *p, uint64_t now_ns, struct outcome *o) {
	for (struct pkt *pkt; (pkt = take(p, now_ns)) != NULL;) {
		o->out_ns[o->outs] = pkt->arrival_ns;
		o->out_id[o->outs++] = pkt->id;
	}
	for (struct pkt *pkt; (pkt = pkt_list_pop(&dropped)) != NULL; o->drops++)
		o->drop_reason[pkt->id] = pkt->drop_reason;
}

static void play(int polling, struct outcome *o) {
	static const uint64_t group_rtt_ns[] = {0, 60 * US, 90 * US};
	struct paths_env groups = env;
	struct pkt *pkts = pkts_new(LOAD, 0);
	struct rng rng, when;
	struct world w;
	uint64_t t = 0;

	groups.group_base_rtt_ns = group_rtt_ns;
	groups.groups = 3;
	ck_assert_msg(try_paths(&w, everything, &groups) == 0, "%s", w.err.msg);
	struct path *p = &w.ps->path[0];
	memset(o, 0, sizeof(*o));
	rng_init(&rng, 1, "load");
	rng_init(&when, (uint64_t)polling, "polls");
	for (uint32_t i = 0; i < LOAD; i++) {
		uint64_t gap_ns = rng_u64(&rng) % 4 == 0 ? rng_u64(&rng) % 16000 : 0;

		pkts[i].size_bytes = (uint16_t)(64 + rng_u64(&rng) % 1455);
		pkts[i].delay_class = (uint16_t)(rng_u64(&rng) % 3);
		if (polling == 0) { // as a runner of events does
			for (uint64_t n; (n = path_next_ns(p)) <= t + gap_ns;)
				collect(p, n, o);
		} else if (polling == 1) { // as a loop that turns does
			for (uint64_t k = t; k < t + gap_ns; k += 333)
				collect(p, k, o);
		} else if (polling == 2) { // for a port that sends at times
			for (uint64_t k = t; k < t + gap_ns; k += 333)
				collect(p, k + p->tail_ns, o);
		} else if (polling == 3 && rng_u64(&when) % 50 == 0) {
			collect(p, t + gap_ns, o);
			path_serve(p, t + gap_ns);
		}
		t += gap_ns;
		put(p, &pkts[i], t);
	}
	if (polling == 0) {
		for (uint64_t n; (n = path_next_ns(p)) != NEVER_NS;)
			collect(p, n, o);
	}
	collect(p, UINT64_C(1) << 50, o);
	ck_assert_uint_eq(path_backlog(p).pkts, 0);
	ck_assert_uint_eq(p->in.pkts, LOAD);
	ck_assert_uint_eq(o->outs + o->drops, LOAD);
	ck_assert_uint_gt(p->drop[DROP_LOSS].pkts, 500);
	ck_assert_uint_gt(p->drop[DROP_QUEUE_FULL].pkts, 500);
	ck_assert_uint_gt(p->drop[DROP_AQM].pkts, 5);
	test_close(pkts);
}

TEST(history_does_not_depend_on_polling) {
	static struct outcome one, other;

	play(0, &one);
	for (uint32_t i = 1; i < one.outs; i++)
		NEED(one.out_ns[i] >= one.out_ns[i - 1]);
	for (int polling = 1; polling <= 4; polling++) {
		play(polling, &other);
		ck_assert_msg(memcmp(&one, &other, sizeof(one)) == 0, "polling %d", polling);
	}
}

TEST(groups_with_a_base_rtt_wait_longer_in_reverse) {
	static const uint64_t rtt_ns[] = {0, 20 * MS, 50 * MS};
	struct paths_env groups = env;
	struct pkt *pkts = pkts_new(3, 100);
	struct world w;

	groups.group_base_rtt_ns = rtt_ns;
	groups.groups = 3;
	ck_assert_int_eq(try_paths(&w,
				 "paths: {forward: [{delay: {delay: 10ms}}], "
				 "reverse: [{delay: {delay: 2ms}}, {delay: {delay: 8ms}}]}",
				 &groups),
		0);
	ck_assert_uint_eq(w.ps->class_extra_ns[1][1], 0);
	ck_assert_uint_eq(w.ps->class_extra_ns[1][2], 30 * MS);
	struct path *p = paths_find(w.ps, "reverse");
	for (uint16_t i = 0; i < 3; i++) {
		pkts[i].delay_class = i;
		put(p, &pkts[i], 0);
	}
	while (take(p, 1000 * MS) != NULL)
		;
	ck_assert_uint_eq(pkts[0].arrival_ns, 10 * MS);
	ck_assert_uint_eq(pkts[1].arrival_ns, 10 * MS);
	ck_assert_uint_eq(pkts[2].arrival_ns, 40 * MS);
	ck_assert_uint_eq(path_min_delay_ns(p), 10 * MS);

	// Less than the paths take; nothing to carry it.
	static const uint64_t low_ns[] = {19 * MS, 0, 0};
	groups.group_base_rtt_ns = low_ns;
	ck_assert_int_lt(try_paths(&w,
				 "paths: {forward: [{delay: {delay: 10ms}}], "
				 "reverse: [{delay: {delay: 10ms}}]}",
				 &groups),
		0);
	ck_assert_ptr_nonnull(
		strstr(w.err.msg, "base_rtt 19 ms is less than the delay of the paths, 20 ms"));
	ck_assert_int_lt(try_paths(&w,
				 "paths: {forward: [{link: {rate: 1Gbit, queue: {fifo: "
				 "{limit: 9pkt}}}}]}",
				 &groups),
		0);
	ck_assert_ptr_nonnull(strstr(w.err.msg, "delay stage"));
}

TEST(live_parameters_change_at_their_time) {
	struct world w = open_paths("paths: {forward: [{link: {rate: 8Gbit, queue: {fifo: "
				    "{limit: 9pkt}}}}, {delay: {delay: 1ms}}]}");
	struct path *p = &w.ps->path[0];
	struct pkt *pkts = pkts_new(4, 980);
	double before, after;

	for (int i = 0; i < 4; i++)
		put(p, &pkts[i], 0); // leave the link at 1000, 2000, ...
	ck_assert_int_eq(path_set(p, "link.rate", "4Gbit", 1500, &before, &after, &w.err), 0);
	ck_assert_double_eq(before, 8e9);
	ck_assert_double_eq(after, 4e9);
	ck_assert_int_eq(path_set(p, "delay.delay", "2ms", 4500, &before, &after, &w.err), 0);
	ck_assert_double_eq(before, 1e6);
	ck_assert_uint_eq(path_min_delay_ns(p), 2 * MS);
	while (take(p, 1000 * MS) != NULL)
		;
	ck_assert_uint_eq(pkts[0].arrival_ns, MS + 1000);
	ck_assert_uint_eq(pkts[1].arrival_ns, MS + 2500); // half sent when the rate changed
	ck_assert_uint_eq(pkts[2].arrival_ns, MS + 4500); // in the line when the delay changed
	ck_assert_uint_eq(pkts[3].arrival_ns, 2 * MS + 6500);

	static const struct {
		const char *key, *value, *says;
	} bad[] = {
		{"link.rate", "10", "'10' is not a rate such as"},
		{"link.rate", "2Tbit", "2Tbit is not 0 or in [1kbit, 1Tbit]"},
		{"link2.rate", "1Gbit", "path forward has no such stage; it has link, delay"},
		{"rate", "1Gbit", "no such stage"},
		{"link.speed", "1Gbit", "no parameter 'speed'"},
		{"link.overhead", "20B", "while running"},
	};
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		ck_assert_int_lt(
			path_set(p, bad[i].key, bad[i].value, 9000, &before, &after, &w.err), 0);
		ck_assert_msg(strstr(w.err.msg, bad[i].says) != NULL, "%s", w.err.msg);
	}
}

TEST(live_parameters_are_found_in_order) {
	struct world w = open_paths("paths: {forward: [{loss: {rate: 1%}}, {link: {rate: 8Gbit}}], "
				    "reverse: [{delay: {delay: 1ms}}, {link: {rate: 1Gbit}}]}");
	struct path_param at = {0};
	char seen[512] = "";

	while (paths_next_param(w.ps, &at)) {
		size_t used = strlen(seen);
		struct path_stage *stage;
		const struct param *param;

		ck_assert(at.param->live);
		snprintf(seen + used, sizeof(seen) - used, "%s.%s=%g ", at.stage->name,
			at.param->name, at.value);
		// Each is one that path_set takes, by that name.
		struct path *p = &w.ps->path[at.path];
		char key[64];
		snprintf(key, sizeof(key), "%s.%s", at.stage->name + strlen(p->name) + 1,
			at.param->name);
		path_check(p, key, "", &stage, &param, &w.err);
		ck_assert_ptr_eq(stage, at.stage);
		ck_assert_ptr_eq(param, at.param);
	}
	ck_assert_str_eq(seen,
		"forward.loss.rate=0.01 forward.link.rate=8e+09 reverse.delay.delay=1e+06 "
		"reverse.delay.late=0 reverse.delay.late_by=0 reverse.link.rate=1e+09 ");
	ck_assert(!paths_next_param(w.ps, &at));
}

// A stream for at most 64 records, without a file.
#define STREAM(type)                                                                               \
	{                                                                                          \
		.ring = &(struct tel_header){.capacity = 64},                                      \
		.records = (uint8_t *)(type[64]){{0}}, .record_size = sizeof(type), .limit = 64,   \
		.mask = 63                                                                         \
	}

static const char recorded[] =
	"paths: {reverse: [{delay: {delay: 1ms}}],"
	" forward: [{loss: {rate: 30%}}, {link: {rate: 8Gbit, queue: {fifo: {limit: 4pkt}}}},"
	" {delay: {delay: 1ms}}]}";

static uint32_t hosts_of_flow(void *ctx, const struct pkt *p) {
	return p->flow_id << 16 | 9;
}

// Who is asked for a packet's hosts: the packets' owner, by the discipline and for the recording.
TEST(hosts_are_those_of_the_owner) {
	static const char text[] = "paths: {forward: [{link: {rate: 1Gbit, queue: {cake: "
				   "{isolation: srchost, target: 1s}}}}]}";
	struct tel arrivals = STREAM(struct tel_arrivals);
	struct paths_env owned = env;

	owned.tel_arrivals = &arrivals;
	for (int known = 0; known < 2; known++) {
		const struct tel_arrivals *r = (const void *)arrivals.records;
		struct pkt *pkts = pkts_new(6, 1000), *out[6];
		struct world w;

		owned.owner.hosts = known > 0 ? hosts_of_flow : NULL;
		ck_assert_int_eq(try_paths(&w, text, &owned), 0);
		for (uint32_t i = 0; i < 6; i++) {
			pkts[i].flow_id = i / 5; // the last one's owner knows another source
			pkts[i].delay_class = 3;
			put(&w.ps->path[0], &pkts[i], 0);
			ck_assert_double_eq(r[arrivals.written - 1].value,
				known > 0 ? 65536.0 * (i / 5) + 9 : 3 * 65537.0);
		}
		ck_assert_uint_eq(path_pop(&w.ps->path[0], MS, out, 6), 6);
		// One packet was on the wire, one uses up the first source's quantum; then the
		// other's.
		ck_assert_uint_eq(out[known > 0 ? 2 : 5]->id, 5);
		test_close(pkts);
	}
}

TEST(arrivals_tell_all_that_decides) {
	struct tel arrivals = STREAM(struct tel_arrivals), replayed = STREAM(struct tel_arrivals);
	struct tel packets = STREAM(struct tel_packets), decided = STREAM(struct tel_packets);
	struct paths_env live = env, replay = env;
	struct pkt *pkts = pkts_new(24, 980);
	double before, after;
	struct world w;

	live.tel_arrivals = &arrivals;
	live.tel_packets = &packets;
	ck_assert_int_eq(try_paths(&w, recorded, &live), 0);
	struct path *p = &w.ps->path[1];
	for (uint32_t i = 0; i < 12; i++) {
		pkts[i].flow_id = 7 * i;
		pkts[i].delay_class = (uint16_t)i;
		pkts[i].ecn = ECN_ECT0;
		put(p, &pkts[i], 100 * i);
		if (i == 4)
			ck_assert_int_eq(
				path_set(p, "link.rate", "4Gbit", 450, &before, &after, &w.err), 0);
		if (i == 7)
			ck_assert_int_eq(
				path_set(p, "delay.late_by", "0.5ms", 700, &before, &after, &w.err),
				0);
	}
	path_end(p, 9000);

	const struct tel_arrivals *r = (const void *)arrivals.records;
	ck_assert_uint_eq(arrivals.written, 15);
	ck_assert_uint_eq(r[3].ts_ns, 300);
	ck_assert_uint_eq(r[3].flow_id, 21);
	ck_assert_uint_eq(r[3].pkt_id, 3);
	ck_assert_uint_eq(r[3].size_bytes, 980);
	ck_assert_uint_eq(r[3].delay_class, 3);
	ck_assert_uint_eq(r[3].event, TEL_ARRIVED);
	ck_assert_uint_eq(r[3].path, 1);
	ck_assert_uint_eq(r[3].ecn, ECN_ECT0);
	ck_assert_uint_eq(r[5].event, TEL_CHANGED);
	ck_assert_uint_eq(r[5].ts_ns, 450);
	ck_assert_uint_eq(r[5].pkt_id, 5);
	ck_assert_uint_eq(r[5].flow_id, path_name_hash("forward.link.rate"));
	ck_assert_uint_eq(r[5].param, 3); // behind loss.rate, unit, burst_gap
	ck_assert_double_eq(r[5].value, 4e9);
	ck_assert_uint_eq(r[9].flow_id, path_name_hash("forward.delay.late_by"));
	ck_assert_uint_eq(r[9].param, 7); // rate unit burst_gap | rate framing | delay late late_by
	ck_assert_double_eq(r[9].value, 5e5);
	ck_assert_uint_eq(r[14].event, TEL_END);
	ck_assert_uint_eq(r[14].ts_ns, 9000);
	ck_assert_uint_eq(r[14].pkt_id, 12);

	// From these alone: the same records of the stages and, recorded once more, of the
	// arrivals.
	replay.tel_arrivals = &replayed;
	replay.tel_packets = &decided;
	ck_assert_int_eq(try_paths(&w, recorded, &replay), 0);
	p = &w.ps->path[1];
	for (uint32_t i = 0; i < 15; i++) {
		struct pkt *pkt = &pkts[12 + r[i].pkt_id % 12];

		if (r[i].event == TEL_CHANGED)
			ck_assert_int_eq(
				path_set_recorded(p, r[i].flow_id, r[i].value, r[i].ts_ns, &w.err),
				0);
		if (r[i].event == TEL_END)
			path_end(p, r[i].ts_ns);
		if (r[i].event != TEL_ARRIVED)
			continue;
		pkt->flow_id = r[i].flow_id;
		pkt->delay_class = r[i].delay_class;
		pkt->ecn = r[i].ecn;
		put(p, pkt, r[i].ts_ns);
	}
	ck_assert_uint_eq(replayed.written, 15);
	ck_assert_mem_eq(replayed.records, arrivals.records, 15 * sizeof(*r));
	ck_assert_uint_ge(packets.written, 15);
	ck_assert_uint_eq(decided.written, packets.written);
	ck_assert_mem_eq(
		decided.records, packets.records, packets.written * sizeof(struct tel_packets));

	static const struct {
		const char *name;
		double value;
		const char *says;
	} bad[] = {
		{"forward.link.rate", 10, "forward.link: rate cannot have become 10"},
		{"forward.link.rate", -1, "forward.link: rate"},
		{"forward.link.framing", 1, "forward.link: framing"}, // not a live one
		{"forward.delay.late", 1.5, "forward.delay: late"},
		{"forward.delay.on_decrease", 1, "forward.delay: on_decrease"}, // not a live one
		{"forward.delay.length", 1, "forward: there is no such parameter"},
	};
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		ck_assert_int_lt(path_set_recorded(p, path_name_hash(bad[i].name), bad[i].value,
					 9000, &w.err),
			0);
		ck_assert_msg(strstr(w.err.msg, bad[i].says) != NULL, "%s", w.err.msg);
	}
	ck_assert_uint_eq(replayed.written, 15);
}

TEST(bad_configs_say_where_and_why) {
	static const struct {
		const char *text, *says;
	} cases[] = {
		{"other: 1", "paths: must be a map"},
		{"paths: [a]", "test.yaml:1:8: paths: must be a map"},
		{"paths: {forward: {link: {rate: 1Gbit}}}", "must be a list"},
		{"paths: {forward: []}", "must be a list"},
		{"paths: {a.b: [{delay: {delay: 0}}]}", "'a.b' is not a name"},
		{"paths: {forward: [{lnk: {rate: 1Gbit}}]}", "test.yaml:1:"},
		{"paths: {forward: [{lnk: {rate: 1Gbit}}]}",
			"forward: 'lnk' is not a stage; did you mean 'link'?"},
		{"paths: {forward: [{link: {rate: 1Gbit, queue: blue}}]}",
			"queue: 'blue' is not a queue discipline; there is fifo, codel"},
		{"paths: {forward: [{delay: {delay: 1ms, name: a.b}}]}",
			"name: at most 15 letters"},
		{"paths: {forward: [{delay: {delay: 1ms, name: [a]}}]}",
			"name: at most 15 letters"},
		{"paths: {forward: [{delay: {delay: 1ms, name: delay2}}, {delay: {delay: 1ms}}]}",
			"forward: two stages are called delay2"},
		{"paths: {forward: [{delay: {delay: 20}}]}", "delay"},
		{"paths:\n  forward:\n    - link: {rate: 1Gbit}\n", "test.yaml:3:"},
		{"paths: {forward: [{link: {rate: 1Gbit}}]}", "forward.link: limit: a BDP"},
		{"paths: {forward: [delay]}", "delay is required"},
		{"paths: {forward: [{loss: {rate: 1%}}, {loss: {rate: 101%}}]}", "101%"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct world w;

		ck_assert_msg(try_paths(&w, cases[i].text, &env) < 0, "%s", cases[i].text);
		ck_assert_msg(strstr(w.err.msg, cases[i].says) != NULL, "%s: %s", cases[i].text,
			w.err.msg);
	}
}

// As many as there is room for in what the live switch tells of them, and no more.
TEST(links_of_a_run_are_bounded) {
	char text[8192] = "paths:\n", *end = text + strlen(text);
	struct world w;

	for (int i = 0; i < PATH_LINKS_MAX; i++)
		end += sprintf(end, "%s    - link: {rate: 1Gbit, queue: {fifo: {limit: 9pkt}}}\n",
			i % PATH_STAGES_MAX > 0		   ? ""
				: i == 0		   ? "  a:\n"
				: i == PATH_STAGES_MAX	   ? "  b:\n"
				: i == 2 * PATH_STAGES_MAX ? "  c:\n"
							   : "  d:\n");
	w = open_paths(text);
	ck_assert_uint_eq(paths_links(w.ps), PATH_LINKS_MAX);
	ck_assert_uint_eq(path_last_link(&w.ps->path[3]), PATH_LINKS_MAX - 1);
	sprintf(end, "  e:\n    - link: {rate: 1Gbit, queue: {fifo: {limit: 9pkt}}}\n");
	ck_assert_int_lt(try_paths(&w, text, &env), 0);
	ck_assert_msg(strstr(w.err.msg, "more than 64 links in one run") != NULL, "%s", w.err.msg);
}

// A stream of up to `capacity` records, a power of two, in memory of the test's own.
static struct tel tel_of(
	struct tel_header *header, void *records, uint32_t record_size, uint64_t capacity) {
	return (struct tel){.ring = header,
		.records = records,
		.record_size = record_size,
		.limit = capacity,
		.mask = capacity - 1};
}

// 1 us per packet; the reports of two links, one of them busy from 1000 to 5000.
TEST(reports) {
	struct world w =
		open_paths("paths: {forward: [{link: {rate: 8Gbit, queue: {fifo: {limit: "
			   "3pkt}}}}, {link: {rate: 80Gbit, queue: {fifo: {limit: 9pkt}}}}, "
			   "{delay: {delay: 1ms}}]}");
	struct path *p = &w.ps->path[0];
	struct pkt *pkts = pkts_new(5, 980);
	static struct tel_links record[2];
	static struct tel_events event[2];
	static struct tel_header header;
	struct tel links = tel_of(&header, record, sizeof(record[0]), 2);
	struct tel events = tel_of(&header, event, sizeof(event[0]), 2);
	char *text;
	size_t len;

	paths_measure(w.ps, 0);
	for (int i = 0; i < 5; i++)
		put(p, &pkts[i], 1000);
	paths_interval(w.ps, &links, &events, 3000);
	ck_assert_uint_eq(events.written, 0); // a fifo observes nothing
	ck_assert_uint_eq(links.written, 2);
	ck_assert_uint_eq(record[0].ts_ns, 3000);
	ck_assert_uint_eq(record[0].out_pkts, 2);
	ck_assert_uint_eq(record[0].drops, 1);
	ck_assert_uint_eq(record[0].queue_pkts, 1);
	ck_assert_uint_eq(record[0].queue_max_pkts, 3);
	ck_assert_uint_eq(record[0].sojourn_max_ns, 2000);
	ck_assert_float_eq_tol(record[0].queue_mean_pkts, 5000.0f / 3000.0f, 1e-6f);
	ck_assert_uint_eq(record[1].link, 1);
	ck_assert_uint_eq(record[1].out_pkts, 1);
	ck_assert_uint_eq(record[1].rate_bps, 80000000000);

	struct json j;
	FILE *out = open_memstream(&text, &len);
	json_begin(&j, out);
	paths_summary(w.ps, &j, 5000);
	ck_assert(paths_balanced(w.ps));
	paths_ledger(w.ps, &j);
	json_end(&j);
	fclose(out);
	ck_assert_ptr_nonnull(strstr(text, "\"forward\""));
	ck_assert_ptr_nonnull(strstr(text, "\"forward.link2\""));
	ck_assert_ptr_nonnull(strstr(text, "queue_full"));
	ck_assert_ptr_nonnull(strstr(text, "0.8")); // utilisation
	p->out.pkts++;
	rewind(out = tmpfile());
	json_begin(&j, out);
	ck_assert(!paths_balanced(w.ps)); // an unbalanced book is noticed
	json_end(&j);
	fclose(out);
	free(text);
}

// A frame takes 10 ms on the second link: the second one waited longer than CoDel's target. 100 ms
// later, at 110 ms, the first is dropped, at 210 and 280.7 ms the next two.
// 22486 frames came, 2 were forwarded, and the verdict was "ok".
TEST(a_switch_that_throws_most_away_says_so) {
	struct pkt_count drop[DROP_REASONS] = {0};
	struct fact fault;

	ck_assert(!path_none_for_most(0, drop, &fault));
	drop[DROP_MALFORMED].pkts = 14198;
	drop[DROP_NO_ROUTE].pkts = 8286;
	drop[DROP_QUEUE_FULL].pkts = 1000000; // is what a bottleneck is for
	ck_assert(path_none_for_most(22486, drop, &fault));
	ck_assert_str_eq(fault.sentence,
		"most of what came was thrown away: of 22486 frames received, 14198 were malformed "
		"and 8286 had no port to leave by");
	drop[DROP_CUT].pkts = drop[DROP_MALFORMED].pkts;
	drop[DROP_MALFORMED].pkts = 0;
	ck_assert(path_none_for_most(22486, drop, &fault));
	ck_assert_str_eq(fault.sentence,
		"most of what came was thrown away: of 22486 frames received, 14198 were longer "
		"than the port receives (at the host set the MTU to 1500, and tso, gso and gro "
		"off) and 8286 had no port to leave by");
	ck_assert(!path_none_for_most(2 * 22484, drop, &fault));
	ck_assert(path_none_for_most(2 * 22484 - 1, drop, &fault));
}

// Those of this run alone, in its order: the header has a page for all names.
TEST(only_what_is_there_is_named_as_an_observer) {
	struct world w = open_paths("paths: {forward: [{edges: {count: 2, rate: 1Gbit}}, {link: "
				    "{rate: 8Gbit}}, {delay: {delay: 1ms}}, {link: {rate: "
				    "8Gbit, queue: {codel: {}}}}], reverse: [{link: {rate: 8Gbit, "
				    "queue: {codel: {}}}}]}");
	char text[TEL_HEADER_SIZE];
	struct tel_run run = {0};

	paths_observers(w.ps, &run);
	paths_observers(w.ps, &run);
	ck_assert_uint_eq(run.observers, 2);
	ck_assert_uint_eq(tel_observer_number(&run, TEL_STREAM_EVENTS, "edges"), 0);
	ck_assert_uint_eq(tel_observer_number(&run, TEL_STREAM_EVENTS, "codel"), 1);
	ck_assert_uint_eq(tel_observer_number(&run, TEL_STREAM_EVENTS, "fifo"), UINT32_MAX);
	ck_assert_uint_eq(tel_observer_number(&run, TEL_STREAM_EVENTS, "pie"), UINT32_MAX);
	ck_assert_uint_eq(tel_observer_number(&run, TEL_STREAM_CC, "codel"), UINT32_MAX);
	tel_schema_json(&run, TEL_STREAM_EVENTS, text, sizeof(text));
	ck_assert_ptr_nonnull(strstr(
		text, "{\"number\":1,\"name\":\"codel\",\"observed\":[\"count\",\"dropping\","));
}

TEST(what_a_queue_observes_is_recorded) {
	struct world w = open_paths("paths: {forward: [{link: {rate: 8Gbit, queue: {fifo: {limit: "
				    "99pkt}}}}, {link: {rate: 800kbit, queue: {codel: {limit: "
				    "99pkt}}}}]}");
	struct pkt *pkts = pkts_new(90, 980);
	static struct tel_links record[8];
	static struct tel_events event[4];
	static struct tel_header header;
	struct tel links = tel_of(&header, record, sizeof(record[0]), 8);
	struct tel events = tel_of(&header, event, sizeof(event[0]), 4);
	static const double count[] = {0, 1, 3};

	for (int i = 0; i < 90; i++)
		put(&w.ps->path[0], &pkts[i], 1000);
	for (uint64_t i = 0; i < 3; i++) {
		paths_interval(w.ps, &links, &events, (i + 1) * 100 * MS);
		ck_assert_uint_eq(events.written, i + 1);
		ck_assert_uint_eq(event[i].ts_ns, (i + 1) * 100 * MS);
		ck_assert_uint_eq(event[i].event, TEL_EV_OBSERVED);
		ck_assert_uint_eq(event[i].group, 1);
		ck_assert_uint_eq(event[i].flow_id, TEL_NO_FLOW);
		ck_assert_double_eq(event[i].value, count[i]);
		ck_assert_float_eq(event[i].value2, count[i] > 0);
		// 57735026 ns as a float
		ck_assert_float_eq(event[i].value3, i == 0 ? 0 : i == 1 ? 100e6f : 57735024.0f);
		ck_assert_float_eq(event[i].value4, i > 0);
		ck_assert_uint_eq(event[i].stage, 1);
	}
}

// Which of 64 packets a path drops: a bit each.
static uint64_t lost_of(const char *stages) {
	char text[512];

	snprintf(text, sizeof(text), "paths: {forward: [%s]}", stages);
	struct world w = open_paths(text);
	struct path *p = &w.ps->path[0];
	struct pkt *pkts = pkts_new(64, 100);
	uint64_t lost = 0;

	for (uint32_t i = 0; i < 64; i++)
		put(p, &pkts[i], i * MS);
	path_serve(p, NS_PER_S);
	for (struct pkt *d; (d = pkt_list_pop(&dropped)) != NULL;)
		lost |= UINT64_C(1) << (d - pkts);
	test_close(pkts);
	return lost;
}

// A random stream follows its stage's name, never its position in the list.
TEST(a_stage_more_moves_no_others_draws) {
	uint64_t lost = lost_of("{loss: {rate: 30%}}");
	uint64_t air = lost_of("{loss: {rate: 30%, name: air}}");

	ck_assert(lost != 0 && lost != air);
	ck_assert_uint_eq(lost_of("{delay: {delay: 1ms}}, {loss: {rate: 30%}}"), lost);
	ck_assert_uint_eq(lost_of("{link: {rate: 1Gbit, queue: {fifo: {limit: 9pkt}}}}, "
				  "{delay: {delay: 1ms}}, {loss: {rate: 30%}}"),
		lost);
	ck_assert_uint_eq(lost_of("{loss: {rate: 30%}}, {loss: {rate: 0%}}"), lost);
	ck_assert_uint_eq(lost_of("{loss: {rate: 0%}}, {loss: {rate: 30%, name: air}}"), air);
	ck_assert_uint_ne(lost_of("{loss: {rate: 0%}}, {loss: {rate: 30%}}"), lost); // loss2
}

// A key that a stage reads itself has no table; what --list says of it must hold all the same.
TEST(a_links_queue_is_a_fifo_unless_said) {
	struct world w =
		open_paths("paths: {forward: [{link: {rate: 1Gbit}}, {delay: {delay: 1ms}}]}");
	struct config_node *link = config_get(
		config_at(config_get(config_get(config_root(w.config), "paths"), "forward"), 0),
		"link");
	char *text;
	size_t size;
	FILE *out = open_memstream(&text, &size);
	struct run_list l;

	ck_assert_str_eq(config_key(config_get(link, "queue"), 0), "fifo");
	run_list_begin(&l, &(struct run_options){.list = "stage"}, out);
	paths_list(&l);
	ck_assert_int_eq(run_list_end(&l, "stage", &w.err), 0);
	fclose(out);
	ck_assert_ptr_nonnull(strstr(text, "\n  queue              fifo "));
	free(text);
}

static bool reads_flows(const char *stages) {
	char text[256];

	snprintf(text, sizeof(text), "paths: {forward: [%s, {delay: {delay: 1ms}}]}", stages);
	struct world w = open_paths(text);
	bool reads = paths_flows(w.ps);
	return reads;
}

// Live, a packet's flow is computed for these only.
TEST(stages_that_read_flows_say_so) {
	ck_assert(!reads_flows("{loss: {rate: 1%}}, {link: {rate: 1Gbit, queue: fifo}}"));
	ck_assert(!reads_flows("{link: {rate: 1Gbit, queue: codel}}"));
	ck_assert(reads_flows("{link: {rate: 1Gbit, queue: fq_codel}}"));
	ck_assert(reads_flows("{loss: {rate: 1%}}, {link: {rate: 1Gbit, queue: drr}}"));
	ck_assert(reads_flows("{edges: {count: 2, rate: 1Gbit}}"));
}

#if defined(__SANITIZE_ADDRESS__)
#define OWN_MEMORY 1
#elif defined(__has_feature)
#define OWN_MEMORY __has_feature(address_sanitizer)
#else
#define OWN_MEMORY 0
#endif

#if !OWN_MEMORY
static uint32_t allocations;

void *__libc_calloc(size_t n, size_t size);

void *calloc(size_t n, size_t size) {
	allocations++;
	return __libc_calloc(n, size);
}
#endif

// A live lcore changes parameters: it allocated a whole state to check each.
TEST(a_change_allocates_nothing) {
#if !OWN_MEMORY
	struct world w =
		open_paths("paths: {forward: [{link: {rate: 8Gbit, queue: codel}}, {delay: "
			   "{delay: 1ms}}]}");
	double before, after;
	uint32_t already = allocations;

	ck_assert_uint_gt(already, 0);
	ck_assert_int_eq(
		path_set(&w.ps->path[0], "link.rate", "4Gbit", 1500, &before, &after, &w.err), 0);
	ck_assert_uint_eq(allocations, already);
#endif
}
