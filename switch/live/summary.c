// SPDX-License-Identifier: BSD-3-Clause
// What a live run of the switch reports: the ledger, the links, and how exact it was.
#include "switch/live/app.h"

#include <math.h>
#include <rte_ethdev.h>
#include <string.h>

static void write_drops(const struct path_count *drop, struct json *j) {
	json_object(j, "drops");
	for (uint32_t r = DROP_NONE + 1; r < DROP_REASONS; r++) {
		if (drop[r].pkts > 0)
			json_u64(j, drop_reason_name((enum drop_reason)r), drop[r].pkts);
	}
	json_close(j, '}');
}

// The last moment of any.
static uint64_t end_ns(const struct switch_live *all) {
	uint64_t end_ns = 0;

	for (uint32_t i = 0; i < all->lcores; i++)
		end_ns = time_max(end_ns, all[i].now_ns);
	return end_ns;
}

// Duration and warm-up count from here; the end of a run that never began.
static uint64_t start_ns(const struct switch_live *all) {
	return all->start_ns == NEVER_NS ? end_ns(all) : all->start_ns;
}

struct port_sum {
	uint64_t rx, tx, copies;
	struct path_count drop[DROP_REASONS]; // before a path or behind it
};

static void sum_ports(const struct switch_live *all, struct port_sum *sum) {
	memset(sum, 0, sizeof(*sum));
	for (const struct switch_live *s = all; s < all + all->lcores; s++) {
		for (uint32_t i = 0; i < s->ports; i++) {
			sum->rx += s->port[i].rx.pkts;
			sum->tx += s->port[i].tx.pkts;
		}
		sum->copies += s->copies;
		for (uint32_t r = 0; r < DROP_REASONS; r++)
			sum->drop[r].pkts += s->drop[r].pkts;
	}
}

bool switch_app_thrown(
	const struct switch_app *app, const char *before, char text[WATCH_SENTENCE_SIZE]) {
	int n = snprintf(text, WATCH_SENTENCE_SIZE, "%s", before);
	struct port_sum sum;

	sum_ports(app->live, &sum);
	return path_none_for_most(sum.rx, sum.drop, text + n, WATCH_SENTENCE_SIZE - (size_t)n);
}

static void write_ledger(struct switch_app *app, struct json *j, bool balanced) {
	const struct switch_live *all = app->live;
	struct port_sum sum;

	sum_ports(all, &sum);
	for (uint32_t r = 0; r < DROP_REASONS; r++) {
		for (uint32_t i = 0; i < app->paths.count; i++)
			sum.drop[r].pkts += app->paths.path[i].drop[r].pkts;
	}
	json_object(j, "ledger");
	json_bool(j, "balanced", balanced);
	json_u64(j, "received", sum.rx);
	json_u64(j, "copied", sum.copies);
	json_u64(j, "transmitted", sum.tx);
	json_u64(j, "inside", switch_inside(all).pkts);
	write_drops(sum.drop, j);
	paths_ledger(&app->paths, j);
	json_close(j, '}');
}

// How fast lateness grows, in ns per second = 1e-9: packets that leave later and later leave at a
// lower rate. NaN: too short a time to say.
static double rate_error_ppm(const struct switch_port *p) {
	const struct switch_trend *t = &p->trend;
	double spread = t->n * t->xx - t->x * t->x;

	if (t->n < 5 || spread <= 0)
		return NAN;
	return -(t->n * t->xy - t->x * t->y) / spread * 1e-3;
}

static void write_late(struct json *j, const struct hist *h) {
	json_u64(j, "packets", h->total);
	json_u64(j, "delay_error_p50_ns", hist_quantile(h, 0.5));
	json_u64(j, "delay_error_p99_ns", hist_quantile(h, 0.99));
	json_u64(j, "delay_error_p999_ns", hist_quantile(h, 0.999));
	json_u64(j, "delay_error_max_ns", h->max);
}

// All packets, and without those that a stall of the lcore or a full port disturbed.
static void write_both(
	struct json *j, const struct hist *undisturbed, const struct hist *disturbed) {
	static struct hist all;

	all = *undisturbed;
	hist_merge(&all, disturbed);
	write_late(j, &all);
	json_object(j, "undisturbed");
	write_late(j, undisturbed);
	json_close(j, '}');
}

// How late packets left, and how far their rate is from what it should be.
//
// A link's theoretical departures keep its rate to 1e-10 (link.c). As transmitted, n packets take
// longer than they should by as much as the last one is later than the first: the slope of lateness
// over time, of undisturbed packets and of the most punctual burst of each moment, because chance is no
// rate error. It includes idle times, which cannot add to it. The clock it was timed with has its own
// error: how far it has gone from the kernel's since the start.
//
// `scheduled` packets are in none of these figures: the port got them before their time and keeps it,
// how well is not known here.
static void write_emulation(struct switch_app *app, struct json *j) {
	struct switch_live *s = app->live;
	double clock_ppm = clock_error_ppm(&s->clock);
	static struct hist undisturbed, disturbed;
	double worst_ppm = NAN;
	uint64_t early = 0, scheduled = 0;

	hist_reset(&undisturbed);
	hist_reset(&disturbed);
	json_object(j, "emulation");
	json_array(j, "ports");
	for (uint32_t i = 0; i < s->ports; i++) {
		const struct switch_port *p = switch_owner(s, i);
		double ppm = rate_error_ppm(p) + clock_ppm;

		if (p->path == NULL)
			continue;
		hist_merge(&undisturbed, &p->late);
		hist_merge(&disturbed, &p->late_disturbed);
		early += p->early;
		scheduled += p->scheduled;
		worst_ppm = !(fabs(ppm) <= fabs(worst_ppm)) && isfinite(ppm) ? ppm : worst_ppm;
		json_object(j, NULL);
		json_text(j, "port", p->port.name);
		json_text(j, "path", p->path->name);
		write_both(j, &p->late, &p->late_disturbed);
		json_u64(j, "early", p->early);
		json_u64(j, "scheduled", p->scheduled);
		json_f64(j, "rate_error_ppm", ppm);
		json_close(j, '}');
	}
	json_close(j, ']');
	write_both(j, &undisturbed, &disturbed);
	json_u64(j, "early", early);
	json_u64(j, "scheduled", scheduled);
	json_f64(j, "rate_error_ppm", worst_ppm);
	json_close(j, '}');
	watch_probe_json(app->probe, "", j);
}

static void write_ports(struct switch_app *app, struct json *j) {
	struct switch_live *s = app->live;
	char mac[18];

	json_array(j, "ports");
	for (uint32_t i = 0; i < s->ports; i++) {
		const struct switch_port *p = switch_owner(s, i);
		struct rte_eth_stats stats = {0};
		struct path_count rx = {0};
		uint64_t dropped = 0;

		for (uint32_t k = 0; k < s->lcores; k++) {
			rx.pkts += s[k].port[i].rx.pkts;
			rx.bytes += s[k].port[i].rx.bytes;
			dropped += s[k].port[i].tx_dropped;
		}
		rte_eth_stats_get(p->port.id, &stats);
		live_mac_text(&p->port.mac, mac);
		json_object(j, NULL);
		json_text(j, "name", p->port.name);
		json_text(j, "dev", p->port.dev.text);
		json_text(j, "mac", mac);
		json_text(j, "path", p->path != NULL ? p->path->name : "");
		json_bool(j, "rx_timestamps", p->port.stamp.rx && p->port.stamp.clock.known);
		json_bool(j, "tx_timestamps", stamp_holds(&p->port.stamp));
		json_bool(j, "up", p->port.was_up);
		json_u64(j, "rx_pkts", rx.pkts);
		json_u64(j, "rx_bytes", rx.bytes);
		json_u64(j, "tx_pkts", p->tx.pkts);
		json_u64(j, "tx_bytes", p->tx.bytes);
		json_u64(j, "tx_dropped", dropped);
		// The driver's own: not received for want of room, taken but not sent.
		json_u64(j, "driver_missed", stats.imissed);
		json_u64(j, "driver_no_mbuf", stats.rx_nombuf);
		json_u64(j, "driver_tx_errors", stats.oerrors);
		json_close(j, '}');
	}
	json_close(j, ']');
}

// What went wrong around the switch while it ran, one sentence each.
static void write_faults(struct switch_app *app, struct json *j) {
	struct switch_live *s = app->live;
	const struct tel *const streams[] = {
		&s->tel_packets, &s->tel_arrivals, &s->tel_links, &s->tel_events};
	uint64_t no_mbuf = 0;
	char text[256];

	json_array(j, "faults");
	for (uint32_t i = 0; i < s->ports; i++) {
		if (port_fault(s->port[i].at, start_ns(s), end_ns(s), text, sizeof(text)))
			json_text(j, NULL, text);
	}
	for (uint32_t i = 0; i < s->lcores; i++)
		no_mbuf += s[i].drop[DROP_NO_MBUF].pkts;
	for (uint32_t i = 0; i < app->paths.count; i++)
		no_mbuf += app->paths.path[i].drop[DROP_NO_MBUF].pkts;
	if (no_mbuf > 0) {
		snprintf(text, sizeof(text),
			"%llu packets were dropped because the pool was too small for them "
			"(no_mbuf)",
			(unsigned long long)no_mbuf);
		json_text(j, NULL, text);
	}
	for (size_t i = 0; i < sizeof(streams) / sizeof(streams[0]); i++) {
		if (tel_fault(streams[i], text, sizeof(text)))
			json_text(j, NULL, text);
	}
	json_close(j, ']');
}

// What it gave to each of the others.
static void write_handover(
	const struct switch_app *app, const struct switch_live *s, struct json *j) {
	json_array(j, "handover");
	for (uint32_t i = 0; i < s->lcores; i++) {
		if (i == s->index)
			continue;
		json_object(j, NULL);
		json_u64(j, "to_cpu", app->plan.process.lcore[i]);
		json_u64(j, "given", s->give[i].given);
		json_u64(j, "dropped", atomic_load(&s->give[i].dropped));
		json_close(j, '}');
	}
	json_close(j, ']');
}

static void write_lcore(const struct switch_app *app, uint32_t i, struct json *j) {
	const struct switch_live *s = &app->live[i];

	json_u64(j, "cpu", app->plan.process.lcore[i]);
	json_u64(j, "turns", s->turns);
	// Still, while DPDK's interrupt thread handled something.
	json_u64(j, "stood", s->stood);
	json_u64(j, "stood_max_ns", s->stood_max_ns);
	json_f64(j, "busy", app->wall_s > 0 ? (double)s->busy_ns / 1e9 / app->wall_s : 0);
	json_u64(j, "tsc_hz", s->clock.tsc_hz);
}

// From ports, with what it gave to others.
static void write_received(const struct switch_live *s, struct json *j) {
	uint64_t pkts = 0;

	for (uint32_t i = 0; i < s->ports; i++)
		pkts += s->port[i].rx.pkts;
	json_u64(j, "received", pkts);
}

// "lcore": the first; of several, "lcores" has all of them.
static void write_lcores(const struct switch_app *app, struct json *j) {
	const struct switch_live *all = app->live;

	json_object(j, "lcore");
	write_lcore(app, 0, j);
	json_close(j, '}');
	if (all->lcores == 1)
		return;
	json_array(j, "lcores");
	for (uint32_t i = 0; i < all->lcores; i++) {
		json_object(j, NULL);
		write_lcore(app, i, j);
		write_received(&all[i], j);
		watch_host_json(&app->probe[i], "", j);
		json_array(j, "ports");
		for (uint32_t k = 0; k < all->ports; k++) {
			if (app->plan.port[k].lcore == i)
				json_text(j, NULL, app->plan.port[k].name);
		}
		json_close(j, ']');
		write_handover(app, &all[i], j);
		json_close(j, '}');
	}
	json_close(j, ']');
}

static void write_machine(const struct switch_app *app, struct json *j) {
	const struct switch_live *s = app->live;

	write_lcores(app, j);
	json_object(j, "pool");
	json_u64(j, "buffers", app->buffers);
	json_u64(j, "bytes", app->eal.memory_bytes);
	json_bool(j, "hugepages", app->eal.hugepages);
	for (uint32_t i = 0; i < s->ports; i++) {
		if (app->plan.port[i].path != NULL)
			json_u64(j, app->plan.port[i].path_name, app->plan.port[i].share);
	}
	json_close(j, '}');
	json_object(j, "telemetry");
	json_u64(j, "level", app->run.telemetry_level);
	watch_stream_json(j, "packets", &s->tel_packets);
	watch_stream_json(j, "arrivals", &s->tel_arrivals);
	watch_stream_json(j, "links", &s->tel_links);
	watch_stream_json(j, "events", &s->tel_events);
	json_close(j, '}');
	json_text(j, "eal", app->eal.args);
}

bool switch_app_summary(struct switch_app *app, FILE *out, const char *verdict) {
	const struct switch_live *s = app->live;
	bool balanced = switch_balanced(s);
	uint64_t now_ns = end_ns(s), begun_ns = start_ns(s);
	struct json j;

	json_begin(&j, out);
	json_text(&j, "program", app->opt->program);
	json_text(&j, "version", run_version());
	json_text(&j, "title", app->run.title);
	json_u64(&j, "seed", app->run.seed);
	json_f64(&j, "virtual_s", (double)(now_ns - begun_ns) / 1e9);
	json_f64(&j, "start_s", (double)begun_ns / 1e9);
	json_f64(&j, "measured_from_s", (double)s->measured_ns / 1e9);
	json_f64(&j, "wall_s", app->wall_s);
	json_text(&j, "verdict", verdict);
	write_faults(app, &j);
	write_ledger(app, &j, balanced);
	watch_json(app->watch, s->lcores, &j);
	paths_summary(&app->paths, &j, now_ns);
	write_emulation(app, &j);
	write_ports(app, &j);
	write_machine(app, &j);
	json_end(&j);
	return balanced;
}
