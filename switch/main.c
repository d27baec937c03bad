// SPDX-License-Identifier: BSD-3-Clause
// weir-switch: the live bottleneck. Frames from any port go through the path of the port they leave
// by: queues, links, delays, losses, in real time, each path on one lcore.
#include "switch/live/app.h"

#include "switch/aqm/aqm.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#define PROGRAM "weir-switch"
#define LINGER_MS 3000

static int list(const struct run_options *opt) {
	const char *kind = opt->list;
	bool aqm = run_list_asked(kind, "aqm"), stage = run_list_asked(kind, "stage");
	bool run = run_list_asked(kind, "run");
	struct run_list l;

	run_list_begin(&l, opt, stdout);
	for (const struct aqm_ops *const *o = aqm_all; aqm && *o != NULL; o++)
		run_list_plugin(
			&l, "aqm", (*o)->name, (*o)->summary, (*o)->params, &(*o)->observed, 1);
	if (stage)
		paths_list(&l);
	if (run)
		run_list_run(&l);
	run_list_end(&l);
	if (aqm || stage || run)
		return 0;
	fprintf(stderr, PROGRAM ": --list: '%s' is not one of aqm, stage, run\n", kind);
	return 2;
}

// Reads every section of the config that concerns the switch.
static int configure(struct switch_app *app, struct err *err) {
	struct config *c = app->run.config;
	struct config_node *root = config_root(c);
	int rc = plan_flows(&app->plan, c, err);
	struct paths_env env = {
		.run_seed = app->run.seed,
		.mtu_bytes = PLAN_MTU_BYTES,
		.group_base_rtt_ns = app->plan.group_base_rtt_ns,
		.flows = config_get(root, "flows"),
		.groups = app->plan.groups,
		.tel_packets = &app->live->tel_packets,
		.tel_arrivals = &app->live->tel_arrivals,
		.tel_run = &app->run.tel,
	};

	if (rc == 0)
		rc = paths_init(&app->paths, config_get(root, "paths"), &env, err);
	if (rc == 0)
		rc = schedule_init(&app->schedule, config_get(root, "schedule"), &app->paths, err);
	if (rc == 0)
		rc = plan_ports(&app->plan, c, &app->paths, err);
	if (rc == 0)
		rc = config_unused(c, err);
	if (rc == 0)
		run_warn_unreached(&app->run,
			schedule_unreached(&app->schedule, app->run.duration_ns),
			"schedule: this change");
	return rc;
}

static bool summary(void *app, FILE *out, const char *verdict) {
	return switch_app_summary(app, out, verdict);
}

static int experiment(struct switch_app *app, struct err *err) {
	char sentence[WATCH_SENTENCE_SIZE], thrown[WATCH_SENTENCE_SIZE];
	const char *verdict = "ok";
	int rc;

	run_catch_signals();
	if ((rc = switch_app_open(app, err)) < 0)
		return run_end(&app->run, NULL, NULL, NULL, rc, err);
	rc = switch_app_run(app, err);
	if (switch_app_thrown(app, run_stop ? "interrupted; " : "", thrown))
		verdict = thrown;
	else if (run_stop)
		verdict = "interrupted";
	verdict = watch_verdict(app->watch, app->live->lcores, verdict, sentence);
	rc = run_end(&app->run, summary, app, verdict, rc, err);
	// The traffic's own programs end a moment later: let them find a switch until then.
	for (int i = 0; rc == 0 && app->live->ended && app->plan.start == PLAN_START_TRAFFIC
		&& i < LINGER_MS && !run_stop;
		i++)
		usleep(1000);
	if (rc == 0 && app->live->ended)
		run_stop = 0; // a signal after the end has interrupted nothing
	return rc;
}

int main(int argc, char **argv) {
	static struct run_options opt;
	static struct switch_app app = {.eal = EAL_NONE};
	struct err err = {0};
	int rc = run_options(&opt, argc, argv, PROGRAM, &err);

	if (rc != 0)
		return run_exit(PROGRAM, rc, &err);
	if (opt.list != NULL)
		return (rc = list(&opt)) != 0 ? rc : run_exit(PROGRAM, 0, &err);
	app.opt = &opt;
	if ((rc = run_load(&app.run, &opt, &err)) < 0)
		return run_exit(PROGRAM, rc, &err);
	rc = configure(&app, &err);
	if (rc == 0 && opt.print_config) {
		config_print(app.run.config, stdout);
	} else if (rc == 0 && !opt.check) {
		rc = experiment(&app, &err);
		switch_app_close(&app);
	}
	schedule_fini(&app.schedule);
	if (app.paths.count > 0)
		paths_fini(&app.paths);
	plan_free(&app.plan);
	run_free(&app.run);
	return run_exit(PROGRAM, rc, &err);
}
