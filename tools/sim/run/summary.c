// SPDX-License-Identifier: BSD-3-Clause
#include "switch/path/fields.h"
#include "switch/stage/card.h"
#include "tools/sim/guest/guests.h"
#include "tools/sim/pipeline.h"
#include "tools/sim/run/fields.h"
#include "tools/sim/run/sim.h"

#include <math.h>
#include <xxhash.h>

// xxh64 over the streams' digests, in their order: equal runs have equal digests. Without the
// arrivals, which are input of the paths, and segments: recording them changes nothing. Transfers
// and IP flows, later streams, count if there are any.
static uint64_t run_digest(const struct tel *tel) {
	static const enum tel_stream later[] = {TEL_STREAM_TRANSFERS, TEL_STREAM_IP_FLOWS};
	uint64_t digest[TEL_STREAM_ARRIVALS + 2] = {0};
	size_t streams = TEL_STREAM_ARRIVALS;

	for (uint32_t i = 0; i < TEL_STREAM_ARRIVALS; i++) {
		if (tel[i].head > 0)
			digest[i] = tel_digest(&tel[i]);
	}
	for (size_t i = 0; i < sizeof(later) / sizeof(later[0]); i++) {
		if (tel[later[i]].head > 0)
			digest[streams++] = tel_digest(&tel[later[i]]);
	}
	return XXH64(digest, streams * sizeof(digest[0]), 0);
}

const char *digest_text(const struct tel *tel, char text[17]) {
	snprintf(text, 17, "%016llx", (unsigned long long)run_digest(tel));
	return text;
}

// Checks that each side's packets entered their first path, that those that left a path entered the
// next one or arrived at the other side, where it may have been discarded, and that the others are
// still in use in the pool.
static bool ledger_balanced(const struct sim *s) {
	const struct side *sender = &s->side[FLOWS_FORWARD], *receiver = &s->side[FLOWS_REVERSE];
	uint64_t inside = 0, in = 0, out = 0,
		 passed = s->topology.passed[FLOWS_FORWARD] + s->topology.passed[FLOWS_REVERSE];
	bool ok = true;

	for (uint32_t i = 0; i < s->paths.count; i++) {
		const struct path *p = &s->paths.path[i];

		inside += path_backlog(p).pkts;
		in += p->in.pkts;
		out += p->out.pkts;
		ok = ok && path_balanced(p);
	}
	return ok && s->sender.count.tx_segs == sender->given
		&& s->receiver.count.tx_segs == receiver->given
		&& s->sender.count.rx_segs + sender->checksum_errors == sender->taken
		&& s->receiver.count.rx_segs + receiver->checksum_errors == receiver->taken
		&& in == sender->given + receiver->given + passed
		&& out == sender->taken + receiver->taken + passed && s->pools.inside == inside;
}

static void write_hosts(const struct sim *s, struct json *j) {
	json_object(j, "hosts");
	HOSTS_FIELDS(FIELD_JSON)
	json_close(j, '}');
}

static void write_kind(const struct sim *s, enum flows_direction d, const struct hosts_kind *kind,
	struct json *j) {
	struct card_figures f = card_figures(s->paths.cards[d], kind, s->now_ns);
	double joined =
		d == FLOWS_REVERSE ? receivers_gro_mean(&s->receiver.endpoint, kind) : (double)NAN;
	char name[PARAM_TEXT_SIZE + 16];

	snprintf(name, sizeof(name), "%s%s%s", hosts_params[d].name,
		kind->name[0] != '\0' ? "." : "", kind->name);
	json_object(j, name);
	CARDS_FIELDS(FIELD_JSON)
	json_close(j, '}');
}

static void write_cards(const struct sim *s, struct json *j) {
	if (s->paths.cards[FLOWS_FORWARD] == NULL && s->paths.cards[FLOWS_REVERSE] == NULL)
		return;
	json_object(j, "cards");
	for (enum flows_direction d = 0; d < FLOWS_DIRECTIONS; d++) {
		for (uint32_t k = 0; s->paths.cards[d] != NULL && k < s->hosts.side[d].kinds; k++)
			write_kind(s, d, &s->hosts.side[d].kind[k], j);
	}
	json_close(j, '}');
}

static void write_ledger(struct sim *s, struct json *j, bool balanced) {
	const struct paths *ps = &s->paths;

	json_object(j, "ledger");
	PATHS_LEDGER_FIELDS(FIELD_JSON)
	SIMULATION_LEDGER_FIELDS(FIELD_JSON)
	json_close(j, '}');
}

static void write_receivers(struct sim *s, struct json *j) {
	struct receivers_sum sum = {.open = FIELD_UNKNOWN, .done = FIELD_UNKNOWN};

	host_receivers(&s->receiver, &sum);
	host_receivers_write(&sum, j);
}

uint64_t sim_data_segs(const struct sim *s) {
	return s->receiver.received.segs;
}

// Writes the cost of the steady state, for `weir bench`.
static void write_measured(const struct sim *s, struct json *j) {
	const struct sim_cost *cost = &s->cost;

	if (cost->measured_wall_s <= 0) {
		json_null(j, "measured");
		return;
	}
	json_object(j, "measured");
	MEASURED_FIELDS(FIELD_JSON)
	json_close(j, '}');
}

static void write_interval(const struct stop *stop, struct json *j) {
	if (stop->confidence == 0)
		return;
	json_object(j, "interval");
	STOP_INTERVAL_FIELDS(FIELD_JSON)
	json_close(j, '}');
}

static void write_stop(const struct sim *s, struct json *j) {
	const struct stop *stop = &s->run->stop;

	if (stop->metrics == 0)
		return;
	json_object(j, "stop");
	STOP_FIELDS(FIELD_JSON)
	json_close(j, '}');
}

static void write_branch(const struct sim *s, struct json *j) {
	if (s->run->branch != NULL)
		run_branch_json(s->run, j);
}

static void write_memory(const struct sim *s, struct json *j) {
	json_object(j, "memory");
	MEMORY_FIELDS(FIELD_JSON)
	json_close(j, '}');
}

static void write_limits(const struct sim *s, struct json *j) {
	const struct host *sender = &s->sender;
	struct fact limits;

	if (host_limits(&sender, 1, &limits))
		fact_json(&limits, j, "limits");
}

bool sim_summary(struct sim *s, FILE *out, const struct facts *verdict) {
	bool random =
		guests_random(s->guests) || paths_random(&s->paths) || groups_random(&s->groups);
	bool balanced = ledger_balanced(s);
	const struct host *sender = &s->sender;
	const struct run *run = s->run;
	const struct tel *tel = s->tel;
	uint64_t now_ns = s->now_ns;
	double wall_s = s->cost.wall_s, seconds = (double)time_since(now_ns, run->warmup_ns) / 1e9;
	struct json json, *j = &json;
	char digest[17];

	run_summary_begin(run, "simulation", j, out);
	SIMULATION_HEAD(FIELD_JSON)
	host_summary(&sender, 1, j, now_ns);
	SIMULATION_TAIL(FIELD_JSON)
	json_end(j);
	return balanced;
}

double sim_utilisation(struct sim *s) {
	const struct route *r = &s->paths.route[0][FLOWS_FORWARD];
	double used = (double)NAN;

	for (uint32_t i = 0; i < r->count && isnan(used); i++)
		used = path_utilisation(r->path[i], s->now_ns);
	return used;
}
