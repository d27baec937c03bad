// SPDX-License-Identifier: BSD-3-Clause
// weir-switch: the live bottleneck. Frames from any port go through the path of the port they leave
// by: queues, links, delays, losses, in real time, each path on one lcore.
#include "switch/live/app.h"

#include "switch/aqm/aqm.h"

#include <errno.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

#define PKT_NS 500 // an iteration's part per packet is far below
#define LINGER_MS 3000

static bool list(struct run_list *l, const char *kind) {
	bool aqm = run_list_asked(kind, "aqm"), stage = run_list_asked(kind, "stage");
	bool run = run_list_asked(kind, "run");

	for (const struct aqm_ops *const *o = aqm_all; aqm && *o != NULL; o++)
		run_list_plugin(l, "aqm", (*o)->name, (*o)->summary, (*o)->params, (*o)->observed,
			AQM_OBSERVED);
	if (stage)
		paths_list(l);
	if (run)
		run_list_run(l);
	return aqm || stage || run;
}

// Reads every section of the config that concerns the switch.
static int configure(struct live_app *live, struct err *err) {
	struct switch_app *app = switch_app(live);
	struct config *c = live->run.config;
	struct config_node *root = config_root(c);
	int rc = plan_flows(&app->plan, c, err);
	struct paths_env env = {
		.run_seed = live->run.seed,
		.mtu_bytes = PLAN_MTU_BYTES,
		.group_base_rtt_ns = app->plan.group_base_rtt_ns,
		.flows = config_get(root, "flows"),
		.groups = app->plan.groups,
		.tel_packets = &app->lcore->lcore.tel[TEL_STREAM_PACKETS],
		.tel_arrivals = &app->lcore->lcore.tel[TEL_STREAM_ARRIVALS],
		.tel_run = &live->run.tel,
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
		run_warn_unreached(&live->run,
			schedule_unreached(&app->schedule, live->run.duration_ns),
			"schedule: this change");
	live->process = &app->plan.process;
	return rc;
}

static void unconfigure(struct live_app *live) {
	struct switch_app *app = switch_app(live);

	schedule_fini(&app->schedule);
	if (app->paths.count > 0)
		paths_fini(&app->paths);
	plan_free(&app->plan);
}

static uint64_t ring_records(const struct live_app *live, uint32_t lcore, enum tel_stream stream) {
	bool few = stream == TEL_STREAM_LINKS || stream == TEL_STREAM_EVENTS;

	return few ? 4096 : live->process->ring_size;
}

static int begin(struct live_app *live, struct err *err) {
	return switch_control(switch_app(live), err);
}

static void finish(struct live_app *live) {
	switch_clear(switch_app(live)->lcore);
}

// Utilisation of the first link since the progress line before.
static void take_utilisation(const struct switch_mailbox *box, void *ctx) {
	double bits = box->snapshot.link[0].wire_bits,
	       capacity = box->snapshot.link[0].capacity_bits;
	struct switch_app *app = ctx;

	if (box->snapshot.links == 0)
		return;
	app->progress_utilisation = capacity > app->progress_capacity
		? (bits - app->progress_bits) / (capacity - app->progress_capacity)
		: NAN;
	app->progress_bits = bits;
	app->progress_capacity = capacity;
}

static void progress(struct live_app *live, FILE *out) {
	const struct switch_question q = {.request = SWITCH_SNAPSHOT};
	struct switch_app *app = switch_app(live);

	app->progress_utilisation = NAN;
	switch_ask(app, &q, take_utilisation, app, NULL);
	if (isfinite(app->progress_utilisation))
		fprintf(out, ", \"utilisation\": %.4f", app->progress_utilisation);
	else
		fprintf(out, ", \"utilisation\": null");
}

// `start: traffic` may wait for what nobody sends: says so, once.
static void waits(struct live_app *live) {
	char down[LIVE_PORTS_MAX * (PARAM_TEXT_SIZE + 16)] = "";

	if (switch_app(live)->plan.start != PLAN_START_TRAFFIC
		|| live->probe->sample.count.begun_ns != NEVER_NS)
		return;
	for (uint32_t i = 0, used = 0; i < live->ports; i++) {
		if (!atomic_load(&live->port[i].up))
			used += (uint32_t)snprintf(down + used, sizeof(down) - used,
				"; port %s is down", live->port[i].name);
	}
	fprintf(stderr, "%s: still waits for the first TCP or UDP packet (start: traffic)%s\n",
		live->program->name, down);
}

static int outcome(struct live_app *live, const char **verdict, char text[WATCH_SENTENCE_SIZE],
	struct err *err) {
	if (switch_thrown(switch_app(live), run_stop ? "interrupted; " : "", text))
		*verdict = text;
	else if (run_stop)
		*verdict = "interrupted";
	return 0;
}

// The traffic's own programs end a moment later: they find a switch until then.
static void linger(struct live_app *live) {
	if (!live->lcore[0]->ended)
		return;
	for (int i = 0;
		switch_app(live)->plan.start == PLAN_START_TRAFFIC && i < LINGER_MS && !run_stop;
		i++)
		usleep(1000);
	run_stop = 0; // a signal after the end has interrupted nothing
}

static const struct live_stream streams[] = {
	{TEL_STREAM_PACKETS, 2, ""},
	{TEL_STREAM_ARRIVALS, LIVE_ARRIVALS, ""},
	{TEL_STREAM_LINKS, 1, ""},
	{TEL_STREAM_EVENTS, 1, "-switch"},
	{.level = 0},
};

static const struct live_program program = {
	.name = "weir-switch",
	.self = "switch",
	.packets = "packets",
	.pkt_ns = PKT_NS,
	.lcore = &switch_lcore_ops,
	.streams = streams,
	.list = list,
	.kinds = "aqm, stage, run",
	.configure = configure,
	.size = switch_size,
	.open = switch_open,
	.ring_records = ring_records,
	.begin = begin,
	.finish = finish,
	.progress = progress,
	.waits = waits,
	.outcome = outcome,
	.summary = switch_summary,
	.linger = linger,
	.close = switch_close,
	.unconfigure = unconfigure,
};

int main(int argc, char **argv) {
	static struct switch_app app;

	return live_main(&app.live, &program, argc, argv);
}
