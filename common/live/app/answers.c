// SPDX-License-Identifier: BSD-3-Clause
// The answers through rte_telemetry that both live programs give in the same way (app.h).
#include "common/live/app/app.h"

#include <errno.h>

int live_free(const struct live_app *app, uint32_t lcore, struct err *err) {
	char name[32];

	snprintf(name, sizeof(name), "the %s", app->program->self);
	return control_free(&app->lcore[lcore]->box, name, err);
}

int live_ask(struct live_app *app, uint32_t lcore, int request, uint32_t first, struct err *err) {
	char name[32];

	snprintf(name, sizeof(name), "the %s", app->program->self);
	return control_ask(&app->lcore[lcore]->box, request, first, name, err);
}

int live_ask_all(struct live_app *app, int request, uint32_t first, struct err *err) {
	int rc = 0;

	for (uint32_t i = 0; rc == 0 && i < app->lcores; i++)
		rc = live_ask(app, i, request, first, err);
	return rc;
}

static void add_load(const struct live_app *app, uint32_t lcore, const struct watch_count *count,
	struct rte_tel_data *d) {
	control_u64(d, "cpu", app->process->lcore[lcore]);
	control_u64(d, "now_ns", count->now_ns);
	control_u64(d, "iterations", count->iterations);
	control_u64(d, "iteration_max_ns", count->iteration_max_ns);
	control_u64(d, "busy_ns", count->busy_ns);
}

bool live_control_info(struct live_app *app, struct rte_tel_data *d, struct err *err) {
	struct watch_count count;

	if (live_free(app, 0, err) < 0)
		return false;
	watch_shown(&app->lcore[0]->watch, &count);
	control_text(d, "program", app->program->name);
	control_text(d, "version", run_version());
	control_text(d, "run", app->run.dir);
	control_u64(d, "seed", app->run.seed);
	control_u64(d, "elapsed_ns",
		count.begun_ns == NEVER_NS ? 0 : time_since(count.now_ns, count.begun_ns));
	control_u64(d, "duration_ns", app->run.duration_ns);
	control_u64(d, "lcores", app->lcores);
	add_load(app, 0, &count, d);
	return true;
}

struct rte_tel_data *live_control_lcore(
	struct live_app *app, uint32_t lcore, struct rte_tel_data *d) {
	struct watch_count count;
	char key[16];

	snprintf(key, sizeof(key), "%u", lcore);
	d = control_dict(d, key);
	watch_shown(&app->lcore[lcore]->watch, &count);
	add_load(app, lcore, &count, d);
	control_u64(d, "handed_over", count.handed_over + count.handover_dropped);
	control_u64(d, "handover_dropped", count.handover_dropped);
	return d;
}

struct rte_tel_data *live_control_port(
	const struct port *port, uint64_t now_ns, struct rte_tel_data *d) {
	d = control_dict(d, port->name);
	control_text(d, "name", port->name);
	control_text(d, "dev", port->dev.name);
	control_u64(d, "now_ns", now_ns);
	control_u64(d, "up", atomic_load(&port->up));
	return d;
}

bool live_control_stop(
	struct live_app *app, const char *params, struct rte_tel_data *d, struct err *err) {
	atomic_store(&app->lcore[0]->stop, true);
	control_u64(d, "ok", 1);
	return true;
}
