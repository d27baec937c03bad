// SPDX-License-Identifier: BSD-3-Clause
// The parts of a live run's summary that both programs share (app.h).
#include "common/live/app/app.h"

#include "common/net/address.h"

uint64_t live_end_ns(const struct live_app *app) {
	uint64_t end_ns = 0;

	for (uint32_t i = 0; i < app->lcores; i++)
		end_ns = time_max(end_ns, app->lcore[i]->now_ns);
	return end_ns;
}

uint64_t live_start_ns(const struct live_app *app) {
	uint64_t start_ns = app->lcore[0]->start_ns;

	return start_ns == NEVER_NS ? live_end_ns(app) : start_ns;
}

bool live_summary(void *of, FILE *out, const struct facts *verdict) {
	uint64_t start_ns = live_start_ns(of);
	struct live_app *app = of;
	bool balanced;
	struct json j;

	run_summary_begin(&app->run, app->program->self, &j, out);
	json_u64(&j, "seed", app->run.seed);
	json_f64(&j, "virtual_s", (double)time_since(live_end_ns(app), start_ns) / 1e9);
	json_f64(&j, "start_s", (double)start_ns / 1e9);
	json_f64(&j, "warmup_s", (double)app->run.warmup_ns / 1e9);
	json_f64(&j, "measured_from_s", (double)app->lcore[0]->measured_ns / 1e9);
	json_f64(&j, "wall_s", app->wall_s);
	facts_json(verdict, &j);
	balanced = app->program->summary(app, &j);
	run_summary_telemetry(app->run.telemetry_level, app->lcore[0]->tel, &j);
	json_end(&j);
	return balanced;
}

void live_faults_json(const struct live_app *app, uint64_t no_mbuf, struct json *j) {
	const struct lcore *first = app->lcore[0];
	struct fact fault;

	for (uint32_t i = 0; i < app->ports; i++) {
		if (port_fault(&app->port[i], live_start_ns(app), live_end_ns(app), &fault))
			fact_json(&fault, j, NULL);
	}
	for (uint32_t i = 0; i < first->streams; i++) {
		if (tel_fault(first->stream[i], &fault))
			fact_json(&fault, j, NULL);
	}
	fact_count(j, "no_mbuf", NULL, no_mbuf,
		"%llu packets were dropped because the pool was too small for them (no_mbuf)",
		(unsigned long long)no_mbuf);
}

void live_port_json(struct port *port, struct json *j) {
	struct rte_eth_stats stats;
	char mac[ADDRESS_MAC_SIZE];

	port_stats(port, &stats);
	address_mac_text(&port->mac, mac);
	json_text(j, "name", port->name);
	json_text(j, "dev", port->dev.text);
	json_text(j, "mac", mac);
	// The driver's and the kernel's counters: frames not received for lack of room; frames
	// taken but not sent.
	json_known(j, "driver_missed", port_counts_missed(port), stats.imissed);
	json_u64(j, "driver_no_mbuf", stats.rx_nombuf);
	json_u64(j, "driver_tx_errors", stats.oerrors);
}

void live_late_json(
	const struct hist *late, const char *packets, const char *error, struct json *j) {
	static const struct {
		const char *name;
		double q;
	} quantiles[] = {{"p50", 0.5}, {"p99", 0.99}, {"p999", 0.999}};
	char name[64];

	json_u64(j, packets, late->total);
	for (size_t i = 0; i < sizeof(quantiles) / sizeof(quantiles[0]); i++) {
		snprintf(name, sizeof(name), "%s_%s_ns", error, quantiles[i].name);
		json_known(j, name, late->total > 0, hist_quantile(late, quantiles[i].q));
	}
	snprintf(name, sizeof(name), "%s_max_ns", error);
	json_known(j, name, late->total > 0, late->max);
}

void live_lcore_json(const struct live_app *app, uint32_t lcore, struct json *j) {
	const struct lcore_load *load = &app->lcore[lcore]->load;

	json_u64(j, "cpu", app->process->lcore[lcore]);
	json_u64(j, "iterations", load->iterations);
	json_u64(j, "iteration_max_ns", load->iteration_max_ns);
	json_u64(j, "quiesced", load->quiesced);
	json_u64(j, "quiesced_max_ns", load->quiesced_max_ns);
	json_f64(j, "busy", (double)load->busy_ns / 1e9 / app->wall_s);
	json_u64(j, "tsc_hz", app->lcore[lcore]->clock.tsc_hz);
}
