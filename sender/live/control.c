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
// The parts shared with the switch are in common/live/lcore/control.h and app.h.
#include "sender/live/app.h"

static uint32_t groups(const struct sender_app *app) {
	return app->lcore->sender.flows > 0 ? app->groups.count : 0;
}

static bool answer_info(
	struct live_app *live, const char *params, struct rte_tel_data *d, struct err *err) {
	const struct sender_app *app = sender_app(live);

	if (!live_control_info(live, d, err))
		return false;
	control_u64(d, "groups", groups(app));
	control_u64(d, "flows_waiting", sender_shown(app, SENDER_SHOWN_WAITING));
	control_u64(d, "flows_open", sender_shown(app, SENDER_SHOWN_OPEN));
	control_u64(d, "flows_done", sender_shown(app, SENDER_SHOWN_DONE));
	control_u64(d, "flows_failed", sender_shown(app, SENDER_SHOWN_FAILED));
	return true;
}

static bool answer_lcores(
	struct live_app *live, const char *params, struct rte_tel_data *d, struct err *err) {
	struct sender_app *app = sender_app(live);

	for (uint32_t k = 0; k < live->lcores; k++)
		control_u64(live_control_lcore(live, k, d), "flows_open",
			atomic_load(&app->lcore[k].shown[SENDER_SHOWN_OPEN]));
	return true;
}

static bool answer_ports(
	struct live_app *live, const char *params, struct rte_tel_data *d, struct err *err) {
	struct sender_app *app = sender_app(live);

	if (live_ask_all(live, SENDER_SNAPSHOT, 0, err) < 0)
		return false;
	for (uint32_t i = 0; i < live->ports; i++) {
		struct rte_tel_data *one =
			live_control_port(&live->port[i], app->lcore->mailbox.snapshot.now_ns, d);
		struct sender_count c = {0};

		for (uint32_t k = 0; k < live->lcores; k++)
			sender_count_add(&c, &app->lcore[k].mailbox.snapshot.port[i]);
		control_text(one, "role", live_role_names[app->config.port[i].role]);
		control_u64(one, "rx_pkts", c.rx_frames);
		control_u64(one, "rx_bytes", c.rx_bytes);
		control_u64(one, "tx_pkts", c.tx_frames);
		control_u64(one, "tx_bytes", c.tx_bytes);
		control_u64(one, "tx_dropped", c.tx_dropped);
		control_u64(one, "no_mbuf", c.no_mbuf);
		control_u64(one, "rx_no_room", c.rx_no_room);
		control_u64(one, "waiting", c.tx_waiting);
	}
	return true;
}

#define SCAN_ANSWER(type, name, source)                                                            \
	if ((source) != COUNT_INNER)                                                               \
		control_u64(d, #name, (uint64_t)s.name);

static void add_group(const struct sender_app *app, uint32_t i, struct rte_tel_data *d) {
	struct group_scan_sum s = {0};
	char key[16];
	double n;

	for (uint32_t k = 0; k < app->live.lcores; k++)
		group_scan_add(&s, &app->lcore[k].mailbox.scan.group[i]);
	n = s.measured > 0 ? (double)s.measured : 1;
	snprintf(key, sizeof(key), "%u", i);
	d = control_dict(d, key);
	control_text(d, "name", app->groups.group[i].name);
	control_text(d, "cc", app->groups.group[i].control);
	control_u64(d, "now_ns", app->lcore->mailbox.snapshot.now_ns);
	GROUP_SCAN_SUMS(SCAN_ANSWER)
	control_u64(d, "srtt_mean_ns", (uint64_t)((double)s.srtt_ns / n));
	control_f64(d, "cwnd_mean_segs", s.cwnd_segs / n);
	control_u64(d, "pacing_bps", (uint64_t)s.pacing_bps);
}

static bool answer_groups(
	struct live_app *live, const char *params, struct rte_tel_data *d, struct err *err) {
	struct sender_app *app = sender_app(live);
	uint32_t first = control_first(params);

	if (live_ask_all(live, SENDER_GROUP_SCAN, 0, err) < 0)
		return false;
	for (uint32_t i = first; i < groups(app) && i < first + CONTROL_DICTS; i++)
		add_group(app, i, d);
	return true;
}

const struct control_command sender_commands[] = {
	{"/weir/info", "The run, its time, load and flows. No parameters", answer_info},
	{"/weir/lcores", "Load of each lcore. No parameters", answer_lcores},
	{"/weir/ports", "Counters of each port. No parameters", answer_ports},
	{"/weir/groups", "Flows, goodput, RTT and window of each group; the first one's number",
		answer_groups},
	{"/weir/stop", "Ends the run. No parameters", live_control_stop},
	{.name = NULL},
};
