// SPDX-License-Identifier: BSD-3-Clause
// weir-pcap: what captures say about the TCP connections in them, as a run folder.
#include "common/base/units.h"
#include "common/run/run.h"
#include "tools/pcap/compare.h"
#include "tools/pcap/fields.h"
#include "tools/pcap/findings.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#define PROGRAM "weir-pcap"
#define RING_RECORDS 4096 // per stream; a full ring is written out
#define SENT_BYTES ((size_t)192 << 20)
#define MATCH_PACKETS (1u << 21) // on their way at once: 120 MB
#define MATCH_FLOWS (1u << 18)
#define MATCH_LOST_NS (10 * NS_PER_S)

struct settings {
	char title[PARAM_TEXT_SIZE];
	uint64_t warmup_ns, interval_ns, idle_ns, level, connections;
	char interface[PARAM_TEXT_SIZE], from[PARAM_TEXT_SIZE], to[PARAM_TEXT_SIZE];
};

static const struct param settings_table[] = {
	{"title", "", "one line for reports", UNIT_NONE, PARAM_TEXT(struct settings, title)},
	{"level", "1",
		"0 summary, 1 flows, intervals and events, 2 segments of some flows, "
		"3 every segment",
		UNIT_NONE, PARAM_U64(struct settings, level), 0, 3},
	{"interval", "100ms", "of the interval stream", UNIT_TIME_NS,
		PARAM_U64(struct settings, interval_ns), 1e4, 86400e9},
	{"warmup", "0s", "left out of all sums and means", UNIT_TIME_NS,
		PARAM_U64(struct settings, warmup_ns), 0, 86400e9, .seconds = true},
	{"idle", "10min", "without packets a connection has ended", UNIT_TIME_NS,
		PARAM_U64(struct settings, idle_ns), 1e6, 86400e9},
	{"connections", "262144", "at once; one more ends the one that is quiet longest", UNIT_NONE,
		PARAM_U64(struct settings, connections), 16, 1 << 24},
	{"interface", "", "analyze: only these interfaces are read, as 'eth0,eth1'", UNIT_NONE,
		PARAM_TEXT(struct settings, interface)},
	{"from", "", "compare: the interfaces of INGRESS that are read, as 'in,back out'",
		UNIT_NONE, PARAM_TEXT(struct settings, from)},
	{"to", "", "compare: those of EGRESS", UNIT_NONE, PARAM_TEXT(struct settings, to)},
	PARAM_END,
};

struct job {
	struct run run;
	struct run_options options;
	struct settings settings;
	struct analysis analysis;
	struct facts verdict;
	struct compare compare;
	bool comparing;
	struct tel tel[TEL_STREAM_COUNT];
	const char *const *files;
	uint32_t files_count;
	uint64_t bytes_all; // of the files, if they are files
	double start_s, start_cpu_s, shown_s, wall_s, cpu_s;
};

static double clock_s(clockid_t clock) {
	struct timespec t;

	clock_gettime(clock, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void help(void) {
	fputs("usage: weir-pcap analyze FILE... [options]\n"
	      "       weir-pcap compare INGRESS [EGRESS] [options]\n\n",
		stdout);
	run_print_option("FILE", NULL,
		"pcap or pcapng, plain, gzip or zstd; '-' for standard input; several\n"
		"are parts of one capture, in the order of their packets");
	run_print_options(PROGRAM);
	for (const struct param *p = settings_table; p->name != NULL; p++) {
		char option[24], text[160];

		snprintf(option, sizeof(option), "--%s", p->name);
		snprintf(text, sizeof(text), p->def[0] != '\0' ? "%s (%s)" : "%s", p->help, p->def);
		run_print_option(option, NULL, text);
	}
	fputs(RUN_EXIT_STATUS
		"Examples:\n"
		"  weir-pcap analyze run.pcapng --out runs/capture\n"
		"  weir-pcap analyze run.pcapng --level 3 --warmup 10ms --json --out runs/all\n"
		"  weir-pcap compare ingress.pcapng egress.pcapng --out runs/both\n",
		stdout);
}

static void say_progress(
	struct job *job, uint64_t packets, uint64_t read_bytes, uint32_t connections) {
	double now_s = clock_s(CLOCK_MONOTONIC) - job->start_s;

	if (!job->options.progress || now_s - job->shown_s <= 0.2)
		return;
	job->shown_s = now_s;
	fprintf(stderr,
		"{\"wall_s\": %.3f, \"packets\": %" PRIu64 ", \"read_bytes\": %" PRIu64
		", \"all_bytes\": %" PRIu64 ", \"connections\": %u}\n",
		now_s, packets, read_bytes, job->bytes_all, connections);
}

static bool progress(void *of, const struct analysis *a) {
	struct job *job = of;

	say_progress(job, parts_packets(&a->parts), parts_bytes(&a->parts), a->track.live);
	return run_stop == 0;
}

static bool compare_progress(void *of) {
	struct job *job = of;
	const struct compare *c = &job->compare;
	const struct reader *a = &c->side[0].reader, *b = &c->side[1].reader;

	say_progress(job, a->count.packets + b->count.packets,
		input_file_bytes(&a->in) + input_file_bytes(&b->in), c->match.flows);
	return run_stop == 0;
}

static int open_streams(struct job *job, struct err *err) {
	static const struct {
		enum tel_stream stream;
		uint32_t level;
		bool compare; // else analyze
	} streams[] = {
		{TEL_STREAM_FLOWS, 1, false},
		{TEL_STREAM_INTERVAL, 1, false},
		{TEL_STREAM_EVENTS, 1, false},
		{TEL_STREAM_CAPTURED, 1, false},
		{TEL_STREAM_LOSSES, 1, false},
		{TEL_STREAM_DELAYS, 1, false},
		{TEL_STREAM_SEGMENTS, 2, false},
		{TEL_STREAM_LINKS, 1, true},
		{TEL_STREAM_PACKETS, 3, true},
	};
	int rc = 0;

	for (size_t i = 0; i < sizeof(streams) / sizeof(streams[0]) && rc == 0; i++) {
		enum tel_stream s = streams[i].stream;

		if (job->settings.level >= streams[i].level && streams[i].compare == job->comparing)
			rc = tel_open(&job->tel[s], s, &job->run.tel, "", RING_RECORDS, err);
	}
	return rc;
}

static int close_streams(struct job *job, int rc, struct err *err) {
	struct err late;

	for (enum tel_stream s = 0; s < TEL_STREAM_COUNT; s++) {
		int closed = tel_close(&job->tel[s], &late);

		if (rc >= 0 && closed < 0)
			rc = err_set(err, closed, "%s", late.msg);
	}
	return rc;
}

static bool summary(void *of, FILE *out, const struct facts *verdict) {
	struct job *job = of;
	const struct analysis *a = &job->analysis;
	struct json json, *j = &json;

	run_summary_begin(&job->run, job->comparing ? "comparison" : "analysis", j, out);
	JOB_FIELDS(FIELD_JSON)
	if (job->comparing)
		compare_summary(&job->compare, j);
	else
		analysis_summary(a, j);
	run_summary_telemetry(job->settings.level, job->tel, j);
	json_end(j);
	return job->comparing ? compare_balanced(&job->compare) : analysis_balanced(a);
}

static int read_files(struct job *job, struct err *err) {
	job->start_s = clock_s(CLOCK_MONOTONIC);
	job->start_cpu_s = clock_s(CLOCK_PROCESS_CPUTIME_ID);
	int rc = analysis_read(&job->analysis, progress, job, err);

	job->wall_s = clock_s(CLOCK_MONOTONIC) - job->start_s;
	job->cpu_s = clock_s(CLOCK_PROCESS_CPUTIME_ID) - job->start_cpu_s;
	return rc < 0 ? rc : 0;
}

static int analyze(struct job *job, struct err *err) {
	const struct settings *s = &job->settings;

	if (s->from[0] != '\0' || s->to[0] != '\0')
		return err_set(err, -EINVAL, "--from, --to: only compare has two sides");
	struct track_limits limits = {
		.connections = (uint32_t)s->connections,
		.sent_bytes = SENT_BYTES,
		.idle_ns = s->idle_ns,
		.interval_ns = s->interval_ns,
		.warmup_ns = s->warmup_ns,
		.level = (uint32_t)s->level,
	};
	int rc = analysis_init(&job->analysis, &limits, job->tel, &job->run.tel, err);

	if (rc < 0)
		return rc;
	// A file that is not a capture leaves no folder.
	rc = analysis_open(&job->analysis, job->files, job->files_count, s->interface, err);
	run_catch_signals();
	if (rc == 0)
		rc = run_create(&job->run, &job->options, true, err);
	if (rc < 0) {
		analysis_fini(&job->analysis);
		return rc;
	}
	rc = open_streams(job, err);
	if (rc == 0)
		rc = read_files(job, err);
	rc = analysis_found(&job->analysis, job->files[0], close_streams(job, rc, err), err);
	for (uint32_t i = 0; i < job->analysis.notes && i < ANALYSIS_NOTES_MAX; i++)
		fprintf(stderr, PROGRAM ": %s\n", job->analysis.note[i]);
	run_interrupted(&job->verdict);
	if (rc >= 0)
		findings_make(&job->analysis, &job->verdict);
	rc = run_end(&job->run, rc < 0 ? NULL : summary, job, &job->verdict, rc, err);
	analysis_fini(&job->analysis);
	return rc;
}

static int matched(struct job *job, struct err *err) {
	struct compare *c = &job->compare;
	int rc = open_streams(job, err);

	job->start_s = clock_s(CLOCK_MONOTONIC);
	job->start_cpu_s = clock_s(CLOCK_PROCESS_CPUTIME_ID);
	if (rc == 0)
		rc = compare_read(c, compare_progress, job, err);
	job->shown_s = -1; // the last line comes in any case
	if (rc == 0)
		compare_progress(job);
	job->wall_s = clock_s(CLOCK_MONOTONIC) - job->start_s;
	job->cpu_s = clock_s(CLOCK_PROCESS_CPUTIME_ID) - job->start_cpu_s;
	rc = compare_found(c, close_streams(job, rc, err), err);
	run_interrupted(&job->verdict);
	for (uint32_t side = 0; side < 2; side++) {
		const struct reader *r = &c->side[side].reader;

		if (rc < 0 || r->end == READER_WHOLE || r->said[0] == '\0')
			continue;
		fprintf(stderr, PROGRAM ": %s\n", r->said);
		facts_say(&job->verdict, "capture_cut", "%s", r->said);
	}
	return run_end(&job->run, rc < 0 ? NULL : summary, job, &job->verdict, rc, err);
}

static int compare(struct job *job, struct err *err) {
	struct match_limits limits = {
		.packets = MATCH_PACKETS,
		.flows = MATCH_FLOWS,
		.lost_ns = MATCH_LOST_NS,
		.interval_ns = job->settings.interval_ns,
	};
	struct compare *c = &job->compare;
	int rc = compare_choose(
		c, job->files, job->files_count, job->settings.from, job->settings.to, err);

	job->comparing = true;
	if (job->settings.interface[0] != '\0')
		return err_set(err, -EINVAL,
			"--interface: compare has two sides: --from for INGRESS, --to for EGRESS");
	job->bytes_all *= 3 - job->files_count; // one is read for each side
	if (rc == 0)
		rc = compare_scan(c, err);
	for (uint32_t side = 0; side < 2 && rc == 0; side++)
		rc = compare_open(c, side, err);
	if (rc == 0)
		rc = match_init(&c->match, &limits, job->tel, err);
	if (rc == 0) {
		run_catch_signals();
		rc = run_create(&job->run, &job->options, true, err);
		if (rc == 0)
			rc = matched(job, err);
		match_fini(&c->match);
	}
	compare_close(c);
	return rc;
}

static bool is_setting(const char *name) {
	for (const struct param *p = settings_table; p->name != NULL; p++) {
		if (strcmp(p->name, name) == 0)
			return true;
	}
	return false;
}

// An option. 1: it has used the value.
static int option(
	struct job *job, const char *name, const char *value, struct json *j, struct err *err) {
	int rc = run_option(&job->options, name, value, err);

	if (rc != -ENOENT)
		return rc;
	if (!is_setting(name))
		return err_set(err, -EINVAL, "--%s is not an option, see --help", name);
	if (value == NULL)
		return err_set(err, -EINVAL, "--%s needs a value, see --help", name);
	json_text(j, name, value);
	return 1;
}

// Files and options of argv, and their settings as JSON, which is YAML.
static int parse(
	struct job *job, int argc, char **argv, const char **files, FILE *text, struct err *err) {
	struct json j;
	int rc = 0;

	json_begin(&j, text);
	for (int i = 2; i < argc && rc >= 0; i++) {
		if (strncmp(argv[i], "--", 2) != 0) {
			files[job->files_count++] = argv[i];
			continue;
		}
		char name[64];
		const char *equals = strchr(argv[i], '='), *value = argv[i + 1];

		if (equals != NULL || (value != NULL && strncmp(value, "--", 2) == 0))
			value = equals != NULL ? equals + 1 : NULL; // not the next option
		snprintf(name, sizeof(name), "%.*s",
			equals != NULL ? (int)(equals - argv[i] - 2) : (int)strlen(argv[i]) - 2,
			argv[i] + 2);
		rc = option(job, name, value, &j, err);
		i += rc == 1 && equals == NULL;
	}
	json_array(&j, "files");
	for (uint32_t i = 0; i < job->files_count; i++)
		json_text(&j, NULL, files[i]);
	json_close(&j, ']');
	json_end(&j);
	if (rc >= 0 && job->files_count == 0)
		rc = err_set(
			err, -EINVAL, "a capture is wanted: weir-pcap analyze FILE..., see --help");
	return rc < 0 ? rc : 0;
}

static int configure(struct job *job, const char *text, size_t size, struct err *err) {
	static const struct param sections[] = {
		{"files", NULL, "the captures", UNIT_NONE, PARAM_LIST(NULL)}, PARAM_END};
	struct run *r = &job->run;
	struct stat st;

	r->options = &job->options;
	r->lock_fd = r->reserve_fd = -1;
	r->config = config_parse("command line", text, size, err);
	if (r->config == NULL)
		return -EINVAL;
	int rc = config_params(
		config_root(r->config), NULL, settings_table, sections, &job->settings, err);
	if (rc < 0) { // the user has not written the text that the place is in
		const char *sentence = strstr(err->msg, ": ") + 2;

		memmove(err->msg, sentence, strlen(sentence) + 1);
		return rc;
	}
	snprintf(r->title, sizeof(r->title), "%s", job->settings.title);
	r->telemetry_level = job->settings.level;
	r->telemetry_interval_ns = job->settings.interval_ns;
	r->telemetry_sample = 0.01;
	job->options.config_path = job->files[0];
	for (uint32_t i = 0; i < job->files_count; i++) {
		if (stat(job->files[i], &st) == 0 && S_ISREG(st.st_mode))
			job->bytes_all += (uint64_t)st.st_size;
	}
	return 0;
}

static int command(struct job *job, int argc, char **argv, struct err *err) {
	const char **files = calloc((size_t)argc, sizeof(*files));
	char *text = NULL;
	size_t size = 0;
	FILE *f = open_memstream(&text, &size);
	int rc = -ENOMEM;

	if (files != NULL && f != NULL)
		rc = parse(job, argc, argv, files, f, err);
	if (f != NULL)
		fclose(f);
	job->files = files;
	if (rc == 0)
		rc = configure(job, text, size, err);
	if (rc == 0)
		rc = strcmp(argv[1], "compare") == 0 ? compare(job, err) : analyze(job, err);
	run_free(&job->run);
	free(text);
	free(files);
	return rc;
}

int main(int argc, char **argv) {
	static struct job job;
	struct err err = {{0}};
	int rc = 0;

	run_keep_streams();
	job.options = (struct run_options){.program = PROGRAM, .argc = argc, .argv = argv};
	if (argc >= 2 && strcmp(argv[1], "--version") == 0)
		printf("%s %s (commit %s)\n", PROGRAM, run_version(), run_commit());
	else if (argc < 2 || strcmp(argv[1], "--help") == 0
		|| (argc > 2 && strcmp(argv[2], "--help") == 0))
		help();
	else if (strcmp(argv[1], "analyze") == 0 || strcmp(argv[1], "compare") == 0)
		rc = command(&job, argc, argv, &err);
	else
		rc = err_set(&err, -EINVAL, "'%s' is not a command: analyze or compare, see --help",
			argv[1]);
	if (argc < 2)
		rc = err_set(&err, -EINVAL, "a command is wanted, see --help");
	return run_exit(PROGRAM, rc, &err);
}
