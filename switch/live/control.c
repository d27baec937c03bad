// SPDX-License-Identifier: BSD-3-Clause
// Statistics and control through rte_telemetry (dpdk-telemetry.py, or any client of its socket):
//
//	/weir/info                              program, run, time, load
//	/weir/lcores                            load of each lcore
//	/weir/ports  /weir/paths  /weir/links   counters, of the first links
//	/weir/links,24                          of those from the 25th on
//	/weir/params                            the first live parameters and their values; ,96: more
//	/weir/set,forward.link.rate=5Gbit       changes one, between two bursts
//	/weir/measure                           the summary's figures start now
//	/weir/stop                              ends the run; the summary is written
//
// live/control.h in common/ has what the sender's share with these.
#include "switch/live/app.h"

#include <errno.h>
#include <string.h>

// rte_telemetry passes no context to its handlers.
static struct switch_app *app;

static bool has_path(const struct switch_lcore *s, const struct path *path) {
	for (uint32_t i = 0; i < s->paths; i++) {
		if (s->path[i] == path)
			return true;
	}
	return false;
}

static int ask_one(
	struct switch_app *of, uint32_t lcore, const struct switch_question *q, struct err *err) {
	struct switch_mailbox *box = &of->lcore[lcore].mailbox;
	int rc;

	box->path = q->path;
	box->first = q->first;
	snprintf(box->key, sizeof(box->key), "%s", q->key != NULL ? q->key : "");
	snprintf(box->value, sizeof(box->value), "%s", q->value != NULL ? q->value : "");
	rc = live_ask(&of->live, lcore, (int)q->request, err);
	return rc == 0 && box->rc < 0 ? err_set(err, box->rc, "%s", box->err.msg) : rc;
}

int switch_ask(struct switch_app *of, const struct switch_question *q,
	void (*use)(const struct switch_mailbox *box, void *ctx), void *ctx, struct err *err) {
	const struct switch_mailbox *answer = &of->lcore->mailbox;
	int rc = 0;

	control_begin();
	if (q->request == SWITCH_SNAPSHOT)
		of->lcore->mailbox.snapshot = (struct switch_snapshot){0};
	for (uint32_t i = 0; rc == 0 && i < of->live.lcores; i++) {
		if (q->path != NULL && !has_path(&of->lcore[i], q->path))
			continue;
		rc = ask_one(of, i, q, err);
		if (q->path != NULL)
			answer = &of->lcore[i].mailbox;
	}
	if (rc == 0 && use != NULL)
		use(answer, ctx);
	control_end();
	return rc;
}

static void take(const struct switch_mailbox *box, void *ctx) {
	*(struct switch_snapshot *)ctx = box->snapshot;
}

// Begins an answer with figures from a snapshot; false: it says instead why there is none.
static bool begin_with(struct switch_snapshot *snap, struct rte_tel_data *d) {
	const struct switch_question q = {.request = SWITCH_SNAPSHOT};
	struct err err;

	if (switch_ask(app, &q, take, snap, &err) == 0)
		return rte_tel_data_start_dict(d) == 0;
	control_error(d, &err);
	return false;
}

static uint32_t count_params(void) {
	struct path_param at = {0};
	uint32_t n = 0;

	while (paths_next_param(&app->paths, &at))
		n++;
	return n;
}

static int handle_info(const char *cmd, const char *params, struct rte_tel_data *d) {
	struct switch_snapshot snap;

	if (!begin_with(&snap, d))
		return 0;
	live_control_info(&app->live, d);
	control_u64(d, "pool_buffers", app->buffers);
	control_u64(d, "pool_free", snap.pool_free);
	control_u64(d, "links", snap.links);
	control_u64(d, "params", count_params());
	return 0;
}

static int handle_lcores(const char *cmd, const char *params, struct rte_tel_data *d) {
	struct switch_snapshot snap;

	if (!begin_with(&snap, d))
		return 0;
	for (uint32_t i = 0; i < app->live.lcores; i++) {
		struct rte_tel_data *one = live_control_lcore(&app->live, i);
		char name[16];

		if (one == NULL)
			return -ENOMEM;
		control_u64(one, "handed_over", snap.given[i] + snap.not_given[i]);
		control_u64(one, "handover_dropped", snap.not_given[i]);
		snprintf(name, sizeof(name), "%u", i);
		control_named(d, name, one);
	}
	return 0;
}

static void add_count(struct rte_tel_data *d, const char *what, const struct path_count *c) {
	char name[32];

	snprintf(name, sizeof(name), "%s_pkts", what);
	control_u64(d, name, c->pkts);
	snprintf(name, sizeof(name), "%s_bytes", what);
	control_u64(d, name, c->bytes);
}

static int handle_ports(const char *cmd, const char *params, struct rte_tel_data *d) {
	struct switch_snapshot snap;

	if (!begin_with(&snap, d))
		return 0;
	for (uint32_t i = 0; i < app->live.ports; i++) {
		const struct switch_port *p = switch_owner(app->lcore, i);
		struct rte_tel_data *one = control_dict();

		if (one == NULL)
			return -ENOMEM;
		rte_tel_data_add_dict_string(one, "name", p->port->name);
		rte_tel_data_add_dict_string(one, "dev", p->port->dev.name);
		rte_tel_data_add_dict_string(one, "path", p->path != NULL ? p->path->name : "");
		control_u64(one, "now_ns", snap.now_ns);
		rte_tel_data_add_dict_int(one, "up", atomic_load(&p->port->up));
		add_count(one, "rx", &snap.rx[i]);
		add_count(one, "tx", &snap.tx[i]);
		control_u64(one, "tx_dropped", snap.tx_dropped[i]);
		if (p->path != NULL) {
			control_u64(one, "left_pkts", snap.left[i]);
			control_u64(one, "late_sum_ns", snap.late_sum_ns[i]);
			control_u64(one, "late_max_ns", snap.late_max_ns[i]);
		}
		control_named(d, p->port->name, one);
	}
	return 0;
}

static int handle_paths(const char *cmd, const char *params, struct rte_tel_data *d) {
	struct switch_snapshot snap;

	if (!begin_with(&snap, d))
		return 0;
	for (uint32_t i = 0; i < app->paths.count; i++) {
		struct rte_tel_data *one = control_dict();

		if (one == NULL)
			return -ENOMEM;
		rte_tel_data_add_dict_string(one, "name", app->paths.path[i].name);
		control_u64(one, "now_ns", snap.now_ns);
		add_count(one, "in", &snap.in[i]);
		add_count(one, "out", &snap.out[i]);
		control_u64(one, "inside_pkts", snap.inside[i]);
		for (uint32_t r = DROP_NONE + 1; r < DROP_REASONS; r++) {
			char name[48];

			snprintf(name, sizeof(name), "drop_%s",
				drop_reason_name((enum drop_reason)r));
			control_u64(one, name, snap.drop[i][r].pkts);
		}
		control_named(d, app->paths.path[i].name, one);
	}
	return 0;
}

static int handle_links(const char *cmd, const char *params, struct rte_tel_data *d) {
	uint32_t first = control_first(params);
	struct switch_snapshot snap;

	if (!begin_with(&snap, d))
		return 0;
	for (uint32_t i = first; i < snap.links && i < first + CONTROL_DICTS; i++) {
		struct rte_tel_data *one = control_dict();

		if (one == NULL)
			return -ENOMEM;
		rte_tel_data_add_dict_string(one, "name", snap.link[i].name);
		control_u64(one, "now_ns", snap.now_ns);
		control_u64(one, "rate_bps", snap.link[i].rate_bps);
		control_u64(one, "queue_pkts", snap.link[i].queue_pkts);
		control_u64(one, "queue_bytes", snap.link[i].queue_bytes);
		control_u64(one, "out_pkts", snap.link[i].out_pkts);
		control_u64(one, "out_bytes", snap.link[i].out_bytes);
		control_u64(one, "drops", snap.link[i].drops);
		control_u64(one, "marks", snap.link[i].marks);
		control_u64(one, "wire_bits", (uint64_t)snap.link[i].wire_bits);
		control_u64(one, "capacity_bits", (uint64_t)snap.link[i].capacity_bits);
		control_named(d, snap.link[i].name, one);
	}
	return 0;
}

// "forward.link.rate=5Gbit" to a question; the text is cut up in place.
static int read_set(char *text, struct switch_question *q, struct err *err) {
	char *equals = strchr(text, '='), *dot = strchr(text, '.');
	struct path_stage *stage;
	const struct param *param;
	struct err why;
	int rc;

	if (equals == NULL || dot == NULL || dot > equals)
		return err_set(err, -EINVAL, "'%.60s' is not a change such as %s.link.rate=5Gbit",
			text, app->paths.path[0].name);
	*equals = '\0';
	*dot = '\0';
	q->request = SWITCH_SET;
	q->path = paths_find(&app->paths, text);
	q->key = dot + 1;
	q->value = equals + 1;
	if (q->path == NULL) {
		char names[CONFIG_NAMES_SIZE];

		paths_names(&app->paths, names);
		return err_set(err, -EINVAL, "there is no path '%s'; there is %s", text, names);
	}
	if (strlen(q->key) >= sizeof(app->lcore->mailbox.key)
		|| strlen(q->value) >= sizeof(app->lcore->mailbox.value))
		return err_set(err, -EINVAL, "too long");
	rc = path_check(q->path, q->key, q->value, &stage, &param, &why);
	return rc < 0 ? err_set(err, rc, "%s.%s: %s", text, q->key, why.msg) : 0;
}

struct change {
	double before, after;
};

static void take_change(const struct switch_mailbox *box, void *ctx) {
	*(struct change *)ctx = (struct change){box->before, box->after};
}

static int handle_set(const char *cmd, const char *params, struct rte_tel_data *d) {
	struct switch_question q;
	struct change change = {0};
	struct err err;
	char text[256];

	snprintf(text, sizeof(text), "%s", params != NULL ? params : "");
	if (read_set(text, &q, &err) < 0 || switch_ask(app, &q, take_change, &change, &err) < 0)
		return control_error(d, &err);
	rte_tel_data_start_dict(d);
	control_f64(d, "before", change.before);
	control_f64(d, "after", change.after);
	return 0;
}

static void take_params(const struct switch_mailbox *box, void *ctx) {
	memcpy(ctx, box->param, sizeof(box->param));
}

static void value_text(const struct param *p, double value, char *text, size_t size) {
	if (p->type == PARAM_TYPE_BOOL)
		snprintf(text, size, "%s", value != 0 ? "yes" : "no");
	else if (p->type == PARAM_TYPE_ENUM)
		snprintf(text, size, "%s", p->choices[(int)value]);
	else
		unit_format(value, p->unit, text, size);
}

// ["forward.link.rate=10Gbit", ...]: as /weir/set takes them.
static int handle_params(const char *cmd, const char *params, struct rte_tel_data *d) {
	const struct switch_question q = {.request = SWITCH_PARAMS, .first = control_first(params)};
	double value[CONTROL_STRINGS];
	struct path_param at = {0};
	struct err err;

	if (switch_ask(app, &q, take_params, value, &err) < 0)
		return control_error(d, &err);
	rte_tel_data_start_array(d, RTE_TEL_STRING_VAL);
	for (uint32_t i = 0; i < q.first + CONTROL_STRINGS && paths_next_param(&app->paths, &at);
		i++) {
		char number[32], text[RTE_TEL_MAX_STRING_LEN];

		if (i < q.first)
			continue;
		value_text(at.param, value[i - q.first], number, sizeof(number));
		snprintf(text, sizeof(text), "%s.%s=%s", at.stage->name, at.param->name, number);
		rte_tel_data_add_array_string(d, text);
	}
	return 0;
}

static int handle_measure(const char *cmd, const char *params, struct rte_tel_data *d) {
	const struct switch_question q = {.request = SWITCH_MEASURE};
	struct err err;

	if (switch_ask(app, &q, NULL, NULL, &err) < 0)
		return control_error(d, &err);
	return control_ok(d);
}

static int handle_stop(const char *cmd, const char *params, struct rte_tel_data *d) {
	return live_control_stop(&app->live, d);
}

int switch_control(struct switch_app *a, struct err *err) {
	static const struct control_command commands[] = {
		{"/weir/info", handle_info, "The run, its time and load. No parameters"},
		{"/weir/lcores", handle_lcores, "Load of each lcore. No parameters"},
		{"/weir/ports", handle_ports, "Counters of each port. No parameters"},
		{"/weir/paths", handle_paths, "Counters of each path. No parameters"},
		{"/weir/links", handle_links,
			"Rate, queue and counters of each link; the first one's number"},
		{"/weir/params", handle_params,
			"What /weir/set may change; the first one's number"},
		{"/weir/set", handle_set, "Changes a parameter: forward.link.rate=5Gbit"},
		{"/weir/measure", handle_measure, "The summary's figures start now. No parameters"},
		{"/weir/stop", handle_stop, "Ends the run. No parameters"},
	};

	app = a;
	return control_register(commands, sizeof(commands) / sizeof(commands[0]), err);
}
