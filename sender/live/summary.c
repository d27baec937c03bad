// SPDX-License-Identifier: BSD-3-Clause
// The summary of a live run of the sender.
#include "sender/live/app.h"

#include "common/net/address.h"
#include "common/run/fields.h"
#include "common/run/live_fields.h"

#include <math.h>

// Writes a port's counters, summed over all lcores.
static void write_port(struct sender_app *app, uint32_t i, struct json *j) {
	const struct live_port *config = &app->config.port[i];
	const bool known[COUNTER_SOURCES] = {[COUNT_ALWAYS] = true};
	struct sender_count total = {0}, *sum = &total;
	bool several = app->live.lcores > 1;
	uint64_t refused = 0;
	char ip[ADDRESS_IP_SIZE];

	for (uint32_t k = 0; k < app->live.lcores; k++) {
		const struct sender_port *p = &app->lcore[k].port[i];
		struct sender_count one = sender_count_port(&app->lcore[k], p);

		sender_count_add(sum, &one);
		refused += p->connections.refused;
	}
	uint64_t unsent = port_unsent(&app->live.port[i], sum->tx_frames);

	address_ip_text(config->ip, ip);
	json_object(j, NULL);
	live_port_json(&app->live.port[i], j);
	SENDER_PORT_FIELDS(FIELD_JSON)
	json_close(j, '}');
}

static void write_receivers(const struct sender_app *app, struct json *j) {
	struct receivers_sum sum = {0};

	if (app->lcore->receiver.receivers == 0)
		return;
	for (uint32_t k = 0; k < app->live.lcores; k++) {
		const struct host *h = &app->lcore[k].receiver;

		host_receivers(h, &sum);
		for (uint32_t i = 0; i < h->receivers; i++) {
			const struct receiver *r = &h->receiver[i];

			sum.open += r->state == RECEIVER_OPEN && r->rcv_nxt != r->fin;
		}
		sum.done += receivers_done(&h->endpoint);
	}
	host_receivers_write(&sum, j);
}

// Writes the faults during the run.
static void write_faults(struct sender_app *app, struct json *j) {
	struct sender_count sum = {0};
	uint32_t mtu = 0;

	for (uint32_t i = 0; i < app->live.ports; i++) {
		for (uint32_t k = 0; k < app->live.lcores; k++) {
			uint32_t reported = app->lcore[k].port[i].path_mtu;
			struct sender_count c =
				sender_count_port(&app->lcore[k], &app->lcore[k].port[i]);

			sender_count_add(&sum, &c);
			mtu = mtu == 0 || (reported > 0 && reported < mtu) ? reported : mtu;
		}
	}
	json_array(j, "faults");
	live_faults_json(&app->live, sum.no_mbuf, j);
	fact_count(j, "too_big", NULL, mtu > 0 ? sum.rx_too_big : 0,
		"a router on the path dropped %llu frames as too big: their flows went on in "
		"smaller segments, for an MTU of %u B; mss: %uB begins with those",
		(unsigned long long)sum.rx_too_big, mtu,
		mtu - wire_ip_header(app->groups.ipv6) - WIRE_TCP);
	fact_count(j, "beyond_mtu", NULL, sum.tx_too_long,
		"%llu frames were dropped: they are longer than the MTU of their port's interface; "
		"write a smaller mss for the flows, or raise the MTU",
		(unsigned long long)sum.tx_too_long);
	fact_count(j, "outside", NULL, sum.rx_outside,
		"%llu packets from outside 198.18.0.0/15 were not answered",
		(unsigned long long)sum.rx_outside);
	fact_count(j, "no_handover", NULL, sum.rx_no_room,
		"%llu received frames found no room on their way to another lcore "
		"(live.sender.handover)",
		(unsigned long long)sum.rx_no_room);
	json_close(j, ']');
}

// How late what leaves through the port of a role was, of all lcores.
struct lateness {
	struct hist undisturbed, all;
	uint64_t early, scheduled;
};

static void sum_lateness(const struct sender_app *app, enum live_role role, struct lateness *sum) {
	hist_reset(&sum->undisturbed);
	hist_reset(&sum->all);
	sum->early = sum->scheduled = 0;
	for (uint32_t k = 0; k < app->live.lcores; k++) {
		for (uint32_t i = 0; i < app->config.ports; i++) {
			const struct egress *e = &app->lcore[k].port[i].egress;

			if (app->config.port[i].role != (int)role)
				continue;
			hist_merge(&sum->undisturbed, &e->late);
			hist_merge(&sum->all, &e->late_disturbed);
			sum->early += e->early;
			sum->scheduled += e->scheduled;
		}
	}
	hist_merge(&sum->all, &sum->undisturbed);
}

static void write_undisturbed(const struct hist *late, struct json *j) {
	json_object(j, "pacing_undisturbed");
	live_pacing_json(late, j);
	json_close(j, '}');
}

static void write_pacing_rate(
	const struct sender_app *app, const struct host *const *hosts, struct json *j) {
	struct host_conformance c = host_conformance(hosts, app->live.lcores);
	bool some = c.flows > 0;

	json_object(j, "pacing_rate");
	PACING_RATE_FIELDS(FIELD_JSON)
	json_close(j, '}');
}

// Writes the errors of paced segments' transmit times and of flows' rates.
static void write_pacing(
	const struct sender_app *app, const struct host *const *hosts, struct json *j) {
	static struct lateness sum;

	sum_lateness(app, LIVE_SENDER, &sum);
	live_pacing_json(&sum.all, j);
	PACING_EMULATION_PARTS(FIELD_JSON)
}

// Writes how much later than its delay a receiver's ACKs left, by the names of the switch's.
static void write_delay(const struct sender_app *app, struct json *j) {
	static struct lateness sum;

	sum_lateness(app, LIVE_RECEIVER, &sum);
	live_late_json(&sum.all, j);
	live_undisturbed_json(&sum.undisturbed, j);
	EARLY_FIELDS(FIELD_JSON, &sum)
}

static void write_emulation(
	const struct sender_app *app, const struct host *const *hosts, struct json *j) {
	const struct live_port *receiver = sender_config_port(&app->config, LIVE_RECEIVER);
	bool paces = hosts[0]->flows > 0, delays = receiver != NULL && receiver->delay_ns > 0;

	if (!paces && !delays)
		return;
	json_object(j, "emulation");
	if (paces)
		write_pacing(app, hosts, j);
	if (delays)
		write_delay(app, j);
	json_close(j, '}');
}

static void write_lcores(const struct sender_app *app, struct json *j) {
	uint32_t k = 0;

	json_object(j, "sender_lcore");
	live_lcore_json(&app->live, k, j);
	SENDER_LCORE_FIELDS(FIELD_JSON)
	json_close(j, '}');
	if (app->live.lcores == 1)
		return;
	json_array(j, "sender_lcores");
	for (; k < app->live.lcores; k++) {
		const struct watch_lcore *w = &app->lcore[k].lcore.watch;

		json_object(j, NULL);
		live_lcore_json(&app->live, k, j);
		SENDER_LCORES_FIELDS(FIELD_JSON)
		json_close(j, '}');
	}
	json_close(j, ']');
}

static void write_limits(const struct host *const *hosts, uint32_t n, struct json *j) {
	struct fact limits;

	if (host_limits(hosts, n, &limits))
		fact_json(&limits, j, "limits");
}

static void write_ledger(struct json *j, bool balanced) {
	json_object(j, "ledger");
	LEDGER_FIELDS(FIELD_JSON)
	json_close(j, '}');
}

static void write_ports(struct sender_app *app, struct json *j) {
	json_array(j, "sender_ports");
	for (uint32_t i = 0; i < app->live.ports; i++)
		write_port(app, i, j);
	json_close(j, ']');
}

static void write_capture(const struct sender_app *app, struct json *j) {
	if (app->capture != NULL)
		pcap_writer_summary(app->capture, j);
}

bool sender_summary(struct live_app *live, struct json *j) {
	struct sender_app *app = sender_app(live);
	bool balanced = sender_balanced(app->lcore);
	const struct host *hosts[LIVE_LCORES_MAX];

	for (uint32_t k = 0; k < live->lcores; k++)
		hosts[k] = &app->lcore[k].sender;
	SENDER_HEAD(FIELD_JSON)
	if (hosts[0]->flows > 0)
		host_summary(hosts, live->lcores, j, live->lcore[0]->now_ns);
	SENDER_TAIL(FIELD_JSON)
	return balanced;
}
