// SPDX-License-Identifier: BSD-3-Clause
// The run's own parameters, and a run from its config to its summary.
//
// Here and in manifest.c, and nowhere else below main, is the wall clock read: for names and for
// the manifest.
#include "common/run/run.h"

#include "common/base/rng.h"
#include "common/config/hosts.h"
#include "common/run/fields.h"
#include "common/run/run_folder.h"
#include "common/run/run_list.h"
#include "common/run/run_manifest.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <xxhash.h>

#define DAY_NS 86400e9

static const struct param run_params[] = {
	{"seed", "1", "of all random stages", UNIT_NONE, PARAM_U64(struct run, seed), 0, 0x1p64},
	{"duration", "30s", "of the experiment", UNIT_TIME_NS, PARAM_U64(struct run, duration_ns),
		1e3, DAY_NS, .seconds = true},
	{"warmup", "0s", "left out of the summary's figures", UNIT_TIME_NS,
		PARAM_U64(struct run, warmup_ns), 0, DAY_NS, .seconds = true},
	{"title", "", "one line for reports", UNIT_NONE, PARAM_TEXT(struct run, title)},
	PARAM_END,
};
static const struct param run_sections[] = {
	{"paths", "", "from host to host or port to port: at most 16 lists of stages, by name",
		UNIT_NONE, PARAM_PATHS("stage")},
	{"flows", "", "the traffic: groups of flows", UNIT_NONE, PARAM_LIST("flows"), .min = 1,
		.max = GROUPS_MAX},
	{"hosts", "", "machines that flows share, in virtual time: their cards", UNIT_NONE,
		PARAM_MAP("hosts")},
	{"telemetry", "", "what is recorded", UNIT_NONE, PARAM_MAP("telemetry")},
	{"stop", "", "ends a run in virtual time before its duration", UNIT_NONE,
		PARAM_MAP("stop")},
	{"schedule", "", "changes of stages' parameters during the run", UNIT_NONE,
		PARAM_LIST("schedule"), .min = 0, .max = HUGE_VAL},
	{"branches", "", "goes on in several ways from a time on, in virtual time", UNIT_NONE,
		PARAM_MAP("branches")},
	{"live", "", "only read by the live programs", UNIT_NONE, PARAM_MAP("live")},
	PARAM_END,
};

static const char *const capture_names[] = {"port", "paths", NULL};
static const struct param telemetry_params[] = {
	{"level", "1", "0 summaries, 1 events and intervals, 2 some flows, 3 everything", UNIT_NONE,
		PARAM_U64(struct run, telemetry_level), 0, 3},
	{"interval", "100ms", "of the interval stream", UNIT_TIME_NS,
		PARAM_U64(struct run, telemetry_interval_ns), 1e4, DAY_NS},
	{"sample", "1%", "share of flows at level 2", UNIT_RATIO,
		PARAM_F64(struct run, telemetry_sample), 0, 1},
	{"arrivals", "no", "record what enters each path, for `weir replay`", UNIT_NONE,
		PARAM_BOOL(struct run, telemetry_arrivals)},
	{"segments", "no", "level 2 and 3, in virtual time: record each segment at its sender",
		UNIT_NONE, PARAM_BOOL(struct run, telemetry_segments)},
	{"capture", "port", "what --pcap shows: a port's packets; each path's in, out and drops",
		UNIT_NONE, PARAM_ENUM(struct run, capture_points, capture_names)},
	{"rotate", "0B",
		"of a capture: a file of this size is renamed; at most two are kept; 0: no bound",
		UNIT_BYTES, PARAM_U64(struct run, capture_rotate_bytes), 0, 1e15},
	PARAM_END,
};

void run_list_run(struct run_list *l) {
	run_list_entry(l,
		&(struct run_listed){.kind = "run",
			.name = "run",
			.summary = "the top level of the config",
			.params = run_params,
			.also = {run_sections}});
	run_list_entry(l,
		&(struct run_listed){.kind = "run",
			.name = "hosts",
			.summary = "machines that flows share, in virtual time",
			.params = hosts_params});
	for (int d = 0; d < FLOWS_DIRECTIONS; d++)
		run_list_entry(l,
			&(struct run_listed){.kind = "run",
				.name = hosts_params[d].of,
				.summary = hosts_params[d].help,
				.params = hosts_side_params,
				.also = {hosts_group_params[d]}});
	run_list_entry(l,
		&(struct run_listed){.kind = "run",
			.name = "telemetry",
			.summary = "what is recorded",
			.params = telemetry_params});
	run_list_entry(l,
		&(struct run_listed){.kind = "run",
			.name = "stop",
			.summary = "ends a run in virtual time before its duration",
			.params = stop_params,
			.also = {stop_metric_params}});
}

static int segments_check(const struct run *r, const struct config_node *node, struct err *err) {
	if (strcmp(r->options->program, "weir-sim") != 0)
		return config_err(node, -EINVAL, err,
			"segments: only virtual time records them; -o telemetry.segments=no runs "
			"without, and weir pcap analyze reads those of a capture");
	if (r->telemetry_level < 2)
		return config_err(node, -EINVAL, err, "segments: they need level 2 or 3");
	return 0;
}

// Whether a value is of the command line, which then is to blame, and not the file.
static bool is_override(const struct config_node *node) {
	return strncmp(config_place(node), "-o ", strlen("-o ")) == 0;
}

static int load_params(struct run *r, struct err *err) {
	struct config_node *root = config_root(r->config);
	int rc = config_params(root, NULL, run_params, run_sections, r, err);

	if (rc < 0)
		return rc;
	if (r->warmup_ns >= r->duration_ns) {
		const struct config_node *warmup = config_get(root, "warmup"),
					 *duration = config_get(root, "duration");
		if (is_override(duration) && !is_override(warmup))
			return config_err(duration, -EINVAL, err,
				"duration: %s is over before the warm-up of %s (%s)",
				config_text(duration), config_text(warmup), config_place(warmup));
		return config_err(warmup, -EINVAL, err,
			"warmup: %s leaves nothing of the duration, %s", config_text(warmup),
			config_text(duration));
	}
	rc = stop_init(&r->stop, root, r->warmup_ns, err);
	if (rc < 0)
		return rc;
	if (r->stop.metrics != 0 && strcmp(r->options->program, "weir-sim") != 0)
		return config_err(config_get(root, "stop"), -EINVAL, err,
			"stop: only virtual time can end early; -o stop.metric=none runs the whole "
			"duration");
	if (config_get(root, "branches") != NULL && strcmp(r->options->program, "weir-sim") != 0)
		return config_err(config_get(root, "branches"), -EINVAL, err,
			"branches: only virtual time can go on in several ways");
	rc = config_params(
		config_section(root, "telemetry"), "telemetry", telemetry_params, NULL, r, err);
	if (rc < 0 || !r->telemetry_segments)
		return rc;
	return segments_check(r, config_get(config_get(root, "telemetry"), "segments"), err);
}

// A run of this config, which it then owns.
static int load(
	struct run *r, const struct run_options *opt, struct config *config, struct err *err) {
	const char *dash = strchr(opt->program, '-');
	int rc;

	memset(r, 0, sizeof(*r));
	r->options = opt;
	r->lock_fd = r->reserve_fd = -1;
	if (strcmp(opt->program, "weir-sim") != 0 && dash != NULL)
		snprintf(r->suffix, sizeof(r->suffix), "%s", dash);
	r->config = config;
	if (r->config == NULL)
		return -EINVAL;
	for (int i = 0; i < opt->override_count; i++) {
		if ((rc = config_override(r->config, opt->overrides[i], err)) < 0)
			return rc;
	}
	return load_params(r, err);
}

int run_load(struct run *r, const struct run_options *opt, struct err *err) {
	return load(r, opt, config_load(opt->config_path, err), err);
}

int run_read(struct run *r, const struct run_options *opt, const char *name, const char *text,
	size_t size, struct err *err) {
	return load(r, opt, config_parse(name, text, size, err), err);
}

void run_warn(const struct run *r, const char *fmt, ...) {
	char sentence[sizeof(((struct err *)NULL)->msg)];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(sentence, sizeof(sentence), fmt, ap);
	va_end(ap);
	fprintf(stderr, "%s: warning: %s\n", r->options->program, sentence);
}

void run_warn_unreached(const struct run *r, const struct config_node *node, const char *what) {
	struct err err;

	if (node == NULL)
		return;
	config_err(node, 0, &err, "%s is never reached: the run ends after %g s", what,
		(double)r->duration_ns / 1e9);
	run_warn(r, "%s", err.msg);
}

void run_warn_unsampled(struct run *r, uint32_t flows) {
	const struct config_node *telemetry = config_get(config_root(r->config), "telemetry");
	struct tel_run tel = {.sample_threshold = rng_threshold(r->telemetry_sample)};
	struct err err;

	if (r->telemetry_level != 2 || flows == 0)
		return;
	for (uint32_t i = 0; i < flows; i++) {
		if (tel_flow_chosen(&tel, i))
			return;
	}
	config_err(telemetry, 0, &err,
		"telemetry: sample: %g %% of %u flow%s is none: no packet and no ACK is "
		"recorded%s; write a larger sample, or level: 3",
		100 * r->telemetry_sample, flows, flows == 1 ? "" : "s",
		r->options->pcap != NULL ? " or captured" : "");
	r->unsampled = true;
	run_warn(r, "%s", err.msg);
}

void run_print_config(const struct run *r) {
	config_use_absolute(r->config);
	config_print(r->config, stdout);
}

// The first files of a run.
static int write_start(struct run *r, const char *text, size_t size, struct err *err) {
	int rc = folder_write_files(r, err);

	if (rc == 0)
		rc = folder_write_config(r, text, size, err);

	r->wrote_config = rc == 1;
	if (rc == 0)
		rc = folder_hash_config(r, err);
	if (rc >= 0)
		rc = manifest_write(r, NULL, 0, err);
	return rc < 0 ? rc : folder_reserve(r, err);
}

void run_discard(struct run *r) {
	char path[768];

	if (r->dir[0] == '\0')
		return;
	snprintf(path, sizeof(path), "%s/manifest%s.json", r->dir, r->suffix);
	unlink(path);
	snprintf(path, sizeof(path), "%s/config.yaml", r->dir);
	if (r->wrote_config && !folder_holds_run(r, "-switch") && !folder_holds_run(r, "-sender"))
		unlink(path);
	folder_remove_files(r);
	folder_unlock(r);
	rmdir(r->dir); // if that was all
	r->dir[0] = '\0';
}

static void fill_tel(struct run *r, bool virtual_time, const char *text, size_t size) {
	struct {
		uint64_t config_hash, seed, ns, pid;
	} name = {XXH64(text, size, 0), r->seed, 0, 0};
	struct timespec now;

	if (!virtual_time) {
		clock_gettime(CLOCK_REALTIME, &now);
		name.ns = (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
		name.pid = (uint64_t)getpid();
	}
	r->tel.dir = r->dir;
	r->tel.virtual_time = virtual_time;
	r->tel.seed = r->seed;
	r->tel.config_hash = name.config_hash;
	r->tel.level = (uint32_t)r->telemetry_level;
	r->tel.sample_threshold = rng_threshold(r->telemetry_sample);
	snprintf(r->tel.run_id, sizeof(r->tel.run_id), "%016" PRIx64,
		(uint64_t)XXH64(&name, sizeof(name), 0));
}

// The config as its run resolved it; the caller frees it.
static int resolved(struct run *r, char **text, size_t *size, struct err *err) {
	FILE *f = open_memstream(text, size);

	if (f == NULL)
		return err_set(err, -ENOMEM, "out of memory");
	config_use_copies(r->config);
	config_print(r->config, f);
	return fclose(f) == 0 ? 0 : err_set(err, -ENOMEM, "out of memory");
}

int run_unrecorded(struct run *r, struct err *err) {
	char *text = NULL;
	size_t size = 0;
	int rc = resolved(r, &text, &size, err);

	if (rc == 0)
		fill_tel(r, true, text, size);
	r->tel.dir = NULL;
	free(text);
	return rc;
}

int run_create(struct run *r, const struct run_options *opt, bool virtual_time, struct err *err) {
	time_t now = time(NULL);
	char *text = NULL;
	size_t size = 0;
	int rc = resolved(r, &text, &size, err);

	assert(opt == r->options);
	if (rc < 0)
		goto out;
	fill_tel(r, virtual_time, text, size);
	folder_utc_text(now, "%Y-%m-%dT%H:%M:%SZ", r->started_utc, sizeof(r->started_utc));
	if ((rc = folder_name(r, now, err)) < 0 || (rc = folder_make(r, err)) < 0
		|| (rc = folder_lock(r, err)) < 0)
		goto out;
	if ((rc = folder_clear(r, err)) < 0)
		folder_unlock(r);
	else if ((rc = write_start(r, text, size, err)) < 0)
		run_discard(r);
out:
	if (rc < 0)
		r->dir[0] = '\0'; // nothing for run_end to do
	free(text);
	return rc;
}

int run_branch(struct run *r, const char *name, uint64_t at_ns, struct config_node *changes,
	struct err *err) {
	char path[sizeof(r->dir)];
	int n = snprintf(path, sizeof(path), "%s/branches/%s", r->dir, name);

	folder_leave(r);
	r->dir[0] = '\0';
	r->branch = name;
	r->branch_ns = at_ns;
	r->changes = changes;
	memcpy(r->trunk_id, r->tel.run_id, sizeof(r->trunk_id));
	if (n >= (int)sizeof(path))
		return err_set(err, -ENAMETOOLONG, "%s: %s", path, strerror(ENAMETOOLONG));
	r->branch_options = *r->options; // what its texts point to stays where it is
	r->branch_options.out_dir = path;
	r->branch_options.json = r->branch_options.progress = false;
	r->options = &r->branch_options;
	n = run_create(r, r->options, true, err);
	r->branch_options.out_dir = r->dir;
	return n;
}

static void write_changes(const struct run *r, struct json *j) {
	json_object(j, "changes");
	for (size_t i = 0; i < config_count(r->changes); i++)
		json_text(j, config_key(r->changes, i), config_text(config_at(r->changes, i)));
	json_close(j, '}');
}

void run_branch_json(const struct run *r, struct json *j) {
	json_object(j, "branch");
	BRANCH_FIELDS(FIELD_JSON)
	json_close(j, '}');
}

void run_summary_begin(const struct run *r, const char *kind, struct json *j, FILE *out) {
	json_begin(j, out);
	SUMMARY_HEAD(FIELD_JSON)
}

static void write_streams(const struct tel *tel, struct json *j) {
	json_object(j, "streams");
	for (uint32_t i = 0; i < TEL_STREAM_COUNT; i++) {
		if (tel[i].head == 0)
			continue;
		json_object(j, tel_stream_name((enum tel_stream)i));
		RECORDS_FIELDS(FIELD_JSON)
		json_close(j, '}');
	}
	json_close(j, '}');
}

void run_summary_telemetry(uint64_t level, const struct tel *tel, struct json *j) {
	json_object(j, "telemetry");
	TELEMETRY_FIELDS(FIELD_JSON)
	json_close(j, '}');
}

static int write_summary(struct run *r, run_summary_fn *summary, void *of,
	const struct facts *verdict, bool *balanced, struct err *err) {
	FILE *f;
	int rc = folder_file_begin(r, "summary.json", &f, err);

	if (rc < 0)
		return rc;
	*balanced = summary(of, f, verdict);
	rc = folder_file_end(r, f, "summary.json", err);
	if (rc < 0 || !r->options->json)
		return rc;
	run_stdout_back();
	summary(of, stdout, verdict);
	return run_flush(err);
}

int run_end(struct run *r, run_summary_fn *summary, void *of, struct facts *verdict, int rc,
	struct err *err) {
	bool balanced = true;
	struct err late;
	int written = 0;

	if (r->dir[0] == '\0')
		return rc;
	folder_release(r);
	if (rc < 0)
		facts_lead(verdict, "error", err->msg);
	if (summary != NULL)
		written = write_summary(r, summary, of, verdict, &balanced, &late);
	if (rc == 0 && written < 0)
		rc = err_set(err, written, "%s", late.msg);
	if (rc == 0 && !balanced)
		rc = err_set(err, -EIO, "the ledger does not balance: see %s/summary%s.json",
			r->dir, r->suffix);
	written = manifest_write(
		r, rc < 0 ? err->msg : facts_verdict(verdict), run_status(rc), &late);
	if (rc == 0 && written < 0)
		rc = err_set(err, written, "%s", late.msg);
	folder_unlock(r);
	return rc;
}

void run_free(struct run *r) {
	folder_unlock(r);
	config_free(r->config);
	r->config = NULL;
}
