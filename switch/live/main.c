// SPDX-License-Identifier: BSD-3-Clause
// weir-switch: the live bottleneck. Frames from any port go through the path of the port they leave
// by: queues, links, delays, losses, in real time, each path on one lcore.
#include "switch/live/app.h"

#include "common/run/run_list.h"

#include <errno.h>
#include <math.h>
#include <unistd.h>

#define PKT_NS 500 // an iteration's part per packet is far below
#define LINGER_MS 3000

// Reads every section of the config that concerns the switch.
static int configure(struct live_app *live, struct err *err) {
	struct switch_app *app = switch_app(live);
	struct config *c = live->run.config;
	struct config_node *root = config_root(c);
	int rc = switch_config_flows(&app->config, c, live->run.seed, live->run.duration_ns, err);
	struct paths_env env = {
		.run_seed = live->run.seed,
		.mtu_bytes = live_frame_bytes(&app->config.process),
		.group_base_rtt_ns = app->config.group_base_rtt_ns,
		.base_rtts = &app->config.base_rtts,
		.group_route = app->config.group_route,
		.flows = config_get(root, "flows"),
		.groups = app->config.groups,
		.no_source = config_get(root, "flows") != NULL
			? "a run has either flows or captures as its traffic"
			: NULL,
		.tel_packets = &app->lcore->lcore.tel[TEL_STREAM_PACKETS],
		.tel_arrivals = &app->lcore->lcore.tel[TEL_STREAM_ARRIVALS],
		.tel_run = &live->run.tel,
	};

	if (rc == 0)
		rc = hosts_none(root, err);
	if (rc == 0)
		rc = switch_config_keys(&app->config, c, err);
	if (rc == 0)
		rc = paths_init(&app->paths, config_get(root, "paths"), &env, err);
	if (rc == 0)
		rc = schedule_init(
			&app->schedule, config_get(root, "schedule"), &app->paths, NULL, err);
	if (rc == 0)
		rc = switch_config_ports(&app->config, c, &app->paths, err);
	if (rc == 0)
		rc = switch_sources_open(app->source, &app->paths, app->config.process.mtu, err);
	if (rc == 0)
		rc = config_unused(c, err);
	if (rc == 0)
		run_warn_unreached(&live->run,
			schedule_unreached(&app->schedule, live->run.duration_ns),
			"schedule: this change");
	live->process = &app->config.process;
	live->waits_for = app->config.start == SWITCH_START_TRAFFIC
		? "the first TCP or UDP packet (start: traffic)"
		: "the ports that its captures leave by";
	return rc;
}

static void finish(struct live_app *live) {
	switch_sources_stop(switch_app(live)->source);
	switch_clear(switch_app(live)->lcore);
}

// Utilisation of the first link since the progress line before; NaN: it is not known.
static double utilisation(struct switch_app *app) {
	const struct switch_snapshot *snap = switch_snapshot(app, NULL);
	double bits = snap != NULL ? snap->link[0].wire_bits - app->progress_bits : 0;
	double capacity = snap != NULL ? snap->link[0].capacity_bits - app->progress_capacity : 0;

	app->progress_bits += bits;
	app->progress_capacity += capacity;
	return capacity > 0 ? bits / capacity : NAN;
}

static void progress(struct live_app *live, FILE *out) {
	double used;

	control_begin();
	used = utilisation(switch_app(live));
	control_end();
	if (isfinite(used))
		fprintf(out, ", \"utilisation\": %.4f", used);
	else
		fprintf(out, ", \"utilisation\": null");
}

static int outcome(struct live_app *live, struct facts *verdict, struct err *err) {
	struct switch_app *app = switch_app(live);
	int rc = capture_close(app->capture, err);
	struct fact fault;

	if (rc == 0)
		rc = switch_sources_outcome(app->source, &live->run, err);
	if (switch_thrown(app, &fault))
		facts_add(verdict, &fault);
	run_interrupted(verdict);
	for (uint32_t i = 0; i < PATHS_MAX && !run_stop; i++) {
		if (switch_source_fault(&app->source[i], &fault))
			facts_add(verdict, &fault);
	}
	return rc;
}

// The traffic's own programs end a moment later: they find a switch until then.
static void linger(struct live_app *live) {
	if (!live->lcore[0]->ended)
		return;
	for (int i = 0; switch_app(live)->config.start == SWITCH_START_TRAFFIC && i < LINGER_MS
		&& !run_stop;
		i++)
		usleep(1000);
	run_stop = 0; // a signal after the end has interrupted nothing
}

static const struct live_stream streams[] = {
	{TEL_STREAM_PACKETS, 2, "", LIVE_RING_SIZE},
	{TEL_STREAM_ARRIVALS, LIVE_ARRIVALS, "", LIVE_RING_SIZE},
	{TEL_STREAM_LINKS, 1, "", LIVE_FEW_RECORDS},
	{TEL_STREAM_EVENTS, 1, "-switch", LIVE_FEW_RECORDS},
	{.level = 0},
};

static void list(struct run_list *l) {
	paths_list(l);
	arrivals_list(l);
	run_list_live(l);
	switch_config_list(l);
	schedule_list(l);
}

static const struct live_program program = {
	.name = "weir-switch",
	.self = "switch",
	.packets = "packets",
	.pkt_ns = PKT_NS,
	.lcore = &switch_lcore_ops,
	.streams = streams,
	.commands = switch_commands,
	.list = list,
	.kinds = "aqm, stage, path, live, run",
	.configure = configure,
	.size = switch_size,
	.open = switch_open,
	.begin = switch_begin,
	.drain = switch_capture_drain,
	.finish = finish,
	.progress = progress,
	.outcome = outcome,
	.summary = switch_summary,
	.linger = linger,
	.close = switch_close,
};

int main(int argc, char **argv) {
	static struct switch_app app;

	return live_main(&app.live, &program, argc, argv);
}
