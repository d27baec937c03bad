// SPDX-License-Identifier: BSD-3-Clause
// What a live run of the sender reports.
#include "sender/live/app.h"

#include <math.h>
#include <rte_ethdev.h>

// A port's counters, of all lcores.
static void write_port(const struct sender_app *app, uint32_t i, struct json *j) {
	const struct live_port *plan = &app->plan.port[i];
	const struct port *port = &app->live.port[i];
	struct sender_count sum = {0}, *c = &sum;
	uint64_t waiting = 0, between = 0, refused = 0;
	struct rte_eth_stats stats = {0};
	char text[18];

	for (uint32_t k = 0; k < app->live.lcores; k++) {
		const struct sender_port *p = &app->lcore[k].port[i];

		sender_count_add(&sum, &p->count);
		waiting += p->outs + sender_between(p, false);
		between += sender_between(p, true);
		refused += p->connections.refused;
	}
	rte_eth_stats_get(port->id, &stats);
	json_object(j, NULL);
	json_text(j, "name", plan->name);
	json_text(j, "role", plan->role == LIVE_SENDER ? "sender" : "receiver");
	json_text(j, "dev", port->dev.text);
	live_mac_text(&port->mac, text);
	json_text(j, "mac", text);
	live_ip_text(plan->ip, text);
	json_text(j, "ip", text);
	json_u64(j, "rx_frames", c->rx_frames);
	json_u64(j, "rx_bytes", c->rx_bytes);
	json_u64(j, "rx_tcp", c->rx_tcp);
	json_u64(j, "rx_arp", c->rx_arp);
	json_u64(j, "rx_echo", c->rx_echo);
	json_u64(j, "rx_too_big", c->rx_too_big);
	json_u64(j, "rx_other", c->rx_other);
	json_u64(j, "rx_outside", c->rx_outside);
	json_u64(j, "rx_reset", c->rx_reset);
	json_u64(j, "rx_malformed", c->rx_malformed);
	json_u64(j, "tx_wanted", c->tx_wanted);
	json_u64(j, "tx_frames", c->tx_frames);
	json_u64(j, "tx_bytes", c->tx_bytes);
	json_u64(j, "tx_dropped", c->tx_dropped);
	json_u64(j, "no_mbuf", c->no_mbuf);
	json_u64(j, "waiting", waiting);
	if (app->live.lcores > 1) {
		// Received by another lcore than the flow's: of these, dropped, and not yet looked at.
		json_u64(j, "handed_over", c->rx_given + c->rx_no_room);
		json_u64(j, "handover_dropped", c->rx_no_room);
		json_u64(j, "handover_waiting", between);
		json_u64(j, "sent_through_another", c->tx_given);
	}
	json_u64(j, "connections_refused", refused);
	json_u64(j, "driver_missed", stats.imissed);
	json_u64(j, "driver_no_mbuf", stats.rx_nombuf);
	json_u64(j, "driver_tx_errors", stats.oerrors);
	json_close(j, '}');
}

// Of all lcores.
struct receiver_sum {
	struct receiver_count c;
	uint64_t open, done, refused;
};

static void sum_receivers(struct receiver_sum *s, const struct host *h) {
	for (uint32_t i = 0; i < h->receivers; i++) {
		const struct receiver *r = &h->receiver[i];

		s->c.bytes += r->count.bytes;
		s->c.segs += r->count.segs;
		s->c.duplicate_segs += r->count.duplicate_segs;
		s->c.out_of_order_segs += r->count.out_of_order_segs;
		s->c.acks += r->count.acks;
		s->c.ce_segs += r->count.ce_segs;
		s->open += r->state == RECEIVER_OPEN && r->rcv_nxt != r->fin;
	}
	s->done += receivers_done(h);
	s->refused += h->ranges.refused;
}

static void write_receivers(const struct sender_app *app, struct json *j) {
	struct receiver_sum sum = {0};

	for (uint32_t k = 0; k < app->live.lcores; k++)
		sum_receivers(&sum, &app->lcore[k].receiver);
	json_object(j, "receivers");
	json_u64(j, "open", sum.open);
	json_u64(j, "done", sum.done);
	json_u64(j, "bytes", sum.c.bytes);
	json_u64(j, "segs", sum.c.segs);
	json_u64(j, "duplicate_segs", sum.c.duplicate_segs);
	json_u64(j, "out_of_order_segs", sum.c.out_of_order_segs);
	json_u64(j, "acks", sum.c.acks);
	json_u64(j, "ce_segs", sum.c.ce_segs);
	json_u64(j, "ranges_refused", sum.refused);
	json_close(j, '}');
}

// What went wrong around the sender while it ran, one sentence each.
static void write_faults(struct sender_app *app, struct json *j) {
	struct sender_count sum = {0};
	uint32_t mtu = 0;
	char text[256];

	json_array(j, "faults");
	live_faults_json(&app->live, j);
	for (uint32_t i = 0; i < app->live.ports; i++) {
		for (uint32_t k = 0; k < app->live.lcores; k++) {
			uint32_t told = app->lcore[k].port[i].path_mtu;

			sender_count_add(&sum, &app->lcore[k].port[i].count);
			mtu = mtu == 0 || (told > 0 && told < mtu) ? told : mtu;
		}
	}
	if (mtu > 0) {
		snprintf(text, sizeof(text),
			"a router on the path dropped %llu frames as too big, its next link carries "
			"%u B of IPv4: write mss: %uB for the flows",
			(unsigned long long)sum.rx_too_big, mtu, mtu - WIRE_IPV4 - WIRE_TCP);
		json_text(j, NULL, text);
	}
	if (sum.no_mbuf > 0) {
		snprintf(text, sizeof(text), "%llu frames found no buffer to write them into",
			(unsigned long long)sum.no_mbuf);
		json_text(j, NULL, text);
	}
	if (sum.rx_outside > 0) {
		snprintf(text, sizeof(text),
			"%llu packets from outside 198.18.0.0/15 were not answered",
			(unsigned long long)sum.rx_outside);
		json_text(j, NULL, text);
	}
	if (sum.rx_no_room > 0) {
		snprintf(text, sizeof(text),
			"%llu received frames found no room on their way to another lcore "
			"(live.sender.handover)",
			(unsigned long long)sum.rx_no_room);
		json_text(j, NULL, text);
	}
	json_close(j, ']');
}

static void write_late(struct json *j, const struct hist *h) {
	json_u64(j, "paced_segs", h->total);
	json_u64(j, "pacing_error_p50_ns", hist_quantile(h, 0.5));
	json_u64(j, "pacing_error_p99_ns", hist_quantile(h, 0.99));
	json_u64(j, "pacing_error_p999_ns", hist_quantile(h, 0.999));
	json_u64(j, "pacing_error_max_ns", h->max);
}

// How far from their times paced segments left, and from their rates flows sent.
static void write_emulation(
	const struct sender_app *app, const struct host *const *hosts, struct json *j) {
	struct host_conformance c = host_conformance(hosts, app->live.lcores);
	static struct hist undisturbed, all;
	uint64_t early = 0, scheduled = 0;

	hist_reset(&undisturbed);
	hist_reset(&all);
	for (uint32_t k = 0; k < app->live.lcores; k++) {
		for (uint32_t i = 0; i < app->plan.ports; i++) {
			const struct sender_port *p = &app->lcore[k].port[i];

			hist_merge(&undisturbed, &p->late);
			hist_merge(&all, &p->late_disturbed);
			early += p->early;
			scheduled += p->scheduled;
		}
	}
	hist_merge(&all, &undisturbed);
	json_object(j, "emulation");
	write_late(j, &all);
	json_u64(j, "pacing_early", early);
	json_u64(j, "pacing_scheduled", scheduled); // by the port, how well is not known here
	json_object(j, "pacing_undisturbed");
	write_late(j, &undisturbed);
	json_close(j, '}');
	json_object(j, "pacing_rate"); // off by so much, as a part of it
	json_u64(j, "flows", c.flows);
	json_f64(j, "p99", c.flows > 0 ? c.p99 : NAN);
	json_f64(j, "worst", c.flows > 0 ? c.worst : NAN);
	json_f64(j, "undisturbed_p99", c.flows > 0 ? c.p99_present : NAN);
	json_f64(j, "undisturbed_worst", c.flows > 0 ? c.worst_present : NAN);
	json_close(j, '}');
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
		json_u64(j, "stall_max_ns", w->stall.max);
		json_close(j, '}');
	}
	json_close(j, ']');
}

bool sender_summary(struct live_app *live, struct json *j) {
	struct sender_app *app = sender_app(live);
	bool balanced = sender_balanced(app->lcore);
	const struct host *hosts[LIVE_LCORES_MAX];

	for (uint32_t k = 0; k < live->lcores; k++)
		hosts[k] = &app->lcore[k].sender;
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
	if (hosts[0]->flows > 0)
		write_emulation(app, hosts, j);
	write_machine(app, j);
	return balanced;
}
