// SPDX-License-Identifier: BSD-3-Clause
// Statistics and control through rte_telemetry (dpdk-telemetry.py, or any client of its socket):
//
//	/weir/info                program, run, time, flows, load of the first lcore
//	/weir/lcores              load of each
//	/weir/ports               counters
//	/weir/groups              the first flow groups' flows, goodput, RTT, window
//	/weir/groups,24           those from the 25th on
//	/weir/stop                ends the run; the summary is written
//
// live/control.h in common/ has what the switch's share with these.
#include "sender/live/app.h"

#include <errno.h>

// rte_telemetry passes no context to its handlers.
static struct sender_app *app;

// Begins an answer, which ends with control_end(); false: it says instead why there is none.
static bool begin_with(enum sender_request request, struct rte_tel_data *d) {
	struct err err;

	control_begin();
	if (live_ask_all(&app->live, (int)request, &err) == 0)
		return rte_tel_data_start_dict(d) == 0;
	control_end();
	control_error(d, &err);
	return false;
}

static int handle_info(const char *cmd, const char *params, struct rte_tel_data *d) {
	uint64_t waiting = 0, open = 0, done = 0, failed = 0;

	if (!begin_with(SENDER_SNAPSHOT, d))
		return 0;
	for (uint32_t k = 0; k < app->live.lcores; k++) {
		const struct sender_snapshot *snap = &app->lcore[k].mailbox.snapshot;

		waiting += snap->waiting;
		open += snap->open;
		done += snap->done;
		failed += snap->failed;
	}
	live_control_info(&app->live, d);
	control_u64(d, "iteration_max_ns", app->lcore->mailbox.snapshot.iteration_max_ns);
	control_u64(d, "groups", app->lcore->sender.flows > 0 ? app->groups.count : 0);
	control_u64(d, "flows_waiting", waiting);
	control_u64(d, "flows_open", open);
	control_u64(d, "flows_done", done);
	control_u64(d, "flows_failed", failed);
	control_end();
	return 0;
}

static int handle_lcores(const char *cmd, const char *params, struct rte_tel_data *d) {
	if (!begin_with(SENDER_SNAPSHOT, d))
		return 0;
	for (uint32_t k = 0; k < app->live.lcores; k++) {
		const struct sender_snapshot *snap = &app->lcore[k].mailbox.snapshot;
		struct rte_tel_data *one = live_control_lcore(&app->live, k);
		struct sender_count sum = {0};
		char key[16];

		if (one == NULL)
			break;
		for (uint32_t i = 0; i < app->plan.ports; i++)
			sender_count_add(&sum, &snap->port[i]);
		control_u64(one, "iteration_max_ns", snap->iteration_max_ns);
		control_u64(one, "flows_open", snap->open);
		control_u64(one, "handed_over", sum.rx_given + sum.rx_no_room);
		control_u64(one, "handover_dropped", sum.rx_no_room);
		snprintf(key, sizeof(key), "%u", k);
		control_named(d, key, one);
	}
	control_end();
	return 0;
}

static void add_port(struct rte_tel_data *d, uint32_t i) {
	const struct port *p = &app->live.port[i];
	struct rte_tel_data *one = control_dict();
	struct sender_count sum = {0}, *c = &sum;
	uint64_t waiting = 0;

	if (one == NULL)
		return;
	for (uint32_t k = 0; k < app->live.lcores; k++) {
		const struct sender_snapshot *snap = &app->lcore[k].mailbox.snapshot;

		sender_count_add(&sum, &snap->port[i]);
		waiting += snap->outs[i];
	}
	rte_tel_data_add_dict_string(one, "name", p->name);
	rte_tel_data_add_dict_string(one, "dev", p->dev.name);
	rte_tel_data_add_dict_string(
		one, "role", app->plan.port[i].role == LIVE_SENDER ? "sender" : "receiver");
	control_u64(one, "now_ns", app->lcore->mailbox.snapshot.now_ns);
	rte_tel_data_add_dict_int(one, "up", atomic_load(&p->up));
	control_u64(one, "rx_pkts", c->rx_frames);
	control_u64(one, "rx_bytes", c->rx_bytes);
	control_u64(one, "tx_pkts", c->tx_frames);
	control_u64(one, "tx_bytes", c->tx_bytes);
	control_u64(one, "tx_dropped", c->tx_dropped);
	control_u64(one, "no_mbuf", c->no_mbuf);
	control_u64(one, "rx_no_room", c->rx_no_room);
	control_u64(one, "waiting", waiting);
	control_named(d, p->name, one);
}

static int handle_ports(const char *cmd, const char *params, struct rte_tel_data *d) {
	if (!begin_with(SENDER_SNAPSHOT, d))
		return 0;
	for (uint32_t i = 0; i < app->plan.ports; i++)
		add_port(d, i);
	control_end();
	return 0;
}

static void add_group(struct rte_tel_data *d, uint32_t i) {
	struct rte_tel_data *one = control_dict();
	struct survey_group sum = {0}, *s = &sum;
	char key[16];
	double n;

	if (one == NULL)
		return;
	for (uint32_t k = 0; k < app->live.lcores; k++)
		survey_add(&sum, &app->lcore[k].mailbox.survey.group[i]);
	n = s->measured > 0 ? (double)s->measured : 1;
	rte_tel_data_add_dict_string(one, "name", app->groups.group[i].name);
	rte_tel_data_add_dict_string(one, "cc", app->groups.group[i].cc->name);
	control_u64(one, "now_ns", app->lcore->mailbox.snapshot.now_ns);
	control_u64(one, "waiting", s->waiting);
	control_u64(one, "open", s->open);
	control_u64(one, "done", s->done);
	control_u64(one, "failed", s->failed);
	control_u64(one, "acked_bytes", s->acked_bytes);
	control_u64(one, "sent_segs", s->sent_segs);
	control_u64(one, "retransmits", s->retransmits);
	control_u64(one, "timeouts", s->timeouts);
	control_u64(one, "measured", s->measured);
	control_u64(one, "srtt_mean_ns", (uint64_t)((double)s->srtt_ns / n));
	control_f64(one, "cwnd_mean_segs", s->cwnd_segs / n);
	control_u64(one, "pacing_bps", (uint64_t)s->pacing_bps);
	snprintf(key, sizeof(key), "%u", i);
	control_named(d, key, one);
}

static int handle_groups(const char *cmd, const char *params, struct rte_tel_data *d) {
	uint32_t first = control_first(params);
	uint32_t groups = app->lcore->sender.flows > 0 ? app->groups.count : 0;

	if (!begin_with(SENDER_SURVEY, d))
		return 0;
	for (uint32_t i = first; i < groups && i < first + CONTROL_DICTS; i++)
		add_group(d, i);
	control_end();
	return 0;
}

static int handle_stop(const char *cmd, const char *params, struct rte_tel_data *d) {
	return live_control_stop(&app->live, d);
}

int sender_control(struct sender_app *a, struct err *err) {
	static const struct control_command commands[] = {
		{"/weir/info", handle_info, "The run, its time, load and flows. No parameters"},
		{"/weir/lcores", handle_lcores, "Load of each lcore. No parameters"},
		{"/weir/ports", handle_ports, "Counters of each port. No parameters"},
		{"/weir/groups", handle_groups,
			"Flows, goodput, RTT and window of each group; the first one's number"},
		{"/weir/stop", handle_stop, "Ends the run. No parameters"},
	};

	app = a;
	return control_register(commands, sizeof(commands) / sizeof(commands[0]), err);
}
