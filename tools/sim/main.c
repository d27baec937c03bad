// SPDX-License-Identifier: BSD-3-Clause
// weir-sim: runs an experiment in virtual time. Needs no root, no hugepages, no DPDK.
#include "aqm/aqm.h"
#include "replay.h"
#include "sim.h"
#include "source.h"

#include <errno.h>
#include <math.h>
#include <string.h>
#include <time.h>

#define PROGRAM "weir-sim"
#define STEPS 512 // progress and Ctrl-C are looked at this many times a run, at least

static double clock_s(clockid_t clock) {
	struct timespec t;

	clock_gettime(clock, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static double wall_clock_s(void) {
	return clock_s(CLOCK_MONOTONIC);
}

static double cpu_clock_s(void) {
	return clock_s(CLOCK_PROCESS_CPUTIME_ID);
}

static int list(const char *kind) {
	bool all = kind[0] == '\0', known = all;

	if (all || strcmp(kind, "aqm") == 0) {
		known = true;
		for (const struct aqm_ops *const *o = aqm_all; *o != NULL; o++)
			run_list_plugin(stdout, (*o)->name, (*o)->summary, (*o)->params);
	}
	if (all || strcmp(kind, "stage") == 0) {
		known = true;
		for (const struct stage_ops *const *o = stage_all; *o != NULL; o++)
			run_list_plugin(stdout, (*o)->name, (*o)->summary, (*o)->params);
	}
	if (all || strcmp(kind, "cc") == 0) {
		known = true;
		for (const struct cc_ops *const *o = cc_all; *o != NULL; o++)
			run_list_plugin(stdout, (*o)->name, (*o)->summary, (*o)->params);
	}
	if (all || strcmp(kind, "source") == 0) {
		known = true;
		for (const struct source_ops *const *o = source_all; *o != NULL; o++)
			run_list_plugin(stdout, (*o)->name, (*o)->summary, (*o)->params);
	}
	if (known)
		return 0;
	fprintf(stderr, PROGRAM ": --list: '%s' is not one of aqm, stage, cc, source\n", kind);
	return 2;
}

static void print_progress(struct sim *s, double wall_s) {
	double utilisation = sim_utilisation(s);

	fprintf(stderr,
		"{\"virtual_s\": %.3f, \"wall_s\": %.3f, \"duration_s\": %.3f, \"utilisation\": ",
		(double)s->now_ns / 1e9, wall_s, (double)s->run->duration_ns / 1e9);
	if (isfinite(utilisation))
		fprintf(stderr, "%.4f", utilisation);
	else
		fprintf(stderr, "null");
	fprintf(stderr, ", \"flows_open\": %u}\n", s->sender.open);
}

static void run_through(struct sim *s, bool progress, struct sim_cost *cost) {
	const struct run *run = s->run;
	double start_s = wall_clock_s(), shown_s = 0, measured_from_s = 0, measured_from_cpu_s = 0;
	uint64_t step_ns = time_min(run->duration_ns / STEPS + 1, NS_PER_S / 10), segs = 0;

	for (uint64_t t = 0, next; t < run->duration_ns && !run_stop && !run->stop.settled;
		t = next) {
		if (t == run->warmup_ns) {
			segs = sim_data_segs(s);
			measured_from_s = wall_clock_s();
			measured_from_cpu_s = cpu_clock_s();
		}
		next = time_min(
			t + step_ns, t < run->warmup_ns ? run->warmup_ns : run->duration_ns);
		sim_run(s, next);
		double now_s = wall_clock_s() - start_s;

		if (progress && (now_s - shown_s > 0.2 || t == 0)) {
			print_progress(s, now_s);
			shown_s = now_s;
		}
	}
	cost->wall_s = wall_clock_s() - start_s;
	if (s->now_ns > run->warmup_ns) {
		cost->measured_wall_s = start_s + cost->wall_s - measured_from_s;
		cost->measured_cpu_s = cpu_clock_s() - measured_from_cpu_s;
		cost->measured_segs = sim_data_segs(s) - segs;
	}
	if (progress)
		print_progress(s, cost->wall_s);
}

static int write_summary(struct sim *s, const struct run_options *opt, const struct sim_cost *cost,
	const char *verdict, bool *balanced, struct err *err) {
	FILE *f = run_summary_begin(s->run, "summary.json", err);

	if (f == NULL)
		return -EIO;
	*balanced = sim_summary(s, f, cost, verdict);
	if (opt->json)
		sim_summary(s, stdout, cost, verdict);
	return run_summary_end(s->run, f, "summary.json", err);
}

// Everything after the config was found good.
static int experiment(struct sim *s, const struct run_options *opt, struct err *err) {
	const char *verdict = "ok";
	struct sim_cost cost = {0};
	bool balanced = false;
	int rc, written;

	rc = run_create(s->run, opt, true, err);
	if (rc < 0)
		return rc;
	rc = sim_open(s, opt->pcap, err);
	if (rc < 0)
		return rc;
	run_catch_signals();
	run_through(s, opt->progress, &cost);
	rc = sim_close(s, err);
	if (run_stop)
		verdict = "interrupted";
	if (s->sender.count.seg_refused > 0)
		verdict = "flows were held back: the scoreboard's memory was full";
	if (s->sender.failed > 0 && s->sender.failed == s->sender.flows)
		verdict = "every flow failed";
	if (rc < 0)
		verdict = err->msg;
	written = write_summary(s, opt, &cost, verdict, &balanced, err);
	if (rc == 0)
		rc = written;
	if (rc == 0 && !balanced)
		rc = err_set(
			err, -EIO, "the ledger does not balance: see %s/summary.json", s->run->dir);
	run_finish(s->run, rc < 0 ? err->msg : verdict, rc < 0 ? 1 : 0, rc < 0 ? NULL : err);
	return rc;
}

static int configured(struct run *run, const struct run_options *opt, struct err *err) {
	static struct sim s;
	struct config_node *live = config_get(config_root(run->config), "live");
	int rc;

	if (live != NULL)
		config_skip(live);
	rc = sim_init(&s, run, err);

	if (rc < 0)
		return rc;
	rc = config_unused(run->config, err);
	if (rc == 0 && opt->print_config)
		config_print(run->config, stdout);
	else if (rc == 0 && !opt->check)
		rc = experiment(&s, opt, err);
	sim_fini(&s);
	return rc;
}

static int write_replay(struct replay *r, const struct run_options *opt, double wall_s,
	const char *verdict, bool *balanced, struct err *err) {
	FILE *f = run_summary_begin(r->run, "summary.json", err);

	if (f == NULL)
		return -EIO;
	*balanced = replay_summary(r, f, wall_s, verdict);
	if (opt->json)
		replay_summary(r, stdout, wall_s, verdict);
	return run_summary_end(r->run, f, "summary.json", err);
}

static int replay_through(struct replay *r, const struct run_options *opt, struct err *err) {
	double start_s = wall_clock_s();
	bool balanced = false;
	struct err late;
	int rc, written;

	if ((rc = run_create(r->run, opt, true, err)) < 0)
		return rc;
	if ((rc = replay_open(r, err)) < 0)
		return rc;
	run_catch_signals();
	rc = replay_run(r, err);
	written = replay_close(r, &late);
	if (rc == 0 && written < 0)
		rc = err_set(err, written, "%s", late.msg);

	written = write_replay(
		r, opt, wall_clock_s() - start_s, rc < 0 ? err->msg : "ok", &balanced, &late);
	if (rc == 0 && written < 0)
		rc = err_set(err, written, "%s", late.msg);
	if (rc == 0 && !balanced)
		rc = err_set(
			err, -EIO, "the ledger does not balance: see %s/summary.json", r->run->dir);
	run_finish(r->run, rc < 0 ? err->msg : "ok", rc < 0 ? 1 : 0, rc < 0 ? NULL : err);
	return rc;
}

// --replay: a recording in place of senders and receivers.
static int replayed(struct run *run, const struct run_options *opt, struct err *err) {
	static struct replay r;
	int rc = replay_init(&r, run, opt->replay, err);

	if (rc < 0)
		return rc;
	rc = config_unused(run->config, err);
	if (rc == 0 && opt->print_config)
		config_print(run->config, stdout);
	else if (rc == 0 && !opt->check)
		rc = replay_through(&r, opt, err);
	replay_fini(&r);
	return rc;
}

int main(int argc, char **argv) {
	static struct run_options opt;
	struct run run;
	struct err err = {0};
	int rc = run_options(&opt, argc, argv, PROGRAM, &err);

	if (rc != 0)
		return rc > 0 ? 0 : run_fail(PROGRAM, rc, &err);
	if (opt.list != NULL)
		return list(opt.list);
	rc = run_load(&run, &opt, &err);
	if (rc < 0)
		return run_fail(PROGRAM, rc, &err);
	rc = opt.replay != NULL ? replayed(&run, &opt, &err) : configured(&run, &opt, &err);
	run_free(&run);
	return rc < 0 ? run_fail(PROGRAM, rc, &err) : 0;
}
