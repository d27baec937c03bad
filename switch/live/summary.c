// SPDX-License-Identifier: BSD-3-Clause
// The summary of a live run of the switch: packet counts, links, and the emulation error.
#include "switch/live/app.h"

#include "common/run/fields.h"
#include "common/run/live_fields.h"
#include "switch/fields.h"

#include <math.h>
#include <string.h>

static void write_drops(const struct pkt_count *drop, struct json *j) {
	json_object(j, "drops");
	for (uint32_t r = DROP_NONE + 1; r < DROP_REASONS; r++) {
		if (drop[r].pkts > 0)
			json_u64(j, drop_reason_name((enum drop_reason)r), drop[r].pkts);
	}
	json_close(j, '}');
}

struct port_sum {
	uint64_t rx, replayed, tx, copies, duplicated;
	struct pkt_count drop[DROP_REASONS]; // before a path or behind it
};

static void sum_ports(const struct switch_app *app, struct port_sum *sum) {
	memset(sum, 0, sizeof(*sum));
	for (uint32_t k = 0; k < app->live.lcores; k++) {
		const struct switch_lcore *s = &app->lcore[k];

		for (uint32_t i = 0; i < app->live.ports; i++) {
			sum->rx += s->port[i].rx.pkts;
			uint64_t taken = s->port[i].egress.tx.pkts;
			uint64_t unsent =
				s->lcore.owns_port[i] ? port_unsent(&app->live.port[i], taken) : 0;

			sum->tx += taken - unsent;
			sum->drop[DROP_DRIVER].pkts += unsent;
			if (s->port[i].source != NULL)
				sum->replayed += s->port[i].source->pushed.pkts;
		}
		sum->copies += s->copied.pkts;
		for (uint32_t r = 0; r < DROP_REASONS; r++)
			sum->drop[r].pkts += switch_dropped(s, r).pkts;
	}
	for (uint32_t i = 0; i < app->paths.count; i++)
		sum->duplicated += app->paths.path[i].copies.made.pkts;
}

// The port, if any, most of whose first TCP and UDP frames came without their checksum.
static const struct switch_port *offloading(const struct switch_app *app) {
	for (uint32_t k = 0; k < app->live.lcores; k++) {
		for (uint32_t i = 0; i < app->live.ports; i++) {
			const struct switch_port *p = &app->lcore[k].port[i];

			if (p->offloaded > p->checked / 2)
				return p;
		}
	}
	return NULL;
}

bool switch_thrown(const struct switch_app *app, struct fact *fault) {
	const struct switch_port *from = offloading(app);
	struct port_sum sum;

	sum_ports(app, &sum);
	if (from != NULL) {
		fact_set(fault, "checksums_offloaded",
			"the host behind port %s leaves checksums to its card (%u of its first %u "
			"packets), so that the receiver throws its packets away: set `ethtool -K "
			"IFACE tx off tso off gso off gro off` there",
			from->egress.port->name, from->offloaded, from->checked);
		fact_text(fault, "port", from->egress.port->name);
		fact_number(fault, "count", from->offloaded);
		fact_number(fault, "of", from->checked);
		return true;
	}
	return path_none_for_most(sum.rx, sum.drop, fault);
}

static void write_ledger(struct switch_app *app, struct json *j, bool balanced) {
	struct port_sum sum;

	sum_ports(app, &sum);
	for (uint32_t r = 0; r < DROP_REASONS; r++) {
		for (uint32_t i = 0; i < app->paths.count; i++)
			sum.drop[r].pkts += app->paths.path[i].drop[r].pkts;
	}
	json_object(j, "ledger");
	LEDGER_FIELDS(FIELD_JSON)
	SWITCH_LEDGER_FIELDS(FIELD_JSON)
	paths_ledger(&app->paths, j);
	json_close(j, '}');
}

static double port_error_ppm(const struct switch_app *app, const struct egress *e) {
	return egress_rate_error_ppm(e) + clock_error_ppm(&app->lcore->lcore.clock);
}

static bool emulates(const struct switch_app *app, const struct switch_port *p) {
	return p->path != NULL || app->config.routed;
}

static void write_emulated(struct switch_app *app, struct json *j) {
	static struct hist all, *late = &all;

	json_array(j, "ports");
	for (uint32_t i = 0; i < app->live.ports; i++) {
		const struct switch_port *p = switch_owner(app->lcore, i);
		const struct egress *e = &p->egress;
		double ppm = port_error_ppm(app, e);

		if (!emulates(app, p))
			continue;
		all = e->late;
		hist_merge(&all, &e->late_disturbed);
		json_object(j, NULL);
		PORT_EMULATION_FIELDS(FIELD_JSON)
		json_close(j, '}');
	}
	json_close(j, ']');
}

// Writes the lateness of packets and the error of their rate.
//
// A link's theoretical departures keep its rate to 1e-10 (link.c). n transmitted packets take
// longer than in theory if the last one is later than the first, so the error is the slope of
// lateness over time. It is computed from undisturbed packets and from the most punctual burst of
// each 134 ms, because random delays are no rate error. Idle times are included and cannot increase
// it. The clock's own error is added: its drift from the kernel's clock since the start.
//
// `scheduled` packets are in none of these figures: the port got them before their time and sends
// them at it; how exactly is not known here.
static void write_emulation(struct switch_app *app, struct json *j) {
	static struct hist undisturbed, all, *late = &all;
	double worst_ppm = NAN;
	struct {
		uint64_t early, scheduled;
	} sum = {0};

	hist_reset(&undisturbed);
	hist_reset(&all);
	for (uint32_t i = 0; i < app->live.ports; i++) {
		const struct switch_port *p = switch_owner(app->lcore, i);
		const struct egress *e = &p->egress;
		double ppm = port_error_ppm(app, e);

		if (!emulates(app, p))
			continue;
		hist_merge(&undisturbed, &e->late);
		hist_merge(&all, &e->late_disturbed);
		sum.early += e->early;
		sum.scheduled += e->scheduled;
		worst_ppm = !(fabs(ppm) <= fabs(worst_ppm)) && isfinite(ppm) ? ppm : worst_ppm;
	}
	hist_merge(&all, &undisturbed);
	json_object(j, "emulation");
	DELAY_EMULATION_FIELDS(FIELD_JSON)
	json_close(j, '}');
}

static void write_ports(struct switch_app *app, struct json *j) {
	json_array(j, "ports");
	for (uint32_t i = 0; i < app->live.ports; i++) {
		const struct switch_port *p = switch_owner(app->lcore, i);
		struct port *port = p->egress.port;
		struct pkt_count rx = {0};
		uint64_t dropped = 0;

		for (uint32_t k = 0; k < app->live.lcores; k++) {
			rx.pkts += app->lcore[k].port[i].rx.pkts;
			rx.bytes += app->lcore[k].port[i].rx.bytes;
			dropped += app->lcore[k].port[i].egress.dropped.pkts;
		}
		uint64_t unsent = port_unsent(port, p->egress.tx.pkts);

		json_object(j, NULL);
		live_port_json(port, j);
		SWITCH_PORT_FIELDS(FIELD_JSON)
		json_close(j, '}');
	}
	json_close(j, ']');
}

// Writes a port's frames that were longer than it sends, and those that its driver did not send.
static void write_unsent(const struct switch_port *p, struct json *j) {
	const struct port *port = p->egress.port;
	uint64_t too_long = p->egress.too_long.pkts, unsent = port_unsent(port, p->egress.tx.pkts);

	fact_count(j, "beyond_mtu", port->name, too_long,
		"port %s: %llu frames were dropped: they are longer than the MTU of %s, "
		"%u bytes of IP",
		port->name, (unsigned long long)too_long, port->dev.iface,
		port->frame_max - WIRE_ETH);
	fact_count(j, "unsent", port->name, unsent,
		"port %s: its driver took %llu frames and did not send them", port->name,
		(unsigned long long)unsent);
}

// Writes that frames were longer than a buffer, or than what the driver receives.
static void write_cut(const struct switch_app *app, struct json *j) {
	uint64_t pkts = 0;

	for (uint32_t i = 0; i < app->live.lcores; i++)
		pkts += app->lcore[i].drop[DROP_CUT].pkts + app->lcore[i].drop[DROP_TOO_LONG].pkts;
	fact_count(j, "cut", NULL, pkts,
		"%llu frames were longer than a port receives: at the hosts set the MTU to %llu, "
		"as live.mtu is, and tso, gso and gro off",
		(unsigned long long)pkts, (unsigned long long)app->config.process.mtu);
}

// Writes the faults during the run.
static void write_faults(struct switch_app *app, struct json *j) {
	uint64_t no_mbuf = 0;
	struct fact fault;

	for (uint32_t i = 0; i < app->live.lcores; i++)
		no_mbuf += app->lcore[i].drop[DROP_NO_MBUF].pkts;
	for (uint32_t i = 0; i < app->paths.count; i++)
		no_mbuf += app->paths.path[i].drop[DROP_NO_MBUF].pkts;
	json_array(j, "faults");
	live_faults_json(&app->live, no_mbuf, j);
	for (uint32_t i = 0; i < app->live.ports; i++)
		write_unsent(switch_owner(app->lcore, i), j);
	write_cut(app, j);
	for (uint32_t i = 0; i < app->paths.count; i++) {
		if (switch_source_fault(&app->source[i], &fault))
			fact_json(&fault, j, NULL);
	}
	json_close(j, ']');
}

// Writes the frames given to each of the other lcores.
static void write_handover(
	const struct switch_app *app, const struct switch_lcore *s, struct json *j) {
	json_array(j, "handover");
	for (uint32_t i = 0; i < s->lcore.lcores; i++) {
		if (i == s->lcore.index)
			continue;
		json_object(j, NULL);
		HANDOVER_FIELDS(FIELD_JSON)
		json_close(j, '}');
	}
	json_close(j, ']');
}

// Frames received from ports, including those given to other lcores.
static uint64_t received(const struct switch_lcore *s) {
	uint64_t pkts = 0;

	for (uint32_t i = 0; i < s->lcore.ports; i++)
		pkts += s->port[i].rx.pkts;
	return pkts;
}

static void write_owned(const struct switch_app *app, uint32_t lcore, struct json *j) {
	json_array(j, "ports");
	for (uint32_t k = 0; k < app->live.ports; k++) {
		if (app->config.port[k].lcore == lcore)
			json_text(j, NULL, app->config.port[k].common.name);
	}
	json_close(j, ']');
}

// Writes "lcore" for the first lcore, and "lcores" for all of them if there are several.
static void write_lcores(const struct switch_app *app, struct json *j) {
	json_object(j, "lcore");
	live_lcore_json(&app->live, 0, j);
	json_close(j, '}');
	if (app->live.lcores == 1)
		return;
	json_array(j, "lcores");
	for (uint32_t i = 0; i < app->live.lcores; i++) {
		const struct switch_lcore *s = &app->lcore[i];

		json_object(j, NULL);
		live_lcore_json(&app->live, i, j);
		SWITCH_LCORE_FIELDS(FIELD_JSON)
		json_close(j, '}');
	}
	json_close(j, ']');
}

static void write_quotas(const struct switch_app *app, struct json *j) {
	json_object(j, "quotas"); // of each path's or port's packets
	for (uint32_t i = 0; i < app->live.ports; i++) {
		const struct switch_config_port *p = &app->config.port[i];

		if (p->path != NULL || app->config.routed)
			json_u64(j, p->path != NULL ? p->path_name : p->common.name, p->quota);
	}
	json_close(j, '}');
}

static void write_pool(const struct switch_app *app, struct json *j) {
	json_object(j, "pool");
	POOL_FIELDS(FIELD_JSON)
	json_close(j, '}');
}

static void write_sources(const struct switch_app *app, struct json *j) {
	if (app->lcore->sources > 0)
		switch_sources_summary(app->source, j);
}

bool switch_summary(struct live_app *live, struct json *j) {
	struct switch_app *app = switch_app(live);
	bool balanced = switch_balanced(app->lcore);

	SWITCH_FIELDS(FIELD_JSON)
	return balanced;
}
