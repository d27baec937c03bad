// SPDX-License-Identifier: BSD-3-Clause
#include "common/config/config.h"

#include "test_config.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *const law_names[] = {"exact", "linux", NULL};

struct link {
	uint64_t rate_bps;
	double loss;
	struct limit limit;
	int law;
	bool ecn;
};

static const struct param link_params[] = {
	{"rate", NULL, "serialiser's rate", UNIT_RATE_BPS, PARAM_U64(struct link, rate_bps), 1e3,
		1e12},
	{"loss", "0%", "share lost", UNIT_RATIO, PARAM_F64(struct link, loss), 0, 1},
	{"limit", "1BDP", "of the queue", UNIT_BYTES, PARAM_LIMIT(struct link, limit), 1, 1e12},
	{"law", "exact", "control law", UNIT_NONE, PARAM_ENUM(struct link, law, law_names)},
	{"ecn", "no", "mark", UNIT_NONE, PARAM_BOOL(struct link, ecn)},
	PARAM_END,
};

static const struct param link_also[] = {
	{"queue", "fifo", "its discipline", UNIT_NONE, PARAM_PLUGIN("aqm")}, PARAM_END};

static const char example[] = "# comment\n"
			      "seed: 1\n"
			      "paths:\n"
			      "  forward:\n"
			      "    - loss: {rate: 0%}\n"
			      "    - link: {rate: 100Mbit, queue: {fifo: {limit: 1BDP}}}\n"
			      "    - delay: {delay: 10ms}\n"
			      "    - loss: {rate: 1%}\n"
			      "    - count\n"
			      "flows:\n"
			      "  - {count: 2, cc: copa}\n"
			      "  - {count: 3, cc: {cubic: }}\n";

static struct config *parse(const char *text) {
	struct err err = {""};
	return test_config("x.yaml", text, &err);
}

static char *print(const struct config *c) {
	char *text;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	config_print(c, out);
	fclose(out);
	return text;
}

// The node that a path of keys and numbers leads to.
static struct config_node *find(struct config *c, const char *path) {
	struct config_node *n = config_root(c);
	char copy[256];

	snprintf(copy, sizeof(copy), "%s", path);
	for (char *rest, *part = strtok_r(copy, ".", &rest); part != NULL && n != NULL;
		part = strtok_r(NULL, ".", &rest)) {
		if (config_kind(n) == CONFIG_LIST)
			n = config_at(n, strtoul(part, NULL, 10));
		else
			n = config_get(n, part);
	}
	return n;
}

static void check_text(struct config *c, const char *path, const char *want) {
	struct config_node *n = find(c, path);

	ck_assert_msg(n != NULL, "%s", path);
	ck_assert_msg(config_text(n) != NULL, "%s", path);
	ck_assert_str_eq(config_text(n), want);
}

TEST(tree_and_places) {
	struct config *c = parse(example);

	check_text(c, "seed", "1");
	check_text(c, "paths.forward.1.link.rate", "100Mbit");
	ck_assert_str_eq(config_place(find(c, "seed")), "x.yaml:2:7");
	ck_assert_str_eq(config_place(find(c, "paths.forward.1.link.rate")), "x.yaml:6:20");
	ck_assert_str_eq(config_place(find(c, "flows")), "x.yaml:11:3");
	ck_assert_int_eq(config_kind(find(c, "flows")), CONFIG_LIST);
	ck_assert_uint_eq(config_count(find(c, "flows")), 2);
	ck_assert_uint_eq(config_count(find(c, "seed")), 0);
	ck_assert_str_eq(config_key(find(c, "flows.0"), 1), "cc");
	ck_assert_ptr_null(config_text(find(c, "flows")));
	ck_assert_ptr_null(find(c, "nothing"));
}

struct wrong {
	const char *text, *sentence;
};

static const struct wrong bad_yaml[] = {
	{"", "x.yaml: the file is empty"},
	{"# only this\n", "x.yaml: the file is empty"},
	{"--- ~\n", "x.yaml:1:5: a config starts with 'key: value', not with a single value"},
	{"- a\n", "x.yaml:1:1: a config starts with 'key: value', not with a list"},
	{"a: 1\nb: 2\na: 3\n", "x.yaml:3:1: 'a' is given twice; the first is at x.yaml:1:1"},
	{"a: {b: 1, \"b\": 2}\n", "x.yaml:1:11: 'b' is given twice; the first is at x.yaml:1:5"},
	{"a: &base {b: 1}\n",
		"x.yaml:1:4: anchors and aliases (&base) are not supported: write "
		"the value out"},
	{"a: *base\n",
		"x.yaml:1:4: anchors and aliases (*base) are not supported: write the value "
		"out"},
	{"*base : 1\n",
		"x.yaml:1:1: anchors and aliases (*base) are not supported: write the "
		"value out"},
	{"a: &x [1]\n",
		"x.yaml:1:4: anchors and aliases (&x) are not supported: write the value "
		"out"},
	{"a: !!int 3\n",
		"x.yaml:1:4: tags (tag:yaml.org,2002:int) are not supported: leave it "
		"out"},
	{"[a]: 1\n", "x.yaml:1:1: a key must be a plain name, not a list"},
	{"{a: 1}: 1\n", "x.yaml:1:1: a key must be a plain name, not a map"},
	{"a: 1\n---\nb: 2\n", "x.yaml:2:1: a second YAML document starts here"},
	{"a: 1\n...\nb: 2\n", "x.yaml:3:1: bad YAML: did not find expected <document start>"},
	{"a: {b: 1\nc: 2\n",
		"x.yaml:2:2: bad YAML: did not find expected ',' or '}' while parsing "
		"a flow mapping that starts at 1:4"},
	{"a: {b:{c: 1}}\n", "x.yaml:1:6: bad YAML: a colon without a space behind it"},
	{"a:\n\tb: 2\n", "x.yaml:2:1: bad YAML: a tab; indent with spaces"},
	{"a: 1\n  b: 2\n", "x.yaml:2:4: bad YAML: mapping values are not allowed in this context"},
	{"a: \"\\0\"\n", "x.yaml:1:4: a text may not hold the character NUL"},
	{"a: 1\nt\303\251: x\377y\n", "x.yaml:2:6: not UTF-8 text: invalid leading UTF-8 octet"},
	{"a: \001\n", "x.yaml:1:4: not UTF-8 text: control characters are not allowed"},
	{"a: [[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]\n",
		"x.yaml:1:35: nested more than 32 levels deep"},
	{"kkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkk"
	 "kkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkk: 1\n",
		"x.yaml:1:1: a key may have 128 bytes, this one has 129"},
};

TEST(bad_yaml_is_one_sentence_with_its_place) {
	for (size_t i = 0; i < sizeof(bad_yaml) / sizeof(bad_yaml[0]); i++) {
		const struct wrong *w = &bad_yaml[i];
		struct err err = {""};
		struct config *c = config_parse("x.yaml", w->text, strlen(w->text), &err);
		ck_assert_msg(c == NULL, "%s", w->text);
		ck_assert_str_eq(err.msg, w->sentence);
	}
}

TEST(a_map_has_a_limit) {
	char *text;
	size_t size;
	struct err err;

	for (int n = 1024; n <= 1025; n++) {
		FILE *out = open_memstream(&text, &size);
		for (int i = 0; i < n; i++)
			fprintf(out, "k%d: 1\n", i);
		fclose(out);
		struct config *c = config_parse("x.yaml", text, size, &err);
		ck_assert_int_eq(c != NULL, n == 1024);
		config_free(c);
		free(text);
	}
	ck_assert_str_eq(err.msg, "x.yaml:1025:1: a map may have 1024 entries, not more");
}

TEST(files) {
	char path[] = "/tmp/weir-config-XXXXXX", want[128];
	struct err err;
	int fd = mkstemp(path);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(write(fd, "a: 1\n", 5), 5);
	struct config *c = config_load(path, &err);
	ck_assert_ptr_nonnull(c);
	check_text(c, "a", "1");
	config_free(c);
	ck_assert_int_eq(ftruncate(fd, (4 << 20) + 1), 0);
	ck_assert_ptr_null(config_load(path, &err));
	snprintf(want, sizeof(want), "%s: larger than the 4 MiB a config may have", path);
	ck_assert_str_eq(err.msg, want);
	close(fd);
	unlink(path);
	ck_assert_ptr_null(config_load("/nowhere/x.yaml", &err));
	ck_assert_str_eq(err.msg, "/nowhere/x.yaml: cannot be read: No such file or directory");
	ck_assert_ptr_null(config_load("/tmp", &err));
	ck_assert_str_eq(err.msg, "/tmp: cannot be read: Is a directory");
}

TEST(overrides_set_values) {
	struct config *c = parse(example);
	struct err err = {""};
	static const char *const list[] = {
		"seed=7",
		"duration=30s",
		"telemetry.level=3",
		"paths.forward.link.rate=1Gbit",
		"paths.forward.link.queue={codel: {target: 5ms}}",
		"paths.forward.1.link.ecn=yes",
		"paths.forward.3.loss.rate=2%",
		"paths.forward.count.every=3",
		"paths.reverse=[{delay: {delay: 1ms}}]",
		"paths.reverse.delay.jitter=1us",
		"flows.0.count=20",
		"flows.0.cc.copa.delta=0.1",
		"flows.1.cc.cubic.beta=0.7",
		"flows.1.name=",
		"title=a = b",
	};

	for (size_t i = 0; i < sizeof(list) / sizeof(list[0]); i++)
		ck_assert_msg(config_override(c, list[i], &err) == 0, "%s", err.msg);
	check_text(c, "seed", "7");
	check_text(c, "duration", "30s");
	check_text(c, "telemetry.level", "3");
	check_text(c, "paths.forward.1.link.rate", "1Gbit");
	check_text(c, "paths.forward.1.link.queue.codel.target", "5ms");
	check_text(c, "paths.forward.1.link.ecn", "yes");
	check_text(c, "paths.forward.0.loss.rate", "0%");
	check_text(c, "paths.forward.3.loss.rate", "2%");
	check_text(c, "paths.forward.4.count.every", "3");
	check_text(c, "paths.reverse.0.delay.jitter", "1us");
	check_text(c, "flows.0.count", "20");
	check_text(c, "flows.0.cc.copa.delta", "0.1");
	check_text(c, "flows.1.cc.cubic.beta", "0.7");
	check_text(c, "flows.1.name", "");
	check_text(c, "title", "a = b");
	ck_assert_str_eq(config_place(find(c, "paths.forward.1.link.queue.codel.target")),
		"-o paths.forward.link.queue={codel: {target: 5ms}}");
}

// Overrides name a stage as schedules, `weir ctl` and summaries do.
TEST(items_of_a_list_have_one_name) {
	struct config *c = parse("paths:\n"
				 "  forward:\n"
				 "    - link: {rate: 1Gbit}\n"
				 "    - delay: {delay: 1ms}\n"
				 "    - link: {rate: 2Gbit}\n"
				 "    - link: {rate: 3Gbit, name: last}\n"
				 "flows:\n"
				 "  - {count: 1, cc: copa}\n"
				 "  - {count: 1, cc: copa, name: late}\n");
	struct err err = {""};
	static const char *const list[] = {
		"paths.forward.link.rate=10Gbit",
		"paths.forward.link2.rate=20Gbit",
		"paths.forward.last.rate=30Gbit",
		"paths.forward.link3.overhead=0B",
		"paths.forward.2.link.overhead=1B",
		"flows.late.count=7",
	};

	for (size_t i = 0; i < sizeof(list) / sizeof(list[0]); i++)
		ck_assert_msg(config_override(c, list[i], &err) == 0, "%s", err.msg);
	check_text(c, "paths.forward.0.link.rate", "10Gbit");
	check_text(c, "paths.forward.2.link.rate", "20Gbit");
	check_text(c, "paths.forward.3.link.rate", "30Gbit");
	check_text(c, "paths.forward.3.link.overhead", "0B");
	check_text(c, "paths.forward.2.link.overhead", "1B");
	check_text(c, "flows.0.count", "1");
	check_text(c, "flows.1.count", "7");
}

// The keys of a schedule's item and of `sysctl` contain dots.
TEST(a_key_with_dots_is_one_part) {
	struct config *c = parse("schedule:\n"
				 "  - {at: 1s, forward.link.rate: 1Mbit}\n"
				 "branches: {v1: {a.b: 1}, v1.x: {c.d: 1}}\n");
	struct err err = {""};
	static const char *const list[] = {
		"schedule.0.forward.link.rate=2Mbit",
		"schedule.0.reverse.link.rate=3Mbit",
		"schedule.0.at=4s",
		"branches.v1.a.b=5",
		"branches.v1.x.c.d=6",
	};
	struct config_node *item;

	for (size_t i = 0; i < sizeof(list) / sizeof(list[0]); i++)
		ck_assert_msg(config_override(c, list[i], &err) == 0, "%s", err.msg);
	item = find(c, "schedule.0");
	ck_assert_uint_eq(config_count(item), 3);
	ck_assert_str_eq(config_text(config_get(item, "forward.link.rate")), "2Mbit");
	ck_assert_str_eq(config_text(config_get(item, "reverse.link.rate")), "3Mbit");
	ck_assert_str_eq(config_text(config_get(item, "at")), "4s");
	item = find(c, "branches");
	ck_assert_str_eq(config_text(config_get(config_get(item, "v1"), "a.b")), "5");
	ck_assert_str_eq(config_text(config_get(config_get(item, "v1.x"), "c.d")), "6");
}

static const struct wrong bad_overrides[] = {
	{"seed", "-o seed: write it as -o path.to.key=value"},
	{"=1", "-o =1: a part of the path is empty"},
	{"a..b=1", "-o a..b=1: a part of the path is empty"},
	{"a.=1", "-o a.=1: a part of the path is empty"},
	{"a.b\377=1", "-o a.b\377=1: the path is not UTF-8 text"},
	{"seed.x=1", "-o seed.x=1: seed is '1' (x.yaml:2:7), not a map"},
	{"flows.2.count=1", "-o flows.2.count=1: there is no flows.2, the list has 2 items"},
	{"flows.99999999999999999999=1",
		"-o flows.99999999999999999999=1: there is no flows.99999999999999999999, the list "
		"has 2 items"},
	{"flows.x=1",
		"-o flows.x=1: the list flows has no item called 'x': write its number, from 0"},
	{"flows.1x=1",
		"-o flows.1x=1: the list flows has no item called '1x': write its number, from 0"},
	{"paths.forward.loss3.rate=1%",
		"-o paths.forward.loss3.rate=1%: the list paths.forward has no item called "
		"'loss3'; it has loss, link, delay, loss2, count"},
	{"paths.forward.loss1.rate=1%",
		"-o paths.forward.loss1.rate=1%: the list paths.forward has no item called "
		"'loss1'; it has loss, link, delay, loss2, count"},
	{"flows.0.cc.cubic.beta=0.5",
		"-o flows.0.cc.cubic.beta=0.5: flows.0.cc is copa (x.yaml:11:20), not cubic; to "
		"replace it write -o 'flows.0.cc={cubic: {beta: 0.5}}'"},
	{"seed={a: 1",
		"-o seed={a: 1: bad YAML: did not find expected ',' or '}' while parsing a "
		"flow mapping that starts at 1:1"},
	{"seed={a: 1, a: 2}", "-o seed={a: 1, a: 2}: 'a' is given twice"},
	{"seed=*x", "-o seed=*x: anchors and aliases (*x) are not supported: write the value out"},
	{"a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a=1",
		"-o a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a=1: nested more "
		"than 32 levels deep"},
};

TEST(bad_overrides_are_one_sentence) {
	for (size_t i = 0; i < sizeof(bad_overrides) / sizeof(bad_overrides[0]); i++) {
		struct config *c = parse(example);
		struct err err = {""};
		ck_assert_msg(config_override(c, bad_overrides[i].text, &err) == -EINVAL, "%s",
			bad_overrides[i].text);
		ck_assert_str_eq(err.msg, bad_overrides[i].sentence);
	}
}

TEST(params_are_typed_and_resolved) {
	struct config *c = parse("link: {rate: 100Mbit, law: linux, queue: fifo}\n");
	struct config_node *n = find(c, "link");
	struct link link = {0};
	struct err err = {""};

	ck_assert_msg(
		config_params(n, "link", link_params, link_also, &link, &err) == 0, "%s", err.msg);
	ck_assert_uint_eq(link.rate_bps, 100000000);
	ck_assert_int_eq(link.law, 1);
	ck_assert_int_eq(link.limit.kind, LIMIT_BDP);
	ck_assert(!link.ecn);
	ck_assert_int_eq(config_unused(c, &err), -EINVAL);
	ck_assert_str_eq(err.msg, "x.yaml:1:35: unknown key 'queue'");
	config_get(n, "queue");
	ck_assert_int_eq(config_unused(c, &err), 0);
	char *text = print(c);
	ck_assert_str_eq(text,
		"link:\n  rate: 100Mbit\n  law: linux\n  queue: fifo\n  loss: 0%\n  limit: 1BDP\n"
		"  ecn: no\n");
	free(text);
}

static const struct wrong bad_params[] = {
	{"link: {rate: 500bit}\n", "x.yaml:1:14: rate: 500bit is not in [1kbit, 1Tbit]"},
	{"link: {rate: 10Gbitt}\n", "x.yaml:1:14: rate: '10Gbitt' is not a rate such as 10Gbit"},
	{"link:\n  rat: 1Gbit\n", "x.yaml:2:3: link: unknown key 'rat'; did you mean 'rate'?"},
	{"link: {rate: 1Gbit,iface=veth0}\n",
		"x.yaml:1:20: link: unknown key 'iface=veth0'; a value with a comma in it needs "
		"quotes"},
	{"link:\n  rate: 1Gbit\n  queu: fifo\n",
		"x.yaml:3:3: link: unknown key 'queu'; did you mean 'queue'?"},
	{"link: {colour: red}\n", "x.yaml:1:8: link: unknown key 'colour'"},
	{"link: {x: 1}\n", "x.yaml:1:8: link: unknown key 'x'"},
	{"link: {rate: [1Gbit]}\n", "x.yaml:1:14: rate: a single value is wanted, not a list"},
	{"link: {rate: {a: 1}}\n", "x.yaml:1:14: rate: a single value is wanted, not a map"},
	{"link: {loss: 1%}\n", "x.yaml:1:7: link: rate is required"},
	{"link: {}\n", "x.yaml:1:7: link: rate is required"},
	{"link:\n", "x.yaml:1:6: link: rate is required"},
	{"link: 1Gbit\n", "x.yaml:1:7: link: a map of parameters is wanted, not '1Gbit'"},
	{"link: [1Gbit]\n", "x.yaml:1:7: link: a map of parameters is wanted, not a list"},
};

TEST(bad_params_are_one_sentence) {
	for (size_t i = 0; i < sizeof(bad_params) / sizeof(bad_params[0]); i++) {
		struct config *c = parse(bad_params[i].text);
		struct link link;
		struct err err = {""};
		ck_assert_int_lt(
			config_params(find(c, "link"), "link", link_params, link_also, &link, &err),
			0);
		ck_assert_str_eq(err.msg, bad_params[i].sentence);
	}
	struct link link;
	struct err err = {""};
	ck_assert_int_eq(config_params(NULL, "link", link_params, link_also, &link, &err), -EINVAL);
	ck_assert_str_eq(err.msg, "link: rate is required");
}

TEST(an_override_is_the_place_of_its_error) {
	struct config *c = parse("link: {rate: 1Gbit}\n");
	struct link link;
	struct err err = {""};

	ck_assert_int_eq(config_override(c, "link.rate=500bit", &err), 0);
	ck_assert_int_eq(
		config_params(find(c, "link"), "link", link_params, link_also, &link, &err),
		-ERANGE);
	ck_assert_str_eq(err.msg, "-o link.rate=500bit: rate: 500bit is not in [1kbit, 1Tbit]");
	ck_assert_int_eq(config_override(c, "link.rate=1Gbit", &err), 0);
	ck_assert_int_eq(config_override(c, "link.rato=1Gbit", &err), 0);
	ck_assert_int_eq(
		config_params(find(c, "link"), "link", link_params, link_also, &link, &err),
		-EINVAL);
	ck_assert_str_eq(
		err.msg, "-o link.rato=1Gbit: link: unknown key 'rato'; did you mean 'rate'?");
}

TEST(plugins) {
	struct config *c = parse("bare: fifo\nempty: {fifo: }\nfull: {codel: {target: 5ms}}\n");
	struct config_node *params;
	const char *name;
	struct err err;

	ck_assert_int_eq(config_plugin(find(c, "bare"), "queue", &name, &params, &err), 0);
	ck_assert_str_eq(name, "fifo");
	ck_assert_uint_eq(config_count(params), 0);
	config_add(params, "limit", "1BDP");
	ck_assert_int_eq(config_plugin(find(c, "empty"), "queue", &name, &params, &err), 0);
	ck_assert_str_eq(name, "fifo");
	ck_assert_uint_eq(config_count(params), 0);
	ck_assert_int_eq(config_plugin(find(c, "full"), "queue", &name, &params, &err), 0);
	ck_assert_str_eq(name, "codel");
	ck_assert_str_eq(config_text(config_get(params, "target")), "5ms");
	ck_assert_int_eq(config_unused(c, &err), 0);
	char *text = print(c);
	ck_assert_str_eq(text,
		"bare:\n  fifo:\n    limit: 1BDP\nempty:\n  fifo: {}\nfull:\n"
		"  codel:\n    target: 5ms\n");
	free(text);
}

static const struct wrong bad_plugins[] = {
	{"queue: {fifo: , codel: }\n",
		"x.yaml:1:8: queue: one name is wanted, not 2 ('fifo', 'codel')"},
	{"queue: {a: , b: , c: }\n",
		"x.yaml:1:8: queue: one name is wanted, not 3 ('a', 'b', ...)"},
	{"queue: [fifo]\n", "x.yaml:1:8: queue: a name or {name: {...}} is wanted, not a list"},
	{"queue:\n", "x.yaml:1:7: queue: a name is wanted"},
	{"queue: {}\n", "x.yaml:1:8: queue: a name is wanted"},
	{"other: 1\n", "queue is required"},
};

TEST(bad_plugins_are_one_sentence) {
	for (size_t i = 0; i < sizeof(bad_plugins) / sizeof(bad_plugins[0]); i++) {
		struct config *c = parse(bad_plugins[i].text);
		struct config_node *params;
		const char *name;
		struct err err = {""};
		ck_assert_int_eq(
			config_plugin(find(c, "queue"), "queue", &name, &params, &err), -EINVAL);
		ck_assert_str_eq(err.msg, bad_plugins[i].sentence);
	}
}

TEST(a_parameter_of_another_plugin_says_how_to_replace_it) {
	struct config *c = parse("link: {queue: {codel: {target: 5ms}}}\n");
	struct config_node *params;
	const char *name;
	struct err err = {""};

	ck_assert_int_eq(config_override(c, "link.queue.fifo.limit=1MB", &err), 0);
	ck_assert_int_eq(
		config_plugin(find(c, "link.queue"), "queue", &name, &params, &err), -EINVAL);
	ck_assert_str_eq(err.msg,
		"-o link.queue.fifo.limit=1MB: queue is codel (x.yaml:1:23), not fifo; to replace "
		"it write -o 'link.queue={fifo: {limit: 1MB}}'");
}

TEST(a_key_that_nobody_reads_is_an_error) {
	struct config *c =
		parse("durations: 3s\nflows:\n  - {count: 1, start: 0s}\nlive: {a: {b: 1}}\n");
	struct err err;

	config_get(config_root(c), "duration");
	ck_assert_int_eq(config_unused(c, &err), -EINVAL);
	ck_assert_str_eq(err.msg, "x.yaml:1:1: unknown key 'durations'; did you mean 'duration'?");
	config_get(config_root(c), "durations");
	config_get(config_at(config_get(config_root(c), "flows"), 0), "count");
	ck_assert_int_eq(config_unused(c, &err), -EINVAL);
	ck_assert_str_eq(err.msg, "x.yaml:3:16: unknown key 'start'");
	config_get(config_at(config_get(config_root(c), "flows"), 0), "start");
	ck_assert_int_eq(config_unused(c, &err), -EINVAL);
	ck_assert_str_eq(err.msg, "x.yaml:4:1: unknown key 'live'");
	config_skip(config_get(config_root(c), "live"));
	config_skip(config_get(config_root(c), "nothing"));
	ck_assert_int_eq(config_unused(c, &err), 0);
}

TEST(a_missing_section_is_made) {
	struct config *c = parse("a: 1\nb:\n");

	config_add(config_section(config_root(c), "b"), "x", "2");
	config_add(config_section(config_root(c), "c"), "y", "3");
	char *text = print(c);
	ck_assert_str_eq(text, "a: 1\nb:\n  x: 2\nc:\n  y: 3\n");
	free(text);
}

static void check_same_after_print(struct config *c) {
	struct err err = {""};
	char *first = print(c);
	struct config *back = config_parse("printed", first, strlen(first), &err);

	ck_assert_msg(back != NULL, "%s\n%s", err.msg, first);
	char *second = print(back);
	ck_assert_str_eq(first, second);
	free(first);
	free(second);
	config_free(back);
}

TEST(prints_what_loads_back) {
	static const char *const texts[] = {
		example,
		"a: {}\nb: []\nc:\nd: ''\n\"\": x\n",
		"a:\n  - - 1\n    - - {b: 2, c: [3]}\n      - []\n  - {}\n  - ''\n",
		"t: \"a: b #c\\n\\t\\\\\\\"\\x01\\x7f\\x85\\u2028\\ufeff\\U0001f600\"\n",
		"t: '  spaces  '\nu: '- x'\nv: '#'\nw: '...'\nx: 'a #b'\ny: 'a:'\nz: '\303\251'\n",
		"dev: 0000:01:00.0\nargs: net_pcap0,rx_pcap=/tmp/a.pcap\nq: '? a'\n"
		"b: |\n  x\n  y\n",
	};

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		struct config *c = parse(texts[i]);
		check_same_after_print(c);
	}
	struct config *c = parse(texts[3]);
	char *text = print(c);
	ck_assert_str_eq(text,
		"t: \"a: b #c\\n\\t\\\\\\\"\\x01\\x7f\\x85\\u2028\\ufeff"
		"\360\237\230\200\"\n");
	free(text);
}

// A multiplicative congruential generator is random enough here.
static uint32_t draw(uint64_t *state, uint32_t sides) {
	*state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (uint32_t)(*state >> 33) % sides;
}

static void random_text(uint64_t *state, char *text, size_t max) {
	static const char odd[] = ":#-?,[]{}&*!|>'\"%@` \n\t\\.=~";
	size_t len = draw(state, (uint32_t)max);

	for (size_t i = 0; i < len; i++)
		text[i] = draw(state, 2) ? odd[draw(state, sizeof(odd) - 1)]
					 : (char)('a' + draw(state, 26));
	text[len] = '\0';
}

TEST(any_text_survives_printing) {
	uint64_t state = 1;
	char key[20], value[30];

	for (int i = 0; i < 500; i++) {
		struct config *c = parse("a: 1\n");
		for (int k = 0; k < 8; k++) {
			random_text(&state, key, sizeof(key));
			random_text(&state, value, sizeof(value));
			struct config_node *map = config_root(c);
			if (config_get(map, key) != NULL)
				continue;
			if (draw(&state, 3) == 0)
				config_add(config_section(map, key), value, key);
			else
				config_add(map, key, value);
		}
		char *text = print(c);
		struct config *back = parse(text);
		for (size_t k = 0; k < config_count(config_root(c)); k++) {
			struct config_node *was = config_at(config_root(c), k);
			struct config_node *is = config_at(config_root(back), k);
			ck_assert_str_eq(
				config_key(config_root(c), k), config_key(config_root(back), k));
			ck_assert_int_eq(config_kind(was), config_kind(is));
			if (config_kind(was) == CONFIG_SCALAR)
				ck_assert_str_eq(config_text(was), config_text(is));
		}
		check_same_after_print(c);
		free(text);
	}
}

// Files with one name in two folders have two copies; the same file named twice has one.
TEST(files_are_copied_under_names_of_their_own) {
	static const char *const names[] = {"a/t", "b/t", "a/t"};
	static const char *const copies[] = {"file-t", "file-2-t", "file-t"};
	char folder[] = "/tmp/weir-config-XXXXXX", path[256], text[512], shown[4096];
	const struct config_file *file;
	struct err err = {""};

	ck_assert_ptr_nonnull(mkdtemp(folder));
	for (int i = 0; i < 2; i++) {
		snprintf(path, sizeof(path), "%s/%c", folder, "ab"[i]);
		ck_assert_int_eq(mkdir(path, 0700), 0);
		snprintf(path, sizeof(path), "%s/%s", folder, names[i]);
		FILE *f = fopen(path, "w");
		fprintf(f, "%d\n", i);
		fclose(f);
	}
	snprintf(path, sizeof(path), "%s/x.yaml", folder);
	snprintf(text, sizeof(text), "one: {file: a/t}\ntwo: {file: b/t}\nthree: {file: %s/a/t}\n",
		folder);
	struct config *c = config_parse(path, text, strlen(text), &err);
	for (size_t i = 0; i < 3; i++) {
		ck_assert_msg(
			config_read_file(config_at(config_root(c), i), "file", &file, &err) == 0,
			"%s", err.msg);
		ck_assert_str_eq(file->text, i == 1 ? "1\n" : "0\n");
		ck_assert_str_eq(file->copy, copies[i]);
	}
	config_use_copies(c);
	FILE *out = fmemopen(shown, sizeof(shown), "w");
	config_print(c, out);
	fclose(out);
	ck_assert_ptr_nonnull(strstr(shown, "file: file-2-t"));
	ck_assert_ptr_nonnull(strstr(shown, "digest: "));
	ck_assert_ptr_null(strstr(shown, "a/t"));
	config_free(c);

	// A config that another program wrote into the run folder names the original, which is not
	// there.
	snprintf(path, sizeof(path), "%s/file-gone", folder);
	FILE *f = fopen(path, "w");
	fputs("copy", f);
	fclose(f);
	snprintf(path, sizeof(path), "%s/config.yaml", folder);
	c = config_parse(path, "{one: {file: ../far/gone}, two: {file: ../far/none}}", 52, &err);
	ck_assert_int_eq(config_read_file(config_at(config_root(c), 0), "file", &file, &err), 0);
	ck_assert_str_eq(file->text, "copy");
	ck_assert_str_eq(file->copy, "file-gone");
	ck_assert_int_lt(config_read_file(config_at(config_root(c), 1), "file", &file, &err), 0);
	ck_assert_ptr_nonnull(strstr(err.msg, "none: cannot be read: No such file or directory"));
	config_free(c);
	snprintf(path, sizeof(path), "rm -r %s", folder);
	ck_assert_int_eq(system(path), 0);
}

static void write_text(const char *path, const char *text) {
	FILE *f = fopen(path, "w");

	ck_assert_ptr_nonnull(f);
	fputs(text, f);
	fclose(f);
}

// `cc: {python: mine.py:Mine}`: a text with a file in it, and a file that this one needs.
TEST(a_part_of_a_file_is_named_with_it) {
	static const char text[] = "{python: mine.py:Mine}";
	char folder[] = "/tmp/weir-config-XXXXXX", path[256], want[256];
	const struct config_file *file;
	struct err err;

	ck_assert_ptr_nonnull(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/mine.py", folder);
	write_text(path, "import other");
	snprintf(path, sizeof(path), "%s/other.py", folder);
	write_text(path, "");
	snprintf(path, sizeof(path), "%s/c.yaml", folder);
	struct config *c = config_parse(path, text, sizeof(text) - 1, &err);
	struct config_node *root = config_root(c);

	ck_assert_int_eq(config_read_part(root, "python", &file, &err), 0);
	ck_assert_str_eq(file->text, "import other");
	snprintf(want, sizeof(want), "%s/mine.py:Mine", folder);
	ck_assert_str_eq(config_file_text(file, file->path), want);
	snprintf(path, sizeof(path), "%s/other.py", folder);
	ck_assert_int_eq(config_read_also(root, path, &err), 0);
	ck_assert_str_eq(config_files(c)->copy, "file-other.py");
	config_use_absolute(c);
	check_text(c, "python", want);
	config_use_copies(c);
	check_text(c, "python", "file-mine.py:Mine");
	ck_assert_int_lt(config_read_also(root, "/nowhere/other.py", &err), 0);
	ck_assert_ptr_nonnull(strstr(err.msg, "file: /nowhere/other.py: cannot be read"));
	config_free(c);
	snprintf(path, sizeof(path), "rm -r %s", folder);
	ck_assert_int_eq(system(path), 0);
}
