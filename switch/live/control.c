// SPDX-License-Identifier: BSD-3-Clause
// Statistics and control through rte_telemetry (dpdk-telemetry.py, or any client of its socket):
//
//	/weir/info                              program, run, time, load
//	/weir/lcores                            load of each lcore
//	/weir/ports  /weir/paths  /weir/links   counters, of the first links
//	/weir/links,24                          of those from the 25th on
//	/weir/params                            the first live parameters and their values; ,96:
//	                                        more
//	/weir/set,forward.link.rate=5Gbit       changes one, between two bursts
//	/weir/measure                           the summary's figures start now
//	/weir/stop                              ends the run; the summary is written
//
// The parts shared with the sender are in common/live/lcore/control.h and app.h.
#include "switch/live/app.h"

#include <errno.h>
#include <string.h>

const struct switch_snapshot *switch_snapshot(struct switch_app *app, struct err *err) {
	struct switch_snapshot *snap = &app->lcore->mailbox.snapshot;

	for (uint32_t i = 0; i < app->live.lcores; i++) {
		if (live_free(&app->live, i, err) < 0) // it would add its last answer to this one
			return NULL;
	}
	*snap = (struct switch_snapshot){0};
	return live_ask_all(&app->live, SWITCH_SNAPSHOT, 0, err) == 0 ? snap : NULL;
}

static bool answer_info(
	struct live_app *live, const char *params, struct rte_tel_data *d, struct err *err) {
	struct switch_app *app = switch_app(live);
	struct path_param at = {0};
	uint64_t live_params = 0;

	if (!live_control_info(live, d, err))
		return false;
	while (paths_next_param(&app->paths, &at))
		live_params++;
	control_u64(d, "pool_buffers", app->buffers);
	control_u64(d, "pool_free", rte_mempool_avail_count(app->lcore->pool));
	control_u64(d, "links", app->lcore->links);
	control_u64(d, "params", live_params);
	return true;
}

static bool answer_lcores(
	struct live_app *live, const char *params, struct rte_tel_data *d, struct err *err) {
	for (uint32_t k = 0; k < live->lcores; k++)
		live_control_lcore(live, k, d);
	return true;
}

static void add_count(struct rte_tel_data *d, const char *what, const struct pkt_count *c) {
	char name[32];

	snprintf(name, sizeof(name), "%s_pkts", what);
	control_u64(d, name, c->pkts);
	snprintf(name, sizeof(name), "%s_bytes", what);
	control_u64(d, name, c->bytes);
}

static bool answer_ports(
	struct live_app *live, const char *params, struct rte_tel_data *d, struct err *err) {
	struct switch_app *app = switch_app(live);
	const struct switch_snapshot *snap = switch_snapshot(app, err);

	for (uint32_t i = 0; snap != NULL && i < live->ports; i++) {
		const struct path *path = app->config.port[i].path;
		struct rte_tel_data *one = live_control_port(&live->port[i], snap->now_ns, d);

		control_text(one, "path", path != NULL ? path->name : "");
		add_count(one, "rx", &snap->rx[i]);
		add_count(one, "tx", &snap->tx[i]);
		control_u64(one, "tx_dropped", snap->tx_dropped[i]);
		if (path == NULL && !app->config.routed)
			continue;
		control_u64(one, "left_pkts", snap->left[i]);
		control_u64(one, "late_sum_ns", snap->late_sum_ns[i]);
		control_u64(one, "late_max_ns", snap->late_max_ns[i]);
	}
	return snap != NULL;
}

static bool answer_paths(
	struct live_app *live, const char *params, struct rte_tel_data *d, struct err *err) {
	struct switch_app *app = switch_app(live);
	const struct switch_snapshot *snap = switch_snapshot(app, err);

	for (uint32_t i = 0; snap != NULL && i < app->paths.count; i++) {
		const char *path = app->paths.path[i].name;
		struct rte_tel_data *one = control_dict(d, path);

		control_text(one, "name", path);
		control_u64(one, "now_ns", snap->now_ns);
		add_count(one, "in", &snap->in[i]);
		add_count(one, "duplicated", &snap->duplicated[i]);
		add_count(one, "out", &snap->out[i]);
		control_u64(one, "inside_pkts", snap->inside[i]);
		for (uint32_t r = DROP_NONE + 1; r < DROP_REASONS; r++) {
			char name[48];

			snprintf(name, sizeof(name), "drop_%s",
				drop_reason_name((enum drop_reason)r));
			control_u64(one, name, snap->drop[i][r].pkts);
		}
	}
	return snap != NULL;
}

#define CONTROL_COUNTER(type, name, ...) control_u64(one, #name, link->count.name);

static bool answer_links(
	struct live_app *live, const char *params, struct rte_tel_data *d, struct err *err) {
	const struct switch_snapshot *snap = switch_snapshot(switch_app(live), err);
	uint32_t first = control_first(params), links = switch_app(live)->lcore->links;

	for (uint32_t i = first; snap != NULL && i < links && i < first + CONTROL_DICTS; i++) {
		const struct switch_link *link = &snap->link[i];
		struct rte_tel_data *one = control_dict(d, link->name);

		control_text(one, "name", link->name);
		control_u64(one, "now_ns", snap->now_ns);
		control_u64(one, "rate_bps", link->rate_bps);
		control_u64(one, "queue_pkts", link->queue_pkts);
		control_u64(one, "queue_bytes", link->queue_bytes);
		LINK_COUNTERS(CONTROL_COUNTER)
		control_u64(one, "wire_bits", (uint64_t)link->wire_bits);
		control_u64(one, "capacity_bits", (uint64_t)link->capacity_bits);
	}
	return snap != NULL;
}

static void value_text(const struct param *p, double value, char *text, size_t size) {
	if (p->type == PARAM_TYPE_BOOL)
		snprintf(text, size, "%s", value != 0 ? "yes" : "no");
	else if (p->type == PARAM_TYPE_ENUM)
		snprintf(text, size, "%s", p->choices[(int)value]);
	else
		unit_format(value, p->unit, text, size);
}

// ["forward.link.rate=10Gbit", ...], in the form that /weir/set accepts.
static bool answer_params(
	struct live_app *live, const char *params, struct rte_tel_data *d, struct err *err) {
	struct switch_app *app = switch_app(live);
	uint32_t first = control_first(params);
	struct path_param at = {0};

	if (live_ask_all(live, SWITCH_PARAMS, first, err) < 0)
		return false;
	rte_tel_data_start_array(d, RTE_TEL_STRING_VAL);
	for (uint32_t i = 0; i < first + CONTROL_STRINGS && paths_next_param(&app->paths, &at);
		i++) {
		char number[32], text[2 * PARAM_TEXT_SIZE], one[RTE_TEL_MAX_STRING_LEN];

		if (i < first)
			continue;
		value_text(at.param, app->lcore->mailbox.param[i - first], number, sizeof(number));
		snprintf(text, sizeof(text), "%s.%s=%s", at.stage->name, at.param->name, number);
		control_encode(text, one, sizeof(one));
		rte_tel_data_add_array_string(d, one);
	}
	return true;
}

// Asks only the lcore that owns the path.
static bool answer_set(
	struct live_app *live, const char *params, struct rte_tel_data *d, struct err *err) {
	struct switch_app *app = switch_app(live);
	struct switch_mailbox *box;
	struct path_change c = {0};
	char text[256];
	uint32_t k = 0;

	snprintf(text, sizeof(text), "%s", params);
	if (paths_read_change(&app->paths, text, &c, err) < 0)
		return false;
	if (strlen(c.key) >= sizeof(box->key) || strlen(c.value) >= sizeof(box->value))
		return err_set(err, -EINVAL, "too long") == 0;
	for (uint32_t i = 0; i < live->ports; i++) {
		if (app->config.port[i].path == c.path)
			k = app->config.port[i].lcore;
	}
	if (live_free(live, k, err) < 0)
		return false;
	box = &app->lcore[k].mailbox;
	box->path = c.path;
	snprintf(box->key, sizeof(box->key), "%s", c.key);
	snprintf(box->value, sizeof(box->value), "%s", c.value);
	if (live_ask(live, k, SWITCH_SET, 0, err) < 0)
		return false;
	if (box->rc < 0)
		return err_set(err, box->rc, "%s", box->err.msg) == 0;
	control_f64(d, "before", box->before);
	control_f64(d, "after", box->after);
	return true;
}

static bool answer_measure(
	struct live_app *live, const char *params, struct rte_tel_data *d, struct err *err) {
	control_u64(d, "ok", 1);
	return live_ask_all(live, SWITCH_MEASURE, 0, err) == 0;
}

const struct control_command switch_commands[] = {
	{"/weir/info", "The run, its time and load. No parameters", answer_info},
	{"/weir/lcores", "Load of each lcore. No parameters", answer_lcores},
	{"/weir/ports", "Counters of each port. No parameters", answer_ports},
	{"/weir/paths", "Counters of each path. No parameters", answer_paths},
	{"/weir/links", "Rate, queue and counters of each link; the first one's number",
		answer_links},
	{"/weir/params", "What /weir/set may change; the first one's number", answer_params},
	{"/weir/set", "Changes a parameter: forward.link.rate=5Gbit", answer_set},
	{"/weir/measure", "The summary's figures start now. No parameters", answer_measure},
	{"/weir/stop", "Ends the run. No parameters", live_control_stop},
	{.name = NULL},
};
