// SPDX-License-Identifier: BSD-3-Clause
// Statistics and control through rte_telemetry (dpdk-telemetry.py, or any client of its socket):
//
//	/weir/info                              program, run, time, load
//	/weir/ports  /weir/paths  /weir/links   counters
//	/weir/set,forward.link.rate=5Gbit       a live parameter, applied between two bursts
//	/weir/measure                           the summary's figures start now
//	/weir/stop                              ends the run; the summary is written
//
// Handlers run on rte_telemetry's threads. They ask the lcore and wait; it never waits for them.
// An answer with an `error` has one sentence in it.
#include "live_dpdk.h"

#include <ctype.h>
#include <errno.h>
#include <rte_telemetry.h>
#include <rte_version.h>
#include <string.h>

#if RTE_VERSION >= RTE_VERSION_NUM(23, 3, 0, 0)
#define add_u64 rte_tel_data_add_dict_uint
#else
#define add_u64 rte_tel_data_add_dict_u64
#endif

// rte_telemetry passes no context to its handlers.
static struct switch_app *app;

static int answer_error(struct rte_tel_data *d, const struct err *err) {
	rte_tel_data_start_dict(d);
	return rte_tel_data_add_dict_string(d, "error", err->msg);
}

static void take(const struct switch_mailbox *box, void *ctx) {
	*(struct switch_snapshot *)ctx = box->snapshot;
}

static int ask_snapshot(struct switch_snapshot *snap, struct err *err) {
	const struct switch_question q = {.request = SWITCH_SNAPSHOT};

	return switch_ask(&app->live, &q, take, snap, err);
}

// Adds a dictionary under a name, in which rte_telemetry takes letters, digits, '_' and '/' only:
// "forward.link" is called "forward/link". (Version 22.11 prints no arrays of dictionaries.)
static void add_named(struct rte_tel_data *d, const char *name, struct rte_tel_data *one) {
	char key[PARAM_TEXT_SIZE];

	snprintf(key, sizeof(key), "%.60s", name);
	for (char *c = key; *c != '\0'; c++) {
		if (*c == '.')
			*c = '/';
		else if (!isalnum((unsigned char)*c) && *c != '_' && *c != '/')
			*c = '_';
	}
	rte_tel_data_add_dict_container(d, key, one, 0);
}

static int handle_info(const char *cmd, const char *params, struct rte_tel_data *d) {
	struct switch_snapshot snap;
	struct err err;

	if (ask_snapshot(&snap, &err) < 0)
		return answer_error(d, &err);
	rte_tel_data_start_dict(d);
	rte_tel_data_add_dict_string(d, "program", app->opt->program);
	rte_tel_data_add_dict_string(d, "version", run_version());
	rte_tel_data_add_dict_string(d, "run", app->run.dir);
	add_u64(d, "seed", app->run.seed);
	add_u64(d, "now_ns", snap.now_ns);
	add_u64(d, "duration_ns", app->run.duration_ns);
	add_u64(d, "turns", snap.turns);
	add_u64(d, "busy_ns", snap.busy_ns);
	add_u64(d, "cpu", app->plan.process.lcore);
	add_u64(d, "pool_buffers", app->buffers);
	add_u64(d, "pool_free", snap.pool_free);
	return 0;
}

static void add_count(struct rte_tel_data *d, const char *what, const struct path_count *c) {
	char name[32];

	snprintf(name, sizeof(name), "%s_pkts", what);
	add_u64(d, name, c->pkts);
	snprintf(name, sizeof(name), "%s_bytes", what);
	add_u64(d, name, c->bytes);
}

static int handle_ports(const char *cmd, const char *params, struct rte_tel_data *d) {
	struct switch_snapshot snap;
	struct err err;

	if (ask_snapshot(&snap, &err) < 0)
		return answer_error(d, &err);
	rte_tel_data_start_dict(d);
	for (uint32_t i = 0; i < app->live.ports; i++) {
		const struct switch_port *p = &app->live.port[i];
		struct rte_tel_data *one = rte_tel_data_alloc();

		if (one == NULL)
			return -ENOMEM;
		rte_tel_data_start_dict(one);
		rte_tel_data_add_dict_string(one, "name", p->port.name);
		rte_tel_data_add_dict_string(one, "dev", p->port.dev.name);
		rte_tel_data_add_dict_string(one, "path", p->path != NULL ? p->path->name : "");
		rte_tel_data_add_dict_int(one, "up", atomic_load(&p->port.up));
		add_count(one, "rx", &snap.rx[i]);
		add_count(one, "tx", &snap.tx[i]);
		add_u64(one, "tx_dropped", snap.tx_dropped[i]);
		add_named(d, p->port.name, one);
	}
	return 0;
}

static int handle_paths(const char *cmd, const char *params, struct rte_tel_data *d) {
	struct switch_snapshot snap;
	struct err err;

	if (ask_snapshot(&snap, &err) < 0)
		return answer_error(d, &err);
	rte_tel_data_start_dict(d);
	for (uint32_t i = 0; i < app->paths.count; i++) {
		struct rte_tel_data *one = rte_tel_data_alloc();

		if (one == NULL)
			return -ENOMEM;
		rte_tel_data_start_dict(one);
		rte_tel_data_add_dict_string(one, "name", app->paths.path[i].name);
		add_count(one, "in", &snap.in[i]);
		add_count(one, "out", &snap.out[i]);
		add_u64(one, "inside_pkts", snap.inside[i]);
		for (uint32_t r = DROP_NONE + 1; r < DROP_REASONS; r++) {
			char name[48];

			snprintf(name, sizeof(name), "drop_%s",
				drop_reason_name((enum drop_reason)r));
			add_u64(one, name, snap.drop[i][r].pkts);
		}
		add_named(d, app->paths.path[i].name, one);
	}
	return 0;
}

static int handle_links(const char *cmd, const char *params, struct rte_tel_data *d) {
	struct switch_snapshot snap;
	struct err err;

	if (ask_snapshot(&snap, &err) < 0)
		return answer_error(d, &err);
	rte_tel_data_start_dict(d);
	for (uint32_t i = 0; i < snap.links; i++) {
		struct rte_tel_data *one = rte_tel_data_alloc();

		if (one == NULL)
			return -ENOMEM;
		rte_tel_data_start_dict(one);
		rte_tel_data_add_dict_string(one, "name", snap.link[i].name);
		add_u64(one, "now_ns", snap.now_ns);
		add_u64(one, "rate_bps", snap.link[i].rate_bps);
		add_u64(one, "queue_pkts", snap.link[i].queue_pkts);
		add_u64(one, "queue_bytes", snap.link[i].queue_bytes);
		add_u64(one, "out_pkts", snap.link[i].out_pkts);
		add_u64(one, "out_bytes", snap.link[i].out_bytes);
		add_u64(one, "drops", snap.link[i].drops);
		add_u64(one, "marks", snap.link[i].marks);
		add_u64(one, "wire_bits", (uint64_t)snap.link[i].wire_bits);
		add_u64(one, "capacity_bits", (uint64_t)snap.link[i].capacity_bits);
		add_named(d, snap.link[i].name, one);
	}
	return 0;
}

// "forward.link.rate=5Gbit" to a question; the text is cut up in place.
static int read_set(char *text, struct switch_question *q, struct err *err) {
	char *equals = strchr(text, '='), *dot = strchr(text, '.');
	struct path_stage *stage;
	const struct param *param;

	if (equals == NULL || dot == NULL || dot > equals)
		return err_set(err, -EINVAL, "write e.g. /weir/set,%s.link.rate=5Gbit",
			app->paths.path[0].name);
	*equals = '\0';
	*dot = '\0';
	q->request = SWITCH_SET;
	q->path = paths_find(&app->paths, text);
	q->key = dot + 1;
	q->value = equals + 1;
	if (q->path == NULL)
		return err_set(err, -EINVAL, "there is no path '%s'", text);
	if (strlen(q->key) >= sizeof(app->live.mailbox.key)
		|| strlen(q->value) >= sizeof(app->live.mailbox.value))
		return err_set(err, -EINVAL, "too long");
	return path_check(q->path, q->key, q->value, &stage, &param, err);
}

struct change {
	double before, after;
};

static void take_change(const struct switch_mailbox *box, void *ctx) {
	*(struct change *)ctx = (struct change){box->before, box->after};
}

static int handle_set(const char *cmd, const char *params, struct rte_tel_data *d) {
	struct switch_question q;
	struct change change;
	struct err err;
	char text[256], number[32];

	snprintf(text, sizeof(text), "%s", params != NULL ? params : "");
	if (read_set(text, &q, &err) < 0
		|| switch_ask(&app->live, &q, take_change, &change, &err) < 0)
		return answer_error(d, &err);
	rte_tel_data_start_dict(d);
	snprintf(number, sizeof(number), "%.17g", change.before);
	rte_tel_data_add_dict_string(d, "before", number);
	snprintf(number, sizeof(number), "%.17g", change.after);
	return rte_tel_data_add_dict_string(d, "after", number);
}

static int handle_measure(const char *cmd, const char *params, struct rte_tel_data *d) {
	const struct switch_question q = {.request = SWITCH_MEASURE};
	struct err err;

	if (switch_ask(&app->live, &q, NULL, NULL, &err) < 0)
		return answer_error(d, &err);
	rte_tel_data_start_dict(d);
	return rte_tel_data_add_dict_int(d, "ok", 1);
}

static int handle_stop(const char *cmd, const char *params, struct rte_tel_data *d) {
	atomic_store(&app->live.stop, true);
	rte_tel_data_start_dict(d);
	return rte_tel_data_add_dict_int(d, "ok", 1);
}

int control_register(struct switch_app *a, struct err *err) {
	static const struct {
		const char *command;
		telemetry_cb handler;
		const char *help;
	} commands[] = {
		{"/weir/info", handle_info, "The run, its time and load. No parameters"},
		{"/weir/ports", handle_ports, "Counters of each port. No parameters"},
		{"/weir/paths", handle_paths, "Counters of each path. No parameters"},
		{"/weir/links", handle_links,
			"Rate, queue and counters of each link. No parameters"},
		{"/weir/set", handle_set, "Changes a parameter: forward.link.rate=5Gbit"},
		{"/weir/measure", handle_measure, "The summary's figures start now. No parameters"},
		{"/weir/stop", handle_stop, "Ends the run. No parameters"},
	};

	app = a;
	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
		int rc = rte_telemetry_register_cmd(
			commands[i].command, commands[i].handler, commands[i].help);

		if (rc < 0)
			return err_set(err, rc, "rte_telemetry does not take %s: %s",
				commands[i].command, strerror(-rc));
	}
	return 0;
}
