// SPDX-License-Identifier: BSD-3-Clause
// The summary of a live run of the sender.
#include "sender/live/app.h"

#include "common/net/address.h"

#include <math.h>

// Writes a port's counters, summed over all lcores.
static void write_port(struct sender_app *app, uint32_t i, struct json *j) {
	const struct live_port *plan = &app->plan.port[i];
	const bool known[COUNTER_SOURCES] = {[COUNT_ALWAYS] = true};
	struct sender_count total = {0}, *sum = &total;
	uint64_t refused = 0;
	char ip[ADDRESS_IP_SIZE];

	for (uint32_t k = 0; k < app->live.lcores; k++) {
		const struct sender_port *p = &app->lcore[k].port[i];
		struct sender_count one = sender_count_port(&app->lcore[k], p);

		sender_count_add(sum, &one);
		refused += p->connections.refused;
	}
	uint64_t unsent = port_unsent(&app->live.port[i], sum->tx_frames);

	address_ip_text(plan->ip, ip);
	json_object(j, NULL);
	live_port_json(&app->live.port[i], j);
	json_text(j, "role", live_role_names[plan->role]);
	json_text(j, "ip", ip);
	SENDER_COUNTERS(FIELD_JSON_COUNTER)
	json_u64(j, "tx_frames", sum->tx_frames - unsent);
	if (unsent == 0)
		json_u64(j, "tx_bytes", sum->tx_bytes);
	else // of how many bytes the driver does not say
		json_null(j, "tx_bytes");
	json_u64(j, "tx_unsent", unsent);
	json_u64(j, "waiting", sum->tx_waiting);
	if (app->live.lcores > 1) {
		// Frames received by another lcore than the flow's; of these, dropped, and still
		// waiting.
		json_u64(j, "handed_over", sum->rx_given + sum->rx_no_room);
		json_u64(j, "handover_dropped", sum->rx_no_room);
		json_u64(j, "handover_waiting", sum->rx_waiting);
		json_u64(j, "sent_through_another", sum->tx_given);
	}
	json_u64(j, "connections_refused", refused);
	json_close(j, '}');
}

static void write_receivers(const struct sender_app *app, struct json *j) {
	struct receivers_sum sum = {0};

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
		"a router on the path dropped %llu frames as too big: their flows went on in smaller "
		"segments, for an MTU of %u B; mss: %uB begins with those",
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
		for (uint32_t i = 0; i < app->plan.ports; i++) {
			const struct egress *e = &app->lcore[k].port[i].egress;

			if (app->plan.port[i].role != (int)role)
				continue;
			hist_merge(&sum->undisturbed, &e->late);
			hist_merge(&sum->all, &e->late_disturbed);
			sum->early += e->early;
			sum->scheduled += e->scheduled;
		}
	}
	hist_merge(&sum->all, &sum->undisturbed);
}

// Writes the errors of paced segments' transmit times and of flows' rates.
static void write_pacing(
	const struct sender_app *app, const struct host *const *hosts, struct json *j) {
	struct host_conformance c = host_conformance(hosts, app->live.lcores);
	static struct lateness late;

	sum_lateness(app, LIVE_SENDER, &late);
	live_late_json(&late.all, "paced_segs", "pacing_error", j);
	json_u64(j, "pacing_early", late.early);
	json_u64(j, "pacing_scheduled", late.scheduled); // lateness is unknown
	json_object(j, "pacing_undisturbed");
	live_late_json(&late.undisturbed, "paced_segs", "pacing_error", j);
	json_close(j, '}');
	json_cdf(j, "pacing_error_cdf", &late.all);
	json_cdf(j, "pacing_error_undisturbed_cdf", &late.undisturbed);
	json_object(j, "pacing_rate"); // relative error
	json_u64(j, "flows", c.flows);
	json_f64(j, "p99", c.flows > 0 ? c.p99 : NAN);
	json_f64(j, "worst", c.flows > 0 ? c.worst : NAN);
	json_f64(j, "undisturbed_p99", c.flows > 0 ? c.p99_present : NAN);
	json_f64(j, "undisturbed_worst", c.flows > 0 ? c.worst_present : NAN);
	json_close(j, '}');
}

// Writes how much later than its delay a receiver's ACKs left, by the names of the switch's.
static void write_delay(const struct sender_app *app, struct json *j) {
	static struct lateness late;

	sum_lateness(app, LIVE_RECEIVER, &late);
	live_late_json(&late.all, "packets", "delay_error", j);
	json_object(j, "undisturbed");
	live_late_json(&late.undisturbed, "packets", "delay_error", j);
	json_close(j, '}');
	json_u64(j, "early", late.early);
}

static void write_emulation(
	const struct sender_app *app, const struct host *const *hosts, struct json *j) {
	const struct live_port *receiver = live_plan_port(&app->plan, LIVE_RECEIVER);
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

static void write_lcore(const struct sender_app *app, uint32_t k, struct json *j) {
	live_lcore_json(&app->live, k, j);
	json_u64(j, "flows", app->lcore[k].sender.flows);
}

static void write_machine(const struct sender_app *app, struct json *j) {
	watch_probe_json(&app->live.probe[0], "sender_", j);
	json_object(j, "sender_lcore");
	write_lcore(app, 0, j);
	json_bool(j, "hugepages", app->live.eal.hugepages);
	json_u64(j, "pool_bytes", app->live.eal.memory_bytes);
	json_text(j, "eal", app->live.eal.args);
	json_close(j, '}');
	if (app->live.lcores == 1)
		return;
	json_array(j, "sender_lcores");
	for (uint32_t k = 0; k < app->live.lcores; k++) {
		const struct watch_lcore *w = &app->lcore[k].lcore.watch;

		json_object(j, NULL);
		write_lcore(app, k, j);
		json_u64(j, "stalls", w->count.stalls);
		json_u64(j, "stalled_ns", w->count.stalled_ns);
		json_known(j, "stall_max_ns", w->stall.total > 0, w->stall.max);
		json_close(j, '}');
	}
	json_close(j, ']');
}

bool sender_summary(struct live_app *live, struct json *j) {
	struct sender_app *app = sender_app(live);
	bool balanced = sender_balanced(app->lcore);
	const struct host *hosts[LIVE_LCORES_MAX];
	struct fact limits;

	for (uint32_t k = 0; k < live->lcores; k++)
		hosts[k] = &app->lcore[k].sender;
	if (host_limits(hosts, live->lcores, &limits))
		fact_json(&limits, j, "limits");
	write_faults(app, j);
	json_object(j, "ledger");
	json_bool(j, "balanced", balanced);
	json_close(j, '}');
	if (hosts[0]->flows > 0)
		host_summary(hosts, live->lcores, j, live->lcore[0]->now_ns);
	if (app->lcore->receiver.receivers > 0)
		write_receivers(app, j);
	json_array(j, "sender_ports");
	for (uint32_t i = 0; i < live->ports; i++)
		write_port(app, i, j);
	json_close(j, ']');
	write_emulation(app, hosts, j);
	write_machine(app, j);
	if (app->capture != NULL)
		pcap_writer_summary(app->capture, j);
	return balanced;
}
