// SPDX-License-Identifier: BSD-3-Clause
#include "common/run/run.h"

#include "common/run/run_list.h"

#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <inttypes.h>
#include <math.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[64]; // of one test
static char config_path[96];

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *where) {
	return remove(path);
}

static void remove_folder(void *of) {
	nftw(of, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

static void begin(const char *config) {
	strcpy(folder, "/tmp/weir-run-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(folder));
	test_closes(remove_folder, folder);
	snprintf(config_path, sizeof(config_path), "%s/two.flows.yaml", folder);
	FILE *f = fopen(config_path, "w");
	fputs(config, f);
	fclose(f);
}

static bool exists(const char *dir, const char *name) {
	char path[768];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	return access(path, F_OK) == 0;
}

static void leave(const char *dir, const char *name) {
	char path[256];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	FILE *f = fopen(path, "w");
	ck_assert_ptr_nonnull(f);
	fclose(f);
}

static bool balanced(void *of, FILE *out, const struct facts *verdict) {
	ck_assert_ptr_eq(of, &folder);
	fputs(facts_verdict(verdict), out);
	return true;
}

static bool lopsided(void *of, FILE *out, const struct facts *verdict) {
	balanced(of, out, verdict);
	return false;
}

// Those of a run that ended well, or as `cause` says.
static struct facts *facts(const char *cause) {
	static struct facts all;

	all = (struct facts){0};
	if (cause != NULL)
		facts_say(&all, cause, "%s", cause);
	return &all;
}

static char *read_text(const char *dir, const char *name) {
	char path[768], *text = calloc(1, 1 << 16);

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	FILE *f = fopen(path, "r");
	ck_assert_msg(f != NULL, "%s", path);
	ck_assert_uint_lt(fread(text, 1, (1 << 16) - 1, f), (1 << 16) - 1);
	fclose(f);
	return text;
}

// A JSON value (RFC 8259); returns what follows, or NULL.
static const char *json_value(const char *s);

static const char *space(const char *s) {
	return s + strspn(s, " \n\t\r");
}

static const char *json_string(const char *s) {
	if (*s++ != '"')
		return NULL;
	for (; *s != '"'; s++) {
		if ((unsigned char)*s < 0x20)
			return NULL;
		if (*s == '\\' && (*++s == '\0' || strchr("\"\\/bfnrtu", *s) == NULL))
			return NULL;
	}
	return s + 1;
}

static const char *json_members(const char *s, char bracket) {
	s = space(s);
	if (*s == bracket)
		return s + 1;
	for (;;) {
		s = space(s);
		if (bracket == '}') {
			if ((s = json_string(s)) == NULL || *(s = space(s)) != ':')
				return NULL;
			s = space(s + 1);
		}
		if ((s = json_value(s)) == NULL)
			return NULL;
		s = space(s);
		if (*s == bracket)
			return s + 1;
		if (*s++ != ',')
			return NULL;
	}
}

static const char *json_value(const char *s) {
	static const char *const words[] = {"true", "false", "null"};
	char *rest;

	if (*s == '{' || *s == '[')
		return json_members(s + 1, *s == '{' ? '}' : ']');
	if (*s == '"')
		return json_string(s);
	for (size_t i = 0; i < 3; i++) {
		if (strncmp(s, words[i], strlen(words[i])) == 0)
			return s + strlen(words[i]);
	}
	if (strchr("-0123456789", *s) == NULL)
		return NULL;
	strtod(s, &rest);
	return rest;
}

static void check_json(const char *text) {
	const char *rest = json_value(text);

	ck_assert_msg(rest != NULL && strcmp(rest, "\n") == 0, "%s", text);
}

static void check_has(const char *text, const char *part) {
	ck_assert_msg(strstr(text, part) != NULL, "no %s in %s", part, text);
}

static struct run_options opt;
static struct err err;

// Parses words separated by single spaces; they live until the next call.
static int parse(const char *program, const char *words) {
	static char text[8192];
	static char *argv[RUN_OVERRIDES_MAX + 8];
	int argc = 0;

	snprintf(text, sizeof(text), "weir %s", words);
	for (char *word = text, *next; word != NULL; word = next) {
		next = strchr(word, ' ');
		if (next != NULL)
			*next++ = '\0';
		argv[argc++] = word;
	}
	argv[argc] = NULL;
	err.msg[0] = '\0';
	return run_options(&opt, argc, argv, program, &err);
}

TEST(options_all) {
	static const char words[] =
		"-o a=1 x.yaml --seed 5 -ob=2 --duration=3s --out dir --check "
		"--print-config --json --progress --pcap f.pcap --replay a.ring --force --list cc";

	ck_assert_msg(parse("weir-sim", words) == 0, "%s", err.msg);
	ck_assert_str_eq(opt.config_path, "x.yaml");
	ck_assert_int_eq(opt.override_count, 4);
	ck_assert_str_eq(opt.overrides[0], "a=1");
	ck_assert_str_eq(opt.overrides[1], "seed=5");
	ck_assert_str_eq(opt.overrides[2], "b=2");
	ck_assert_str_eq(opt.overrides[3], "duration=3s");
	ck_assert_str_eq(opt.out_dir, "dir");
	ck_assert_str_eq(opt.pcap, "f.pcap");
	ck_assert_str_eq(opt.replay, "a.ring");
	ck_assert_str_eq(opt.list, "cc");
	ck_assert(opt.check && opt.print_config && opt.json && opt.progress && opt.force);
	ck_assert_int_eq(opt.eal_argc, 0);
	ck_assert_int_eq(opt.argc, 21);
	ck_assert_str_eq(opt.argv[1], "-o"); // as written, not sorted
}

TEST(options_few) {
	ck_assert_int_eq(parse("weir-sim", "-"), 0);
	ck_assert_str_eq(opt.config_path, "-");
	ck_assert_ptr_null(opt.list);
	ck_assert_int_eq(parse("weir-sim", "--list"), 0);
	ck_assert_str_eq(opt.list, "");
	ck_assert_int_eq(parse("weir-sim", "--list=aqm --json"), 0);
	ck_assert_str_eq(opt.list, "aqm");
	ck_assert_int_eq(parse("weir-sim", "--list flows"), 0);
	ck_assert_str_eq(opt.list, "flows");
	ck_assert_int_eq(parse("weir-switch", "x -- -l 1"), 0);
	ck_assert_int_eq(opt.eal_argc, 2);
	ck_assert_str_eq(opt.eal_argv[0], "-l");
	ck_assert_str_eq(opt.eal_argv[1], "1");
	ck_assert_int_eq(parse("weir-switch", "x --"), 0);
	ck_assert_int_eq(opt.eal_argc, 0);
}

TEST(the_last_seed_counts) {
	ck_assert_int_eq(parse("weir-sim", "x --seed=1 -oseed=2 --seed=3"), 0);
	ck_assert_int_eq(opt.override_count, 2);
	ck_assert_str_eq(opt.overrides[0], "seed=2");
	ck_assert_str_eq(opt.overrides[1], "seed=3");
}

static void check_refused(const char *program, const char *words, const char *sentence) {
	ck_assert_msg(parse(program, words) == -EINVAL, "%s", words);
	ck_assert_str_eq(err.msg, sentence);
}

TEST(bad_options_are_one_sentence) {
	static char many[6 * RUN_OVERRIDES_MAX + 8];

	check_refused("weir-sim", "--json", "a config file is wanted: weir-sim CONFIG, see --help");
	check_refused("weir-sim", "a b", "one config file is wanted, not two: 'a' and 'b'");
	check_refused("weir-sim", "a --nope=3", "--nope is not an option, see --help");
	check_refused("weir-sim", "a -x", "-x is not an option, see --help");
	check_refused("weir-sim", "a --out", "--out needs a value, see --help");
	check_refused("weir-sim", "a -o", "-o needs a value, see --help");
	check_refused("weir-sim", "a --pcap --force", "--pcap needs a value, see --help");
	check_refused("weir-sim", "a --out --pcap=x", "--out needs a value, see --help");
	check_refused("weir-sim", "a -o --check", "-o needs a value, see --help");
	check_refused("weir-sim", "a --json=x", "--json takes no value, see --help");
	check_refused("weir-sim", "a -- -l", "-l: weir-sim has no EAL to give arguments to");
	check_refused("weir-switch", "a --replay=f", "--replay: only weir-sim replays");
	check_refused("weir-sim",
		"a --seed=11111111112222222222333333333344444444445555555555666666"
		"66667777777777888888888899999999990",
		"--seed: '1111111111222222222233333333334444444444...' is too long");
	for (int i = 0; i <= RUN_OVERRIDES_MAX; i++)
		strcpy(many + 6 * i, "-oa=1 ");
	strcpy(many + 6 * RUN_OVERRIDES_MAX, "-oa=1");
	check_refused("weir-sim", many, "-o a=1: more than 256 overrides");
}

TEST(help_and_version) {
	fflush(stdout);
	ck_assert_ptr_nonnull(freopen("/dev/null", "w", stdout));
	ck_assert_int_eq(parse("weir-sim", "--help"), 1);
	ck_assert_int_eq(parse("weir-switch", "-h --nope"), 1);
	ck_assert_int_eq(parse("weir-sim", "--version"), 1);
}

static struct run run;

static void free_run(void *of) {
	run_free(of);
}

static int load(const char *program, const char *out, bool force) {
	memset(&opt, 0, sizeof(opt));
	opt.program = program;
	opt.config_path = config_path;
	opt.out_dir = out;
	opt.force = force;
	static char words[2][16] = {"weir-sim", "a \"b\"\377\n"};
	static char *argv[] = {words[0], words[1], NULL};
	opt.argc = 2;
	opt.argv = argv;
	err.msg[0] = '\0';
	test_closes(free_run, &run);
	return run_load(&run, &opt, &err);
}

TEST(loads_its_own_keys) {
	begin("seed: 18446744073709551615\nduration: 2min\nwarmup: 1s\ntitle: Two flows\n"
	      "telemetry: {level: 2, sample: 50%}\npaths: {}\n");
	ck_assert_msg(load("weir-sim", NULL, false) == 0, "%s", err.msg);
	ck_assert_uint_eq(run.seed, UINT64_MAX);
	ck_assert_uint_eq(run.duration_ns, 120 * NS_PER_S);
	ck_assert_uint_eq(run.warmup_ns, NS_PER_S);
	ck_assert_str_eq(run.title, "Two flows");
	ck_assert_uint_eq(run.telemetry_level, 2);
	ck_assert_uint_eq(run.telemetry_interval_ns, 100 * NS_PER_MS);
	ck_assert(run.telemetry_sample == 0.5);
	ck_assert_str_eq(run.suffix, "");
}

TEST(defaults_and_overrides) {
	char words[128];

	begin("paths: {}\n");
	ck_assert_int_eq(load("weir-sender", NULL, false), 0);
	ck_assert_uint_eq(run.seed, 1);
	ck_assert_uint_eq(run.duration_ns, 30 * NS_PER_S);
	ck_assert_uint_eq(run.telemetry_level, 1);
	ck_assert_str_eq(run.suffix, "-sender");
	run_free(&run);
	snprintf(words, sizeof(words), "%s --duration=5s", config_path);
	ck_assert_int_eq(parse("weir-sim", words), 0);
	ck_assert_int_eq(run_load(&run, &opt, &err), 0);
	ck_assert_uint_eq(run.duration_ns, 5 * NS_PER_S);
}

// The file is right; what does not fit it is the option.
TEST(a_duration_below_the_warmup_blames_the_option) {
	char words[128], sentence[256];

	begin("warmup: 4s\n");
	snprintf(words, sizeof(words), "%s --duration 1s", config_path);
	ck_assert_int_eq(parse("weir-sim", words), 0);
	ck_assert_int_eq(run_load(&run, &opt, &err), -EINVAL);
	snprintf(sentence, sizeof(sentence),
		"-o duration=1s: duration: 1s is over before the warm-up of 4s (%s:1:9)",
		config_path);
	ck_assert_str_eq(err.msg, sentence);
}

TEST(bad_configs_are_one_sentence) {
	static const struct {
		const char *config, *sentence;
	} bad[] = {
		{"duration: 3x\n",
			"two.flows.yaml:1:11: duration: '3x' is not a time such as 20ms"},
		{"duration: 25h\n", "two.flows.yaml:1:11: duration: 25h is not in [1us, 24h]"},
		{"duration: 1s\nwarmup: 1s\n",
			"two.flows.yaml:2:9: warmup: 1s leaves nothing of the duration, 1s"},
		{"durations: 3s\n",
			"two.flows.yaml:1:1: unknown key 'durations'; did you mean 'duration'?"},
		{"flow: []\n", "two.flows.yaml:1:1: unknown key 'flow'; did you mean 'flows'?"},
		{"telemetry: {level: 4}\n", "two.flows.yaml:1:20: level: 4 is not in [0, 3]"},
		{"telemetry: {levle: 3}\n",
			"two.flows.yaml:1:13: telemetry: unknown key 'levle'; did you mean "
			"'level'?"},
		{"stop: {over: 1}\n", "two.flows.yaml:1:14: over: '1' is not a time such as 20ms"},
		{"seed: -1\n", "two.flows.yaml:1:7: seed: '-1' is not a number such as 64"},
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		begin(bad[i].config);
		ck_assert_int_lt(load("weir-sim", NULL, false), 0);
		ck_assert_str_eq(err.msg + strlen(folder) + 1, bad[i].sentence);
		run_free(&run);
		test_close(folder);
	}
}

TEST(live_runs_do_not_stop_early) {
	begin("warmup: 10s\nstop: {change: 2%}\npaths: {}\n");
	ck_assert_int_eq(load("weir-sim", NULL, false), 0);
	ck_assert_uint_eq(run.stop.next_ns, 70 * NS_PER_S);
	run_free(&run);
	ck_assert_int_eq(load("weir-switch", NULL, false), -EINVAL);
	ck_assert_str_eq(err.msg + strlen(folder) + 1,
		"two.flows.yaml:2:7: stop: only virtual time can end early; "
		"-o stop.metric=none runs the whole duration");
	run_free(&run);
	test_close(folder);
	begin("stop: {metric: none}\npaths: {}\n");
	ck_assert_int_eq(load("weir-sender", NULL, false), 0);
}

TEST(live_runs_do_not_record_segments) {
	begin("telemetry: {level: 2, segments: yes}\npaths: {}\n");
	ck_assert_int_eq(load("weir-sim", NULL, false), 0);
	ck_assert(run.telemetry_segments);
	run_free(&run);
	ck_assert_int_eq(load("weir-sender", NULL, false), -EINVAL);
	ck_assert_str_eq(err.msg + strlen(folder) + 1,
		"two.flows.yaml:1:33: segments: only virtual time records them; "
		"-o telemetry.segments=no runs without, and weir pcap analyze reads those of a "
		"capture");
}

TEST(a_run_folder) {
	char dir[128], first_id[32];

	begin("title: Two flows\npaths: {}\n");
	snprintf(dir, sizeof(dir), "%s/a/b/c", folder);
	ck_assert_int_eq(load("weir-sim", dir, false), 0);
	ck_assert_msg(run_create(&run, &opt, true, &err) == 0, "%s", err.msg);
	ck_assert_str_eq(run.dir, dir);
	ck_assert_str_eq(run.tel.dir, dir);
	ck_assert(run.tel.virtual_time);
	ck_assert_uint_eq(run.tel.seed, 1);
	ck_assert_uint_eq(strlen(run.tel.run_id), 16);
	ck_assert_uint_eq(strspn(run.tel.run_id, "0123456789abcdef"), 16);
	strcpy(first_id, run.tel.run_id);
	uint64_t hash = run.tel.config_hash;

	char *text = read_text(dir, "manifest.json");
	check_json(text);
	check_has(text, "\"verdict\": \"running\"");
	check_has(text, "\"ended_utc\": null");
	check_has(text, "\"clock\": \"virtual\"");
	free(text);

	ck_assert(!exists(dir, "summary.json"));
	ck_assert_int_eq(run_end(&run, balanced, &folder, facts(NULL), 0, &err), 0);
	ck_assert(exists(dir, "summary.json"));
	text = read_text(dir, "manifest.json");
	check_json(text);
	check_has(text, "\"program\": \"weir-sim\"");
	check_has(text, "\"title\": \"Two flows\"");
	check_has(text, "\"a \\\"b\\\"\\ufffd\\u000a\"");
	check_has(text, "\"verdict\": \"ok\"");
	check_has(text, "\"exit\": 0");
	check_has(text, first_id);
	free(text);

	text = read_text(dir, "config.yaml");
	ck_assert_str_eq(text,
		"title: Two flows\npaths: {}\nseed: 1\nduration: 30s\nwarmup: 0s\n"
		"telemetry:\n  level: 1\n  interval: 100ms\n  sample: 1%\n  arrivals: no\n"
		"  segments: no\n  capture: port\n  rotate: 0B\n");
	free(text);
	run_free(&run);

	// The recorded config gives the same run.
	snprintf(config_path, sizeof(config_path), "%s/a/b/c/config.yaml", folder);
	snprintf(dir, sizeof(dir), "%s/again", folder);
	ck_assert_int_eq(load("weir-sim", dir, false), 0);
	ck_assert_int_eq(run_create(&run, &opt, true, &err), 0);
	ck_assert_str_eq(run.tel.run_id, first_id);
	ck_assert_uint_eq(run.tel.config_hash, hash);
}

TEST(the_default_name) {
	char old[256];

	begin("paths: {}\n");
	ck_assert_ptr_nonnull(getcwd(old, sizeof(old)));
	ck_assert_int_eq(chdir(folder), 0);
	ck_assert_int_eq(load("weir-sim", NULL, false), 0);
	ck_assert_msg(run_create(&run, &opt, true, &err) == 0, "%s", err.msg);
	unsigned date, time;
	int pid;
	ck_assert_int_eq(sscanf(run.dir, "runs/two.flows-%8u-%6u-%d", &date, &time, &pid), 3);
	ck_assert_int_eq(pid, getpid());
	ck_assert(exists(run.dir, "manifest.json"));
	run_free(&run);
	ck_assert_int_eq(chdir(old), 0);
}

TEST(how_a_run_ends) {
	char dir[128], want[256];

	begin("paths: {}\n");
	snprintf(dir, sizeof(dir), "%s/run", folder);
	snprintf(want, sizeof(want), "the ledger does not balance: see %s/summary.json", dir);
	const struct {
		run_summary_fn *summary;
		int rc;
		const char *said, *summarised;
	} end_of[] = {
		{balanced, -EIO, "the disk is gone", "the disk is gone"},
		{NULL, -ENOENT, "the disk is gone", NULL},
		{lopsided, 0, want, "interrupted"},
	};

	for (size_t i = 0; i < sizeof(end_of) / sizeof(end_of[0]); i++) {
		ck_assert_int_eq(load("weir-sim", dir, i > 0), 0);
		ck_assert_int_eq(run_create(&run, &opt, true, &err), 0);
		if (end_of[i].rc < 0)
			err_set(&err, end_of[i].rc, "%s", end_of[i].said);
		ck_assert_int_eq(run_end(&run, end_of[i].summary, &folder, facts("interrupted"),
					 end_of[i].rc, &err),
			end_of[i].rc < 0 ? end_of[i].rc : -EIO);
		ck_assert_str_eq(err.msg, end_of[i].said);
		char *text = read_text(dir, "manifest.json");
		check_json(text);
		check_has(text, end_of[i].said);
		check_has(text, "\"exit\": 1");
		free(text);
		ck_assert_int_eq(exists(dir, "summary.json"), end_of[i].summarised != NULL);
		if (end_of[i].summarised != NULL) {
			text = read_text(dir, "summary.json");
			ck_assert_str_eq(text, end_of[i].summarised);
			free(text);
		}
		run_free(&run);
	}
}

TEST(a_folder_with_a_run_is_refused) {
	char want[256], dir[128], guest[160];

	begin("paths: {}\n");
	snprintf(dir, sizeof(dir), "%s/run", folder);
	snprintf(
		want, sizeof(want), "%s already holds a run: choose another --out or --force", dir);
	ck_assert_int_eq(load("weir-sim", dir, false), 0);
	ck_assert_int_eq(run_create(&run, &opt, true, &err), 0);
	leave(dir, "packets.ring");
	leave(dir, "labels.json");
	leave(dir, "report.html");
	leave(dir, "guest-0.out");
	leave(dir, "guest-notes.txt");
	snprintf(guest, sizeof(guest), "%s/guest-12", dir);
	ck_assert_int_eq(mkdir(guest, 0755), 0);
	leave(guest, "x.qlog");
	run_free(&run);

	ck_assert_int_eq(load("weir-sim", dir, false), 0);
	ck_assert_int_eq(run_create(&run, &opt, true, &err), -EEXIST);
	ck_assert_str_eq(err.msg, want);
	ck_assert_int_eq(run_end(&run, balanced, NULL, facts(NULL), 0, &err), 0); // of no run
	ck_assert(!exists(dir, "summary.json"));
	ck_assert(exists(dir, "packets.ring") && exists(dir, "labels.json"));
	run_free(&run);

	ck_assert_int_eq(load("weir-sim", dir, true), 0);
	ck_assert_int_eq(run_create(&run, &opt, true, &err), 0);
	ck_assert(!exists(dir, "packets.ring"));
	ck_assert(!exists(dir, "labels.json") && !exists(dir, "report.html"));
	ck_assert(!exists(dir, "guest-0.out") && !exists(dir, "guest-12"));
	ck_assert(exists(dir, "guest-notes.txt"));
	ck_assert(exists(dir, "manifest.json"));
}

static void run_once(const char *program, const char *dir) {
	ck_assert_int_eq(load(program, dir, true), 0);
	ck_assert_msg(run_create(&run, &opt, false, &err) == 0, "%s", err.msg);
	run_free(&run);
}

// The live programs share a folder: each takes away what is its own, with a suffix or without, and
// a run of weir-sim, which takes away none of theirs.
TEST(a_forced_run_leaves_no_stale_stream) {
	static const char *const switchs[] = {
		"packets.ring", "arrivals.ring", "links.ring", "events-switch.ring"};
	static const char *const senders[] = {
		"cc.ring", "flows.ring", "interval.ring", "events-sender.ring"};
	char dir[128], want[256];

	begin("paths: {}\n");
	snprintf(dir, sizeof(dir), "%s/run", folder);
	run_once("weir-sim", dir);
	leave(dir, "cc.ring");
	leave(dir, "events.ring");
	ck_assert_int_eq(load("weir-switch", dir, false), 0);
	ck_assert_int_eq(run_create(&run, &opt, false, &err), -EEXIST);
	run_free(&run);
	run_once("weir-switch", dir);
	ck_assert(!exists(dir, "cc.ring") && !exists(dir, "events.ring"));
	ck_assert(!exists(dir, "manifest.json") && exists(dir, "manifest-switch.json"));
	run_once("weir-sender", dir);
	for (size_t i = 0; i < 4; i++) {
		leave(dir, switchs[i]);
		leave(dir, senders[i]);
	}
	run_once("weir-switch", dir);
	for (size_t i = 0; i < 4; i++) {
		ck_assert_msg(!exists(dir, switchs[i]), "%s", switchs[i]);
		ck_assert_msg(exists(dir, senders[i]), "%s", senders[i]);
	}
	snprintf(want, sizeof(want), "%s holds a live run: choose another --out", dir);
	ck_assert_int_eq(load("weir-sim", dir, true), 0);
	ck_assert_int_eq(run_create(&run, &opt, true, &err), -EEXIST);
	ck_assert_str_eq(err.msg, want);
	run_free(&run);
	ck_assert(exists(dir, "cc.ring"));
	run_once("weir-sender", dir);
	for (size_t i = 0; i < 4; i++)
		ck_assert_msg(!exists(dir, senders[i]), "%s", senders[i]);
}

// weir-sim config.yaml --out . must not take the user's file.
TEST(a_foreign_config_is_kept) {
	char path[128], want[256];

	begin("paths: {}\n");
	snprintf(path, sizeof(path), "%s/config.yaml", folder);
	ck_assert_int_eq(rename(config_path, path), 0);
	strcpy(config_path, path);
	ck_assert_int_eq(load("weir-sim", folder, true), 0);
	ck_assert_int_eq(run_create(&run, &opt, true, &err), -EEXIST);
	snprintf(want, sizeof(want), "%s is not of a run: choose another --out", path);
	ck_assert_str_eq(err.msg, want);
	char *text = read_text(folder, "config.yaml");
	ck_assert_str_eq(text, "paths: {}\n");
	free(text);
}

TEST(two_live_programs_share_a_folder) {
	char dir[128], id[32];

	begin("paths: {}\n");
	snprintf(dir, sizeof(dir), "%s/run", folder);
	ck_assert_int_eq(load("weir-switch", dir, false), 0);
	config_add(config_root(run.config), "live", "of the switch");
	ck_assert_int_eq(run_create(&run, &opt, false, &err), 0);
	ck_assert_int_eq(run_end(&run, balanced, &folder, facts(NULL), 0, &err), 0);
	strcpy(id, run.tel.run_id);
	uint64_t hash = run.tel.config_hash;
	run_free(&run);

	ck_assert_int_eq(load("weir-sender", dir, false), 0);
	ck_assert_int_eq(run_create(&run, &opt, false, &err), 0);
	ck_assert_str_ne(run.tel.run_id, id);
	ck_assert_uint_eq(run.tel.config_hash, hash); // of the one config.yaml
	run_free(&run);

	ck_assert(exists(dir, "manifest-switch.json"));
	ck_assert(exists(dir, "manifest-sender.json"));
	ck_assert(exists(dir, "summary-switch.json"));
	ck_assert(!exists(dir, "manifest.json"));
	char *text = read_text(dir, "config.yaml");
	check_has(text, "of the switch");
	free(text);
	text = read_text(dir, "manifest-switch.json");
	check_json(text);
	check_has(text, "\"clock\": \"real\"");
	free(text);

	ck_assert_int_eq(load("weir-switch", dir, false), 0);
	ck_assert_int_eq(run_create(&run, &opt, false, &err), -EEXIST);
}

// A second run of a program, meant for a folder in which one has not ended; the first one is `run`.
static void check_locked(const char *program, const char *dir) {
	struct run_options options = {
		.program = program, .config_path = config_path, .out_dir = dir, .force = true};
	struct run second;
	char want[256];

	snprintf(want, sizeof(want), "%s: another run is writing there: choose another --out", dir);
	ck_assert_msg(run_load(&second, &options, &err) == 0, "%s", err.msg);
	ck_assert_int_eq(run_create(&second, &options, true, &err), -EEXIST);
	ck_assert_str_eq(err.msg, want);
	ck_assert_int_eq(run_end(&second, balanced, NULL, facts(NULL), 0, &err), 0); // of no run
	run_free(&second);
}

TEST(a_run_that_goes_on_keeps_its_folder) {
	static const char *const programs[] = {"weir-sim", "weir-switch", "weir-sender"};
	char dir[128];

	begin("paths: {}\n");
	for (size_t i = 0; i < 3; i++) {
		snprintf(dir, sizeof(dir), "%s/%s", folder, programs[i]);
		ck_assert_int_eq(load(programs[i], dir, false), 0);
		ck_assert_int_eq(run_create(&run, &opt, true, &err), 0);
		leave(dir, "cc.ring");
		check_locked(programs[i], dir);
		check_locked("weir-sim", dir);
		ck_assert(exists(dir, "cc.ring"));
		ck_assert_int_eq(run_end(&run, balanced, &folder, facts(NULL), 0, &err), 0);
		ck_assert(!exists(dir, ".weir-lock"));
		run_free(&run);
		ck_assert_int_eq(load(programs[i], dir, true), 0);
		ck_assert_msg(run_create(&run, &opt, true, &err) == 0, "%s", err.msg);
		run_free(&run);
	}
}

// Each of the live programs has its own lock, and the last one takes the file away.
TEST(live_programs_lock_what_is_their_own) {
	struct run_options options = {.program = "weir-sender", .config_path = config_path};
	struct run sender;
	char dir[128];

	begin("paths: {}\n");
	snprintf(dir, sizeof(dir), "%s/run", folder);
	options.out_dir = dir;
	ck_assert_int_eq(load("weir-switch", dir, false), 0);
	ck_assert_int_eq(run_create(&run, &opt, false, &err), 0);
	ck_assert_int_eq(run_load(&sender, &options, &err), 0);
	ck_assert_msg(run_create(&sender, &options, false, &err) == 0, "%s", err.msg);
	ck_assert_int_eq(run_end(&run, balanced, &folder, facts(NULL), 0, &err), 0);
	run_free(&run);
	check_locked("weir-sender", dir);
	ck_assert_int_eq(run_end(&sender, balanced, &folder, facts(NULL), 0, &err), 0);
	ck_assert(!exists(dir, ".weir-lock"));
	run_free(&sender);
}

TEST(a_run_that_did_not_begin_leaves_nothing) {
	char dir[128];

	begin("paths: {}\n");
	snprintf(dir, sizeof(dir), "%s/run", folder);
	ck_assert_int_eq(load("weir-sender", dir, false), 0);
	ck_assert_int_eq(run_create(&run, &opt, false, &err), 0);
	run_discard(&run);
	run_free(&run);
	ck_assert(!exists(folder, "run"));

	// What is not its own stays.
	mkdir(dir, 0777);
	leave(dir, "config.yaml");
	ck_assert_int_eq(load("weir-sender", dir, false), 0);
	ck_assert_int_eq(run_create(&run, &opt, false, &err), 0);
	run_discard(&run);
	run_free(&run);
	ck_assert(exists(dir, "config.yaml"));
	ck_assert(!exists(dir, "manifest-sender.json"));
}

TEST(folders_that_cannot_be) {
	char want[256], dir[600];

	begin("paths: {}\n");
	ck_assert_int_eq(load("weir-sim", config_path, false), 0);
	ck_assert_int_eq(run_create(&run, &opt, true, &err), -ENOTDIR);
	snprintf(want, sizeof(want), "%s: cannot be created: a file has this name", config_path);
	ck_assert_str_eq(err.msg, want);
	run_free(&run);

	snprintf(dir, sizeof(dir), "%s/x", config_path);
	ck_assert_int_eq(load("weir-sim", dir, false), 0);
	ck_assert_int_eq(run_create(&run, &opt, true, &err), -ENOTDIR);
	snprintf(want, sizeof(want), "%s/x: cannot be created: Not a directory", config_path);
	ck_assert_str_eq(err.msg, want);
	run_free(&run);

	memset(dir, 'x', sizeof(dir));
	dir[sizeof(dir) - 1] = '\0';
	ck_assert_int_eq(load("weir-sim", dir, false), 0);
	ck_assert_int_eq(run_create(&run, &opt, true, &err), -EINVAL);
	ck_assert_str_eq(err.msg, "--out: the name is too long");
	run_free(&run);
	ck_assert_int_eq(load("weir-sim", "", false), 0);
	ck_assert_int_eq(run_create(&run, &opt, true, &err), -EINVAL);
	ck_assert_str_eq(err.msg, "--out: the name is empty");
}

TEST(a_forbidden_folder) {
	char want[256], dir[128];

	begin("paths: {}\n");
	snprintf(dir, sizeof(dir), "%s/run", folder);
	ck_assert_int_eq(load("weir-sim", dir, false), 0);
	ck_assert_int_eq(chmod(folder, 0555), 0);
	if (geteuid() == 0)
		ck_assert_int_eq(seteuid(65534), 0);
	ck_assert_int_eq(run_create(&run, &opt, true, &err), -EACCES);
	snprintf(want, sizeof(want), "%s: cannot be created: Permission denied", dir);
	ck_assert_str_eq(err.msg, want);
	if (getuid() == 0)
		ck_assert_int_eq(seteuid(0), 0);
	chmod(folder, 0755);
}

// A file system of one page, in a mount namespace of the test's own.
TEST(a_full_disk) {
	char want[256], dir[128];

	begin("title: x\npaths: {}\n");
	snprintf(dir, sizeof(dir), "%s/disk", folder);
	ck_assert_int_eq(mkdir(dir, 0777), 0);
	if (unshare(CLONE_NEWNS) < 0 || mount("", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0
		|| mount("tmpfs", dir, "tmpfs", 0, "size=4k") < 0) {
		test_close(folder);
		return; // not allowed here
	}
	ck_assert_int_eq(load("weir-sim", dir, false), 0);
	ck_assert_int_eq(run_create(&run, &opt, true, &err), -ENOSPC);
	snprintf(want, sizeof(want), "%s/manifest.json: cannot be written: No space left on device",
		dir);
	ck_assert_str_eq(err.msg, want);
	ck_assert(!exists(dir, "config.yaml"));
	ck_assert(!exists(dir, ".manifest.json.tmp"));
	ck_assert_int_eq(run_exit("weir-sim", -ENOSPC, &err), 1);
	run_free(&run);

	// With a larger config the first file is already too much.
	FILE *f = fopen(config_path, "w");
	fputs("flows:\n", f);
	for (int i = 0; i < 1000; i++)
		fprintf(f, "  - {count: %d}\n", i);
	fclose(f);
	ck_assert_int_eq(load("weir-sim", dir, false), 0);
	ck_assert_int_eq(run_create(&run, &opt, true, &err), -ENOSPC);
	snprintf(want, sizeof(want), "%s/config.yaml: cannot be written: No space left on device",
		dir);
	ck_assert_str_eq(err.msg, want);
	ck_assert(!exists(dir, "config.yaml"));
	run_free(&run);
	umount(dir);
}

// What a run writes at its end has its space, whatever telemetry filled: the manifest stayed
// "running".
TEST(a_disk_that_telemetry_filled) {
	char path[256], dir[128], page[4096] = {0};

	begin("paths: {}\n");
	snprintf(dir, sizeof(dir), "%s/disk", folder);
	ck_assert_int_eq(mkdir(dir, 0777), 0);
	if (unshare(CLONE_NEWNS) < 0 || mount("", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0
		|| mount("tmpfs", dir, "tmpfs", 0, "size=512k") < 0) {
		test_close(folder);
		return; // not allowed here
	}
	ck_assert_int_eq(load("weir-sim", dir, false), 0);
	ck_assert_msg(run_create(&run, &opt, true, &err) == 0, "%s", err.msg);
	snprintf(path, sizeof(path), "%s/packets.ring", dir);
	FILE *f = fopen(path, "w");
	while (fwrite(page, sizeof(page), 1, f) == 1 && fflush(f) == 0)
		;
	fclose(f);
	snprintf(err.msg, sizeof(err.msg), "%s: No space left on device", path);
	ck_assert_int_eq(run_end(&run, balanced, &folder, facts(NULL), -ENOSPC, &err), -ENOSPC);
	ck_assert(exists(dir, "summary.json"));
	char *text = read_text(dir, "manifest.json");
	check_json(text);
	check_has(text, "packets.ring: No space left on device\"");
	check_has(text, "\"exit\": 1");
	free(text);
	run_free(&run);
	umount(dir);
}

TEST(json_text_is_valid) {
	char *text;
	size_t size;
	struct json j;
	FILE *out = open_memstream(&text, &size);

	json_begin(&j, out);
	json_object(&j, "empty");
	json_close(&j, '}');
	json_array(&j, "list");
	json_u64(&j, NULL, UINT64_MAX);
	json_f64(&j, NULL, 0.1);
	json_f64(&j, NULL, 1.0 / 3);
	json_f64(&j, NULL, -1e300);
	json_f64(&j, NULL, NAN);
	json_f64(&j, NULL, INFINITY);
	json_object(&j, NULL);
	json_bool(&j, "yes", true);
	json_bool(&j, "no", false);
	json_close(&j, '}');
	json_close(&j, ']');
	json_text(&j, "t\"", "\\ \x01 \xc3\xa9 \xc3 \xed\xa0\x80 end");
	json_end(&j);
	fclose(out);
	check_json(text);
	ck_assert_str_eq(text,
		"{\n  \"empty\": {},\n  \"list\": [\n    18446744073709551615,\n    0.1,\n"
		"    0.3333333333333333,\n    -1e+300,\n    null,\n    null,\n    {\n"
		"      \"yes\": true,\n      \"no\": false\n    }\n  ],\n"
		"  \"t\\\"\": \"\\\\ \\u0001 \xc3\xa9 \\ufffd \\ufffd\\ufffd\\ufffd end\"\n}\n");
	free(text);
}

struct listed {
	uint64_t limit;
	double ratio;
	bool ecn;
	int law;
	char text[PARAM_TEXT_SIZE];
};

static void list_entry(struct run_list *l, const char *name, const char *summary,
	const struct param *table, const char *const *observed, size_t n) {
	run_list_entry(l,
		&(struct run_listed){.kind = strcmp(name, "reno") == 0 ? "cc" : "aqm",
			.name = name,
			.summary = summary,
			.params = table,
			.observed = observed,
			.nb_observed = n});
}

TEST(lists_a_plugin) {
	static const char *const laws[] = {"exact", "linux", NULL};
	static const struct param table[] = {
		{"limit", NULL, "of the queue", UNIT_BYTES, PARAM_U64(struct listed, limit), 64,
			INFINITY},
		{"ratio", "1%", "of flows", UNIT_RATIO, PARAM_F64(struct listed, ratio), 0, 1,
			.live = true},
		{"ecn", "no", "mark", UNIT_NONE, PARAM_BOOL(struct listed, ecn)},
		{"law", "exact", "steps", UNIT_NONE, PARAM_ENUM(struct listed, law, laws)},
		{"text", "", "any", UNIT_NONE, PARAM_TEXT(struct listed, text)},
		PARAM_END,
	};
	const char *const observed[] = {"p", "count", NULL, "unseen"};
	char *text;
	size_t size;
	FILE *out = open_memstream(&text, &size);
	struct run_list l;
	struct err e;

	run_list_begin(&l, &(struct run_options){.list = "aqm"}, out);
	list_entry(&l, "fifo", "one queue", table, observed, 4);
	list_entry(&l, "bare", "no parameters", NULL, observed, 1);
	list_entry(&l, "none", "nothing observed", NULL, observed + 2, 2);
	ck_assert_int_eq(run_list_end(&l, "aqm", &e), 0);
	fclose(out);
	ck_assert_str_eq(text,
		"queue discipline (aqm): parameter, default, range; below, its meaning\n"
		"fifo           one queue\n"
		"  limit              required       64B or more\n"
		"      of the queue\n"
		"  ratio              1%             0 to 1\n"
		"      of flows (live)\n"
		"  ecn                no             yes or no\n"
		"      mark\n"
		"  law                exact          exact or linux\n"
		"      steps\n"
		"  text               -              text\n"
		"      any\n"
		"  observed: p, count\n"
		"bare           no parameters\n"
		"  observed: p\n"
		"none           nothing observed\n");
	free(text);
}

TEST(lists_show_what_was_asked_for) {
	static const char page[] = "reno: one law\n\n"
				   "  what    congestion control (cc)\n"
				   "  source  RFC 5681\n\n"
				   "  parameter          default        range; below, its meaning\n"
				   "  rtt                20ms           1ns or more\n"
				   "      of it (live)\n"
				   "  queue              fifo           one of --list aqm\n"
				   "      before it\n"
				   "\n  It records:\n"
				   "  observed: p\n"
				   "  modes:    slow, fast\n";
	static const struct param table[] = {
		{"rtt", "20ms", "of it", UNIT_TIME_NS, PARAM_U64(struct listed, limit), 1, INFINITY,
			.live = true},
		PARAM_END,
	};
	static const struct param keys[] = {
		{"queue", "fifo", "before it", UNIT_NONE, PARAM_PLUGIN("aqm")}, PARAM_END};
	static const struct {
		const char *asked, *text, *sentence;
	} cases[] = {
		{"",
			"queue discipline (aqm)\n"
			"  fifo           one queue\n"
			"\ncongestion control (cc)\n"
			"  reno           one law\n",
			""},
		{"AQM",
			"queue discipline (aqm): parameter, default, range; below, its meaning\n"
			"fifo           one queue\n",
			""},
		{"cc",
			"congestion control (cc): parameter, default, range; below, its meaning\n"
			"reno           one law\n"
			"  rtt                20ms           1ns or more\n"
			"      of it (live)\n"
			"  queue              fifo           one of --list aqm\n"
			"      before it\n"
			"  observed: p\n"
			"  modes:    slow, fast\n",
			""},
		{"newReno", page, ""},
		{"reno", page, ""},
		{"live", "", "list: 'live' is neither one of aqm, cc nor the name of one"},
		{"ren", "", "list: nothing is called 'ren'; did you mean 'reno'?"},
		{"aqn", "", "list: nothing is called 'aqn'; did you mean 'aqm'?"},
	};
	const char *const observed[] = {"p"}, *const modes[] = {"slow", "fast", NULL, "unseen"};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char *text;
		size_t size;
		FILE *out = open_memstream(&text, &size);
		struct run_list l;
		struct err e = {0};

		run_list_begin(&l, &(struct run_options){.list = cases[i].asked}, out);
		list_entry(&l, "fifo", "one queue", NULL, NULL, 0);
		run_list_entry(&l,
			&(struct run_listed){.kind = "cc",
				.name = "reno",
				.alias = "newreno",
				.summary = "one law",
				.reference = "RFC 5681",
				.params = table,
				.also = {keys},
				.observed = observed,
				.nb_observed = 1,
				.modes = modes,
				.nb_modes = 4});
		ck_assert_int_eq(
			run_list_end(&l, "aqm, cc", &e), cases[i].text[0] == '\0' ? -EINVAL : 0);
		ck_assert_str_eq(e.msg, cases[i].sentence);
		fclose(out);
		ck_assert_str_eq(text, cases[i].text);
		ck_assert_int_eq(l.kind == NULL, text[0] == '\0');
		free(text);
	}
}

TEST(lists_as_json) {
	static const char *const laws[] = {"exact", "linux", NULL};
	static const struct param table[] = {
		{"limit", NULL, "of the queue", UNIT_BYTES, PARAM_U64(struct listed, limit), 64,
			INFINITY},
		{"law", "exact", "steps", UNIT_NONE, PARAM_ENUM(struct listed, law, laws)},
		PARAM_END,
	};
	char *text;
	size_t size;
	FILE *out = open_memstream(&text, &size);
	struct run_list l;
	struct err e;

	run_list_begin(&l, &(struct run_options){.json = true}, out);
	list_entry(&l, "fifo", "one queue", table, (const char *const[]){"p"}, 1);
	list_entry(&l, "reno", "no parameters", NULL, NULL, 0);
	ck_assert_int_eq(run_list_end(&l, "aqm, cc", &e), 0);
	fclose(out);
	for (char *from = text, *to = text; (*to = *from) != '\0'; from++)
		to += *from != ' ' && *from != '\n';
	ck_assert_str_eq(text,
		"{\"aqm\":{\"fifo\":{\"summary\":\"onequeue\",\"params\":{"
		"\"limit\":{\"type\":\"u64\",\"unit\":\"B\",\"default\":null,\"min\":64,"
		"\"max\":null,\"range\":\"64Bormore\",\"choices\":[],"
		"\"live\":false,\"help\":\"ofthequeue\"},"
		"\"law\":{\"type\":\"enum\",\"unit\":\"\",\"default\":\"exact\",\"min\":0,"
		"\"max\":0,\"range\":\"exactorlinux\",\"choices\":[\"exact\",\"linux\"],"
		"\"live\":false,\"help\":\"steps\"}},\"observed\":[\"p\"]}},"
		"\"cc\":{\"reno\":{\"summary\":\"noparameters\",\"params\":{},\"observed\":[]}}}");
	free(text);
}

TEST(exit_status) {
	static const struct {
		int signal, rc, status;
	} of[] = {
		{0, 0, 0},
		{0, -EINVAL, 2},
		{0, -ERANGE, 2},
		{0, -ENOMEM, 2}, // the config needs more than there is
		{0, -ENOENT, 1}, // a run folder that vanished is no mistake in the config
		{0, -EIO, 1},
		{SIGINT, 0, 130},
		{SIGTERM, 0, 143},
		{SIGINT, -EINTR, 130},
		{SIGINT, -EIO, 1},
	};
	struct err e = {"said once"};

	ck_assert_ptr_nonnull(freopen("/dev/null", "w", stderr));
	for (size_t i = 0; i < sizeof(of) / sizeof(of[0]); i++) {
		run_stop = of[i].signal;
		ck_assert_int_eq(run_exit("weir-sim", of[i].rc, &e), of[i].status);
	}
}

// Standard output is checked last, with a sentence for what was printed in vain.
TEST(output_that_does_not_arrive_is_an_error) {
	char dir[128];

	begin("paths: {}\n");
	snprintf(dir, sizeof(dir), "%s/run", folder);
	ck_assert_int_eq(load("weir-sim", dir, false), 0);
	opt.json = true;
	ck_assert_int_eq(run_create(&run, &opt, true, &err), 0);
	ck_assert_ptr_nonnull(freopen("/dev/full", "w", stdout));
	ck_assert_int_eq(run_end(&run, balanced, &folder, facts(NULL), 0, &err), -EIO);
	ck_assert_str_eq(err.msg, "standard output cannot be written: No space left on device");
	char *text = read_text(dir, "manifest.json");
	check_has(text, "\"exit\": 1");
	free(text);
	ck_assert(exists(dir, "summary.json"));
	run_free(&run);
	fputs("more", stdout);
	ck_assert_ptr_nonnull(freopen("/dev/null", "w", stderr));
	ck_assert_int_eq(run_exit("weir-sim", 0, &err), 1);
}

TEST(signals_stop_the_run) {
	ck_assert_int_eq(run_stop, 0);
	signal(SIGHUP, SIG_DFL); // which nohup ignores
	run_catch_signals();
	raise(SIGTERM);
	ck_assert_int_eq(run_stop, SIGTERM);
	run_stop = 0;
	raise(SIGINT);
	ck_assert_int_eq(run_stop, SIGINT);
	run_stop = 0;
	raise(SIGHUP);
	ck_assert_int_eq(run_stop, SIGHUP);
}

TEST(a_write_that_fails_stops_nothing) {
	int fd[2];

	run_catch_signals();
	ck_assert_int_eq(pipe(fd), 0);
	close(fd[0]);
	ck_assert_int_eq(write(fd[1], "x", 1), -1);
	ck_assert_int_eq(errno, EPIPE);
	raise(SIGXFSZ);
	ck_assert_int_eq(run_stop, 0);
}

TEST(nohup_is_obeyed) {
	ck_assert(signal(SIGHUP, SIG_IGN) != SIG_ERR);
	run_catch_signals();
	raise(SIGHUP);
	ck_assert_int_eq(run_stop, 0);
}

// The file that is opened next would get what is written to standard error.
TEST(streams_that_are_closed_are_kept) {
	int kept = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 10);

	close(STDERR_FILENO);
	run_keep_streams();
	ck_assert_int_eq(write(STDERR_FILENO, "x", 1), -1);
	ck_assert_int_eq(errno, EBADF);
	int next = open("/dev/null", O_WRONLY);
	ck_assert_int_gt(next, STDERR_FILENO);
	dup2(kept, STDERR_FILENO);
}

// Its runner's end is a SIGTERM, for as many signals as it had threads.
TEST(a_run_ends_with_its_runner) {
	int ready[2], over[2], found = -1;

	ck_assert_int_eq(pipe(ready), 0);
	ck_assert_int_eq(pipe(over), 0);
	pid_t runner = fork();
	if (runner == 0) {
		char text[16];

		snprintf(text, sizeof(text), "%d", (int)getpid());
		setenv("WEIR_RUNNER", text, 1);
		if (fork() == 0) {
			run_catch_signals();
			(void)!write(ready[1], "", 1);
			for (int ms = 0; run_stop == 0 && ms < 10000; ms++)
				usleep(1000);
			raise(SIGUSR1);
			found = run_stop;
			(void)!write(over[1], &found, sizeof(found));
			_exit(0);
		}
		(void)!read(ready[0], &found, 1);
		_exit(0);
	}
	ck_assert_int_eq(read(over[0], &found, sizeof(found)), sizeof(found));
	ck_assert_int_eq(found, SIGTERM);
}
