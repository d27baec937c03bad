// SPDX-License-Identifier: BSD-3-Clause
// The parts of a live run's summary that both programs share (app.h).
#include "common/live/app/app.h"

#include "common/net/address.h"
#include "common/run/live_fields.h"

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
	struct json json, *j = &json;

	run_summary_begin(&app->run, app->program->self, j, out);
	LIVE_HEAD(FIELD_JSON)
	balanced = app->program->summary(app, j);
	run_summary_telemetry(app->run.telemetry_level, app->lcore[0]->tel, j);
	json_end(j);
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

static void write_kernel(const struct port *port, struct json *j) {
	if (port->kernel == NULL)
		return;
	struct kernel_count in = kernel_received(port->kernel), out = kernel_sent(port->kernel);

	json_object(j, "kernel");
	KERNEL_PORT_FIELDS(FIELD_JSON)
	json_close(j, '}');
}

void live_port_json(struct port *port, struct json *j) {
	struct rte_eth_stats stats;
	char mac[ADDRESS_MAC_SIZE];

	port_stats(port, &stats);
	address_mac_text(&port->mac, mac);
	PORT_FIELDS(FIELD_JSON)
}

static uint64_t late_quantile(const struct hist *late, double q) {
	return late->total > 0 ? hist_quantile(late, q) : FIELD_UNKNOWN;
}

void live_late_json(const struct hist *late, struct json *j) {
	LATENESS_FIELDS(FIELD_JSON)
}

void live_pacing_json(const struct hist *late, struct json *j) {
	PACING_LATENESS_FIELDS(FIELD_JSON)
}

void live_undisturbed_json(const struct hist *late, struct json *j) {
	json_object(j, "undisturbed");
	LATENESS_FIELDS(FIELD_JSON)
	json_close(j, '}');
}

void live_lcore_json(const struct live_app *app, uint32_t lcore, struct json *j) {
	const struct lcore_load *load = &app->lcore[lcore]->load;

	LCORE_FIELDS(FIELD_JSON)
}
