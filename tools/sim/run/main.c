// SPDX-License-Identifier: BSD-3-Clause
// weir-sim: runs an experiment in virtual time. Needs no root, no hugepages, no DPDK.
#include "common/pcap/writer.h"
#include "common/run/run_list.h"
#include "sender/cc/outcome.h"
#include "sender/host/sender_config.h"
#include "sender/source/source.h"
#include "switch/aqm.h"
#include "switch/path/switch_config.h"
#include "tools/sim/guest/guests.h"
#include "tools/sim/run/cpu_clock.h"
#include "tools/sim/run/offline.h"
#include "tools/sim/run/replay.h"
#include "tools/sim/run/sections.h"
#include "tools/sim/run/sim.h"
#include "tools/sim/run/trials.h"

#include <errno.h>
#include <math.h>
#include <sched.h>
#include <string.h>
#include <time.h>

#define PROGRAM "weir-sim"
#define STEPS 512 // an offline run checks Ctrl-C this many times

static double wall_clock_s(void) {
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static int list(const struct run_options *opt, struct err *err) {
	struct run_list l;

	if (strcmp(opt->list, "types") == 0) {
		sections_python(stdout);
		return 0;
	}
	run_list_begin(&l, opt, stdout);
	paths_list(&l);
	arrivals_list(&l);
	groups_list(&l);
	run_list_run(&l);
	schedule_list(&l);
	branches_list(&l);
	run_list_live(&l);
	switch_config_list(&l);
	sender_config_list(&l);
	run_list_streams(&l);
	run_list_numbers(&l, summary_sections, summary_sections_count);
	run_list_units(&l);
	return run_list_end(&l,
		"aqm, stage, path, cc, source, stack, quic, base_rtt, flows, run, live, stream, "
		"number",
		err);
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

// Wall-clock and processor time at the start of the run and of the measured time.
struct clocks {
	double start_s, measured_from_s, measured_from_cpu_s;
};

// Called at the last step before the branches' time, at which a run without a trunk has none.
// False: the run is a trunk and ends here. The clocks go on as if nothing had waited for another.
static bool run_branches(struct sim *s, struct clocks *clocks, uint32_t most) {
	double wall_s = wall_clock_s(), cpu_s = cpu_clock_s();
	int rc = branches_run(s, most, &s->err);

	wall_s = wall_clock_s() - wall_s;
	clocks->start_s += wall_s;
	clocks->measured_from_s += wall_s;
	if (rc < 0)
		s->failed = rc;
	if (rc <= 0)
		return false;
	clocks->measured_from_cpu_s -= cpu_s;
	return true;
}

static void run_through(struct sim *s, const struct run_options *opt) {
	const struct run *run = s->run;
	struct sim_cost *cost = &s->cost;
	struct clocks clocks = {.start_s = wall_clock_s()};
	double shown_s = 0;
	uint64_t segs = 0, t;

	while (sim_goes_on(s) && !run_stop) {
		t = s->now_ns;
		if (t < s->branches.at_ns && sim_step_ns(s) >= s->branches.at_ns
			&& !run_branches(s, &clocks, opt->threads))
			break;
		if (t == run->warmup_ns) {
			segs = sim_data_segs(s);
			clocks.measured_from_s = wall_clock_s();
			clocks.measured_from_cpu_s = cpu_clock_s();
		}
		sim_run(s, sim_step_ns(s));
		double now_s = wall_clock_s() - clocks.start_s;

		if (run->options->progress && (now_s - shown_s > 0.2 || t == 0)) {
			print_progress(s, now_s);
			shown_s = now_s;
			// In a browser the page has its turn here, and may set run_stop.
			sched_yield();
		}
	}
	cost->wall_s = wall_clock_s() - clocks.start_s;
	if (s->now_ns > run->warmup_ns) {
		cost->measured_wall_s = clocks.start_s + cost->wall_s - clocks.measured_from_s;
		cost->measured_cpu_s = cpu_clock_s() - clocks.measured_from_cpu_s;
		cost->measured_segs = sim_data_segs(s) - segs;
	}
	if (run->options->progress)
		print_progress(s, cost->wall_s);
}

static bool summary(void *s, FILE *out, const struct facts *verdict) {
	return sim_summary(s, out, verdict);
}

// The run itself, once the config has been checked.
static int experiment(struct sim *s, const struct run_options *opt, struct err *err) {
	static struct facts verdict;
	int rc = opt->pcap != NULL ? pcap_writer_check(opt->pcap, opt->force, err) : 0;

	if (rc == 0 && opt->pcap != NULL && s->branches.count > 0)
		rc = err_set(err, -EINVAL, "--pcap: a run with branches has no capture");
	if (rc == 0)
		rc = guests_check(s->guests, err);
	if (rc < 0)
		return rc;
	run_catch_signals(); // one that comes once there is a folder leaves a whole one
	rc = run_create(s->run, opt, true, err);
	if (rc == 0)
		rc = sim_open(s, opt->pcap, err);
	if (rc == 0)
		rc = sim_threads(s, s->branches.count > 0 ? 1 : opt->threads, err);
	if (rc < 0)
		return run_end(s->run, NULL, NULL, &verdict, rc, err);
	run_stdout_aside();
	s->failed = guests_boot(s->guests, &s->err);
	run_through(s, opt);
	rc = sim_close(s, err);
	if (s->failed < 0 && !run_stop)
		guests_keep_logs(s->guests, s->run->dir);
	if (rc == 0 && s->failed < 0 && !run_stop)
		rc = err_set(err, s->failed, "%s", s->err.msg);
	if (rc == 0 && s->run->stop.settled && s->now_ns < s->branches.at_ns
		&& s->branches.count > 0)
		rc = err_set(err, -EIO, "no branch began: the stop rule ended the run after %g s",
			(double)s->now_ns / 1e9);
	if (rc == 0)
		rc = cc_outcome(err);
	if (rc == 0)
		rc = sim_had_memory(s, err);
	if (s->sender.failed > 0 && s->sender.failed == s->sender.flows)
		facts_say(&verdict, "every_flow_failed", "every flow failed");
	guests_faults(s->guests, &verdict);
	run_interrupted(&verdict);
	return run_end(s->run, summary, s, &verdict, rc, err);
}

// Identical groups whose flows start at the same instant had 1.11 and 0.87 of what is fair, by
// their place in the list.
static void warn_together(const struct sim *s, struct config_node *flows) {
	uint32_t with;
	const struct config_node *node = groups_together(&s->groups, flows, &with);
	struct err err;

	if (node == NULL)
		return;
	config_err(node, 0, &err,
		"flows: starts at the same instants as group %u, which is like it: their places in "
		"this list decide part of who gets what; `jitter: ` of a round trip avoids it",
		with);
	run_warn(s->run, "%s", err.msg);
}

// Warns of entries of the config that change nothing: they lie beyond the end of the run, or sample
// no flow.
static void warn_unused(const struct sim *s) {
	struct run *run = s->run;
	struct config_node *flows = config_get(config_root(run->config), "flows");

	run_warn_unreached(
		run, schedule_unreached(&s->schedule, run->duration_ns), "schedule: this change");
	run_warn_unreached(run, groups_unreached(&s->groups, flows, run->duration_ns),
		"flows: the start of this group");
	run_warn_unsampled(run, s->groups.flows);
	warn_together(s, flows);
}

static int configured(struct run *run, const struct run_options *opt, struct err *err) {
	static struct sim s;
	int rc = sim_init(&s, run, err);

	if (rc < 0)
		return rc;
	rc = config_unused(run->config, err);
	if (rc == 0)
		warn_unused(&s);
	if (rc == 0 && opt->print_config)
		run_print_config(run);
	else if (rc == 0 && !opt->check)
		rc = experiment(&s, opt, err);
	sim_fini(&s);
	return rc;
}

static bool summary_of_offline(void *o, FILE *out, const struct facts *verdict) {
	return offline_summary(o, out, verdict);
}

static int offline_through(struct offline *o, const struct run_options *opt, struct err *err) {
	uint64_t duration_ns = o->run->duration_ns;
	double start_s = wall_clock_s();
	static struct facts verdict;
	struct fact fault;
	struct err late;
	int rc = opt->pcap != NULL ? pcap_writer_check(opt->pcap, opt->force, err) : 0, closed;

	if (rc < 0)
		return rc;
	run_catch_signals();
	rc = run_create(o->run, opt, true, err);
	if (rc == 0)
		rc = offline_open(o, opt->pcap, err);
	if (rc < 0)
		return run_end(o->run, NULL, NULL, &verdict, rc, err);
	for (uint64_t t = 0; rc == 0 && t < duration_ns && !run_stop && !o->ended;) {
		t = time_min(t + duration_ns / STEPS + 1, duration_ns);
		rc = offline_run(o, t, err);
	}
	for (uint32_t i = 0; rc == 0 && !run_stop && i < o->paths.count; i++)
		run_warn_unreached(
			o->run, arrivals_unread(&o->source[i]), "source: the capture's end");
	run_interrupted(&verdict);
	for (uint32_t i = 0; i < o->paths.count; i++) {
		if (!arrivals_fault(&o->source[i], &fault))
			continue;
		facts_add(&verdict, &fault);
		run_warn(o->run, "%s", fault.sentence);
	}
	closed = offline_close(o, &late);
	if (rc == 0 && closed < 0)
		rc = err_set(err, closed, "%s", late.msg);
	o->wall_s = wall_clock_s() - start_s;
	return run_end(o->run, summary_of_offline, o, &verdict, rc, err);
}

// Paths that have captures as their sources, and no flows.
static int offline(struct run *run, const struct run_options *opt, struct err *err) {
	struct config_node *branches = config_get(config_root(run->config), "branches");
	static struct offline o;
	int rc = offline_init(&o, run, err);

	if (rc < 0)
		return rc;
	if (branches != NULL)
		rc = config_err(
			branches, -EINVAL, err, "branches: a run without flows of ours has none");
	if (rc == 0)
		rc = config_unused(run->config, err);
	if (rc == 0)
		run_warn_unreached(run, schedule_unreached(&o.schedule, run->duration_ns),
			"schedule: this change");
	if (rc == 0 && opt->print_config)
		run_print_config(run);
	else if (rc == 0 && !opt->check)
		rc = offline_through(&o, opt, err);
	offline_fini(&o);
	return rc;
}

static bool summary_of_replay(void *r, FILE *out, const struct facts *verdict) {
	return replay_summary(r, out, verdict);
}

static int replay_through(struct replay *r, const struct run_options *opt, struct err *err) {
	double start_s = wall_clock_s();
	static struct facts verdict;
	struct err late;
	int rc, closed;

	run_catch_signals();
	rc = run_create(r->run, opt, true, err);
	if (rc == 0)
		rc = replay_open(r, err);
	if (rc < 0)
		return run_end(r->run, NULL, NULL, &verdict, rc, err);
	rc = replay_run(r, err);
	closed = replay_close(r, &late);
	if (rc == 0 && closed < 0)
		rc = err_set(err, closed, "%s", late.msg);
	r->wall_s = wall_clock_s() - start_s;
	return run_end(r->run, summary_of_replay, r, &verdict, rc, err);
}

// --replay: a recording in place of senders and receivers.
static int replayed(struct run *run, const struct run_options *opt, struct err *err) {
	static struct replay r;
	int rc = replay_init(&r, run, opt->replay, err);

	if (rc < 0)
		return rc;
	rc = config_unused(run->config, err);
	if (rc == 0 && opt->print_config)
		run_print_config(run);
	else if (rc == 0 && !opt->check)
		rc = replay_through(&r, opt, err);
	replay_fini(&r);
	return rc;
}

static bool is_offline(const struct run *run) {
	return config_get(config_root(run->config), "flows") == NULL && offline_wanted(run->config);
}

int main(int argc, char **argv) {
	static struct run_options opt;
	struct run run;
	struct err err = {0};
	int rc = run_options(&opt, argc, argv, PROGRAM, &err);

	if (rc != 0)
		return run_exit(PROGRAM, rc, &err);
	if (opt.list != NULL)
		return run_exit(PROGRAM, list(&opt, &err), &err);
	if (opt.trials)
		return run_exit(PROGRAM, trials(&opt, &err), &err);
	rc = run_load(&run, &opt, &err);
	if (rc < 0)
		return run_exit(PROGRAM, rc, &err);
	if (opt.threads > 1 && (opt.replay != NULL || is_offline(&run)))
		run_warn(
			&run, "--threads %u: the run has one thread; it has no hosts", opt.threads);
	if (opt.replay != NULL)
		rc = replayed(&run, &opt, &err);
	else if (is_offline(&run))
		rc = offline(&run, &opt, &err);
	else
		rc = configured(&run, &opt, &err);
	run_free(&run);
	return run_exit(PROGRAM, rc, &err);
}
